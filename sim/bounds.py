"""Lower bounds: what no correct schedule can beat on a topology, whatever its algorithm, its routes and its order.

Written from the problem, not from the simulator: it knows capacities and what a collective must move, nothing of schedules.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Literal

import networkx as nx
import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import breadth_first_order, connected_components, dijkstra, maximum_flow

from algorithms.collectives import Collective
from algorithms.launch import DTYPE_BYTES
from topologies.errors import ScheduleError
from topologies.graph import Link, Topology
from topologies.units import format_bandwidth

Array = NDArray[Any]
Groups = tuple[tuple[int, ...], ...]
Way = Literal["in", "out"]

LARGEST_ELEMENT = max(DTYPE_BYTES.values())
MOST = 2**30
"""Capacities and flows stay below, as scipy's maximum flow takes 32-bit integers."""
UP = 1 + 1e-12
"""Capacities that do not fit are scaled down and rounded up: no cut may look smaller than it is."""
EXACT_WORK = 4_000_000
"""Ranks times links up to which every rank gets maximum flows of its own; above, only groups of ranks are cut out."""
CLUSTERINGS = 8
"""Link bandwidths tried as thresholds for clusters of ranks."""


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds. ``lower_bound_s`` is the larger of the two, never their sum: transfers go on while the last byte travels.
    ``limiting`` says what binds, as in ``cut around server 1 (8 ib-ndr links, 400 GB/s out)``."""

    latency_s: float
    bandwidth_s: float
    lower_bound_s: float
    limiting: str


def bounds(
    topology: Topology,
    collective: Collective,
    nbytes: int,
    *,
    root: int = 0,
    ranks: Sequence[int] | None = None,
    in_network: bool = False,
    overhead: float = 0.0,
    itemsize: int = LARGEST_ELEMENT,
) -> Bounds:
    """Lower bounds on the time of ``collective`` over the GPUs ``ranks`` (default all; ``root`` is a position among them).

    ``nbytes`` is the full vector: the buffer of an all-reduce, input of a reduce-scatter, result of an all-gather, what each
    rank sends in an all-to-all, what the root scatters or gathers. Shares are whole elements of ``itemsize`` bytes, rounded
    down; the default holds for every dtype. ``in_network``: switches may aggregate and multicast.

    Latency: the largest least latency (over any path) of a pair that the collective needs, plus one ``overhead`` [s]; not
    ceil(log2 n) of them, since sends of one place on different channels overlap. Bandwidth, from links and node ports:

    - all-gather, reduce-scatter: shares inside a cut over its capacity, the largest of all cuts (ForestColl, arXiv 2402.06787)
      by Dinkelbach's method on maximum flows; scatter and gather alike, over the cuts between root and ranks;
    - broadcast, reduce: M over the least cut between root and a rank; all-reduce: M over the least cut between two ranks;
    - without ``in_network``, for a partition into k groups: every element of an all-reduce passes between groups 2(k-1) times
      (k-1 before any group can know its sum, then one into each other), of a broadcast, reduce, all-gather or reduce-scatter
      k-1 times; over the sum of what can enter (or leave) the groups. Single ranks, the topology's groups and clusters of fast
      links are tried;
    - all-to-all: |S||rest|M/n over the capacity of the cuts around these groups; the sum of distances over that of links.

    Raises ScheduleError for a rank or root that is not there, a negative size, or a collective of unknown conditions.
    """
    gpus = len(topology.gpus)
    chosen = tuple(range(gpus)) if ranks is None else tuple(ranks)
    for gpu in chosen:
        if not 0 <= gpu < gpus:
            raise ScheduleError(f"bounds: {topology.name} has no GPU {gpu}; it has GPUs 0..{gpus - 1}")
    if len(set(chosen)) != len(chosen) or len(chosen) < 2:
        raise ScheduleError(f"bounds: ranks {chosen}: a collective needs at least 2 ranks, each on a GPU of its own")
    if not 0 <= root < len(chosen):
        raise ScheduleError(f"bounds: root {root} is not a rank; ranks are 0..{len(chosen) - 1}")
    if nbytes < 0 or itemsize < 1:
        raise ScheduleError(f"bounds: {nbytes} B of elements of {itemsize} B; write a size of 0 or more and elements of at least 1 B")
    problem = _Problem(topology, topology.links, chosen, root, nbytes, nbytes // itemsize // len(chosen) * itemsize, in_network)
    latency = problem.latency(collective, overhead)
    claims = [_Claim(0.0, str)] if collective.idempotent else problem.claims(collective)  # a barrier may send empty messages
    bandwidth = max(claims, key=lambda claim: claim.seconds)
    limiting = latency if latency.seconds >= bandwidth.seconds else bandwidth
    return Bounds(latency.seconds, bandwidth.seconds, limiting.seconds, limiting.what())


@dataclass(frozen=True, slots=True)
class _Claim:
    seconds: float
    what: Callable[[], str]


@dataclass(frozen=True, slots=True)
class _Problem:
    topology: Topology
    links: list[Link]
    chosen: tuple[int, ...]
    root: int
    nbytes: int
    share: int
    in_network: bool

    def latency(self, collective: Collective, overhead: float) -> _Claim:
        """The pair of ranks farthest apart, of all pairs or of those with the root on the side that has one."""
        everyone = list(range(len(self.chosen)))
        sources, sinks = ([self.root] if side == "root" else everyone for side in (collective.start, collective.end))
        worst, src, dst = -1.0, "", ""
        for first, table in self._distances(sources, sinks, [link.latency for link in self.links]):
            at, to = (int(i) for i in np.unravel_index(np.argmax(table), table.shape))
            if table[at, to] > worst:
                worst, src, dst = float(table[at, to]), self._gpu(sources[first + at]), self._gpu(sinks[to])

        def what() -> str:
            path = nx.dijkstra_path(self.topology.graph, src, dst, weight=lambda a, b, edge: edge["link"].latency)
            return f"latency: {src} -> {dst} over {len(path) - 1} hop{'s' * (len(path) > 2)}"

        return _Claim(overhead + worst, what)

    def claims(self, collective: Collective) -> Iterator[_Claim]:
        net = _Network.of(self.topology, self.chosen)
        back = replace(net, tail=net.head, head=net.tail)
        n, m, share, root = len(self.chosen), self.nbytes, self.share, self.root
        every = range(n) if n * len(self.links) <= EXACT_WORK else range(0)
        match collective.start, collective.end:
            case "all", "all":  # all-reduce
                yield from self._apart(net, "out", 0, every)
                yield from self._apart(back, "in", 0, every)
                yield from self._partitions(net, back, lambda k: 2 * (k - 1) * m, lambda inside: m)
            case "owner", "all":  # all-gather
                yield from self._densest(net, "out", every)
                yield from self._partitions(net, back, lambda k: (k - 1) * n * share, lambda inside: inside * share)
            case "all", "owner":  # reduce-scatter
                yield from self._densest(back, "in", every)
                yield from self._partitions(net, back, lambda k: (k - 1) * n * share, lambda inside: (n - inside) * share)
            case "root", "all":  # broadcast
                yield from self._apart(net, "out", root, range(n))
                yield from self._partitions(net, back, lambda k: (k - 1) * m, lambda inside: 0)
            case "all", "root":  # reduce
                yield from self._apart(back, "in", root, range(n))
                yield from self._partitions(net, back, lambda k: (k - 1) * m, lambda inside: 0)
            case "root", "owner":  # scatter
                yield from self._densest(back, "in", [root])
            case "owner", "root":  # gather
                yield from self._densest(net, "out", [root])
            case "blocks", "blocks":  # all-to-all
                yield from self._partitions(net, back, lambda k: 0, lambda inside: inside * (n - inside) * share)
                yield self._all_links()
            case start, end:
                raise ScheduleError(f'bounds: no bound is known from "{start}" to "{end}"; those of algorithms/collectives.py have one')

    def _over(self, cut: _Cut, way: Way, nbytes: int) -> _Claim:
        return _Claim(nbytes / cut.rate, lambda: self._describe(cut, way))

    def _apart(self, net: _Network, way: Way, here: int, others: Sequence[int]) -> Iterator[_Claim]:
        yield from (self._over(net.least_cut([here], [there]), way, self.nbytes) for there in others if there != here)

    def _densest(self, net: _Network, way: Way, sinks: Sequence[int]) -> Iterator[_Claim]:
        yield from (self._over(cut, way, len(cut.ranks) * self.share) for cut in net.densest_cut(sinks))

    def _partitions(self, net: _Network, back: _Network, total: Callable[[int], int], leaving: Callable[[int], int]) -> Iterator[_Claim]:
        """``total(k)``: bytes that pass between k groups; ``leaving(m)``: bytes that must leave any m ranks."""
        everyone = range(len(self.chosen))
        for name, groups in self._natural():
            rests = [[rank for rank in everyone if rank not in inside] for inside in map(set, groups)]
            for way, one in (("in", back), ("out", net)):
                cuts = [one.least_cut(group, rest) for group, rest in zip(groups, rests, strict=True)]
                for cut, group, rest in zip(cuts, groups, rests, strict=True):
                    yield self._over(cut, way, leaving(len(group if way == "out" else rest)))
                if not self.in_network:
                    yield self._together(name, cuts, way, total(len(cuts)))

    def _together(self, name: str, cuts: list[_Cut], way: Way, nbytes: int) -> _Claim:
        rate = math.fsum(cut.rate for cut in cuts)
        what = "ports" if name == "ranks" else "cuts"
        return _Claim(nbytes / rate, lambda: f"{what} of all {len(cuts)} {name} together ({format_bandwidth(rate)} {way})")

    def _natural(self) -> Iterator[tuple[str, Groups]]:
        """Partitions worth a look: single ranks, the topology's groups, and ranks joined by links of some bandwidth or more."""
        n, rates = len(self.chosen), np.asarray([link.bandwidth for link in self.links])
        rank_of = {gpu: rank for rank, gpu in enumerate(self.chosen)}
        named: list[tuple[str, Groups]] = []
        if n * len(self.links) <= EXACT_WORK:
            named.append(("ranks", tuple((rank,) for rank in range(n))))
        for name, groups in self.topology.groups.items():
            parts = [tuple(rank_of[gpu] for gpu in group if gpu in rank_of) for group in groups]
            rest = tuple(sorted(set(range(n)).difference(*parts)))
            named.append((name, tuple(part for part in [*parts, rest] if part)))
        for least in np.unique(rates)[1 : CLUSTERINGS + 1]:
            graph, at = self._graph(np.where(rates >= least, rates, 0))
            graph.eliminate_zeros()
            joined = connected_components(graph, directed=False)[1][at]
            named.append(("clusters", tuple(tuple(np.flatnonzero(joined == part).tolist()) for part in np.unique(joined))))
        yield from ((name, groups) for name, groups in named if len(groups) > 1)

    def _all_links(self) -> _Claim:
        """Every block loads at least as many links as its shortest way has."""
        n = len(self.chosen)
        hops = math.fsum(table.sum() for _, table in self._distances(list(range(n)), list(range(n)), [1.0] * len(self.links)))
        rate, mean = math.fsum(link.bandwidth for link in self.links), hops / (n * (n - 1))
        return _Claim(hops * self.share / rate, lambda: f"all {len(self.links)} links ({format_bandwidth(rate)}; {mean:.3g} hops a block)")

    def _graph(self, weights: Sequence[float] | Array) -> tuple[csr_array, Array]:
        """Links with their weights, and the vertex of each rank."""
        tail, head, index = _ends(self.topology)
        graph = csr_array((np.asarray(weights), (tail, head)), shape=(len(index), len(index)))
        return graph, np.asarray([index[self._gpu(rank)] for rank in range(len(self.chosen))])

    def _distances(self, sources: list[int], sinks: list[int], weights: list[float]) -> Iterator[tuple[int, Array]]:
        """Blocks of rows of the table of least path weights, with their first row: all of it could be gigabytes."""
        graph, at = self._graph(weights)
        for first in range(0, len(sources), 256):
            yield first, dijkstra(graph, indices=at[sources[first : first + 256]])[:, at[sinks]]

    def _gpu(self, rank: int) -> str:
        return self.topology.gpus[self.chosen[rank]]

    def _describe(self, cut: _Cut, way: Way) -> str:
        """The side with fewer ranks, by the name of its group if it has one."""
        ranks, crossing = cut.ranks, [self.links[i] for i in cut.arcs if i < len(self.links)]
        if 2 * len(ranks) > len(self.chosen):
            ranks, way = [rank for rank in range(len(self.chosen)) if rank not in ranks], "out" if way == "in" else "in"
        names = [self._gpu(rank) for rank in ranks]
        through = f"{format_bandwidth(cut.rate)} {way}"
        if len(names) == 1 and all(names[0] in (link.src, link.dst) for link in crossing):
            return f"ports of {names[0]} ({through})"
        gpus = {self.chosen[rank] for rank in ranks}
        side = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
        for name, groups in self.topology.groups.items():
            same = [i for i, group in enumerate(groups) if len(gpus) > 1 and gpus == set(group).intersection(self.chosen)]
            side = f"{'leaf' if name == 'leaves' else name.removesuffix('s')} {same[0]}" if same else side
        kinds = {link.kind for link in crossing} - {"link"}
        kind = f"{kinds.pop()} " if len(kinds) == 1 else ""
        return f"cut around {side} ({len(crossing)} {kind}link{'s' * (len(crossing) != 1)}, {through})"


def _ends(topology: Topology) -> tuple[list[int], list[int], dict[str, int]]:
    index = {name: i for i, name in enumerate(topology.graph)}
    return [index[link.src] for link in topology.links], [index[link.dst] for link in topology.links], index


@dataclass(frozen=True, slots=True)
class _Cut:
    """One direction: ``ranks`` inside, ``arcs`` that leave, their ``capacity`` in the network's units and ``rate`` [B/s]."""

    ranks: list[int]
    arcs: list[int]
    capacity: int
    rate: float


@dataclass(frozen=True, slots=True)
class _Network:
    """Arcs: the links, then the ports of ranks with a limit of their own, which are vertices (``cores``) beside their nodes.
    ``units``: the capacities as integers."""

    size: int
    tail: Array
    head: Array
    rates: Array
    units: Array
    cores: Array

    @staticmethod
    def of(topology: Topology, chosen: Sequence[int]) -> _Network:
        tail, head, index = _ends(topology)
        rates = [link.bandwidth for link in topology.links]
        size, cores, no_limit = len(index), [], sum(rates)
        for node in (topology.node(topology.gpus[gpu]) for gpu in chosen):
            cores.append(index[node.name])
            if min(node.injection, node.ejection) < math.inf:
                tail, head = [*tail, size, cores[-1]], [*head, cores[-1], size]
                rates += [min(node.injection, no_limit), min(node.ejection, no_limit)]
                cores[-1], size = size, size + 1
        exact = [Fraction(rate) for rate in rates]
        unit = Fraction(math.gcd(*(f.numerator for f in exact)), math.lcm(*(f.denominator for f in exact)))
        units = [math.ceil(f / max(unit, max(exact) / MOST)) for f in exact]
        return _Network(size, np.asarray(tail), np.asarray(head), np.asarray(rates), np.asarray(units), np.asarray(cores))

    def least_cut(self, sources: Sequence[int], sinks: Sequence[int]) -> _Cut:
        """Minimum cut between two sets of ranks."""
        outgoing, incoming = np.isin(self.tail, self.cores[list(sources)]), np.isin(self.head, self.cores[list(sinks)])
        enough = min(int(self.units[outgoing].sum()), int(self.units[incoming].sum()))
        room = min(enough, MOST)
        caps = self.units if room == enough else np.ceil(self.units * (room / enough) * UP)
        return self._cut(self._flow(np.minimum(caps, room), sources, sinks, room + 1)[1])

    def densest_cut(self, sinks: Sequence[int]) -> Iterator[_Cut]:
        """The cut with most ranks inside per capacity of those that leave a rank of ``sinks`` outside, by Dinkelbach's method: it
        is found when, at capacities in that proportion, each sink can take one unit from every rank. Nothing without sinks."""
        n, ports = len(self.cores), [self._cut(np.arange(self.size) != self.cores[sink]) for sink in sinks]
        best = max(ports, key=lambda cut: Fraction(len(cut.ranks), cut.capacity), default=None)
        for sink in sinks if best else ():
            enough = False
            while best and not enough:
                supply, k = min(best.capacity, MOST // n), len(best.ranks)
                caps = self.units * k if supply == best.capacity else np.ceil(self.units * (k * supply / best.capacity) * UP)
                arrived, inside = self._flow(np.minimum(caps, n * supply), range(n), [sink], supply)
                enough = arrived == n * supply
                best = best if enough else self._cut(inside)
        yield from [best] if best else []

    def _flow(self, caps: Array, sources: Sequence[int], sinks: Sequence[int], supply: int) -> tuple[int, Array]:
        """Maximum flow when each source has ``supply``, and the vertices on the source side of a minimum cut."""
        start, end = self.size, self.size + 1
        tail = np.concatenate([self.tail, np.full(len(sources), start), self.cores[list(sinks)]])
        head = np.concatenate([self.head, self.cores[list(sources)], np.full(len(sinks), end)])
        wide = np.concatenate([caps, np.full(len(sources), supply), np.full(len(sinks), MOST + 1)]).astype(np.int32)
        graph = csr_array((wide, (tail, head)), shape=(self.size + 2, self.size + 2))
        flow = maximum_flow(graph, start, end)
        left = csr_array(graph - flow.flow)
        left.data = np.maximum(left.data, 0)
        left.eliminate_zeros()
        inside = np.zeros(self.size + 2, dtype=np.bool_)
        inside[breadth_first_order(left, start, return_predecessors=False)] = True
        return int(flow.flow_value), inside[: self.size]

    def _cut(self, inside: Array) -> _Cut:
        arcs = np.flatnonzero(inside[self.tail] & ~inside[self.head])
        ranks = np.flatnonzero(inside[self.cores]).tolist()
        return _Cut(ranks, arcs.tolist(), int(self.units[arcs].sum()), math.fsum(self.rates[arcs]))
