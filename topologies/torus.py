"""GPUs on a grid that wraps around in every dimension."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence

from topologies.graph import Link, Node, Topology
from topologies.registry import Bandwidth, Dims, Seconds, check_size, topology


@topology
def torus(dims: Dims = (4, 4), bandwidth: Bandwidth = 25e9, latency: Seconds = 1e-6) -> Topology:
    """GPUs on a wrapped grid of any number of dimensions.

    Rank is the row-major position; a dimension of 2 has one cable between its two, not a pair. With D dimensions of
    even size k > 2, halving one cuts 2 k^(D-1) cables (Dally & Towles, chapter 5).
    """
    check_size("torus", "gpus", math.prod(dims), lambda n: n * (1 + 2 * len(dims)))
    links = [Link(f"gpu{a}", f"gpu{b}", "link", 1, bandwidth, latency) for a, b in grid(dims, (True,) * len(dims))]
    nodes = [Node(f"gpu{r}", "gpu") for r in range(math.prod(dims))]
    return Topology.build(f"torus-{'x'.join(map(str, dims))}", nodes, links, dims=tuple(dims))


def grid(dims: Sequence[int], wraps: Sequence[bool]) -> Iterator[tuple[int, int]]:
    """Pairs of neighbouring ranks, each in both directions; dimension i is a circle if ``wraps[i]``, else a row."""
    ranks = {place: r for r, place in enumerate(itertools.product(*map(range, dims)))}
    for place, rank in ranks.items():
        for axis, (size, wrap) in enumerate(zip(dims, wraps, strict=True)):
            ways = [there % size for there in (place[axis] + 1, place[axis] - 1) if wrap or 0 <= there < size]
            # A set: the two neighbours are one if the dimension is 2, none if it is 1.
            for there in sorted({*ways} - {place[axis]}):
                yield rank, ranks[(*place[:axis], there, *place[axis + 1 :])]
