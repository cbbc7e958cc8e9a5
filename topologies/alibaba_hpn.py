"""Alibaba's HPN: every NIC has two ports to two top-of-rack switches in two planes that never meet.

SimAI's generator and notes on the paper: a segment has 128 hosts of 8 GPUs, 8 rails, 16 ToR switches of 128 x 200G down and 60 x 400G
up (1.067:1); a pod 15 segments, 240 ToR, 120 aggregation switches, 60 a plane, each ToR to all of its plane. Fewer hosts: uplinks
and aggregation switches in proportion, so that a cable stays near 400G. General knowledge: a server as DGX H100. The core (15:1) is
not here. A message takes one port, as one RDMA connection does: destinations alternate between the planes.
"""

from __future__ import annotations

from dataclasses import replace

from topologies.dgx import DGX_H100
from topologies.errors import TopologyError
from topologies.fabric import blocks, rail_groups
from topologies.graph import Node, Topology, both_ways
from topologies.links import link_of
from topologies.registry import Count, topology
from topologies.server import servers

_SERVER = replace(DGX_H100, name="alibaba-hpn", nic="roce-200")
_HOSTS, _UPLINKS, _SEGMENTS = 128, 60, 15


@topology
def alibaba_hpn(segments: Count = 2, hosts: Count = 8) -> Topology:
    """Alibaba HPN pod: segments of ``hosts`` servers of 8 H100, NICs of 2 x 200G to a ToR switch in each of two planes.

    Full size is 15 segments of 128 hosts: 15,360 GPUs.
    """
    if segments > _SEGMENTS or hosts > _HOSTS:
        raise TopologyError(f"alibaba-hpn: segments = {segments}, hosts = {hosts}; a pod takes segments = 1 to 15 of hosts = 1 to 128")
    nodes = segments * hosts
    parts, links, nics = servers(_SERVER, nodes, 8)
    tors = {(s, r, plane): f"seg{s}.rail{r}.tor{plane}" for s in range(segments) for r in range(8) for plane in range(2)}
    aggs = -(-_UPLINKS * hosts // _HOSTS)
    # The order of a NIC's ports decides which plane messages to it take.
    cables = [
        link_of("roce-200", nic, tors[s // hosts, rail, (s + rail + port) % 2])
        for s, row in enumerate(nics)
        for rail, nic in enumerate(row)
        for port in range(2)
    ]
    uplink = link_of("roce-400", "", "")
    rate = uplink.bandwidth * _UPLINKS * hosts / _HOSTS / aggs
    planes = [[f"plane{plane}.agg{i}" for i in range(aggs)] for plane in range(2)]
    cables += [replace(uplink, src=tor, dst=agg, bandwidth=rate) for (_, _, plane), tor in tors.items() for agg in planes[plane]]
    links += [way for cable in cables for way in both_ways(cable)]
    groups = rail_groups(nodes, 8, 8, hosts) | {"segments": blocks(nodes * 8, hosts * 8)}
    switches = [*tors.values(), *planes[0], *planes[1]]
    return Topology.build(f"alibaba-hpn-{segments}x{hosts}", parts + [Node(name, "switch") for name in switches], links, groups)
