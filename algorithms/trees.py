"""Any tree of ranks, given by parents, as sends: sums up, results down."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from algorithms.schedule import Send, copy, reduce

Ints = NDArray[np.int64]


def edges(parents: Sequence[int]) -> tuple[Ints, Ints, Ints, Ints]:
    """Columns, a row for every rank but the root: child, parent, depth of the child, its number among its siblings."""
    up = np.asarray(parents, dtype=np.int64)
    depth, walk = np.zeros_like(up), up.copy()
    while (walk >= 0).any():
        depth += walk >= 0
        walk = np.where(walk >= 0, up[walk], -1)
    child = np.flatnonzero(up >= 0)
    order = np.argsort(up[child], kind="stable")
    sibling = np.empty_like(child)
    sibling[order] = np.arange(len(child)) - np.searchsorted(up[child][order], up[child][order])
    return child, up[child], depth[child], sibling


def up_and_down(parents: Sequence[int], chunk: int, queue: int) -> Iterator[Send]:
    """Sums up a tree, results down. Down, and every child, has a queue of its own, as NCCL splits its threads."""
    child, parent, depth, sibling = edges(parents)
    height = depth.max(initial=0)
    yield reduce(height - depth, child, parent, chunk=chunk, channel=queue)
    yield copy(height - 1 + depth, parent, child, chunk=chunk, channel=queue + 1 + sibling)
