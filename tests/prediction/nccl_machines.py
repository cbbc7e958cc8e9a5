"""Machines for the tests of NCCL's tuner: graphs by preset, nodes and version."""

from __future__ import annotations

from functools import cache

from prediction.nccl.graphs import Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.version import version
from topologies import make
from topologies.graph import Topology

GB = 1e9


@cache
def built(name: str, nodes: int) -> Topology:
    return make(name, {"racks" if name == "gb200-nvl72" else "nodes": nodes})


def machine(name: str, nodes: int, release: str) -> Graphs:
    return graphs_of(built(name, nodes), version(release))
