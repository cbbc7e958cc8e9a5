"""Which sends must wait for which: read-after-write, write-after-read and write-after-write hazards, derived in arrays.

A read at step s waits for writes of earlier steps to its cell; a write waits for reads of earlier steps there (they see the
value before it); a COPY is ordered, by (step, index), against all writes of the cell; REDUCE with REDUCE commutes.
Waits that follow from others are left out, and a set that several sends wait for becomes a join."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.cells import cells
from algorithms.schedule import Op, Schedule

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Dependencies:
    """Edges ``before[i] -> after[i]`` between nodes: sends 0..nsends-1, then ``joins`` that carry no data and finish when all
    before them have. ``on_sent[i]``: wait only until the last byte has left (a read is over), not until it is done."""

    nsends: int
    joins: int
    before: Ints
    after: Ints
    on_sent: Bools


@dataclass(frozen=True, slots=True)
class _Accesses:
    """Reads or writes sorted by (cell, step, send): a set of accesses to one cell within some steps is a range."""

    send: Ints
    cell: Ints
    step: Ints
    span: int

    @staticmethod
    def of(s: Schedule, send: Ints, cell: Ints) -> _Accesses:
        order = np.lexsort((send, s.step[send], cell))
        return _Accesses(send[order], cell[order], s.step[send][order], s.steps + 1)

    def first(self, cell: Ints, step: Ints) -> Ints:
        """Position of the first access to ``cell`` at ``step`` or later (the end of the cell's range if there is none)."""
        return np.searchsorted(self.cell * self.span + self.step, cell * self.span + step)

    def last_step_before(self, cell: Ints, step: Ints) -> Ints:
        """Latest step before ``step`` with an access to ``cell``; 0 when there is none (no access is before step 0)."""
        at = self.first(cell, step) - 1
        found = at >= self.first(cell, np.zeros_like(cell))
        return np.where(found, self.step[at], 0) if len(self.step) else np.zeros_like(cell)


def dependencies(s: Schedule) -> Dependencies:
    """Derive the waits of a schedule; O(cells log cells)."""
    moved = cells(s)
    reads = _Accesses.of(s, moved.send, moved.read)
    writes = _Accesses.of(s, moved.send, moved.write)
    is_copy = s.op[writes.send] == Op.COPY
    position = np.arange(len(writes.send))
    last_copy = np.maximum.accumulate(np.where(is_copy, position, -1)) if len(position) else position
    edges = _Edges(len(s))

    # Reads: all writes of earlier steps, less what an earlier read and a later write already order.
    here, step = reads.cell, reads.step
    hi = writes.first(here, step)
    covered = reads.last_step_before(here, writes.last_step_before(here, step))
    lo = np.maximum(writes.first(here, covered), _before(last_copy, hi))
    edges.add(reads.send, lo, hi, writes.send, on_sent=False)

    # Writes: reads of earlier steps, from the last write that was itself waited for.
    here, step = writes.cell, writes.step
    last_read = reads.last_step_before(here, step)
    copied = _before(last_copy, position)
    start = writes.first(here, np.zeros_like(here))
    copy_step = np.where(copied >= start, writes.step[copied], 0)
    lo = reads.first(here, np.maximum(writes.last_step_before(here, last_read), copy_step))
    edges.add(writes.send, lo, reads.first(here, step), reads.send, on_sent=True)

    # COPY: all writes before it; REDUCE: the last COPY before it.
    unordered = writes.first(here, last_read)
    lo = np.where(is_copy, np.maximum(unordered, copied), np.where(copied >= unordered, copied, position))
    hi = np.where(is_copy, position, np.where(copied >= unordered, copied + 1, position))
    edges.add(writes.send, np.maximum(lo, start), hi, writes.send, on_sent=False)
    return edges.collect()


def _before(last: Ints, position: Ints) -> Ints:
    """``last[position - 1]``, -1 at position 0."""
    return np.where(position > 0, last[np.maximum(position - 1, 0)], -1) if len(last) else np.full_like(position, -1)


class _Edges:
    """Collects waits of sends for ranges of accesses; a range that many sends wait for becomes a join."""

    def __init__(self, nsends: int) -> None:
        self.nsends = nsends
        self.joins = 0
        self.parts: list[tuple[Ints, Ints, Bools]] = []

    def add(self, after: Ints, lo: Ints, hi: Ints, accesses: Ints, *, on_sent: bool) -> None:
        """``after[i]`` waits for ``accesses[lo[i]:hi[i]]``."""
        some = hi > lo
        after, lo, hi = after[some], lo[some], hi[some]
        if not len(after):
            return
        pair = lo * (len(accesses) + 1) + hi
        _, first, group, uses = np.unique(pair, return_index=True, return_inverse=True, return_counts=True)
        size = (hi - lo)[first]
        joined = uses * size > uses + size
        join_node = self.nsends + self.joins + np.cumsum(joined) - 1
        self.joins += int(joined.sum())
        direct = ~joined[group]
        self._expand(after[direct], lo[direct], hi[direct], accesses, on_sent)
        self._expand(join_node[joined], lo[first][joined], hi[first][joined], accesses, on_sent)
        through = join_node[group[~direct]]
        self.parts.append((through, after[~direct], np.zeros(len(through), dtype=np.bool_)))

    def _expand(self, after: Ints, lo: Ints, hi: Ints, accesses: Ints, on_sent: bool) -> None:
        length = hi - lo
        offset = np.arange(int(length.sum())) - np.repeat(np.cumsum(length) - length, length)
        before = accesses[np.repeat(lo, length) + offset]
        self.parts.append((before, np.repeat(after, length), np.full(len(before), on_sent)))

    def collect(self) -> Dependencies:
        if not self.parts:
            none = np.empty(0, dtype=np.int64)
            return Dependencies(self.nsends, 0, none, none, none.astype(np.bool_))
        before, after, on_sent = (np.concatenate(column) for column in zip(*self.parts, strict=True))
        nodes = self.nsends + self.joins
        key = np.sort((after * nodes + before) * 2 + on_sent)
        key = key[np.diff(key, prepend=-1) != 0]  # np.unique hashes: five times slower here
        return Dependencies(self.nsends, self.joins, key // 2 % nodes, key // 2 // nodes, (key % 2).astype(np.bool_))
