"""Topology x collective -> lower bounds that no correct schedule can beat, whatever its algorithm, routes and order.
Knows capacities and what must move, nothing of schedules and engines, so that they can be held against it."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from algorithms.collectives import Collective
from algorithms.launch import DTYPE_BYTES
from sim.cuts import Array, Cut, Network, crossing
from sim.distances import asked, hops, joined, latency_of, tables
from sim.symmetry import Symmetry, symmetry
from topologies.errors import ScheduleError
from topologies.graph import Link, Topology
from topologies.units import format_bandwidth

Groups = tuple[tuple[int, ...], ...]
Leaving = Callable[[Sequence[int] | Array], int]

LARGEST_ELEMENT = max(DTYPE_BYTES.values())
EXACT_WORK = 4_000_000  # maximum flows times links up to which they are run, above only cuts close around ranks and groups
DISTANCE_WORK = 16_000_000  # rows of distances times links up to which all are looked at, above the first
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
    - all-to-all: |S||rest|M/n over the capacity of the cuts around these groups; the sum of distances over that of links;
    - sendrecv: the same of the blocks of its pattern; without one, the latency of the nearest pair.
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
    if collective.to:
        collective.unit(len(chosen))  # refuses the pattern of other ranks
    share = nbytes // itemsize // (len(collective.to) // len(chosen) or len(chosen)) * itemsize
    names = [topology.gpus[gpu] for gpu in chosen]
    alone = Symmetry.none(len(chosen))
    alike = alone if collective.to else symmetry(topology, names, frozenset((names[0], names[root])))
    problem = _Problem(topology, topology.links, net, net.rates, alike, chosen, names, root, nbytes, share, in_network)
    latency, claims = problem.latency(collective, overhead), problem.all_claims(collective)
    bandwidth = max(claims, key=_seconds)
    binding = max(latency, bandwidth, key=_seconds)
    more = replace(problem, alike=alone).relief(collective, latency, bandwidth.seconds) if relief else None
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
    alike: Symmetry  # of ranks that are alike only the first is looked at
    chosen: tuple[int, ...]
    names: list[str]
    root: int
    nbytes: int
    share: int
    in_network: bool

    def latency(self, collective: Collective, overhead: float) -> _Claim:
        """The pair of ranks farthest apart, of all pairs, of those with the root on the side that has one, or of a pattern; of
        any pattern the nearest: it may ask for no other."""
        kinds = self.alike.kinds[: max(1, DISTANCE_WORK // len(self.links))]
        if collective.end == "peer" and not collective.to and len(kinds) < len(self.alike.kinds):
            kinds = []  # the nearest pair may be among those that are not looked at
        rows = [self.root] if collective.start == "root" else kinds
        sources, sinks = [self.names[rank] for rank in rows], [self.names[self.root]] if collective.end == "root" else self.names
        worst, src, dst = -math.inf, "", ""
        for first, table in tables(self.topology, sources, sinks, latency_of):
            far = asked(collective, rows[first : first + len(table)], table) if collective.end == "peer" else table
            at, to = (int(i) for i in np.unravel_index(np.argmax(far), far.shape))
            if far[at, to] > worst:
                worst, src, dst = float(far[at, to]), sources[first + at], sinks[to]
        if not src:
            return _Claim(0.0, lambda: "latency: none is known")

        def text() -> str:
            far = hops(self.topology, src, dst, latency_of)
            return f"latency: {src} -> {dst} over {far} hop{'s' * (far > 1)}"

        return _Claim(overhead + abs(worst), text)

    def relief(self, collective: Collective, latency: _Claim, bandwidth_s: float) -> Relief | None:
        """What binds after what binds now; cuts that bind as much are widened together, also those that show only then. None where
        the cuts that bind ``bandwidth_s`` are too many to look at one by one."""
        claims = self.all_claims(collective)
        first, widened = max(claims, key=_seconds), set[frozenset[int]]()
        if first.seconds < bandwidth_s * SAME:
            return None
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
        return (not collective.idempotent and list(self.claims(collective))) or [_Claim(0.0, str)]  # a barrier may send nothing

    def claims(self, collective: Collective) -> Iterator[_Claim]:
        n, m, share, net = len(self.chosen), self.nbytes, self.share, self.net
        back = replace(net, tail=net.head, head=net.tail, way="in")
        every = self.alike.kinds if self._exact(len(self.alike.kinds)) else []
        ends = (collective.start, collective.end)
        if ends in (("all", "owner"), ("all", "root"), ("root", "owner")):  # in reversed time the dual collective, all links turned
            ends, net, back = ends[::-1], back, net
        match ends:
            case "all", "all":  # all-reduce
                yield from self._apart(net, 0, every)
                yield from self._apart(back, 0, every)
                yield from self._partitions(net, back, lambda k: 2 * (k - 1) * m, lambda _: m)
            case "owner", "all":  # all-gather
                yield from self._densest(net, every)
                yield from self._partitions(net, back, lambda k: (k - 1) * n * share, lambda inside: len(inside) * share)
            case "root", "all":  # broadcast
                yield from self._apart(net, self.root, every)
                yield from self._partitions(net, back, lambda k: (k - 1) * m, lambda inside: 0 if every else m * (self.root in inside))
            case "owner", "root":  # gather
                yield from self._densest(net, [self.root])
            case "owner", "target":  # all-to-all
                yield from self._partitions(net, back, lambda _: 0, lambda inside: len(inside) * (n - len(inside)) * share)
                yield self._all_links(None)
            case "owner", "peer":  # sendrecv
                if collective.to:
                    to = np.reshape(collective.to, (n, -1))
                    yield from self._partitions(net, back, lambda _: 0, lambda inside: crossing(to, inside) * share)
                    yield self._all_links(to)
            case start, end:
                raise ScheduleError(f'bounds: no bound is known from "{start}" to "{end}"; those of algorithms/collectives.py have one')

    def _apart(self, net: Network, here: int, others: Sequence[int]) -> Iterator[_Claim]:
        for cut in (net.least_cut([here], [there]) for there in others if there != here):
            yield self._claim(self.nbytes, cut)

    def _densest(self, net: Network, sinks: Sequence[int]) -> Iterator[_Claim]:
        for cut in [net.densest_cut(sinks)] if sinks else []:
            yield self._claim(len(cut.ranks) * self.share, cut)

    def _partitions(self, net: Network, back: Network, total: Callable[[int], int], leaving: Leaving) -> Iterator[_Claim]:
        """``total(k)``: bytes that pass between k groups; ``leaving(inside)``: bytes that must leave these ranks."""
        disjoint = ((name, groups) for name, groups in self._natural() if sum(map(len, groups)) == len(self.chosen) > len(groups[0]))
        for name, groups in disjoint:  # of others the argument does not hold
            like = [self.alike.like(group) for group in groups]
            kinds: dict[tuple[int, ...], int] = {}  # in the order of the first group of each
            for number, kind in enumerate(like):
                kinds.setdefault(kind, number)
            for one in (back, net):
                least = (one.least_cut(groups[number], self._rest(groups[number])) for number in kinds.values())
                cuts = dict(zip(kinds, least if self._exact(len(kinds)) else one.near_cuts(groups, kinds.values()), strict=True))
                for kind, number in kinds.items():
                    yield self._claim(leaving(groups[number] if one is net else self._rest(groups[number])), cuts[kind])
                if not self.in_network:
                    yield self._together(name, [cuts[kind] for kind in like], total(len(groups)))

    def _rest(self, group: Sequence[int]) -> Array:
        return np.delete(np.arange(len(self.chosen)), group)

    def _exact(self, flows: int) -> bool:
        return flows * len(self.links) <= EXACT_WORK

    def _natural(self) -> Iterator[tuple[str, Groups]]:
        """Partitions worth a look: single ranks, the topology's groups, and ranks joined by links of some bandwidth or more."""
        n, rates = len(self.chosen), self.net.rates[: len(self.links)]
        rank_of = {gpu: rank for rank, gpu in enumerate(self.chosen)}
        yield "ranks", tuple((rank,) for rank in range(n))
        for name, groups in self.topology.groups.items():
            parts = [tuple(rank_of[gpu] for gpu in group if gpu in rank_of) for group in groups]
            yield name, tuple(part for part in [*parts, tuple(sorted(set(range(n)).difference(*parts)))] if part)
        for least in np.unique(rates)[1:9]:
            fast = np.flatnonzero(rates >= least)
            yield "clusters", joined(self.net.tail[fast], self.net.head[fast], self.net.nodes, len(self.topology.graph))

    def _all_links(self, to: Array | None) -> _Claim:
        """Every block loads at least as many links as its shortest way has. ``to``: shape [ranks, blocks of a rank], None: to all."""
        n, kinds = len(self.chosen), self.alike.kinds
        if len(kinds) * len(self.links) > DISTANCE_WORK:
            return _Claim(0.0, str)
        many = np.bincount(self.alike.first, minlength=n)[kinds][:, None]
        rows = tables(self.topology, [self.names[rank] for rank in kinds], self.names, lambda _: 1.0)
        ways = ((first, table if to is None else np.take_along_axis(table, to[first : first + len(table)], 1)) for first, table in rows)
        length = math.fsum((way * many[first : first + len(way)]).sum() for first, way in ways)
        blocks = n * (n - 1) if to is None else max(1, int((to != np.arange(n)[:, None]).sum()))
        rate, told = (math.fsum(rates[: len(self.links)]) for rates in (self.net.rates, self.rates))
        text = f"all {len(self.links)} links ({format_bandwidth(told)}; {length / blocks:.3g} hops a block)"
        return _Claim(length * self.share / rate, lambda: text, tuple(range(len(self.links))))

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
