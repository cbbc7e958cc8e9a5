"""Which ranks a topology can exchange without changing: what is true of one of them is true of all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from topologies.graph import Topology


@dataclass(frozen=True, slots=True)
class Symmetry:
    """Of each rank: ``first`` is the first rank that is like it, ``unit`` the server (or single GPU) that it is in."""

    first: tuple[int, ...]
    unit: tuple[int, ...]

    @staticmethod
    def none(nranks: int) -> Symmetry:
        """Every rank is like itself alone."""
        return Symmetry(tuple(range(nranks)), tuple(range(nranks)))

    @property
    def kinds(self) -> list[int]:
        """The first rank of each kind, in order."""
        return [rank for rank, first in enumerate(self.first) if rank == first]

    def like(self, group: Sequence[int]) -> tuple[int, ...]:
        """Equal for two groups of ranks that can be exchanged."""
        if len({self.unit[rank] for rank in group}) > 1:
            return (-1, *group)  # only whole units are exchanged, one for one
        return tuple(sorted(self.first[rank] for rank in group))


def symmetry(topology: Topology, ranks: Sequence[str], fixed: frozenset[str]) -> Symmetry:
    """Exact, not complete: two units are alike when their nodes, in order, have the same limits, the same links inside and the
    same links to the same nodes outside; then there is none between them, and exchanging them node by node changes nothing.
    ``ranks``: the GPUs that are told apart from others; ``fixed``: GPUs that stay where they are."""
    nodes = {node.name: node for node in topology.nodes}
    units: dict[str | int, list[str]] = {}
    for node in nodes.values():
        units.setdefault(node.name if node.server is None else node.server, []).append(node.name)
    place = {name: (key, i) for key, names in units.items() for i, name in enumerate(names)}
    kinds: dict[tuple[object, ...], int] = {}  # of cables as their end sees them: few differ, and numbers are small
    cables: dict[str, list[int]] = {name: [] for name in topology.graph}
    for link in topology.links:
        (src, i), (dst, j) = place[link.src], place[link.dst]
        there, here = (j, i) if src == dst else (link.dst, link.src)
        cables[link.src].append(kinds.setdefault((True, there, link.bandwidth, link.latency), len(kinds)))
        cables[link.dst].append(kinds.setdefault((False, here, link.bandwidth, link.latency), len(kinds)))
    chosen = set(ranks)

    def form(name: str) -> tuple[object, ...]:
        node = nodes[name]
        return name in chosen, name if name in fixed else "", node.injection, node.ejection, tuple(sorted(cables.pop(name)))

    forms: dict[object, str | int] = {}
    like = {key: forms.setdefault(tuple(form(name) for name in names), key) for key, names in units.items()}
    number = {key: i for i, key in enumerate(units)}
    seen: dict[object, int] = {}
    first = tuple(seen.setdefault((like[place[name][0]], place[name][1]), rank) for rank, name in enumerate(ranks))
    return Symmetry(first, tuple(number[place[name][0]] for name in ranks))
