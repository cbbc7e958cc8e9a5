"""NVIDIA's DGX servers, one or many: GPUs, NVLink, PCIe tree, sockets, NICs, and rails of InfiniBand switches between servers.

Sources: NVIDIA's datasheets; NCCL's topology files and ``nvidia-smi topo -m`` of such machines for which GPU and NIC share a PCIe
switch (A100: Azure ND A100 v4; H100: Azure ND H100 v5). General knowledge: the NICs and sockets of DGX-1V and DGX-2, the PCIe tree
and the CPUs of DGX B200 (Xeon 8570). An H200 or a B200 system differs from H100 in memory or NVLink; DGX-2's 12 NVSwitches are
two boards of 6, one link of a GPU to each on its board and 8 trunks between opposite ones: 48 links, 1.2 TB/s, as much as 8 GPUs.
"""

from __future__ import annotations

from dataclasses import replace

from topologies.graph import Topology
from topologies.registry import Count, topology
from topologies.server import Server, cluster

HYBRID_CUBE_MESH = (
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

_DGX_1V = Server("dgx-1v", "nvlink2", "pcie3", "qpi", "ib-edr", 36, gpus_per_pcie=2, boards=0, mesh=HYBRID_CUBE_MESH)
_DGX_2 = Server("dgx-2", "nvlink2", "pcie3", "upi", "ib-edr", 36, gpus_per_pcie=2, gpus=16, boards=2, trunk=48)
DGX_A100 = Server("dgx-a100", "nvlink3", "pcie4", "xgmi-cpu", "ib-hdr", 40, gpus_per_pcie=2, nics_per_pcie=2)
DGX_H100 = Server("dgx-h100", "nvlink4", "pcie5", "upi2", "ib-ndr", 64, multicast=True)
_DGX_H200 = replace(DGX_H100, name="dgx-h200")
_DGX_B200 = Server("dgx-b200", "nvlink5", "pcie5", "upi2-20", "ib-ndr", 64, multicast=True)


@topology
def dgx_1v(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX-1V: 8 V100 in a hybrid cube mesh of NVLink 2, 4 EDR NICs; rails of 36-port switches (SB7800)."""
    return cluster(_DGX_1V, nodes, gpus)


@topology
def dgx_2(nodes: Count = 1, gpus: Count = 16) -> Topology:
    """DGX-2: 16 V100 with 6 NVLink 2 each on two boards of 6 NVSwitches, 48 trunks between them, 8 EDR NICs; 36-port switches."""
    return cluster(_DGX_2, nodes, gpus)


@topology
def dgx_a100(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX A100: 8 A100 on NVSwitch with 12 NVLink 3 each, 8 HDR NICs; rails of 40-port switches (QM8700)."""
    return cluster(DGX_A100, nodes, gpus)


@topology
def dgx_h100(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX H100: 8 H100 on NVSwitch with 18 NVLink 4 each (NVLink SHARP), 8 NDR NICs; rails of 64-port switches (QM9700)."""
    return cluster(DGX_H100, nodes, gpus)


@topology
def dgx_h200(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX H200: a DGX H100 with more and faster memory; every link is the same."""
    return cluster(_DGX_H200, nodes, gpus)


@topology
def dgx_b200(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """DGX B200: 8 B200 on NVSwitch with 18 NVLink 5 each (NVLink SHARP), 8 NDR NICs; rails of 64-port switches (QM9700)."""
    return cluster(_DGX_B200, nodes, gpus)
