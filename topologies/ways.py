"""Topology x (source, destination) -> all equal-cost shortest ways, as a graph of next hops.

Equal cost: fewest hops; then fewest GPUs passed through (a GPU is no switch if there is another way as short); then the smallest
sum of 1/bandwidth. Two searches, from the source and back from the destination, meet half-way; both are kept for the next pair.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from topologies.errors import TopologyError
from topologies.graph import Topology

_SCALE = 2.0**100
_KEPT = 1024  # searches a direction; one to the middle of a 1,024-GPU cluster holds some 10 kB

Cost = tuple[int, int, int]
"""Hops, GPUs passed through, sum of 1/bandwidth in units of 2^-100 s/B (integers add up alike in any order)."""
Room = Literal["all", "switches", "server"]
"""What a search passes through: everything, switches alone, or everything but switches (it ends at those)."""


@dataclass(frozen=True, slots=True)
class Ways:
    """Of every node that is passed, the next ones and the ones before, by the ports of the node: its outgoing links in order."""

    after: dict[int, list[int]]
    before: dict[int, list[int]]


@dataclass(slots=True)
class Search:
    """Breadth first from or to one node, a layer at a time, as far as queries needed."""

    frontier: list[int]
    cost: dict[int, Cost]
    nearer: dict[int, list[int]] = field(default_factory=dict)
    """Of a reached node: its neighbours one hop nearer the root, on ways of its cost."""


class Graph:
    """A topology as numbers (nodes in order), with the searches made so far."""

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.names: list[str] = list(topology.graph)
        self.index = {name: i for i, name in enumerate(self.names)}
        nodes = topology.nodes
        self.is_gpu = [node.kind == "gpu" for node in nodes]
        self.is_switch = [node.kind == "switch" for node in nodes]
        self.out: list[dict[int, int]] = [{} for _ in nodes]
        self.into: list[dict[int, int]] = [{} for _ in nodes]
        for link in topology.links:
            a, b = self.index[link.src], self.index[link.dst]
            self.out[a][b] = self.into[b][a] = int(min(_SCALE / link.bandwidth, 1e300))
        # A node on one cable leads nowhere else: searches stop before it, or a star of n GPUs would cost n^2.
        self.stub = [len(out) == 1 == len(into) and out.keys() == into.keys() for out, into in zip(self.out, self.into, strict=True)]
        self._ports: dict[int, dict[int, int]] = {}
        self._searches: dict[tuple[bool, Room], dict[int, Search]] = {}

    def ports(self, node: int) -> dict[int, int]:
        """Neighbour -> port of ``node``."""
        if node not in self._ports:
            self._ports[node] = {other: port for port, other in enumerate(self.out[node])}
        return self._ports[node]

    def between(self, src: int, dst: int, room: Room = "all") -> tuple[Cost, Ways]:
        """The cost and all ways of that cost; TopologyError where there is no way. ``room`` may be switches alone, for two of them."""
        if src == dst:
            return (0, 0, 0), Ways({}, {})
        if dst in self.out[src]:
            return (1, 0, self.out[src][dst]), Ways({src: [dst]}, {dst: [src]})
        if shared := [node for node in self.out[src].keys() & self.into[dst].keys() if room == "all" or self.is_switch[node]]:
            return self._over(src, dst, shared)
        ahead, back = self.search(src, False, room), self.search(dst, True, room)
        while ahead.cost.keys().isdisjoint(back.cost):
            growing = [(len(search.frontier), search is back) for search in (ahead, back) if search.frontier]
            if not growing:
                names = self.names
                raise TopologyError(f"{self.topology.name}: no way from {names[src]} to {names[dst]}; add a link or a switch between them")
            self.advance(*((back, dst, True, room) if min(growing)[1] else (ahead, src, False, room)))
        costs = {}
        for node in ahead.cost.keys() & back.cost.keys():
            (h, passed, price), (i, more, also) = ahead.cost[node], back.cost[node]
            costs[node] = (h + i, passed + more + (self.is_gpu[node] and node not in (src, dst)), price + also)
        nearest = min(costs.values())[0]
        # Every shortest way passes one node at this many hops from the source.
        cut = max(ahead.cost[node][0] for node, cost in costs.items() if cost[0] == nearest)
        crossing = {node: cost for node, cost in costs.items() if cost[0] == nearest and ahead.cost[node][0] == cut}
        best = min(crossing.values())
        middle = [node for node, cost in crossing.items() if cost == best]
        return best, self.sorted([*self.traced(ahead, middle, forward=False), *self.traced(back, middle, forward=True)])

    def _over(self, src: int, dst: int, shared: Sequence[int]) -> tuple[Cost, Ways]:
        """The ways of two hops, over some of the neighbours that two nodes share."""
        if len(shared) == 1:
            (node,) = shared
            cost = (2, int(self.is_gpu[node]), self.out[src][node] + self.out[node][dst])
            return cost, Ways({src: [node], node: [dst]}, {dst: [node], node: [src]})
        costs = {node: (2, int(self.is_gpu[node]), self.out[src][node] + self.out[node][dst]) for node in shared}
        best = min(costs.values())
        middle = [node for node, cost in costs.items() if cost == best]
        return best, self.sorted([*((src, node) for node in middle), *((node, dst) for node in middle)])

    def search(self, root: int, backward: bool, room: Room) -> Search:
        """The search from or (``backward``) to a node, as far as it went until now."""
        kept = self._searches.setdefault((backward, room), {})
        if root not in kept:
            if len(kept) >= _KEPT:
                del kept[next(iter(kept))]
            kept[root] = Search([root], {root: (0, 0, 0)})
        return kept[root]

    def advance(self, search: Search, root: int, backward: bool, room: Room) -> None:
        """Reach the next layer. All of it, since a later node of a layer may be the better way in."""
        edges = self.into if backward else self.out
        cost, nearer, reached = search.cost, search.nearer, []
        for node in search.frontier:
            hops, passed, price = cost[node]
            if node != root:
                if room == "server" and self.is_switch[node]:
                    continue
                passed += self.is_gpu[node]
            for other, more in edges[node].items():
                if self.stub[other] or (room == "switches" and not self.is_switch[other]):
                    continue
                here = (hops + 1, passed, price + more)
                if other not in cost:
                    reached.append(other)
                elif here > cost[other]:
                    continue
                elif here == cost[other]:
                    nearer[other].append(node)
                    continue
                cost[other], nearer[other] = here, [node]
        search.frontier = reached

    def traced(self, search: Search, ends: Iterable[int], *, forward: bool) -> list[tuple[int, int]]:
        """The links of all ways between ``ends`` and the root of a search; ``forward``: they lead to the root."""
        edges: list[tuple[int, int]] = []
        layer = dict.fromkeys(ends)
        while layer:
            found: dict[int, None] = {}
            for node in layer:
                for other in search.nearer.get(node, ()):
                    edges.append((node, other) if forward else (other, node))
                    found[other] = None
            layer = found
        return edges

    def sorted(self, edges: Iterable[tuple[int, int]]) -> Ways:
        """Links as ways, in the order of ports; a neighbour without a port (a one-way cable) comes last, in the order of nodes."""
        after: dict[int, list[int]] = {}
        before: dict[int, list[int]] = {}
        for a, b in edges:
            after.setdefault(a, []).append(b)
            before.setdefault(b, []).append(a)
        for ways in (after, before):
            for node, others in ways.items():
                if len(others) > 1:
                    ports = self.ports(node)
                    others.sort(key=lambda other: (ports.get(other, len(ports)), other))
        return Ways(after, before)
