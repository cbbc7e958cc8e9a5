"""Halo exchange: every rank of a periodic grid sends a part of its boundary to each neighbour, all at once."""

from __future__ import annotations

import numpy as np

from algorithms.collectives import SENDRECV
from algorithms.patterns import pattern
from algorithms.places import grid
from algorithms.registry import Dims, algorithm
from algorithms.schedule import Schedule


@algorithm(SENDRECV)
def halo(n: int, dims: Dims | None = None) -> Schedule:
    """M/(2D) to each of 2D neighbours in a periodic grid of D dims such as 4x4, row by row: the boundaries of a stencil.

    In a dimension of 2 both neighbours are one rank, which gets both blocks, each as a message; one of 1 has no neighbours.
    Stencil and CFD codes; MPI_Neighbor_alltoall on a Cartesian communicator. Dims: those of the topology, else two as equal as n
    allows."""
    ranks = np.arange(n).reshape(grid("halo", n, dims))
    sides = [np.roll(ranks, way, axis).ravel() for axis, size in enumerate(ranks.shape) if size > 1 for way in (1, -1)]
    return pattern("halo", np.stack(sides, axis=1))
