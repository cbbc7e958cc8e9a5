"""Lower bounds against independent oracles: a linear program for all-reduce, networkx' flows for all-gather, the published table;
and what would raise them."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog
from scipy.sparse import coo_array
from test_bounds import ALL_GATHER, ALL_REDUCE, G, M, algbw, nvlinks_of_dgx_1v, one_way_ring, rails, slow_leg, wired

from algorithms.collectives import ALL_TO_ALL, BARRIER, BROADCAST
from sim.bounds import WIDER, Bounds, Relief, bounds
from topologies import Link, Node, Topology, make
from topologies.graph import both_ways

# The linear program


def optimum(topology: Topology, in_network: bool = False) -> float:
    """GB/s of the fastest all-reduce by trees (ForestColl): x[v] is the data with root v; of each link, a goes to out-trees and b to
    in-trees; for each rank w a flow of all x to w within a, and one back within b. A switch passes on what it gets: in = out."""
    names, links, n = list(topology.graph), topology.links, len(topology.gpus)
    at, m = {name: i for i, name in enumerate(names)}, len(links)
    tail, head = (np.array([at[name] for name in column]) for column in zip(*((k.src, k.dst) for k in links), strict=True))
    ranks, every = np.array([at[gpu] for gpu in topology.gpus]), np.arange(m)
    a, b, total = n, n + m, n + 2 * m + 2 * n * m  # columns: x, a, b, then the flows
    rows: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # of equations: row, column, factor
    upper: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = [(every, a + every, np.ones(m)), (every, b + every, np.ones(m))]
    row, low = 0, m
    for flow in range(2 * n):
        way, w = (1 if flow < n else -1), flow % n
        first = n + 2 * m + flow * m
        kept = np.array([i for i in range(len(names)) if i != ranks[w]])  # balance of the last vertex follows from the others
        number = np.full(len(names), -1)
        number[kept] = row + np.arange(len(kept))
        for ends, sign in ((tail, way), (head, -way)):
            inside = number[ends] >= 0
            rows.append((number[ends][inside], first + every[inside], np.full(inside.sum(), float(sign))))
        others = np.array([r for r in range(n) if r != w])
        rows.append((number[ranks[others]], others, -np.ones(n - 1)))
        upper += [(low + every, first + every, np.ones(m)), (low + every, (a if flow < n else b) + every, -np.ones(m))]
        row, low = row + len(kept), low + m
    for share in (a, b) if not in_network else ():
        for switch in (i for i in range(len(names)) if i not in ranks):
            out, into = np.flatnonzero(tail == switch), np.flatnonzero(head == switch)
            columns, signs = np.concatenate([out, into]), np.repeat([1.0, -1.0], [len(out), len(into)])
            rows.append((np.full(len(columns), row), share + columns, signs))
            row += 1
    caps = np.concatenate([[link.bandwidth / G for link in links], np.zeros(low - m)])
    equal, most = (
        coo_array((np.concatenate([v for *_, v in part]), tuple(np.concatenate([p[i] for p in part]) for i in (0, 1))), shape=(size, total))
        for part, size in ((rows, row), (upper, low))
    )
    found = linprog(-np.r_[np.ones(n), np.zeros(total - n)], most, caps, equal, np.zeros(row), method="highs")
    assert found.status == 0
    return -float(found.fun)


KNOWN = {
    "one-way ring": lambda: one_way_ring(8),
    "ring": lambda: make("ring", {"gpus": 8, "bandwidth": G}),
    "torus": lambda: make("torus", {"dims": (4, 4), "bandwidth": G}),
    "dgx-1v": nvlinks_of_dgx_1v,
    "nvswitch": lambda: make("star", {"gpus": 8, "bandwidth": 450 * G}),
    "mi300x": lambda: make("full-mesh", {"gpus": 8, "bandwidth": 48 * G}),
    "2 dgx-a100": lambda: rails(2, 300, 25),
    "slow leg": slow_leg,
}  # fmt: skip


@pytest.mark.parametrize("name", KNOWN)
def test_all_reduce_bound_is_the_optimum_of_the_linear_program(name: str) -> None:
    assert algbw(KNOWN[name](), ALL_REDUCE) == pytest.approx(optimum(KNOWN[name]()), rel=1e-6)


@pytest.mark.parametrize("name", ["nvswitch", "2 dgx-a100", "slow leg", "ring"])
def test_in_network_bound_is_below_the_program_with_switches_that_add_up(name: str) -> None:
    topology = KNOWN[name]()
    told, best = algbw(topology, ALL_REDUCE, in_network=True), optimum(topology, in_network=True)
    assert told >= best * (1 - 1e-6)
    if name != "ring":  # no switch there, so nothing reduces in the network, and two cuts alone do not know that
        assert told == pytest.approx(best, rel=1e-6)


def test_a_slow_leg_costs_its_own_bandwidth_not_that_of_two_phases() -> None:
    """Reduce-scatter and then all-gather would be 5.71 GB/s."""
    assert f"{algbw(slow_leg(), ALL_REDUCE):.1f}" == "10.0"
    assert f"{algbw(slow_leg(), ALL_GATHER) / 2:.2f}" == "5.71"


@st.composite
def graphs(draw: st.DrawFn, most: int, switches: int = 0, duplex: bool = False) -> Topology:
    """3 GPUs or more and perhaps switches on a cycle, with chords; whole GB/s."""
    names = [f"gpu{r}" for r in range(draw(st.integers(3, most)))] + [f"switch{s}" for s in range(draw(st.integers(0, switches)))]
    order = draw(st.permutations(names))
    pairs = list(zip(order, [*order[1:], order[0]], strict=True)) + draw(
        st.lists(st.sampled_from(list(itertools.combinations(order, 2))), max_size=8)
    )
    known = {frozenset(pair): Link(*pair, "link", 1, draw(st.integers(1, 20)) * G, 0.0) for pair in pairs}
    links = [way for link in known.values() for way in both_ways(link)]
    if not duplex:
        links = [Link(k.src, k.dst, k.kind, 1, draw(st.integers(1, 20)) * G, 0.0) for k in links]
    return Topology.build("random", [Node(name, "gpu" if name[0] == "g" else "switch") for name in names], links)


@settings(max_examples=30)
@given(graphs(6, switches=2))
def test_all_reduce_bound_never_exceeds_the_optimum(topology: Topology) -> None:
    assert algbw(topology, ALL_REDUCE) >= optimum(topology) * (1 - 1e-6)
    assert algbw(topology, ALL_REDUCE, in_network=True) >= optimum(topology, in_network=True) * (1 - 1e-6)


def partitions(items: list[int]) -> list[list[list[int]]]:
    if len(items) < 2:
        return [[items]]
    smaller = partitions(items[1:])
    return [[*p[:i], [items[0], *p[i]], *p[i + 1 :]] for p in smaller for i in range(len(p))] + [[[items[0]], *p] for p in smaller]


@settings(max_examples=15)
@given(graphs(5, duplex=True))
def test_the_oracle_is_the_least_of_all_partitions_without_switches(topology: Topology) -> None:
    """Tutte and Nash-Williams: so the program itself is held against something."""

    def limit(parts: list[list[int]]) -> float:
        part_of = {topology.gpus[rank]: i for i, part in enumerate(parts) for rank in part}
        return sum(k.bandwidth for k in topology.links if part_of[k.src] != part_of[k.dst]) / (2 * (len(parts) - 1)) / G

    every = [parts for parts in partitions(list(range(len(topology.gpus)))) if len(parts) > 1]
    assert optimum(topology) == pytest.approx(min(map(limit, every)), rel=1e-6)


# Maximum flows by networkx


@settings(max_examples=40)
@given(graphs(7, switches=3))
def test_all_gather_optimum_by_flows_of_networkx(topology: Topology) -> None:
    """In t every rank gets all shares at a maximum flow, in any less one does not; in whole numbers."""
    n = len(topology.gpus)
    share = M // n // 8 * 8
    told = Fraction(bounds(topology, ALL_GATHER, M, in_network=True).bandwidth_s * G / share).limit_denominator(10_000)
    graph = nx.DiGraph()
    for links, supply in ((told.numerator, told.denominator), (told.numerator * 10**6 - 1, told.denominator * 10**6)):
        graph.add_edges_from((k.src, k.dst, {"capacity": links * round(k.bandwidth / G)}) for k in topology.links)
        graph.add_edges_from(("source", gpu, {"capacity": supply}) for gpu in topology.gpus)
        full = [nx.maximum_flow_value(graph, "source", gpu) == n * supply for gpu in topology.gpus]
        assert all(full) == (supply == told.denominator)


# The table, to its digits

TABLE = [  # all-gather, all-reduce, bus bandwidth of the all-reduce
    (lambda: one_way_ring(8), "1.1429", "0.5714", "1"),
    (lambda: make("ring", {"gpus": 8, "bandwidth": G}), "2.2857", "1.1429", "2"),
    (lambda: make("torus", {"dims": (4, 4), "bandwidth": G}), "4.2667", "2.1333", "4"),
    (lambda: make("torus", {"dims": (4, 4, 4), "bandwidth": G}), "6.0952", "3.0476", "6"),
    (nvlinks_of_dgx_1v, "171.43", "85.714", "150"),
    (lambda: make("star", {"gpus": 8, "bandwidth": 450 * G}), "514.29", "257.14", "450"),
    (lambda: make("full-mesh", {"gpus": 8, "bandwidth": 64 * G}), "512", "256", "448"),
    (lambda: make("full-mesh", {"gpus": 8, "bandwidth": 48 * G}), "384", "192", "336"),
    (lambda: rails(2, 300, 25), "346.67", "173.33", "325"),
    (lambda: rails(2, 450, 50), "533.33", "266.67", "500"),
    (lambda: rails(4, 450, 50), "516.13", "258.06", "500"),
    (lambda: rails(16, 450, 50), "426.67", "213.33", "423.3"),
    (lambda: rails(32, 450, 50), "412.90", "206.45", "411.3"),
    (lambda: make("star", {"gpus": 72, "bandwidth": 900 * G}), "912.68", "456.34", "900"),
]  # fmt: skip


@pytest.mark.parametrize(("topology", "gather", "reduce", "bus"), TABLE)
def test_the_table_to_its_digits(topology: object, gather: str, reduce: str, bus: str) -> None:
    made = topology()  # type: ignore[operator]
    n, found = len(made.gpus), algbw(made, ALL_REDUCE)
    for told, value in ((gather, algbw(made, ALL_GATHER)), (reduce, found), (bus, found * 2 * (n - 1) / n)):
        assert f"{value:.{len(told.partition('.')[2])}f}" == told


def test_in_network_values_of_the_table() -> None:
    nvswitch, boxes = make("star", {"gpus": 8, "bandwidth": 450 * G}), rails(2, 300, 25)
    assert f"{algbw(nvswitch, ALL_REDUCE, in_network=True):.0f}" == "450"
    assert f"{algbw(nvswitch, ALL_REDUCE, in_network=True) / (1 + 1 / 8):.0f}" == "400"  # NVLS moves M (N + 1) / N each way
    assert f"{algbw(boxes, ALL_REDUCE, in_network=True):.0f}" == "200"


# What would raise them


def relief(told: Bounds) -> Relief:
    assert told.relief is not None
    return told.relief


def test_relief_is_what_a_wider_machine_has() -> None:
    """Two pairs joined by one cable: widened, the cables inside the pairs bind. The wider machine itself says the same."""
    cables = [("gpu0", "gpu1", 6.0), ("gpu1", "gpu2", 1.0), ("gpu2", "gpu3", 6.0)]
    line = wired("line", 4, [], cables)
    told = bounds(line, BROADCAST, M, relief=True)
    assert told.limiting == "cut around gpu0, gpu1 (1 link, 1 GB/s out)"
    assert relief(told) == Relief(pytest.approx(6.0), "ports of gpu0 (6 GB/s out)", 0)
    wider = wired("line", 4, [], [(a, b, rate * (WIDER if rate == 1 else 1)) for a, b, rate in cables])
    assert told.bandwidth_s / bounds(wider, BROADCAST, M).bandwidth_s == pytest.approx(relief(told).headroom, rel=1e-12)


def test_relief_widens_all_that_bind_as_much() -> None:
    two = make("dgx-h100", {"nodes": 2})
    told = bounds(two, BROADCAST, M, relief=True)
    assert relief(told) == Relief(pytest.approx(504 / 400, rel=1e-3), "cut around server 0 (8 pcie5 links, 504 GB/s out)", 1)
    star = bounds(make("star", {"gpus": 8, "bandwidth": G}), ALL_REDUCE, M, relief=True)
    assert relief(star).headroom == pytest.approx(WIDER)
    assert relief(bounds(slow_leg(), ALL_REDUCE, M, relief=True)) == Relief(
        pytest.approx((160 + 700) / 14 / 10), "ports of all 8 ranks together (710 GB/s in)", 1
    )  # the other direction of the leg


def test_relief_of_latency_is_what_bandwidth_allows() -> None:
    star = make("star", {"gpus": 8, "bandwidth": G, "latency": 1e-6})
    told = bounds(star, ALL_REDUCE, 1024, relief=True)
    assert relief(told).headroom == pytest.approx(told.latency_s / told.bandwidth_s)
    assert relief(told).next_limit == "ports of all 8 ranks together (8 GB/s in)"
    assert relief(bounds(star, BARRIER, 0, relief=True)) == Relief(math.inf, "")


@settings(max_examples=25)
@given(graphs(5, switches=2), st.sampled_from([ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL]))
def test_relief_never_promises_a_slower_bound_and_leaves_it_as_it_was(topology: Topology, collective) -> None:
    told = bounds(topology, collective, M, relief=True)
    assert 1 <= relief(told).headroom <= WIDER * (1 + 1e-9)
    assert relief(told).next_limit
    plain = bounds(topology, collective, M)
    assert (plain.relief, plain.limiting, plain.lower_bound_s) == (None, told.limiting, told.lower_bound_s)


def test_among_very_many_ranks_without_groups_latency_still_bounds() -> None:
    found = bounds(make("ring", {"gpus": 2000}), ALL_REDUCE, 1 << 20)
    assert found.lower_bound_s == found.latency_s > 0
    assert "latency" in found.limiting
