"""Curves against curves in log time: what the model's own error explains, and which cause explains the rest."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from prediction.doctor.causes import CAUSES, Cause
from prediction.doctor.scene import Array, Scene
from prediction.library.interval import band
from prediction.library.predict import Row
from sim.times import Progress

MOST = {"S": 0.3, "M": 0.3, "L": 0.11}
"""The model's error as a standard deviation in log time, at most: the slow side of an interval holds clusters that were not well."""
NOISE = 0.05
"""Of a measurement, from one size to the next, and of the model's choice beside NCCL's."""
ONE_ODD, ODD = 0.3, 0.7
"""How often one size is disturbed, or chosen otherwise than here, and by how much in log time."""
REACH = 5.0
"""Doublings over which an error of the model fades into another."""
UNKNOWN, UNLIKE = 0.04, 0.8
"""Prior of a cause not listed, and how far in log time it may bend a curve."""
SAME = 1.5
"""Log likelihood within which a log does not tell two causes apart."""
FAR = 4.0
"""Standard deviations off at the largest size beyond which a severity is not looked at any further."""
Z80 = 1.2815515655446004
"""Standard deviations from the middle to an end of an 80 % interval."""
_STEP = 0.08
_VISIBLE = 0.05
"""In log time: a cause that changes less is not to be seen."""


@dataclass(frozen=True, slots=True)
class Fit:
    """A cause at the severity that fits best: ``evidence`` of all severities as a log likelihood, ``times`` [s] by size."""

    cause: Cause
    severity: float
    evidence: float
    best: float
    times: Array


def error_of(rows: Sequence[Row], doubt: float = 1.0) -> Array:
    """The model's error as a covariance of log times: as wide as the rows' intervals say, alike where sizes are near. ``doubt``: of the
    small sizes, where it is not known who launches."""
    bands = [band(row.size_bytes) for row in rows]
    told = [min(math.log(row.high_s / row.low_s) / 2 / Z80, MOST[of]) for row, of in zip(rows, bands, strict=True)]
    spread = np.array([error * (doubt if of == "S" else 1.0) for error, of in zip(told, bands, strict=True)])
    place = np.log2([row.size_bytes for row in rows])
    near = np.exp(-np.abs(place[:, None] - place[None, :]) / REACH)
    return np.asarray(spread[:, None] * spread[None, :] * near + NOISE**2 * np.eye(len(rows)))


def likelihood(residual: Array, covariance: Array) -> float:
    """Log density of a normal deviate, but for what is the same for all; one size may be odd."""
    n = len(residual)
    stack = np.repeat(covariance[None], n + 1, axis=0)
    stack[np.arange(1, n + 1), np.arange(n), np.arange(n)] += ODD**2
    _, logdet = np.linalg.slogdet(stack)
    weight = np.log([1 - ONE_ODD, *[ONE_ODD / n] * n])
    terms = weight - 0.5 * (residual @ np.linalg.solve(stack, residual[:, None])[:, :, 0].T + logdet)
    return float(terms.max() + np.log(np.exp(terms - terms.max()).sum()))


def deviation(residual: Array, covariance: Array, chosen: Array) -> tuple[float, float]:
    """Mean of the chosen residuals, and how many standard deviations that is."""
    weight = chosen / chosen.sum()
    mean = float(weight @ residual)
    return mean, mean / math.sqrt(float(weight @ covariance @ weight))


def fits(scene: Scene, measured: Array, covariance: Array, *, high: bool, progress: Progress | None = None) -> list[Fit]:
    """Every cause that can be and would be seen here. ``measured``: seconds by size."""
    found = []
    for done, cause in enumerate(CAUSES):
        if progress:
            progress(done, len(CAUSES))
        if cause.high == high and (fit := _fit(cause, scene, np.log(measured), covariance)):
            found.append(fit)
    return found


def confidences(found: Sequence[Fit], residual: Array, covariance: Array) -> list[tuple[Fit, float]]:
    """Causes by how much is to be believed of each, likeliest first; what is missing to 1 is a cause not listed."""
    place = np.arange(len(residual))
    unlike = covariance + UNLIKE**2 * np.exp(-np.abs(place[:, None] - place[None, :]) / 4)
    scores = np.array([math.log(fit.cause.prior) + fit.evidence for fit in found] + [math.log(UNKNOWN) + likelihood(residual, unlike)])
    shares = np.exp(scores - scores.max())
    shares /= shares.sum()
    return sorted(zip(found, shares[:-1].tolist(), strict=True), key=lambda pair: -pair[1])


def _fit(cause: Cause, scene: Scene, measured: Array, covariance: Array) -> Fit | None:
    severities, curves, tried = _curves(cause, scene, measured, covariance)
    if not severities:
        return None
    scores = np.array([likelihood(measured - curve, covariance) for curve in curves])
    best = int(scores.argmax())
    evidence = float(scores.max() + math.log(np.exp(scores - scores.max()).sum() / tried))
    return Fit(cause, severities[best], evidence, float(scores[best]), np.exp(curves[best]))


def _curves(cause: Cause, scene: Scene, measured: Array, covariance: Array) -> tuple[list[float], list[Array], int]:
    """Log times by severity, finely where it may be any, and of how many severities these are what is near the largest size measured;
    those that show nothing are left out."""
    last = replace(scene, sizes=scene.sizes[-1:])
    ends = [_times(cause, last, severity) for severity in cause.severities]
    apart = [math.inf if end is None else float(end[0] - measured[-1]) for end in ends]
    near = [abs(gap) < FAR * math.sqrt(covariance[-1, -1]) for gap in apart]
    if cause.smooth:  # what lies between two severities, one too mild and one too bad
        sides = [x > 0 for x in apart]
        ends_near = [ok and i in (0, len(near) - 1) for i, ok in enumerate(near)]
        near = [ok or any(sides[j] != sides[i] for j in (i - 1, i + 1) if 0 <= j < len(sides)) for i, ok in enumerate(ends_near)]
        near = [ok and math.isfinite(x) for ok, x in zip(near, apart, strict=True)]
    found = [(x, _times(cause, scene, x)) for x, ok in zip(cause.severities, near, strict=True) if ok]
    severities = [x for x, curve in found if curve is not None]
    curves = [curve for _, curve in found if curve is not None]
    tried = sum(math.isfinite(gap) for gap in apart)
    if cause.smooth and len(severities) > 1:
        axis = np.log(severities)
        fine = np.linspace(axis[0], axis[-1], 1 + math.ceil((axis[-1] - axis[0]) / _STEP))
        tried = 1 + math.ceil(math.log(cause.severities[-1] / cause.severities[0]) / _STEP)
        table = np.array(curves)
        severities = np.exp(fine).tolist()
        curves = list(np.array([np.interp(fine, axis, column) for column in table.T]).T)
    seen = [bool(np.abs(curve - np.log(scene.times)).max() > _VISIBLE) for curve in curves]
    return [s for s, ok in zip(severities, seen, strict=True) if ok], [c for c, ok in zip(curves, seen, strict=True) if ok], max(1, tried)


@lru_cache(maxsize=2048)
def _times(cause: Cause, scene: Scene, severity: float) -> Array | None:
    """Log times; None where the cause cannot be."""
    try:
        altered = cause.alter(scene, severity)
        times = altered.times if isinstance(altered, Scene) else altered
    except (ValueError, LookupError):  # RingscopeError, and what a library cannot be forced to
        return None
    return None if times is None else np.log(times)
