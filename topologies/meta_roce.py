"""Meta's 24,576-GPU RoCE cluster, scaled down by its parameters.

8 pods of 192 racks, a top-of-rack switch for 2 servers of 8 H100 with 8 x 400G; uplinks of twice that (under-subscribed 1:2), a pod
non-blocking, 7:1 between a pod and the aggregation layer (G. Lockwood; notes on Meta's paper). Our reading: 7:1 is of the bandwidth
of a pod's NICs. General knowledge: 8 cluster switches a pod, the PCIe tree of the server as a DGX H100's. Deep-buffer cluster
switches are reported to add 22 us on a way through a pod, which is not in the link latencies here.
"""

from __future__ import annotations

from dataclasses import replace

from topologies.dgx import DGX_H100
from topologies.fabric import blocks
from topologies.graph import Node, Topology, both_ways
from topologies.links import link_of
from topologies.registry import Count, check_size, topology
from topologies.server import servers

_SERVER = replace(DGX_H100, name="meta-roce", nic="roce-400")
_PER_RACK, _SPINES = 2, 8


@topology
def meta_roce(pods: Count = 2, racks: Count = 4) -> Topology:
    """Meta's RoCE cluster: ``racks`` a pod of 2 servers of 8 H100; ToR uplinks twice its downlinks, pods joined 7:1.

    The aggregation layer is one switch, since it is non-blocking in itself. The real one has 8 pods of 192 racks.
    """
    check_size("meta-roce", "racks", racks, lambda n: n * 210)
    check_size("meta-roce", "pods", pods, lambda n: n * racks * 210)
    nodes = pods * racks * _PER_RACK
    parts, links, nics = servers(_SERVER, nodes, 8)
    tors = [f"pod{p}.tor{r}" for p in range(pods) for r in range(racks)]
    spines = [[f"pod{p}.spine{i}" for i in range(_SPINES)] for p in range(pods)]
    cables = [link_of("roce-400", nic, tors[s // _PER_RACK]) for s, row in enumerate(nics) for nic in row]
    up = 2 * _PER_RACK * 8 // _SPINES
    cables += [link_of("roce-400", tor, spine, up) for t, tor in enumerate(tors) for spine in spines[t // racks]]
    share = racks * _PER_RACK * 8 * link_of("roce-400", "", "").bandwidth / 7 / _SPINES
    if pods > 1:
        cables += [replace(link_of("roce-400", spine, "aggregation"), bandwidth=share) for row in spines for spine in row]
    links += [way for cable in cables for way in both_ways(cable)]
    switches = [*tors, *(spine for row in spines for spine in row), *(["aggregation"] if pods > 1 else [])]
    ranks = nodes * 8
    groups = {"servers": blocks(ranks, 8), "leaves": blocks(ranks, 8 * _PER_RACK), "pods": blocks(ranks, 8 * _PER_RACK * racks)}
    groups["rails"] = tuple(tuple(range(g, ranks, 8)) for g in range(8))
    return Topology.build(f"meta-roce-{pods}x{racks}", parts + [Node(name, "switch") for name in switches], links, groups)
