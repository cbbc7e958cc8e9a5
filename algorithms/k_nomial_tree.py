"""k-nomial tree: as the binomial tree, but a holder serves k-1 ranks a level, so that the tree has fewer levels."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE, BROADCAST, REDUCE
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse, then
from topologies.errors import ScheduleError


@algorithm(BROADCAST, name="k-nomial-tree")
def k_nomial_broadcast(n: int, root: int = 0, radix: int = 4) -> Iterator[Send]:
    """ceil(log_k n) levels of k-1 sends at once: fewer levels than binomial, more bytes out of a port (MPICH's tree_kary).

    A rank's parent is its number in base k (``radix``) with the lowest digit that is not 0 cleared; farthest ranks first."""
    if radix < 2:
        raise ScheduleError(f"k-nomial-tree: radix {radix} must be at least 2")
    rank, radix = np.arange(n), min(radix, n)
    levels = next(level for level in range(1, n + 1) if radix**level >= n)
    for step in range(levels):
        distance = radix ** (levels - 1 - step)
        for digit in range(1, radix):
            parent = rank[(rank % (radix * distance) == 0) & (rank + digit * distance < n)]
            yield copy(step, (parent + root) % n, (parent + digit * distance + root) % n, chunk=0, channel=digit - 1)


@algorithm(REDUCE, name="k-nomial-tree")
def k_nomial_reduce(n: int, root: int = 0, radix: int = 4) -> Schedule:
    """The k-nomial broadcast reversed: k-1 ranks send to their parent at once."""
    down = Schedule.of("k-nomial-tree", BROADCAST, n, k_nomial_broadcast(n, root, radix), root=root)
    return reverse("k-nomial-tree", REDUCE, down)


@algorithm(ALL_REDUCE, name="k-nomial-tree")
def k_nomial_all_reduce(n: int, radix: int = 4) -> Schedule:
    """Reduce to rank 0, then broadcast: 2 ceil(log_k n) levels of the whole data."""
    down = Schedule.of("k-nomial-tree", BROADCAST, n, k_nomial_broadcast(n, radix=radix))
    return then("k-nomial-tree", ALL_REDUCE, reverse("k-nomial-tree", REDUCE, down), down)
