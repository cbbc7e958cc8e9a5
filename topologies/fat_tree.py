"""The k-ary fat tree: three tiers of equal switches with k ports each."""

from __future__ import annotations

from topologies.errors import TopologyError
from topologies.graph import Link, Node, Topology, both_ways
from topologies.registry import Bandwidth, Count, Seconds, check_size, topology


@topology
def fat_tree(k: Count = 4, gpus: Count | None = None, bandwidth: Bandwidth = 50e9, latency: Seconds = 1e-6) -> Topology:
    """Three-tier fat tree of k-port switches, k even, for up to k^3/4 GPUs.

    k pods of k/2 edge and k/2 aggregation switches, (k/2)^2 core switches; core j*k/2 + i joins aggregation switch j of every
    pod (Al-Fares et al. 2008). Fewer ``gpus`` fill the pods in order; all switches stay.
    """
    if k % 2:
        raise TopologyError(f"fat-tree: k = {k} is odd; half a switch's ports go down and half up: write k = {k + 1}")
    half = k // 2
    check_size("fat-tree", "k", k, lambda n: n**3 // 4 * 7 + 5 * n * n // 4)
    most = k**3 // 4
    gpus = most if gpus is None else gpus
    if gpus > most:
        fits = next(n for n in range(k + 2, 4 * gpus + 5, 2) if n**3 // 4 >= gpus)
        raise TopologyError(f"fat-tree: gpus = {gpus} do not fit k = {k}, which takes {most}; write k = {fits}")
    edges = [f"pod{pod}.edge{i}" for pod in range(k) for i in range(half)]
    aggs = [f"pod{pod}.agg{j}" for pod in range(k) for j in range(half)]
    cores = [f"core{c}" for c in range(half * half)]
    nodes = [Node(f"gpu{rank}", "gpu") for rank in range(gpus)]
    nodes += [Node(switch, "switch", reduces=True) for switch in edges + aggs + cores]
    cables = [(f"gpu{rank}", edges[rank // half]) for rank in range(gpus)]
    cables += [(f"pod{pod}.edge{i}", f"pod{pod}.agg{j}") for pod in range(k) for i in range(half) for j in range(half)]
    cables += [(f"pod{pod}.agg{j}", cores[j * half + i]) for pod in range(k) for j in range(half) for i in range(half)]
    links = [way for a, b in cables for way in both_ways(Link(a, b, "link", 1, bandwidth, latency))]
    leaves = tuple(tuple(range(first, min(first + half, gpus))) for first in range(0, gpus, half))
    pods = tuple(tuple(range(first, min(first + half * half, gpus))) for first in range(0, gpus, half * half))
    return Topology.build(f"fat-tree-k{k}-{gpus}", nodes, links, {"leaves": leaves, "pods": pods})
