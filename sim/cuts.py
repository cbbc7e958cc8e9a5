"""The topology as a network with integer capacities: least and densest cuts between ranks, by maximum flow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from topologies.graph import Topology

Array = NDArray[Any]

MOST = 2**28  # of a flow: scipy's takes 32-bit integers, and adds opposite capacities (up to 2 MOST each) to one residual
UP = 1 + 1e-12  # capacities that do not fit are scaled down and rounded up: no cut may look smaller than it is


@dataclass(frozen=True, slots=True)
class Cut:
    """One direction: ``ranks`` inside, ``arcs`` that leave (``way``: or enter), their ``capacity`` [units] and ``rate`` [B/s]."""

    ranks: list[int]
    arcs: list[int]
    way: str
    capacity: int
    rate: float


@dataclass(frozen=True, slots=True)
class Network:
    """Arcs: the links, then the ports of ranks with a limit of their own; such a rank is a vertex beside its node.
    ``cores``: vertex of each rank, ``nodes``: of its node; ``servers``: that each node is in, -1 if none; ``units``: capacities as
    integers, ``rates`` [B/s]."""

    size: int
    tail: Array
    head: Array
    rates: Array
    units: Array
    cores: Array
    nodes: Array
    servers: Array
    way: str = "out"

    @staticmethod
    def of(topology: Topology, chosen: Sequence[int]) -> Network:
        index = {name: i for i, name in enumerate(topology.graph)}
        arcs = [(index[link.src], index[link.dst], link.bandwidth) for link in topology.links]
        nodes = [topology.node(topology.gpus[gpu]) for gpu in chosen]
        size, cores, no_limit = len(index), [index[node.name] for node in nodes], sum(rate for *_, rate in arcs)
        for rank, node in enumerate(nodes):
            if min(node.injection, node.ejection) < math.inf:
                arcs += [(size, cores[rank], min(node.injection, no_limit)), (cores[rank], size, min(node.ejection, no_limit))]
                cores[rank], size = size, size + 1
        tail, head, rates = (np.asarray(column) for column in zip(*arcs, strict=True))
        exact = {rate: Fraction(rate) for rate in {rate for *_, rate in arcs}}
        unit = Fraction(math.gcd(*(f.numerator for f in exact.values())), math.lcm(*(f.denominator for f in exact.values())))
        unit = max(unit, max(exact.values()) / MOST)
        rounded = {rate: math.ceil(precise / unit) for rate, precise in exact.items()}
        units = np.asarray([rounded[rate] for *_, rate in arcs])
        servers = np.asarray([-1 if node.server is None else node.server for node in topology.nodes])
        return Network(size, tail, head, rates, units, np.asarray(cores), np.asarray([index[node.name] for node in nodes]), servers)

    def least_cut(self, sources: Sequence[int], sinks: Sequence[int] | Array) -> Cut:
        """Minimum cut between two sets of ranks."""
        outgoing, incoming = np.isin(self.tail, self.cores[list(sources)]), np.isin(self.head, self.cores[list(sinks)])
        enough = min(int(self.units[outgoing].sum()), int(self.units[incoming].sum()))
        room = min(enough, MOST)
        if room == enough and len(sources) == 1 and self._all_pass(int(self.cores[sources[0]]), sinks):
            return self._cut(np.arange(self.size) == self.cores[sources[0]])
        caps = self.units if room == enough else np.ceil(self.units * (room / enough) * UP)
        return self._cut(self._flow(np.minimum(caps, 2 * room), sources, sinks, 2 * room)[1])

    def _all_pass(self, source: int, sinks: Sequence[int] | Array) -> bool:
        """Whether paths of at most two arcs to the sinks carry all that can leave ``source``: its own arcs are then the least cut."""
        sink = np.zeros(self.size, dtype=np.bool_)
        sink[self.cores[list(sinks)]] = True
        out, last = self.tail == source, sink[self.head]
        room = np.bincount(self.tail[last], weights=self.units[last], minlength=self.size)
        through = self.head[out]
        return bool((sink[through] | (self.units[out] <= room[through])).all())

    def near_cuts(self, groups: Sequence[Sequence[int]], wanted: Iterable[int]) -> Iterator[Cut]:
        """A cut close around each ``wanted`` of disjoint groups, not always the least: around its ranks, what else is in servers of
        its ranks alone, and the vertices into which it has as much capacity as they have to others, or more."""
        group_of: Array = np.full(self.size, -1)
        for number, group in enumerate(groups):
            group_of[self.cores[list(group)]] = number
        _, server = np.unique(self.servers, return_inverse=True)
        least, most = np.full(self.size, len(groups)), np.full(self.size, -1)  # group of any rank in a server
        np.minimum.at(least, server[self.nodes], group_of[self.cores])
        np.maximum.at(most, server[self.nodes], group_of[self.cores])
        inside = np.flatnonzero((self.servers >= 0) & (group_of[: len(server)] < 0) & (least == most)[server])
        group_of[inside] = least[server[inside]]
        leaving = np.bincount(self.tail, weights=self.units, minlength=self.size)
        while True:
            there, here = group_of[self.head], group_of[self.tail]
            into, back = (here >= 0) & (there < 0), (there >= 0) & (here < 0)
            keys, at = np.unique(self.head[into] * len(groups) + here[into], return_inverse=True)
            gained = np.bincount(at, weights=self.units[into], minlength=len(keys))
            returned = self.tail[back] * len(groups) + there[back]
            known = np.isin(returned, keys)
            own = np.bincount(np.searchsorted(keys, returned[known]), weights=self.units[back][known], minlength=len(keys))
            vertex, of = np.divmod(keys, len(groups))
            better = gained >= leaving[vertex] - own
            if not better.any():
                break
            group_of[vertex[better]] = of[better]
        arcs = np.flatnonzero((here >= 0) & (here != there))
        arcs = arcs[np.argsort(here[arcs], kind="stable")]
        first = np.searchsorted(here[arcs], np.arange(len(groups) + 1))
        for one in wanted:
            part = arcs[first[one] : first[one + 1]]
            yield Cut(sorted(groups[one]), part.tolist(), self.way, int(self.units[part].sum()), math.fsum(self.rates[part]))

    def densest_cut(self, sinks: Sequence[int]) -> Cut:
        """The cut with most ranks inside per capacity of those that leave a rank of ``sinks`` outside, by Dinkelbach's method: it
        is found when, at capacities in that proportion, each sink can take one unit from every rank."""
        n, ports = len(self.cores), [self._cut(np.arange(self.size) != self.cores[sink]) for sink in sinks]
        best = max(ports, key=lambda cut: Fraction(len(cut.ranks), cut.capacity))
        for sink in sinks:
            while True:
                supply, k = min(best.capacity, MOST // n), len(best.ranks)
                caps = self.units * k if supply == best.capacity else np.ceil(self.units * (k * supply / best.capacity) * UP)
                arrived, inside = self._flow(np.minimum(caps, n * supply), range(n), [sink], supply)
                if arrived == n * supply:
                    break
                best = self._cut(inside)
        return best

    def _flow(self, caps: Array, sources: Sequence[int], sinks: Sequence[int] | Array, supply: int) -> tuple[int, Array]:
        """Maximum flow when each source has ``supply``, and the vertices on the source side of a minimum cut."""
        from scipy.sparse import csr_array  # a fifth of a second, and many cuts need no flow
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow

        start, end = self.size, self.size + 1
        tail = np.concatenate([self.tail, np.full(len(sources), start), self.cores[list(sinks)]])
        head = np.concatenate([self.head, self.cores[list(sources)], np.full(len(sinks), end)])
        wide = np.concatenate([caps, np.full(len(sources), supply), np.full(len(sinks), 4 * MOST)]).astype(np.int32)
        graph = csr_array((wide, (tail, head)), shape=(self.size + 2, self.size + 2))
        flow = maximum_flow(graph, start, end)
        left = csr_array(graph - flow.flow).maximum(0)
        inside = np.zeros(self.size + 2, dtype=np.bool_)
        inside[breadth_first_order(left, start, return_predecessors=False)] = True
        return int(flow.flow_value), inside[: self.size]

    def _cut(self, inside: Array) -> Cut:
        arcs = np.flatnonzero(inside[self.tail] & ~inside[self.head])
        ranks = np.flatnonzero(inside[self.cores]).tolist()
        return Cut(ranks, arcs.tolist(), self.way, int(self.units[arcs].sum()), math.fsum(self.rates[arcs]))


def crossing(to: Array, inside: Sequence[int] | Array) -> int:
    """How many blocks a pattern takes out of the ranks ``inside``: block i of rank r goes to rank ``to[r, i]``."""
    member = np.zeros(len(to), dtype=np.bool_)
    member[list(inside)] = True
    return int((~member[to[member]]).sum())
