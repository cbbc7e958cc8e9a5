"""The bandwidth of an algorithm and a protocol in NCCL's cost model: bytes of the call over the seconds that are not latency."""

from __future__ import annotations

from prediction.nccl.constants import GB, OLD, Constants, architecture
from prediction.nccl.graphs import Graph, Graphs
from prediction.nccl.version import Algorithm, Protocol

GATHERING = ("all-gather", "reduce-scatter")
_OLD_TOTAL = {"ampere": 235 * GB, "hopper": 370 * GB}
"""Until 2.17 a search result counted no more than this in all."""


def steps(collective: str, ranks: int) -> int:
    """Steps of a ring, as the model counts them; a broadcast or a reduction has one too many, which NCCL has as well."""
    if collective == "all-reduce":
        return 2 * (ranks - 1)
    return ranks - 1 if collective in GATHERING else ranks


def bandwidth(graphs: Graphs, graph: Graph, k: Constants, collective: str, algorithm: Algorithm, protocol: Protocol) -> float:
    """Algorithm bandwidth [B/s]; 0: the model leaves the row out."""
    bus = graph.channels * _of_channel(graphs, graph, k, collective, algorithm)
    if graphs.version < OLD:
        bus = min(bus, _OLD_TOTAL.get(architecture(graphs.version, graphs.sm_min), bus))
    if algorithm == "ring":
        bus = _ring(graphs, graph, k, collective, protocol, bus)
    elif algorithm == "tree":
        bus = _tree(graphs, graph, k, protocol, bus)
    elif algorithm == "pat":
        bus *= 0.75 if graphs.version >= (2, 24) else 0.85
    elif algorithm == "collnet-direct":
        bus = _collnet_direct(graphs, graph, collective, bus)
    elif algorithm == "collnet-chain" and graphs.version < OLD:
        bus *= 0.75
    return bus * _ratio(graphs, collective, algorithm)


def _of_channel(graphs: Graphs, graph: Graph, k: Constants, collective: str, algorithm: Algorithm) -> float:
    """Bandwidth of a channel [B/s] before any correction."""
    near = graphs.nodes <= 2 or algorithm.startswith("collnet")
    if graphs.version < OLD or not algorithm.startswith("nvls"):
        return graph.bw_intra if near else graph.bw_inter
    ppn, between = graphs.local_ranks, graph.bw_inter
    if not k.nvls_efficiency:
        if algorithm == "nvls-tree":
            return min(graph.bw_intra, between if graphs.nodes <= 2 else between / 2)
        if collective in GATHERING and graphs.version >= (2, 23):
            return min(graph.bw_intra * (ppn - 1) / ppn, 0.9 * between)
        return min(graph.bw_intra, between)
    if graph.channels < 2:
        return 0.0
    inside = graph.bw_intra * k.nvls_efficiency * (graph.channels - 1) / graph.channels
    inside *= (ppn - 1) / ppn if collective in GATHERING else 2
    if algorithm == "nvls":
        return min(inside, between)
    return min(inside, between * (2 if graphs.nodes <= 2 else 1), k.nvls_tree)


def _ring(graphs: Graphs, graph: Graph, k: Constants, collective: str, protocol: Protocol, bus: float) -> float:
    if protocol == "ll":
        part = 0.5
        if graphs.version < OLD:
            part = 1 / 4 if graphs.nodes > 1 or collective in ("all-reduce", "reduce") else 1 / 3
        return min(k.ll_total, part * bus)
    if protocol == "ll128":
        part = 0.7 if graphs.local_ranks < 2 and graphs.version < (2, 23) else 0.92
        return min(part * bus, graph.channels * k.ring_ll128)
    return bus


def _tree(graphs: Graphs, graph: Graph, k: Constants, protocol: Protocol, bus: float) -> float:
    bus = min(0.92 * bus, graph.channels * k.tree)
    if protocol == "ll":
        bus = min(bus / 3.8, k.ll_total)
    elif protocol == "ll128":
        bus = min(bus * (7 / 9 if graphs.nodes == 1 else 120 / 128), graph.channels * k.tree_ll128)
    return bus * 0.85 if graph.pattern == "tree" and graphs.version >= OLD else bus


def _collnet_direct(graphs: Graphs, graph: Graph, collective: str, bus: float) -> float:
    ppn = graphs.local_ranks
    if collective not in GATHERING:
        factor = ppn / graph.channels
        return bus / (factor - (factor - 1) / 2) * (0.85 if graphs.sm_min >= 90 and graphs.version >= OLD else 1.0)
    if graphs.version >= (2, 23):
        return ppn * min(graph.bw_intra, 0.9 * graph.bw_inter)
    weight = (ppn - 1) / 7
    return ppn * graph.bw_intra * (0.85 * weight + 0.95 * (1 - weight))


def _ratio(graphs: Graphs, collective: str, algorithm: Algorithm) -> float:
    """From bus bandwidth to algorithm bandwidth."""
    if algorithm == "ring":
        return graphs.ranks / steps(collective, graphs.ranks)
    if collective in GATHERING and (graphs.version >= (2, 23) or algorithm == "collnet-direct"):
        return 1.0
    if algorithm.startswith("nvls"):
        if graphs.version < OLD:
            return 0.75
        return 5 / 6 if graphs.version < (2, 28) else graphs.ranks / steps(collective, graphs.ranks)
    return 0.5
