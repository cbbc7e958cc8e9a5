"""One server of a topology file -> several of them and the network between their NICs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import networkx as nx

from topologies.errors import TopologyError
from topologies.fabric import infiniband, one_switch
from topologies.graph import Link, Node, Topology
from topologies.links import LinkType
from topologies.nccl_xml_parts import Part
from topologies.nccl_xml_tables import PORTS, network_type
from topologies.registry import check_size


def repeated(server: Topology, nodes: int, nics: Sequence[Part], given: LinkType | None) -> Topology:
    """``nodes`` servers whose NICs of the fastest kind (those of ``given``, if it is) are joined, rail by rail where the network is known.

    A cable has the speed the file gives the NIC, over all its ports. A GPU's rail is its nearest NIC. Raises TopologyError for a server
    without NICs, a NIC of unknown speed, and more servers than two tiers of switches take.
    """
    if len(server.groups["servers"]) > 1:
        raise TopologyError(f"nodes = {nodes}: the file already has {len(server.groups['servers'])} servers (host_hash)")
    if not nics:
        raise TopologyError(f"nodes = {nodes}: the file has no NIC (<net>), so servers cannot be joined")
    check_size(server.name, "nodes", nodes, lambda n: n * (len(server.nodes) + len(server.links) + 4 * len(nics)))
    cables = {nic.name: _cable(nic, given) for nic in nics}
    fastest = max(cables.values(), key=lambda link: link.bandwidth)
    names = [nic.name for nic in nics if cables[nic.name].kind == fastest.kind]
    parts: list[Node] = []
    links: list[Link] = []
    for s in range(nodes):
        parts += [replace(node, name=f"s{s}.{node.name}", server=s) for node in server.nodes]
        links += [replace(link, src=f"s{s}.{link.src}", dst=f"s{s}.{link.dst}") for link in server.links]
    rows = [[f"s{s}.{name}" for name in names] for s in range(nodes)]
    kind, ports = fastest.kind, PORTS.get(fastest.kind, 0)
    switches, wires = infiniband(server.name, rows, kind, ports, sharp=kind.startswith("ib")) if ports else one_switch(rows, kind, 1)
    ends = {f"s{s}.{name}": cables[name] for s in range(nodes) for name in names}
    links += [_at_speed(wire, ends.get(wire.src) or ends.get(wire.dst)) for wire in wires]
    groups = _groups(_rails(server, names), nodes, len(server.gpus), ports // 2 or nodes, bool(ports))
    return Topology.build(f"{server.name}-x{nodes}", parts + switches, links, groups)


def _cable(nic: Part, given: LinkType | None) -> Link:
    speed = given.bandwidth if given else nic.speed()
    device = nic.element if nic.element.tag == "pci" else None
    if speed is None:
        usual = network_type(device, 50e9).name
        raise TopologyError(f"{nic.name} (line {nic.element.line}): no net element, so no speed; give its link type, as nic={usual} "
                            f"(--param nic={usual})")  # fmt: skip
    kind = given or network_type(device, speed)
    source = kind.source if speed == kind.bandwidth else f"{kind.source}; rate from the topology file"
    return Link(nic.name, "", kind.name, 1, speed, kind.latency + nic.latency(), source)


def _at_speed(wire: Link, cable: Link | None) -> Link:
    return replace(wire, bandwidth=cable.bandwidth, latency=cable.latency, source=cable.source) if cable else wire


def _rails(server: Topology, nics: list[str]) -> list[int]:
    """The number of each GPU's NIC: the nearest over PCIe; GPUs that are equally near to several share them out."""
    kinds = {node.name: node.kind for node in server.nodes}
    near: list[tuple[int, ...]] = []
    for gpu in server.gpus:
        board = server.graph.subgraph([gpu, *(name for name, kind in kinds.items() if kind not in ("gpu", "nvswitch"))])
        hops = nx.single_source_shortest_path_length(board, gpu)
        least = min((hops[nic] for nic in nics if nic in hops), default=0)
        near.append(tuple(i for i, nic in enumerate(nics) if hops.get(nic, least) == least))
    return [choice[near[:g].count(choice) * len(choice) // near.count(choice)] for g, choice in enumerate(near)]


def _groups(rails: list[int], nodes: int, gpus: int, unit: int, known: bool) -> dict[str, tuple[tuple[int, ...], ...]]:
    """Ranks by server, rail and leaf, as ``fabric.rail_groups``, without the rails that no GPU is on."""
    by: dict[str, dict[tuple[int, int], list[int]]] = {"servers": {}, "rails": {}, "leaves": {}}
    for rank in range(nodes * gpus):
        s, rail = rank // gpus, rails[rank % gpus]
        by["servers"].setdefault((s, 0), []).append(rank)
        by["rails"].setdefault((rail, 0), []).append(rank)
        by["leaves"].setdefault((s // unit, rail) if known else (0, 0), []).append(rank)
    return {name: tuple(tuple(part) for _, part in sorted(parts.items())) for name, parts in by.items()}
