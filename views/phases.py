"""What happens in each step, in words: derived from operations and ranks, never from an algorithm's name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.schedule import Op, Schedule
from views.layout import Kind

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Phase:
    """Text keys: the short name of a step's phase and the sentence that explains it."""

    name: str
    sentence: str


def step_slices(s: Schedule) -> list[slice]:
    """The sends of each step that has any."""
    edges = np.flatnonzero(np.diff(s.step, prepend=-1, append=s.steps))
    return [slice(lo, hi) for lo, hi in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]


def phases(s: Schedule, kind: Kind) -> list[Phase]:
    """One phase for each of ``step_slices``, for a schedule drawn as ``kind``."""
    return [_phase(s, kind, of) for of in step_slices(s)]


def _phase(s: Schedule, kind: Kind, of: slice) -> Phase:
    reducing = s.op[of] == Op.REDUCE
    up, down = bool(reducing.any()), not bool(reducing.all())
    if up and down:
        return _named("mixed")
    if kind == "hub":
        return _named(("switch-up" if up else "switch-down") if s.in_network else ("push" if up else "pull"))
    if kind == "tree":
        return _named("tree-up" if up else "tree-down")
    pattern = _pattern(s.src[of], s.dst[of], s.nranks)
    if bool((s.count[of] == len(s.weights)).all()):
        return _named(_whole(kind, up, pattern))
    name = "reduce-scatter" if up else "all-gather"
    return Phase(f"phase.{name}", f"say.{name}.{pattern}")


def _whole(kind: Kind, up: bool, pattern: str) -> str:
    """The phase of a step in which every send carries all the data."""
    if pattern == "pair":
        return "exchange" if up else "unfold"
    if kind == "path":
        return "reduce" if up else "broadcast"
    return "fold" if up else "unfold"


def _pattern(src: Ints, dst: Ints, nranks: int) -> str:
    away = (dst - src) % nranks
    there, back = set(zip(src.tolist(), dst.tolist(), strict=True)), set(zip(dst.tolist(), src.tolist(), strict=True))
    if bool((away == 1).all()) and len(there) == nranks:
        return "right"
    if bool(np.isin(away, (1, nranks - 1)).all()) and len(there) == 2 * nranks:
        return "both"
    return "pair" if there == back else "direct"


def _named(name: str) -> Phase:
    return Phase(f"phase.{name}", f"say.{name}")
