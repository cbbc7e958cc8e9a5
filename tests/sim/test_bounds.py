"""Lower bounds: golden values, brute force over all cuts, laws, and that nothing simulated beats them."""

from __future__ import annotations

import itertools
import math
import time

import pytest

from algorithms.collectives import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    BARRIER,
    BROADCAST,
    GATHER,
    REDUCE,
    REDUCE_SCATTER,
    Collective,
)
from algorithms.launch import Launch, Placement
from algorithms.registry import catalogue
from sim.bounds import bounds
from sim.simulate import simulate
from topologies import make
from topologies.errors import ScheduleError
from topologies.graph import Link, Node, Topology, both_ways

G = 1e9
M = 2**20 * 9 * 5 * 7 * 8
ULPS = 1 - 1e-12


def algbw(topology: Topology, collective: Collective, in_network: bool = False) -> float:
    """GB/s, as in the golden table; without latency."""
    return M / bounds(topology, collective, M, in_network=in_network).bandwidth_s / G


def wired(
    name: str,
    gpus: int,
    switches: list[str],
    cables: list[tuple[str, str, float]],
    groups: dict[str, tuple[tuple[int, ...], ...]] | None = None,
) -> Topology:
    nodes = [*(Node(f"gpu{r}", "gpu") for r in range(gpus)), *(Node(s, "switch", reduces=True) for s in switches)]
    links = [way for a, b, rate in cables for way in both_ways(Link(a, b, "link", 1, rate * G, 0.0))]
    return Topology.build(name, nodes, links, groups)


def one_way_ring(gpus: int) -> Topology:
    links = [Link(f"gpu{r}", f"gpu{(r + 1) % gpus}", "link", 1, G, 1e-6) for r in range(gpus)]
    return Topology.build("one-way", [Node(f"gpu{r}", "gpu") for r in range(gpus)], links)


def rails(servers: int, nvlink: float, nic: float) -> Topology:
    """8 GPUs a server on one NVSwitch, GPU g also on the switch of rail g."""
    cables = [(f"gpu{8 * s + g}", f"nvs{s}", nvlink) for s in range(servers) for g in range(8)]
    cables += [(f"gpu{8 * s + g}", f"rail{g}", nic) for s in range(servers) for g in range(8)]
    boxes = tuple(tuple(range(8 * s, 8 * s + 8)) for s in range(servers))
    return wired("rails", 8 * servers, [f"nvs{s}" for s in range(servers)] + [f"rail{g}" for g in range(8)], cables, {"servers": boxes})


def with_ports(topology: Topology, injection: float, ejection: float) -> Topology:
    nodes = [Node(n.name, n.kind, n.server, injection, ejection, n.reduces) if n.kind == "gpu" else n for n in topology.nodes]
    return Topology.build(topology.name, nodes, topology.links, topology.groups)


def nvlinks_of_dgx_1v() -> Topology:
    whole = make("dgx-1v")
    return Topology.build("mesh", [n for n in whole.nodes if n.kind == "gpu"], [k for k in whole.links if k.kind == "nvlink2"])


def slow_leg() -> Topology:
    return wired("slow-leg", 8, ["switch"], [(f"gpu{r}", "switch", 100 if r else 10) for r in range(8)])


GOLDEN = [
    (lambda: one_way_ring(8), 1.142857, 0.571429),
    (lambda: make("ring", {"gpus": 8, "bandwidth": G}), 2.285714, 1.142857),
    (lambda: make("torus", {"dims": (4, 4), "bandwidth": G}), 4.266667, 2.133333),
    (lambda: make("torus", {"dims": (4, 4, 4), "bandwidth": G}), 6.095238, 3.047619),
    (nvlinks_of_dgx_1v, 171.428571, 85.714286),
    (lambda: make("star", {"gpus": 8, "bandwidth": 450 * G}), 514.285714, 257.142857),
    (lambda: make("full-mesh", {"gpus": 8, "bandwidth": 64 * G}), 512.0, 256.0),
    (lambda: make("full-mesh", {"gpus": 8, "bandwidth": 48 * G}), 384.0, 192.0),
    (lambda: rails(2, 300, 25), 346.666667, 173.333333),
    (lambda: rails(2, 450, 50), 533.333333, 266.666667),
    (lambda: rails(4, 450, 50), 516.129032, 258.064516),
    (lambda: rails(16, 450, 50), 426.666667, 213.333333),
    (lambda: make("star", {"gpus": 72, "bandwidth": 900 * G}), 912.676056, 456.338028),
]  # fmt: skip


@pytest.mark.parametrize(("topology", "gather", "reduce"), GOLDEN)
def test_golden_values(topology: object, gather: float, reduce: float) -> None:
    """GB/s of the bounds that a linear program confirmed (ForestColl's graphs)."""
    made = topology()  # type: ignore[operator]
    assert algbw(made, ALL_GATHER) == pytest.approx(gather, rel=1e-6)
    assert algbw(made, REDUCE_SCATTER) == pytest.approx(gather, rel=1e-6)
    assert algbw(made, ALL_REDUCE) == pytest.approx(reduce, rel=1e-6)


def test_golden_values_of_32_servers() -> None:
    assert algbw(rails(32, 450, 50), ALL_GATHER) == pytest.approx(412.903226, rel=1e-6)


def test_a_slow_leg_binds_an_all_reduce_by_itself_alone() -> None:
    assert algbw(slow_leg(), ALL_REDUCE) == pytest.approx(10.0)
    assert algbw(slow_leg(), ALL_GATHER) == pytest.approx(2 * 5.714286, rel=1e-6)


def test_capacities_beyond_32_bits() -> None:
    """No common unit of these rates fits; the cut between two cliques is found all the same, though no partition tried has it."""
    pairs = [pair for four in (range(4), range(4, 8)) for pair in itertools.combinations(four, 2)]
    cables = [(f"gpu{a}", f"gpu{b}", 10 + math.sqrt(2 + i) / 10) for i, (a, b) in enumerate(pairs)] + [("gpu1", "gpu6", 12.345678912)]
    cliques = wired("cliques", 8, [], cables)
    assert algbw(cliques, ALL_GATHER) == pytest.approx(2 * 12.345678912, rel=1e-12)
    assert bounds(cliques, ALL_GATHER, M).limiting == "cut around gpu4, gpu5, gpu6 and 1 more (1 link, 12.35 GB/s out)"


def test_a_broadcast_leaves_n_minus_1_times() -> None:
    """Whoever sends it: the root with 10 GB/s and 3 others with 1 GB/s have to send 3 copies. In the network one would do."""
    mesh = make("full-mesh", {"gpus": 4, "bandwidth": 100 * G})
    nodes = [Node(n.name, n.kind, injection=(1 if r else 10) * G) for r, n in enumerate(mesh.nodes)]
    narrow = Topology.build("narrow", nodes, mesh.links)
    assert algbw(narrow, BROADCAST) == pytest.approx(13 / 3)
    assert algbw(narrow, BROADCAST, in_network=True) == pytest.approx(10)


def test_in_network_goldens() -> None:
    assert algbw(make("star", {"gpus": 8, "bandwidth": 450 * G}), ALL_REDUCE, in_network=True) == pytest.approx(450)
    assert algbw(rails(2, 300, 25), ALL_REDUCE, in_network=True) == pytest.approx(200)


def test_all_to_all_is_bound_by_ports_cuts_or_distance() -> None:
    assert algbw(make("star", {"gpus": 8, "bandwidth": G}), ALL_TO_ALL) == pytest.approx(8 / 7)
    assert algbw(rails(2, 450, 50), ALL_TO_ALL) == pytest.approx(100)  # 8 * 8 * M / 16 over 400 GB/s
    assert algbw(make("ring", {"gpus": 8, "bandwidth": G}), ALL_TO_ALL) == pytest.approx(1.0)  # 16 links, 16 hops a rank on M / 8


@pytest.mark.parametrize(("algorithm", "collective"), [("bidirectional-ring", c) for c in (ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER)])
def test_without_latency_the_ring_meets_the_bound(algorithm: str, collective: Collective) -> None:
    ring = make("ring", {"gpus": 7, "bandwidth": G, "latency": 0.0})
    launch = next(a for a in catalogue(collective) if a.name == algorithm).build(7)
    took = simulate(ring, [Launch(launch, 4 * 14_000, Placement.of(ring, launch))]).time
    assert took == pytest.approx(bounds(ring, collective, 4 * 14_000).lower_bound_s, rel=1e-12)


def test_shares_are_whole_elements_rounded_down() -> None:
    star = make("star", {"gpus": 8, "bandwidth": G})
    assert bounds(star, ALL_GATHER, 4 * 15, itemsize=4).bandwidth_s == pytest.approx(7 * 4 / G)
    assert bounds(star, ALL_GATHER, 4 * 7, itemsize=4).bandwidth_s == 0
    assert bounds(star, ALL_GATHER, 4 * 16).bandwidth_s == pytest.approx(7 * 8 / G)
    assert bounds(star, ALL_GATHER, 4 * 31).bandwidth_s == pytest.approx(7 * 8 / G)  # 8-byte elements: 15 of them


# Latency


def test_latency_is_the_largest_least_latency_of_a_pair_that_must_communicate() -> None:
    line = make("line", {"gpus": 5, "bandwidth": G, "latency": 1e-6})
    assert bounds(line, BARRIER, 0).lower_bound_s == pytest.approx(4e-6)
    assert bounds(line, BARRIER, 0).bandwidth_s == 0
    assert bounds(line, BARRIER, 4096).bandwidth_s == 0
    assert bounds(line, BROADCAST, 4, root=2).latency_s == pytest.approx(2e-6)
    assert bounds(line, ALL_REDUCE, 4, ranks=[1, 2, 3]).latency_s == pytest.approx(2e-6)
    assert bounds(line, REDUCE, 4, root=1, ranks=[4, 3]).latency_s == pytest.approx(1e-6)
    assert bounds(line, ALL_REDUCE, 4, overhead=3e-6).latency_s == pytest.approx(7e-6)
    assert bounds(line, ALL_REDUCE, 0).limiting == "latency: gpu0 -> gpu4 over 4 hops"


def test_latency_takes_the_quickest_way_not_the_fewest_hops_and_has_directions() -> None:
    nodes = [Node(f"gpu{r}", "gpu") for r in range(3)]
    links = [Link("gpu0", "gpu2", "link", 1, G, 9e-6), Link("gpu0", "gpu1", "link", 1, G, 1e-6), Link("gpu1", "gpu2", "link", 1, G, 0.0),
             Link("gpu2", "gpu0", "link", 1, G, 5e-6)]  # fmt: skip
    triangle = Topology.build("triangle", nodes, links)
    assert bounds(triangle, BROADCAST, 0).latency_s == pytest.approx(1e-6)
    assert bounds(triangle, REDUCE, 0).latency_s == pytest.approx(5e-6)
    assert bounds(triangle, ALL_REDUCE, 0).latency_s == pytest.approx(6e-6)  # gpu2 -> gpu1
    assert bounds(triangle, BROADCAST, 0, root=1).limiting == "latency: gpu1 -> gpu0 over 2 hops"


def test_a_subgroup_needs_no_more_than_its_own_ranks() -> None:
    two = make("dgx-h100", {"nodes": 2})
    assert bounds(two, BROADCAST, M, ranks=range(8)).bandwidth_s < bounds(two, BROADCAST, M).bandwidth_s
    assert bounds(two, BROADCAST, M, ranks=[0, 8]).limiting == "cut around s0.gpu0 (8 ib-ndr links, 400 GB/s out)"  # by NVLink to all NICs


# Words, errors, speed


def test_limiting_names_what_binds() -> None:
    two = make("dgx-h100", {"nodes": 2})
    assert bounds(two, BROADCAST, M).limiting == "cut around server 0 (8 ib-ndr links, 400 GB/s out)"
    assert bounds(two, REDUCE, M).limiting == "cut around server 0 (8 ib-ndr links, 400 GB/s in)"
    assert bounds(slow_leg(), ALL_GATHER, M).limiting == "ports of gpu0 (10 GB/s in)"
    assert bounds(rails(16, 450, 50), ALL_REDUCE, M).limiting == "cuts around all 16 servers together (6.4 TB/s in)"
    assert bounds(make("star", {"gpus": 8, "bandwidth": G}), ALL_REDUCE, M).limiting == "ports of all 8 ranks together (8 GB/s in)"
    assert bounds(with_ports(two, 3 * G, 9 * G), GATHER, M, root=1).limiting == "ports of s0.gpu1 (9 GB/s in)"


def test_errors_say_the_rule() -> None:
    ring = make("ring", {"gpus": 4})
    for bad, rule in (
        ({"ranks": [0, 4]}, r"0\.\.3"), ({"ranks": [1, 1]}, "each once"), ({"ranks": [2]}, "at least 2"),
        ({"root": 4}, r"ranks are 0\.\.3"), ({"root": 2, "ranks": [0, 1]}, r"ranks are 0\.\.1"), ({"nbytes": -1}, "0 B or more"),
    ):  # fmt: skip
        with pytest.raises(ScheduleError, match=rule):
            bounds(ring, BROADCAST, **{"nbytes": 8, **bad})  # type: ignore[arg-type]
    with pytest.raises(ScheduleError, match="no bound is known"):
        bounds(ring, Collective("odd", "root", "target"), 8)


def test_overlapping_groups_are_not_taken_for_a_partition() -> None:
    cables = [(f"gpu{r}", "switch", 1.0) for r in range(4)]
    plain, odd = (
        wired("star", 4, ["switch"], cables, groups) for groups in (None, {"odd": ((0,), (1,), (2,), (3,), (0,), (1,), (2,), (3,))})
    )
    assert bounds(plain, ALL_REDUCE, M) == bounds(odd, ALL_REDUCE, M)


def test_fast_enough_for_the_app() -> None:
    """Best of three, since other work shares the machine; a fifth of a second where about 40 ms are usual."""
    topology, took = make("dgx-h100"), []
    for _ in range(3):
        start = time.process_time()
        bounds(topology, ALL_REDUCE, M)
        took.append(time.process_time() - start)
    assert min(took) < 0.2
