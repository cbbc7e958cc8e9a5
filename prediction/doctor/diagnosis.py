"""What a doctor says of a log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prediction.library.interval import Band

Verdict = Literal["healthy", "low", "high", "unknown"]


@dataclass(frozen=True, slots=True)
class Finding:
    """A cause, and how much is to be believed of it (0 to 1): what was seen, and what to check."""

    id: str
    confidence: float
    evidence: str
    check: str


@dataclass(frozen=True, slots=True)
class Judged:
    """A band of sizes: ``ratio`` of measured to expected bandwidth, by how many standard deviations of the model's error it is off
    (below 0: slower), and the 80 % interval of the ratio."""

    band: Band
    ratio: float
    deviation: float
    low: float
    high: float
    sizes: int


@dataclass(frozen=True, slots=True)
class Point:
    """One size: seconds, and the 80 % interval of what was expected."""

    size_bytes: int
    measured_s: float
    expected_s: float
    low_s: float
    high_s: float
    algorithm: str
    protocol: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """``ratio``: measured to expected bandwidth in band ``band``, the one that tells; ``alike``: causes that this log does not tell
    apart; ``other``: what is left for a cause not listed; ``reason``: why the verdict is unknown."""

    verdict: Verdict
    reason: str = ""
    ratio: float | None = None
    band: Band | None = None
    causes: tuple[Finding, ...] = ()
    alike: tuple[str, ...] = ()
    other: float | None = None
    bands: tuple[Judged, ...] = ()
    points: tuple[Point, ...] = ()
    machine: str = ""
    collective: str | None = None
    nranks: int | None = None
    version: str = ""
    launch: str = ""
    flags: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
