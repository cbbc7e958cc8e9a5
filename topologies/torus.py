"""GPUs on a grid that wraps around in every dimension."""

from __future__ import annotations

import itertools
import math

from topologies.graph import Link, Node, Topology
from topologies.registry import Bandwidth, Dims, Seconds, check_size, topology


@topology
def torus(dims: Dims = (4, 4), bandwidth: Bandwidth = 25e9, latency: Seconds = 1e-6) -> Topology:
    """GPUs on a wrapped grid of any number of dimensions.

    Rank is the row-major position; a dimension of 2 has one cable between its two, not a pair. With D dimensions of
    even size k > 2, halving one cuts 2 k^(D-1) cables (Dally & Towles, chapter 5).
    """
    check_size("torus", "gpus", math.prod(dims), lambda n: n * (1 + 2 * len(dims)))
    name = {place: f"gpu{r}" for r, place in enumerate(itertools.product(*map(range, dims)))}
    links = []
    for place in name:
        for axis, size in enumerate(dims):
            # A set: the two neighbours are one if the dimension is 2, none if it is 1.
            for there in sorted({(place[axis] + 1) % size, (place[axis] - 1) % size} - {place[axis]}):
                other = (*place[:axis], there, *place[axis + 1 :])
                links.append(Link(name[place], name[other], "link", 1, bandwidth, latency))
    return Topology.build(f"torus-{'x'.join(map(str, dims))}", [Node(gpu, "gpu") for gpu in name.values()], links)
