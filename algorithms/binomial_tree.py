"""Binomial tree: the set of ranks that hold the data doubles in each step."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE, BROADCAST, REDUCE
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse, then


@algorithm(BROADCAST, name="binomial-tree")
def binomial_broadcast(n: int, root: int = 0) -> Iterator[Send]:
    """ceil(log2 n) steps, the farthest ranks first; a rank's parent is its number with the lowest set bit cleared."""
    rank = np.arange(n)
    levels = (n - 1).bit_length()
    for step in range(levels):
        distance = 1 << (levels - 1 - step)
        sender = rank[(rank % (2 * distance) == 0) & (rank + distance < n)]
        yield copy(step, (sender + root) % n, (sender + distance + root) % n, chunk=0)


@algorithm(REDUCE, name="binomial-tree")
def binomial_reduce(n: int, root: int = 0) -> Schedule:
    """The binomial broadcast reversed: neighbours are summed first."""
    return reverse("binomial-tree", REDUCE, Schedule.of("binomial-tree", BROADCAST, n, binomial_broadcast(n, root), root=root))


@algorithm(ALL_REDUCE, name="binomial-tree")
def binomial_all_reduce(n: int) -> Schedule:
    """Reduce to rank 0, then broadcast: 2 ceil(log2 n) steps of the whole data."""
    down = Schedule.of("binomial-tree", BROADCAST, n, binomial_broadcast(n))
    return then("binomial-tree", ALL_REDUCE, reverse("binomial-tree", REDUCE, down), down)
