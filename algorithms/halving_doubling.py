"""Recursive doubling and halving-doubling: partners at distance 1, 2, 4... exchange all or half of what is left."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import ALL_REDUCE
from algorithms.registry import algorithm
from algorithms.schedule import Send, copy, reduce

Ints = NDArray[np.int64]


def _folded(n: int) -> tuple[int, int, Ints]:
    """(p, rest, rank of each of the p survivors): with rest = n - p, ranks 0, 2, ... below 2*rest hand their data to the next
    rank and wait (MPICH), so that p, a power of two, go on."""
    p = 1 << (n.bit_length() - 1)
    rest = n - p
    new = np.arange(p)
    return p, rest, np.where(new < rest, 2 * new + 1, new + rest)


@algorithm(ALL_REDUCE)
def recursive_doubling(n: int) -> Iterator[Send]:
    """log2 n exchanges of the whole data: fewest steps, most bytes (any n: two more steps off powers of two)."""
    p, rest, real = _folded(n)
    idle, step = 2 * np.arange(rest), 0
    if rest:
        yield reduce(step, idle, idle + 1, chunk=0)
        step += 1
    for level in range(p.bit_length() - 1):
        yield reduce(step, real, real[np.arange(p) ^ (1 << level)], chunk=0)
        step += 1
    if rest:
        yield copy(step, idle + 1, idle, chunk=0)


@algorithm(ALL_REDUCE)
def halving_doubling(n: int) -> Iterator[Send]:
    """Recursive halving reduce-scatter, then doubling all-gather: 2 log2 n steps, 2(n-1)/n of the data (Rabenseifner)."""
    p, rest, real = _folded(n)
    idle, step = 2 * np.arange(rest), 0
    if rest:
        yield reduce(step, idle, idle + 1, chunk=0, count=p)
        step += 1
    new = np.arange(p)
    low, held = np.zeros(p, dtype=np.int64), p  # rank new holds blocks [low, low + held)
    levels = range(p.bit_length() - 1)
    for level in levels:
        upper = (new >> level) & 1  # the partner below keeps the lower half
        half = held // 2
        yield reduce(step, real, real[new ^ (1 << level)], chunk=low + (1 - upper) * half, count=half)
        low, held, step = low + upper * half, half, step + 1
    for level in reversed(levels):
        yield copy(step, real, real[new ^ (1 << level)], chunk=low, count=held)
        low, held, step = low - ((new >> level) & 1) * held, 2 * held, step + 1
    if rest:
        yield copy(step, idle + 1, idle, chunk=0, count=p)
