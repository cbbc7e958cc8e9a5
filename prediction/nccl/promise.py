"""The order in which the search tries the next GPU of a channel, most promising first (``src/graph/search.cc``)."""

from __future__ import annotations

from collections.abc import Sequence

from prediction.nccl.graphs import Pattern
from prediction.nccl.paths import Paths, Way


def next_gpus(paths: Paths, pattern: Pattern, gpu: int, used: int, sort: int, net: int) -> list[int]:
    """GPUs after ``gpu``, by local index, without those in the bits of ``used``: by wide and short paths. ``sort``: 1 the next one
    leaves by NIC ``net``, so near that first; -1 a later one does; 0 none."""
    gpus, table = paths.system.gpus, paths.table
    count = len(gpus)
    ways: dict[int, Way] = {}
    for i in range(1, count):
        other = (gpu + i) % count
        if not used >> other & 1 and (way := table[gpus[gpu]][gpus[other]]).edges:
            ways[other] = way
    inside = {other: (-(way.rate // 1000), len(way.edges)) for other, way in ways.items()}

    def promise(other: int) -> tuple[int, ...]:
        if not sort:
            return inside[other]
        out = table[net][gpus[other]]
        return (-(out.rate // 1000), -_slot(paths, gpus[other]), len(out.edges), *inside[other])

    nexts = sorted(ways, key=promise)
    if sort == -1 and len(set(inside.values())) == 1:
        nexts.reverse()  # keep those near the NIC for the end
    return _neighbours(nexts, gpu, count, pattern) if paths.system.switched else nexts


def _slot(paths: Paths, gpu: int) -> int:
    """Rate of a GPU's PCIe link [GB/s, whole]; -1: none."""
    system = paths.system
    slots = [min(system.edges[e].rate, system.edges[system.back[e]].rate) for e in system.out[gpu] if system.edges[e].medium == "pcie"]
    return slots[0] // 1000 if slots else -1


def _neighbours(nexts: Sequence[int], gpu: int, count: int, pattern: Pattern) -> list[int]:
    """Behind NVSwitches only the GPUs before and after are tried."""
    after, before = (gpu + 1) % count, (gpu - 1) % count
    first = [before, after] if pattern == "ring" else [after, before] if pattern in ("split-tree", "balanced-tree") else [after]
    return [other for other in dict.fromkeys(first) if other in nexts]
