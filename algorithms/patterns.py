"""Point-to-point patterns: every rank sends straight to one other, all at once; and how a pattern becomes a schedule."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import SENDRECV
from algorithms.places import grid
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, copy
from topologies.errors import ScheduleError


def pattern(name: str, to: NDArray[np.int64]) -> Schedule:
    """Block i of rank r to rank ``to[r, i]`` (shape [ranks, blocks]) on channel i, so that blocks go side by side; to r: it stays."""
    rank, block = np.nonzero(to != np.arange(len(to))[:, None])
    if not len(rank):
        raise ScheduleError(f"{name}: needs a rank that sends to another; here every block of {len(to)} ranks stays where it is")
    sends = copy(0, rank, to[rank, block], chunk=rank * to.shape[1] + block, channel=block)
    return Schedule.of(name, SENDRECV.towards(to.ravel()), len(to), [sends])


@algorithm(SENDRECV)
def shift(n: int, by: int = 1) -> Schedule:
    """All of M to the rank ``by`` further on, from the one as far behind: sendrecv_perf of nccl-tests, a stage of a pipeline."""
    return pattern("shift", (np.arange(n)[:, None] + by) % n)


@algorithm(SENDRECV, rule=lambda n: "needs an even number: ranks pair up" if n % 2 else None)
def exchange(n: int, distance: int = 1) -> Schedule:
    """Pairs swap all of M: rank r with rank r xor ``distance``, which all n must have (MPI_Sendrecv, a hypercube's step)."""
    peer = np.arange(n)[:, None] ^ distance
    if distance < 1 or (peer >= n).any():
        raise ScheduleError(f"exchange: distance {distance}: needs r xor distance to be one of ranks 0..{n - 1} for each r, as 1 does")
    return pattern("exchange", peer)


@algorithm(SENDRECV, rule=lambda n: None if any(n % side == 0 for side in range(2, n)) else "needs a grid: 4, 6, 8, 9, ..., no prime")
def transpose(n: int, rows: int = 0) -> Schedule:
    """All of M from row i, column j of a grid to row j, column i of the turned grid: a matrix transposed. The diagonal of a square stays.

    What a distributed matrix or FFT does between two passes. Ranks are numbered row by row; without ``rows`` the sides are as equal as n
    allows."""
    if rows < 0 or (rows and n % rows):
        raise ScheduleError(f"transpose: rows {rows}: needs a number that divides {n} ranks")
    sides = (rows, n // rows) if rows else grid("transpose", n, None)
    return pattern("transpose", np.arange(n).reshape(sides[::-1]).T.reshape(-1, 1))


@algorithm(SENDRECV)
def random_permutation(n: int, seed: int = 0) -> Schedule:
    """All of M to a rank drawn by ``seed``, the usual load of routing studies: each permutation without a fixed point is as likely."""
    if seed < 0:
        raise ScheduleError(f"random-permutation: seed {seed} must be 0 or more")
    rng, to = np.random.default_rng(seed), np.arange(n)
    while (to == np.arange(n)).any():  # one draw in e has no fixed point
        to = rng.permutation(n)
    return pattern("random-permutation", to[:, None])
