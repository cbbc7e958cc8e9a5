"""What is read off a run: loads of links, the critical path, progress; and the same again for the same input."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from test_event import B, star

from algorithms.collectives import ALL_REDUCE
from algorithms.launch import Launch, Placement
from algorithms.registry import find
from sim.model import Model
from sim.simulate import run_collective, simulate
from topologies import make
from topologies.graph import Topology


def test_halving_one_link_changes_the_time() -> None:
    ring = make("ring", {"gpus": 8})
    slow = [replace(k, bandwidth=k.bandwidth / 2) if (k.src, k.dst) == ("gpu3", "gpu4") else k for k in ring.links]
    degraded = Topology.build("degraded", ring.nodes, slow)
    healthy, broken = (run_collective(t, "all-reduce", "ring", 1 << 26) for t in (ring, degraded))
    assert broken.time > 1.9 * healthy.time
    assert max(broken.critical_path().bandwidth_by.items(), key=lambda kv: kv[1])[0] == ("gpu3", "gpu4")
    load = broken.link_loads()[0]
    assert (load.src, load.dst) == ("gpu3", "gpu4")
    assert load.busy_s == pytest.approx(broken.time, rel=1e-3)


def test_link_loads_count_every_byte_on_every_hop() -> None:
    r = run_collective(star(8), "all-reduce", "ring", 1 << 20)
    loads = r.link_loads()
    assert len(loads) == 16
    assert sum(load.bytes for load in loads) == 2 * int(r.trace.bytes.sum())
    assert r.bytes_per_rank().sum() == r.trace.bytes.sum() == 2 * 7 * (1 << 20)


def test_critical_path_adds_up_and_starts_at_zero() -> None:
    model = Model(overhead=2e-6, reduce_rate=5e9)
    for topology in (star(8), make("torus", {"dims": "2x4", "bandwidth": B}), make("dgx-a100", {"nodes": 2})):
        for algorithm in ("ring", "halving-doubling", "double-binary-tree", "parameter-server", "sharded-parameter-server"):
            for sharing in ("fair", "fifo"):
                r = run_collective(topology, "all-reduce", algorithm, 1 << 20, slices=2, model=replace(model, sharing=sharing))
                p = r.critical_path()
                assert p.overhead_s + p.latency_s + p.bandwidth_s + p.reduce_s + p.wait_s == pytest.approx(r.time, rel=1e-9)
                assert sum(p.bandwidth_by.values()) == pytest.approx(p.bandwidth_s, rel=1e-9)
                assert r.played.times.start[p.messages[0]] == 0.0


def test_same_input_same_trace() -> None:
    one, two = (run_collective(make("dgx-a100", {"nodes": 2}), "all-reduce", "double-binary-tree", 1 << 22, slices=4) for _ in range(2))
    for name in ("start", "sent", "arrived", "end"):
        assert np.array_equal(getattr(one.trace, name), getattr(two.trace, name))


def test_progress_is_reported_and_can_cancel() -> None:
    class Cancelled(Exception):
        pass

    seen: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 2:
            raise Cancelled

    with pytest.raises(Cancelled):
        run_collective(star(64), "all-reduce", "ring", 1 << 20, progress=watch)
    assert 0 < seen[0][0] < seen[1][0] < seen[1][1] == 2 * 63 * 64


def test_compute_that_ends_last_is_on_the_critical_path() -> None:
    ring = find(ALL_REDUCE, "ring").build(4)
    topology = star(4)
    launches = [Launch(ring, 4000, Placement.of(topology, ring)), Launch(None, duration=1e-3, after=(0,))]
    r = simulate(topology, launches)
    p = r.critical_path()
    assert p.wait_s == pytest.approx(1e-3, rel=1e-12)
    assert p.latency_s + p.bandwidth_s + p.wait_s == pytest.approx(r.time, rel=1e-12)
    alone = simulate(topology, [Launch(None, duration=1e-3)])
    assert alone.critical_path().wait_s == alone.time == 1e-3
