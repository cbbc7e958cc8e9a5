"""Dragonfly (Kim et al. 2008): groups of routers, all joined within a group, and every two groups by at least one cable."""

from __future__ import annotations

from collections import Counter

from topologies.errors import TopologyError
from topologies.fabric import blocks
from topologies.graph import Link, Node, Topology, both_ways
from topologies.registry import Bandwidth, Count, Seconds, check_size, topology


@topology
def dragonfly(
    a: Count = 4, p: Count = 2, h: Count = 2, groups: Count | None = None, bandwidth: Bandwidth = 25e9, latency: Seconds = 1e-6
) -> Topology:
    """Groups of ``a`` routers with ``p`` GPUs and ``h`` global cables each; balanced if a = 2p = 2h.

    ``groups`` up to a*h + 1, the default, where every two groups share one cable; fewer share the a*h cables of a group evenly, what
    does not divide is left out. A shortest way is local, global, local. Global port k of a group leads to the k+1st group after it
    (``consecutive`` arrangement), port k belonging to router k // h.
    """
    groups = a * h + 1 if groups is None else groups
    if groups > a * h + 1:
        raise TopologyError(f"dragonfly: groups = {groups}; {a} routers with {h} global cables each reach groups = {a * h + 1} at most")
    check_size("dragonfly", "p", p, lambda n: 3 * n)
    check_size("dragonfly", "a", a, lambda n: n * (n + 3 * p))
    check_size("dragonfly", "groups", groups, lambda n: n * a * (a + 3 * p + 2 * h))
    routers = [[f"group{g}.router{r}" for r in range(a)] for g in range(groups)]
    flat = [router for group in routers for router in group]
    cables: Counter[tuple[str, str]] = Counter()
    cables.update((f"gpu{rank}", flat[rank // p]) for rank in range(p * len(flat)))
    cables.update((group[r], group[other]) for group in routers for r in range(a) for other in range(r + 1, a))
    others = groups - 1
    for turn in range(a * h // others if others else 0):
        for g in range(groups):
            for offset in range(1, groups - g):
                near, far = turn * others + offset - 1, turn * others + others - offset
                cables[routers[g][near // h], routers[g + offset][far // h]] += 1
    nodes = [Node(f"gpu{rank}", "gpu") for rank in range(p * len(flat))] + [Node(router, "switch") for router in flat]
    links = [way for (x, y), lanes in cables.items() for way in both_ways(Link(x, y, "link", lanes, bandwidth * lanes, latency))]
    ranks = len(flat) * p
    parts = {"leaves": blocks(ranks, p), "groups": blocks(ranks, p * a)}
    return Topology.build(f"dragonfly-a{a}-p{p}-h{h}-{groups}", nodes, links, parts)
