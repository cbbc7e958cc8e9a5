"""Bucket: rings along one dimension of a grid of ranks after the other; servers x GPUs, racks, tori."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from algorithms.schedule import Schedule, Send, copy, reduce
from algorithms.transforms import relabel, then


def bucket(name: str, collective: Collective, dims: Sequence[int], rank: Sequence[int]) -> Schedule:
    """A reduce-scatter, an all-gather, or an all-reduce of both, over a grid.

    ``rank[v]``: the rank at position v of the grid, whose first dimension changes slowest and is the first to be reduced over:
    it carries M(d1-1)/d1, the second M(d2-1)/(d1 d2), and so on."""
    n = int(np.prod(dims))
    scatter = Schedule.of(name, REDUCE_SCATTER, n, _reduce_scatter(n, dims))
    gather = Schedule.of(name, ALL_GATHER, n, _all_gather(n, dims))
    halves = {REDUCE_SCATTER: scatter, ALL_GATHER: gather}
    return relabel(halves[collective] if collective in halves else then(name, ALL_REDUCE, scatter, gather), rank)


def _reduce_scatter(n: int, dims: Sequence[int]) -> Iterator[Send]:
    """In dimension i every rank has one block to sum, of those that agree with it in dimensions before i; d_i parts of ``part`` chunks."""
    position, part, step = np.arange(n), n, 0
    for size in dims:
        part //= size
        at = position // part % size
        right, block = position + ((at + 1) % size - at) * part, position // (part * size) * (part * size)
        for turn in range(size - 1):
            yield reduce(step, position, right, chunk=block + (at - 1 - turn) % size * part, count=part)
            step += 1


def _all_gather(n: int, dims: Sequence[int]) -> Iterator[Send]:
    """The dimensions in reverse: blocks grow until they are the whole."""
    position, part, step = np.arange(n), 1, 0
    for size in reversed(dims):
        at = position // part % size
        right, block = position + ((at + 1) % size - at) * part, position // (part * size) * (part * size)
        for turn in range(size - 1):
            yield copy(step, position, right, chunk=block + (at - turn) % size * part, count=part)
            step += 1
        part *= size
