"""NICs of servers -> the switches between them: rails of leaf switches under a spine, or one switch that hides the provider's network."""

from __future__ import annotations

import math
from collections.abc import Sequence

from topologies.errors import TopologyError
from topologies.graph import Link, Node, both_ways
from topologies.links import link_of

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


def blocks(ranks: int, size: int) -> tuple[tuple[int, ...], ...]:
    """0..ranks-1 in runs of ``size``, the last perhaps shorter."""
    return tuple(tuple(range(first, min(first + size, ranks))) for first in range(0, ranks, size))


def leaf_names(servers: int, rails: int, unit: int) -> list[list[str]]:
    """The leaf of server s and rail r is ``[s // unit][r]``."""
    units = math.ceil(servers / unit)
    return [[f"leaf{rail}" if units == 1 else f"unit{u}.leaf{rail}" for rail in range(rails)] for u in range(units)]


def most_servers(rails: int, ports: int, unit: int = 0) -> int:
    """What two tiers of ``ports``-port switches take: ``unit`` servers a leaf (0: half its ports), a spine port for every leaf."""
    return (unit or ports // 2) * (ports // rails)


def infiniband(
    name: str, nics: Sequence[Sequence[str]], kind: str, ports: int, *, unit: int = 0, units: int = 0, sharp: bool = True, lanes: int = 1
) -> tuple[list[Node], list[Link]]:
    """Switches of ``ports`` ports and the cables from ``nics[server][rail]`` up; with ``sharp`` every switch can reduce.
    A NIC has ``lanes`` of the link type, to a port each of as many equal leaves seen as one.

    ``unit`` servers share a leaf a rail (0: half a leaf's ports go down). Servers that fit one unit need no spine: rails then meet
    only inside the servers. More get a non-blocking one: as few spines as have the ports and divide a leaf's uplinks evenly (with
    64 ports and 8 rails 8, 16 and 16 spines for 64, 96 and 128 servers, as in NVIDIA's DGX SuperPOD reference architecture).
    ``units`` 1 and more: so many units stand there with their spine, full or not. TopologyError when a third tier would be needed.
    """
    down, rails = unit or ports // 2, len(nics[0])
    if max(len(nics), units * down) > most_servers(rails, ports, down):
        raise TopologyError(f"{name}: nodes = {len(nics)} need a third tier of switches; two tiers of {ports}-port switches with {rails} "
                            f"rails take at most nodes = {most_servers(rails, ports, down)}")  # fmt: skip
    rows = leaf_names(max(len(nics), units * down), rails, down)
    leaves = [leaf for row in rows for leaf in row]
    links = [
        way
        for server, row in enumerate(nics)
        for nic, leaf in zip(row, rows[server // down], strict=True)
        for way in both_ways(link_of(kind, nic, leaf, lanes))
    ]
    if len(rows) == 1 and not units:
        return [Node(leaf, "switch", reduces=sharp) for leaf in leaves], links
    count = next(s for s in range(1, down + 1) if down % s == 0 and s * ports >= len(leaves) * down)
    spines = [f"spine{i}" for i in range(count)]
    links += [way for leaf in leaves for spine in spines for way in both_ways(link_of(kind, leaf, spine, down // count * lanes))]
    return [Node(switch, "switch", reduces=sharp) for switch in leaves + spines], links


def one_switch(nics: Sequence[Sequence[str]], kind: str, lanes: int, *, sharp: bool = False) -> tuple[list[Node], list[Link]]:
    """All NICs, each by ``lanes`` of a link type, on one non-blocking switch ``fabric``: a network whose owner does not publish it."""
    links = [way for row in nics for nic in row for way in both_ways(link_of(kind, nic, "fabric", lanes))]
    return [Node("fabric", "switch", reduces=sharp)], links
