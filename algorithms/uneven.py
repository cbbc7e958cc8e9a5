"""Uneven blocks: a schedule as it is, with blocks of other sizes (all-to-all-v, all-gather-v, ...)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.schedule import Schedule, Send
from algorithms.transforms import expanded
from topologies.errors import ScheduleError


def uneven(schedule: Schedule, weights: ArrayLike) -> Schedule:
    """Blocks in proportion to ``weights``, whole numbers of at least 0: [n, n] for all-to-all, row p what rank p has for each
    rank; [n] for collectives whose chunks belong to ranks. Slices and channels keep their share of a block. What a block of
    weight 0 would send is left out, as MPI and NCCL send nothing for a count of 0.

    A launch's size is then the mean over ranks, so that all rows together have n times as much. ScheduleError for a wrong
    number of weights, and for weights that no chunk may have."""
    wanted = np.asarray(weights)
    blocks = schedule.collective.unit(schedule.nranks)
    if wanted.size != blocks or not np.issubdtype(wanted.dtype, np.integer):
        raise ScheduleError(f"{schedule.name}: needs {blocks} whole numbers as weights, got {wanted.size} of type {wanted.dtype}")
    each = np.repeat(wanted.ravel(), len(schedule.weights) // blocks) * schedule.weights
    if (each > 0).all():
        return _weighted(schedule, Send(**schedule.columns()), each)
    columns = expanded(schedule.columns())  # a range may have chunks of weight 0 among others
    made = _weighted(schedule, Send(**columns), each)
    carries = made.send_elements(int(each.sum())) > 0  # at this size each chunk has elements, unless its weight is 0
    return _weighted(schedule, Send(**{name: column[carries] for name, column in columns.items()}), each)


def _weighted(like: Schedule, sends: Send, weights: ArrayLike) -> Schedule:
    scratch = like.nchunks - len(like.weights)
    return Schedule.of(like.name, like.collective, like.nranks, [sends], root=like.root, weights=np.asarray(weights), scratch=scratch)
