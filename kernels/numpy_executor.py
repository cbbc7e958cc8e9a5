"""Runs any schedule on real numpy arrays in one process: the oracle that proves a result."""

from __future__ import annotations

from time import perf_counter

import numpy as np
from numpy.typing import NDArray

from algorithms.launch import Trace
from algorithms.schedule import Op, Schedule, describe
from topologies.errors import ScheduleError

Vector = NDArray[np.generic]


def available() -> str | None:
    """Why this executor cannot run here; None: it can."""
    return None


def run(schedule: Schedule, inputs: list[Vector]) -> tuple[list[list[Vector | None]], Trace]:
    """Execute on ``inputs[rank]``, one vector of equal length a rank (all-to-all: its blocks for rank 0, 1, ...; their lengths
    follow the chunk weights); they are not changed.

    Returns, for each place, its chunks (None: holds nothing) and the trace with the seconds at which each send ran. All reads
    of a step see the values before it; writes are applied in (step, index) order. ScheduleError for a send of nothing."""
    s = schedule
    held = _initial(s, inputs)
    rows = np.zeros((4, len(s)))
    size = np.zeros(len(s), dtype=np.int64)
    zero = perf_counter()
    edges = np.searchsorted(s.step, np.arange(s.steps + 1))
    for lo, hi in zip(edges[:-1], edges[1:], strict=True):
        staged = [_read(s, held, i) for i in range(lo, hi)]
        for i, parts in zip(range(lo, hi), staged, strict=True):
            rows[:, i] = perf_counter() - zero
            size[i] = sum(part.nbytes for part in parts)
            for k, part in enumerate(parts):
                _write(s, held, i, int(s.dst_chunk[i]) + k, part)
            rows[3, i] = perf_counter() - zero
    start, sent, arrived, end = rows
    index = np.arange(len(s))
    return held, Trace(np.zeros_like(index), index, start, sent, arrived, end, size, s.src, s.dst)


def _initial(s: Schedule, inputs: list[Vector]) -> list[list[Vector | None]]:
    lengths = [len(vector) for vector in inputs]
    elements = sum(lengths) // s.nranks if s.collective.personalised else max(lengths, default=0)
    bounds = s.chunk_bounds(elements)
    row = bounds[:: len(s.weights) // s.nranks] if s.collective.personalised else np.zeros(s.nranks + 1, dtype=np.int64)
    wanted = np.diff(row) if s.collective.personalised else np.full(s.nranks, elements)
    if lengths != wanted.tolist():
        raise ScheduleError(f"{s.name}: needs {s.nranks} vectors of lengths {wanted.tolist()}, got {len(inputs)} of lengths {lengths}")
    holds = s.collective.initial(s.nranks, len(s.weights), s.root)
    held: list[list[Vector | None]] = [[None] * s.nchunks for _ in range(s.places)]
    for rank, vector in enumerate(inputs):
        for chunk in np.flatnonzero(holds[rank]):
            held[rank][chunk] = vector[bounds[chunk] - row[rank] : bounds[chunk + 1] - row[rank]].copy()
    return held


def _read(s: Schedule, held: list[list[Vector | None]], i: int) -> list[Vector]:
    parts = held[s.src[i]][s.chunk[i] : s.chunk[i] + s.count[i]]
    if any(part is None for part in parts):
        raise ScheduleError(f"{describe(s, i)}: rank {s.src[i]} holds nothing there yet")
    return [part for part in parts if part is not None]  # arrays are replaced, never changed in place: no copy needed


def _write(s: Schedule, held: list[list[Vector | None]], i: int, chunk: int, part: Vector) -> None:
    present = held[s.dst[i]][chunk]
    if s.op[i] == Op.REDUCE and present is not None:
        if len(present) != len(part):
            raise ScheduleError(f"{describe(s, i)}: adds {len(part)} elements to {len(present)}")
        part = np.add(present, part)
    held[s.dst[i]][chunk] = part
