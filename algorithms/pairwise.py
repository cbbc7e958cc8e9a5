"""Pairwise all-to-all, flat and in two levels: in each step every rank sends to one rank and receives from one."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_TO_ALL
from algorithms.places import table
from algorithms.registry import ByServer, algorithm
from algorithms.schedule import Send, copy


@algorithm(ALL_TO_ALL)
def pairwise(n: int) -> Iterator[Send]:
    """n-1 steps of one block to one peer: no two ranks ever send to the same one (MPICH, long data)."""
    rank = np.arange(n)
    for step in range(n - 1):
        peer = rank ^ (step + 1) if n & (n - 1) == 0 else (rank + step + 1) % n  # pairs where n is a power of two
        yield copy(step, rank, peer, chunk=rank * n + peer)


@algorithm(ALL_TO_ALL, name="hierarchical")
def hierarchical_all_to_all(n: int, groups: ByServer = None) -> Iterator[Send]:
    """Inside servers first, then along rails: g-1 steps of M/g, K-1 of M/K for K servers of g GPUs (DeepEP; NCCL's PXN).

    GPU j of a server collects from its fellows what is for GPU j of any server, then exchanges with GPU j of the other
    servers. Groups must be equal; without servers they are as many as large, where n allows."""
    gpu = table("hierarchical", n, groups)
    servers, size = gpu.shape
    k, j, far, i = (axis.ravel() for axis in np.indices((servers, size, servers, size)))  # from GPU j of k, for GPU i of far
    block = gpu[k, j] * n + gpu[far, i]
    for step in range(1, size):
        now = (i - j) % size == step
        yield Send(step - 1, gpu[k, j][now], gpu[k, i][now], chunk=block[now], message=0)
    for step in range(1, servers):
        now = (far - k) % servers == step
        yield Send(size - 2 + step, gpu[k, i][now], gpu[far, i][now], chunk=block[now], message=0)
