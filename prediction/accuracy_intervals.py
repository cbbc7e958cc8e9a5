"""80 % intervals judged on clusters that they do not come from.

The table of ``prediction.library.interval`` comes from public measurements. Whoever judges it on the same measurements would count too many
points inside; so for each cluster the same percentiles are taken of the other clusters and laid around its predictions.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from prediction.accuracy_errors import Judged

LOW, HIGH = 0.1, 0.9


def left_one_out(rows: Sequence[Judged]) -> list[Judged]:
    """The same rows, in order, with intervals of the other clusters: of their rows of the same band and reach, where there is none of the
    same band. A row that no other cluster has anything to say about keeps its interval."""
    found: dict[tuple[str, str, str], tuple[float, float] | None] = {}
    made = []
    for row in rows:
        key = row.cluster, row.band, row.reach
        if key not in found:
            others = [other for other in rows if other.cluster != row.cluster and other.band == row.band]
            found[key] = ratios([other for other in others if other.reach == row.reach] or others)
        ends = found[key]
        made.append(replace(row, low_s=row.predicted_s * ends[0], high_s=row.predicted_s * ends[1]) if ends else row)
    return made


def ratios(rows: Iterable[Judged]) -> tuple[float, float] | None:
    """Tenth and ninetieth percentile of measured over predicted time, every cluster weighing the same; 1 lies between, as a prediction lies
    in its interval. None of no rows."""
    by: dict[str, list[float]] = {}
    for row in rows:
        by.setdefault(row.cluster, []).append(row.measured_s / row.predicted_s)
    if not by:
        return None
    pairs = sorted((ratio, 1 / len(some)) for some in by.values() for ratio in some)
    values, weights = np.array(pairs).T
    middles = (np.cumsum(weights) - weights / 2) / weights.sum()
    low, high = np.interp([LOW, HIGH], middles, values)
    return min(1.0, float(low)), max(1.0, float(high))
