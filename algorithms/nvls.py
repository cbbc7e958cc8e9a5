"""NVLS: the NVSwitch sums as it is read and multicasts what is written (multimem); over servers SHARP or trees."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import ALL_REDUCE
from algorithms.double_binary_tree import double_tree_parents
from algorithms.places import table
from algorithms.registry import ByDomain, algorithm
from algorithms.schedule import Send, copy, reduce
from algorithms.trees import edges

Ints = NDArray[np.int64]


@algorithm(ALL_REDUCE, pipelined=True)
def nvls(n: int, groups: ByDomain = None) -> Iterator[Send]:
    """Each GPU owns a slice, reads its sum from the switch, writes it back to all: M(1+1/g) each way a GPU (NCCL 2.17+, H100).

    Several servers: owners of equal number sum through the network's switches (SHARP) in between. Groups must be equal;
    without servers all ranks are in one."""
    servers = table("nvls", n, groups or (tuple(range(n)),))
    count, size = servers.shape
    owner = np.arange(size)
    yield from _load_reduce(n, servers)
    if count > 1:
        network = n + count + owner
        yield reduce(2, servers, network, chunk=owner, channel=2)  # not behind what is stored
        yield copy(3, network, servers, chunk=owner, channel=np.arange(count)[:, None])
    yield from _store(n, servers, 2 if count == 1 else 4)


@algorithm(ALL_REDUCE, pipelined=True)
def nvls_tree(n: int, groups: ByDomain = None) -> Iterator[Send]:
    """NVLS inside servers, a double binary tree over them for each GPU's slice: no SHARP needed (NCCL 2.18+).

    Groups must be equal; without servers they are as many as large, where n allows."""
    servers = table("nvls-tree", n, groups)
    count, size = servers.shape
    owner, height = np.arange(size), (count - 1).bit_length()
    yield from _load_reduce(n, servers, parts=2)
    for tree, parents in enumerate(double_tree_parents(count)):
        child, parent, depth, sibling = (column[:, None] for column in edges(parents))
        below, above, half = servers[child, owner], servers[parent, owner], 2 * owner + tree
        yield reduce(2 + height - depth, below, above, chunk=half, channel=2 + tree)
        yield copy(1 + height + depth, above, below, chunk=half, channel=4 + 2 * tree + sibling)
    yield from _store(n, servers, 2 + 2 * height, parts=2)


def _load_reduce(n: int, servers: Ints, parts: int = 1) -> Iterator[Send]:
    """The switch reads slice after slice from all its GPUs, and gives each sum to its owner."""
    owner, switch = np.arange(servers.shape[1]), n + np.arange(len(servers))
    yield reduce(0, servers[:, None, :], switch[:, None, None], chunk=parts * owner[:, None], count=parts)
    yield copy(1, switch[:, None], servers, chunk=parts * owner, count=parts, channel=len(owner) + owner)


def _store(n: int, servers: Ints, step: int, parts: int = 1) -> Iterator[Send]:
    """Owners write through the switch, which multicasts: all its ports, the owner's too, at once."""
    owner, switch = np.arange(servers.shape[1]), n + np.arange(len(servers))
    yield copy(step, servers, switch[:, None], chunk=parts * owner, count=parts, channel=1)
    yield copy(step + 1, switch[:, None, None], servers[:, None, :], chunk=parts * owner[:, None], count=parts, channel=owner)
