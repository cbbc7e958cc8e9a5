"""Hierarchical: reduce-scatter inside the servers, all-reduce across them, all-gather inside; in two or three levels."""

from __future__ import annotations

import numpy as np

from algorithms.bucket import bucket
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from algorithms.places import grid, table
from algorithms.registry import ByServer, algorithm
from algorithms.schedule import Schedule
from topologies.errors import ScheduleError


@algorithm(ALL_REDUCE)
def hierarchical(n: int, groups: ByServer = None) -> Schedule:
    """2(g-1) + 2(K-1) steps for K servers of g GPUs; 2(K-1)M/(Kg) leave a GPU's server (Horovod, BlueConnect, 2D torus).

    Rings in each server, and across servers among GPUs of equal number. Groups must be equal; without servers they are as
    many as large, where n allows."""
    return _two_levels(ALL_REDUCE, n, groups)


@algorithm(REDUCE_SCATTER, name="hierarchical")
def hierarchical_reduce_scatter(n: int, groups: ByServer = None) -> Schedule:
    """Ring reduce-scatter in each server, then across servers among GPUs of equal number: g-1 + K-1 steps."""
    return _two_levels(REDUCE_SCATTER, n, groups)


@algorithm(ALL_GATHER, name="hierarchical")
def hierarchical_all_gather(n: int, groups: ByServer = None) -> Schedule:
    """Ring all-gather across servers among GPUs of equal number, then in each server: K-1 + g-1 steps."""
    return _two_levels(ALL_GATHER, n, groups)


@algorithm(ALL_REDUCE, name="hierarchical-3")
def hierarchical_3(n: int, groups: ByServer = None, servers: int = 0) -> Schedule:
    """Three levels: in servers, across the ``servers`` of a rack or pod, across these: 2(g-1) + 2(k-1) + 2(K/k-1) steps.

    ``servers`` next to one another form a rack; 0: racks as large as they are many, where the number of servers allows."""
    ranks = table("hierarchical-3", n, groups)
    count, size = ranks.shape
    if servers < 0 or (servers and count % servers):
        raise ScheduleError(f"hierarchical-3: servers {servers} of {count} to a rack: needs a divisor of {count}")
    racks, rack = (count // servers, servers) if servers else grid("hierarchical-3", count, None)
    return bucket("hierarchical-3", ALL_REDUCE, (size, rack, racks), ranks.reshape(racks, rack, size).transpose(2, 1, 0).ravel().tolist())


def _two_levels(collective: Collective, n: int, groups: ByServer) -> Schedule:
    ranks = table("hierarchical", n, groups)
    return bucket("hierarchical", collective, ranks.shape[::-1], np.transpose(ranks).ravel().tolist())
