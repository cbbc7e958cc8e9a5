"""One node of a topology as NCCL's search sees it: GPUs, one NVSwitch, PCIe switches, CPUs, NICs, and a directed edge for each link.

Rates are whole MB/s, as NCCL rounds to 1 MB/s; a node's edges stand in NCCL's order (``ncclTopoConnectNodes``, ``ncclTopoSort``):
fast ones first, the way up the PCIe tree last. Paths, and with them the result, depend on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from prediction.nccl.graphs import Cpu, Path
from prediction.nccl.rates import PCIE_LANE, Medium, card_sm, cpu_of, is_xgmi, link_rate, medium, nvlink_sm
from prediction.nccl.version import Version
from topologies.graph import Link, Node, Topology

MB = 1e6
_XGMI_SM = 80
"""RCCL's search knows no compute capability; its list of speeds is Ampere's."""
Kind = Literal["gpu", "nvswitch", "pcie", "cpu", "nic", "net"]


@dataclass(frozen=True, slots=True)
class Edge:
    """One direction of a link between two nodes by number; ``rate`` [MB/s]."""

    src: int
    dst: int
    medium: Medium
    rate: int


@dataclass(frozen=True)
class System:
    """Equal systems have equal search results. ``kinds`` of the nodes by number, GPUs first, in the order of ranks; ``xgmi``: AMD's
    GPUs; ``p2p``: the farthest path over which GPUs reach each other's memory (NCCL_P2P_LEVEL; LOC: none do), None: NCCL's default."""

    kinds: tuple[Kind, ...]
    edges: tuple[Edge, ...]
    sm: int
    cpu: Cpu
    xgmi: bool = False
    p2p: Path | None = None

    @cached_property
    def gpus(self) -> tuple[int, ...]:
        return self.of("gpu")

    @cached_property
    def nets(self) -> tuple[int, ...]:
        return self.of("net")

    @property
    def has_nvlinks(self) -> bool:
        return any(edge.medium == "nvlink" for edge in self.edges)

    @cached_property
    def switched(self) -> bool:
        return "nvswitch" in self.kinds

    @cached_property
    def out(self) -> tuple[tuple[int, ...], ...]:
        """The edges that leave each node, by number."""
        found: list[list[int]] = [[] for _ in self.kinds]
        for number, edge in enumerate(self.edges):
            found[edge.src].append(number)
        return tuple(map(tuple, found))

    @cached_property
    def back(self) -> tuple[int, ...]:
        """The opposite direction of each edge."""
        number = {(edge.src, edge.dst, edge.medium): i for i, edge in enumerate(self.edges)}
        return tuple(number[edge.dst, edge.src, edge.medium] for edge in self.edges)

    def of(self, kind: Kind) -> tuple[int, ...]:
        return tuple(i for i, own in enumerate(self.kinds) if own == kind)


def system_of(topology: Topology, gpus: Iterable[str], inside: Sequence[Node], version: Version, cpu: Cpu | None, *, alone: bool) -> System:
    """``inside``: the nodes of the server; NICs count only where there are other nodes (not ``alone``)."""
    own = list(gpus)
    order: tuple[Kind, ...] = ("pcie", "cpu") if alone else ("pcie", "cpu", "nic")
    parts = [(node.name, kind) for kind in order for node in inside if node.kind == kind]
    names = own + [name for name, _ in parts]
    gpu: Kind = "gpu"
    kinds = [gpu] * len(own) + [kind for _, kind in parts]
    number = {name: i for i, name in enumerate(names)}
    if switches := [node.name for node in inside if node.kind == "nvswitch"]:
        number |= dict.fromkeys(switches, len(kinds))  # NCCL takes all of them for one
        kinds.append("nvswitch")
    links = [data["link"] for name in number for data in topology.graph[name].values() if data["link"].dst in number]
    vendor = cpu or cpu_of([link.kind for link in links])
    edges: dict[tuple[int, int, Medium], int] = {}

    def join(src: int, dst: int, what: Medium, rate: float) -> None:
        edges[src, dst, what] = edges.get((src, dst, what), 0) + round(rate / MB)

    for link in links:
        src, dst = number[link.src], number[link.dst]
        ends = (kinds[src], kinds[dst])
        if (what := medium(link, ends)) and src != dst:
            join(src, dst, what, link_rate(link, ends, vendor, version))
    for nic in [name for name in names if kinds[number[name]] == "nic"]:
        wires = [data["link"] for other, data in topology.graph[nic].items() if topology.node(other).kind in ("switch", "nic")]
        for src, dst in ((number[nic], len(kinds)), (len(kinds), number[nic])):
            join(src, dst, "net", sum(link.bandwidth for link in wires))
        kinds.append("net")
    amd = any(is_xgmi(link) for link in links)
    nvlinks = [nvlink_sm(link, (kinds[number[link.src]], kinds[number[link.dst]])) for link in links]
    sm = _XGMI_SM if amd else _capability([sm for sm in nvlinks if sm], links)
    return System(tuple(kinds), _sorted(kinds, edges), sm, vendor, amd)


def _capability(found: list[int], links: list[Link]) -> int:
    """Of the oldest GPU, by its NVLinks or else by its PCIe."""
    cards = [card_sm(link.kind) for link in links if link.kind in PCIE_LANE]
    return min(found or cards, default=80)


def _sorted(kinds: list[Kind], edges: dict[tuple[int, int, Medium], int]) -> tuple[Edge, ...]:
    near: dict[int, int] = {i: 0 for i, kind in enumerate(kinds) if kind == "cpu"}
    frontier = list(near)
    while frontier:
        found = [(dst, near[src] + 1) for src, dst, what in edges if src in frontier and what == "pcie" and dst not in near]
        near |= dict(found)
        frontier = [dst for dst, _ in found]
    every = [Edge(*key, rate) for key, rate in edges.items()]
    return tuple(sorted(every, key=lambda e: (e.src, e.medium == "pcie" and near.get(e.dst, 0) < near.get(e.src, 0), -e.rate)))
