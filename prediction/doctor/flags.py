"""What a log shows by itself, without any prediction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from statistics import median

from prediction.tables import Row, Table
from topologies.units import format_bytes

APART = 0.15
"""In log time, in the median: the two halves of a log that should agree."""
FALLS = 0.8
"""A larger size that takes less than this part of a smaller one's time."""
SPIKE = 1.6
"""Times what the sizes beside it let expect."""
_MANY = 5


def flags(run: Sequence[Table]) -> tuple[str, ...]:
    """In words, each with its numbers."""
    rows = [row for table in run for row in table.rows if row.time_s > 0]
    found = [_wrong(rows), _halves(rows, run[0].collective), _falls(rows), _spikes(rows)]
    found += [note for table in run for note in table.notes if "versions of about 2019" in note or "the header lists" in note]
    return tuple(dict.fromkeys(flag for flag in found if flag))


def by_size(rows: Sequence[Row], in_place: bool = False) -> dict[int, float]:
    """Seconds by size, rising, the median where one stands several times."""
    times: dict[int, list[float]] = {}
    for row in rows:
        if row.in_place == in_place and row.size_bytes > 0 and row.time_s > 0:
            times.setdefault(row.size_bytes, []).append(row.time_s)
    return {size: median(times[size]) for size in sorted(times)}


def _wrong(rows: Sequence[Row]) -> str:
    bad = [row for row in rows if row.wrong]
    lines = ", ".join(str(row.line) for row in bad[:_MANY])
    return f"#wrong above 0 in {len(bad)} rows (line {lines}): memory, a link or the library computes wrongly; do not use it" if bad else ""


def _halves(rows: Sequence[Row], collective: str | None) -> str:
    out, into = by_size(rows), by_size(rows, in_place=True)
    gaps = [math.log(into[size] / out[size]) for size in out if size in into]
    if len(gaps) < 3 or abs(gap := median(gaps)) < APART:
        return ""
    return f"in place takes {math.exp(gap):.2f} of the time of out of place, in the median: they should agree but for {collective} copying"


def _falls(rows: Sequence[Row]) -> str:
    points = list(by_size(rows).items())
    falls = [(a, b, y / x) for (a, x), (b, y) in pairwise(points) if y < FALLS * x]
    if not falls:
        return ""
    a, b, part = min(falls, key=lambda fall: fall[2])
    return f"time falls from {format_bytes(a)} to {format_bytes(b)}, to {part:.2f}: a choice of the library that costs, or a disturbed row"


def _spikes(rows: Sequence[Row]) -> str:
    points = list(by_size(rows).items())
    high = [b for (a, x), (b, y), (c, z) in zip(points, points[1:], points[2:], strict=False) if y > SPIKE * max(x, z)]
    shown = ", ".join(map(format_bytes, high[:_MANY]))
    return f"slower than both neighbours by more than {SPIKE} at {shown}: something else ran, or single rows are disturbed" if high else ""
