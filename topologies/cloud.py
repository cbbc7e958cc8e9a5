"""Servers that AWS, Azure and Google rent out, one or many.

AWS p4d: NCCL's file for it: 2 GPUs and EFA NIC i on a PCIe 3.0 switch (as declared), 2 switches a socket. AWS p5: aws-ofi-nccl's
file: a GPU on PCIe 5.0 and 4 EFA on PCIe 4.0 x8 on a switch with a 4.0 uplink. Its 32 EFA are 8 NIC nodes of 4 lanes here, since
the plugin stripes a message over the 4 NICs of a GPU; the two sockets of that server are general knowledge. Azure ND v4 and v5:
azhpc's files: DGX A100 with 4 NUMA nodes (GPUs 0 and 1 at number 1, then 0, 3, 2) and DGX H100, rails of a non-blocking fat tree.
Google A3 High and Mega: general knowledge: 4 and 8 NICs of 200G. AWS and Google do not publish their networks: one switch here.
"""

from __future__ import annotations

from dataclasses import replace

from topologies.dgx import DGX_A100, DGX_H100
from topologies.graph import Topology
from topologies.registry import Count, topology
from topologies.server import Server, cluster

_P4D = Server("aws-p4d", "nvlink3", "pcie3", "upi", "efa-100", 0, gpus_per_pcie=2)
_P5 = replace(
    DGX_H100, name="aws-p5", sockets="xgmi-cpu-genoa", nic="efa-100", ports=0, nic_lanes=4, nic_pcie=("pcie4", 32), uplink="pcie4"
)
_NDV4 = replace(DGX_A100, name="azure-ndv4", numa=(1, 0, 3, 2))
_NDV5 = replace(DGX_H100, name="azure-ndv5")
_A3 = replace(DGX_H100, name="gcp-a3", nic="gvnic-200", ports=0, gpus_per_pcie=2)
_A3_MEGA = replace(_A3, name="gcp-a3-mega", nics_per_pcie=2)


@topology
def aws_p4d(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """AWS p4d: 8 A100 on NVSwitch; 4 x 100G EFA, NIC i on a PCIe switch with GPUs 2i and 2i+1; one switch for the network."""
    return cluster(_P4D, nodes, gpus)


@topology
def aws_p5(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """AWS p5: 8 H100 on NVSwitch; 32 x 100G EFA, 4 a GPU, striped and so one NIC of 4 lanes; one switch for the network."""
    return cluster(_P5, nodes, gpus)


@topology
def azure_ndv4(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """Azure ND A100 v4: 8 A100 on NVSwitch, 4 NUMA nodes of 2 GPUs and 2 HDR NICs; rails of 40-port switches."""
    return cluster(_NDV4, nodes, gpus)


@topology
def azure_ndv5(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """Azure ND H100 v5: 8 H100 on NVSwitch, an NDR NIC on the PCIe switch of each; rails of 64-port switches."""
    return cluster(_NDV5, nodes, gpus)


@topology
def gcp_a3(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """Google A3 High: 8 H100 on NVSwitch, 4 x 200G (GPUDirect-TCPX), a NIC for two GPUs; one switch for the network."""
    return cluster(_A3, nodes, gpus)


@topology
def gcp_a3_mega(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """Google A3 Mega: 8 H100 on NVSwitch, 8 x 200G (GPUDirect-TCPXO), a NIC a GPU; one switch for the network."""
    return cluster(_A3_MEGA, nodes, gpus)
