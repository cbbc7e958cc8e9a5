"""NCCL's tree: a chain through the GPUs of each server, a double binary tree over the servers."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE
from algorithms.double_binary_tree import second_tree, tree_parents
from algorithms.places import table
from algorithms.registry import ByServer, algorithm
from algorithms.schedule import Send
from algorithms.trees import up_and_down
from topologies.errors import ScheduleError

BALANCED, SPLIT, TREE = 1, 2, 3
ATTACH = {BALANCED: (1, 0), SPLIT: (1, 1), TREE: (0, 0)}
"""Where in its server's chain the children of the first and second kind meet the parent (NCCL's graph patterns)."""


@algorithm(ALL_REDUCE, pipelined=True)
def nccl_tree(n: int, groups: ByServer = None, pattern: int = BALANCED) -> Iterator[Send]:
    """Chains of g GPUs inside servers, double trees over them, one pair a rail: g-1 + ceil(log2 K) levels up and down (NCCL 2.4+).

    ``pattern``: NCCL's number: 1 balanced tree, 2 split tree, 3 tree. Groups must be equal; without servers they are as many
    as large, where n allows."""
    if pattern not in ATTACH:
        raise ScheduleError(f"nccl-tree: pattern {pattern} must be 1 (balanced), 2 (split) or 3 (tree)")
    servers = table("nccl-tree", n, groups)
    count, size = servers.shape
    for rail in range(size):
        chain = np.roll(servers, -rail, axis=1)
        for tree, new in enumerate((range(count), second_tree(count))):
            parent = np.full(n, -1)
            parent[chain[:, 1:]] = chain[:, :-1]
            for child, up in enumerate(tree_parents(count)):
                if up >= 0:
                    kind = 0 if child < up else 1
                    parent[chain[new[child], 0]] = chain[new[up], ATTACH[pattern][kind] % size]
            share = 2 * rail + tree
            yield from up_and_down(parent.tolist(), chunk=share, queue=4 * share)
