"""What a closed form is: a case, its time, the rules under which it is exact; and the two registries.

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
class Case:
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


Shape = Literal["ring", "star", "torus"]
Rule = Callable[[Case], str | None]


@dataclass(frozen=True, slots=True)
class ClosedForm:
    """The time of an algorithm on a ``topology`` of equal links ("ring", "torus": neighbours joined; "star": around one switch), alone,
    with fair sharing, in one channel. ``hops``: links that a send crosses; ``formula``: for readers, in the module's terms."""

    algorithm: str
    topology: Shape
    hops: int
    formula: str
    _time: Callable[[Case], float]
    _rules: tuple[Rule, ...]

    def refusal(self, n: int, *, elements: int = 0, reduce_rate: float = math.inf, slices: int = 1, **options: Any) -> str | None:
        """Why the form is not exact here, or None. ``elements`` 0: a number that every division of the algorithm leaves whole."""
        case = Case(n, elements, 1, 1.0, 0.0, 0.0, reduce_rate, slices, options)
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
        return self._time(Case(n, elements, itemsize, bandwidth, self.hops * latency, overhead, reduce_rate, slices, options))


@dataclass(frozen=True, slots=True)
class Interval:
    """Two formulas that hold the time between them, where links are shared in ways that no formula follows. Derived by argument: at
    least the longest chain of messages as if each were alone, at most that chain with all on a port that can be there at once."""

    least: ClosedForm
    most: ClosedForm


FORMS: dict[tuple[str, str], ClosedForm] = {}
INTERVALS: dict[tuple[str, str], Interval] = {}


def form(
    collective: str, algorithm: str, topology: Shape, formula: str, *rules: Rule, hops: int = 0, sliced: bool = False
) -> Callable[[Callable[[Case], float]], Callable[[Case], float]]:
    def register(time: Callable[[Case], float]) -> Callable[[Case], float]:
        every = rules if sliced else (*rules, one_slice)
        FORMS[collective, algorithm] = ClosedForm(algorithm, topology, hops or (2 if topology == "star" else 1), formula, time, every)
        return time

    return register


def within(
    collective: str, algorithm: str, topology: Shape, least: str, most: str, *rules: Rule
) -> Callable[[Callable[[Case], tuple[float, float]]], Callable[[Case], tuple[float, float]]]:
    """Register an interval: a function of (at least, at most), both for 1 slice."""

    def register(ends: Callable[[Case], tuple[float, float]]) -> Callable[[Case], tuple[float, float]]:
        def one(formula: str, time: Callable[[Case], float]) -> ClosedForm:
            return ClosedForm(algorithm, topology, 2 if topology == "star" else 1, formula, time, (*rules, one_slice))

        INTERVALS[collective, algorithm] = Interval(one(least, lambda case: ends(case)[0]), one(most, lambda case: ends(case)[1]))
        return ends

    return register


def one_slice(case: Case) -> str | None:
    return None if case.slices == 1 else "this form is for 1 slice"


def power_of_two(case: Case) -> str | None:
    return None if case.n & (case.n - 1) == 0 else "exact for a power of two only: other numbers fold ranks together, which share links"


def three(case: Case) -> str | None:
    return None if case.n > 2 else "needs 3 ranks: of 2, both directions take the same link"


def even(parts: Callable[[Case], int], *, if_reducing: bool = False) -> Rule:
    """Equal pieces: unequal ones come at other times and then share links, or wait for each other's sums."""

    def rule(case: Case) -> str | None:
        pieces = parts(case)
        if case.elements % pieces == 0 or (if_reducing and case.reduce_rate == math.inf):
            return None
        return f"exact only if {pieces} divides the number of elements{', at a finite reduce rate' if if_reducing else ''}"

    return rule


def even_ranks(case: Case) -> str | None:
    return even(lambda case: case.n)(case)


def no_sums(case: Case) -> str | None:
    return None if case.reduce_rate == math.inf else "this form is for sums that take no time: else messages leave their lockstep"


def grouped(case: Case) -> str | None:
    """Groups must be told: those that an algorithm takes by default depend on the topology."""
    groups = case.options.get("groups") or ()
    if len({len(group) for group in groups}) == 1 and sum(map(len, groups)) == case.n:
        return None
    return "needs groups, told and of equal size"
