"""In-network reduction: switches sum what comes up and multicast the result down (NVIDIA SHARP, NVLS)."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE
from algorithms.places import whole
from algorithms.registry import Groups, algorithm
from algorithms.schedule import Send, copy, reduce


@algorithm(ALL_REDUCE, pipelined=True)
def sharp(n: int, groups: Groups | None = None) -> Iterator[Send]:
    """Each rank sends M up and receives M, half of ring's traffic: one aggregator a group (leaf) and one above them."""
    leaves = whole("sharp", n, groups)
    leaf_of = np.empty(n, dtype=np.int64)
    for number, group in enumerate(leaves):
        leaf_of[list(group)] = n + number
    rank, leaf, top = np.arange(n), n + np.arange(len(leaves)), n + len(leaves)
    levels = 1 if len(leaves) == 1 else 2
    yield reduce(0, rank, leaf_of, chunk=0)
    if levels == 2:
        yield reduce(1, leaf, top, chunk=0)
        yield copy(2, top, leaf, chunk=0, channel=leaf)  # a multicast leaves by all ports at once
    yield copy(2 * levels - 1, leaf_of, rank, chunk=0, channel=1 + rank)  # 0 is the way up: slices must pass one another
