"""The topology as a network with integer capacities: least and densest cuts between ranks, by maximum flow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

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
    ``cores``: vertex of each rank, ``nodes``: of its node; ``units``: capacities as integers, ``rates`` [B/s]."""

    size: int
    tail: Array
    head: Array
    rates: Array
    units: Array
    cores: Array
    nodes: Array
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
        exact = [Fraction(rate) for *_, rate in arcs]
        unit = Fraction(math.gcd(*(f.numerator for f in exact)), math.lcm(*(f.denominator for f in exact)))
        unit = max(unit, max(exact) / MOST)
        units = np.asarray([math.ceil(rate / unit) for rate in exact])
        return Network(size, tail, head, rates, units, np.asarray(cores), np.asarray([index[node.name] for node in nodes]))

    def least_cut(self, sources: Sequence[int], sinks: Sequence[int]) -> Cut:
        """Minimum cut between two sets of ranks."""
        outgoing, incoming = np.isin(self.tail, self.cores[list(sources)]), np.isin(self.head, self.cores[list(sinks)])
        enough = min(int(self.units[outgoing].sum()), int(self.units[incoming].sum()))
        room = min(enough, MOST)
        caps = self.units if room == enough else np.ceil(self.units * (room / enough) * UP)
        return self._cut(self._flow(np.minimum(caps, 2 * room), sources, sinks, 2 * room)[1])

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

    def _flow(self, caps: Array, sources: Sequence[int], sinks: Sequence[int], supply: int) -> tuple[int, Array]:
        """Maximum flow when each source has ``supply``, and the vertices on the source side of a minimum cut."""
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
