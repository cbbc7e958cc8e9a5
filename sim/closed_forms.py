"""Closed forms in alpha, beta and gamma: an independent check of the engines, which must not import this.

A send of m bytes occupies its sender for c(m) = o + m/B, is there L later, and is summed in g(m) = m/R: overhead o [s],
bandwidth B [B/s], latency L of one send (a star has two links) [s], reduce rate R [B/s], M bytes on n ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from topologies.errors import ScheduleError


@dataclass(frozen=True, slots=True)
class _Case:
    """One question; ``latency`` is that of one send."""

    n: int
    elements: int
    itemsize: int
    bandwidth: float
    latency: float
    overhead: float
    reduce_rate: float
    slices: int
    options: dict[str, Any]

    def piece(self, parts: int) -> int:
        """Bytes of the largest of ``parts`` chunks: chunks are whole elements, so one has ceil(E / parts) of them."""
        return -(-self.elements // parts) * self.itemsize

    def c(self, nbytes: float) -> float:
        """Time that a send occupies its queue [s]."""
        return self.overhead + nbytes / self.bandwidth

    def g(self, nbytes: float) -> float:
        """Time to sum [s]; 0 at an infinite rate."""
        return nbytes / self.reduce_rate

    @property
    def whole(self) -> int:
        return self.piece(1)

    @property
    def queued(self) -> float:
        """All slices through one queue [s]."""
        return self.slices * self.overhead + self.whole / self.bandwidth


Rule = Callable[[_Case], str | None]


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The time of an algorithm on a ``topology`` of equal links ("ring": neighbours joined; "star": around one switch), alone,
    with fair sharing, in one channel. ``hops``: links that a send crosses; ``formula``: for readers, in the module's terms."""

    algorithm: str
    topology: Literal["ring", "star"]
    hops: int
    formula: str
    _time: Callable[[_Case], float]
    _rules: tuple[Rule, ...]

    def refusal(self, n: int, *, elements: int = 0, reduce_rate: float = math.inf, slices: int = 1, **options: Any) -> str | None:
        """Why the form is not exact here, or None. ``elements`` 0: a number that every division of the algorithm leaves whole."""
        case = _Case(n, elements, 1, 1.0, 0.0, 0.0, reduce_rate, slices, options)
        if n < 2:
            return "needs at least 2 ranks"
        return next((reason for rule in self._rules if (reason := rule(case))), None)

    def time(
        self,
        n: int,
        *,
        elements: int,
        itemsize: int,
        bandwidth: float,
        latency: float,
        overhead: float = 0.0,
        reduce_rate: float = math.inf,
        slices: int = 1,
        **options: Any,
    ) -> float:
        """Seconds for ``elements`` of ``itemsize`` bytes over links of ``bandwidth`` [B/s] and ``latency`` [s, of one link], with
        the algorithm's own ``options``. Raises ScheduleError where the form is not exact (see ``refusal``)."""
        reason = self.refusal(n, elements=elements, reduce_rate=reduce_rate, slices=slices, **options)
        if reason:
            raise ScheduleError(f"closed form of {self.algorithm}: {n} ranks, {elements} elements, {slices} slices: {reason}")
        return self._time(_Case(n, elements, itemsize, bandwidth, self.hops * latency, overhead, reduce_rate, slices, options))


FORMS: dict[tuple[str, str], ClosedForm] = {}


def lookup(collective_name: str, algorithm_name: str) -> ClosedForm | None:
    """The closed form of an algorithm, or None: there is none, or none that is exact."""
    return FORMS.get((collective_name, algorithm_name))


def _form(
    collective: str, algorithm: str, topology: Literal["ring", "star"], formula: str, *rules: Rule, hops: int = 0, sliced: bool = False
) -> Callable[[Callable[[_Case], float]], Callable[[_Case], float]]:
    def register(time: Callable[[_Case], float]) -> Callable[[_Case], float]:
        every = rules if sliced else (*rules, _one_slice)
        FORMS[collective, algorithm] = ClosedForm(algorithm, topology, hops or {"ring": 1, "star": 2}[topology], formula, time, every)
        return time

    return register


def _one_slice(case: _Case) -> str | None:
    return None if case.slices == 1 else "this form is for 1 slice"


def _power_of_two(case: _Case) -> str | None:
    return None if case.n & (case.n - 1) == 0 else "exact for a power of two only: other numbers fold ranks together, which share links"


def _three(case: _Case) -> str | None:
    return None if case.n > 2 else "needs 3 ranks: of 2, both directions take the same link"


def _even(parts: Callable[[_Case], int], *, if_reducing: bool = False) -> Rule:
    """Equal pieces: unequal ones come at other times and then share links, or wait for each other's sums."""

    def rule(case: _Case) -> str | None:
        pieces = parts(case)
        if case.elements % pieces == 0 or (if_reducing and case.reduce_rate == math.inf):
            return None
        return f"exact only if {pieces} divides the number of elements{', at a finite reduce rate' if if_reducing else ''}"

    return rule


@_form("reduce-scatter", "ring", "ring", "(n-1)(o + M/(nB) + L + M/(nR))")
def ring_reduce_scatter(case: _Case) -> float:
    """Exact for any n and E: some chunk of ceil(E/n) elements makes all n-1 hops without waiting, and no step takes longer."""
    m = case.piece(case.n)
    return (case.n - 1) * (case.c(m) + case.latency + case.g(m))


@_form("all-gather", "ring", "ring", "(n-1)(o + M/(nB) + L)")
def ring_all_gather(case: _Case) -> float:
    """Exact for any n and E, as the reduce-scatter."""
    return (case.n - 1) * (case.c(case.piece(case.n)) + case.latency)


@_form("all-reduce", "ring", "ring", "2(n-1)(o + M/(nB) + L) + (n-1)M/(nR)")
def ring_all_reduce(case: _Case) -> float:
    """Exact for any n and E: a chunk goes on from its last sum into its first copy (Patarasuk & Yuan 2009)."""
    return ring_reduce_scatter(case) + ring_all_gather(case)


_even_halves = _even(lambda case: 2 * case.n, if_reducing=True)
_even_slices = _even(lambda case: case.slices, if_reducing=True)


@_form("reduce-scatter", "bidirectional-ring", "ring", "(n-1)(o + M/(2nB) + L + M/(2nR)) + M/(2nR)", _three, _even_halves)
def bidirectional_reduce_scatter(case: _Case) -> float:
    """Exact for n > 2; at a finite R if 2n divides E. Both directions share a place's reducer: the second sum of the first step
    waits for the first, and its direction stays so much behind, or, if g > c + L, the reducers never rest."""
    m, steps = case.piece(2 * case.n), case.n - 1
    c, g = case.c(m) + case.latency, case.g(m)
    return max(steps * (c + g) + g, c + 2 * steps * g)


@_form("all-gather", "bidirectional-ring", "ring", "(n-1)(o + M/(2nB) + L)", _three)
def bidirectional_all_gather(case: _Case) -> float:
    """Exact for n > 2 and any E."""
    return (case.n - 1) * (case.c(case.piece(2 * case.n)) + case.latency)


@_form("all-reduce", "bidirectional-ring", "ring", "2(n-1)(o + M/(2nB) + L) + M/(2R)", _three, _even_halves)
def bidirectional_all_reduce(case: _Case) -> float:
    """Exact for n > 2; at a finite R if 2n divides E. The formula shown is for g <= c + L."""
    return bidirectional_reduce_scatter(case) + bidirectional_all_gather(case)


@_form("broadcast", "chain", "star", "(n+S-2)(o + M/(SB)) + (n-1)L", sliced=True)
def chain_broadcast(case: _Case) -> float:
    """Exact for any n, S and E, on a ring too (one hop). A flow shop of n-1 stages: all slices through one queue, and the largest
    through the other n-2. Holds both conventions: alpha = o gives (n+S-2)(alpha + M/SB), alpha = L gives
    (n-1)(alpha + M/SB) + (S-1)M/SB."""
    return case.queued + (case.n - 2) * case.c(case.piece(case.slices)) + (case.n - 1) * case.latency


@_form("reduce", "chain", "star", "(n-1)(o + M/(SB) + L + M/(SR)) + (S-1)max(o + M/(SB), M/(SR))", _even_slices, sliced=True)
def chain_reduce(case: _Case) -> float:
    """Exact for any n and S, at a finite R if S divides E: queues and reducers are the stages; the slower kind is kept busy."""
    if case.reduce_rate == math.inf:
        return chain_broadcast(case)
    m = case.piece(case.slices)
    return (case.n - 1) * (case.c(m) + case.latency + case.g(m)) + (case.slices - 1) * max(case.c(m), case.g(m))


@_form("broadcast", "binomial-tree", "star", "ceil(log2 n)(o + M/B) + floor(log2 n)L")
def binomial_broadcast(case: _Case) -> float:
    """Exact for any n and E. Rank r gets its data after as many sends as steps up to its last set bit, and as many latencies as it
    has set bits: a sender does not wait for arrivals. The most are ceil(log2 n) and floor(log2 n), of rank 2^floor(log2 n) - 1."""
    return (case.n - 1).bit_length() * case.c(case.whole) + (case.n.bit_length() - 1) * case.latency


@_form("reduce", "binomial-tree", "star", "log2(n)(o + M/B + L + M/R)", _power_of_two)
def binomial_reduce(case: _Case) -> float:
    """Exact for n a power of two and any E: the child of step s is ready when s steps are over. (Else early children share the
    link of their parent.)"""
    return (case.n.bit_length() - 1) * (case.c(case.whole) + case.latency + case.g(case.whole))


@_form("all-reduce", "binomial-tree", "star", "2 log2(n)(o + M/B + L) + log2(n)M/R", _power_of_two)
def binomial_all_reduce(case: _Case) -> float:
    """Exact for n a power of two and any E: the broadcast starts when the root has its last sum."""
    return binomial_reduce(case) + binomial_broadcast(case)


@_form("all-reduce", "recursive-doubling", "star", "log2(n)(o + M/B + L + M/R)", _power_of_two)
def recursive_doubling(case: _Case) -> float:
    """Exact for n a power of two and any E: all ranks exchange in step, each over its own links."""
    return binomial_reduce(case)


@_form("all-reduce", "halving-doubling", "star", "2 log2(n)(o + L) + 2(n-1)M/(nB) + (n-1)M/(nR)", _power_of_two, _even(lambda case: case.n))
def halving_doubling(case: _Case) -> float:
    """Exact for n a power of two that divides E: pieces of M/2, M/4, ... M/n, and back (Rabenseifner)."""
    moved = case.whole - case.piece(case.n)
    return 2 * ((case.n.bit_length() - 1) * (case.overhead + case.latency) + moved / case.bandwidth) + case.g(moved)


@_form("all-reduce", "parameter-server", "star", "n o + 2(n-1)M/B + 2L + (n-1)M/R")
def parameter_server(case: _Case) -> float:
    """Exact for any n and E. All push at once and share the server's link fairly, so that all arrive together; the server sums
    them one by one, then sends to one after the other."""
    pushes = case.n - 1
    return case.overhead + pushes * (case.whole / case.bandwidth + case.g(case.whole) + case.c(case.whole)) + 2 * case.latency


def _servers(case: _Case) -> int:
    return int(case.options.get("servers") or case.n)


def _even_load(case: _Case) -> str | None:
    servers = _servers(case)
    return None if servers > 0 and case.n % servers == 0 else "exact only if the number of servers divides n: else their loads differ"


@_form("all-reduce", "sharded-parameter-server", "star", "2(n-1)M/(SB) + 2L + (n-1+min(S, n-1))o", _even_load, _even(_servers))
def sharded_parameter_server(case: _Case) -> float:
    """Exact if the number of servers S divides n and E. In each turn n/S ranks share a server's link, in the last, without the
    server itself, one less; S = n: n-1 turns of one. A reducer may lag behind the link; the pulls follow its last sum. The formula
    is for R infinite."""
    servers = _servers(case)
    m, each = case.piece(servers), case.n // servers
    turns, left, summed = (servers if each > 1 else case.n - 1), case.n - 1, 0.0
    for turn in range(1, turns + 1):
        came = min(each, left)
        arrived = turn * case.overhead + (case.n - 1 - left + came) * m / case.bandwidth + case.latency
        summed, left = max(summed, arrived) + came * case.g(m), left - came
    return summed + (case.n - 1) * case.c(m) + case.latency


def _levels(case: _Case) -> int:
    return 1 if len(case.options.get("groups") or ()) < 2 else 2


def _one_level(case: _Case) -> str | None:
    return None if _levels(case) == 1 or case.reduce_rate == math.inf else "of two levels exact only without a reduce rate"


@_form("all-reduce", "sharp", "star", "2dL + (2d+S-1)(o + M/(SB))", _one_level, _even_slices, hops=1, sliced=True)
def sharp(case: _Case) -> float:
    """Exact for any n, S and E; at a finite R for one level if S divides E. A flow shop of 2d queues, d levels of switches (2 with
    ``groups``: links as those of ranks go to one above the leaves), and, where sums take time, of the switch's reducer, which adds
    n pieces a slice. The formula is for R infinite."""
    m, queues = case.piece(case.slices), 2 * _levels(case)
    if case.reduce_rate == math.inf:
        return case.queued + (queues - 1) * case.c(m) + queues * case.latency
    reducer = case.n * case.g(m)
    return queues * (case.c(m) + case.latency) + reducer + (case.slices - 1) * max(case.c(m), reducer)
