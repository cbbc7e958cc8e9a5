"""The symbolic checker: which contributions does each place hold of each chunk; rejects a wrong schedule before it runs."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from algorithms.cells import Cells, cells
from algorithms.schedule import Op, Schedule, describe
from topologies.errors import ScheduleError

Ints = NDArray[np.int64]
Counts = NDArray[np.uint8]

BLOCK_BYTES = 64 << 20
"""Chunks that never change their index are independent of one another; they are checked in blocks of this memory."""


def check(s: Schedule) -> None:
    """Run the schedule on contribution counts and hold the end against the collective's postcondition.

    Raises ScheduleError naming rank, chunk and step for a read of a cell that holds nothing, a sum of different data, and a
    final cell whose contributions are not exactly those wanted, each once."""
    moved = cells(s)
    if np.array_equal(s.chunk, s.dst_chunk):
        size = max(1, BLOCK_BYTES // (s.places * s.nranks))
        for lo in range(0, s.nchunks, size):
            chunk = moved.read % s.nchunks
            inside = (chunk >= lo) & (chunk < lo + size)
            _check_block(s, Cells(moved.send[inside], moved.read[inside], moved.write[inside]), lo, min(lo + size, s.nchunks))
    else:
        _check_block(s, moved, 0, s.nchunks)


def _check_block(s: Schedule, moved: Cells, lo: int, hi: int) -> None:
    width = hi - lo
    read, write = (place_chunk // s.nchunks * width + place_chunk % s.nchunks - lo for place_chunk in (moved.read, moved.write))
    counts: Counts = np.zeros((s.places * width, s.nranks), dtype=np.uint8)
    origin = np.full(s.places * width, -1, dtype=np.int64)
    _fill_initial(s, counts, origin, lo, hi)
    edges = np.searchsorted(s.step[moved.send], np.arange(s.steps + 1))
    for a, b in pairwise(edges.tolist()):
        if a < b:
            _apply_step(s, counts, origin, moved.send[a:b], read[a:b], write[a:b])
    _compare(s, counts, origin, lo, hi)


def _fill_initial(s: Schedule, counts: Counts, origin: Ints, lo: int, hi: int) -> None:
    data = len(s.weights)
    rank, chunk = np.nonzero(s.collective.initial(s.nranks, data, s.root)[:, lo:hi])
    cell = rank * (hi - lo) + chunk
    counts[cell, rank] = 1
    origin[cell] = chunk + lo


def _apply_step(s: Schedule, counts: Counts, origin: Ints, send: Ints, read: Ints, write: Ints) -> None:
    """All reads, then all writes in the order of the sends (several to one cell in rounds)."""
    empty = origin[read] < 0
    if empty.any():
        i = int(np.argmax(empty))
        raise ScheduleError(f"{describe(s, int(send[i]))}: rank {read[i] * s.places // len(origin)} holds nothing there yet")
    staged, staged_origin, adds = counts[read], origin[read], s.op[send] == Op.REDUCE
    for turn in _turns(write):
        into = write[turn]
        joins = adds[turn] & (origin[into] >= 0)
        mixed = joins & (origin[into] != staged_origin[turn])
        if mixed.any():
            i = turn[int(np.argmax(mixed))]
            raise ScheduleError(f"{describe(s, int(send[i]))}: adds data of chunk {staged_origin[i]} to data of chunk {origin[write[i]]}")
        both = counts[into].astype(np.uint16) * joins[:, None] + staged[turn]
        counts[into] = np.minimum(both, 255).astype(np.uint8)
        origin[into] = staged_origin[turn]


def _turns(write: Ints) -> list[Ints]:
    """Indices split so that within one part no cell is written twice, and parts keep the order of the writes to a cell."""
    order = np.argsort(write, kind="stable")
    sorted_cells = write[order]
    start = np.searchsorted(sorted_cells, sorted_cells)
    turn = np.arange(len(write)) - start
    return [order[turn == k] for k in range(int(turn.max(initial=0)) + 1)]


def _compare(s: Schedule, counts: Counts, origin: Ints, lo: int, hi: int) -> None:
    want = s.collective.expected(s.nranks, len(s.weights), s.root)
    here = (want.chunk >= lo) & (want.chunk < hi) & (s.weights[want.chunk] > 0)  # nobody needs to have no elements
    cell = want.rank[here] * (hi - lo) + want.chunk[here] - lo
    got = counts[cell]
    wrong = ((got > 0) if s.collective.idempotent else got) != want.contributors[here]
    bad = wrong.any(axis=1) | (origin[cell] != want.chunk[here])
    if bad.any():
        i = int(np.argmax(bad))
        rank, chunk = int(want.rank[here][i]), int(want.chunk[here][i])
        raise ScheduleError(
            f"{s.name}: rank {rank} ends with {_words(got[i], int(origin[cell][i]))} in chunk {chunk}; {s.collective.name} needs "
            f"{_words(want.contributors[here][i].astype(np.uint8), chunk)}"
        )


def _words(counts: Counts, origin: int) -> str:
    if origin < 0:
        return "nothing"
    several = [f"rank {r}" + (f" {c} times" if c > 1 else "") for r, c in enumerate(counts) if c]
    return f"chunk {origin} of " + (f"all {len(counts)} ranks" if (counts == 1).all() else ", ".join(several) or "no rank")
