"""Chain: data passes from the root through every rank; in slices it becomes a pipeline."""

from __future__ import annotations

from collections.abc import Iterator

from algorithms.collectives import BROADCAST, REDUCE
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse


@algorithm(BROADCAST, name="chain", pipelined=True)
def chain(n: int, root: int = 0) -> Iterator[Send]:
    """root -> root+1 -> ...: n-1 hops; in S slices n+S-2 steps of M/S (the only broadcast that NCCL's tuner scores)."""
    for step in range(n - 1):
        yield copy(step, (root + step) % n, (root + step + 1) % n, chunk=0)


@algorithm(REDUCE, name="chain", pipelined=True)
def chain_reduce(n: int, root: int = 0) -> Schedule:
    """The chain broadcast reversed: partial sums flow towards the root."""
    return reverse("chain", REDUCE, Schedule.of("chain", BROADCAST, n, chain(n, root), root=root))
