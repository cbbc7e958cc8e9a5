"""Launches on a topology as flat arrays: messages, routes, queues and waits; what every engine runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.dependencies import dependencies
from algorithms.launch import Launch, dtype_bytes
from algorithms.schedule import Op, Schedule
from sim.model import Model
from topologies.errors import ScheduleError
from topologies.graph import Topology
from topologies.routing import Router

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Resource:
    """Something with a capacity [B/s]: a link (``src``, ``dst``), or a node's port (``src`` or ``dst`` empty)."""

    src: str
    dst: str
    capacity: float


@dataclass(frozen=True, slots=True)
class Route:
    """Resources of a path, each with the fraction of the flow it carries, and the latency of the path [s]."""

    resources: tuple[int, ...]
    weights: tuple[float, ...]
    latency: float


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Nodes are messages 0..m-1, then joins; ``waits`` counts what a node waits for, ``after[start[i]:start[i+1]]`` are the
    nodes that wait for node i, ``on_sent`` whether they wait only for its last byte to leave. A join finishes ``delay`` after
    its waits are over. Messages of one ``queue`` leave in order of their numbers."""

    resources: tuple[Resource, ...]
    routes: tuple[Route, ...]
    bytes: Ints
    reduced: Ints
    route: Ints
    queue: Ints
    reducer: Ints
    delay: Floats
    waits: Ints
    start: Ints
    after: Ints
    on_sent: Bools
    message_of_send: Ints
    send_launch: Ints
    send_index: Ints
    send_bytes: Ints
    send_src: Ints
    send_dst: Ints

    @property
    def messages(self) -> int:
        return len(self.bytes)

    @property
    def nodes(self) -> int:
        return len(self.waits)


def make_plan(topology: Topology, launches: Sequence[Launch], model: Model) -> Plan:
    """Lay launches out on the topology. ScheduleError without launches, or for one that waits for itself or one that is not there."""
    if not launches:
        raise ScheduleError(f"{topology.name}: nothing to simulate; give at least one launch")
    return _Planner(topology, launches, model).plan()


class _Planner:
    def __init__(self, topology: Topology, launches: Sequence[Launch], model: Model) -> None:
        self.topology, self.launches, self.model = topology, launches, model
        self.router = Router(topology)
        self.resources: dict[tuple[str, str], int] = {}
        self.listed: list[Resource] = []
        self.routes: list[Route] = []
        self.route_of: dict[tuple[str, str], int] = {}
        self.reducer_of: dict[str, int] = {}
        self.edges: list[tuple[Ints, Ints, Bools]] = []
        self.delays: list[float] = []
        self.columns: list[dict[str, Ints]] = []
        self.messages = sum(_message_count(launch.schedule) for launch in launches if launch.schedule)

    def plan(self) -> Plan:
        first, queues = 0, 0
        ends: list[int] = []
        waited_for = {index for launch in self.launches for index in launch.after}
        for number, launch in enumerate(self.launches):
            if any(not 0 <= other < number for other in launch.after):
                raise ScheduleError(f"launch {number}: may only wait for launches before it (0..{number - 1}), not {launch.after}")
            gate = self._gate(launch, ends)
            if launch.schedule is None:
                ends.append(self._join([] if gate is None else [gate], launch.duration))
                continue
            added, queues = self._add(number, launch, first, queues, gate)
            ends.append(self._join(list(range(first, first + added)), 0.0) if number in waited_for else -1)
            first += added
        return self._collect()

    def _join(self, before: list[int], delay: float) -> int:
        node = self.messages + len(self.delays)
        self.delays.append(delay)
        self._edges(np.asarray(before, dtype=np.int64), np.full(len(before), node), on_sent=False)
        return node

    def _edges(self, before: Ints, after: Ints, *, on_sent: bool) -> None:
        self.edges.append((before, after, np.full(len(before), on_sent)))

    def _gate(self, launch: Launch, ends: list[int]) -> int | None:
        before = [ends[index] for index in launch.after]
        if launch.start > 0:
            before.append(self._join([], launch.start))
        return self._join(before, 0.0) if before else None

    def _add(self, number: int, launch: Launch, first: int, queues: int, gate: int | None) -> tuple[int, int]:
        s = launch.schedule
        if s is None or launch.placement is None or len(launch.placement.nodes) != s.places:
            raise ScheduleError(f"launch {number}: a schedule needs a placement for each of its places")
        message, head = _messages(s)
        sizes = s.send_elements(launch.elements) * dtype_bytes(launch.dtype)
        count = len(head)
        total = np.zeros(count, dtype=np.int64)
        np.add.at(total, message, sizes)
        reduced = np.zeros(count, dtype=np.int64)
        np.add.at(reduced, message, np.where(s.op == Op.REDUCE, sizes, 0))
        src, dst, step = s.src[head], s.dst[head], s.step[head]
        _, queue = np.unique(src * (int(s.channel.max(initial=0)) + 1) + s.channel[head], return_inverse=True)
        pair, pair_of = np.unique(src * s.places + dst, return_inverse=True)
        nodes = launch.placement.nodes
        routes = np.asarray([self._route(nodes[p // s.places], nodes[p % s.places]) for p in pair], dtype=np.int64)
        reducers = np.asarray([self.reducer_of.setdefault(node, len(self.reducer_of)) for node in nodes], dtype=np.int64)
        self.columns.append({
            "bytes": total, "reduced": reduced, "route": routes[pair_of], "queue": queue + queues, "reducer": reducers[dst],
            "message_of_send": message + first, "send_launch": np.full(len(s), number), "send_index": np.arange(len(s)),
            "send_bytes": sizes, "send_src": s.src, "send_dst": s.dst,
        })  # fmt: skip
        self._hazards(s, message, first)
        if self.model.barrier:
            self._barriers(step, first)
        if self.model.fifo_depth:
            self._depth(src, dst, s.channel[head], first)
        if gate is not None:
            self._edges(np.full(count, gate), first + np.arange(count), on_sent=False)
        return count, queues + int(queue.max(initial=-1)) + 1

    def _hazards(self, s: Schedule, message: Ints, first: int) -> None:
        waits = dependencies(s)
        joins = self.messages + len(self.delays)
        self.delays += [0.0] * waits.joins
        node = np.concatenate([message + first, joins + np.arange(waits.joins)])
        before, after = node[waits.before], node[waits.after]
        apart = before != after
        self.edges.append((before[apart], after[apart], waits.on_sent[apart]))

    def _barriers(self, step: Ints, first: int) -> None:
        last: Ints = np.empty(0, dtype=np.int64)
        for here in np.unique(step):
            now = first + np.flatnonzero(step == here)
            if len(last):
                self._edges(np.full(len(now), self._join(last.tolist(), 0.0)), now, on_sent=False)
            last = now

    def _depth(self, src: Ints, dst: Ints, channel: Ints, first: int) -> None:
        order = np.lexsort((np.arange(len(src)), channel, dst, src))
        same = np.ones(max(0, len(order) - self.model.fifo_depth), dtype=np.bool_)
        early, late = order[: len(same)], order[self.model.fifo_depth :]
        for column in (src, dst, channel):
            same &= column[early] == column[late]
        self._edges(first + early[same], first + late[same], on_sent=False)

    def _route(self, src: str, dst: str) -> int:
        if (src, dst) not in self.route_of:
            path = self.router.route(src, dst)
            used = [self._resource(link.src, link.dst, link.bandwidth) for link in path]
            if path:
                used.append(self._resource(src, "", self.topology.node(src).injection))
                used.append(self._resource("", dst, self.topology.node(dst).ejection))
            limits = tuple(index for index in used if index >= 0)
            self.route_of[src, dst] = len(self.routes)
            self.routes.append(Route(limits, (1.0,) * len(limits), sum(link.latency for link in path)))
        return self.route_of[src, dst]

    def _resource(self, src: str, dst: str, capacity: float) -> int:
        if capacity == float("inf"):
            return -1
        if (src, dst) not in self.resources:
            self.resources[src, dst] = len(self.listed)
            self.listed.append(Resource(src, dst, capacity))
        return self.resources[src, dst]

    def _collect(self) -> Plan:
        none = np.empty(0, dtype=np.int64)
        names = (
            "bytes", "reduced", "route", "queue", "reducer",
            "message_of_send", "send_launch", "send_index", "send_bytes", "send_src", "send_dst",
        )  # fmt: skip
        columns = {name: np.concatenate([none, *(part[name] for part in self.columns)]) for name in names}
        before, after, on_sent = (np.concatenate(part) for part in zip((none, none, none.astype(np.bool_)), *self.edges, strict=True))
        nodes = self.messages + len(self.delays)
        order = np.lexsort((after, before))
        before, after, on_sent = before[order], after[order], on_sent[order]
        return Plan(
            tuple(self.listed), tuple(self.routes), delay=np.asarray(self.delays, dtype=np.float64),
            waits=np.bincount(after, minlength=nodes), start=np.searchsorted(before, np.arange(nodes + 1)), after=after, on_sent=on_sent,
            **columns,
        )  # fmt: skip


def _messages(s: Schedule) -> tuple[Ints, Ints]:
    """Message of each send, numbered in order of first sends, and the first send of each message."""
    index = np.arange(len(s))
    if (s.message < 0).all():
        return index, index
    keys = np.stack([s.step, s.src, s.dst, s.channel, s.message, np.where(s.message < 0, index, -1)])
    _, first, of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    number = np.empty_like(by_first)
    number[by_first] = np.arange(len(first))
    return number[of.ravel()], first[by_first]


def _message_count(s: Schedule) -> int:
    return len(_messages(s)[1])
