"""Times with what they were spent on: arrays [sizes, rows, items]; row 0 is the time [s], the others are terms of it."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T", bound=np.generic)


def latest(a: Floats, b: Floats) -> Floats:
    """Item by item, whichever is later, with its terms; ``a`` where they are equal."""
    if a.shape[1] == 1:
        return np.maximum(a, b)
    later = b[:, :1] > a[:, :1]
    return b if later.all() and a.shape == b.shape else np.where(later, b, a)


def picked(items: NDArray[T], at: Ints | int) -> NDArray[T]:
    """Items ``at`` along the last axis; a number: all of them, beginning with that."""
    if not isinstance(at, int):
        return items.take(at, axis=-1)
    return np.concatenate([items[..., at:], items[..., :at]], axis=-1) if at else items


def latest_item(times: Floats) -> Floats:
    """Shape [sizes, rows, 1]: the latest item of each size."""
    if times.shape[2] == 1:
        return times
    at = times[:, 0].argmax(axis=1)
    if len(at) == 1:
        return times[:, :, at]
    return np.take_along_axis(times, at[:, None, None], axis=2)


def latest_in(times: Floats, starts: Ints) -> Floats:
    """Shape [sizes, rows, segments]: the latest item of each segment [starts[i], starts[i+1])."""
    top = np.maximum.reduceat(times[:, 0], starts, axis=1)
    if times.shape[1] == 1:
        return top[:, None]
    length = np.diff(starts, append=times.shape[2])
    item = np.arange(times.shape[2])
    holds = np.where(times[:, 0] == np.repeat(top, length, axis=1), item, times.shape[2])
    first = np.minimum.reduceat(holds, starts, axis=1)
    return np.take_along_axis(times, np.broadcast_to(first[:, None], (len(times), times.shape[1], first.shape[1])), axis=2)


def added(times: Floats, seconds: Floats | float, row: int | None) -> Floats:
    """Later by ``seconds`` ([sizes or 1, items], or one number), which count to the term ``row`` (None: to no row but the time)."""
    if times.shape[1] == 1:
        return np.asarray(times[:, 0] + seconds)[:, None]
    out = times.copy()
    out[:, 0] += seconds
    if row is not None:
        out[:, row] += seconds
    return out
