"""Schedules step by step: what the engines that never hold all sends at once read, from a schedule or straight from an algorithm."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import Collective
from algorithms.schedule import Schedule, Send, Shape
from topologies.errors import ScheduleError

Ints = NDArray[np.int64]


ROWS = 1 << 16
"""Sends of a block, about."""


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Sends of one step, or of several whole ones, as columns of one length; ``count``, ``op``, ``channel`` and ``message`` are whole
    numbers where all sends have the same. ``dst_chunk is chunk`` where data keeps its chunk index."""

    step: Ints | int
    src: Ints
    dst: Ints
    chunk: Ints
    dst_chunk: Ints
    count: Ints | int
    op: Ints | int
    channel: Ints | int
    message: Ints | int

    def __len__(self) -> int:
        return len(self.src)

    @property
    def chunks(self) -> int:
        """How many chunks the sends move."""
        return self.count * len(self) if isinstance(self.count, int) else int(self.count.sum())

    @property
    def number(self) -> int:
        """The last step it has sends of."""
        return self.step if isinstance(self.step, int) else int(self.step.max())

    def column(self, name: str) -> Ints:
        """A column at full length."""
        return np.broadcast_to(np.asarray(getattr(self, name), dtype=np.int64), self.src.shape)


@dataclass(frozen=True, slots=True, eq=False)
class Stream(Shape):
    """A schedule that is made again each time it is read, one step after the other: its memory does not grow with its sends.

    ``widest``: sends of its largest step; ``chunks``: chunks that all sends move. Only for equal chunks that keep their index; build
    with ``Stream.of``."""

    sends: int
    steps: int
    widest: int
    chunks: int
    make: Callable[[], Iterable[Send]] = field(repr=False)

    @staticmethod
    def of(name: str, collective: Collective, nranks: int, make: Callable[[], Iterable[Send]], *, root: int = 0) -> Stream | None:
        """Read the sends once, to check and to count them. None where they need the whole schedule: steps that do not come in
        order, chunks that change their index. ScheduleError for a send outside ranks and chunks."""
        sends, steps, widest, moved, chunks, places = 0, 0, 0, 0, 1, nranks
        src = dst = None
        for step in _read(make()):
            if step is None:
                return None
            low = min(int(step.chunk.min()), _least(step.channel), _least(step.count) - 1)
            if step.src is not src or step.dst is not dst:  # steps often share their ends
                src, dst = step.src, step.dst
                low = min(low, int(src.min()), int(dst.min()))
                places = max(places, int(src.max()) + 1, int(dst.max()) + 1)
            if low < 0:
                raise ScheduleError(f"{name}: step {step.step}: ranks, chunks and channels must not be negative, count at least 1")
            sends, steps, widest = sends + len(step), step.number + 1, max(widest, len(step))
            moved += step.chunks
            most = step.chunk.max() + step.count if isinstance(step.count, int) else (step.chunk + step.count).max()
            chunks = max(chunks, int(most))
        unit = collective.unit(nranks)
        weights = np.ones(-(-chunks // unit) * unit, dtype=np.int64)
        return Stream(name, collective, nranks, places, len(weights), root, weights, sends, steps, widest, moved, make)

    def __len__(self) -> int:
        return self.sends

    def whole(self) -> Schedule:
        """The same with all sends at once. ScheduleError for more than fit."""
        return Schedule.of(self.name, self.collective, self.nranks, self.make(), root=self.root, weights=self.weights)

    def __iter__(self) -> Iterator[Block]:
        for step in _read(self.make()):
            assert step is not None, "an algorithm must yield the same sends each time"
            yield step


def in_steps(schedule: Schedule | Stream) -> Iterator[Block]:
    """The steps of a schedule in order, one a block; empty ones are left out."""
    return iter(schedule) if isinstance(schedule, Stream) else _cut(schedule, 1)


def in_blocks(schedule: Schedule | Stream, rows: int = ROWS) -> Iterator[Block]:
    """The sends of a schedule in order, in blocks of whole steps of about ``rows`` sends."""
    if isinstance(schedule, Schedule):
        yield from _cut(schedule, rows)
        return
    waiting: list[Block] = []
    held = 0
    for step in schedule:
        waiting.append(step)
        held += len(step)
        if held >= rows:
            yield _joined(waiting)
            waiting, held = [], 0
    if waiting:
        yield _joined(waiting)


def _cut(schedule: Schedule, rows: int) -> Iterator[Block]:
    columns: dict[str, Ints] = schedule.columns()
    same = {name: int(columns.pop(name)[0]) for name in ("count", "op", "channel", "message") if _constant(columns[name])}
    keeps = np.array_equal(schedule.chunk, schedule.dst_chunk)
    edges = np.flatnonzero(np.diff(schedule.step, prepend=-1, append=schedule.steps))
    lo = 0
    for hi in edges[1:].tolist():
        if hi - lo >= rows or hi == len(schedule):
            part: dict[str, Any] = {name: column[lo:hi] for name, column in columns.items()} | same
            if keeps:
                part["dst_chunk"] = part["chunk"]
            if rows == 1:
                part["step"] = int(schedule.step[lo])
            yield Block(**part)
            lo = hi


def _constant(column: Ints) -> bool:
    return bool(len(column) and column.min() == column.max())


def _read(sends: Iterable[Send]) -> Iterator[Block | None]:
    """Sends gathered into steps; None (and an end) where they cannot be."""
    waiting: list[Block] = []
    number = 0
    for send in sends:
        block = _plain(send)
        if block is None or not isinstance(block.step, int) or block.step < number:
            yield None
            return
        if waiting and block.step > number:
            yield _joined(waiting)
            waiting = []
        number = block.step
        if len(block):
            waiting.append(block)
    if waiting:
        yield _joined(waiting)


def _plain(send: Send) -> Block | None:
    whole = isinstance(send.step, int) or np.ndim(send.step) == 0
    if not whole or not (send.dst_chunk is None or send.dst_chunk is send.chunk):
        return None
    values: tuple[Any, ...] = (send.src, send.dst, send.chunk, send.count, send.op, send.channel, send.message)
    number = send.step if isinstance(send.step, int) else int(np.asarray(send.step))
    if _columns(*values):
        return Block(number, *values[:3], *values[2:])
    arrays = [np.asarray(value) for value in values if not isinstance(value, int)]
    shape = np.broadcast_shapes(*(array.shape for array in arrays), (1,))
    ends = (_long(np.asarray(value), shape) for value in values[:3])
    rest = (value if isinstance(value, int) else _long(np.asarray(value), shape) for value in values[3:])
    src, dst, chunk = ends
    return Block(number, src, dst, chunk, chunk, *rest)


def _least(value: Ints | int) -> int:
    return value if isinstance(value, int) else int(value.min())


def _columns(src: Any, dst: Any, chunk: Any, *rest: Any) -> bool:
    """Whether ends and chunks are columns of one length already, and all else whole numbers: so in most algorithms."""
    if not (isinstance(src, np.ndarray) and isinstance(dst, np.ndarray) and isinstance(chunk, np.ndarray)):
        return False
    alike = src.ndim == 1 and src.shape == dst.shape == chunk.shape and src.dtype == dst.dtype == chunk.dtype == np.int64
    return alike and all(isinstance(value, int) for value in rest)


def _long(value: NDArray[Any], shape: tuple[int, ...]) -> Ints:
    if value.shape == shape and len(shape) == 1 and value.dtype == np.int64:
        return value
    return np.broadcast_to(value.astype(np.int64), shape).ravel()


def _joined(parts: list[Block]) -> Block:
    if len(parts) == 1:
        return parts[0]
    src, dst, chunk = (np.concatenate([getattr(part, name) for part in parts]) for name in ("src", "dst", "chunk"))
    return Block(_column(parts, "step"), src, dst, chunk, chunk, *(_column(parts, name) for name in ("count", "op", "channel", "message")))


def _column(parts: list[Block], name: str) -> Ints | int:
    values = [getattr(part, name) for part in parts]
    if isinstance(values[0], int) and all(isinstance(value, int) and value == values[0] for value in values):
        return values[0]
    return np.concatenate([part.column(name) for part in parts])
