"""A machine as a protocol sees it: links with the rate that data gets, and the latency of one message."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from prediction.library.constants import US, Constants
from prediction.nccl.version import Protocol
from topologies.graph import Link, Node, Topology

PAYLOAD: dict[Protocol, float] = {"ll": 0.4, "ll128": 0.92 * 120 / 128, "simple": 1.0}
"""Part of the rate that is data: LL 8 of 16 bytes, of which 0.8 are reached; LL128 120 of 128, of which 0.92 (NCCL's tuner as well)."""
HOP: dict[Protocol, float] = {"ll": 1.0, "ll128": 2.1, "simple": 2.1}
"""A hop inside a server, to LL's (NCCL: 0.6, 1.25 us; Simple adds what it spends on a slice)."""
NET: dict[Protocol, float] = {"ll": 0.0, "ll128": 2.1 * US, "simple": 8.8 * US}
"""What a hop over the network takes longer than with LL [s] (NCCL: 1.3 and 11.3 us in a ring, 3.5 and 9 in a tree)."""
IN_FLIGHT: dict[Protocol, int] = {"ll": 4096, "ll128": 38400}
"""Bytes that the threads of a channel have on their way at once: 512 of 8 bytes, 640 of 60; the next go ``TURN`` of a hop later."""
TURN = 0.65
"""It makes 10 GB/s a channel with LL on H100, where a steady ring shows 10, and 8 on A100, where it shows 6."""
TREE_HOP, RING_NET = 1.4, 0.6
"""A hop of a tree is longer than a ring's inside a server, with LL and LL128 a ring's over the network shorter than a
tree's (NCCL: 0.54 and 0.47 of it)."""
_NVLS_TREE, _PCIE = 0.94, 0.9
"""Parts of a rate, of public tables: NVLS with a tree over two nodes to NVLS on one, and large copies over PCIe."""
RENDEZVOUS = {"slingshot-11": (2048, 7 * US)}
"""By network: messages of more data than this agree first on where it goes, and take so much longer [s] (seen on two Slingshot systems)."""


@dataclass(frozen=True, slots=True)
class Use:
    """What runs: ``channels`` of a protocol, messages of ``message`` bytes to the network; ``sending``: part of its time that a channel
    sends and does not copy inside the GPU."""

    algorithm: str
    protocol: Protocol
    channels: int
    message: float
    sending: float = 1.0
    shared_memory: bool = False


class Wire:
    """Makes the machine for one use after the other."""

    def __init__(self, topology: Topology, constants: Constants) -> None:
        self.topology, self.constants = topology, constants
        self.kinds = {node.name: node.kind for node in topology.nodes}
        self.families = {link: _family(link, self.kinds) for link in topology.links}
        self.direct = "nvlink" in self.families.values()

    def seen(self, use: Use) -> Topology:
        """The same graph with other numbers."""
        links = [self._changed(link, family, use) for link, family in self.families.items()]
        nodes = [self._limited(node, use) for node in self.topology.nodes]
        return Topology.build(self.topology.name, nodes, links, self.topology.groups, self.topology.dims)

    @cached_property
    def gpus_a_nic(self) -> float:
        nics = sum(kind == "nic" for kind in self.kinds.values())
        return max(1.0, len(self.topology.gpus) / nics) if nics else 1.0

    def _limited(self, node: Node, use: Use) -> Node:
        """LL and LL128 wait for flags: a channel moves no more than its threads have in flight a hop."""
        if node.kind != "gpu" or use.protocol == "simple":
            return node
        most = use.channels * IN_FLIGHT[use.protocol] / (TURN * self._hop(use))
        return replace(node, injection=min(node.injection, most), ejection=min(node.ejection, most))

    def _hop(self, use: Use) -> float:
        hop = (self.constants.nvlink_hop if self.direct else self.constants.pcie_hop) * HOP[use.protocol]
        return hop * TREE_HOP if use.algorithm == "tree" else hop

    def _changed(self, link: Link, family: str, use: Use) -> Link:
        constants, ends = self.constants, (self.kinds[link.src], self.kinds[link.dst])
        if family == "nvlink":
            switched, nvls = "nvswitch" in ends, use.algorithm.startswith("nvls")
            part = constants.nvls if nvls and switched else constants.nvlink * use.sending
            part *= _NVLS_TREE if use.algorithm == "nvls-tree" else 1.0
            hop = constants.nvls_hop if nvls else self._hop(use)
            rate, latency = link.bandwidth * part, hop / 2 if switched else hop
        elif family == "net" and "nic" in ends:
            hop = constants.net_hop * (RING_NET if use.algorithm == "ring" and use.protocol != "simple" else 1.0) + NET[use.protocol]
            over, wait = RENDEZVOUS.get(link.kind, (math.inf, 0.0))
            hop += wait if use.message > over else 0.0
            proxies = self.gpus_a_nic * use.message / constants.message
            rate, latency = min(link.bandwidth * constants.nic, proxies / PAYLOAD[use.protocol]), hop / 2
        elif family == "net":
            rate, latency = link.bandwidth, link.latency
        else:
            rate, latency = self._host(link, ends, use)
        return replace(link, bandwidth=rate * PAYLOAD[use.protocol], latency=latency)

    def _host(self, link: Link, ends: tuple[str, str], use: Use) -> tuple[float, float]:
        """PCIe and links of CPUs. To and from a NIC they add no latency: it is in the network's."""
        if self.direct:
            return link.bandwidth, 0.0
        latency = self._hop(use) / 2 if "gpu" in ends else 0.0
        if "cpu" not in ends:
            return link.bandwidth * _PCIE, latency
        return min(link.bandwidth * _PCIE, self.constants.shared_memory if use.shared_memory else self.constants.bridge), latency


def _family(link: Link, kinds: Mapping[str, str]) -> str:
    if link.kind.startswith(("nvlink", "xgmi")) and not link.kind.startswith(("nvlink-c2c", "xgmi-cpu")):
        return "nvlink"
    return "net" if "switch" in (kinds[link.src], kinds[link.dst]) else "host"
