"""Runs any schedule on real numpy arrays in one process: the oracle that proves a result."""

from __future__ import annotations

from itertools import pairwise
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
    """Execute on ``inputs[rank]``, one vector of equal length a rank (all-to-all, sendrecv: its blocks in order; their lengths
    follow the chunk weights); they are not changed.

    Returns, for each place, its chunks (None: holds nothing) and the trace with the seconds at which each send ran. All reads
    of a step see the values before it; writes are applied in (step, index) order. ScheduleError for a send of nothing."""
    s = schedule
    held = _initial(s, inputs)
    begun, ended, size = ([0.0] * len(s) for _ in range(3))
    reads = list(zip(s.src.tolist(), s.chunk.tolist(), (s.chunk + s.count).tolist(), strict=True))
    writes = list(zip(s.dst.tolist(), s.dst_chunk.tolist(), (s.op == Op.REDUCE).tolist(), strict=True))
    zero = perf_counter()
    edges = np.searchsorted(s.step, np.arange(s.steps + 1)).tolist()
    for lo, hi in pairwise(edges):
        staged = [held[place][first:last] for place, first, last in reads[lo:hi]]  # arrays are replaced, never changed: no copy
        for i, parts in zip(range(lo, hi), staged, strict=True):
            begun[i] = perf_counter() - zero
            place, chunk, adds = writes[i]
            for k, part in enumerate(parts):
                if part is None:
                    raise ScheduleError(f"{describe(s, i)}: rank {s.src[i]} holds nothing there yet")
                present = held[place][chunk + k]
                if adds and present is not None:
                    if len(present) != len(part):
                        raise ScheduleError(f"{describe(s, i)}: adds {len(part)} elements to {len(present)}")
                    part = np.add(present, part)
                held[place][chunk + k] = part
                size[i] += part.nbytes
            ended[i] = perf_counter() - zero
    start, end = np.asarray(begun), np.asarray(ended)
    index = np.arange(len(s))
    return held, Trace(np.zeros_like(index), index, start, start, start, end, np.asarray(size, dtype=np.int64), s.src, s.dst)


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
