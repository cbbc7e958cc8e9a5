"""A measured log -> the few constants that it moves, how sure they are, and what it says nothing about.

Least squares of the logarithm of the time, with a prior on each factor, so that what the log does not tell stays where it was. Between
simulations a call's time is the sum of what each constant makes it take, each times its factor: true while the slowest way stays the same.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from prediction.library.asked import Asked
from prediction.library.calibration import Calibration, Measured, Moved, fits, warnings
from prediction.library.constants import Constants
from prediction.library.movable import Knob, at_bound, knobs, moved
from prediction.library.predict import predict_library
from prediction.library.two_numbers import two_numbers
from sim.times import Progress
from topologies.errors import MeasurementError
from topologies.graph import Topology
from topologies.units import format_bytes

MOST_SIZES = 14
"""Of a collective that are simulated: a curve has no more to tell."""
NOISE, MOST_NOISE, LEAST_LEFT = 0.1, 0.15, 0.05
"""What prediction and measurement differ by for reasons no constant has, as a part of the time: at least and at most while it is fitted (a
prediction without a log is 10 % off in the median), and at least for the standard errors."""
KNOWN = 0.6
"""A constant is told by the log where the log narrows it to this part of what was known before."""
STEP, ROUNDS = 0.1, 3
"""Of the logarithm of a factor, to see what it does; rounds of fitting."""
ENOUGH = 1 << 10, 1 << 30
"""Sizes below and above which others tell no more."""
BAD, SO_SO = 0.3, 0.1
"""A fit is refused if half of the rows are off by more than ``BAD``, or the mean row by ``SO_SO`` with a constant at its bound."""
Array = np.ndarray[Any, np.dtype[np.float64]]


def calibrated(
    topology: Topology,
    measured: Sequence[Measured | tuple[str, int, float]],
    asked: Asked,
    constants: Constants | None = None,
    progress: Progress | None = None,
) -> Calibration:
    """Move what ``measured`` tells; two sizes of one collective are hit as they are (``two_numbers``). What the library chooses does not
    depend on the constants. Raises RingscopeError: nothing measured, a time or size that is none, what ``predict_library`` refuses."""
    priors = constants or Constants.of(topology, asked)
    points = _thinned(_points(measured))
    can, stay = knobs(topology, priors)
    runs = _Runs(topology, points, asked, priors, progress)
    if len(points) == 2 and points[0].collective == points[1].collective:
        factors, spreads, why = two_numbers(runs.sweep, can, [point.time_s for point in points], priors)
    else:
        factors, spreads, why = _fitted(runs, can, np.log([point.time_s for point in points]))
    return _judged(runs, can, factors, spreads, stay | why)


class _Runs:
    """Simulated times of the points that are looked at."""

    def __init__(self, topology: Topology, points: Sequence[Measured], asked: Asked, priors: Constants, progress: Progress | None) -> None:
        self.topology, self.points, self.asked, self.priors, self.progress = topology, points, asked, priors, progress
        self.known: dict[tuple[Constants, str, int], float] = {}
        self.before = self.sweep({})

    def sweep(self, factors: Mapping[Knob, float], only: Sequence[int] | None = None) -> list[float]:
        """Seconds of all points (of those numbered ``only``) with factors on the priors."""
        changed = moved(self.priors, factors)
        points = self.points if only is None else [self.points[i] for i in only]
        for name in dict.fromkeys(point.collective for point in points):
            sizes = [p.size_bytes for p in points if p.collective == name and (changed, name, p.size_bytes) not in self.known]
            for row in predict_library(self.topology, name, sizes, self.asked, changed, self.progress):
                self.known[changed, name, row.size_bytes] = row.time_s
        return [self.known[changed, point.collective, point.size_bytes] for point in points]


def _fitted(runs: _Runs, can: Sequence[Knob], wanted: Array) -> tuple[dict[Knob, float], dict[Knob, float], dict[str, str]]:
    """Factors, the standard deviations of their logarithms, and why others stay."""
    base = np.array(runs.before)
    each = {knob: _spent(runs, {}, knob, base) for knob in can}
    noise = _noise(each, base, wanted)
    use, why = _told(each, base, runs.points, noise)
    if not use:
        return {}, {}, why
    x, times = np.zeros(len(use)), base
    best, again = _cost(use, x, times, wanted, noise), True
    for _ in range(ROUNDS):
        spent = np.array([each[knob] for knob in use])
        new = _solved(use, x, times, spent, wanted, noise)
        factors = dict(zip(use, np.exp(new).tolist(), strict=True))
        found = np.array(runs.sweep(factors))
        off = float(np.max(np.abs(found / _sum(times, spent, new - x) - 1)))
        cost = _cost(use, new, found, wanted, noise)
        if cost >= best:  # the slowest way changed on the way: half as far
            new = (x + new) / 2
            factors = dict(zip(use, np.exp(new).tolist(), strict=True))
            found = np.array(runs.sweep(factors))
            cost = _cost(use, new, found, wanted, noise)
            if cost >= best:
                break
        done, best = best - cost < 1e-3 * best, cost
        for i, knob in enumerate(use):
            each[knob] = each[knob] * math.exp(new[i] - x[i])
        x, times = new, found
        if off > 0.05 and again:
            again = False
            each = {knob: _spent(runs, factors, knob, found) for knob in use}
        elif done:
            break
    left = max(LEAST_LEFT, float(np.sqrt(np.mean((np.log(times) - wanted) ** 2))))
    spreads = _spreads(use, np.array([each[knob] for knob in use]) / times, left)
    return dict(zip(use, np.exp(x).tolist(), strict=True)), dict(zip(use, spreads.tolist(), strict=True)), why


def _spent(runs: _Runs, factors: Mapping[Knob, float], knob: Knob, times: Array) -> Array:
    """Seconds of each call that a knob stands for."""
    down = factors.get(knob, 1.0) * math.exp(STEP) > knob.most
    step = -STEP if down else STEP
    other = np.array(runs.sweep({**factors, knob: factors.get(knob, 1.0) * math.exp(step)}))
    return np.clip((other - times) / math.expm1(step), 0, times)


def _noise(each: Mapping[Knob, Array], times: Array, wanted: Array) -> float:
    """What the constants would leave unexplained if all moved: a log that they hardly explain tells less."""
    none = np.zeros(len(each))
    spent = np.array(list(each.values()))
    left = np.log(_sum(times, spent, _solved(list(each), none, times, spent, wanted, NOISE))) - wanted
    return min(MOST_NOISE, max(NOISE, float(np.sqrt(np.mean(left**2)))))


def _told(each: Mapping[Knob, Array], times: Array, points: Sequence[Measured], noise: float) -> tuple[list[Knob], dict[str, str]]:
    """Knobs that the log tells, and why not the others: the one known least is left out until all others are known."""
    use, why = list(each), dict[str, str]()
    while use:
        parts = np.array([each[knob] for knob in use]) / times
        ratios = _spreads(use, parts, noise) / np.array([knob.spread for knob in use])
        worst = int(np.argmax(ratios))
        if ratios[worst] <= KNOWN:
            break
        knob = use.pop(worst)
        why |= dict.fromkeys(knob.moves, _why(knob, float(parts[worst].max()), points))
    return use, why


def _why(knob: Knob, most: float, points: Sequence[Measured]) -> str:
    sizes = sorted(point.size_bytes for point in points)
    if most < 0.3:
        span = f"sizes of {format_bytes(sizes[0])} to {format_bytes(sizes[-1])}"
        further = sizes[-1] < ENOUGH[1] if knob.rate else sizes[0] > ENOUGH[0]
        advice = f"; measure {'larger' if knob.rate else 'smaller'} ones" if further else ""
        return f"{span} spend at most {100 * most:.0f} % of their time on it{advice}"
    return "the log does not tell it from the others that moved; measure more sizes or another collective"


def _sum(times: Array, spent: Array, more: Array) -> Array:
    """Times after the logarithms of the factors grew by ``more``."""
    return np.maximum(times + np.expm1(more) @ spent, 0.05 * times)


def _solved(use: Sequence[Knob], x: Array, times: Array, spent: Array, wanted: Array, noise: float) -> Array:
    spreads = np.array([knob.spread for knob in use])

    def off(y: Array) -> Array:
        return np.concatenate([(np.log(_sum(times, spent, y - x)) - wanted) / noise, y / spreads])

    bounds = np.log([knob.least for knob in use]), np.log([knob.most for knob in use])
    inside = np.clip(x, bounds[0] + 1e-9, bounds[1] - 1e-9)
    return np.asarray(least_squares(off, inside, bounds=bounds, loss="soft_l1", f_scale=2.0).x)


def _cost(use: Sequence[Knob], x: Array, times: Array, wanted: Array, noise: float) -> float:
    """What ``_solved`` makes small."""
    off = np.concatenate([(np.log(times) - wanted) / noise, x / np.array([knob.spread for knob in use])])
    return float(np.sum(4 * (np.sqrt(1 + (off / 2) ** 2) - 1)))


def _spreads(use: Sequence[Knob], parts: Array, noise: float) -> Array:
    """Standard deviations of the logarithms of factors; ``parts``: what each is of every call's time."""
    known = parts @ parts.T / noise**2 + np.diag([knob.spread**-2 for knob in use])
    return np.asarray(np.sqrt(np.diag(np.linalg.inv(known))))


def _judged(
    runs: _Runs, can: Sequence[Knob], factors: dict[Knob, float], spreads: Mapping[Knob, float], undetermined: dict[str, str]
) -> Calibration:
    after = runs.sweep(factors)
    bands = fits(runs.points, runs.before, after)
    constants, priors = moved(runs.priors, factors), runs.priors
    told = {
        name: Moved.by(getattr(priors, name), getattr(constants, name), spreads[knob], *knob.ends(getattr(priors, name)))
        for knob in can if knob in factors for name in knob.moves
    }  # fmt: skip
    before, now = bands["all"].before, bands["all"].after
    half = median(abs(time / point.time_s - 1) for point, time in zip(runs.points, after, strict=True))
    ends = ", ".join(at_bound(factors))
    refused = None
    if half > BAD:
        refused = f"the median row would still be {100 * half:.0f} % off"
    elif ends and now > 100 * SO_SO:
        refused = f"the rows would still be {now:.0f} % off on average"
    elif not factors:
        refused = "no constant is told by this log"
    elif now >= before and before > 1:
        refused = f"the mean error would be {now:.1f} % after, {before:.1f} % before"
    if refused and ends:
        refused += f" with {ends} at the end of what is possible"
    notes = warnings(runs.topology, ends if not refused else "")
    return Calibration(priors if refused else constants, told, undetermined, bands, notes, refused)


def _points(measured: Sequence[Measured | tuple[str, int, float]]) -> list[Measured]:
    """By collective and size, repeats as their median."""
    times: dict[tuple[str, int], list[float]] = {}
    for name, size, time in measured:
        if size < 1 or not 0 < time < math.inf:
            raise MeasurementError(f"{name}: {size} bytes in {time} s is no measurement; both must be above 0")
        times.setdefault((name, size), []).append(time)
    if not times:
        raise MeasurementError("nothing is measured: a calibration takes two sizes of a collective or more")
    return [Measured(*key, median(found)) for key, found in sorted(times.items())]


def _thinned(points: Sequence[Measured]) -> list[Measured]:
    """At most ``MOST_SIZES`` a collective, evenly spread, the first and the last among them."""
    found = []
    for name in dict.fromkeys(point.collective for point in points):
        curve = [point for point in points if point.collective == name]
        few = min(len(curve), MOST_SIZES)
        found += [curve[round(i * (len(curve) - 1) / max(1, few - 1))] for i in range(few)]
    return found
