"""Schedule -> who holds whose data of which chunk after a step, as words for a table."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from algorithms.cells import cells
from algorithms.schedule import Op, Schedule

Cell = tuple[int, int]
"""(chunk that the data came from, ranks that contributed as bits); (-1, 0): nothing."""

NOTHING: Cell = (-1, 0)


def holdings(s: Schedule, after: int) -> list[list[Cell]]:
    """[place][chunk] when all sends up to and including step ``after`` are done (-1: at the start)."""
    initial = s.collective.initial(s.nranks, len(s.weights), s.root)
    flat = [NOTHING] * (s.places * s.nchunks)
    for rank, chunk in np.argwhere(initial).tolist():
        flat[rank * s.nchunks + chunk] = (chunk, 1 << rank)
    moved = cells(s)
    upto = int(np.searchsorted(s.step[moved.send], after + 1))
    edges = np.searchsorted(s.step[moved.send], np.arange(after + 2)).tolist()
    read, write = moved.read[:upto].tolist(), moved.write[:upto].tolist()
    adds = (s.op[moved.send[:upto]] == Op.REDUCE).tolist()
    for lo, hi in pairwise(edges):
        staged = [flat[read[i]] for i in range(lo, hi)]
        for i, (origin, ranks) in zip(range(lo, hi), staged, strict=True):
            present = flat[write[i]]
            flat[write[i]] = (origin, ranks | present[1]) if adds[i] and present != NOTHING else (origin, ranks)
    return [flat[place * s.nchunks : (place + 1) * s.nchunks] for place in range(s.places)]


def words(cell: Cell, chunk: int, nranks: int) -> str:
    """``.`` nothing, ``all`` every rank's data summed, else the ranks: ``0-3`` or ``0,2,5``; ``c4:`` before data of another chunk."""
    origin, ranks = cell
    if cell == NOTHING:
        return "."
    held = "all" if ranks == (1 << nranks) - 1 else _ranges([r for r in range(nranks) if ranks >> r & 1])
    return held if origin == chunk else f"c{origin}:{held}"


def _ranges(ranks: list[int]) -> str:
    """``[0, 1, 2, 5]`` -> ``0-2,5``."""
    parts: list[str] = []
    first = previous = ranks[0]
    for rank in [*ranks[1:], -1]:
        if rank != previous + 1:
            parts.append(str(first) if first == previous else f"{first}-{previous}")
            first = rank
        previous = rank
    return ",".join(parts)
