"""GPUs in a row or in a circle, joined directly by cables."""

from __future__ import annotations

from topologies.graph import Link, Node, Topology
from topologies.registry import Bandwidth, Count, Seconds, check_size, topology


@topology
def ring(gpus: Count = 8, bandwidth: Bandwidth = 25e9, latency: Seconds = 1e-6) -> Topology:
    """GPUs in a circle, a full-duplex cable between neighbours; with 2 GPUs one cable."""
    return _row("ring", gpus, bandwidth, latency, closed=gpus > 2)


@topology
def line(gpus: Count = 8, bandwidth: Bandwidth = 25e9, latency: Seconds = 1e-6) -> Topology:
    """GPUs in a row, a full-duplex cable between neighbours."""
    return _row("line", gpus, bandwidth, latency, closed=False)


def _row(name: str, gpus: int, bandwidth: float, latency: float, closed: bool) -> Topology:
    check_size(name, "gpus", gpus, lambda n: 3 * n)
    nodes = [Node(f"gpu{r}", "gpu") for r in range(gpus)]
    links = [
        Link(f"gpu{r}", f"gpu{other % gpus}", "link", 1, bandwidth, latency)
        for r in range(gpus)
        for other in (r + 1, r - 1)
        if closed or 0 <= other < gpus
    ]
    return Topology.build(f"{name}-{gpus}", nodes, links, dims=(gpus,) if closed else ())
