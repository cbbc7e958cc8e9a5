"""Swing: partners at distance 1, 1, 3, 5, 11... left and right in turn, which loads a ring or torus less than 1, 2, 4, 8."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER
from algorithms.registry import Dims, algorithm, power_of_two
from algorithms.schedule import Schedule, Send, reduce
from algorithms.swing_partners import Ints, partners
from algorithms.transforms import merge_channels, reverse, then


def even(n: int) -> str | None:
    """The rule: partners have ranks of different parity."""
    return None if n % 2 == 0 else "needs an even number of ranks"


@algorithm(ALL_GATHER, name="swing", rule=even)
def swing_all_gather(n: int, dims: Dims | None = None) -> Schedule:
    """ceil(log2 n) steps, (n-1)/n of the data, farthest partners first (De Sensi et al., arXiv 2401.09356).

    A rank sends what its partner lacks, so that any even n works without a block sent twice. ``dims`` as in the all-reduce."""
    copies = [Schedule.of("swing", ALL_GATHER, n, _gather(n, others)) for others in partners("swing", n, dims)]
    return merge_channels("swing", copies)


@algorithm(REDUCE_SCATTER, name="swing", rule=even)
def swing_reduce_scatter(n: int, dims: Dims | None = None) -> Schedule:
    """The swing all-gather reversed: neighbours first, half the data in the first step. ``dims`` as in the all-reduce."""
    return reverse("swing", REDUCE_SCATTER, swing_all_gather(n, dims))


@algorithm(ALL_REDUCE, rule=even)
def swing(n: int, dims: Dims | None = None) -> Schedule:
    """2 ceil(log2 n) steps, 2(n-1)/n of the data, less load on a ring's links than halving-doubling (arXiv 2401.09356).

    ``dims`` such as 4x4, all even, ranks row by row: 2D copies on M/(2D), one starting in each of the D dimensions and its mirror
    image, 2 sum(ceil(log2 d)) steps. Without: those of the topology, else one copy, all ranks in one dimension."""
    return then("swing", ALL_REDUCE, swing_reduce_scatter(n, dims), swing_all_gather(n, dims))


@algorithm(ALL_REDUCE, rule=power_of_two)
def swing_latency(n: int, dims: Dims | None = None) -> Schedule:
    """log2 n exchanges of the whole data between swing's partners: few steps, for small data on a torus. ``dims`` as in swing."""
    copies = [Schedule.of("swing-latency", ALL_REDUCE, n, _exchange(n, others)) for others in partners("swing-latency", n, dims)]
    return merge_channels("swing-latency", copies)


def _gather(n: int, others: list[Ints]) -> Iterator[Send]:
    holds = np.eye(n, dtype=np.bool_)
    for step, other in enumerate(reversed(others)):
        rank, block = np.nonzero(holds[other] & ~holds)
        yield Send(step, other[rank], rank, chunk=block, message=0)
        holds |= holds[other]


def _exchange(n: int, others: list[Ints]) -> Iterator[Send]:
    for step, other in enumerate(others):
        yield reduce(step, np.arange(n), other, chunk=0)
