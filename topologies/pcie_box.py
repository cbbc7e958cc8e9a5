"""Servers and workstations whose GPUs are PCIe cards: no NVLink at all, or bridges between pairs.

All from general knowledge (typical boards), but for the rates: PCIe x16 after encoding; RTX A6000 bridge 4 x 14.06 GB/s; A100 and
H100 PCIe 3 bridges, 300 GB/s. NICs, switches and socket links are those usual with the PCIe generation: EDR and Skylake, HDR and
Ice Lake, NDR and Sapphire Rapids, XDR and Granite Rapids.
"""

from __future__ import annotations

from topologies.errors import TopologyError
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import link_of
from topologies.registry import Count, topology
from topologies.server import Server, cluster

_HOSTS = {3: ("upi", "ib-edr", 36), 4: ("upi-ice", "ib-hdr", 40), 5: ("upi2", "ib-ndr", 64), 6: ("upi2-24", "ib-xdr", 144)}


@topology
def hgx_pcie(nodes: Count = 1, gpus: Count = 8, generation: Count = 4) -> Topology:
    """Server of 8 PCIe cards without NVLink (as 8 x L40S): 2 sockets x 2 PCIe switches x (2 GPUs and a NIC); generation 3 to 6."""
    if generation not in _HOSTS:
        raise TopologyError(f"hgx-pcie: generation = {generation} of PCIe; write 3, 4, 5 or 6")
    sockets, nic, ports = _HOSTS[generation]
    pcie = f"pcie{generation}"
    return cluster(Server(f"hgx-pcie-gen{generation}", "", pcie, sockets, nic, ports, gpus_per_pcie=2, boards=0), nodes, gpus)


@topology
def nvlink_bridge(gpus: Count = 2) -> Topology:
    """RTX A6000 cards with an NVLink bridge on every pair (56 GB/s) and PCIe 4.0 to the CPU, 4 cards a socket."""
    return _pairs("nvlink-bridge", gpus, "nvlink-bridge", "pcie4", "upi-ice")


@topology
def nvlink_bridge_a100(gpus: Count = 2) -> Topology:
    """A100 PCIe cards with three NVLink bridges on every pair (300 GB/s) and PCIe 4.0 to the CPU, 4 cards a socket."""
    return _pairs("nvlink-bridge-a100", gpus, "nvlink3", "pcie4", "upi-ice")


@topology
def nvlink_bridge_h100(gpus: Count = 2) -> Topology:
    """H100 PCIe cards with three NVLink bridges on every pair (300 GB/s) and PCIe 5.0 to the CPU, 4 cards a socket."""
    return _pairs("nvlink-bridge-h100", gpus, "nvlink4", "pcie5", "upi2", 12)


def _pairs(name: str, gpus: int, bridge: str, pcie: str, sockets: str, lanes: int | None = None) -> Topology:
    if gpus > 8:
        raise TopologyError(f"{name}: gpus = {gpus}; a box has slots for 2 to 8")
    cpus = -(-gpus // 4)
    nodes = [Node(f"gpu{g}", "gpu", 0) for g in range(gpus)] + [Node(f"cpu{c}", "cpu", 0) for c in range(cpus)]
    cables: list[Link] = [link_of(bridge, f"gpu{g}", f"gpu{g + 1}", lanes) for g in range(0, gpus - 1, 2)]
    cables += [link_of(pcie, f"gpu{g}", f"cpu{g // 4}") for g in range(gpus)]
    cables += [link_of(sockets, "cpu0", "cpu1")] if cpus == 2 else []
    links = [way for cable in cables for way in both_ways(cable)]
    return Topology.build(f"{name}-{gpus}", nodes, links, {"servers": (tuple(range(gpus)),)})
