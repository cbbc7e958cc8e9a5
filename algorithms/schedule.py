"""The schedule: which chunk goes where, in which order. Columns of sends; no bytes, no seconds, no links."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from itertools import pairwise

import numpy as np
from numpy.typing import ArrayLike, NDArray

from algorithms.collectives import Collective
from topologies.errors import ScheduleError

Ints = NDArray[np.int64]

MAX_SENDS = 40_000_000
"""Larger schedules are refused: at 200 B a send (columns, dependencies, trace) and more this is over 8 GB."""


MAX_WEIGHT = 2**31
"""Of all chunks together: products with it must fit 64 bits."""


class Op(IntEnum):
    """What the receiver does: overwrite its chunk, or add to it."""

    COPY = 0
    REDUCE = 1


@dataclass(frozen=True, slots=True)
class Send:
    """One send or, where fields are arrays, many: chunks [chunk, chunk+count) of place ``src`` into [dst_chunk, ...) of ``dst``.

    A place is a rank (0..n-1) or an aggregator (n and up, starts empty). Sends of one step that share ``message`` (>= 0) and
    src, dst and channel travel as one. ``src == dst`` is a local copy or reduction."""

    step: ArrayLike
    src: ArrayLike
    dst: ArrayLike
    chunk: ArrayLike
    dst_chunk: ArrayLike | None = None
    count: ArrayLike = 1
    op: ArrayLike = Op.COPY
    channel: ArrayLike = 0
    message: ArrayLike = -1


def copy(step: ArrayLike, src: ArrayLike, dst: ArrayLike, chunk: ArrayLike, *, count: ArrayLike = 1, channel: ArrayLike = 0) -> Send:
    """Sends whose receiver overwrites its chunk."""
    return Send(step, src, dst, chunk, count=count, channel=channel)


def reduce(step: ArrayLike, src: ArrayLike, dst: ArrayLike, chunk: ArrayLike, *, count: ArrayLike = 1, channel: ArrayLike = 0) -> Send:
    """Sends whose receiver adds to its chunk."""
    return Send(step, src, dst, chunk, count=count, op=Op.REDUCE, channel=channel)


@dataclass(frozen=True, slots=True, eq=False)
class Shape:
    """What a schedule is about: ``nchunks`` counts data chunks (``len(weights)``, sizes in proportion to ``weights``), then scratch
    chunks; ``places`` are ranks, then aggregators."""

    name: str
    collective: Collective
    nranks: int
    places: int
    nchunks: int
    root: int
    weights: Ints

    @property
    def in_network(self) -> bool:
        """Aggregators (switches) take part."""
        return self.places > self.nranks

    def chunk_bounds(self, elements: int) -> Ints:
        """Shape [data chunks + 1]: first element of each data chunk of a vector of ``elements`` (all-to-all: of the vectors of
        all ranks, one after the other), so that every chunk gets the floor or the ceiling of its share. Simulator and
        executors share this split."""
        edges = np.concatenate([[0], np.cumsum(self.weights)])
        total = int(edges[-1])
        whole, rest = divmod(elements * (self.nranks if self.collective.personalised else 1), total)
        return np.asarray(whole * edges + rest * edges // total, dtype=np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Schedule(Shape):
    """A collective as sends, in columns of one length sorted by step. Build with ``Schedule.of``, which validates."""

    step: Ints = field(repr=False)
    src: Ints = field(repr=False)
    dst: Ints = field(repr=False)
    chunk: Ints = field(repr=False)
    dst_chunk: Ints = field(repr=False)
    count: Ints = field(repr=False)
    op: Ints = field(repr=False)
    channel: Ints = field(repr=False)
    message: Ints = field(repr=False)

    @staticmethod
    def of(
        name: str,
        collective: Collective,
        nranks: int,
        sends: Iterable[Send],
        *,
        root: int = 0,
        weights: Sequence[int] | Ints | None = None,
        scratch: int = 0,
    ) -> Schedule:
        """Collect sends into columns and check them. Without ``weights`` the data chunks are those that the sends name, of
        equal weight (``scratch`` of them, the last, are not data), as many as the collective's ranks can own. ScheduleError
        names rank, chunk and step of a fault."""
        columns = _collect(name, sends)
        used = int(max((columns["chunk"] + columns["count"]).max(initial=1), (columns["dst_chunk"] + columns["count"]).max(initial=1)))
        if weights is None:
            unit = collective.unit(nranks)  # a chunk that stays where it is may be named by no send
            weights = np.ones(-(-(used - scratch) // unit) * unit, dtype=np.int64)
        weights = np.asarray(weights, dtype=np.int64)
        nchunks = len(weights) + scratch
        places = int(max(nranks, columns["src"].max(initial=0) + 1, columns["dst"].max(initial=0) + 1))
        schedule = Schedule(name, collective, nranks, places, nchunks, root, weights, **columns)
        _validate(schedule)
        return schedule

    def __len__(self) -> int:
        return len(self.step)

    @property
    def steps(self) -> int:
        """Number of steps."""
        return int(self.step.max(initial=-1)) + 1

    @property
    def chunks(self) -> int:
        """How many chunks all sends move."""
        return int(self.count.sum())

    def columns(self) -> dict[str, Ints]:
        """The nine columns by name."""
        return {f.name: getattr(self, f.name) for f in fields(Send)}

    def with_columns(self, name: str | None = None, **changed: Ints) -> Schedule:
        """The same collective with some columns replaced; sorted by step again and validated."""
        columns = self.columns() | changed
        order = np.argsort(columns["step"], kind="stable")
        c = {key: column[order] for key, column in columns.items()}
        made = Schedule(name or self.name, self.collective, self.nranks, self.places, self.nchunks, self.root, self.weights, **c)
        _validate(made)
        return made

    def send_elements(self, elements: int) -> Ints:
        """Shape [sends]: elements that each send carries. What a chunk holds decides its size: data that moved to another
        chunk index (``dst_chunk``, scratch) keeps the size of the chunk it came from."""
        bounds = self.chunk_bounds(elements)
        data = len(self.weights)
        if np.array_equal(self.chunk, self.dst_chunk) and int((self.chunk + self.count).max(initial=0)) <= data:
            sizes: Ints = bounds[self.chunk + self.count] - bounds[self.chunk]
            return sizes
        return _followed_elements(self, np.diff(bounds))


def _collect(name: str, sends: Iterable[Send]) -> dict[str, Ints]:
    parts: list[list[NDArray[np.generic]]] = []
    total = 0
    for send in sends:
        dst_chunk = send.chunk if send.dst_chunk is None else send.dst_chunk
        given = [dst_chunk if f.name == "dst_chunk" else getattr(send, f.name) for f in fields(Send)]
        columns = np.broadcast_arrays(*(np.atleast_1d(np.asarray(value)) for value in given))  # views: no memory yet
        total += columns[0].size
        if total > MAX_SENDS:
            raise ScheduleError(
                f"{name}: more than {MAX_SENDS:,} sends (step {columns[0].flat[0]} reached), over {MAX_SENDS * 200 / 1e9:.0f} GB "
                "of memory; take fewer ranks, channels or slices"
            )
        parts.append([column.ravel() if column.ndim > 1 else column for column in columns])
    none = np.empty(0, np.int64)
    joined = [np.concatenate([none, *column]).astype(np.int64, copy=False) for column in zip(*parts, strict=True)] or [none] * 9
    order = np.argsort(joined[0], kind="stable")
    return {f.name: column[order] for f, column in zip(fields(Send), joined, strict=True)}


def _validate(s: Schedule) -> None:
    if s.nranks < 2:
        raise ScheduleError(f"{s.name}: {s.nranks} rank; a collective needs at least 2")
    if not 0 <= s.root < s.nranks:
        raise ScheduleError(f"{s.name}: root {s.root} is not a rank; ranks are 0..{s.nranks - 1}")
    if (s.weights < 0).any() or not s.weights.any():
        raise ScheduleError(f"{s.name}: chunk weights must be whole numbers of at least 0, and at least one of them above 0")
    if s.weights.sum(dtype=np.float64) > MAX_WEIGHT:
        raise ScheduleError(f"{s.name}: weights add up to more than {MAX_WEIGHT:,}; give smaller numbers in the same proportion")
    unit = s.collective.unit(s.nranks)
    if len(s.weights) % unit:
        raise ScheduleError(f"{s.name}: {len(s.weights)} chunks cannot belong to {s.nranks} ranks evenly; use a multiple of {unit}")
    rules = (
        (s.step < 0, "step must not be negative"),
        ((s.src < 0) | (s.src >= s.places), f"source must be a place 0..{s.places - 1}"),
        ((s.dst < 0) | (s.dst >= s.places), f"destination must be a place 0..{s.places - 1}"),
        ((s.chunk < 0) | (s.chunk + s.count > s.nchunks), f"chunks must lie within 0..{s.nchunks - 1}"),
        ((s.dst_chunk < 0) | (s.dst_chunk + s.count > s.nchunks), f"destination chunks must lie within 0..{s.nchunks - 1}"),
        (s.count < 1, "count must be at least 1"),
        ((s.op != Op.COPY) & (s.op != Op.REDUCE), "op must be COPY or REDUCE"),
        (s.channel < 0, "channel must not be negative"),
        ((s.src == s.dst) & (s.chunk == s.dst_chunk), "a local send must go to another chunk"),
    )
    for broken, rule in rules:
        if broken.any():
            raise ScheduleError(f"{describe(s, int(np.argmax(broken)))}: {rule}")


def describe(s: Schedule, i: int) -> str:
    """Send i in words, for messages: schedule, step, ranks and chunks."""
    last = s.chunk[i] + s.count[i] - 1
    chunks = f"chunk {s.chunk[i]}" if s.count[i] == 1 else f"chunks {s.chunk[i]}..{last}"
    into = "" if s.chunk[i] == s.dst_chunk[i] else f" into chunk {s.dst_chunk[i]}"
    return f"{s.name}: step {s.step[i]}: rank {s.src[i]} -> rank {s.dst[i]}: {chunks}{into}"


def _followed_elements(s: Schedule, chunk_sizes: Ints) -> Ints:
    """Sizes of sends when data moves between chunk indices: follow each cell's size through the steps."""
    held = np.zeros((s.places, s.nchunks), dtype=np.int64)
    held[: s.nranks, : len(chunk_sizes)] = chunk_sizes
    sizes = np.empty(len(s), dtype=np.int64)
    edges = np.searchsorted(s.step, np.arange(s.steps + 1))
    for lo, hi in pairwise(edges.tolist()):
        moved = [held[s.src[i], s.chunk[i] : s.chunk[i] + s.count[i]].copy() for i in range(lo, hi)]
        for i, cells in zip(range(lo, hi), moved, strict=True):
            sizes[i] = cells.sum()
            held[s.dst[i], s.dst_chunk[i] : s.dst_chunk[i] + s.count[i]] = cells
    return sizes
