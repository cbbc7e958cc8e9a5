"""Which of the equal-cost shortest ways a flow takes: one, one by its hash, all of them, or the one that keeps to the rails.

Equal cost is what ``ways.py`` says. Ways of a flow's own, told by node, go over every policy.

- ``shortest``: the one way of ``routing.py``.
- ``ecmp``: at every node with several next hops the flow's hash picks one; the flow is (source, destination, channel), and each node
  hashes anew, so that choices at two tiers are independent.
- ``adaptive``: at every node what has come in so far goes evenly to all next hops: the fluid limit of per-packet spraying.
- ``rail``: the way of ``rail_ways.py``, which keeps to the rail of the destination.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import Literal, get_args

from topologies.errors import TopologyError, nearest, quoted
from topologies.graph import Link, Topology
from topologies.rail_ways import RailWays
from topologies.routing import Router
from topologies.ways import Ways

Policy = Literal["shortest", "ecmp", "adaptive", "rail"]
POLICIES: tuple[Policy, ...] = get_args(Policy)
Overrides = Mapping[tuple[str, str], tuple[str, ...]]
"""(source, destination) -> all nodes of the way, both ends included."""
Flow = tuple[tuple[Link, ...], tuple[float, ...], float]
"""Links, the fraction of the flow on each (empty: all of it on every one), the latency of the longest way [s]."""

_MASK = 2**64 - 1


class Paths:
    """Flows over one topology under a policy; no answer depends on earlier queries."""

    def __init__(self, topology: Topology, policy: Policy = "shortest", seed: int = 0, overrides: Overrides | None = None) -> None:
        """Raises TopologyError for an override that is no way from its source to its destination."""
        self.topology, self.policy, self.seed = topology, policy, seed
        self.router = Router(topology)
        self._overrides = {ends: _told(topology, ends, nodes) for ends, nodes in (overrides or {}).items()}
        self._rails = RailWays(self.router) if policy == "rail" else None

    def flow(self, src: str, dst: str, channel: int = 0) -> Flow:
        """What a flow from ``src`` to ``dst`` uses. Raises TopologyError for an unknown node or no way."""
        links = self._overrides.get((src, dst)) if self._overrides else None
        if links is None:
            a, b = self.router.node(src), self.router.node(dst)
            if self.policy == "adaptive":
                return self._spread(a, self.router.graph.between(a, b)[1])
            if self.policy == "ecmp":
                path = self._hashed(a, b, channel)
            else:
                path = self._rails.path(a, b) if self._rails else self.router.path(a, b)
            links = self.router.links(path)
        return links, (), sum([link.latency for link in links])

    def _hashed(self, src: int, dst: int, channel: int) -> list[int]:
        after = self.router.graph.between(src, dst)[1].after
        flow, path = mix(self.seed), [src]  # mixed, or seed 1 and source 2 would be seed 2 and source 1
        for part in (src, dst, channel):
            flow = mix(flow ^ part)
        while others := after.get(path[-1]):
            path.append(others[mix(flow ^ path[-1]) * len(others) >> 64] if len(others) > 1 else others[0])
        return path

    def _spread(self, src: int, ways: Ways) -> Flow:
        """A layer at a time, in whole numbers of a common unit: ways that meet again add up to exactly what had parted."""
        links: list[Link] = []
        fractions: list[float] = []
        layer, unit, latency = {src: 1}, 1, {src: 0.0}
        while any(node in ways.after for node in layer):
            finer = math.lcm(*(len(ways.after[node]) for node in layer))
            unit *= finer
            below: dict[int, int] = {}
            for node, share in layer.items():
                part = share * finer // len(ways.after[node])
                for other in ways.after[node]:
                    links.append(link := self.router.hops[node][other])
                    fractions.append(part / unit)
                    below[other] = below.get(other, 0) + part
                    latency[other] = max(latency.get(other, 0.0), latency[node] + link.latency)
            layer = below
        return tuple(links), tuple(fractions), latency[next(iter(layer))]


def mix(x: int) -> int:
    """SplitMix64 (Steele, Lea and Flood 2014): 64 bits in, 64 bits out that look independent of them."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ x >> 30) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ x >> 27) * 0x94D049BB133111EB) & _MASK
    return x ^ x >> 31


def _told(topology: Topology, ends: tuple[str, str], nodes: tuple[str, ...]) -> tuple[Link, ...]:
    """The links of a way that the user gave; TopologyError where it is none."""
    src, dst = ends
    where = f"{topology.name}: override {src} -> {dst}"
    for name in (*ends, *nodes):
        if name not in topology.graph:
            raise TopologyError(f"{where}: there is no node {quoted(name)}{nearest(name, topology.graph)}")
    if not nodes or nodes[0] != src or nodes[-1] != dst:
        shown = f"from {nodes[0]} to {nodes[-1]}" if nodes else "nowhere"
        raise TopologyError(f"{where}: the way leads {shown}; write all its nodes, the first {src} and the last {dst}")
    if len(set(nodes)) < len(nodes):
        twice = next(name for i, name in enumerate(nodes) if name in nodes[:i])
        raise TopologyError(f"{where}: the way passes {twice} twice; a way passes a node once")
    for a, b in pairwise(nodes):
        if not topology.graph.has_edge(a, b):
            raise TopologyError(f"{where}: there is no link {a} -> {b}{nearest(b, topology.graph.successors(a))}")
    return tuple(topology.link(a, b) for a, b in pairwise(nodes))
