"""Every GPU one cable from the others: through a switch, or directly."""

from __future__ import annotations

from topologies.graph import Link, Node, Topology, both_ways
from topologies.registry import Bandwidth, Count, Flag, Seconds, check_size, topology


@topology
def star(gpus: Count = 8, bandwidth: Bandwidth = 25e9, latency: Seconds = 1e-6, reduces: Flag = True) -> Topology:
    """GPUs around one non-blocking switch, which can reduce; a message takes two hops."""
    check_size("star", "gpus", gpus, lambda n: 3 * n)
    nodes = [*(Node(f"gpu{r}", "gpu") for r in range(gpus)), Node("switch", "switch", reduces=reduces)]
    links = [way for r in range(gpus) for way in both_ways(Link(f"gpu{r}", "switch", "link", 1, bandwidth, latency))]
    return Topology.build(f"star-{gpus}", nodes, links, {"leaves": (tuple(range(gpus)),)})


@topology
def full_mesh(gpus: Count = 8, bandwidth: Bandwidth = 25e9, latency: Seconds = 1e-6) -> Topology:
    """A full-duplex cable between every two GPUs."""
    check_size("full-mesh", "gpus", gpus, lambda n: n * n)
    nodes = [Node(f"gpu{r}", "gpu") for r in range(gpus)]
    links = [Link(f"gpu{a}", f"gpu{b}", "link", 1, bandwidth, latency) for a in range(gpus) for b in range(gpus) if a != b]
    return Topology.build(f"full-mesh-{gpus}", nodes, links)
