"""Recursive doubling all-gather and its dual, recursive halving reduce-scatter, for powers of two."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_GATHER, REDUCE_SCATTER
from algorithms.registry import algorithm, power_of_two
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse


@algorithm(ALL_GATHER, name="recursive-doubling", rule=power_of_two)
def recursive_doubling_all_gather(n: int) -> Iterator[Send]:
    """log2 n steps, (n-1)/n of the data: partners at distance 1, 2, 4... exchange all that they hold (MPICH)."""
    rank = np.arange(n)
    for step in range(n.bit_length() - 1):
        distance = 1 << step
        yield copy(step, rank, rank ^ distance, chunk=rank // distance * distance, count=distance)


@algorithm(REDUCE_SCATTER, name="recursive-halving", rule=power_of_two)
def recursive_halving_reduce_scatter(n: int) -> Schedule:
    """log2 n steps, (n-1)/n of the data: partners at distance n/2, n/4... 1 exchange the half that the other keeps (MPICH)."""
    gather = Schedule.of("recursive-doubling", ALL_GATHER, n, recursive_doubling_all_gather(n))
    return reverse("recursive-halving", REDUCE_SCATTER, gather)
