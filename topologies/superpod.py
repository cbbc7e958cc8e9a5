"""NVIDIA's DGX SuperPOD of H100: scalable units of 32 servers, 8 leaf switches a unit, spines above all.

NVIDIA's reference architecture: QM9700 switches of 64 x 400G, a leaf 32 down and 32 up, non-blocking. 1, 2, 3 and 4 units have 31, 63,
95 and 127 servers (one slot is the fabric manager's; its 4 cables are not here), 8, 16, 24 and 32 leaves, 4, 8, 16 and 16 spines; 8 units
64 and 32 (from the reference architecture of B200). More units have a third tier of switches, which is not here.
"""

from __future__ import annotations

from topologies.dgx import DGX_H100
from topologies.errors import TopologyError
from topologies.fabric import blocks, infiniband, rail_groups
from topologies.graph import Topology
from topologies.registry import Count, topology
from topologies.server import servers

_UNIT = 32


@topology
def superpod_h100(nodes: Count | None = None, gpus: Count = 8, units: Count | None = None) -> Topology:
    """DGX SuperPOD H100: scalable units of 32 DGX H100 on 8 rails, leaf and spine switches of 64 ports, non-blocking.

    ``nodes`` servers fill the ``units`` in order; all switches of a unit are there. Without ``nodes`` the units are full (32 a unit
    less one); without ``units`` they are as few as hold the servers; without both, half a unit: 16 servers, 128 GPUs.
    """
    nodes = nodes or (_UNIT * units - 1 if units else 16)
    units = units or nodes // _UNIT + 1
    if units > 8 or nodes >= _UNIT * units:
        rule = f"write units = 1 to 8, nodes = 2 to {_UNIT * min(units, 8) - 1}" if units > 8 else f"at most nodes = {_UNIT * units - 1}"
        raise TopologyError(f"superpod-h100: nodes = {nodes}, units = {units}; a unit takes 32, one less in all: {rule}")
    if gpus > 8:
        raise TopologyError(f"superpod-h100: gpus = {gpus} per server; it has 8: write 1 to 8")
    parts, links, nics = servers(DGX_H100, nodes, gpus)
    switches, cables = infiniband("superpod-h100", nics, DGX_H100.nic, DGX_H100.ports, units=units)
    groups = rail_groups(nodes, gpus, gpus, _UNIT) | {"units": blocks(nodes * gpus, _UNIT * gpus)}
    return Topology.build(f"superpod-h100-{units}su-{nodes}x{gpus}", parts + switches, links + cables, groups)
