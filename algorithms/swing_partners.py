"""Who exchanges with whom in swing, step by step: within one dimension, and on a torus in one dimension after the other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from algorithms.places import grid
from topologies.errors import ScheduleError

Ints = NDArray[np.int64]


def partners(name: str, n: int, dims: Sequence[int] | None) -> list[list[Ints]]:
    """Copies, each a list of steps, each the partner of every rank, shape [n].

    Without dims one copy, all ranks in one dimension. With D dims above 1: 2D copies, one starting in each dimension and its mirror
    image, so that at every step each dimension carries two copies, one each way. ScheduleError for dims that are not even."""
    if dims is None:
        return [_steps((n,), 0, 1)]
    sizes, text = grid(name, n, dims), "x".join(map(str, dims))
    for axis, size in enumerate(sizes):
        if size % 2 and size > 1:
            rule = "needs an even size in every dimension, since partners stand at places of different parity"
            raise ScheduleError(f"{name}: dims {text}: {rule}; dimension {axis} has {size}: write dims={n} for one dimension")
    used = tuple(size for size in sizes if size > 1)
    return [_steps(used, first, way) for first in range(len(used)) for way in (1, -1)]


def _steps(dims: tuple[int, ...], first: int, way: int) -> list[Ints]:
    """Round and round from dimension ``first``, leaving out those that have had their ceil(log2 size) steps. In step s of a dimension
    even places go rho = 1 - 2 + 4 - ... (s + 1 terms) to the right, odd places as far to the left; ``way`` -1: mirrored."""
    ranks, around = np.arange(np.prod(dims)).reshape(dims), (*range(first, len(dims)), *range(first))
    steps = []
    for step in range((max(dims) - 1).bit_length()):
        rho = way * (1 - (-2) ** (step + 1)) // 3
        for axis in (axis for axis in around if step < (dims[axis] - 1).bit_length()):
            place = np.indices(dims)[axis]
            other = (place + np.where(place % 2 == 0, rho, -rho)) % dims[axis]
            steps.append(np.take_along_axis(ranks, other, axis).ravel())
    return steps
