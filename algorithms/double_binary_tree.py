"""Double binary tree: two trees, each with half the data, in which (n even) every rank is a leaf of at least one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE
from algorithms.registry import algorithm
from algorithms.schedule import Send, copy, reduce

UP, DOWN = 0, 1  # reduce-up and broadcast-down leave by queues of their own, as NCCL splits its threads


def tree_parents(n: int) -> list[int]:
    """Parent of each rank in the first tree, -1 for root 0: with x the lowest set bit of r, (r ^ x) | 2x if that is a rank,
    else r ^ x (NCCL trees.cc, any n)."""
    parents = [-1]
    for r in range(1, n):
        low = r & -r
        up = (r ^ low) | (low << 1)
        parents.append(up if up < n else r ^ low)
    return parents


def double_tree_parents(n: int) -> tuple[list[int], list[int]]:
    """Parents in both trees. The second is the first mirrored (n even) or shifted by one rank (n odd)."""
    first = tree_parents(n)
    new = [n - 1 - r for r in range(n)] if n % 2 == 0 else [(r + 1) % n for r in range(n)]
    second = [-1] * n
    for r, parent in enumerate(first):
        second[new[r]] = -1 if parent < 0 else new[parent]
    return first, second


@algorithm(ALL_REDUCE, pipelined=True)
def double_binary_tree(n: int) -> Iterator[Send]:
    """Sums flow up and results down two trees, half the data each (Sanders, Speck & Traff 2009; NCCL since 2.4)."""
    for tree, parents in enumerate(double_tree_parents(n)):
        depth = np.zeros(n, dtype=np.int64)
        for r in range(n):
            walk = r
            while (walk := parents[walk]) >= 0:
                depth[r] += 1
        child = np.flatnonzero(depth)
        parent = np.asarray(parents)[child]
        second = np.array([p in parent[:i] for i, p in enumerate(parent)])  # the second child gets a queue of its own
        height = int(depth.max())
        queue = 3 * tree
        yield reduce(height - depth[child], child, parent, chunk=tree, channel=queue + UP)
        yield copy(height - 1 + depth[child], parent, child, chunk=tree, channel=queue + DOWN + second)
