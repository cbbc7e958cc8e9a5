"""Google's TPU v4: chips in a 3D torus of optically joined cubes.

Google's documentation: 4,096 chips, 6 links of 50 GB/s a chip; a dimension wraps around only if it is a multiple of 4, since only
whole cubes of 4 x 4 x 4 reach the optical switches. Half of 16 x 16 x 16 is joined to the other by 512 links (Lockwood gives
24 TB/s). General knowledge: 4 chips (2 x 2 x 1) a host. The latency is assumed; twisted tori are not here.
"""

from __future__ import annotations

import itertools
import math

from topologies.errors import TopologyError
from topologies.graph import Node, Topology
from topologies.links import link_of
from topologies.registry import Dims, topology
from topologies.torus import grid


@topology
def tpu_v4(dims: Dims = (4, 4, 4)) -> Topology:
    """TPU v4 slice: chips on a 3D grid of links of 50 GB/s, which wraps around in dimensions that are multiples of 4.

    Rank is the row-major position; ``servers`` are the hosts of 2 x 2 x 1 chips.
    """
    shape = "x".join(map(str, dims))
    if len(dims) != 3 or math.prod(dims) > 4096:
        raise TopologyError(f"tpu-v4: dims = {shape}; a slice has three dimensions and at most 4096 chips, as 4x4x8 or 16x16x16")
    hosts: dict[tuple[int, int, int], list[int]] = {}
    for rank, (x, y, z) in enumerate(itertools.product(*map(range, dims))):
        hosts.setdefault((x // 2, y // 2, z), []).append(rank)
    host_of = {rank: host for host, ranks in enumerate(hosts.values()) for rank in ranks}
    nodes = [Node(f"gpu{rank}", "gpu", host_of[rank]) for rank in range(math.prod(dims))]
    links = [link_of("tpu-ici", f"gpu{a}", f"gpu{b}") for a, b in grid(dims, [size % 4 == 0 for size in dims])]
    servers = tuple(tuple(ranks) for ranks in hosts.values())
    return Topology.build(f"tpu-v4-{shape}", nodes, links, {"servers": servers}, tuple(dims))
