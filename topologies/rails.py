"""Rail-optimised and rail-only clusters of plain servers: NIC i of every server goes to a leaf switch of rail i."""

from __future__ import annotations

import math

from topologies.fabric import leaf_names, rail_groups
from topologies.graph import Link, Node, Topology, both_ways
from topologies.leaf_spine import spine_links
from topologies.registry import Bandwidth, Count, Ratio, Seconds, check_size, topology


@topology
def rail_optimised(
    nodes: Count = 4,
    gpus: Count = 8,
    nvlink: Bandwidth = 450e9,
    bandwidth: Bandwidth = 50e9,
    latency: Seconds = 1e-6,
    unit: Count = 32,
    spines: Count = 4,
    oversubscription: Ratio = 1.0,
) -> Topology:
    """Servers with an NVSwitch and one NIC a GPU, a leaf for every rail and unit of servers, spines on top.

    ``gpus`` per server; ``nvlink`` [B/s] of a GPU to its NVSwitch, ``bandwidth`` [B/s] of a NIC; ``latency`` [s] of every hop;
    a leaf takes ``unit`` servers and has as much bandwidth up as down, divided by ``oversubscription``.
    """
    check_size("rail-optimised", "gpus", gpus, lambda n: 8 * n)
    check_size("rail-optimised", "spines", spines, lambda n: n * (1 + 2 * gpus))
    check_size("rail-optimised", "nodes", nodes, lambda n: n * (1 + 8 * gpus) + math.ceil(n / unit) * gpus * (1 + 2 * spines) + spines)
    units = leaf_names(nodes, gpus, unit)
    parts, links = _servers(units, nodes, gpus, unit, nvlink, bandwidth, latency)
    leaves, tops = [leaf for row in units for leaf in row], [f"spine{i}" for i in range(spines)]
    parts += [Node(switch, "switch", reduces=True) for switch in leaves + tops]
    links += spine_links(leaves, tops, min(unit, nodes) * bandwidth / spines / oversubscription, latency)
    return Topology.build(f"rail-optimised-{nodes}x{gpus}", parts, links, rail_groups(nodes, gpus, gpus, unit))


@topology
def rail_only(
    nodes: Count = 4, gpus: Count = 8, nvlink: Bandwidth = 450e9, bandwidth: Bandwidth = 50e9, latency: Seconds = 1e-6
) -> Topology:
    """Servers with an NVSwitch and one NIC a GPU, a switch for every rail and no spine: rails meet by NVLink only.

    Wang et al. 2023, arXiv 2307.12169. Parameters as for ``rail-optimised``.
    """
    check_size("rail-only", "gpus", gpus, lambda n: 9 * n)
    check_size("rail-only", "nodes", nodes, lambda n: n * (1 + 8 * gpus) + gpus)
    rows = leaf_names(nodes, gpus, nodes)
    parts, links = _servers(rows, nodes, gpus, nodes, nvlink, bandwidth, latency)
    parts += [Node(leaf, "switch", reduces=True) for leaf in rows[0]]
    return Topology.build(f"rail-only-{nodes}x{gpus}", parts, links, rail_groups(nodes, gpus, gpus, nodes))


def _servers(
    units: list[list[str]], nodes: int, gpus: int, unit: int, nvlink: float, bandwidth: float, latency: float
) -> tuple[list[Node], list[Link]]:
    parts: list[Node] = []
    links: list[Link] = []
    for s in range(nodes):
        parts += [Node(f"s{s}.gpu{g}", "gpu", s) for g in range(gpus)]
        parts += [Node(f"s{s}.nvswitch", "nvswitch", s, reduces=True), *(Node(f"s{s}.nic{g}", "nic", s) for g in range(gpus))]
        for g, leaf in enumerate(units[s // unit]):
            gpu, nic = f"s{s}.gpu{g}", f"s{s}.nic{g}"
            links += both_ways(Link(gpu, f"s{s}.nvswitch", "link", 1, nvlink, latency))
            links += both_ways(Link(gpu, nic, "link", 1, bandwidth, latency))
            links += both_ways(Link(nic, leaf, "link", 1, bandwidth, latency))
    return parts, links
