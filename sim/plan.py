"""Launches on a topology as flat arrays: messages, routes, queues and waits; what every engine runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.launch import Launch
from algorithms.schedule import Op
from algorithms.steps import in_blocks
from sim.layout import Layout, Sizes, messages_of, summed, wire_bytes
from sim.model import Model
from sim.routes import Resource, Route, RouteTable
from sim.waits import Arrays, Ways
from topologies.errors import ScheduleError
from topologies.graph import Topology

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Columns of messages, nodes, waits or sends. Nodes are messages 0..m-1, then joins; ``waits`` counts what a node waits for,
    ``after[start[i]:start[i+1]]`` are the nodes that wait for node i, ``on_sent`` whether they wait only for its last byte to leave.
    A join finishes ``delay`` [s] after its waits are over. Messages of one ``queue`` leave in order of their numbers. ``bytes`` are
    those that links carry, ``payload`` those without headers. ``reduced`` is as ``bytes`` where reducing takes no time. Columns of
    sends are empty in an untraced plan."""

    resources: tuple[Resource, ...]
    routes: tuple[Route, ...]
    bytes: Ints
    payload: Ints
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
    first: tuple[int, ...]
    """Per launch its first message, and in the end the number of messages."""
    sent: tuple[Ints, ...]
    """Per launch, shape [places]: bytes of payload that each place sent to another."""

    @property
    def messages(self) -> int:
        return len(self.bytes)

    @property
    def nodes(self) -> int:
        return len(self.waits)


def make_plan(topology: Topology, launches: Sequence[Launch], model: Model, ways: Ways | None = None, *, traced: bool = True) -> Plan:
    """Lay launches out on the topology. ScheduleError without launches, for one that waits for itself or one that is not there, or has no
    placement; TopologyError where there is no way."""
    if not launches:
        raise ScheduleError(f"{topology.name}: nothing to simulate; give at least one launch")
    return _Planner(topology, launches, model, ways or Arrays(), traced).plan()


class _Planner:
    def __init__(self, topology: Topology, launches: Sequence[Launch], model: Model, ways: Ways, traced: bool) -> None:
        self.topology, self.launches, self.model, self.ways, self.traced = topology, launches, model, ways, traced
        self.table = RouteTable(topology, model)
        self.reducer_of: dict[str, int] = {}
        self.parts: list[Any] = []
        self.delays: list[Floats] = []
        self.joins = self.messages = self.queues = 0
        total = sum(len(launch.schedule) for launch in launches if launch.schedule)
        # Without headers payload is what links carry; without a reduce rate nobody asks what is reduced.
        own = {"payload": bool(model.header), "reduced": model.reduce_rate < math.inf}
        names = ["bytes", "route", "queue", "reducer", *(name for name, needed in own.items() if needed)]
        self.columns: dict[str, Ints] = {name: np.empty(total, dtype=ways.integers) for name in names}
        self.sends: list[dict[str, Ints]] = []
        self.first: list[int] = []
        self.sent: list[Ints] = []

    def plan(self) -> Plan:
        ends: list[int] = []
        waited_for = {index for launch in self.launches for index in launch.after}
        for number, launch in enumerate(self.launches):
            if any(not 0 <= other < number for other in launch.after):
                raise ScheduleError(f"launch {number}: may only wait for launches before it (0..{number - 1}), not {launch.after}")
            gate, first = self._gate(launch, ends), self.messages
            self.first.append(first)
            self.sent.append(np.zeros(launch.schedule.places if launch.schedule else 0, dtype=np.int64))
            if launch.schedule is None:
                ends.append(self._join(np.asarray([] if gate is None else [gate], dtype=np.int64), launch.duration))
                continue
            self._add(number, launch, gate)
            ends.append(self._join(np.arange(first, self.messages), 0.0) if number in waited_for else 0)
        return self._collect()

    def _join(self, before: Ints, delay: float) -> int:
        """A new join: a negative number."""
        self.joins += 1
        self.delays.append(np.full(1, delay))
        self._edges(before, np.full(len(before), -self.joins), on_sent=False)
        return -self.joins

    def _edges(self, before: Ints, after: Ints, *, on_sent: bool) -> None:
        self.parts.append(self.ways.edges(before, after, on_sent=on_sent))

    def _gate(self, launch: Launch, ends: list[int]) -> int | None:
        before = [ends[index] for index in launch.after]
        if launch.start > 0:
            before.append(self._join(np.empty(0, dtype=np.int64), launch.start))
        return self._join(np.asarray(before), 0.0) if before else None

    def _add(self, number: int, launch: Launch, gate: int | None) -> None:
        s = launch.schedule
        if s is None or launch.placement is None or len(launch.placement.nodes) != s.places:
            raise ScheduleError(f"launch {number}: a schedule needs a placement for each of its places")
        first, sends = self.messages, 0
        lay = Layout(self.table, self.reducer_of, launch.placement.nodes, self.queues, self.ways.integers)
        sizes = Sizes(launch)
        waits = self.ways.waits(s)
        rules = _Rules(self, first)
        for block in in_blocks(s):
            message, head = messages_of(block)
            each = sizes.of(block, sends)
            lo, hi = self.messages, self.messages + len(head)
            plain = len(head) == len(block)
            step, src, dst, channel = (
                block.column(name) if plain else block.column(name)[head] for name in ("step", "src", "dst", "channel")
            )
            payload = summed(message, each, len(head))
            np.add.at(self.sent[number], src[src != dst], payload[src != dst])
            self._fill("bytes", lo, hi, wire_bytes(payload, self.model))
            if self.model.header:
                self._fill("payload", lo, hi, payload)
            if self.model.reduce_rate < math.inf:
                self._fill("reduced", lo, hi, summed(message, np.where(block.column("op") == Op.REDUCE, each, 0), len(head)))
            for name, column in lay.columns(src, dst, channel).items():
                self.columns[name][lo:hi] = column
            waits.add(block, message + (lo - first))
            rules.add(step, src, dst, channel, lo)
            if self.traced:
                self.sends.append({
                    "message_of_send": message + lo, "send_launch": np.full(len(block), number),
                    "send_index": sends + np.arange(len(block)), "send_bytes": each, "send_src": block.src, "send_dst": block.dst,
                })  # fmt: skip
            self.messages, sends = hi, sends + len(block)
        rules.finish()
        self.queues += lay.queues
        parts, joins = waits.finish()
        self.parts += [self.ways.moved(part, first, self.joins) for part in parts]
        self.joins += joins
        self.delays.append(np.zeros(joins))
        if gate is not None:
            count = self.messages - first
            self._edges(np.full(count, gate), first + np.arange(count), on_sent=False)

    def _fill(self, name: str, lo: int, hi: int, column: Ints) -> None:
        if column.max(initial=0) > np.iinfo(self.columns[name].dtype).max:  # messages of gigabytes
            self.columns[name] = self.columns[name].astype(np.int64)
        self.columns[name][lo:hi] = column

    def _collect(self) -> Plan:
        waits, start, after, on_sent = self.ways.sort(self.parts, self.messages, self.joins)
        columns = {name: column[: self.messages] for name, column in self.columns.items()}
        none = np.empty(0, dtype=np.int64)
        names = ("message_of_send", "send_launch", "send_index", "send_bytes", "send_src", "send_dst")
        return Plan(
            tuple(self.table.resources), tuple(self.table.routes),
            **{"payload": columns["bytes"], "reduced": columns["bytes"]} | columns,
            delay=np.concatenate([np.empty(0), *self.delays]), waits=waits, start=start, after=after, on_sent=on_sent,
            **{name: np.concatenate([none, *(part[name] for part in self.sends)]) for name in names},
            first=(*self.first, self.messages), sent=tuple(self.sent),
        )  # fmt: skip


class _Rules:
    """What the model adds to the waits of a schedule: barriers between steps, and a depth of the queue to each place."""

    def __init__(self, planner: _Planner, first: int) -> None:
        self.planner, self.first = planner, first
        self.depth = planner.model.fifo_depth
        self.last: Ints = np.empty(0, dtype=np.int64)
        self.ends: list[tuple[Ints, Ints, Ints]] = []

    def add(self, step: Ints, src: Ints, dst: Ints, channel: Ints, first: int) -> None:
        """The messages of a block, numbered from ``first``."""
        if self.depth:
            self.ends.append((src, dst, channel))
        for here in np.unique(step) if self.planner.model.barrier else ():
            now = first + np.flatnonzero(step == here)
            if len(self.last):
                gate = self.planner._join(self.last, 0.0)
                self.planner._edges(np.full(len(now), gate), now, on_sent=False)
            self.last = now

    def finish(self) -> None:
        """All messages are there."""
        if not self.ends:
            return
        columns = [np.concatenate(column) for column in zip(*self.ends, strict=True)]
        order = np.lexsort(columns[::-1])
        same = np.ones(max(0, len(order) - self.depth), dtype=np.bool_)
        early, late = order[: len(same)], order[self.depth :]
        for column in columns:
            same &= column[early] == column[late]
        self.planner._edges(self.first + early[same], self.first + late[same], on_sent=False)
