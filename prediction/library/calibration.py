"""What a calibration found: constants that moved, errors by band, what the log does not say, and what to beware of."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import NamedTuple, Self

from prediction.library.constants import Constants
from prediction.library.sites import sites_of
from topologies.graph import Topology

SURE = 1.2816
"""Standard deviations to each side that hold four of five."""
BANDS = (("S", 64 << 10), ("M", 16 << 20), ("L", math.inf))
"""Sizes up to so many bytes."""


class Measured(NamedTuple):
    """The time of one call [s]; ``size_bytes``: the whole vector, as nccl-tests counts it."""

    collective: str
    size_bytes: int
    time_s: float


@dataclass(frozen=True, slots=True)
class Moved:
    """A constant in SI units; ``low`` to ``high`` holds the right value in four of five cases, ``error`` is its standard error."""

    before: float
    after: float
    low: float
    high: float
    error: float

    @classmethod
    def by(cls, before: float, after: float, spread: float, least: float, most: float) -> Self:
        """``spread``: standard deviation of the logarithm; ``least`` to ``most`` is possible."""
        wide = SURE * spread
        return cls(before, after, max(least, after * math.exp(-wide)), min(most, after * math.exp(wide)), after * spread)


@dataclass(frozen=True, slots=True)
class Fit:
    """Mean absolute error of time over the rows of a band, before and after [percent]."""

    rows: int
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Calibration:
    """``constants``: what to predict with, the priors if ``refused`` says why. ``bands``: S, M, L and "all". ``undetermined``: names of
    constants that the log says nothing about, and why; ``notes``: what to beware of."""

    constants: Constants
    moved: Mapping[str, Moved]
    undetermined: Mapping[str, str]
    bands: Mapping[str, Fit]
    notes: tuple[str, ...] = ()
    refused: str | None = None

    @property
    def told(self) -> dict[str, float]:
        """What moved, as ``Topology.constants`` has it; ``host`` goes with the floor, for any number of GPUs."""
        return {} if self.refused else {name: value.after for name, value in self.moved.items() if name != "host"}


def warnings(topology: Topology, ends: str) -> tuple[str, ...]:
    """What to beware of; ``ends``: names of constants at the end of what is possible."""
    sites = len(sites_of(topology))
    found = [f"{ends}: at the end of what is possible"] if ends else []
    if sites == 1:
        found.append("one node: predictions for several take the network as it usually is")
    if sites == 2:
        found.append("two nodes: a tree there sends half of what it sends on four or more; a log of more nodes says more about those")
    return tuple(found)


def band_of(nbytes: int) -> str:
    """S, M or L."""
    return next(name for name, most in BANDS if nbytes <= most)


def fits(points: Sequence[Measured], before: Sequence[float], after: Sequence[float]) -> dict[str, Fit]:
    """Errors by band and over all; ``before``, ``after``: predicted seconds of the points."""
    found: dict[str, list[tuple[float, float]]] = {}
    for point, was, now in zip(points, before, after, strict=True):
        for name in (band_of(point.size_bytes), "all"):
            found.setdefault(name, []).append((100 * abs(was / point.time_s - 1), 100 * abs(now / point.time_s - 1)))
    return {
        name: Fit(len(found[name]), fmean(e[0] for e in found[name]), fmean(e[1] for e in found[name]))
        for name in (*(name for name, _ in BANDS), "all") if name in found
    }  # fmt: skip
