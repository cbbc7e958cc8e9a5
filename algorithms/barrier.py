"""Barriers: nobody leaves before everybody has come. What counts is rounds; the payload may be empty."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.binomial_tree import binomial_broadcast
from algorithms.collectives import BARRIER, BROADCAST, REDUCE
from algorithms.halving_doubling import recursive_doubling
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, reduce
from algorithms.transforms import reverse, then
from topologies.errors import ScheduleError


@algorithm(BARRIER)
def dissemination(n: int, radix: int = 2) -> Iterator[Send]:
    """ceil(log_k n) rounds for any n: in round i every rank signals the k-1 ranks at 1..k-1 times k^i (Hensgen et al. 1988; MPICH)."""
    if radix < 2:
        raise ScheduleError(f"dissemination: radix {radix} must be at least 2")
    rank, radix = np.arange(n), min(radix, n)
    for step in range(next(rounds for rounds in range(1, n + 1) if radix**rounds >= n)):
        for turn in range(1, radix):
            distance = turn * radix**step
            if distance < n:
                yield reduce(step, rank, (rank + distance) % n, chunk=0, channel=turn - 1)


@algorithm(BARRIER, name="recursive-doubling")
def recursive_doubling_barrier(n: int) -> Schedule:
    """log2 n rounds of pairs at distance 1, 2, 4... (two more off powers of two; Open MPI)."""
    return Schedule.of("recursive-doubling", BARRIER, n, recursive_doubling(n))


@algorithm(BARRIER, name="tree")
def tree_barrier(n: int) -> Schedule:
    """Up a binomial tree to rank 0 and down again: 2 ceil(log2 n) rounds, but only 2(n-1) signals (Open MPI)."""
    down = Schedule.of("tree", BROADCAST, n, binomial_broadcast(n))
    return then("tree", BARRIER, reverse("tree", REDUCE, down), down)
