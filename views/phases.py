"""What happens in each step, in words: derived from operations and ranks, never from an algorithm's name."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from algorithms.cells import cells
from algorithms.schedule import Op, Schedule
from views.layout import Kind, neighbours_only


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
    """One phase for each of ``step_slices``, for a schedule drawn as ``kind``. A sentence is used only where it is true of every
    send; else the plain one: who receives adds, or stores."""
    steps = step_slices(s)
    split = {_pattern(s, of) for of in steps if not _whole(s, of)}
    steady = split <= {"pair"} or neighbours_only(s)  # else a single step may look like a ring or an exchange by chance
    return [_phase(s, kind, of, steady) for of in steps]


def _phase(s: Schedule, kind: Kind, of: slice, steady: bool) -> Phase:
    reducing = s.op[of] == Op.REDUCE
    up, down = bool(reducing.any()), not bool(reducing.all())
    if up and down:
        return _named("mixed")
    if kind == "hub":
        return _named(("switch-up" if up else "switch-down") if s.in_network else ("push" if up else "pull"))
    if kind == "tree":
        return _named("tree-up" if up else "tree-down")
    plain = _named("add" if up else "store")
    if s.in_network or s.collective.end == "peer":  # a pattern only looks like a ring or like pairs that swap halves
        return plain
    pattern = _pattern(s, of)
    if not _whole(s, of):
        name = "reduce-scatter" if up else "all-gather"
        if steady and pattern != "direct":
            return Phase(f"phase.{name}", f"say.{name}.{pattern}")
        return Phase(f"phase.{name}", f"say.{name}.direct") if _straight(s, Op.REDUCE if up else Op.COPY) else plain
    if up and pattern == "pair":
        return _named("exchange")
    if kind == "path":
        return _named("reduce" if up else "broadcast")
    src, dst = s.src[of], s.dst[of]
    aside = len(np.unique(src)) == len(np.unique(dst)) == len(src) and not np.isin(src, dst).any()
    return _named("fold" if up else "unfold") if aside and s.nranks & (s.nranks - 1) else plain


def _whole(s: Schedule, of: slice) -> bool:
    """Every send of the step carries all the data."""
    return bool((s.count[of] == len(s.weights)).all())


def _straight(s: Schedule, op: Op) -> bool:
    """Every chunk is added up at one place only, or copied from one only."""
    moved = cells(s)
    mine = s.op[moved.send] == op
    chunk, end = moved.read[mine] % s.nchunks, (s.dst if op == Op.REDUCE else s.src)[moved.send[mine]]
    return len(np.unique(chunk * s.places + end)) == len(np.unique(chunk))


def _pattern(s: Schedule, of: slice) -> str:
    """``right`` or ``both``: all neighbours of a ring; ``pair``: every rank has one partner, both ways; ``direct``: else."""
    src, dst = s.src[of], s.dst[of]
    away = (dst - src) % s.nranks
    there, back = set(zip(src.tolist(), dst.tolist(), strict=True)), set(zip(dst.tolist(), src.tolist(), strict=True))
    if bool((away == 1).all()) and len(there) == s.nranks:
        return "right"
    if bool(np.isin(away, (1, s.nranks - 1)).all()) and len(there) == 2 * s.nranks:
        return "both"
    return "pair" if there == back and len(there) == len(np.unique(src)) else "direct"


def _named(name: str) -> Phase:
    return Phase(f"phase.{name}", f"say.{name}")
