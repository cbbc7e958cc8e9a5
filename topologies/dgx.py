"""NVIDIA's DGX servers, one or many: GPUs, NVLink, PCIe tree, sockets, NICs, and rails of InfiniBand switches between servers.

The NVSwitches of a server are one node, as in NCCL's own graph: every GPU spreads evenly over all of them. ``gpus`` below 8 takes
the first GPUs of each server with what they need of the PCIe tree, as a job on a slice of the server sees it.
"""

from __future__ import annotations

from dataclasses import dataclass

from topologies.errors import TopologyError
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import link_of
from topologies.rails import infiniband, most_servers, rail_groups
from topologies.registry import Count, topology

_HYBRID_CUBE_MESH = (
    (0, 2, 1, 1, 2, 0, 0, 0),
    (2, 0, 1, 2, 0, 1, 0, 0),
    (1, 1, 0, 2, 0, 0, 2, 0),
    (1, 2, 2, 0, 0, 0, 0, 1),
    (2, 0, 0, 0, 0, 2, 1, 1),
    (0, 1, 0, 0, 2, 0, 1, 2),
    (0, 0, 2, 0, 1, 1, 0, 2),
    (0, 0, 0, 1, 1, 2, 2, 0),
)
"""NVLinks between GPUs of a DGX-1V (msccl-tools, ``topologies/nvidia.py``); other systems number the GPUs otherwise."""


@dataclass(frozen=True, slots=True)
class _Server:
    """A server's parts: link types, GPUs and NICs of a PCIe switch, NVSwitch (absent: the cube mesh), ports of its IB switches."""

    name: str
    nvlink: str
    pcie: str
    sockets: str
    nic: str
    ports: int
    gpus_per_pcie: int
    nics_per_pcie: int
    nvswitch: bool = True
    multicast: bool = False


_DGX_1V = _Server("dgx-1v", "nvlink2", "pcie3", "qpi", "ib-edr", 36, 2, 1, nvswitch=False)
_DGX_A100 = _Server("dgx-a100", "nvlink3", "pcie4", "xgmi-cpu", "ib-hdr", 40, 2, 2)
_DGX_H100 = _Server("dgx-h100", "nvlink4", "pcie5", "upi2", "ib-ndr", 64, 1, 1, multicast=True)


@topology
def dgx_1v(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX-1V: 8 V100 in a hybrid cube mesh of NVLink 2, 4 EDR NICs; rails of 36-port switches (SB7800)."""
    return _cluster(_DGX_1V, nodes, gpus)


@topology
def dgx_a100(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX A100: 8 A100 on NVSwitch with 12 NVLink 3 each, 8 HDR NICs; rails of 40-port switches (QM8700)."""
    return _cluster(_DGX_A100, nodes, gpus)


@topology
def dgx_h100(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX H100: 8 H100 on NVSwitch with 18 NVLink 4 each (NVLink SHARP), 8 NDR NICs; rails of 64-port switches (QM9700)."""
    return _cluster(_DGX_H100, nodes, gpus)


def _cluster(server: _Server, nodes: int, gpus: int) -> Topology:
    if not 1 <= gpus <= 8:
        raise TopologyError(f"{server.name}: gpus = {gpus} per server; it has 8: write 1 to 8")
    rails = _nics(server, gpus)
    most = most_servers(rails, server.ports)
    if not 1 <= nodes <= most:
        rule = f"with {rails} rails two tiers of {server.ports}-port switches take nodes = 1 to {most}"
        raise TopologyError(f"{server.name}: nodes = {nodes}; {rule}")
    parts: list[Node] = []
    links: list[Link] = []
    nics = []
    for s in range(nodes):
        prefix = f"s{s}." if nodes > 1 else ""
        inside, wires = _inside(server, s, prefix, gpus)
        parts += inside
        links += wires
        nics.append([f"{prefix}nic{n}" for n in range(rails)])
    name = f"{server.name}-{nodes}x{gpus}"
    if nodes == 1:
        return Topology.build(name, parts, links, {"servers": (tuple(range(gpus)),)})
    switches, cables = infiniband(server.name, nics, server.nic, server.ports)
    return Topology.build(name, parts + switches, links + cables, rail_groups(nodes, gpus, rails, server.ports // 2))


def _nics(server: _Server, gpus: int) -> int:
    return -(-gpus * server.nics_per_pcie // server.gpus_per_pcie)


def _inside(server: _Server, s: int, prefix: str, gpus: int) -> tuple[list[Node], list[Link]]:
    """Nodes and links of one server; GPUs first, so that their order is the order of ranks."""
    switches = -(-gpus // server.gpus_per_pcie)
    switches_per_cpu = 4 // server.gpus_per_pcie  # a socket has 4 GPUs
    cpus = -(-switches // switches_per_cpu)
    nics = _nics(server, gpus)
    nodes = [Node(f"{prefix}gpu{g}", "gpu", s) for g in range(gpus)]
    links: list[Link] = []

    def cable(kind: str, a: str, b: str, lanes: int | None = None) -> None:
        links.extend(both_ways(link_of(kind, prefix + a, prefix + b, lanes)))

    if server.nvswitch:
        nodes.append(Node(f"{prefix}nvswitch", "nvswitch", s, reduces=server.multicast))
        for g in range(gpus):
            cable(server.nvlink, f"gpu{g}", "nvswitch")
    else:
        for a in range(gpus):
            for b in range(a + 1, gpus):
                if _HYBRID_CUBE_MESH[a][b]:
                    cable(server.nvlink, f"gpu{a}", f"gpu{b}", _HYBRID_CUBE_MESH[a][b])
    nodes += [Node(f"{prefix}pcie{i}", "pcie", s) for i in range(switches)]
    nodes += [Node(f"{prefix}nic{i}", "nic", s) for i in range(nics)]
    nodes += [Node(f"{prefix}cpu{i}", "cpu", s) for i in range(cpus)]
    for g in range(gpus):
        cable(server.pcie, f"gpu{g}", f"pcie{g // server.gpus_per_pcie}")
    for i in range(nics):
        cable(server.pcie, f"nic{i}", f"pcie{i // server.nics_per_pcie}")
    for i in range(switches):
        cable(server.pcie, f"pcie{i}", f"cpu{i // switches_per_cpu}")
    if cpus == 2:
        cable(server.sockets, "cpu0", "cpu1")
    return nodes, links
