"""A topology as NCCL counts it -> what its search finds, for machines whose GPUs sit behind NVSwitches.

Rates are NCCL's own (``src/graph/topo.h``), below the datasheets': an NVLink by the GPU's generation, a PCIe lane by its generation.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import networkx as nx

from prediction.nccl.constants import GB
from prediction.nccl.graphs import Cpu, Graphs
from prediction.nccl.search import Machine, search
from prediction.nccl.version import Version
from topologies.errors import MeasurementError
from topologies.graph import Link, Node, Topology

_SM = {"nvlink2": 70, "nvlink3": 80, "nvlink4": 90, "nvlink5": 100}
"""Compute capability of the first GPU with each generation of NVLink: V100, A100, H100, B200."""
_PCIE_LANE = {"pcie3": 0.75 * GB, "pcie4": 1.5 * GB, "pcie5": 3 * GB, "pcie6": 6 * GB}
_C2C = "nvlink-c2c"


def nvlink_rate(sm: int, version: Version) -> float:
    """One NVLink of a GPU with this compute capability [B/s]."""
    if sm >= 100:
        return (40.1 if version >= (2, 27, 4) else 40.0) * GB
    if sm >= 90:
        return (20.6 if version >= (2, 20) else 20.0) * GB
    return (22.0 if version < (2, 17) else 20.0) * GB


def graphs_of(topology: Topology, version: Version, *, collnet: bool = False, cpu: Cpu | None = None) -> Graphs:
    """What NCCL's search finds. ``collnet``: the network reduces (SHARP). ``cpu``: of the hosts, where no link between sockets tells.
    Raises MeasurementError: not a machine the closed form knows."""
    machine, nodes = machine_of(topology, version, cpu)
    return search(machine, nodes, version, collnet=collnet)


def machine_of(topology: Topology, version: Version, cpu: Cpu | None = None) -> tuple[Machine, int]:
    """One NVLink domain and how many there are. Raises MeasurementError: GPUs without NVSwitches, or domains that differ."""
    domains = _domains(topology)
    servers: dict[int | None, list[Node]] = {}
    for node in topology.nodes:
        servers.setdefault(node.server, []).append(node)
    machines = {_machine(topology, version, cpu, domain, servers, alone=len(domains) == 1) for domain in domains}
    if len(machines) > 1:
        raise MeasurementError(f"{topology.name}: its NVLink domains differ; the closed form of NCCL's search takes equal ones")
    return machines.pop(), len(domains)


def _domains(topology: Topology) -> list[list[str]]:
    """GPUs that reach each other over NVSwitches."""
    fabric: nx.Graph[str] = nx.Graph()
    kinds = {node.name: node.kind for node in topology.nodes}
    fabric.add_nodes_from(topology.gpus)
    fabric.add_edges_from(
        (link.src, link.dst) for link in topology.links if link.kind in _SM and "nvswitch" in (kinds[link.src], kinds[link.dst])
    )
    found = [[gpu for gpu in part if kinds[gpu] == "gpu"] for part in nx.connected_components(fabric)]
    if any(len(domain) < 2 for domain in found if domain):
        raise MeasurementError(
            f"{topology.name}: not all of its GPUs share NVSwitches with others; NCCL's search has no closed form for it"
        )
    return [sorted(domain) for domain in found if domain]


def _machine(
    topology: Topology, version: Version, cpu: Cpu | None, gpus: list[str], servers: Mapping[int | None, list[Node]], *, alone: bool
) -> Machine:
    def links(names: Iterable[str]) -> list[Link]:
        return [data["link"] for name in names for data in topology.graph[name].values()]

    own = sorted({server for gpu in gpus if (server := topology.node(gpu).server) is not None})
    inside = [node for server in own for node in servers[server]]
    nics = [node.name for node in inside if node.kind == "nic"]
    cables = links(gpus)
    ports = [[link for link in links([gpu]) if link.kind in _SM] for gpu in gpus]
    sms = {_SM[link.kind] for port in ports for link in port}
    lanes = {sum(link.lanes for link in port) for port in ports}
    rates = {_nic_rate(links([nic])) for nic in nics}
    if len(sms) != 1 or len(lanes) != 1 or len(rates) > 1:
        raise MeasurementError(f"{topology.name}: GPUs or NICs of one node differ; the closed form of NCCL's search takes equal ones")
    sm = sms.pop()
    beside = Counter(link.dst for link in cables if link.kind in _PCIE_LANE)
    near = [max((beside[link.dst] for link in links([nic]) if link.kind in _PCIE_LANE), default=0) for nic in nics]
    grace = any(link.kind == _C2C for link in cables)
    switches = {link.dst for port in ports for link in port}
    return Machine(
        len(gpus), lanes.pop() * nvlink_rate(sm, version), 0 if alone else len(nics), 0.0 if alone else rates.pop() if rates else 0.0, sm,
        cpu or ("arm" if grace else _cpu(links(node.name for node in inside if node.kind == "cpu"))),
        shared=not alone and min(near, default=0) > 1, grace=grace,
        multicast=all(topology.node(switch).reduces for switch in switches),
    )  # fmt: skip


def _nic_rate(links: list[Link]) -> float:
    """The slower of a NIC's port and its PCIe slot, as NCCL counts them [B/s]."""
    slots = [_PCIE_LANE[link.kind] * link.lanes for link in links if link.kind in _PCIE_LANE]
    wires = [link.bandwidth for link in links if link.kind not in _PCIE_LANE]
    return min([*slots, sum(wires)] if wires else slots, default=0.0)


def _cpu(links: list[Link]) -> Cpu:
    """The vendor by the links between sockets; where there are none, Intel."""
    return "amd" if any(link.kind.startswith("xgmi-cpu") for link in links) else "intel"
