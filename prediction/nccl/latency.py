"""The latency of an algorithm and a protocol in NCCL's cost model."""

from __future__ import annotations

from prediction.nccl.bandwidth import GATHERING, steps
from prediction.nccl.constants import OLD, US, Constants, Wire
from prediction.nccl.graphs import Graph, Graphs
from prediction.nccl.settings import Settings
from prediction.nccl.version import PROTOCOLS, Algorithm, Protocol

_NONE = (0.0, 0.0, 0.0)


def latency(
    graphs: Graphs, graph: Graph, k: Constants, settings: Settings, collective: str, algorithm: Algorithm, protocol: Protocol
) -> float:
    """Seconds of a call without bytes."""
    row, nodes, version = PROTOCOLS.index(protocol), graphs.nodes, graphs.version
    near: Wire = "nvlink" if graph.type_intra == "NVL" else "pci"

    def hop(wire: Wire, of: Algorithm) -> float:
        if wire == "pci" and of == "tree" and protocol == "simple" and graphs.cpu == "power":
            of = "ring"
        return k.hop.get((wire, of), _NONE)[row]

    intra, inter = hop(near, algorithm), _between(graphs, graph, hop("net", algorithm), hop("net", "tree"), protocol)
    if version < OLD and nodes > 1 and protocol == "ll":
        intra *= 1.8
    base, others, levels = k.base[algorithm][row], graphs.ranks // nodes - 1, nodes.bit_length() - 1
    if algorithm == "ring":
        if collective not in (*GATHERING, "all-reduce"):
            wire: Wire = near if nodes == 1 else "net"
            if graph.same_channels:
                return base + hop(wire, "ring")
            return base + steps(collective, graphs.ranks) * hop(wire, "tree" if protocol == "simple" else "ring")
        crossings = _crossings(graphs, collective)
        return base + (steps(collective, graphs.ranks) - crossings) * max(intra, _overhead(graphs, settings, protocol)) + crossings * inter
    if algorithm == "tree":
        return base + 2 * (others * intra + levels * inter)
    if algorithm == "collnet-direct":
        serial = (0.4 if version >= OLD else 0.5) * US  # a head's peers, one after the other
        return base + 2 * (min(1, others) * intra + others * serial) + inter
    if algorithm == "collnet-chain":
        return base + 2 * others * intra + (inter if version >= OLD else 0.0)
    if algorithm == "nvls":
        return base + intra + (inter if nodes > 1 else 0.0)
    if algorithm == "nvls-tree":
        return base + intra + 2 * levels * inter
    return base + levels * inter / 3.5 + 2.8 * US * graphs.ranks


def _between(graphs: Graphs, graph: Graph, own: float, tree: float, protocol: Protocol) -> float:
    """A hop between nodes; with Simple the flush asks the NIC once more."""
    extra = graph.latency_inter if protocol == "simple" and graphs.version >= OLD else 0.0
    if graphs.version < (2, 23):  # the NIC's own latency stood for the whole hop
        return (graph.latency_inter or own) + extra
    return (tree if graphs.ranks == graphs.nodes else own) + graph.latency_inter + extra


def _crossings(graphs: Graphs, collective: str) -> int:
    """Steps of a ring that leave a node."""
    if graphs.nodes == 1:
        return 0
    if collective in GATHERING:
        return graphs.nodes - 1
    return 2 * graphs.nodes if graphs.version < (2, 23) else 2 * (graphs.nodes - 1)


def _overhead(graphs: Graphs, settings: Settings, protocol: Protocol) -> float:
    """What the proxy on the host needs for a message [s]: a ring on several nodes is no faster."""
    if graphs.nodes == 1 or graphs.version < OLD:
        return 0.0
    one = 2 * US if graphs.cpu == "amd" else US
    if settings.net_overhead_ns is not None:
        one = settings.net_overhead_ns * 1e-9
    return one * (3 if protocol == "simple" else 1)
