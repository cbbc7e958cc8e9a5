"""Swing: partners at distance 1, 1, 3, 5, 11... left and right in turn, which loads a ring or torus less than 1, 2, 4, 8."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from algorithms.registry import algorithm, power_of_two
from algorithms.schedule import Schedule, Send, reduce
from algorithms.transforms import reverse, then


def even(n: int) -> str | None:
    """The rule: partners have ranks of different parity."""
    return None if n % 2 == 0 else "needs an even number of ranks"


def partner(n: int, step: int) -> NDArray[np.int64]:
    """Shape [n]: even ranks go rho = 1 - 2 + 4 - ... (step + 1 terms) to the right, odd ranks as far to the left."""
    rank, rho = np.arange(n), (1 - (-2) ** (step + 1)) // 3
    return np.asarray(np.where(rank % 2 == 0, rank + rho, rank - rho) % n, dtype=np.int64)


@algorithm(ALL_GATHER, name="swing", rule=even)
def swing_all_gather(n: int) -> Iterator[Send]:
    """ceil(log2 n) steps, (n-1)/n of the data, farthest partners first (De Sensi et al., arXiv 2401.09356).

    A rank sends what its partner lacks, so that any even n works without a block sent twice."""
    holds = np.eye(n, dtype=np.bool_)
    levels = (n - 1).bit_length()
    for step in range(levels):
        other = partner(n, levels - 1 - step)
        rank, block = np.nonzero(holds[other] & ~holds)
        yield Send(step, other[rank], rank, chunk=block, message=0)
        holds |= holds[other]


@algorithm(REDUCE_SCATTER, name="swing", rule=even)
def swing_reduce_scatter(n: int) -> Schedule:
    """The swing all-gather reversed: neighbours first, half the data in the first step."""
    return reverse("swing", REDUCE_SCATTER, Schedule.of("swing", ALL_GATHER, n, swing_all_gather(n)))


@algorithm(ALL_REDUCE, rule=even)
def swing(n: int) -> Schedule:
    """2 ceil(log2 n) steps, 2(n-1)/n of the data, less load on a ring's links than halving-doubling (arXiv 2401.09356)."""
    return then("swing", ALL_REDUCE, swing_reduce_scatter(n), Schedule.of("swing", ALL_GATHER, n, swing_all_gather(n)))


@algorithm(ALL_REDUCE, rule=power_of_two)
def swing_latency(n: int) -> Iterator[Send]:
    """log2 n exchanges of the whole data between swing's partners: few steps, for small data on a torus."""
    for step in range(n.bit_length() - 1):
        yield reduce(step, np.arange(n), partner(n, step), chunk=0)
