"""Uneven blocks: a schedule as it is, with blocks of other sizes (all-to-all-v, all-gather-v, ...)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from algorithms.schedule import Schedule, Send
from topologies.errors import ScheduleError


def uneven(schedule: Schedule, weights: ArrayLike) -> Schedule:
    """Blocks in proportion to ``weights``, whole numbers: [n, n] for all-to-all, row p what rank p has for each rank; [n] for
    collectives whose chunks belong to ranks. Slices and channels keep their share of a block.

    A launch's size is then the mean over ranks, so that all rows together have n times as much. ScheduleError for a wrong
    number of weights, and for weights that no chunk may have."""
    wanted = np.asarray(weights)
    blocks = schedule.collective.unit(schedule.nranks)
    if wanted.size != blocks or not np.issubdtype(wanted.dtype, np.integer):
        raise ScheduleError(f"{schedule.name}: needs {blocks} whole numbers as weights, got {wanted.size} of type {wanted.dtype}")
    each = np.repeat(wanted.ravel(), len(schedule.weights) // blocks) * schedule.weights
    scratch = schedule.nchunks - len(schedule.weights)
    sends = [Send(**schedule.columns())]
    return Schedule.of(schedule.name, schedule.collective, schedule.nranks, sends, root=schedule.root, weights=each, scratch=scratch)
