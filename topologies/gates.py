"""Where servers meet the network: the switches ("gates") by which a node's server is left and entered, and which of them a way takes.

A server here is what hangs together without switches. If no shortest way between two nodes passes through a server on its way from
switch to switch, each is one of: out of the server by a gate, over switches, by a gate into the server. Servers with the same gates
at the same costs need looking at only once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from topologies.errors import TopologyError
from topologies.ways import Cost, Graph, Search, Ways


@dataclass(frozen=True, slots=True)
class Joints:
    """Gates that the shortest ways take: those into the destination's server, and for each those out of the source's."""

    inward: tuple[int, ...] = ()
    outward: Mapping[int, tuple[int, ...]] = field(default_factory=dict)


NONE = Joints()
_KEPT = 4096  # ways between two switches


class Gates:
    """Gates of one graph, found when asked for and kept."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self._part = _parts(graph)
        self._transit, self._beside = _transit(graph, self._part)
        self._class: tuple[dict[int, int], dict[int, int]] = ({}, {})  # outward, inward
        self._number: dict[tuple[tuple[int, Cost], ...], int] = {}
        self._costs: list[tuple[tuple[int, Cost], ...]] = []
        self._joints: dict[tuple[int, int], Joints] = {}
        self._across: dict[tuple[tuple[int, ...], int], Ways] = {}
        self._cost: dict[tuple[int, int], tuple[float, int, int]] = {}

    def joints(self, src: int, dst: int) -> Joints:
        """``NONE`` where the parts would not tell all: inside a server, or where ways may pass through one or meet at a gate."""
        if self._part[src] == self._part[dst] and not (self.graph.is_switch[src] and self.graph.is_switch[dst]):
            return NONE
        key = self._class_of(src, False), self._class_of(dst, True)
        found = self._joints.get(key)
        if found is None:
            found = self._joints[key] = self._join(self._costs[key[0]], self._costs[key[1]])
        return found

    def outward(self, src: int, gate: int) -> Ways:
        """All shortest ways from a node to a gate of its server."""
        return self.graph.sorted(self.graph.traced(self._search(src, False), [gate], forward=False))

    def inward(self, dst: int, gates: Sequence[int]) -> Ways:
        """All shortest ways to a node from gates of its server."""
        return self.graph.sorted(self.graph.traced(self._search(dst, True), gates, forward=True))

    def across(self, first: tuple[int, ...], last: int) -> Ways:
        """All shortest ways over switches to one of them from those of its ``outward``."""
        found = self._across.get((first, last))
        if found is None:
            if len(self._across) >= _KEPT:
                del self._across[next(iter(self._across))]
            parts = [self.graph.between(gate, last, "switches")[1] for gate in first]
            edges = dict.fromkeys((a, b) for part in parts for a, others in part.after.items() for b in others)
            found = self._across[first, last] = parts[0] if len(parts) == 1 else self.graph.sorted(edges)
        return found

    def _search(self, node: int, backward: bool) -> Search:
        search = self.graph.search(node, backward, "server")
        while search.frontier and not self.graph.is_switch[node]:
            self.graph.advance(search, node, backward, "server")
        return search

    def _class_of(self, node: int, backward: bool) -> int:
        known = self._class[backward]
        number = known.get(node)
        if number is None:
            costs = self._search(node, backward).cost
            gates = tuple(sorted((cost, gate) for gate, cost in costs.items() if self.graph.is_switch[gate]))
            row = tuple((gate, cost) for cost, gate in gates)
            number = known[node] = self._number.setdefault(row, len(self._costs))
            if number == len(self._costs):
                self._costs.append(row)
        return number

    def _join(self, exits: Sequence[tuple[int, Cost]], entries: Sequence[tuple[int, Cost]]) -> Joints:
        best: tuple[float, ...] = (math.inf,)
        found: list[tuple[int, int]] = []
        for g, (h0, passed0, price0) in exits:
            for h, (h1, passed1, price1) in entries:
                if h0 + h1 + (g != h) > best[0] or self._part[g] != self._part[h]:
                    continue
                if (g, h) not in self._cost:
                    self._cost[g, h] = self._between(g, h)
                hops, passed, price = self._cost[g, h]
                cost = (h0 + hops + h1, passed0 + passed + passed1, price0 + price + price1)
                if cost < best:
                    best, found = cost, []
                if cost == best and hops < math.inf:
                    found.append((g, h))
        if not found or self._through_servers(exits, entries) <= best[0]:
            return NONE
        gates: dict[int, tuple[int, ...]] = {}
        for g, h in found:
            gates[h] = (*gates.get(h, ()), g)
        # A gate on the way from another would have ways in of both kinds.
        if any(len(firsts) > 1 and any(g in self.across(firsts, h).before for g in firsts) for h, firsts in gates.items()):
            return NONE
        return Joints(tuple(gates), gates)

    def _between(self, first: int, last: int) -> tuple[float, int, int]:
        try:
            return self.graph.between(first, last, "switches")[0]
        except TopologyError:  # cables that lead one way only
            return (math.inf, 0, 0)

    def _through_servers(self, exits: Sequence[tuple[int, Cost]], entries: Sequence[tuple[int, Cost]]) -> float:
        """A bound below the hops of a way that passes through a server between two switches."""
        between = ((out[0] + into[0], g, h) for g, out in exits for h, into in entries if g != h)
        return min((hops + self._transit + (h not in self._beside.get(g, ())) for hops, g, h in between), default=math.inf)


def _parts(graph: Graph) -> list[int]:
    """Number of the connected part of every node, where links between a switch and another kind of node are cut."""
    part = [-1] * len(graph.names)
    for first in range(len(part)):
        if part[first] < 0:
            part[first], frontier = first, [first]
            while frontier:
                node = frontier.pop()
                for other in (*graph.out[node], *graph.into[node]):
                    if part[other] < 0 and graph.is_switch[other] == graph.is_switch[node]:
                        part[other] = first
                        frontier.append(other)
    return part


def _transit(graph: Graph, part: Sequence[int]) -> tuple[float, dict[int, set[int]]]:
    """A bound below the hops from one switch through a server to another (infinite where every server hangs on one), and for every
    switch those that share a server with it."""
    gates: dict[int, set[int]] = {}
    border: dict[int, set[int]] = {}
    for node in range(len(part)):
        switches = {other for other in (*graph.out[node], *graph.into[node]) if graph.is_switch[other]}
        if switches and not graph.is_switch[node]:
            border[node] = switches
            gates.setdefault(part[node], set()).update(switches)
    least = math.inf
    for node, switches in border.items():
        if len(gates[part[node]]) > 1:
            touching = any(other in border for other in (*graph.out[node], *graph.into[node]))
            least = min(least, 2 if len(switches) > 1 else 3 if touching else 4)
    beside: dict[int, set[int]] = {}
    for together in {frozenset(some) for some in gates.values()}:
        for gate in together:
            beside.setdefault(gate, set()).update(together)
    return least, beside
