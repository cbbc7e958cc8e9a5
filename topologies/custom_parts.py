"""What a description of servers says -> nodes and links: servers with their own PCIe tree, or Graces; NVLink; the network."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import gcd

from topologies.dgx import HYBRID_CUBE_MESH
from topologies.errors import TopologyError
from topologies.fabric import blocks, infiniband, most_servers, one_switch, rail_groups
from topologies.gpus import Gpu
from topologies.grace import grace_node
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import link_of, link_type
from topologies.server import Server, servers

FABRICS: dict[str, dict[float, str]] = {
    fabric: {link_type(kind).lane_bandwidth: kind for kind in kinds}
    for fabric, kinds in {
        "ib": ("ib-edr", "ib-hdr", "ib-ndr", "ib-xdr"),
        "roce": ("roce-25", "roce-50", "roce-100", "roce-200", "roce-400", "roce-800"),
        "efa": ("efa-100", "efa-200", "efa-400"),
        "slingshot": ("slingshot-10", "slingshot-11", "slingshot-400"),
        "tcpxo": ("gvnic-100", "gvnic-200"),
    }.items()
}
"""Link type by fabric and rate of a NIC [B/s]."""
FABRICS["ib"][7e9] = "ib-fdr"  # by its signalling rate, as it is called; the link carries 6.8 GB/s
_PORTS = {12.5e9: 36, 25e9: 40, 50e9: 64, 100e9: 144}
"""Of the switches of a generation, by the rate of a port [B/s]: EDR, HDR, NDR, XDR."""
_SOCKETS = {
    "intel": {"pcie3": "upi", "pcie4": "upi-ice", "pcie5": "upi2", "pcie6": "upi2-24"},
    "amd": {"pcie3": "xgmi-cpu", "pcie4": "xgmi-cpu", "pcie5": "xgmi-cpu-genoa", "pcie6": "xgmi-cpu-genoa"},
    "arm": dict.fromkeys(("pcie3", "pcie4", "pcie5", "pcie6"), "grace-link"),
}
_BOARD, _SOCKET = 8, 4
"""GPUs of one NVSwitch board; PCIe cards of one socket."""


@dataclass(frozen=True, slots=True)
class Network:
    """``nics`` NIC nodes a server, each of ``lanes`` NICs of a link type ``kind`` with ``rate`` [B/s]."""

    fabric: str
    kind: str
    rate: float
    nics: int
    lanes: int
    rails: bool


@dataclass(frozen=True, slots=True)
class Plan:
    """A description without gaps: ``links`` NVLinks or PCIe lanes of a GPU, ``domain`` GPUs of one NVLink domain."""

    gpu: Gpu
    intra: str
    nodes: int
    gpus: int
    links: int
    domain: int
    cpu: str | None
    network: Network | None

    @property
    def name(self) -> str:
        net = self.network
        wires = f"-{net.kind}x{net.nics * net.lanes}{'-rails' if net.rails else ''}" if net else ""
        over = f"-{self.domain}" if self.intra == "nvl72" else ""
        host = f"-{self.cpu}" if self.cpu else ""
        return f"custom-{self.gpu.name}-{self.intra}-{self.links}{over}-{self.nodes}x{self.gpus}{wires}{host}"


def built(plan: Plan) -> Topology:
    """All servers, and the network where there is one."""
    parts, links, nics = _graces(plan) if plan.gpu.per_grace else servers(_server(plan), plan.nodes, plan.gpus)
    groups = {"servers": blocks(plan.nodes * plan.gpus, plan.gpus)}
    if plan.intra == "nvl72":
        groups["domains"] = blocks(plan.nodes * plan.gpus, plan.domain)
    net = plan.network
    if net is None:
        return Topology.build(plan.name, parts, links, groups)
    rails = -(-plan.gpus // -(-plan.gpus // net.nics))
    ports = _PORTS.get(net.rate, 0)
    if net.rails and most_servers(net.nics, ports) >= plan.nodes:
        switches, cables = infiniband(plan.name, nics, net.kind, ports, sharp=net.fabric == "ib", lanes=net.lanes)
        groups |= rail_groups(plan.nodes, plan.gpus, rails, ports // 2)
    else:
        switches, cables = one_switch(nics, net.kind, net.lanes, sharp=net.fabric == "ib")
        groups |= rail_groups(plan.nodes, plan.gpus, rails, plan.nodes) | {"leaves": blocks(plan.nodes * plan.gpus, plan.nodes * plan.gpus)}
    return Topology.build(plan.name, parts + switches, links + cables, groups)


def _server(plan: Plan) -> Server:
    """The server as its parts: GPUs and NICs of a PCIe switch by their greatest common divisor, two GPUs to a switch where usual."""
    gpu, gpus, net = plan.gpu, plan.gpus, plan.network
    nics = net.nics if net else 0
    cards = plan.intra.startswith("pcie")
    switches = gcd(gpus, nics) if nics else gpus
    if gpu.pairs and not cards and gpus >= _BOARD and switches == gpus and gpus % 2 == 0:
        switches = gpus // 2
    per_switch = gpus // switches
    sockets = 1 if switches % 2 or (cards and gpus <= _SOCKET) else 2
    boards = (-(-gpus // _BOARD)) if plan.intra == "nvswitch" else 0
    return Server(
        plan.name, gpu.link, gpu.pcie, _SOCKETS[plan.cpu or ("amd" if gpu.pcie == "pcie4" and gpu.switched else "intel")][gpu.pcie],
        net.kind if net else "", 0, gpus_per_pcie=per_switch, nics_per_pcie=nics // switches, gpus=gpus, boards=boards,
        trunk=_BOARD * plan.links if boards == 2 else 0, mesh=_mesh(plan), multicast=gpu.multicast, numa=tuple(range(sockets)),
        nic_lanes=net.lanes if net else 1, slot=plan.links if cards else None, lanes=plan.links if boards else None,
    )  # fmt: skip


def _mesh(plan: Plan) -> tuple[tuple[int, ...], ...]:
    """Links between every two GPUs of a server without switches: the hybrid cube mesh of 5 to 8 P100 or V100, else as many for all."""
    gpus = range(plan.gpus)
    if plan.intra == "xgmi-mesh":
        return tuple(tuple(int(a != b) for b in gpus) for a in gpus)
    if plan.intra != "nvlink-mesh":
        return ()
    if plan.gpu.link in ("nvlink1", "nvlink2") and _SOCKET < plan.gpus <= _BOARD:
        most = 1 if plan.links < 6 else 2
        return tuple(tuple(min(lanes, most) for lanes in row) for row in HYBRID_CUBE_MESH)
    each = plan.links // max(1, plan.gpus - 1)
    if not each:
        raise TopologyError(f"custom: links = {plan.links} of a GPU do not reach all {plan.gpus - 1} others of a mesh; "
                            f"write gpus = {plan.links + 1} or fewer, or another intra")  # fmt: skip
    return tuple(tuple(each * (a != b) for b in gpus) for a in gpus)


def _graces(plan: Plan) -> tuple[list[Node], list[Link], list[list[str]]]:
    """Servers whose GPUs and NICs hang at Graces, and NVSwitches of a domain as one."""
    gpu, net, mesh = plan.gpu, plan.network, _mesh(plan)
    slot = next((kind for kind in ("pcie4", "pcie5") if net and net.rate * net.lanes <= link_type(kind).bandwidth), "pcie6")
    parts: list[Node] = []
    links: list[Link] = []
    nics = []
    for s in range(plan.nodes):
        prefix = f"s{s}." if plan.nodes > 1 else ""
        inside, cables = grace_node(prefix, s, plan.gpus, gpu.per_grace, 10 // gpu.per_grace, slot, net.nics if net else 0)
        parts += inside
        switch, first = divmod(s * plan.gpus, plan.domain)
        nvlinks = [(a, b, mesh[a][b]) for a, b in combinations(range(plan.gpus), 2)] if mesh else []
        links += [way for a, b, lanes in nvlinks for way in both_ways(link_of(gpu.link, f"{prefix}gpu{a}", f"{prefix}gpu{b}", lanes))]
        if plan.intra in ("nvl72", "nvswitch"):
            parts += [] if first else [Node(f"nvswitch{switch}", "nvswitch", reduces=gpu.multicast)]
            ports = [link_of(gpu.link, f"{prefix}gpu{g}", f"nvswitch{switch}", plan.links) for g in range(plan.gpus)]
            links += [way for port in ports for way in both_ways(port)]
        links += cables
        nics.append([f"{prefix}nic{i}" for i in range(net.nics if net else 0)])
    return parts, links, nics
