"""Two numbers of a curve -> two factors: the small call's time sets the floor, the large one's the rate that limits it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Protocol

from prediction.library.constants import Constants
from prediction.library.movable import Knob

CLOSE, ROUNDS = 0.002, 4
"""Both numbers are hit if they are met so closely, as a part of the time; after so many rounds it is left at that."""
LIMITS, NOTHING = 0.4, 0.2
"""Parts of its time that a call spends on the rate that limits it, and on one that it says nothing about."""
_STEP = 0.1


class Sweep(Protocol):
    """Seconds of the points (of those numbered ``only``) with factors on the priors."""

    def __call__(self, factors: Mapping[Knob, float], only: Sequence[int] | None = None) -> list[float]: ...


def two_numbers(
    sweep: Sweep, can: Sequence[Knob], wanted: Sequence[float], priors: Constants
) -> tuple[dict[Knob, float], dict[Knob, float], dict[str, str]]:
    """Factors, standard deviations of their logarithms, and why others stay. ``wanted``: seconds at the smaller and the larger size.

    Where the floor would have to leave its bounds, it and all hops take one common factor. A number that is not spent on a constant does
    not move it: then it is not hit."""
    knob = {each.name: each for each in can}
    times = sweep({})
    rate, spent = _limiting(sweep, knob, times)
    late, slope = _lasting(sweep, can, times[0], wanted[0], priors)
    slow, wide = 1.0, 1.0
    for _ in range(ROUNDS if late or rate else 0):
        more = max(0.02, 1 + (wanted[0] - times[0]) / slope) if late else 1.0
        shift = slope * (more - 1) if len(late) == 1 else 0.0  # hops pass while the large call still sends
        wider = rate.held(wide * max(0.05, 1 + (wanted[1] - times[1] - shift) / spent)) / wide if rate else 1.0
        slow, wide = slow * more, wide * wider
        found = sweep(_factors(late, slow, rate, wide))
        if all(math.isclose(a, b, rel_tol=CLOSE) for a, b in zip(found, wanted, strict=True)):
            break
        slope = _secant(found[0] - times[0], more, slope)
        spent = _secant(found[1] - times[1] - shift, wider, spent)
        times = found
    factors = _factors(late, slow, rate, wide)
    why = {name: "two numbers tell two constants" for each in can if each not in factors for name in each.moves}
    return factors, {each: each.spread / 2 for each in factors}, why


def _factors(late: Sequence[Knob], slow: float, rate: Knob | None, wide: float) -> dict[Knob, float]:
    return {each: each.held(slow) for each in late} | ({rate: wide} if rate else {})


def _lasting(sweep: Sweep, can: Sequence[Knob], time: float, wanted: float, priors: Constants) -> tuple[list[Knob], float]:
    """What the smaller call's time moves, and the seconds it spends on it."""
    floor, late = next(each for each in can if each.name == "floor"), [each for each in can if not each.rate]
    spent = time if time <= 1.001 * priors.host else priors.floor
    if spent >= NOTHING * time:
        return ([floor], spent) if floor.least <= 1 + (wanted - time) / spent <= floor.most else (late, time)
    spent = (sweep(dict.fromkeys(late, math.exp(_STEP)), [0])[0] - time) / math.expm1(_STEP)
    return (late, spent) if spent >= NOTHING * time else ([], time)


def _limiting(sweep: Sweep, knob: Mapping[str, Knob], times: Sequence[float]) -> tuple[Knob | None, float]:
    """The rate that the larger call spends its time on, and the seconds it does."""
    rest = times[1] - times[0]
    if "network rate" in knob:
        net = knob["network rate"]
        spent = (sweep({net: math.exp(_STEP)}, [1])[0] - times[1]) / math.expm1(_STEP)
        if spent >= LIMITS * times[1]:
            return net, spent
        rest -= max(0.0, spent)
    return (knob["inside rate"], rest) if rest >= NOTHING * times[1] else (None, times[1])


def _secant(change: float, factor: float, slope: float) -> float:
    """Seconds that a factor stands for, after it grew by ``factor`` and the time by ``change``; within reason of what was thought."""
    if abs(factor - 1) < 1e-4:
        return slope * factor
    return min(max(change / (factor - 1), 0.2 * slope), 5 * slope) * factor
