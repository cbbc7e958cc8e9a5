"""Multi-ring: several rings at once, each with a share of the data, so that every NIC and every link has work."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from algorithms.places import table
from algorithms.registry import ByServer, algorithm
from algorithms.ring import ring, ring_all_gather, ring_reduce_scatter
from algorithms.schedule import Schedule, Send
from algorithms.transforms import merge_channels, relabel
from topologies.errors import ScheduleError


@algorithm(ALL_REDUCE)
def multi_ring(n: int, groups: ByServer = None, rings: int = 0) -> Schedule:
    """2(n-1) steps on C rings, M/C on each: one a GPU of a server, each entering it at another GPU (NCCL's channels).

    ``rings`` 0: as many as a server has GPUs. In one server (or without servers): the edge-disjoint ones, at most 8; of more
    than 16 ranks two, in opposite directions. Groups must be equal."""
    return _rings(ALL_REDUCE, n, ring(n), groups, rings)


@algorithm(REDUCE_SCATTER, name="multi-ring")
def multi_ring_reduce_scatter(n: int, groups: ByServer = None, rings: int = 0) -> Schedule:
    """n-1 steps on C rings, a C-th of every chunk on each, as the multi-ring all-reduce's first half."""
    return _rings(REDUCE_SCATTER, n, ring_reduce_scatter(n), groups, rings)


@algorithm(ALL_GATHER, name="multi-ring")
def multi_ring_all_gather(n: int, groups: ByServer = None, rings: int = 0) -> Schedule:
    """n-1 steps on C rings, a C-th of every chunk on each, as the multi-ring all-reduce's second half."""
    return _rings(ALL_GATHER, n, ring_all_gather(n), groups, rings)


def ring_orders(servers: NDArray[np.int64]) -> list[list[int]]:
    """Orders of ranks, ``servers`` of shape [servers, GPUs]. Ring c comes into a server at GPU c and zigzags c+1, c-1, c+2...;
    odd servers go backwards, so that it passes from rail to equal rail (but once, if servers are odd in number) and no link
    between GPUs is used twice (g even). One server: zigzags around its last GPU, both ways (Walecki 1892)."""
    count, size = servers.shape
    if count > 1:
        ways = [np.roll(servers, -c, axis=1)[:, _zigzag(size)] for c in range(size)]
        return [np.concatenate([row[:: 1 if k % 2 == 0 else -1] for k, row in enumerate(way)]).tolist() for way in ways]
    others = servers[0, :-1]
    ways = [np.append(np.roll(others, -c)[_zigzag(size - 1)], servers[0, -1]) for c in range(max(1, (size - 1) // 2))]
    return [order.tolist() for way in ways for order in (way, way[::-1])][: max(1, size - 1)]


def _zigzag(m: int) -> NDArray[np.int64]:
    turn = np.arange(m)
    return np.where(turn % 2 == 1, (turn + 1) // 2, -turn // 2) % m


def _rings(collective: Collective, n: int, sends: Iterator[Send], groups: ByServer, rings: int) -> Schedule:
    servers = table("multi-ring", n, groups or (tuple(range(n)),))
    orders = ring_orders(servers)
    if not 0 <= rings <= len(orders):
        raise ScheduleError(f"multi-ring: rings {rings} must be between 1 and {len(orders)} here, or 0")
    default = len(orders) if len(servers) > 1 else 8 if n <= 16 else 2
    one = Schedule.of("multi-ring", collective, n, sends)
    return merge_channels("multi-ring", [relabel(one, np.roll(order, -order.index(0))) for order in orders[: rings or default]])
