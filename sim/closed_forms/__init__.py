"""Closed forms in alpha, beta and gamma: an independent check of the engines, which must not import this."""

from __future__ import annotations

from sim.closed_forms import classic, exchange, groups, intervals, patterns, rooted  # noqa: F401  they register their forms
from sim.closed_forms.base import FORMS, INTERVALS, ClosedForm, Interval

__all__ = ["FORMS", "INTERVALS", "ClosedForm", "Interval", "interval", "lookup"]


def lookup(collective_name: str, algorithm_name: str) -> ClosedForm | None:
    """The closed form of an algorithm, or None: there is none, or none that is exact."""
    return FORMS.get((collective_name, algorithm_name))


def interval(collective_name: str, algorithm_name: str) -> Interval | None:
    """The interval that holds the time of an algorithm without a closed form, or None."""
    return INTERVALS.get((collective_name, algorithm_name))
