"""Predicted against measured times, and what they come to: median, mean and spread of the error, by band, class and cluster.

Errors are of time, |predicted / measured - 1|, in percent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from prediction.library.interval import band

BANDS = ("S", "M", "L")
"""Up to 64 KiB, up to 16 MiB, above."""
_DIGITS = 3
Key = tuple[str, str, int]


@dataclass(frozen=True, slots=True)
class Judged:
    """One measured point and one prediction of it [s]; without an interval ``low_s`` and ``high_s`` are the prediction.

    ``apart``: why it is not counted with the others (outlier, noisy, uncertain), or empty. ``told``: the point was given to the method.
    ``part``: which of several questions to the method it belongs to. ``reach``: what joins the GPUs, as intervals tell it.
    """

    dataset: str
    cluster: str
    kind: str
    collective: str
    size_bytes: int
    measured_s: float
    predicted_s: float
    low_s: float
    high_s: float
    choice: str = ""
    apart: str = ""
    told: bool = False
    part: str = ""
    reach: str = ""

    @property
    def key(self) -> Key:
        return self.dataset, self.collective, self.size_bytes

    @property
    def error(self) -> float:
        """Signed [%]: above 0 where the prediction is too slow."""
        return 100 * (self.predicted_s / self.measured_s - 1)

    @property
    def band(self) -> str:
        return band(self.size_bytes)

    @property
    def covered(self) -> bool:
        return self.low_s <= self.measured_s <= self.high_s

    @property
    def width(self) -> float:
        """Of the interval, of the prediction [%]."""
        return 100 * (self.high_s - self.low_s) / self.predicted_s


def counted(rows: Iterable[Judged]) -> list[Judged]:
    """Those that count: not apart, and not told to the method."""
    return [row for row in rows if not row.apart and not row.told]


def summary(rows: Sequence[Judged]) -> dict[str, Any]:
    """Error of all rows, by band, by class (and its bands), by collective, by cluster; ``cluster_weighted``: each cluster counts the
    same. Percent; None where there is no row."""
    return {
        **_errors(rows),
        "bands": {band: _errors(found) for band, found in _by(rows, lambda row: row.band, BANDS).items()},
        "classes": {
            kind: {**_errors(found), "bands": {band: _errors(some) for band, some in _by(found, lambda row: row.band, BANDS).items()}}
            for kind, found in _by(rows, lambda row: row.kind).items()
        },
        "collectives": {name: _errors(found) for name, found in _by(rows, lambda row: row.collective).items()},
        "clusters": {name: _errors(found) for name, found in _by(rows, lambda row: row.cluster).items()},
        "cluster_weighted": _weighted(rows),
    }


def intervals(rows: Sequence[Judged]) -> dict[str, Any]:
    """How many measured times lie inside the interval, and how wide it is in the median [%], over all and by band."""
    return {
        **_inside(rows),
        "bands": {band: _inside(found) for band, found in _by(rows, lambda row: row.band, BANDS).items()},
    }


def same(rows: Iterable[Judged], keys: Iterable[Key]) -> list[Judged]:
    """The rows of these points."""
    wanted = set(keys)
    return [row for row in rows if row.key in wanted]


def _by(rows: Sequence[Judged], of: Callable[[Judged], str], order: Sequence[str] = ()) -> Mapping[str, list[Judged]]:
    names = order or sorted({of(row) for row in rows})
    return {name: found for name in names if (found := [row for row in rows if of(row) == name])}


def _errors(rows: Sequence[Judged]) -> dict[str, Any]:
    if not rows:
        return {"rows": 0, "mape": None, "median": None, "p90": None, "bias": None}
    signed = np.array([row.error for row in rows])
    size = np.abs(signed)
    return {
        "rows": len(rows), "mape": _short(size.mean()), "median": _short(np.median(size)), "p90": _short(np.quantile(size, 0.9)),
        "bias": _short(np.median(signed)),
    }  # fmt: skip


def _weighted(rows: Sequence[Judged]) -> dict[str, Any]:
    """Mean over clusters of their mean error; the median of rows that weigh one over the rows of their cluster."""
    clusters = _by(rows, lambda row: row.cluster)
    if not clusters:
        return {"clusters": 0, "mape": None, "median": None}
    pairs = sorted((abs(row.error), 1 / len(found)) for found in clusters.values() for row in found)
    weights = np.cumsum([weight for _, weight in pairs])
    middle = int(np.searchsorted(weights, weights[-1] / 2))
    mape = np.mean([np.mean([abs(row.error) for row in found]) for found in clusters.values()])
    return {"clusters": len(clusters), "mape": _short(mape), "median": _short(pairs[middle][0])}


def _inside(rows: Sequence[Judged]) -> dict[str, Any]:
    if not rows:
        return {"rows": 0, "coverage80": None, "interval_width_median": None}
    covered, widths = [row.covered for row in rows], [row.width for row in rows]
    return {"rows": len(rows), "coverage80": _short(100 * np.mean(covered)), "interval_width_median": _short(np.median(widths))}


def _short(value: Any) -> float:
    return round(float(value), _DIGITS)
