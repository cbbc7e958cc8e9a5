"""Torus bucket: copies of the bucket algorithm, one starting in each dimension, so that all links of a torus work at once."""

from __future__ import annotations

import numpy as np

from algorithms.bucket import bucket
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from algorithms.places import grid
from algorithms.registry import Dims, algorithm
from algorithms.schedule import Schedule
from algorithms.transforms import merge_channels
from topologies.errors import ScheduleError


@algorithm(ALL_REDUCE)
def torus_bucket(n: int, dims: Dims | None = None, bidirectional: int = 0) -> Schedule:
    """2 sum(d-1) steps over dims such as 4x4, one copy on M/D starting in each of the D dimensions (BlueConnect; TPU tori).

    Ranks are numbered row by row. ``bidirectional`` 1: also the other way round, 2D copies on M/(2D). Without dims: those of the
    topology, else two as equal as n allows."""
    return _copies(ALL_REDUCE, n, dims, bidirectional)


@algorithm(REDUCE_SCATTER, name="torus-bucket")
def torus_bucket_reduce_scatter(n: int, dims: Dims | None = None, bidirectional: int = 0) -> Schedule:
    """sum(d-1) steps: rings along each dimension in turn, one copy starting in each."""
    return _copies(REDUCE_SCATTER, n, dims, bidirectional)


@algorithm(ALL_GATHER, name="torus-bucket")
def torus_bucket_all_gather(n: int, dims: Dims | None = None, bidirectional: int = 0) -> Schedule:
    """sum(d-1) steps: rings along each dimension in turn, one copy ending in each."""
    return _copies(ALL_GATHER, n, dims, bidirectional)


def _copies(collective: Collective, n: int, dims: Dims | None, bidirectional: int) -> Schedule:
    if bidirectional not in (0, 1):
        raise ScheduleError(f"torus-bucket: bidirectional {bidirectional} must be 0 or 1")
    ranks = np.arange(n).reshape(grid("torus-bucket", n, dims))
    copies = []
    for first in range(ranks.ndim):
        turned = ranks.transpose(np.roll(np.arange(ranks.ndim), -first))
        mirrored = turned[np.ix_(*(-np.arange(size) % size for size in turned.shape))]
        ways = (turned, mirrored)[: 2 if bidirectional else 1]
        copies += [bucket("torus-bucket", collective, turned.shape, way.ravel().tolist()) for way in ways]
    return merge_channels("torus-bucket", copies)
