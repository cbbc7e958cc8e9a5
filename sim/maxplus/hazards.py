"""Who must wait for whom, kept while steps go by: the last accesses (``Recent``), or the latest time of every cell (``Table``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from algorithms.steps import Block
from sim.maxplus.rounds import RefusedError, Round
from sim.maxplus.rows import Floats, Ints, latest, latest_in, picked

KEPT = 4  # rounds; the older are known only by their latest times
TABLE_BYTES = 1_500_000_000


class UndecidedError(Exception):
    """``Recent`` has forgotten an access that may matter."""


class Hazards(Protocol):
    """Turns the times at which queues are free into the times at which messages may start; learns what they did (and the latest of
    that, per size)."""

    def ready(self, step: Block, round_: Round, times: Floats) -> Floats: ...
    def learn(self, step: Block, round_: Round, sent: Floats, done: Floats, last_done: Floats) -> None: ...
    def next_step(self) -> None: ...


@dataclass(slots=True, eq=False)
class _Access:
    """What a round read at ``src`` and wrote at ``dst``."""

    round: Round
    read: Ints
    write: Ints
    count: Ints | int
    sent: Floats
    done: Floats
    last_sent: Floats
    last_done: Floats


class Recent:
    """The accesses of the last rounds. A message that starts after the latest of the older ones needs none of them; that is so
    wherever ranks keep pace."""

    def __init__(self, sizes: int) -> None:
        self.kept: list[_Access] = []  # newest first
        self.fresh: list[_Access] = []  # of the step that is under way: its own reads do not see them
        self.older = np.zeros(sizes)

    def ready(self, step: Block, round_: Round, times: Floats) -> Floats:
        if round_.starts is not None:
            raise UndecidedError
        chunk, into, count = round_.sends(step.chunk), round_.sends(step.dst_chunk), round_.part(step.count)
        first = _first(times)
        for access in self.kept:
            if not _after(first, access.last_done):
                times = _wait(times, access.done, *_overlap(round_, "src", chunk, count, access, "dst", access.write))
                first = _first(times)
        for access in self.kept:
            if not _after(first, access.last_sent):
                times = _wait(times, access.sent, *_overlap(round_, "dst", into, count, access, "src", access.read))
            if not (_after(first, access.last_done) or (round_.reduces and access.round.reduces)):
                times = _wait(times, access.done, *_overlap(round_, "dst", into, count, access, "dst", access.write))
        if any(self._meets(round_, into, count, access) for access in self.fresh) or not _after(_first(times), self.older):
            raise UndecidedError
        return times

    @staticmethod
    def _meets(round_: Round, into: Ints, count: Ints | int, access: _Access) -> bool:
        """Two writes of one step to one cell, in order by their numbers unless both add: left to ``Table``."""
        if round_.reduces and access.round.reduces:
            return False
        at, same = _overlap(round_, "dst", into, count, access, "dst", access.write)
        return at is not None and bool(same.any())

    def learn(self, step: Block, round_: Round, sent: Floats, done: Floats, last_done: Floats) -> None:
        read, write, count = round_.sends(step.chunk), round_.sends(step.dst_chunk), round_.part(step.count)
        last_sent = sent[:, 0].max(axis=1)
        self.fresh.insert(0, _Access(round_, read, write, count, sent, done, last_sent, last_done))

    def next_step(self) -> None:
        self.kept = self.fresh + self.kept
        self.fresh = []
        for access in self.kept[KEPT:]:
            self.older = np.maximum(self.older, access.last_done)  # no earlier than ``last_sent``
        del self.kept[KEPT:]


def _first(times: Floats) -> Floats:
    """Per size the earliest time."""
    first: Floats = times[:, 0].min(axis=1)
    return first


def _after(first: Floats, last: Floats) -> bool:
    """Whether nothing that starts at ``first`` or later waits for what ends at ``last`` or before."""
    return first.item() >= last.item() if first.size == 1 else bool((first >= last).all())


def _wait(times: Floats, until: Floats, at: Ints | int | None, same: NDArray[np.bool_]) -> Floats:
    """Wait for the items ``at`` of an earlier access where chunks are the ``same``."""
    if at is None:
        return times
    if same.all():
        return latest(times, picked(until, at))
    return latest(times, np.where(same, picked(until, at), 0.0)) if same.any() else times


def _overlap(
    round_: Round, side: str, chunk: Ints, count: Ints | int, access: _Access, other: str, held: Ints
) -> tuple[Ints | int | None, NDArray[np.bool_]]:
    """Which item of an earlier access is at the same place (None: none is), and whether it has chunks in common."""
    at, hit = round_.partners(side, access.round, other)
    if at is None:
        return None, np.zeros(1, dtype=np.bool_)
    theirs = picked(held, at)
    if isinstance(count, int) and isinstance(access.count, int) and count == access.count == 1:
        same = theirs == chunk
    else:
        width = access.count if isinstance(access.count, int) else picked(access.count, at)
        same = (theirs < chunk + count) & (chunk < theirs + width)
    return at, same if hit is None else same & hit


class Table:
    """Per cell (place, chunk) the latest end of a write, of a COPY, and of a read."""

    def __init__(self, sizes: int, rows: int, places: int, nchunks: int) -> None:
        self.nchunks = nchunks
        self.written, self.copied, self.read = (np.zeros((sizes, rows, places * nchunks)) for _ in range(3))
        self.fresh: list[tuple[NDArray[np.float64], Ints, Floats]] = []

    @staticmethod
    def nbytes(sizes: int, rows: int, places: int, nchunks: int) -> int:
        """What a table would take."""
        return 3 * 8 * sizes * rows * places * nchunks

    def ready(self, step: Block, round_: Round, times: Floats) -> Floats:
        starts, _, reads, writes = self._cells(step, round_)
        self._refuse_clash(step, round_, writes)
        ordered = self.copied if round_.reduces else self.written
        waits = (self.written.take(reads, axis=2), self.read.take(writes, axis=2), ordered.take(writes, axis=2))
        for wait in waits:
            times = latest(times, wait if starts is None else latest_in(wait, starts))
        return times

    def _refuse_clash(self, step: Block, round_: Round, writes: Ints) -> None:
        """A cell that two rounds of one step write is in order only if both add."""
        for table, cells, _ in self.fresh:
            if (table is self.copied or (table is self.written and not round_.reduces)) and np.isin(writes, cells).any():
                raise RefusedError(f"step {step.step}: a copy and another send reach one chunk")

    def learn(self, step: Block, round_: Round, sent: Floats, done: Floats, last_done: Floats) -> None:
        _, message, reads, writes = self._cells(step, round_)
        left, over = (sent, done) if message is None else (sent.take(message, axis=2), done.take(message, axis=2))
        self.fresh += [(self.read, reads, left), (self.written, writes, over)]
        if not round_.reduces:
            self.fresh.append((self.copied, writes, over))

    def next_step(self) -> None:
        for table, cells, ends in self.fresh:
            table[:, :, cells] = latest(table[:, :, cells], ends)
        self.fresh = []

    def _cells(self, step: Block, round_: Round) -> tuple[Ints | None, Ints | None, Ints, Ints]:
        """First cell of each message and message of each cell (None: one a message), cells read and cells written."""
        chunk, into, count = round_.sends(step.chunk), round_.sends(step.dst_chunk), round_.part(step.count)
        src, dst = round_.sends(step.src), round_.sends(step.dst)
        reads, writes = src * self.nchunks + chunk, dst * self.nchunks + into
        if round_.starts is None and isinstance(count, int) and count == 1:
            return None, None, reads, writes
        each = np.broadcast_to(np.asarray(count), reads.shape)
        first = np.cumsum(each) - each
        offset = np.arange(int(each.sum())) - np.repeat(first, each)
        message = np.arange(len(reads)) if round_.starts is None else round_.message
        heads = first if round_.starts is None else first[round_.starts]
        return heads, np.repeat(message, each), np.repeat(reads, each) + offset, np.repeat(writes, each) + offset
