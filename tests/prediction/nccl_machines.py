"""Machines for the tests of NCCL's tuner: graphs by preset, nodes and version."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from prediction.nccl.graphs import Graph, Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.version import version
from topologies import make
from topologies.graph import Topology

GB = 1e9


def dgx_1v() -> Graphs:
    """A cube mesh has no closed form: its search result as the library prints it."""
    ring = Graph(6, 20 * GB, 20 * GB, "ring", same_channels=False)
    return Graphs(version("2.30"), 8, 1, ring, replace(ring, pattern="balanced-tree"), sm_min=70, sm_max=70, nvswitch=False)


@cache
def built(name: str, nodes: int) -> Topology:
    return make(name, {"racks" if name == "gb200-nvl72" else "nodes": nodes})


def machine(name: str, nodes: int, release: str) -> Graphs:
    return dgx_1v() if name == "dgx-1v" else graphs_of(built(name, nodes), version(release))
