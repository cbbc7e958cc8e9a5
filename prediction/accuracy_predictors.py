"""What predicts times and what calibrates it, as the accuracy run calls them; a failure is a reason, not an end."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from typing import Any, Protocol

from prediction.accuracy_tables import Point
from prediction.library.asked import Asked
from prediction.library.constants import Constants
from topologies.errors import MeasurementError, RingscopeError, nearest, quoted
from topologies.graph import Topology

Measured = Sequence[tuple[str, int, float]]
"""Collective, size [B], time [s]."""
Calibrate = Callable[[Topology, Measured, Asked, Constants], Constants]


class Predicted(Protocol):
    """One row of a prediction, as ``prediction.library.predict`` has it."""

    @property
    def size_bytes(self) -> int: ...
    @property
    def time_s(self) -> float: ...
    @property
    def low_s(self) -> float: ...
    @property
    def high_s(self) -> float: ...
    @property
    def algorithm(self) -> str: ...
    @property
    def protocol(self) -> str: ...


Predict = Callable[[Topology, str, Sequence[int], Asked, Constants], Sequence[Predicted]]


@dataclass(frozen=True, slots=True)
class Plain:
    """A baseline's row: no interval, no choice."""

    size_bytes: int
    time_s: float
    algorithm: str = ""
    protocol: str = ""

    @property
    def low_s(self) -> float:
        return self.time_s

    @property
    def high_s(self) -> float:
        return self.time_s


def library_predictor(ablate: Sequence[str] = ()) -> Predict:
    """The library's prediction, without the parts named. Raises MeasurementError for a part it does not know."""
    module: Any = import_module("prediction.library.predict")
    known: Iterable[str] = getattr(module, "ABLATIONS", ())
    for name in ablate:
        if name not in known:
            raise MeasurementError(f"ablate: {quoted(name)} is not a part that can be left out{nearest(name, known) or '; there is none'}")
    found: Predict = partial(module.predict_library, ablate=frozenset(ablate)) if ablate else module.predict_library
    return found


def library_calibration() -> Calibrate | None:
    """The calibration, if there is one: of a refused fit the constants as they were."""
    try:
        module: Any = import_module("prediction.library.calibrate")
    except ModuleNotFoundError:
        return None

    def constants(topology: Topology, measured: Measured, asked: Asked, before: Constants) -> Constants:
        found: Constants = module.calibrated(topology, measured, asked, before).constants
        return found

    return constants


def by_size(
    predict: Callable[[Sequence[int]], Sequence[Predicted]], points: Sequence[Point]
) -> tuple[dict[int, Predicted], dict[str, int]]:
    """Predictions by size, and how many points failed for each reason. Where all sizes at once fail, one by one, so that one size does
    not take the others with it; but none where the smallest and the largest fail alike, or where time was up."""

    def some(sizes: Sequence[int]) -> dict[int, Predicted]:
        rows = predict(sizes)
        if sorted(row.size_bytes for row in rows) != list(sizes):
            raise MeasurementError(f"{len(rows)} times for {len(sizes)} sizes")
        if not all(0 < row.low_s <= row.time_s <= row.high_s < math.inf for row in rows):
            raise MeasurementError("a time is not above 0 and finite, or outside its interval")
        return {row.size_bytes: row for row in rows}

    sizes = sorted({point.size_bytes for point in points})
    try:
        return some(sizes), {}
    except TimeoutError as error:
        return {}, {reason(error): len(points)}
    except Exception as error:  # a defect of one prediction must not end the run
        if len(sizes) == 1:
            return {}, {reason(error): len(points)}
    found: dict[int, Predicted] = {}
    why: dict[int, str] = {}
    for size in (sizes[0], sizes[-1], *sizes[1:-1]):
        try:
            found |= some([size])
        except Exception as error:
            why[size] = reason(error)
        if len(why) == 2 and not found and len({*why.values()}) == 1:
            why |= dict.fromkeys(sizes, why[size])
            break
    return found, dict(Counter(why[point.size_bytes] for point in points if point.size_bytes in why))


def reason(error: Exception) -> str:
    """A refusal in its own words; anything else is a defect and is called so."""
    text = " ".join(str(error).split())[:300]
    return text if isinstance(error, RingscopeError | TimeoutError) else f"defect: {type(error).__name__}: {text}"
