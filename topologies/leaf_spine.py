"""Two tiers of switches: leaves with GPUs or NICs below, every leaf cabled to every spine."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from topologies.graph import Link, Node, Topology, both_ways
from topologies.registry import Bandwidth, Count, Ratio, Seconds, check_size, topology


def spine_links(leaves: Sequence[str], spines: Sequence[str], bandwidth: float, latency: float) -> Iterable[Link]:
    """A full-duplex cable of ``bandwidth`` [B/s] and ``latency`` [s] from every leaf to every spine."""
    for leaf in leaves:
        for spine in spines:
            yield from both_ways(Link(leaf, spine, "link", 1, bandwidth, latency))


@topology
def leaf_spine(
    gpus_per_leaf: Count = 8,
    leaves: Count = 4,
    spines: Count = 4,
    oversubscription: Ratio = 1.0,
    bandwidth: Bandwidth = 50e9,
    latency: Seconds = 1e-6,
) -> Topology:
    """Leaf and spine switches; ``oversubscription`` 2 gives a leaf half as much bandwidth up as down.

    ``bandwidth`` [B/s] is that of a GPU's cable; a leaf's uplinks share ``gpus_per_leaf * bandwidth / oversubscription`` evenly.
    """
    check_size("leaf-spine", "gpus_per_leaf", gpus_per_leaf, lambda n: 3 * n)
    check_size("leaf-spine", "spines", spines, lambda n: 3 * n)
    check_size("leaf-spine", "leaves", leaves, lambda n: n * (1 + 3 * gpus_per_leaf + 2 * spines) + spines)
    ranks = [tuple(range(leaf * gpus_per_leaf, (leaf + 1) * gpus_per_leaf)) for leaf in range(leaves)]
    names, tops = [f"leaf{i}" for i in range(leaves)], [f"spine{i}" for i in range(spines)]
    nodes = [Node(f"gpu{rank}", "gpu") for below in ranks for rank in below]
    nodes += [Node(name, "switch", reduces=True) for name in names + tops]
    links = [
        way
        for leaf, below in zip(names, ranks, strict=True)
        for rank in below
        for way in both_ways(Link(f"gpu{rank}", leaf, "link", 1, bandwidth, latency))
    ]
    links += spine_links(names, tops, gpus_per_leaf * bandwidth / oversubscription / spines, latency)
    return Topology.build(f"leaf-spine-{leaves}x{gpus_per_leaf}", nodes, links, {"leaves": tuple(ranks)})
