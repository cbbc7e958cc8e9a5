"""How large a schedule will be, without building it: power laws through those of a few ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.registry import Algorithm
from algorithms.steps import Stream, in_blocks
from topologies.errors import RingscopeError

PROBES = (64, 256)
"""Numbers of ranks from which larger schedules are extrapolated; every algorithm's rule admits powers of two."""
FIXED = ("root", "groups", "dims", "rows", "distance", "servers")
"""Options that may not exist among fewer ranks."""


@dataclass(frozen=True, slots=True)
class Expected:
    """``sends`` in all, those that have to be there at once (``widest``: the largest step of a stream, or all), ``pairs`` of places
    that send to each other, and ``chunks`` that all sends move."""

    sends: float = 0.0
    widest: float = 0.0
    pairs: float = 0.0
    chunks: float = 0.0


def expected(
    algorithm: Algorithm, nranks: int, *, channels: int = 1, slices: int = 1, options: Mapping[str, Any] | None = None
) -> Expected:
    """All 0 where it is small (up to 256 ranks in one channel and slice) or the algorithm refuses the probes: the schedule itself is
    then the judge."""
    if nranks <= PROBES[1] and channels * slices == 1:
        return Expected()
    kept = {key: value for key, value in (options or {}).items() if key not in FIXED}
    try:
        few, many = (_measured(algorithm, n, min(channels, 2), min(slices, 2), kept) for n in PROBES)
    except RingscopeError:
        return Expected()
    copies = channels / min(channels, 2) * slices / min(slices, 2)
    sends, widest, pairs, chunks = (_power_law(a, b, nranks) for a, b in zip(few, many, strict=True))
    return Expected(sends * copies, widest * copies, pairs, chunks * copies)


def _power_law(few: int, many: int, nranks: int) -> float:
    power = math.log(many / few, PROBES[1] / PROBES[0]) if many > few > 0 else 0.0
    return float(many * (nranks / PROBES[1]) ** power)


def _measured(algorithm: Algorithm, nranks: int, channels: int, slices: int, options: Mapping[str, Any]) -> tuple[int, int, int, int]:
    """Sends, widest, pairs and chunks of a schedule that is there."""
    if channels == slices == 1:
        schedule = algorithm.stream(nranks, **options)
    else:
        schedule = algorithm.build(nranks, channels=channels, slices=slices, **options)
    blocks = list(in_blocks(schedule))
    pairs = len(np.unique(np.concatenate([block.src * schedule.places + block.dst for block in blocks])))
    widest = schedule.widest if isinstance(schedule, Stream) else len(schedule)
    return len(schedule), widest, pairs, sum(block.chunks for block in blocks)
