"""Faults as values: text such as ``dead-nic:s0.nic2`` -> a new ``Topology`` with that fault in it, everything else as it was.

A slow GPU has all its links and its ports at 1/factor of their bandwidth (what a topology can express: a GPU that computes slower is
a matter of the model). Nodes, links and ranks keep their order; a route may change wherever a link is gone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

import networkx as nx
import numpy as np

from topologies.errors import TopologyError, nearest, quoted
from topologies.graph import Link, Topology

FAULTS = {
    "slow-gpu": ("slow-gpu:3:x1.6", "all links and ports of the GPU of that rank at 1/factor"),
    "slow-link": ("slow-link:gpu3-nvswitch:x2", "a link at 1/factor, both directions; gpu3>nvswitch is one direction"),
    "degraded-rail": ("degraded-rail:2:x2", "the cables of NIC 2 of every server at 1/factor"),
    "background": ("background:gpu3-nvswitch:0.3", "other traffic takes that share of a link, both directions; gpu3>nvswitch is one"),
    "lanes": ("lanes:gpu3-nvswitch:1", "so many lanes of a link are down"),
    "dead-link": ("dead-link:gpu3-nvswitch", "a link is gone"),
    "dead-uplink": ("dead-uplink:leaf0-spine1", "a link between two switches is gone"),
    "dead-nic": ("dead-nic:nic2", "a NIC is gone, with its links"),
    "dead-node": ("dead-node:leaf0", "a node that is no GPU is gone, with its links"),
    "jitter": ("jitter:0.1", "the latency of every hop times a factor drawn evenly from 0.9 to 1.1, by the seed"),
}
"""Kind of fault -> an example, and what it means."""
_FACTOR = re.compile(r"x([0-9]{1,6}(?:\.[0-9]{1,6})?)")
_SHARE = re.compile(r"0?\.[0-9]{1,6}")
_COUNT = re.compile(r"[0-9]{1,6}")
_VALUES = {
    "slow-gpu": _FACTOR, "slow-link": _FACTOR, "degraded-rail": _FACTOR, "background": _SHARE, "lanes": _COUNT, "jitter": _SHARE,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Fault:
    """``target``: a rank, a rail, a node, or two nodes joined by ``-`` or ``>``; ``amount``: factor, lanes or share (0: none)."""

    kind: str
    target: str
    amount: float = 0.0

    def __str__(self) -> str:
        amount = f"{self.amount:.6f}".rstrip("0").rstrip(".") if self.kind in _VALUES else ""
        prefix = "x" if _VALUES.get(self.kind) is _FACTOR else ""
        return ":".join(part for part in (self.kind, self.target, prefix + amount) if part)


def parse_fault(text: str) -> Fault:
    """Text in one of the forms of ``FAULTS``; whether its target is there is known once it is applied. Raises TopologyError."""
    kind, colon, rest = text.strip(" ").partition(":")
    if kind not in FAULTS:
        raise TopologyError(f"fault {quoted(text)}: {quoted(kind)} is not a kind of fault{nearest(kind, FAULTS)}")
    target, amount = rest, ""
    if kind == "jitter":
        target, amount = "", rest
    elif kind in _VALUES:
        target, colon, amount = rest.rpartition(":")
    right = f'write it as "{FAULTS[kind][0]}"'
    if not colon or (kind != "jitter" and not target) or len(text) > 500:
        raise TopologyError(f"fault {quoted(text)}: something is missing; {right}")
    if kind not in _VALUES:
        return Fault(kind, target)
    match = _VALUES[kind].fullmatch(amount)
    value = float(match[match.re.groups]) if match else 0.0
    if not match or (match.re is _FACTOR and value <= 1) or value <= 0:
        rule = {_FACTOR: "a factor above 1", _COUNT: "a number of lanes, 1 or more", _SHARE: "a share above 0 and below 1"}[_VALUES[kind]]
        raise TopologyError(f"fault {quoted(text)}: {quoted(amount)} is not {rule}; {right}")
    return Fault(kind, target, value)


def apply_faults(topology: Topology, faults: Iterable[str | Fault], seed: int = 0) -> Topology:
    """A new topology with all faults, applied in order, and named after them; without faults the same. ``seed``: of the jitter.

    Raises TopologyError for a text that is no fault, for a rank, rail, node or link that is not there (with the nearest) or no longer,
    for more lanes than a link has, for the removal of a GPU, and, with the ranks, when a rank can no longer reach the others.
    """
    told = [parse_fault(str(fault)) for fault in faults]
    if not told:
        return topology
    state = _State(topology, seed)
    for fault in told:
        state.apply(fault)
    name = " + ".join([topology.name, *map(str, told)])
    return Topology.build(name, state.nodes.values(), state.links.values(), topology.groups, topology.dims, topology.constants)


class _State:
    """Nodes by name and links by ends, in order, while faults are applied."""

    def __init__(self, topology: Topology, seed: int) -> None:
        self.topology = topology
        self.nodes = {node.name: node for node in topology.nodes}
        self.links = {(link.src, link.dst): link for link in topology.links}
        self.random = np.random.default_rng(seed)

    def apply(self, fault: Fault) -> None:
        where = f"fault {quoted(str(fault))}"
        match fault.kind:
            case "slow-gpu":
                self._slow_gpu(fault, where)
            case "slow-link":
                self._change(self._ends(fault.target, where), lambda link: _slowed(link, fault.amount, where))
            case "background":
                self._change(self._ends(fault.target, where), lambda link: _rated(link, link.bandwidth * (1 - fault.amount), where))
            case "degraded-rail":
                self._change(self._rail(fault.target, where), lambda link: _slowed(link, fault.amount, where))
            case "lanes":
                self._change(self._ends(fault.target, where), lambda link: _fewer_lanes(link, int(fault.amount), where))
            case "dead-link" | "dead-uplink":
                ends = self._ends(fault.target, where, switches=fault.kind == "dead-uplink")
                self.links = {key: link for key, link in self.links.items() if key not in ends}
                self._check_reach(where)
            case "dead-nic" | "dead-node":
                self._remove(fault.target, where, nic=fault.kind == "dead-nic")
                self._check_reach(where)
            case _:  # jitter: a draw for every link there ever was, so that other faults do not shift the draws
                factors = self.random.uniform(1 - fault.amount, 1 + fault.amount, len(self.topology.links)).tolist()
                drawn = {(link.src, link.dst): factor for link, factor in zip(self.topology.links, factors, strict=True)}
                self._change(self.links, lambda link: replace(link, latency=link.latency * drawn[link.src, link.dst]))

    def _change(self, ends: Iterable[tuple[str, str]], change: Callable[[Link], Link]) -> None:
        self.links.update({key: change(self.links[key]) for key in list(ends)})

    def _slow_gpu(self, fault: Fault, where: str) -> None:
        gpus = self.topology.gpus
        rank = int(fault.target) if _COUNT.fullmatch(fault.target) else gpus.index(fault.target) if fault.target in gpus else -1
        if not 0 <= rank < len(gpus):
            close = nearest(fault.target, gpus) if rank < 0 else ""
            raise TopologyError(f"{where}: {quoted(fault.target)} is not a rank of {self.topology.name}, 0 to {len(gpus) - 1}{close}")
        node = self.nodes[gpus[rank]]
        self.nodes[node.name] = replace(node, injection=node.injection / fault.amount, ejection=node.ejection / fault.amount)
        self._change([key for key in self.links if node.name in key], lambda link: _slowed(link, fault.amount, where))

    def _ends(self, target: str, where: str, switches: bool = False) -> list[tuple[str, str]]:
        """The directions of the link that ``a-b`` or ``a>b`` names; a name may itself hold a hyphen."""
        cuts = [(target[: cut.start()], target[cut.end() :], cut[0] == "-") for cut in re.finditer("[->]", target)]
        if not cuts:
            raise TopologyError(f"{where}: {quoted(target)} names no link; write two nodes as gpu0-gpu1")
        if sum(cut[:2] in self.links for cut in cuts) > 1:
            raise TopologyError(f'{where}: {quoted(target)} names more than one link; write ">" between the nodes, and both directions')
        # The cut with the most sense: a link there, else two nodes, else one.
        a, b, both = max(cuts, key=lambda cut: (cut[:2] in self.links, (cut[0] in self.nodes) + (cut[1] in self.nodes)))
        for name in (a, b):
            if name not in self.nodes:
                raise TopologyError(f"{where}: there is no node {quoted(name)}{nearest(name, self.nodes)}")
        ends = [pair for pair in ((a, b), (b, a)) if pair in self.links and (both or pair == (a, b))]
        if not ends:
            others = [other for end, other in self.links if end == a]
            raise TopologyError(f"{where}: there is no link {a} -> {b} in {self.topology.name}{nearest(b, others)}")
        if switches and {self.nodes[a].kind, self.nodes[b].kind} != {"switch"}:
            raise TopologyError(f'{where}: an uplink joins two switches; for other links write "dead-link:{target}"')
        return ends

    def _rail(self, target: str, where: str) -> list[tuple[str, str]]:
        """The cables of NIC ``target`` of every server to the switches."""
        rails = len(self.topology.groups.get("rails", ()))
        if not rails:
            raise TopologyError(f"{where}: {self.topology.name} has no rails; name a link instead, as slow-link:gpu0-gpu1:x2")
        if not _COUNT.fullmatch(target) or int(target) >= rails:
            raise TopologyError(f"{where}: {quoted(target)} is not a rail of {self.topology.name}; there are 0 to {rails - 1}")
        nics: dict[int | None, list[str]] = {}
        for node in self.topology.nodes:
            if node.kind == "nic":
                nics.setdefault(node.server, []).append(node.name)
        if not nics or {len(row) for row in nics.values()} != {rails}:
            raise TopologyError(f"{where}: {self.topology.name} has {rails} rails but not {rails} NICs in every server; name the links")
        mine = {row[int(target)] for row in nics.values()}
        ends = [(a, b) for a, b in self.links if mine & {a, b} and "switch" in (self.nodes[a].kind, self.nodes[b].kind)]
        if not ends:
            raise TopologyError(f"{where}: the NICs of rail {target} have no cable to a switch")
        return ends

    def _remove(self, target: str, where: str, nic: bool) -> None:
        candidates = [name for name, node in self.nodes.items() if node.kind == "nic" or not nic]
        node = self.nodes.get(target)
        if node is None:
            raise TopologyError(f"{where}: there is no node {quoted(target)}{nearest(target, candidates)}")
        if node.kind == "gpu":
            rank = self.topology.gpus.index(target)
            raise TopologyError(f'{where}: {target} is a GPU; a rank cannot be taken away: write "slow-gpu:{rank}:x2"')
        if nic and node.kind != "nic":
            raise TopologyError(f'{where}: {target} is a {node.kind}, not a NIC; write "dead-node:{target}"')
        del self.nodes[target]
        self.links = {key: link for key, link in self.links.items() if target not in key}

    def _check_reach(self, where: str) -> None:
        graph: nx.DiGraph[str] = nx.DiGraph(list(self.links))
        graph.add_nodes_from(self.nodes)
        ranks = {gpu: rank for rank, gpu in enumerate(self.topology.gpus)}
        parts: list[list[int]] = [[ranks[name] for name in part if name in ranks] for part in nx.strongly_connected_components(graph)]
        kept = max(parts, key=lambda part: (len(part), -min(part, default=0)))
        lost = [rank for rank in ranks.values() if rank not in kept]
        if lost:
            shown = ", ".join(f"{rank} ({self.topology.gpus[rank]})" for rank in lost[:8]) + (", ..." if len(lost) > 8 else "")
            what = "rank" if len(lost) == 1 else f"{len(lost)} ranks:"
            raise TopologyError(f"{where}: cuts off {what} {shown}: no way is left to or from the others; leave this fault out")


def _slowed(link: Link, factor: float, where: str) -> Link:
    return _rated(link, link.bandwidth / factor, where)


def _rated(link: Link, bandwidth: float, where: str) -> Link:
    if bandwidth < 1:
        raise TopologyError(f"{where}: leaves {link.src} -> {link.dst} less than 1 B/s; take a smaller amount, or dead-link")
    return replace(link, bandwidth=bandwidth)


def _fewer_lanes(link: Link, lanes: int, where: str) -> Link:
    if lanes >= link.lanes:
        most = f"write 1 to {link.lanes - 1}, or " if link.lanes > 1 else ""
        all_of_it = f'"dead-link:{link.src}-{link.dst}"'
        raise TopologyError(f"{where}: {link.src} -> {link.dst} has {link.lanes} lanes; {most}for all of it {all_of_it}")
    return replace(link, lanes=link.lanes - lanes, bandwidth=link.bandwidth * (link.lanes - lanes) / link.lanes)
