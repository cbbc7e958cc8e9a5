"""AMD's MI300X platform, one server or many.

8 GPUs, an Infinity Fabric link (xGMI) between every two: 7 a GPU, 64 GB/s each way, of which about 48 are reached (AMD's ROCm blog on
xGMI). An NCCL dump of such a server shows the rest: a GPU and a 400G InfiniBand NIC on each of 8 PCIe 5.0 switches, 4 a socket,
Sapphire Rapids. Rails of 64-port switches between servers are general knowledge.
"""

from __future__ import annotations

from topologies.graph import Topology
from topologies.registry import Count, topology
from topologies.server import Server, cluster

_MESH = tuple(tuple(int(a != b) for b in range(8)) for a in range(8))
_MI300X = Server("mi300x", "xgmi", "pcie5", "upi2", "ib-ndr", 64, boards=0, mesh=_MESH)


@topology
def mi300x(nodes: Count = 1, gpus: Count = 8) -> Topology:
    """MI300X platform: 8 GPUs in a full mesh of xGMI, 7 links of 64 GB/s each, 8 NDR NICs; rails of 64-port switches."""
    return cluster(_MI300X, nodes, gpus)
