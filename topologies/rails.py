"""Rail-optimised clusters: NIC i of every server goes to a leaf switch of rail i.

A leaf takes ``unit`` servers (a scalable unit); the servers of a unit share one leaf a rail.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from topologies.errors import TopologyError
from topologies.graph import Link, Node, Topology, both_ways
from topologies.leaf_spine import spine_links
from topologies.links import link_of
from topologies.registry import Bandwidth, Count, Seconds, check_size, topology

Groups = dict[str, tuple[tuple[int, ...], ...]]


def rail_groups(servers: int, gpus: int, rails: int, unit: int) -> Groups:
    """Ranks by server, by rail and by leaf; ``gpus`` a server, of which GPU g is on rail ``g // ceil(gpus / rails)``."""
    share, units = math.ceil(gpus / rails), math.ceil(servers / unit)
    by: dict[str, list[list[int]]] = {"servers": [[] for _ in range(servers)], "rails": [[] for _ in range(rails)]}
    by["leaves"] = [[] for _ in range(units * rails)]
    for rank in range(servers * gpus):
        server, rail = rank // gpus, rank % gpus // share
        by["servers"][server].append(rank)
        by["rails"][rail].append(rank)
        by["leaves"][server // unit * rails + rail].append(rank)
    return {name: tuple(tuple(part) for part in parts) for name, parts in by.items()}


def leaf_names(servers: int, rails: int, unit: int) -> list[list[str]]:
    """The leaf of server s and rail r is ``[s // unit][r]``."""
    units = math.ceil(servers / unit)
    return [[f"leaf{rail}" if units == 1 else f"unit{u}.leaf{rail}" for rail in range(rails)] for u in range(units)]


def most_servers(rails: int, ports: int) -> int:
    """What two tiers of ``ports``-port switches take: half a leaf's ports down, a spine port for every leaf."""
    return ports // 2 * (ports // rails)


def infiniband(name: str, nics: Sequence[Sequence[str]], kind: str, ports: int) -> tuple[list[Node], list[Link]]:
    """Switches of ``ports`` ports and the cables from ``nics[server][rail]`` up; every switch can reduce (SHARP).

    Half a leaf's ports go down. Servers that fit one leaf a rail need no spine: rails then meet only inside the servers. More
    servers get a non-blocking spine: as few spines as have the ports and divide a leaf's uplinks evenly (with 64 ports and
    8 rails 8, 16 and 16 spines for 64, 96 and 128 servers, as in NVIDIA's DGX SuperPOD reference architecture).
    Raises TopologyError when a third tier would be needed.
    """
    down, rails = ports // 2, len(nics[0])
    if len(nics) > most_servers(rails, ports):
        raise TopologyError(f"{name}: nodes = {len(nics)} need a third tier of switches; two tiers of {ports}-port switches with {rails} "
                            f"rails take at most nodes = {most_servers(rails, ports)}")  # fmt: skip
    units = leaf_names(len(nics), rails, down)
    leaves = [leaf for unit in units for leaf in unit]
    links = [
        way
        for server, row in enumerate(nics)
        for nic, leaf in zip(row, units[server // down], strict=True)
        for way in both_ways(link_of(kind, nic, leaf))
    ]
    if len(units) == 1:
        return [Node(leaf, "switch", reduces=True) for leaf in leaves], links
    count = next(s for s in range(1, down + 1) if down % s == 0 and s * ports >= len(leaves) * down)
    spines = [f"spine{i}" for i in range(count)]
    links += [way for leaf in leaves for spine in spines for way in both_ways(link_of(kind, leaf, spine, down // count))]
    return [Node(switch, "switch", reduces=True) for switch in leaves + spines], links


@topology
def rail_optimised(
    nodes: Count = 4,
    gpus: Count = 8,
    nvlink: Bandwidth = 450e9,
    bandwidth: Bandwidth = 50e9,
    latency: Seconds = 1e-6,
    unit: Count = 32,
    spines: Count = 4,
) -> Topology:
    """Servers with an NVSwitch and one NIC a GPU, a leaf for every rail and unit of servers, spines on top.

    ``gpus`` per server; ``nvlink`` [B/s] of a GPU to its NVSwitch, ``bandwidth`` [B/s] of a NIC; ``latency`` [s] of every hop;
    a leaf takes ``unit`` servers and has as much bandwidth up as down.
    """
    check_size("rail-optimised", "gpus", gpus, lambda n: 8 * n)
    check_size("rail-optimised", "spines", spines, lambda n: n * (1 + 2 * gpus))
    check_size("rail-optimised", "nodes", nodes, lambda n: n * (1 + 8 * gpus) + math.ceil(n / unit) * gpus * (1 + 2 * spines) + spines)
    units = leaf_names(nodes, gpus, unit)
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
    leaves, tops = [leaf for row in units for leaf in row], [f"spine{i}" for i in range(spines)]
    parts += [Node(switch, "switch", reduces=True) for switch in leaves + tops]
    links += spine_links(leaves, tops, min(unit, nodes) * bandwidth / spines, latency)
    return Topology.build(f"rail-optimised-{nodes}x{gpus}", parts, links, rail_groups(nodes, gpus, gpus, unit))
