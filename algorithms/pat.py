"""PAT, parallel aggregated trees: a binomial tree for each block, walked so that few blocks are on their way at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from algorithms.collectives import ALL_GATHER, REDUCE_SCATTER
from algorithms.registry import algorithm
from algorithms.schedule import Schedule, Send
from algorithms.transforms import reverse
from topologies.errors import ScheduleError


@algorithm(ALL_GATHER, name="pat")
def pat_all_gather(n: int, aggregation: int = 0) -> Iterator[Send]:
    """log2 A + P/A - 1 steps for any n (P = n up to a power of two), A blocks a message (NCCL 2.23; arXiv 2506.20252).

    The block that started s ranks further comes from the rank lowbit(s) further. ``aggregation`` A: a power of two up to P/2;
    0: P/2, so log2 P steps, as for small data; 1: n-1 steps and the least buffers, as for large data."""
    p = 1 << (n - 1).bit_length()
    blocks = aggregation or p // 2
    if blocks not in {1 << bit for bit in range(p.bit_length() - 1)}:
        raise ScheduleError(f"pat: aggregation {aggregation} for {n} ranks: needs a power of two up to {p // 2}, or 0 for that")
    rank, step = np.arange(n)[:, None], 0
    for offsets in _rounds(p, blocks):
        offset = offsets[offsets < n]
        if len(offset):
            near = int(offset[0] & -offset[0])  # the same for all offsets of a round
            yield Send(step, (rank + near) % n, rank, chunk=(rank + offset) % n, message=0)
            step += 1


@algorithm(REDUCE_SCATTER, name="pat")
def pat_reduce_scatter(n: int, aggregation: int = 0) -> Schedule:
    """The PAT all-gather reversed: partial sums travel towards the block's owner, the nearest ranks last."""
    gather = Schedule.of("pat", ALL_GATHER, n, pat_all_gather(n, aggregation))
    return reverse("pat", REDUCE_SCATTER, gather)


def _rounds(p: int, blocks: int) -> Iterator[np.ndarray]:
    """Offsets of each round: multiples of P/A first, farthest first, then the positions between them, depth first."""
    stride = p // blocks
    scale = blocks // 2
    while scale:
        yield np.arange(scale, blocks, 2 * scale) * stride
        scale //= 2
    for position in _depth_first(stride // 2):
        yield np.arange(blocks) * stride + position


def _depth_first(top: int, base: int = 0) -> Iterator[int]:
    """Positions below ``base``, each before its own children, the largest bit first: 4 6 7 5 2 3 1 for ``top`` 4."""
    while top:
        yield base + top
        yield from _depth_first(top // 2, base + top)
        top //= 2
