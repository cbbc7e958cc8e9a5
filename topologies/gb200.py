"""NVIDIA's GB200 NVL72: racks in which 72 GPUs are one NVLink domain.

NVIDIA's DGX SuperPOD GB200 reference architecture: 18 trays of 4 GPUs and 2 Graces; every GPU has one NVLink 5 to each of 18 switch
chips in 9 trays, seen here as one switch, 900 GB/s a GPU. General knowledge: 4 x 400G a tray, 5 of the 10 NVLink-C2C links of a Grace
for each of its two GPUs, the link between Graces (taken from the GH200 quad), PCIe 5.0 for NICs, a leaf for every rail of a rack and
a non-blocking spine of 64-port switches.
"""

from __future__ import annotations

from topologies.errors import TopologyError
from topologies.fabric import blocks, infiniband, rail_groups
from topologies.grace import grace_node
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import link_of
from topologies.registry import Count, topology

_RAILS, _PORTS = 4, 64


@topology
def gb200_nvl72(racks: Count = 1, gpus: Count = 72) -> Topology:
    """GB200 NVL72: racks of 72 GPUs on one NVSwitch fabric with 18 NVLink 5 each (NVLink SHARP); 4 NDR NICs a tray, rails, spine.

    ``gpus`` of a rack below 72 takes its first trays (a multiple of 4), or 2 or 3 of one.
    """
    if gpus > 72 or (gpus > 4 and gpus % 4):
        raise TopologyError(f"gb200-nvl72: gpus = {gpus} a rack; write 2, 3, or a multiple of 4 up to 72")
    if racks > _PORTS // _RAILS:
        raise TopologyError(f"gb200-nvl72: racks = {racks}; two tiers of {_PORTS}-port switches take racks = 1 to {_PORTS // _RAILS}")
    per_tray, trays = min(gpus, 4), -(-gpus // 4)
    nodes: list[Node] = []
    links: list[Link] = []
    for s in range(racks * trays):
        prefix, rack = f"s{s}." if racks * trays > 1 else "", f"rack{s // trays}." if racks > 1 else ""
        parts, cables = grace_node(prefix, s, per_tray, 2, 5, "pcie5")
        nodes += [*parts, *([Node(f"{rack}nvswitch", "nvswitch", reduces=True)] if s % trays == 0 else [])]
        links += [way for g in range(per_tray) for way in both_ways(link_of("nvlink5", f"{prefix}gpu{g}", f"{rack}nvswitch"))] + cables
    groups = rail_groups(racks * trays, per_tray, per_tray, trays) | dict.fromkeys(("racks", "domains"), blocks(racks * gpus, gpus))
    name = f"gb200-nvl72-{racks}x{gpus}"
    if racks == 1:
        return Topology.build(name, nodes, links, {key: groups[key] for key in ("servers", "racks", "domains")})
    nics = [[f"s{s}.nic{g}" for g in range(per_tray)] for s in range(racks * trays)]
    switches, cables = infiniband("gb200-nvl72", nics, "ib-ndr", _PORTS, unit=trays)
    return Topology.build(name, nodes + switches, links + cables, groups)
