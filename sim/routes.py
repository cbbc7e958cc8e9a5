"""Pairs of nodes -> numbered routes over numbered resources, each found once: what plans and evaluators share."""

from __future__ import annotations

import math
from dataclasses import dataclass

from sim.model import Model
from topologies.graph import Link, NodeKind, Topology
from topologies.multipath import Paths


@dataclass(frozen=True, slots=True)
class Resource:
    """Something with a capacity [B/s]: a link (``src``, ``dst``), or a node's port (``src`` or ``dst`` empty)."""

    src: str
    dst: str
    capacity: float
    incast: float = 0.0
    """k flows together get ``capacity / (1 + incast (k - 1))``."""


@dataclass(frozen=True, slots=True)
class Route:
    """Resources of the ways of a flow from node to node, each with the fraction of it that it carries, and the latency of the longest
    way [s]."""

    resources: tuple[int, ...]
    weights: tuple[float, ...]
    latency: float
    src: str = ""
    dst: str = ""


class RouteTable:
    """``resources`` and ``routes`` grow as routes are asked for. Raises TopologyError for a route of the model that is not there."""

    def __init__(self, topology: Topology, model: Model) -> None:
        self.topology, self.model = topology, model
        self.resources: list[Resource] = []
        self.routes: list[Route] = []
        self.by_channel = model.routing == "ecmp"
        """The channel of a message has a say in its route."""
        self._paths = Paths(topology, model.routing, model.routing_seed, model.overrides)
        self._resource_of: dict[tuple[str, str], int] = {}
        self._number_of: dict[int, int] = {}
        self._route_of: dict[tuple[str, str, int], int] = {}
        limits = ((node.name, node.injection, node.ejection) for node in topology.nodes)
        self._ports = {name: (injection, ejection) for name, injection, ejection in limits if min(injection, ejection) < math.inf}

    def route(self, src: str, dst: str, channel: int = 0) -> int:
        """The number of the route from node to node (a node to itself: no resources, no latency). Raises TopologyError."""
        key = src, dst, channel if self.by_channel else 0
        number = self._route_of.get(key)
        if number is None:
            number = self._route_of[key] = len(self.routes)
            self.routes.append(self._found(*key))
        return number

    def _found(self, src: str, dst: str, channel: int) -> Route:
        links, fractions, latency = self._paths.flow(src, dst, channel)
        if links and self.model.hop_latency:
            latency = self._latency(links)
        known = self._number_of
        used = [known[id(link)] if id(link) in known else self._link(link) for link in links]
        weights = fractions or (1.0,) * len(used)
        if used and (src in self._ports or dst in self._ports):
            for a, b, capacity in ((src, "", self._ports.get(src, _OPEN)[0]), ("", dst, self._ports.get(dst, _OPEN)[1])):
                if capacity < math.inf:
                    used.append(self._resource(a, b, capacity, self.model.incast if b else 0.0))
                    weights += (1.0,)
        return Route(tuple(used), weights, latency, src, dst)

    def _link(self, link: Link) -> int:
        """By identity, since the topology keeps its links: their seven fields take longer to hash than a way to find."""
        number = self._number_of[id(link)] = self._resource(link.src, link.dst, *self._carried(link))
        return number

    def _carried(self, link: Link) -> tuple[float, float]:
        """Capacity [B/s] under the ceiling of the link, and its incast penalty."""
        model = self.model
        if model.nominal:
            return link.bandwidth, 0.0
        src, dst = (self.topology.node(name).kind for name in (link.src, link.dst))
        ceiling = model.pcie_ceiling if link.kind.startswith("pcie") else model.nic_ceiling if "nic" in (src, dst) else 1.0
        return link.bandwidth * ceiling, model.incast if src in _NETWORK and dst in _ENDS else 0.0

    def _latency(self, links: tuple[Link, ...]) -> float:
        """Of the longest way [s]; links come before those that go on from them."""
        reached = {links[0].src: 0.0}
        for link in links:
            hop = self.model.hop_latency if self.topology.node(link.src).kind in _SWITCHES else 0.0
            reached[link.dst] = max(reached.get(link.dst, 0.0), reached[link.src] + link.latency + hop)
        return reached[links[-1].dst]

    def _resource(self, src: str, dst: str, capacity: float, incast: float) -> int:
        number = self._resource_of.get((src, dst))
        if number is None:
            number = self._resource_of[src, dst] = len(self.resources)
            self.resources.append(Resource(src, dst, capacity, incast))
        return number


_OPEN = (math.inf, math.inf)
_NETWORK: tuple[NodeKind, ...] = ("switch", "nvswitch")
_SWITCHES: tuple[NodeKind, ...] = (*_NETWORK, "pcie")
_ENDS: tuple[NodeKind, ...] = ("gpu", "nic")
