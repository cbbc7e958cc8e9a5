"""Lower bounds on small random graphs: brute force over all cuts, laws, and that nothing simulated beats them."""

from __future__ import annotations

import itertools
import math
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from test_bounds import ULPS, G, M, slow_leg, with_ports

from algorithms.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BROADCAST,
    COLLECTIVES,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    SCATTER,
    Collective,
)
from algorithms.launch import Launch, Placement
from algorithms.registry import Algorithm, catalogue
from sim.bounds import bounds
from sim.model import Model
from sim.simulate import simulate
from topologies import make
from topologies.errors import ScheduleError
from topologies.graph import Link, Node, Topology

# Brute force


@st.composite
def small_graphs(draw: st.DrawFn) -> Topology:
    """2-4 GPUs and 0-2 switches on a cycle, more links between any, ports of GPUs narrower than their links at times."""
    gpus, switches = draw(st.integers(2, 4)), draw(st.integers(0, 2))
    rates = st.one_of(st.integers(1, 9).map(lambda r: r * G), st.floats(0.5e9, 50e9))
    limits = st.one_of(st.just(math.inf), rates)
    nodes = [Node(f"gpu{r}", "gpu", injection=draw(limits), ejection=draw(limits)) for r in range(gpus)]
    nodes += [Node(f"switch{s}", "switch", reduces=True) for s in range(switches)]
    names = draw(st.permutations([node.name for node in nodes]))
    pairs = {(a, b) for a, b in zip(names, [*names[1:], names[0]], strict=True) if a != b}
    pairs |= set(draw(st.lists(st.sampled_from(list(itertools.permutations(names, 2))), max_size=6)))
    return Topology.build("random", nodes, [Link(a, b, "link", 1, draw(rates), draw(st.floats(0, 1e-5))) for a, b in sorted(pairs)])


def all_cuts(topology: Topology) -> list[tuple[set[int], float]]:
    """Every set of ranks that is neither empty nor all, with the least capacity that leads out of it, whatever the nodes do."""
    names, gpus = list(topology.graph), topology.gpus
    least: dict[frozenset[int], float] = {}
    for ranks in itertools.chain.from_iterable(itertools.combinations(range(len(gpus)), k) for k in range(1, len(gpus))):
        for inside in map(set, itertools.chain.from_iterable(itertools.combinations(names, k) for k in range(len(names) + 1))):
            rate = sum(link.bandwidth for link in topology.links if link.src in inside and link.dst not in inside)
            rate += sum(topology.node(gpus[r]).injection for r in ranks if gpus[r] not in inside)
            rate += sum(topology.node(gpus[r]).ejection for r in range(len(gpus)) if r not in ranks and gpus[r] in inside)
            least[frozenset(ranks)] = min(rate, least.get(frozenset(ranks), math.inf))
    return [(set(ranks), rate) for ranks, rate in least.items()]


@settings(max_examples=40)
@given(small_graphs(), st.integers(0, 3))
def test_cut_bounds_equal_brute_force_over_all_cuts(topology: Topology, root: int) -> None:
    n, root = len(topology.gpus), root % len(topology.gpus)
    cuts, share = all_cuts(topology), M // n // 8 * 8
    need = {
        "all-reduce": lambda inside: M,
        "all-gather": lambda inside: len(inside) * share,
        "reduce-scatter": lambda inside: (n - len(inside)) * share,
        "broadcast": lambda inside: M if root in inside else 0,
        "reduce": lambda inside: 0 if root in inside else M,
        "scatter": lambda inside: (n - len(inside)) * share if root in inside else 0,
        "gather": lambda inside: 0 if root in inside else len(inside) * share,
    }
    for name, amount in need.items():
        told = bounds(topology, COLLECTIVES[name], M, root=root, in_network=True).bandwidth_s
        assert told == pytest.approx(max(amount(inside) / rate for inside, rate in cuts), rel=1e-9), name
    told = bounds(topology, ALL_TO_ALL, M).bandwidth_s
    for inside, rate in cuts:
        if len(inside) in (1, n - 1):
            assert told >= len(inside) * (n - len(inside)) * share / rate * ULPS


@settings(max_examples=25)
@given(small_graphs())
def test_all_reduce_is_what_the_partition_into_single_ranks_says_or_more(topology: Topology) -> None:
    n, rate = len(topology.gpus), {tuple(sorted(inside)): rate for inside, rate in all_cuts(topology)}
    out = sum(rate[r,] for r in range(n))
    into = sum(rate[tuple(q for q in range(n) if q != r)] for r in range(n))
    told = bounds(topology, ALL_REDUCE, M).bandwidth_s
    assert told >= 2 * (n - 1) * M / min(out, into) * ULPS
    assert told >= bounds(topology, ALL_REDUCE, M, in_network=True).bandwidth_s


# Nothing simulated beats them

PLACES = {
    "ring": lambda: make("ring", {"gpus": 6, "bandwidth": G}),
    "no-latency": lambda: make("ring", {"gpus": 5, "bandwidth": G, "latency": 0.0}),
    "star": lambda: make("star", {"gpus": 8, "bandwidth": G}),
    "line": lambda: make("line", {"gpus": 4, "bandwidth": G}),
    "torus": lambda: make("torus", {"dims": (4, 2), "bandwidth": G}),
    "mesh": lambda: make("full-mesh", {"gpus": 4, "bandwidth": G}),
    "dgx-1v": lambda: make("dgx-1v"),
    "dgx-h100-2": lambda: make("dgx-h100", {"nodes": 2, "gpus": 4}),
    "slow-leg": slow_leg,
    "ports": lambda: with_ports(make("full-mesh", {"gpus": 8, "bandwidth": G}), 2.5 * G, 2.0 * G),
}  # fmt: skip


def _runs(algorithm: Algorithm, topology: Topology, slices: int) -> Launch | None:
    if algorithm.refusal(len(topology.gpus)):
        return None
    try:
        schedule = algorithm.build(len(topology.gpus), slices=slices if algorithm.pipelined else 1)
        return Launch(schedule, 0, Placement.of(topology, schedule))
    except ScheduleError:  # an option it cannot do without, or no switch that reduces
        return None


@pytest.mark.parametrize("place", PLACES)
def test_no_algorithm_beats_the_bounds(place: str) -> None:
    topology, compared = PLACES[place](), 0

    @cache
    def floor(what: Collective, nbytes: int, itemsize: int, in_network: bool, overhead: float) -> float:
        return bounds(topology, what, nbytes, itemsize=itemsize, in_network=in_network, overhead=overhead).lower_bound_s

    for algorithm in catalogue():
        for elements, slices, model in (
            (1, 1, Model()),
            (13, 1, Model(overhead=1e-6)),
            (4099, 3, Model()),
            (840_000, 8, Model(sharing="fifo")),
        ):
            launch = _runs(algorithm, topology, slices)
            if launch is None:
                continue
            launch = Launch(launch.schedule, 4 * elements, launch.placement)
            took = simulate(topology, [launch], model).time
            for itemsize in (4, 8):
                told = floor(launch.schedule.collective, 4 * elements, itemsize, launch.schedule.in_network, model.overhead)
                assert took >= told * ULPS, (algorithm.collective.name, algorithm.name, elements, told)
            compared += 1
    assert compared > 20


# Laws


@pytest.mark.parametrize("collective", COLLECTIVES.values(), ids=str)
@settings(max_examples=8)
@given(small_graphs(), st.floats(0.01, 100))
def test_laws(collective: Collective, topology: Topology, factor: float) -> None:
    told = bounds(topology, collective, M)
    assert told.lower_bound_s == max(told.latency_s, told.bandwidth_s)
    assert bounds(topology, collective, M) == told
    assert bounds(_scaled(topology, factor), collective, M).bandwidth_s == pytest.approx(told.bandwidth_s / factor, rel=1e-9)
    assert bounds(_scaled(topology, factor), collective, M).latency_s == told.latency_s
    sizes = [bounds(topology, collective, size).bandwidth_s for size in (0, 8, 1000, 5000, M, M + 8)]
    assert sizes == sorted(sizes)
    assert bounds(topology, collective, M, in_network=True).bandwidth_s <= told.bandwidth_s
    assert bounds(topology, collective, 0).lower_bound_s == told.latency_s


def _scaled(topology: Topology, factor: float) -> Topology:
    nodes = [Node(n.name, n.kind, n.server, n.injection * factor, n.ejection * factor, n.reduces) for n in topology.nodes]
    links = [Link(k.src, k.dst, k.kind, k.lanes, k.bandwidth * factor, k.latency) for k in topology.links]
    return Topology.build(topology.name, nodes, links, topology.groups)


@settings(max_examples=15)
@given(small_graphs())
def test_duals_are_equal_on_the_reversed_graph(topology: Topology) -> None:
    nodes = [Node(n.name, n.kind, n.server, n.ejection, n.injection, n.reduces) for n in topology.nodes]
    turned = Topology.build("turned", nodes, [link.reversed() for link in topology.links])
    for one, other in ((ALL_GATHER, REDUCE_SCATTER), (BROADCAST, REDUCE), (GATHER, SCATTER), (ALL_REDUCE, ALL_REDUCE)):
        assert bounds(topology, one, M).bandwidth_s == pytest.approx(bounds(turned, other, M).bandwidth_s, rel=1e-12)
