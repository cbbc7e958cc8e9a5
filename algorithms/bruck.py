"""Bruck: the blocks of a circle spread in rounds of doubling distance, for any number of ranks."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_GATHER, ALL_TO_ALL, REDUCE_SCATTER
from algorithms.places import wrapped
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse


@algorithm(ALL_GATHER, name="bruck")
def bruck_all_gather(n: int) -> Iterator[Send]:
    """ceil(log2 n) steps for any n, (n-1)/n of the data: at distance d each rank sends its first d blocks (Bruck et al. 1997)."""
    rank = np.arange(n)
    for step in range((n - 1).bit_length()):
        distance = 1 << step
        yield from wrapped(copy(step, rank, (rank - distance) % n, chunk=rank, count=min(distance, n - distance)), n)


@algorithm(REDUCE_SCATTER, name="bruck")
def bruck_reduce_scatter(n: int) -> Schedule:
    """The Bruck all-gather reversed: ceil(log2 n) steps for any n, the largest message first."""
    return reverse("bruck", REDUCE_SCATTER, Schedule.of("bruck", ALL_GATHER, n, bruck_all_gather(n)))


@algorithm(ALL_TO_ALL, name="bruck")
def bruck_all_to_all(n: int) -> Iterator[Send]:
    """ceil(log2 n) steps, about half the data in each: few messages for small blocks (Bruck et al. 1997; MPICH up to 256 B).

    A block that must go j ranks on travels 2^k in step k for each bit k of j."""
    origin, far = (axis.ravel() for axis in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    for step in range((n - 1).bit_length()):
        distance = 1 << step
        moves = (far & distance) > 0
        p, j = origin[moves], far[moves]
        here = (p + j % distance) % n
        yield Send(step, here, (here + distance) % n, chunk=p * n + (p + j) % n, message=0)
