"""Texts of ``nvidia-smi topo -m`` for tests: two written by hand, and that of a preset; what a topology says in its words."""

from __future__ import annotations

from itertools import combinations

import networkx as nx

from topologies import Topology
from topologies.nvidia_smi import topology_of
from topologies.nvidia_smi_text import parse_matrix

MIXED = """\
\tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tNIC2\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID
GPU0\t X \tNV2\tNV1\tSYS\tPIX\tPXB\tSYS\t0-15,32-47\t0\t\tN/A
GPU1\tNV2\t X \tSYS\tNV1\tPXB\tPIX\tSYS\t0-15,32-47\t0\t\tN/A
GPU2\tNV1\tSYS\t X \tNV2\tSYS\tSYS\tPHB\t16-31,48-63\t1\t\tN/A
GPU3\tSYS\tNV1\tNV2\t X \tSYS\tSYS\tNODE\t16-31,48-63\t1\t\tN/A
NIC0\tPIX\tPXB\tSYS\tSYS\t X \tPXB\tSYS
NIC1\tPXB\tPIX\tSYS\tSYS\tPXB\t X \tSYS
NIC2\tSYS\tSYS\tPHB\tNODE\tSYS\tSYS\t X

Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)

NIC Legend:

  NIC0: mlx5_0
  NIC1: mlx5_1
  NIC2: mlx5_bond_0
"""
PAIR = "     GPU0 GPU1 mlx5_0 CPU Affinity\nGPU0 X    NV12 PIX    0-7\nGPU1 NV12 X    NODE   0-7\nmlx5_0 PIX NODE X\n"


def words(topology: Topology) -> dict[tuple[str, str], str]:
    """What nvidia-smi would say of a single server."""
    devices = [node.name for node in topology.nodes if node.kind in ("gpu", "nic")]
    pcie = nx.Graph((link.src, link.dst) for link in topology.links if not link.kind.startswith("nvlink"))
    found = {}
    for a, b in combinations(devices, 2):
        lanes = nvlinks(topology, a, b)
        kinds = [topology.node(node).kind for node in nx.shortest_path(pcie, a, b)[1:-1]]
        near = ("PIX" if len(kinds) == 1 else "PXB") if "cpu" not in kinds else "SYS" if kinds.count("cpu") > 1 else None
        found[a, b] = found[b, a] = f"NV{lanes}" if lanes else near or ("NODE" if "pcie" in kinds else "PHB")
    return found


def nvlinks(topology: Topology, a: str, b: str) -> int:
    """Between two GPUs, directly or over NVSwitches."""
    if topology.graph.has_edge(a, b):
        return topology.link(a, b).lanes
    to_switch = [[link.lanes for link in topology.links if link.src == gpu and "nvswitch" in link.dst] for gpu in (a, b)]
    return min(sum(lanes) for lanes in to_switch)


def written(topology: Topology) -> str:
    """The text, tabs and all, with the CPU of each GPU as its NUMA node."""
    devices = [node.name for node in topology.nodes if node.kind in ("gpu", "nic")]
    said = words(topology)
    pcie = nx.Graph((link.src, link.dst) for link in topology.links if not link.kind.startswith(("nvlink", "upi", "xgmi", "qpi")))
    lines = ["\t" + "\t".join(devices).upper() + "\tCPU Affinity\tNUMA Affinity"]
    for a in devices:
        line = [a.upper(), *(said.get((a, b), " X ") for b in devices)]
        if a.startswith("gpu"):
            numa = next(node[3:] for node in nx.node_connected_component(pcie, a) if node.startswith("cpu"))
            line += [f"{numa}-{numa}", numa]
        lines.append("\t".join(line))
    return "\n".join(lines) + "\n"


def links(topology: Topology) -> set[tuple[str, str, str, int, float]]:
    return {(link.src, link.dst, link.kind, link.lanes, link.bandwidth) for link in topology.links}


def read(text: str, **params: str) -> Topology:
    return topology_of(text.encode(), "box", params)[0]


def notes(text: str, **params: str) -> str:
    return "\n".join(topology_of(text.encode(), "box", params)[1])


def words_of(text: str) -> dict[tuple[str, str], str]:
    """As ``words`` says it, which cannot tell PHB from NODE where both hang on the CPU."""
    plain = {(a.lower(), b.lower()): word for (a, b), word in parse_matrix(text).words.items() if a != b}
    return {pair: "PHB" if word == "NODE" else word for pair, word in plain.items()}
