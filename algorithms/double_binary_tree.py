"""Double binary tree: two trees, each with half the data, in which (n even) every rank is a leaf of at least one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE, BROADCAST, REDUCE
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy
from algorithms.transforms import reverse
from algorithms.trees import edges, up_and_down


def tree_parents(n: int) -> list[int]:
    """Parent of each rank in the first tree, -1 for root 0: with x the lowest set bit of r, (r ^ x) | 2x if that is a rank,
    else r ^ x (NCCL trees.cc, any n)."""
    nearest = [(r ^ (r & -r)) | (r & -r) << 1 for r in range(n)]
    return [-1] + [up if up < n else r ^ (r & -r) for r, up in enumerate(nearest) if r]


def double_tree_parents(n: int) -> tuple[list[int], list[int]]:
    """Parents in both trees. The second is the first mirrored (n even) or shifted by one rank (n odd)."""
    first, new = tree_parents(n), second_tree(n)
    second = [-1] * n
    for r, parent in enumerate(first):
        second[new[r]] = -1 if parent < 0 else new[parent]
    return first, second


def second_tree(n: int) -> list[int]:
    """The rank that plays the part of rank r of the first tree in the second."""
    return [n - 1 - r for r in range(n)] if n % 2 == 0 else [(r + 1) % n for r in range(n)]


@algorithm(ALL_REDUCE, pipelined=True)
def double_binary_tree(n: int) -> Iterator[Send]:
    """Sums flow up and results down two trees, half the data each (Sanders, Speck & Traff 2009; NCCL since 2.4)."""
    for tree, parents in enumerate(double_tree_parents(n)):
        yield from up_and_down(parents, chunk=tree, queue=3 * tree)


@algorithm(BROADCAST, name="double-binary-tree", pipelined=True)
def double_tree_broadcast(n: int, root: int = 0) -> Iterator[Send]:
    """The root feeds two trees of the others, half the data each: ceil(log2(n-1)) + 1 levels, near M/B in many slices (Sanders et al.)."""
    other = (root + np.arange(1, n)) % n
    for tree, parents in enumerate(double_tree_parents(n - 1)):
        child, parent, depth, sibling = edges(parents)
        yield copy(0, root, other[parents.index(-1)], chunk=tree, channel=tree)
        yield copy(depth, other[parent], other[child], chunk=tree, channel=2 * tree + sibling)


@algorithm(REDUCE, name="double-binary-tree", pipelined=True)
def double_tree_reduce(n: int, root: int = 0) -> Schedule:
    """The double tree broadcast reversed: half the sums come up each of two trees to the root."""
    down = Schedule.of("double-binary-tree", BROADCAST, n, double_tree_broadcast(n, root), root=root)
    return reverse("double-binary-tree", REDUCE, down)
