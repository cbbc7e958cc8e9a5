"""NCCL's nodes of a topology: which ranks and which NICs each has, and the way from one over chosen NICs to another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import networkx as nx

from topologies.graph import Topology
from topologies.routing import Router


@dataclass(frozen=True, slots=True)
class Site:
    """One of NCCL's nodes: a server, or all servers of an NVLink domain."""

    ranks: tuple[int, ...]
    nics: tuple[str, ...]

    def visit(self, order: Sequence[int]) -> list[int]:
        """Ranks in the order that the search found; where a node has more or fewer GPUs than the searched one, those it has."""
        here = [i for i in order if i < len(self.ranks)]
        return [self.ranks[i] for i in (*here, *sorted(set(range(len(self.ranks))) - set(here)))]

    def nic(self, number: int) -> str:
        """The NIC of a number in the search's graph; a node that has fewer than the one that was searched goes round."""
        return self.nics[number % len(self.nics)]


def sites_of(topology: Topology) -> tuple[Site, ...]:
    """In order of their first ranks."""
    groups = topology.groups.get("domains") or topology.groups.get("servers") or (tuple(range(len(topology.gpus))),)
    nics: dict[int | None, list[str]] = {}
    for node in topology.nodes:
        if node.kind == "nic":
            nics.setdefault(node.server, []).append(node.name)
    found = []
    for ranks in sorted(groups):
        servers = list(dict.fromkeys(topology.node(topology.gpus[rank]).server for rank in ranks))
        found.append(Site(tuple(ranks), tuple(nic for server in servers for nic in nics.get(server, []))))
    return tuple(found)


class Ways:
    """Ways between GPUs of different nodes over named NICs."""

    def __init__(self, topology: Topology) -> None:
        self.topology, self.router = topology, Router(topology)
        self.found: dict[tuple[str, str], tuple[str, ...]] = {}
        kinds = {node.name: node.kind for node in topology.nodes}
        inside = [name for name, kind in kinds.items() if kind != "switch"]
        self.inside: nx.DiGraph[str] = nx.DiGraph(topology.graph.subgraph(inside))
        self.near: dict[str, list[str]] = {}
        for name, kind in kinds.items():
            if kind == "nic":
                beside = [hub for hub in topology.graph[name] if kinds[hub] in ("pcie", "cpu")]
                self.near[name] = [gpu for hub in beside for gpu in topology.graph[hub] if kinds[gpu] == "gpu"]
        self.kinds = kinds
        self.switches = [name for name, kind in kinds.items() if kind == "switch"]
        self.wires: dict[tuple[str, str], list[str]] = {}

    def over(self, src: int, out: str, into: str, dst: int) -> None:
        """From rank ``src`` out of a NIC, into another, to rank ``dst``; the first way of a pair counts."""
        ends = self.topology.gpus[src], self.topology.gpus[dst]
        if ends not in self.found:
            between = self._between(out, into)
            if between:
                self.found[ends] = (*self._to(ends[0], out), *between[1:], *self._to(ends[1], into)[-2::-1])

    def _between(self, out: str, into: str) -> list[str]:
        """From NIC to NIC through switches alone; empty where there is no such way."""
        if (out, into) not in self.wires:
            graph = self.topology.graph.subgraph([*self.switches, out, into])
            self.wires[out, into] = nx.shortest_path(graph, out, into) if nx.has_path(graph, out, into) else []
        return self.wires[out, into]

    def _to(self, gpu: str, nic: str) -> list[str]:
        """From a GPU to a NIC of its node: over NVLink to a GPU beside it where none is nearer (PXN)."""
        near = self.near[nic]
        if near and gpu not in near:
            for peer in near:
                if self.topology.graph.has_edge(gpu, peer):
                    return [gpu, peer, *self._plain(peer, nic)[1:]]
                beside = (name for name in self.topology.graph[gpu] if self.kinds[name] == "nvswitch")
                switch = next((name for name in beside if self.topology.graph.has_edge(name, peer)), None)
                if switch:
                    return [gpu, switch, peer, *self._plain(peer, nic)[1:]]
        return self._plain(gpu, nic)

    def _plain(self, gpu: str, nic: str) -> list[str]:
        try:
            return nx.shortest_path(self.inside, gpu, nic)
        except nx.NetworkXNoPath:
            return [gpu, *(link.dst for link in self.router.route(gpu, nic))]
