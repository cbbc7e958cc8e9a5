"""Ring: every rank passes one chunk to its right neighbour in each step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy, reduce
from algorithms.transforms import merge_channels, relabel


@algorithm(REDUCE_SCATTER, name="ring")
def ring_reduce_scatter(n: int) -> Iterator[Send]:
    """n-1 steps; each passes on a partial sum, and rank r ends with chunk r (NCCL's numbering)."""
    rank = np.arange(n)
    right = (rank + 1) % n
    for step in range(n - 1):
        yield reduce(step, rank, right, chunk=np.roll(rank, step + 1))  # (rank - 1 - step) % n


@algorithm(ALL_GATHER, name="ring")
def ring_all_gather(n: int) -> Iterator[Send]:
    """n-1 steps; each rank passes on the chunk it received last, starting with its own."""
    rank = np.arange(n)
    right = (rank + 1) % n
    for step in range(n - 1):
        yield copy(step, rank, right, chunk=np.roll(rank, step))  # (rank - step) % n


@algorithm(ALL_REDUCE)
def ring(n: int) -> Iterator[Send]:
    """Reduce-scatter then all-gather: 2(n-1) steps, every rank sends 2(n-1)/n of the data (Patarasuk & Yuan 2009)."""
    rank = np.arange(n)
    right = (rank + 1) % n
    for step in range(n - 1):
        yield reduce(step, rank, right, chunk=np.roll(rank, step + 1))  # (rank - 1 - step) % n
    for step in range(n - 1):
        yield copy(n - 1 + step, rank, right, chunk=np.roll(rank, step))


@algorithm(ALL_REDUCE)
def bidirectional_ring(n: int) -> Schedule:
    """Two rings in opposite directions, each with half the data: both directions of every link are used."""
    return _both_directions(Schedule.of("bidirectional-ring", ALL_REDUCE, n, ring(n)))


@algorithm(REDUCE_SCATTER, name="bidirectional-ring")
def bidirectional_ring_reduce_scatter(n: int) -> Schedule:
    """Two ring reduce-scatters in opposite directions, each with half of every chunk."""
    return _both_directions(Schedule.of("bidirectional-ring", REDUCE_SCATTER, n, ring_reduce_scatter(n)))


@algorithm(ALL_GATHER, name="bidirectional-ring")
def bidirectional_ring_all_gather(n: int) -> Schedule:
    """Two ring all-gathers in opposite directions, each with half of every chunk."""
    return _both_directions(Schedule.of("bidirectional-ring", ALL_GATHER, n, ring_all_gather(n)))


def _both_directions(clockwise: Schedule) -> Schedule:
    backwards = -np.arange(clockwise.nranks) % clockwise.nranks
    return merge_channels(clockwise.name, [clockwise, relabel(clockwise, backwards)])
