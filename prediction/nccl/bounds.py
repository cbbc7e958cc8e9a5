"""How many channels fit at most, by what they must take at narrow places: searches that could not find more need not be run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prediction.nccl.paths import Paths

Charges = tuple[tuple[int, int], ...]
"""Edges by number and what a hop takes of each [MB/s]."""
Hops = Sequence[Sequence[Charges | None]]
"""``[a][b]`` from GPU to GPU; None: not possible."""
_ANY = 1 << 20


def most_channels(paths: Paths, hops: Hops, at_nics: int, *, closed: bool) -> int:
    """By the ports of the NICs, by the first and the last edges of a GPU's hops, by the links between sockets. ``closed``: a channel
    returns to its first GPU, so each GPU sends; else all but the last do."""
    limits = [at_nics] if paths.system.nets else []
    count = len(hops)
    if count > 1:
        for outward in (True, False):
            ends = [_ends(paths, hops, gpu, outward=outward) for gpu in range(count)]
            limits.append(min(ends) if closed else sum(ends) // (count - 1))
        limits += [_across(paths, hops, cpu, closed=closed) for cpu in paths.system.of("cpu")]
    return min(limits, default=_ANY)


def _ends(paths: Paths, hops: Hops, gpu: int, *, outward: bool) -> int:
    """Hops that a GPU's own edges carry away from it, or to it."""
    gpus = paths.system.gpus
    used = []
    for other in range(len(hops)):
        a, b = (gpu, other) if outward else (other, gpu)
        if charges := hops[a][b]:
            own = paths.table[gpus[a]][gpus[b]].edges[0 if outward else -1]
            used.append((own, dict(charges)[own]))
    return _fit(paths, used)


def _across(paths: Paths, hops: Hops, cpu: int, *, closed: bool) -> int:
    """Channels that the links of a socket carry, where its GPUs and the others meet only there; a closed one crosses both ways."""
    system = paths.system
    here = [i for i, gpu in enumerate(system.gpus) if paths.cpu_of(gpu) == cpu]
    there = [i for i in range(len(hops)) if i not in here]
    counts = []
    for outward in (True, False) if here and there else ():
        used = []
        for a in here:
            for b in there:
                charges = hops[a][b] if outward else hops[b][a]
                crossing = [(e, amount) for e, amount in charges or () if system.edges[e].medium == "cpu"]
                if charges and not crossing:
                    return _ANY
                used += [(e, amount) for e, amount in crossing if cpu in (system.edges[e].src, system.edges[e].dst)]
        counts.append(_fit(paths, used))
    return _ANY if not counts else min(counts) if closed else sum(counts)


def _fit(paths: Paths, used: Iterable[tuple[int, int]]) -> int:
    """How often edges can be taken, at the least that any hop takes of each."""
    least: dict[int, int] = {}
    for edge, amount in used:
        least[edge] = min(amount, least.get(edge, amount))
    return sum(paths.system.edges[edge].rate // max(amount, 1) for edge, amount in least.items())
