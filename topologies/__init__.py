"""Parameters or a cluster file -> ``Topology``: what is connected to what, in SI units."""

from topologies.cluster_file import load, read_cluster
from topologies.cluster_writer import write_cluster
from topologies.errors import TopologyError
from topologies.graph import Link, Node, Topology
from topologies.links import LINK_TYPES, link_of
from topologies.registry import get, make, names, topology
from topologies.routing import Router
from topologies.units import (
    format_bandwidth,
    format_bytes,
    format_time,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_sizes,
    parse_time,
)

__all__ = [
    "LINK_TYPES",
    "Link",
    "Node",
    "Router",
    "Topology",
    "TopologyError",
    "format_bandwidth",
    "format_bytes",
    "format_time",
    "get",
    "link_of",
    "load",
    "make",
    "names",
    "parse_bandwidth",
    "parse_bytes",
    "parse_count",
    "parse_sizes",
    "parse_time",
    "read_cluster",
    "topology",
    "write_cluster",
]
