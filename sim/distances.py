"""Least distances between nodes of a topology, in rows: a whole table could be gigabytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import Collective
from topologies.graph import Link, Topology

Array = NDArray[Any]
Weight = Callable[[Link], float]

SMALL_WORK = 100_000  # rows times links up to which a search in Python is over before scipy is imported
ROWS = 256


def tables(topology: Topology, sources: Sequence[str], sinks: Sequence[str], weight: Weight) -> Iterator[tuple[int, Array]]:
    """Blocks of rows of the table from ``sources`` to ``sinks``, with their first row."""
    links = topology.links
    if len(sources) * len(links) <= SMALL_WORK:
        for row, source in enumerate(sources):
            found = nx.single_source_dijkstra_path_length(topology.graph, source, weight=lambda a, b, edge: weight(edge["link"]))
            yield row, np.asarray([[found[sink] for sink in sinks]], dtype=np.float64)
        return
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import dijkstra

    index = {name: i for i, name in enumerate(topology.graph)}
    ends = [index[link.src] for link in links], [index[link.dst] for link in links]
    graph = csr_array((np.asarray([weight(link) for link in links], dtype=np.float64), ends), shape=(len(index),) * 2)
    columns = [index[name] for name in sinks]
    for first in range(0, len(sources), ROWS):
        yield first, dijkstra(graph, indices=[index[name] for name in sources[first : first + ROWS]])[:, columns]


def hops(topology: Topology, src: str, dst: str, weight: Weight) -> int:
    """Links on a path of the least weight."""
    return len(nx.dijkstra_path(topology.graph, src, dst, weight=lambda a, b, edge: weight(edge["link"]))) - 1


def latency_of(link: Link) -> float:
    """The weight of a path is then its latency [s]."""
    return link.latency


def asked(collective: Collective, rank: Sequence[int], table: Array) -> Array:
    """Distances (a row a rank) of the pairs that the pattern names; of none told, of all, negative: the nearest is the largest."""
    named = np.full(table.shape, not collective.to)
    if collective.to:
        np.put_along_axis(named, np.reshape(collective.to, (table.shape[1], -1))[list(rank)], True, 1)
    named[np.arange(len(rank)), rank] = False
    far: Array = np.where(named, table if collective.to else -table, -math.inf)
    return far


def joined(tail: Array, head: Array, nodes: Array, size: int) -> tuple[tuple[int, ...], ...]:
    """Ranks at ``nodes`` of a graph of ``size`` nodes, in groups that these arcs join."""
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import connected_components

    graph = csr_array((np.ones(len(tail)), (tail, head)), shape=(size, size))
    part = connected_components(graph, directed=False)[1][nodes]
    order = np.argsort(part, kind="stable")
    return tuple(tuple(run.tolist()) for run in np.split(order, np.flatnonzero(np.diff(part[order])) + 1))
