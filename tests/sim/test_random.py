"""Random schedules on random topologies: the trace keeps the hazards, the queues and the capacities."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from random_schedules import required_waits, schedules

from algorithms.launch import Launch, Placement
from algorithms.schedule import Schedule
from sim.model import Model
from sim.plan import Route
from sim.sharing import FairSharing
from sim.simulate import simulate
from topologies.graph import Link, Node, Topology, both_ways


@st.composite
def topologies(draw: st.DrawFn, gpus: int) -> Topology:
    """A tree of GPUs and two switches with random bandwidths and latencies."""
    rate = st.sampled_from([1e9, 2e9, 3e9])
    wait = st.sampled_from([0.0, 1e-6, 3e-7])
    nodes = [Node(f"g{i}", "gpu", injection=draw(st.sampled_from([np.inf, 1.5e9]))) for i in range(gpus)]
    links = [Link(f"g{i}", f"s{draw(st.integers(0, 1))}", "link", 1, draw(rate), draw(wait)) for i in range(gpus)]
    links.append(Link("s0", "s1", "link", 1, draw(rate), draw(wait)))
    return Topology.build("random", [*nodes, Node("s0", "switch"), Node("s1", "switch")], [way for k in links for way in both_ways(k)])


@given(st.data(), schedules(), st.booleans(), st.sampled_from([0, 1, 3]), st.sampled_from([0.0, 1e-6]), st.sampled_from(["fair", "fifo"]))
@settings(max_examples=200)
def test_trace_keeps_hazards_and_queues(data: st.DataObject, s: Schedule, barrier: bool, depth: int, overhead: float, sharing: str) -> None:
    lonely = (s.message < 0).all()
    topology = data.draw(topologies(s.nranks))
    model = Model(overhead, 3e9, sharing, barrier, depth)  # type: ignore[arg-type]
    try:
        r = simulate(topology, [Launch(s, 1200, Placement.of(topology, s), "int8")], model)
    except ValueError:
        assert not lonely  # only messages of several sends can wait for each other
        return
    t = r.trace
    for before, after, on_sent in required_waits(s):
        if not (s.step[before] == s.step[after] and _one_message(s, before, after)):
            assert t.start[after] >= (t.sent[before] if on_sent else t.end[before])
    for place in range(s.places):
        for channel in range(2):
            queue = [i for i in range(len(s)) if s.src[i] == place and s.channel[i] == channel]
            for i, j in pairwise(queue):
                if not _one_message(s, i, j):
                    assert t.start[j] >= t.sent[i] or _mixed(s, queue)
    if barrier:
        for i in range(len(s)):
            assert all(t.start[i] >= t.end[j] for j in range(len(s)) if s.step[j] < s.step[i])
    path = r.critical_path()
    assert np.isclose(path.overhead_s + path.latency_s + path.bandwidth_s + path.reduce_s + path.wait_s, r.time, rtol=1e-9)
    for load in r.link_loads():
        assert load.busy_s <= r.time * (1 + 1e-9)  # no link carries more than its capacity


def _one_message(s: Schedule, i: int, j: int) -> bool:
    same = all(column[i] == column[j] for column in (s.step, s.src, s.dst, s.channel, s.message))
    return bool(same and s.message[i] >= 0)


def _mixed(s: Schedule, queue: list[int]) -> bool:
    """A message of several sends stands in the queue where its first send does."""
    return bool((s.message[queue] >= 0).any())


@given(st.lists(st.lists(st.integers(0, 5), min_size=1, max_size=4, unique=True), min_size=1, max_size=10), st.data())
@settings(max_examples=300)
def test_fair_rates_are_max_min(routes: list[list[int]], data: st.DataObject) -> None:
    """Each flow has a full resource on its route where no other flow is faster (the definition of max-min fairness)."""
    capacity = data.draw(st.lists(st.sampled_from([1.0, 2.0, 3.0, 10.0]), min_size=6, max_size=6))
    weights = [data.draw(st.lists(st.sampled_from([0.25, 0.5, 1.0]), min_size=len(r), max_size=len(r))) for r in routes]
    sharing = FairSharing(capacity)
    rate: dict[int, float] = {}
    for flow, (used, w) in enumerate(zip(routes, weights, strict=True)):
        sharing.add(flow, Route(tuple(used), tuple(w), 0.0))
        if data.draw(st.booleans()):
            rate.update(sharing.settle())
    gone = data.draw(st.sets(st.integers(0, len(routes) - 1), max_size=len(routes) - 1))
    rate.update(sharing.settle())
    for flow in gone:
        sharing.remove(flow)
        rate.pop(flow)
    rate.update(sharing.settle())
    use = [sum(rate[f] * w for f in rate for r, w in zip(routes[f], weights[f], strict=True) if r == resource) for resource in range(6)]
    for resource in range(6):
        assert use[resource] <= capacity[resource] * (1 + 1e-9)
    fastest = [max((rate[g] for g in rate if r in routes[g]), default=0.0) for r in range(6)]
    for flow in rate:
        assert any(use[r] >= capacity[r] * (1 - 1e-9) and rate[flow] >= fastest[r] * (1 - 1e-9) for r in routes[flow])
