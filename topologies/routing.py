"""Topology x (source, destination) -> the links a message takes: one deterministic shortest path.

Fewest hops; then fewest GPUs passed through (a GPU is no switch if there is another way as short); then the smallest sum of
1/bandwidth. Ways still equal are told apart walking back from the destination, by ports (a node's ports are its outgoing links
in the order listed): a switch, PCIe switch or NIC takes the way in numbered by its port on the way out, modulo the equal
ways; a GPU takes the lowest port. The first is destination-modulo routing of fat trees: GPUs of one leaf spread over all
spines, the two GPUs of a PCIe switch over its two NICs. The second is dimension order on tori.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from topologies.errors import TopologyError, nearest, quoted
from topologies.graph import Link, Topology

_SCALE = 2.0**100
_KEPT = 256  # searches; a search over a 1,024-GPU cluster holds about 1 MB


@dataclass(slots=True)
class _Search:
    """Breadth first from one node, a layer at a time, as far as queries needed."""

    frontier: list[int]
    hops: dict[int, int]
    best: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Of a reached node: GPUs passed through, sum of 1/bandwidth in units of 2^-100 s/B."""
    parents: dict[int, list[int]] = field(default_factory=dict)


class Router:
    """Routes over one topology, searched when asked for and cached; the answer does not depend on earlier queries."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self._names: list[str] = list(topology.graph)
        self._index = {name: i for i, name in enumerate(self._names)}
        self._is_gpu = [node.kind == "gpu" for node in topology.nodes]
        # Integers add up alike in any order, so that equal ways compare equal.
        self._out: list[dict[int, int]] = [{} for _ in self._names]
        for link in topology.links:
            self._out[self._index[link.src]][self._index[link.dst]] = int(min(_SCALE / link.bandwidth, 1e300))
        # A node on one cable leads nowhere else: searches stop before it, or a star of n GPUs would cost n^2.
        ways_in = [0] * len(self._names)
        for out in self._out:
            for other in out:
                ways_in[other] += 1
        self._stub = [-1] * len(self._names)
        for node, out in enumerate(self._out):
            if len(out) == 1 == ways_in[node] and node in self._out[only := next(iter(out))]:
                self._stub[node] = only
        self._searches: dict[int, _Search] = {}

    def route(self, src: str, dst: str) -> tuple[Link, ...]:
        """The links from ``src`` to ``dst`` in order; none if they are the same. Raises TopologyError for an unknown node or no way."""
        for name in (src, dst):
            if name not in self._index:
                raise TopologyError(f"{self.topology.name}: there is no node {quoted(name)}{nearest(name, self._names)}")
        path = [self._names[node] for node in self._walk_back(self._index[src], self._index[dst])]
        return tuple(self.topology.link(a, b) for a, b in pairwise(path))

    def _walk_back(self, src: int, dst: int) -> list[int]:
        path = [dst]
        if self._stub[dst] >= 0 and dst != src:
            path.append(dst := self._stub[dst])
        search = self._search(src)
        while dst not in search.hops:
            if not search.frontier:
                names = self._names
                raise TopologyError(f"{self.topology.name}: no way from {names[src]} to {names[dst]}; add a link or a switch between them")
            self._advance(src, search)
        while path[-1] != src:
            node = path[-1]
            ways = search.parents[node]
            choice = 0
            if len(ways) > 1:
                ports = {other: port for port, other in enumerate(self._out[node])}
                ways = sorted(ways, key=lambda way: (ports.get(way, len(ports)), way))
                if len(path) > 1 and not self._is_gpu[node]:
                    choice = ports[path[-2]] % len(ways)
            path.append(ways[choice])
        return path[::-1]

    def _search(self, src: int) -> _Search:
        if src not in self._searches:
            if len(self._searches) >= _KEPT:
                del self._searches[next(iter(self._searches))]
            self._searches[src] = _Search([src], {src: 0}, {src: (0, 0)})
        return self._searches[src]

    def _advance(self, src: int, search: _Search) -> None:
        """Reach the next layer. All of it, since a later node of a layer may be the better way in."""
        hops, best, parents, reached = search.hops, search.best, search.parents, []
        for node in search.frontier:
            passed, cost = best[node]
            passed += self._is_gpu[node] and node != src
            for other, price in self._out[node].items():
                if self._stub[other] >= 0:
                    continue
                key = (passed, cost + price)
                if other not in hops:
                    hops[other] = hops[node] + 1
                    reached.append(other)
                elif hops[other] <= hops[node] or key > best[other]:
                    continue
                elif key == best[other]:
                    parents[other].append(node)
                    continue
                best[other], parents[other] = key, [node]
        search.frontier = reached
