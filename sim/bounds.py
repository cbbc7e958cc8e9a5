"""Topology x collective -> lower bounds that no correct schedule can beat, whatever its algorithm, routes and order.
Knows capacities and what must move, nothing of schedules and engines, so that they can be held against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import networkx as nx
import numpy as np
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components, dijkstra

from algorithms.collectives import Collective
from algorithms.launch import DTYPE_BYTES
from sim.cuts import Array, Cut, Network
from topologies.errors import ScheduleError
from topologies.graph import Link, Topology
from topologies.units import format_bandwidth

Groups = tuple[tuple[int, ...], ...]

LARGEST_ELEMENT = max(DTYPE_BYTES.values())
EXACT_WORK = 4_000_000  # ranks times links up to which every rank gets maximum flows of its own, above only groups of ranks
WIDER = 16  # times the bandwidth that answers what more of it would bring
SAME = 1 - 1e-9  # claims that differ by less, relative, bind alike


@dataclass(frozen=True, slots=True)
class Relief:
    """What more bandwidth where a bound binds (less latency, if that binds) would bring: the bound falls by up to ``headroom``
    (``WIDER``: by as much or more; infinite: nothing else is known), then ``next_limit`` binds. ``ties``: other cuts that bind
    exactly as much, and have to be widened with it."""

    headroom: float
    next_limit: str
    ties: int = 0


@dataclass(frozen=True, slots=True)
class Bounds:
    """Seconds. ``lower_bound_s`` is the larger of the two, never their sum: transfers go on while the last byte travels.
    ``limiting`` says what binds, as in ``cut around server 1 (8 ib-ndr links, 400 GB/s out)``; ``relief`` only when asked for."""

    latency_s: float
    bandwidth_s: float
    lower_bound_s: float
    limiting: str
    relief: Relief | None = None


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
    relief: bool = False,
) -> Bounds:
    """Lower bounds on the time of ``collective`` over the GPUs ``ranks`` (default all; ``root`` is a position among them).

    ``nbytes``: the full vector M (of a reduce-scatter its input, of an all-gather its result, of an all-to-all what each rank
    sends, of a scatter or gather what the root has). Shares are whole elements of ``itemsize`` bytes, rounded down; the default
    holds for every dtype. ``in_network``: switches may aggregate and multicast. ``relief``: say what would raise the bound, too,
    by finding it again with what binds widened (twice the time, or more).

    Latency: the largest least latency (over any path) of a pair that must communicate, plus one ``overhead`` [s]; not
    ceil(log2 n) of them, since sends of one place on different channels overlap. Bandwidth, of links and node ports:

    - all-gather, reduce-scatter: shares inside a cut over its capacity, the largest of all cuts (ForestColl, arXiv 2402.06787);
      scatter and gather alike, over the cuts between root and ranks;
    - broadcast, reduce: M over the least cut between root and a rank; all-reduce: M over the least cut between two ranks;
    - without ``in_network``, for ranks in k groups: an element of an all-reduce passes between groups 2(k-1) times (k-1 before
      any group can know its sum, then once into each other group), of a broadcast, reduce, all-gather or reduce-scatter k-1
      times; over what can enter (or leave) all groups. Tried: single ranks, the topology's groups, clusters of fast links;
    - all-to-all: |S||rest|M/n over the capacity of the cuts around these groups; the sum of distances over that of links.
    Raises ScheduleError for a rank, root, size or collective that cannot be.
    """
    gpus = range(len(topology.gpus))
    chosen = tuple(gpus if ranks is None else ranks)
    if len(set(chosen).intersection(gpus)) < max(2, len(chosen)):
        raise ScheduleError(f"bounds: ranks {chosen}: write at least 2 GPUs of {topology.name}, 0..{gpus[-1]}, each once")
    if not 0 <= root < len(chosen):
        raise ScheduleError(f"bounds: root {root} is not a rank; ranks are 0..{len(chosen) - 1}")
    if nbytes < 0 or itemsize < 1:
        raise ScheduleError(f"bounds: {nbytes} B in elements of {itemsize} B; write 0 B or more, in elements of at least 1 B")
    net = Network.of(topology, chosen)
    share = nbytes // itemsize // len(chosen) * itemsize
    names = [topology.gpus[gpu] for gpu in chosen]
    problem = _Problem(topology, topology.links, net, net.rates, chosen, names, root, nbytes, share, in_network)
    latency, claims = problem.latency(collective, overhead), problem.all_claims(collective)
    bandwidth = max(claims, key=_seconds)
    binding = max(latency, bandwidth, key=_seconds)
    more = problem.relief(collective, latency, claims) if relief else None
    return Bounds(latency.seconds, bandwidth.seconds, binding.seconds, binding.text(), more)


@dataclass(frozen=True, slots=True)
class _Claim:
    """No schedule is faster than ``seconds``, for want of capacity of these arcs of the network; ``text`` names them."""

    seconds: float
    text: Callable[[], str]
    arcs: tuple[int, ...] = ()


def _seconds(claim: _Claim) -> float:
    return claim.seconds


@dataclass(frozen=True, slots=True)
class _Problem:
    topology: Topology
    links: list[Link]
    net: Network
    rates: Array  # of the arcs as they are, while ``net`` may have some widened
    chosen: tuple[int, ...]
    names: list[str]
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
                worst, src, dst = float(table[at, to]), self.names[sources[first + at]], self.names[sinks[to]]
        path = nx.dijkstra_path(self.topology.graph, src, dst, weight=lambda a, b, edge: edge["link"].latency)
        return _Claim(overhead + worst, lambda: f"latency: {src} -> {dst} over {len(path) - 1} hop{'s' * (len(path) > 2)}")

    def relief(self, collective: Collective, latency: _Claim, claims: Sequence[_Claim]) -> Relief:
        """What binds after what binds now; cuts that bind as much are widened together, also those that show only then."""
        first, widened = max(claims, key=_seconds), set[frozenset[int]]()
        if latency.seconds >= first.seconds:
            return Relief(latency.seconds / first.seconds if first.seconds else math.inf, first.text())
        then = first
        for _ in range(8):  # rounds: what still binds as much after them is named as the next limit, with headroom 1
            widened |= {frozenset(claim.arcs) for claim in claims if claim.seconds >= first.seconds * SAME}
            factor = np.ones(len(self.rates), dtype=np.int64)
            factor[list(frozenset[int]().union(*widened))] = WIDER
            wider = replace(self.net, rates=self.net.rates * factor, units=self.net.units * factor)
            claims = replace(self, net=wider).all_claims(collective)
            then = max([latency, *claims], key=_seconds)
            if then.seconds < first.seconds * SAME:
                break
        others = [cut for cut in widened if cut != frozenset(first.arcs) and not any(part < cut for part in widened)]
        return Relief(max(1.0, first.seconds / then.seconds), then.text(), len(others))

    def all_claims(self, collective: Collective) -> list[_Claim]:
        """A barrier may send nothing; among very many ranks without groups no cut is looked for."""
        return (not collective.idempotent and list(self.claims(collective))) or [_Claim(0.0, str)]

    def claims(self, collective: Collective) -> Iterator[_Claim]:
        n, m, share, net = len(self.chosen), self.nbytes, self.share, self.net
        back = replace(net, tail=net.head, head=net.tail, way="in")
        every = range(n) if n * len(self.links) <= EXACT_WORK else range(0)
        ends = (collective.start, collective.end)
        if ends in (("all", "owner"), ("all", "root"), ("root", "owner")):  # in reversed time the dual collective, all links turned
            ends, net, back = ends[::-1], back, net
        match ends:
            case "all", "all":  # all-reduce
                yield from self._apart(net, 0, every)
                yield from self._apart(back, 0, every)
                yield from self._partitions(net, back, lambda k: 2 * (k - 1) * m, lambda inside: m)
            case "owner", "all":  # all-gather
                yield from self._densest(net, every)
                yield from self._partitions(net, back, lambda k: (k - 1) * n * share, lambda inside: inside * share)
            case "root", "all":  # broadcast
                yield from self._apart(net, self.root, range(n))
                yield from self._partitions(net, back, lambda k: (k - 1) * m, lambda inside: 0)
            case "owner", "root":  # gather
                yield from self._densest(net, [self.root])
            case "owner", "target":  # all-to-all
                yield from self._partitions(net, back, lambda k: 0, lambda inside: inside * (n - inside) * share)
                yield self._all_links()
            case start, end:
                raise ScheduleError(f'bounds: no bound is known from "{start}" to "{end}"; those of algorithms/collectives.py have one')

    def _apart(self, net: Network, here: int, others: Sequence[int]) -> Iterator[_Claim]:
        for cut in (net.least_cut([here], [there]) for there in others if there != here):
            yield self._claim(self.nbytes, cut)

    def _densest(self, net: Network, sinks: Sequence[int]) -> Iterator[_Claim]:
        for cut in [net.densest_cut(sinks)] if sinks else []:
            yield self._claim(len(cut.ranks) * self.share, cut)

    def _partitions(self, net: Network, back: Network, total: Callable[[int], int], leaving: Callable[[int], int]) -> Iterator[_Claim]:
        """``total(k)``: bytes that pass between k groups; ``leaving(m)``: bytes that must leave any m ranks."""
        disjoint = ((name, groups) for name, groups in self._natural() if sum(map(len, groups)) == len(self.chosen) > len(groups[0]))
        for name, groups in disjoint:  # of others the argument does not hold
            rests = [[rank for rank in range(len(self.chosen)) if rank not in inside] for inside in map(set, groups)]
            for one in (back, net):
                cuts = [one.least_cut(group, rest) for group, rest in zip(groups, rests, strict=True)]
                for cut, group, rest in zip(cuts, groups, rests, strict=True):
                    yield self._claim(leaving(len(group if one is net else rest)), cut)
                if not self.in_network:
                    yield self._together(name, cuts, total(len(cuts)))

    def _natural(self) -> Iterator[tuple[str, Groups]]:
        """Partitions worth a look: single ranks, the topology's groups, and ranks joined by links of some bandwidth or more."""
        n, rates = len(self.chosen), self.net.rates[: len(self.links)]
        rank_of = {gpu: rank for rank, gpu in enumerate(self.chosen)}
        if n * len(self.links) <= EXACT_WORK:
            yield "ranks", tuple((rank,) for rank in range(n))
        for name, groups in self.topology.groups.items():
            parts = [tuple(rank_of[gpu] for gpu in group if gpu in rank_of) for group in groups]
            yield name, tuple(part for part in [*parts, tuple(sorted(set(range(n)).difference(*parts)))] if part)
        for least in np.unique(rates)[1:9]:
            graph = self._graph(np.where(rates >= least, rates, 0))
            graph.eliminate_zeros()
            joined = connected_components(graph, directed=False)[1][self.net.nodes]
            yield "clusters", tuple(tuple(np.flatnonzero(joined == part).tolist()) for part in np.unique(joined))

    def _all_links(self) -> _Claim:
        """Every block loads at least as many links as its shortest way has."""
        n, everyone = len(self.chosen), list(range(len(self.chosen)))
        hops = math.fsum(table.sum() for _, table in self._distances(everyone, everyone, [1.0] * len(self.links)))
        rate, told = (math.fsum(rates[: len(self.links)]) for rates in (self.net.rates, self.rates))
        text = f"all {len(self.links)} links ({format_bandwidth(told)}; {hops / (n * (n - 1)):.3g} hops a block)"
        return _Claim(hops * self.share / rate, lambda: text, tuple(range(len(self.links))))

    def _graph(self, weights: Sequence[float] | Array) -> csr_array:
        ends = self.net.tail[: len(self.links)], self.net.head[: len(self.links)]
        return csr_array((np.asarray(weights), ends), shape=(len(self.topology.graph),) * 2)

    def _distances(self, sources: list[int], sinks: list[int], weights: list[float]) -> Iterator[tuple[int, Array]]:
        """Blocks of rows of the table of least path weights, with their first row: all of it could be gigabytes."""
        graph, at = self._graph(weights), self.net.nodes
        for first in range(0, len(sources), 256):
            yield first, dijkstra(graph, indices=at[sources[first : first + 256]])[:, at[sinks]]

    def _claim(self, nbytes: int, cut: Cut) -> _Claim:
        return _Claim(nbytes / cut.rate, partial(self._describe, cut), tuple(cut.arcs))

    def _describe(self, cut: Cut) -> str:
        """The side with fewer ranks, by the name of its group if it has one."""
        ranks, way, crossing = cut.ranks, cut.way, [self.links[i] for i in cut.arcs if i < len(self.links)]
        if 2 * len(ranks) > len(self.chosen):
            ranks, way = [rank for rank in range(len(self.chosen)) if rank not in ranks], "out" if way == "in" else "in"
        names = [self.names[rank] for rank in ranks]
        through = f"{format_bandwidth(math.fsum(self.rates[cut.arcs]))} {way}"
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

    def _together(self, name: str, cuts: list[Cut], nbytes: int) -> _Claim:
        what, arcs = "ports of" if name == "ranks" else "cuts around", [arc for cut in cuts for arc in cut.arcs]

        def text() -> str:
            return f"{what} all {len(cuts)} {name} together ({format_bandwidth(math.fsum(self.rates[arcs]))} {cuts[0].way})"

        return _Claim(nbytes / math.fsum(cut.rate for cut in cuts), text, tuple(arcs))
