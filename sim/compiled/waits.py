"""How plans for the compiled engine find waits: 32-bit columns, a compiled pass over the sends, a counting sort."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.schedule import Schedule
from algorithms.steps import Block, Stream, in_blocks, in_steps
from sim.compiled.cells import CELL, CURSOR, EDGE, ENTRY, FORM, Cells, Sends
from sim.compiled.native import Native
from sim.waits import Waits
from topologies.errors import ScheduleError

Array = NDArray[Any]
EDGES = 1 << 20
DENSE = 4
"""Up to so many cells a send every chunk is one; beyond, chunks that are never told apart are one, if that is less."""
MAX_NODES = 2**30 - 1

derive, count, place = (Native("hazards", name) for name in ("derive", "count", "place"))


class Compiled:
    """``Ways`` in which an edge is a record (``EDGE``) of 8 bytes."""

    integers = np.int32

    def waits(self, schedule: Schedule | Stream) -> Waits:
        return _Derived(schedule)

    def edges(self, before: Array, after: Array, *, on_sent: bool) -> Array:
        part = np.empty(len(before), EDGE)
        part["code"], part["after"] = 2 * before + on_sent, after
        return part

    def moved(self, part: Array, first: int, joins: int) -> Array:
        if first or joins:
            part["code"] += np.where(part["code"] >= 0, 2 * first, -2 * joins).astype(np.int32)
            part["after"] += np.where(part["after"] >= 0, first, -joins).astype(np.int32)
        return part

    def sort(self, parts: list[Array], messages: int, joins: int) -> tuple[Array, Array, Array, Array]:
        return _sorted(parts, messages, joins)


class _Derived:
    """A cell table, through which the blocks of a schedule go in order."""

    def __init__(self, schedule: Schedule | Stream) -> None:
        keys, first, cells = _cells(schedule)
        form = np.array([(schedule.places, schedule.nchunks, _diagonal(schedule))], FORM)
        self.cells = Cells(np.zeros(cells, CELL), keys, first, form, np.zeros(4096, ENTRY), np.zeros(EDGES, EDGE), np.zeros(1, CURSOR))
        self.full: list[Array] = []

    def add(self, block: Block, message: Array) -> None:
        given = [*(block.column(name) for name in ("step", "src", "dst", "chunk", "dst_chunk", "count", "op")), message]
        sends, done = Sends(*(np.ascontiguousarray(column, dtype=np.int64) for column in given)), 0
        while (done := derive(sends, self.cells, done)) < len(message):
            self._room()

    def _room(self) -> None:
        """Put full edges away, and make room for the step that needs it."""
        c, cursor = self.cells, self.cells.cursor
        edges, entries, used = c.edges, c.entries, int(cursor["edges"][0])
        need, need_entries = int(cursor["need"][0]), int(cursor["need_entries"][0])
        if used + need > len(edges):
            self.full.append(edges[:used])
            cursor["edges"] = 0
            edges = np.zeros(max(len(edges), 2 * need), EDGE)
        if need_entries > len(entries):
            entries = np.concatenate([entries, np.zeros(need_entries, ENTRY)])
        self.cells = c._replace(edges=edges, entries=entries)

    def finish(self) -> tuple[list[Array], int]:
        c = self.cells
        return [*self.full, c.edges[: c.cursor["edges"][0]]], int(c.cursor["joins"][0])


def _sorted(parts: list[Array], messages: int, joins: int) -> tuple[Array, Array, Array, Array]:
    """``waits``, ``start``, ``after`` and ``on_sent`` of a plan. ScheduleError for more nodes than 32 bits number."""
    nodes = messages + joins
    if nodes > MAX_NODES or sum(len(part) for part in parts) > 2 * MAX_NODES:
        raise ScheduleError(f"{nodes:,} messages and joins are more than the compiled engine can number; at most {MAX_NODES:,}")
    waits, start = np.zeros(nodes, np.int32), np.zeros(nodes + 2, np.int32)
    for part in parts:
        count(part, messages, waits, start)
    np.cumsum(start, out=start)
    after, on_sent = np.empty(int(start[-1]), np.int32), np.empty(int(start[-1]), np.bool_)
    for part in parts:
        place(part, messages, start, after, on_sent)
    return waits, start[:-1], after, on_sent


def _diagonal(schedule: Schedule | Stream) -> bool:
    """Whether most sends of the first step go on from the one before by a place and a chunk, as around a ring: cells beside each other are
    found sooner."""
    step = next(in_steps(schedule), None)
    if step is None or schedule.places > schedule.nchunks:
        return False
    together = (np.diff(step.src) == 1) & (np.isin(np.diff(step.chunk), (1, 1 - schedule.nchunks)))
    return bool(2 * together.sum() > len(step))


def _cells(schedule: Schedule | Stream) -> tuple[Array, Array, int]:
    """Boundaries of ranges by place (see ``Cells``), and the number of cells."""
    none = np.empty(0, dtype=np.int64)
    dense = schedule.places * schedule.nchunks
    if dense <= DENSE * len(schedule):
        return none, none, dense
    span = schedule.nchunks + 1
    found = []
    for block in in_blocks(schedule):
        read, write = block.src * span + block.chunk, block.dst * span + block.dst_chunk
        found.append(np.unique(np.concatenate([read, read + block.count, write, write + block.count])))
    keys = np.unique(np.concatenate(found))
    if len(keys) >= dense:
        return none, none, dense
    return keys % span, np.searchsorted(keys, np.arange(schedule.places + 1) * span), len(keys)
