"""Machines with something wrong with them: a topology -> the same with links slower, gone, or ports throttled."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace

from topologies.graph import Link, Node, Topology


def is_nvlink(link: Link) -> bool:
    """NVLink or xGMI between GPUs, not between a CPU and its GPU or two CPUs."""
    return link.kind.startswith(("nvlink", "xgmi")) and not link.kind.startswith(("nvlink-c2c", "xgmi-cpu"))


def nics_of(topology: Topology) -> dict[int, list[str]]:
    """The names of the NICs of each server, in order."""
    found: dict[int, list[str]] = {}
    for node in topology.nodes:
        if node.kind == "nic" and node.server is not None:
            found.setdefault(node.server, []).append(node.name)
    return found


def scaled(topology: Topology, factor: float, which: Callable[[Link], bool]) -> Topology:
    """Some links at ``factor`` of their rate."""
    return _built(topology, topology.nodes, [replace(x, bandwidth=x.bandwidth * factor) if which(x) else x for x in topology.links])


def capped(topology: Topology, most: float, which: Callable[[Link], bool]) -> Topology:
    """Some links at no more than ``most`` [B/s]."""
    return _built(topology, topology.nodes, [replace(x, bandwidth=min(x.bandwidth, most)) if which(x) else x for x in topology.links])


def throttled(topology: Topology, most: float) -> Topology:
    """Every GPU sends and receives no more than ``most`` [B/s]."""
    nodes = [replace(x, injection=min(x.injection, most), ejection=min(x.ejection, most)) if x.kind == "gpu" else x for x in topology.nodes]
    return _built(topology, nodes, topology.links)


def without_nvlink(topology: Topology, gpus: Collection[str] | None = None) -> Topology:
    """No NVLink at all, or none of some GPUs."""
    links = [x for x in topology.links if not (is_nvlink(x) and (gpus is None or x.src in gpus or x.dst in gpus))]
    used = {end for x in links for end in (x.src, x.dst)}
    groups = {name: group for name, group in topology.groups.items() if name != "domains"}
    nodes = [x for x in topology.nodes if x.kind != "nvswitch" or x.name in used]
    return Topology.build(topology.name, nodes, links, groups, topology.dims)


def with_nics(topology: Topology, keep: Callable[[int], bool]) -> Topology:
    """Of every server only the NICs whose place it says to keep."""
    gone = {name for names in nics_of(topology).values() for place, name in enumerate(names) if not keep(place)}
    nodes = [x for x in topology.nodes if x.name not in gone]
    return _built(topology, nodes, [x for x in topology.links if not {x.src, x.dst} & gone])


def slow_server(topology: Topology, factor: float) -> Topology:
    """All links and ports of the first server at ``factor``."""
    own = {x.name for x in topology.nodes if x.server == 0}
    return scaled(topology, factor, lambda x: x.src in own or x.dst in own)


def root_complex(topology: Topology, part: float = 1.0) -> Topology:
    """NICs and GPUs of a PCIe switch reach each other through the CPU: every byte goes up and down the switch's uplink, which both
    directions of all its NICs share. ``part``: of what that leaves to a NIC."""
    kinds = {x.name: x.kind for x in topology.nodes}
    most: dict[str, float] = {}
    for hub in [x.name for x in topology.nodes if x.kind == "pcie"]:
        around = [topology.link(hub, other) for other in topology.graph[hub]]
        nics = [x.dst for x in around if kinds[x.dst] == "nic"]
        up = sum(x.bandwidth for x in around if kinds[x.dst] == "cpu")
        most |= {nic: part * 0.9 * up / (2 * len(nics)) for nic in nics if up}

    def changed(link: Link) -> Link:
        limits = [most[end] for end in (link.src, link.dst) if end in most]
        return replace(link, bandwidth=min(link.bandwidth, *limits)) if limits else link

    return _built(topology, topology.nodes, [changed(x) for x in topology.links])


def _built(topology: Topology, nodes: list[Node], links: list[Link]) -> Topology:
    return Topology.build(topology.name, nodes, links, topology.groups, topology.dims)
