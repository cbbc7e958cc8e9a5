"""Flat: the root deals with every other rank itself, one after the other."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import BROADCAST, GATHER, REDUCE, SCATTER
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse


@algorithm(BROADCAST, name="flat")
def flat_broadcast(n: int, root: int = 0) -> Iterator[Send]:
    """The root sends the whole data n-1 times, to one rank after the other (Open MPI's linear)."""
    turn = np.arange(1, n)
    yield copy(turn - 1, root, (root + turn) % n, chunk=0)


@algorithm(REDUCE, name="flat")
def flat_reduce(n: int, root: int = 0) -> Schedule:
    """Every rank sends the whole data to the root: n-1 times the data into one port (the flat broadcast reversed)."""
    return reverse("flat", REDUCE, Schedule.of("flat", BROADCAST, n, flat_broadcast(n, root), root=root))


@algorithm(SCATTER, name="flat")
def flat_scatter(n: int, root: int = 0) -> Iterator[Send]:
    """The root sends every rank its chunk, n-1 messages of 1/n of the data: least bytes, most messages of the root."""
    turn = np.arange(1, n)
    yield copy(turn - 1, root, (root + turn) % n, chunk=(root + turn) % n)


@algorithm(GATHER, name="flat")
def flat_gather(n: int, root: int = 0) -> Schedule:
    """Every rank sends its chunk to the root (the flat scatter reversed)."""
    return reverse("flat", GATHER, Schedule.of("flat", SCATTER, n, flat_scatter(n, root), root=root))
