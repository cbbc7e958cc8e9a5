"""Nodes of Grace CPUs, whose NICs hang at the CPU and not at a PCIe switch (NCCL's P2C path); the quad GH200 node.

GH200 quad: 6 NVLink 4 between every two GPUs, a 200G Slingshot NIC for each, a dragonfly between nodes (public benchmark logs of
Alps). General knowledge: NICs on PCIe 4.0, 100 GB/s between two Graces, and here one dragonfly group: switches of 16 NICs that
spread 31 more ports over the others, at most 31 of them.
"""

from __future__ import annotations

from itertools import combinations

from topologies.errors import TopologyError
from topologies.fabric import blocks, rail_groups
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import link_of
from topologies.registry import Count, topology

_PORTS = 31
"""Of a switch to others of its group."""


def grace_node(prefix: str, s: int, gpus: int, per_cpu: int, c2c: int, nic: str, nics: int | None = None) -> tuple[list[Node], list[Link]]:
    """GPUs with a NIC each (or ``nics``, spread evenly), a Grace for ``per_cpu`` GPUs with ``c2c`` links to each."""
    cpus = -(-gpus // per_cpu)
    nics = gpus if nics is None else nics
    nodes = [Node(f"{prefix}gpu{g}", "gpu", s) for g in range(gpus)]
    nodes += [Node(f"{prefix}nic{i}", "nic", s) for i in range(nics)] + [Node(f"{prefix}cpu{c}", "cpu", s) for c in range(cpus)]
    cables = [("nvlink-c2c", f"gpu{g}", f"cpu{g // per_cpu}", c2c) for g in range(gpus)]
    cables += [(nic, f"nic{i}", f"cpu{i * gpus // nics // per_cpu}", 16) for i in range(nics)]
    cables += [("grace-link", f"cpu{a}", f"cpu{b}", 1) for a, b in combinations(range(cpus), 2)]
    return nodes, [way for kind, a, b, lanes in cables for way in both_ways(link_of(kind, prefix + a, prefix + b, lanes))]


@topology
def gh200_quad(nodes: Count = 1, gpus: Count = 4) -> Topology:
    """GH200 quad: 4 GPUs in a full mesh of 6 NVLink 4 a pair, each with its Grace and a 200G Slingshot NIC; one dragonfly group."""
    if gpus > 4 or nodes > 128:
        raise TopologyError(f"gh200-quad: nodes = {nodes}, gpus = {gpus}; a dragonfly group takes nodes = 1 to 128, a node gpus = 1 to 4")
    parts: list[Node] = []
    links: list[Link] = []
    for s in range(nodes):
        prefix = f"s{s}." if nodes > 1 else ""
        inside, cables = grace_node(prefix, s, gpus, 1, 10, "pcie4")
        mesh = combinations([f"{prefix}gpu{g}" for g in range(gpus)], 2)
        links += [way for a, b in mesh for way in both_ways(link_of("nvlink4", a, b, 6))] + cables
        parts += inside
    name, groups = f"gh200-quad-{nodes}x{gpus}", rail_groups(nodes, gpus, gpus, nodes)
    if nodes == 1:
        return Topology.build(name, parts, links, {"servers": groups["servers"]})
    switches = [f"switch{i}" for i in range(-(-nodes // 4))]
    wires = [(f"s{s}.nic{g}", switches[s // 4], 1) for s in range(nodes) for g in range(gpus)]
    wires += [(a, b, _PORTS // (len(switches) - 1)) for a, b in combinations(switches, 2)]
    links += [way for a, b, count in wires for way in both_ways(link_of("slingshot-11", a, b, count))]
    groups["leaves"] = blocks(nodes * gpus, 4 * gpus)
    return Topology.build(name, parts + [Node(switch, "switch") for switch in switches], links, groups)
