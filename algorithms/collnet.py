"""CollNet: servers reduce inside by themselves; the network's switches (SHARP) sum over servers, one aggregator a rail."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE
from algorithms.places import table
from algorithms.registry import ByServer, algorithm
from algorithms.schedule import Send, copy, reduce


@algorithm(ALL_REDUCE, pipelined=True)
def collnet_chain(n: int, groups: ByServer = None) -> Iterator[Send]:
    """A chain through each server's g GPUs to one head a rail, SHARP above, back: M/g each way on a NIC, 2g steps (NCCL).

    Groups must be equal; without servers they are about as many as large, of one GPU where n is prime."""
    servers = table("collnet-chain", n, groups, small=True)
    count, size = servers.shape
    for rail in range(size):
        chain, switch, queue = np.roll(servers, -rail, axis=1), n + rail, 2 * rail
        for step in range(size - 1):
            yield reduce(step, chain[:, size - 1 - step], chain[:, size - 2 - step], chunk=rail, channel=queue)
        yield reduce(size - 1, chain[:, 0], switch, chunk=rail, channel=queue)
        yield copy(size, switch, chain[:, 0], chunk=rail, channel=np.arange(count))
        for step in range(size - 1):
            yield copy(size + 1 + step, chain[:, step], chain[:, step + 1], chunk=rail, channel=queue + 1)


@algorithm(ALL_REDUCE, pipelined=True)
def collnet_direct(n: int, groups: ByServer = None) -> Iterator[Send]:
    """Every GPU heads one slice: direct reduce-scatter in the server, SHARP above, direct all-gather: 4 steps (NCCL).

    Groups must be equal; without servers they are about as many as large, of one GPU where n is prime."""
    servers = table("collnet-direct", n, groups, small=True)
    count, size = servers.shape
    head = np.arange(size)
    for turn in range(1, size):
        yield reduce(0, servers, np.roll(servers, -turn, axis=1), chunk=(head + turn) % size, channel=turn)
    yield reduce(1, servers, n + head, chunk=head)
    yield copy(2, n + head, servers, chunk=head, channel=np.arange(count)[:, None])
    for turn in range(1, size):
        yield copy(3, servers, np.roll(servers, -turn, axis=1), chunk=head, channel=size - 1 + turn)
