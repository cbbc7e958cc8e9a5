"""Ranks as a table of equal groups, grids of ranks, and chunk ranges that wrap around: what several algorithms share."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from algorithms.registry import Groups
from algorithms.schedule import Send
from topologies.errors import ScheduleError

Ints = NDArray[np.int64]


def wrapped(send: Send, n: int) -> Iterator[Send]:
    """Chunk ranges of a circle of ``n`` chunks: what passes the end goes on at chunk 0, in the same message."""
    chunk, count = np.broadcast_arrays(np.asarray(send.chunk) % n, np.asarray(send.count))
    first = np.minimum(count, n - chunk)
    over = count > first
    yield replace(send, chunk=chunk, count=first, message=0)
    rest = {name: np.broadcast_to(getattr(send, name), chunk.shape)[over] for name in ("step", "src", "dst", "op", "channel")}
    yield Send(**rest, chunk=0, count=(count - first)[over], message=0)


def whole(name: str, n: int, groups: Groups | None) -> Groups:
    """The partition, by default one group of all ranks; ScheduleError unless it names each rank once."""
    groups = groups or (tuple(range(n)),)
    if sorted(rank for group in groups for rank in group) != list(range(n)):
        raise ScheduleError(f"{name}: groups {groups} must name each rank 0..{n - 1} once")
    return groups


def table(name: str, n: int, groups: Groups | None, *, small: bool = False) -> Ints:
    """Shape [groups, ranks of a group]; by default groups of the smallest size of at least sqrt(n) that divides n, or (``small``)
    that many groups.

    ScheduleError unless each rank is named once and the groups are of equal size."""
    if groups is None:
        large = min(d for d in range(1, n + 1) if n % d == 0 and d * d >= n)
        return np.arange(n).reshape((large, -1) if small else (-1, large))
    sizes = sorted({len(group) for group in whole(name, n, groups)})
    if len(sizes) > 1:
        raise ScheduleError(f"{name}: groups of {', '.join(map(str, sizes))} ranks; needs groups of equal size")
    return np.array(groups, dtype=np.int64)


def grid(name: str, n: int, dims: Sequence[int] | None) -> tuple[int, ...]:
    """Sizes of the dimensions, by default two as equal as n allows; ScheduleError unless their product is ``n``."""
    if dims is None:
        return table(name, n, None).shape
    if math.prod(dims) != n:
        raise ScheduleError(f"{name}: dims {'x'.join(map(str, dims))} have {math.prod(dims)} places; needs {n}, the number of ranks")
    return tuple(dims)
