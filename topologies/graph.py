"""What is connected to what: nodes and directed links, frozen into a ``Topology``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

import networkx as nx

from topologies.errors import TopologyError

NodeKind = Literal["gpu", "nvswitch", "pcie", "cpu", "nic", "switch"]
NODE_KINDS: tuple[NodeKind, ...] = ("gpu", "nvswitch", "pcie", "cpu", "nic", "switch")


@dataclass(frozen=True, slots=True)
class Node:
    """A vertex. ``injection`` and ``ejection`` limit all that leaves or enters the node [B/s], apart from its links."""

    name: str
    kind: NodeKind
    server: int | None = None
    injection: float = math.inf
    ejection: float = math.inf
    reduces: bool = False
    """Can aggregate in the network (SHARP switch, NVSwitch with multimem)."""


@dataclass(frozen=True, slots=True)
class Link:
    """One direction of a cable: ``bandwidth`` [B/s] over all its lanes, ``latency`` [s] of the last byte after it left."""

    src: str
    dst: str
    kind: str
    lanes: int
    bandwidth: float
    latency: float
    source: str = "user"
    """Where the numbers come from: a datasheet, a reference note, or the user."""

    def reversed(self) -> Link:
        """The other direction of the same cable."""
        return Link(self.dst, self.src, self.kind, self.lanes, self.bandwidth, self.latency, self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Topology:
    """A frozen graph. ``gpus[r]`` is the node of rank r; ``groups`` names partitions of ranks (``servers``, ``rails``, ``leaves``).

    Two topologies are equal when name, nodes, links, ranks and groups are, order included: routes depend on the order.
    """

    name: str
    graph: nx.DiGraph[str] = field(repr=False)
    gpus: tuple[str, ...]
    groups: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)

    @staticmethod
    def build(
        name: str,
        nodes: Iterable[Node],
        links: Iterable[Link],
        groups: Mapping[str, tuple[tuple[int, ...], ...]] | None = None,
    ) -> Topology:
        """Freeze nodes and directed links; GPUs take their rank from the order of ``nodes``.

        Raises TopologyError for a duplicate name, an unknown end, a bandwidth or latency that is not positive (latency may
        be 0) and finite, fewer than 2 GPUs, or a GPU that cannot reach another.
        """
        graph: nx.DiGraph[str] = nx.DiGraph(name=name)
        gpus = []
        for node in nodes:
            if node.name in graph:
                raise TopologyError(f'{name}: node "{node.name}" stands twice; every node needs a name of its own')
            if node.kind not in NODE_KINDS:
                raise TopologyError(f'{name}: node "{node.name}": kind "{node.kind}" is not one of {", ".join(NODE_KINDS)}')
            for what, rate in (("injection", node.injection), ("ejection", node.ejection)):
                if not rate > 0:
                    raise TopologyError(f'{name}: node "{node.name}": {what} {rate} B/s must be positive')
            graph.add_node(node.name, node=node)
            if node.kind == "gpu":
                gpus.append(node.name)
        for link in links:
            where = f"{name}: link {link.src} -> {link.dst}"
            for end in (link.src, link.dst):
                if end not in graph:
                    raise TopologyError(f'{where}: there is no node "{end}"')
            if link.src == link.dst:
                raise TopologyError(f"{where}: a link joins two different nodes")
            if graph.has_edge(link.src, link.dst):
                raise TopologyError(f"{where}: stands twice; give parallel cables as lanes of one link")
            if not (link.bandwidth > 0 and math.isfinite(link.bandwidth)):
                raise TopologyError(f"{where}: bandwidth {link.bandwidth} B/s must be positive and finite")
            if not (link.latency >= 0 and math.isfinite(link.latency)):
                raise TopologyError(f"{where}: latency {link.latency} s must be zero or positive, and finite")
            if link.lanes < 1:
                raise TopologyError(f"{where}: lanes {link.lanes} must be at least 1")
            graph.add_edge(link.src, link.dst, link=link)
        if len(gpus) < 2:
            raise TopologyError(f"{name}: {len(gpus)} GPU; a collective needs at least 2")
        _check_connected(name, graph, gpus)
        return Topology(name, nx.freeze(graph), tuple(gpus), dict(groups or {}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return (self.name, self.gpus, dict(self.groups), self.nodes, self.links) == (
            other.name, other.gpus, dict(other.groups), other.nodes, other.links,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.name, self.gpus))

    @property
    def nodes(self) -> list[Node]:
        return [data["node"] for _, data in self.graph.nodes(data=True)]

    @property
    def links(self) -> list[Link]:
        return [data["link"] for _, _, data in self.graph.edges(data=True)]

    def node(self, name: str) -> Node:
        found: Node = self.graph.nodes[name]["node"]
        return found

    def link(self, src: str, dst: str) -> Link:
        found: Link = self.graph.edges[src, dst]["link"]
        return found


def _check_connected(name: str, graph: nx.DiGraph[str], gpus: list[str]) -> None:
    for view, relation in ((graph, "cannot send to"), (graph.reverse(copy=False), "cannot receive from")):
        reached = nx.descendants(view, gpus[0])
        for gpu in gpus[1:]:
            if gpu not in reached:
                raise TopologyError(f"{name}: {gpus[0]} {relation} {gpu}: no path; add a link or a switch between them")


def both_ways(link: Link) -> tuple[Link, Link]:
    """The two directions of one full-duplex cable."""
    return link, link.reversed()
