"""Direct: every rank deals with every other one at once, a queue for each; for machines where all are linked to all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send, copy, reduce
from algorithms.transforms import reverse, then


@algorithm(ALL_GATHER, name="direct")
def direct_all_gather(n: int) -> Iterator[Send]:
    """One step: every rank sends its block to all others at once, (n-1)/n of the data."""
    rank, turn = np.arange(n), np.arange(1, n)[:, None]
    yield copy(0, rank, (rank + turn) % n, chunk=rank, channel=turn - 1)


@algorithm(REDUCE_SCATTER, name="direct")
def direct_reduce_scatter(n: int) -> Schedule:
    """One step: every rank sends all others their blocks at once; each sums n-1 of them."""
    return reverse("direct", REDUCE_SCATTER, Schedule.of("direct", ALL_GATHER, n, direct_all_gather(n)))


@algorithm(ALL_REDUCE)
def one_shot(n: int) -> Iterator[Send]:
    """One step: every rank sends everything to all, (n-1) M each; for data so small that only latency counts (vLLM, TensorRT-LLM)."""
    rank, turn = np.arange(n), np.arange(1, n)[:, None]
    yield reduce(0, rank, (rank + turn) % n, chunk=0, channel=turn - 1)


@algorithm(ALL_REDUCE)
def two_shot(n: int) -> Schedule:
    """Direct reduce-scatter, then direct all-gather: 2 steps, 2(n-1)/n of the data (vLLM, TensorRT-LLM; ASTRA-sim's direct)."""
    gather = Schedule.of("direct", ALL_GATHER, n, direct_all_gather(n))
    return then("two-shot", ALL_REDUCE, reverse("direct", REDUCE_SCATTER, gather), gather)


@algorithm(ALL_TO_ALL, name="direct")
def direct_all_to_all(n: int) -> Iterator[Send]:
    """One step: all n-1 blocks of every rank leave at once, (n-1)/n of the data (NCCL's grouped send and receive)."""
    rank, turn = np.arange(n), np.arange(1, n)[:, None]
    peer = (rank + turn) % n
    yield copy(0, rank, peer, chunk=rank * n + peer, channel=turn - 1)
