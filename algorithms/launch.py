"""Where and when a schedule runs (``Placement``, ``Launch``) and what happened to it (``Trace``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from algorithms.schedule import Schedule
from algorithms.steps import Stream, in_blocks
from topologies.errors import ScheduleError, nearest
from topologies.graph import Topology
from topologies.routing import Router

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

DTYPE_BYTES = {
    "int8": 1, "uint8": 1, "float16": 2, "bfloat16": 2, "int32": 4, "uint32": 4, "float32": 4, "int64": 8, "uint64": 8, "float64": 8,
}  # fmt: skip
"""Bytes of one element."""


def dtype_bytes(name: str) -> int:
    """Element size of a dtype; ScheduleError names the nearest known one."""
    if name not in DTYPE_BYTES:
        raise ScheduleError(f'dtype "{name}" is not known{nearest(name, DTYPE_BYTES)}')
    return DTYPE_BYTES[name]


@dataclass(frozen=True, slots=True)
class Placement:
    """``nodes[p]`` is the graph node of place p: ranks on GPUs, aggregators on switches that reduce."""

    nodes: tuple[str, ...]

    @staticmethod
    def of(topology: Topology, schedule: Schedule | Stream, ranks: Sequence[int] | None = None) -> Placement:
        """Rank i on GPU ``ranks[i]`` (default: GPU i). Each aggregator goes to the reducing switch with the least sum of hops
        to the places it exchanges data with; among equals an unused one, then the first of the graph.

        Raises ScheduleError when a GPU is missing or taken twice, no switch can reduce, or switches meet only through a GPU."""
        chosen = list(range(schedule.nranks)) if ranks is None else list(ranks)
        if len(chosen) != schedule.nranks:
            raise ScheduleError(f"{schedule.name}: {len(chosen)} GPUs given for {schedule.nranks} ranks")
        for gpu in chosen:
            if not 0 <= gpu < len(topology.gpus):
                raise ScheduleError(f"{schedule.name}: {topology.name} has no GPU {gpu}; it has GPUs 0..{len(topology.gpus) - 1}")
        if len(set(chosen)) != len(chosen):
            raise ScheduleError(f"{schedule.name}: two ranks share a GPU; every rank needs one of its own")
        nodes = [topology.gpus[g] for g in chosen]
        for place in range(schedule.nranks, schedule.places):
            nodes.append(_aggregator_node(topology, schedule, place, nodes))
        if schedule.in_network:
            _check_ways(topology, schedule, nodes)
        return Placement(tuple(nodes))


def _aggregator_node(topology: Topology, schedule: Schedule | Stream, place: int, nodes: list[str]) -> str:
    candidates = [node.name for node in topology.nodes if node.reduces]
    if not candidates:
        raise ScheduleError(f"{schedule.name}: needs a switch that reduces; {topology.name} has none")
    peers: set[int] = set()
    for block in in_blocks(schedule):
        peers.update(block.src[block.dst == place].tolist(), block.dst[block.src == place].tolist())
    placed = [nodes[p] for p in sorted(peers) if p < len(nodes)]
    router = Router(topology)

    def cost(name: str) -> tuple[int, bool]:
        return sum(len(router.route(peer, name)) for peer in placed), name in nodes

    return min(candidates, key=cost)


def _check_ways(topology: Topology, schedule: Schedule | Stream, nodes: list[str]) -> None:
    """What a switch sends or reduces does not travel through other GPUs."""
    pairs: set[tuple[int, int]] = set()
    for block in in_blocks(schedule):
        inside = (block.src >= schedule.nranks) | (block.dst >= schedule.nranks)
        pairs.update(zip(block.src[inside].tolist(), block.dst[inside].tolist(), strict=True))
    router = Router(topology)
    for a, b in sorted(pairs):
        for link in router.route(nodes[a], nodes[b])[:-1]:
            if topology.node(link.dst).kind == "gpu":
                raise ScheduleError(
                    f"{schedule.name}: {topology.name}: needs switches joined by switches; from {nodes[a]} to {nodes[b]} all ways pass "
                    f"a GPU, such as {link.dst}: take a network with spines"
                )


@dataclass(frozen=True, slots=True)
class Launch:
    """A schedule on ``nbytes`` (the full vector on a rank), or, with ``schedule`` None, ``duration`` [s] of compute; starts
    ``start`` [s] after time 0 and after the launches whose indices are in ``after`` are done."""

    schedule: Schedule | Stream | None
    nbytes: int = 0
    placement: Placement | None = None
    dtype: str = "float32"
    after: tuple[int, ...] = ()
    start: float = 0.0
    duration: float = 0.0

    def __post_init__(self) -> None:
        for what, seconds in (("start", self.start), ("duration", self.duration)):
            if not (seconds >= 0 and math.isfinite(seconds)):
                raise ScheduleError(f"launch: {what} {seconds} s must be zero or positive, and finite")

    @property
    def whole(self) -> Schedule:
        """The schedule with all its sends at once. ScheduleError for compute, and for more sends than fit."""
        if self.schedule is None:
            raise ScheduleError("launch: compute has no schedule")
        return self.schedule.whole() if isinstance(self.schedule, Stream) else self.schedule

    @property
    def elements(self) -> int:
        """Number of elements; ScheduleError when ``nbytes`` is not a whole number of them."""
        size = dtype_bytes(self.dtype)
        if self.nbytes < 0 or self.nbytes % size:
            below = max(0, self.nbytes) // size * size
            right = f"{below} B or {below + size} B" if below else f"{size} B"
            raise ScheduleError(f"size {self.nbytes} B is not a whole number of {self.dtype} elements of {size} B; write {right}")
        return self.nbytes // size


@dataclass(frozen=True, slots=True, eq=False)
class Trace:
    """What happened, one row a send, in the order of launches and of their sends; times in seconds.

    ``start``: its queue let it go; ``sent``: last byte left; ``arrived``: last byte came; ``end``: reduced and readable."""

    launch: Ints
    send: Ints
    start: Floats
    sent: Floats
    arrived: Floats
    end: Floats
    bytes: Ints
    src: Ints
    dst: Ints
    nodes: tuple[tuple[str, ...], ...] = field(default=(), repr=False)
    """Per launch, the node of each place."""

    def bytes_sent(self, launch: int, nranks: int) -> Ints:
        """Shape [nranks]: bytes that each rank of a launch sent to another place."""
        mine = (self.launch == launch) & (self.src != self.dst)
        return _summed(self.src[mine], self.bytes[mine], nranks)

    def bytes_pairs(self, launch: int, places: int) -> Ints:
        """Shape [places, places]: bytes from each place to each other."""
        mine = (self.launch == launch) & (self.src != self.dst)
        return _summed(self.src[mine] * places + self.dst[mine], self.bytes[mine], places * places).reshape(places, places)


def _summed(index: Ints, amount: Ints, size: int) -> Ints:
    """Exact integer sums (a float histogram would round above 2**53)."""
    total = np.zeros(size, dtype=np.int64)
    inside = index < size
    np.add.at(total, index[inside], amount[inside])
    return total
