"""Binomial scatter and gather, and the broadcast and reduce that are made of them and a ring (van de Geijn)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_GATHER, BROADCAST, GATHER, REDUCE, REDUCE_SCATTER, SCATTER
from algorithms.places import wrapped
from algorithms.registry import algorithm
from algorithms.ring import ring_all_gather, ring_reduce_scatter
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse, then


@algorithm(SCATTER, name="binomial-tree")
def binomial_scatter(n: int, root: int = 0) -> Iterator[Send]:
    """ceil(log2 n) steps; a holder passes on the chunks of the farther half: (n-1)/n of the data leave the root."""
    rank = np.arange(n)
    levels = (n - 1).bit_length()
    for step in range(levels):
        distance = 1 << (levels - 1 - step)
        sender = rank[(rank % (2 * distance) == 0) & (rank + distance < n)]
        child = sender + distance
        subtree = np.minimum(distance, n - child)
        yield from wrapped(copy(step, (sender + root) % n, (child + root) % n, chunk=child + root, count=subtree), n)


@algorithm(GATHER, name="binomial-tree")
def binomial_gather(n: int, root: int = 0) -> Schedule:
    """The binomial scatter reversed: ceil(log2 n) steps, a rank sends the chunks of its subtree at once."""
    return reverse("binomial-tree", GATHER, _scatter(n, root))


@algorithm(BROADCAST)
def scatter_all_gather(n: int, root: int = 0) -> Schedule:
    """Binomial scatter, ring all-gather: ceil(log2 n) + n-1 steps, about 2M through the root's port (van de Geijn; MPICH, long data)."""
    gather = Schedule.of("scatter-all-gather", ALL_GATHER, n, ring_all_gather(n))
    return then("scatter-all-gather", BROADCAST, _scatter(n, root), gather)


@algorithm(REDUCE)
def reduce_scatter_gather(n: int, root: int = 0) -> Schedule:
    """Ring reduce-scatter, binomial gather: n-1 + ceil(log2 n) steps, about 2M into the root's port (Rabenseifner's reduce)."""
    scatter = Schedule.of("reduce-scatter-gather", REDUCE_SCATTER, n, ring_reduce_scatter(n), root=root)
    return then("reduce-scatter-gather", REDUCE, scatter, binomial_gather(n, root))


def _scatter(n: int, root: int) -> Schedule:
    return Schedule.of("binomial-tree", SCATTER, n, binomial_scatter(n, root), root=root)
