"""What is connected to what: nodes and directed links, frozen into a ``Topology``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
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
    """A frozen graph. ``gpus[r]`` is the node of rank r; ``groups`` names partitions of ranks (``servers``, ``rails``, ``leaves``);
    ``dims`` are the sizes of the grid that the ranks fill row by row (the last changes fastest), empty where there is none.
    ``constants``: what a calibration found of a library's calls there, by name, in SI units; whoever predicts knows the names.

    Two topologies are equal when name, nodes, links, ranks, groups, dims and constants are, order included: routes depend on the order.
    """

    name: str
    graph: nx.DiGraph[str] = field(repr=False)
    gpus: tuple[str, ...]
    groups: Mapping[str, tuple[tuple[int, ...], ...]] = field(default_factory=dict)
    dims: tuple[int, ...] = ()
    constants: Mapping[str, float] = field(default_factory=dict)

    @staticmethod
    def build(
        name: str,
        nodes: Iterable[Node],
        links: Iterable[Link],
        groups: Mapping[str, tuple[tuple[int, ...], ...]] | None = None,
        dims: tuple[int, ...] = (),
        constants: Mapping[str, float] | None = None,
    ) -> Topology:
        """Freeze nodes and directed links; GPUs take their rank from the order of ``nodes``.

        Raises TopologyError for a duplicate name, an unknown end, a bandwidth or latency that is not positive (latency may
        be 0) and finite, fewer than 2 GPUs, dims with other than one place a GPU, or a GPU that cannot reach another.
        """
        graph: nx.DiGraph[str] = nx.DiGraph(name=name)
        graph.add_nodes_from(_checked_nodes(name, graph, nodes))
        graph.add_edges_from(_checked_links(name, graph, links))
        gpus = [node for node, data in graph.nodes(data=True) if data["node"].kind == "gpu"]
        if len(gpus) < 2:
            raise TopologyError(f"{name}: {len(gpus)} GPU; a collective needs at least 2")
        if dims and (min(dims) < 1 or math.prod(dims) != len(gpus)):
            raise TopologyError(f"{name}: dims {'x'.join(map(str, dims))} have {math.prod(dims)} places; needs {len(gpus)}, one a GPU")
        _check_connected(name, graph, gpus)
        return Topology(name, nx.freeze(graph), tuple(gpus), dict(groups or {}), dims, dict(constants or {}))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Topology):
            return NotImplemented
        return (self.name, self.gpus, dict(self.groups), self.dims, dict(self.constants), self.nodes, self.links) == (
            other.name, other.gpus, dict(other.groups), other.dims, dict(other.constants), other.nodes, other.links,
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.name, self.gpus))

    @property
    def nodes(self) -> list[Node]:
        return [data["node"] for _, data in self.graph.nodes(data=True)]

    @property
    def links(self) -> list[Link]:
        return [data["link"] for _, out in self.graph.adjacency() for data in out.values()]

    def node(self, name: str) -> Node:
        found: Node = self.graph.nodes[name]["node"]
        return found

    def link(self, src: str, dst: str) -> Link:
        found: Link = self.graph.edges[src, dst]["link"]
        return found


def _checked_nodes(name: str, graph: nx.DiGraph[str], nodes: Iterable[Node]) -> Iterator[tuple[str, dict[str, Node]]]:
    """Each node is in ``graph`` before the next is looked at."""
    for node in nodes:
        if node.name in graph:
            raise TopologyError(f'{name}: node "{node.name}" stands twice; every node needs a name of its own')
        if node.kind not in NODE_KINDS:
            raise TopologyError(f'{name}: node "{node.name}": kind "{node.kind}" is not one of {", ".join(NODE_KINDS)}')
        for what, rate in (("injection", node.injection), ("ejection", node.ejection)):
            if not rate > 0:
                raise TopologyError(f'{name}: node "{node.name}": {what} {rate} B/s must be positive')
        yield node.name, {"node": node}


def _checked_links(name: str, graph: nx.DiGraph[str], links: Iterable[Link]) -> Iterator[tuple[str, str, dict[str, Link]]]:
    """Each link is in ``graph`` before the next is looked at."""
    ways = dict(graph.adjacency())
    for link in links:
        src, dst = link.src, link.dst
        new = src in ways and dst in ways and src != dst and dst not in ways[src]
        if not (new and 0 < link.bandwidth < math.inf and 0 <= link.latency < math.inf and link.lanes >= 1):
            raise TopologyError(f"{name}: link {src} -> {dst}{_fault(graph, link)}")
        yield src, dst, {"link": link}


def _fault(graph: nx.DiGraph[str], link: Link) -> str:
    """What is wrong with a link that is not in the graph yet."""
    for end in (link.src, link.dst):
        if end not in graph:
            return f': there is no node "{end}"'
    if link.src == link.dst:
        return ": a link joins two different nodes"
    if graph.has_edge(link.src, link.dst):
        return ": stands twice; give parallel cables as lanes of one link"
    if not 0 < link.bandwidth < math.inf:
        return f": bandwidth {link.bandwidth} B/s must be positive and finite"
    if not 0 <= link.latency < math.inf:
        return f": latency {link.latency} s must be zero or positive, and finite"
    return f": lanes {link.lanes} must be at least 1"


def _check_connected(name: str, graph: nx.DiGraph[str], gpus: list[str]) -> None:
    for view, relation in ((graph, "cannot send to"), (graph.reverse(copy=False), "cannot receive from")):
        ways = dict(view.adjacency())  # plain dictionaries: half the time of networkx's own search
        reached, frontier = {gpus[0]}, [gpus[0]]
        while frontier:
            following = set().union(*(ways[node] for node in frontier)) - reached
            reached |= following
            frontier = list(following)
        for gpu in gpus:
            if gpu not in reached:
                raise TopologyError(f"{name}: {gpus[0]} {relation} {gpu}: no path; add a link or a switch between them")


def both_ways(link: Link) -> tuple[Link, Link]:
    """The two directions of one full-duplex cable."""
    return link, link.reversed()
