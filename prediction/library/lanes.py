"""The channels of a communicator: which order of GPUs and which NICs each takes, equal ones together."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import reduce
from math import gcd

from prediction.nccl.graphs import Graph


@dataclass(frozen=True, slots=True)
class Lane:
    """Channels that do the same, so that they go side by side all the time: one with the rate of all of them does as well.

    ``channel``: the first of them; ``order``: local GPUs from the NIC that data comes in by to the one it leaves by; ``tree``: 0 or 1."""

    channel: int
    order: tuple[int, ...]
    nic_in: int
    nic_out: int
    tree: int


def lanes(graph: Graph, channels: int) -> list[Lane]:
    """Of channels 0 to ``channels`` - 1, so many lanes that each stands for as many channels. The search's channels come first, then
    as many copies of them, which take the second tree."""
    seen: Counter[tuple[tuple[int, ...], int, int, int]] = Counter()
    first: dict[object, int] = {}
    for channel in range(channels):
        c = channel % graph.channels
        tree = 0 if graph.pattern == "ring" else channel // graph.channels % 2
        key = (tuple(graph.orders[c]), *(graph.nics[c] if graph.nics else (0, 0)), tree)
        seen[key] += 1
        first.setdefault(key, c)
    unit = reduce(gcd, seen.values())
    return [Lane(first[key], *key) for key, count in seen.items() for _ in range(count // unit)]
