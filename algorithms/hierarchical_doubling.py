"""Hierarchical with halving-doubling across servers: few steps on thousands of servers, each rail on its own part."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from algorithms.collectives import ALL_REDUCE
from algorithms.halving_doubling import halving_doubling
from algorithms.places import table
from algorithms.registry import ByServer, algorithm
from algorithms.schedule import Send, copy, reduce


@algorithm(ALL_REDUCE)
def hierarchical_doubling(n: int, groups: ByServer = None) -> Iterator[Send]:
    """2(g-1) + 2 log2 K steps for K servers of g GPUs: rings in servers, halving-doubling across them among GPUs of equal number.

    2(K-1)M/(Kg) leave a GPU's server, as with rings (any K: two more steps off powers of two). Groups must be equal.
    BlueConnect's levels (Cho et al. 2019) with Rabenseifner's algorithm across."""
    ranks = table("hierarchical-doubling", n, groups)
    servers, size = ranks.shape
    part = 1 << (servers.bit_length() - 1)  # chunks of each GPU's part of the data
    at = np.tile(np.arange(size), servers)
    here, right = ranks.ravel(), np.roll(ranks, -1, axis=1).ravel()
    for turn in range(size - 1):
        yield reduce(turn, here, right, chunk=(at - 1 - turn) % size * part, count=part)
    step = size - 1
    for send in halving_doubling(servers) if servers > 1 else ():
        step = size + int(np.asarray(send.step))
        yield _on_rails(replace(send, step=step - 1), ranks, part)
    for turn in range(size - 1):
        yield copy(step + turn, here, right, chunk=(at - turn) % size * part, count=part)


def _on_rails(send: Send, ranks: np.ndarray[tuple[int, ...], np.dtype[np.int64]], part: int) -> Send:
    """A send between servers, done by each rail on its part of the data."""
    src, dst, chunk, count = np.broadcast_arrays(*(np.atleast_1d(np.asarray(x)) for x in (send.src, send.dst, send.chunk, send.count)))
    rail = np.arange(ranks.shape[1]) * part
    count = np.repeat(count, ranks.shape[1])
    return replace(send, src=ranks[src].ravel(), dst=ranks[dst].ravel(), chunk=(chunk[:, None] + rail).ravel(), count=count)
