"""Parameter server: workers push to servers, which sum, and pull the sums back; every rank works, some also serve."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_REDUCE
from algorithms.registry import algorithm
from algorithms.schedule import Send, copy, reduce
from topologies.errors import ScheduleError


@algorithm(ALL_REDUCE)
def parameter_server(n: int, root: int = 0) -> Iterator[Send]:
    """One server: all push to the root at once, then it sends the sum to all; its link carries n-1 times the data."""
    worker = np.delete(np.arange(n), root)
    yield reduce(0, worker, root, chunk=0)
    yield copy(1, root, worker, chunk=0)


@algorithm(ALL_REDUCE)
def sharded_parameter_server(n: int, servers: int = 0) -> Iterator[Send]:
    """The data split over servers on the first ranks (0: one on every rank, co-located, as much traffic as a ring)."""
    servers = servers or n
    if not 1 <= servers <= n:
        raise ScheduleError(f"sharded-parameter-server: servers {servers} must be between 1 and {n}, the number of ranks")
    rank = np.arange(n)
    for turn in range(servers):  # rank r visits server r + turn: no two ranks of a turn meet at a server when servers = n
        server = (rank + turn) % servers
        away = server != rank
        yield reduce(turn, rank[away], server[away], chunk=server[away])
    server = np.arange(servers)
    for turn in range(1, n):
        yield copy(servers - 1 + turn, server, (server + turn) % n, chunk=server)


@algorithm(ALL_REDUCE)
def data_parallel(n: int, root: int = 0) -> Iterator[Send]:
    """nn.DataParallel: one GPU gathers n-1 gradients at once, then copies to all at once; 2(n-1)M through its port, the others idle.

    It also holds all that it gathers: n-1 times the data more than any other GPU (PyTorch advises DistributedDataParallel)."""
    worker = np.delete(np.arange(n), root)
    yield reduce(0, worker, root, chunk=0)
    yield copy(1, root, worker, chunk=0, channel=np.arange(n - 1))
