"""Schedules from schedules: one after the other, side by side on channels, in pipelined slices, relabelled, reversed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from algorithms.collectives import Collective
from algorithms.schedule import Op, Schedule, Send
from topologies.errors import ScheduleError

Ints = NDArray[np.int64]


def then(name: str, collective: Collective, first: Schedule, second: Schedule) -> Schedule:
    """``second`` after ``first`` on the same chunks; no barrier between them but their data dependencies."""
    if first.nranks != second.nranks or not np.array_equal(first.weights, second.weights):
        raise ScheduleError(f"{name}: {first.name} and {second.name} have different ranks or chunks; build both alike")
    later = second.columns() | {"step": second.step + first.steps}
    return _made(name, first, collective, [first.columns(), later])


def merge_channels(name: str, schedules: Sequence[Schedule]) -> Schedule:
    """Each schedule on its own share of the data and on channels of its own, all at once."""
    parts, base = [], 0
    for k, s in enumerate(schedules):
        columns = _share(s, k, len(schedules))
        parts.append(columns | {"channel": columns["channel"] + base})
        base += int(s.channel.max(initial=-1)) + 1
    return _shared(name, list(schedules), parts)


def pipeline(schedule: Schedule, slices: int) -> Schedule:
    """The schedule on ``slices`` equal shares of the data, one behind the other through the same queues: a place forwards
    slice 0 while it receives slice 1."""
    return _again(schedule, slices, "slices", lambda step, k: step * slices + k)


def repeated(schedule: Schedule, times: int) -> Schedule:
    """The schedule on ``times`` equal shares of the data, one after the other through the same queues: a place begins the next share
    when it has sent all of the one before."""
    return _again(schedule, times, "times", lambda step, k: step + k * schedule.steps)


def _again(schedule: Schedule, times: int, what: str, at: Callable[[Ints, int], Ints]) -> Schedule:
    """``at``: the step at which share k does what the schedule does at a step."""
    if times < 1:
        raise ScheduleError(f"{schedule.name}: {what} {times} must be at least 1")
    if times == 1:
        return schedule
    parts = []
    for k in range(times):
        columns = _share(schedule, k, times)
        parts.append(columns | {"step": at(columns["step"], k)})
    return _shared(schedule.name, [schedule] * times, parts)


def relabel(schedule: Schedule, new: Sequence[int] | Ints) -> Schedule:
    """Rank r plays the part that ``new`` gives it: old rank r becomes ``new[r]``, with the chunks it owns."""
    rank = np.asarray(new, dtype=np.int64)
    if not np.array_equal(np.sort(rank), np.arange(schedule.nranks)):
        raise ScheduleError(f"{schedule.name}: relabelling must name each rank 0..{schedule.nranks - 1} once")
    place = np.concatenate([rank, np.arange(schedule.nranks, schedule.places)])
    columns, collective = schedule.columns(), schedule.collective
    if collective.to:
        collective = collective.towards(rank[np.reshape(collective.to, (len(rank), -1))[np.argsort(rank)]].ravel())
    if collective.owned:
        moved = _moved_chunks(schedule, rank)
        columns = expanded(columns)
        columns |= {"chunk": moved[columns["chunk"]], "dst_chunk": moved[columns["dst_chunk"]]}
    columns |= {"src": place[columns["src"]], "dst": place[columns["dst"]]}
    return _made(schedule.name, replace(schedule, root=int(rank[schedule.root])), collective, [columns])


def reverse(name: str, collective: Collective, schedule: Schedule) -> Schedule:
    """The dual in reversed time: broadcast -> reduce, all-gather -> reduce-scatter, and back. Every send goes the other way;
    it adds where the dual collective reduces."""
    columns = schedule.columns()
    dual = {
        "step": schedule.steps - 1 - columns["step"],
        "src": columns["dst"], "dst": columns["src"],
        "chunk": columns["dst_chunk"], "dst_chunk": columns["chunk"],
        "op": np.full(len(schedule), Op.REDUCE if collective.reduces else Op.COPY, dtype=np.int64),
    }  # fmt: skip
    return _made(name, schedule, collective, [columns | dual])


def _moved_chunks(s: Schedule, rank: Ints) -> Ints:
    """New index of each chunk when old rank r becomes ``rank[r]``: blocks move with their owner (and target)."""
    chunk, data, n = np.arange(s.nchunks), len(s.weights), s.nranks
    moved = chunk.copy()
    to_all = s.collective.end == "target"
    width = data // (n * n if to_all else n)
    block = rank[:, None] * n + rank[None, :] if to_all else rank
    moved[:data] = (block.reshape(-1, 1) * width + np.arange(width)).ravel()
    return moved


def _made(name: str, like: Schedule, collective: Collective, parts: list[dict[str, Ints]]) -> Schedule:
    sends = [Send(**part) for part in parts]
    scratch = like.nchunks - len(like.weights)
    return Schedule.of(name, collective, like.nranks, sends, root=like.root, weights=like.weights, scratch=scratch)


def _shared(name: str, schedules: list[Schedule], parts: list[dict[str, Ints]]) -> Schedule:
    """Put schedules that each work on their share of the chunks together."""
    first = schedules[0]
    for s in schedules:
        same = s.nranks == first.nranks and s.root == first.root and s.nchunks == first.nchunks and len(s.weights) == len(first.weights)
        if not same or s.collective != first.collective:
            raise ScheduleError(f"{name}: {first.name} and {s.name} do different things; merge schedules of one collective and chunk count")
    stacked = np.stack([s.weights for s in schedules])
    weights = stacked.T.ravel() if first.collective.owned else stacked.ravel()
    sends = [Send(**part) for part in parts]
    scratch = (first.nchunks - len(first.weights)) * len(schedules)
    return Schedule.of(name, first.collective, first.nranks, sends, root=first.root, weights=weights, scratch=scratch)


def _share(s: Schedule, part: int, parts: int) -> dict[str, Ints]:
    """Columns of ``s`` on share ``part`` of ``parts`` of the data chunks and of the scratch chunks. Shares of owned chunks are
    interleaved, so that a rank's chunks stay together; others are contiguous."""
    data = len(s.weights)
    chunk = np.arange(s.nchunks)
    new = np.empty(s.nchunks, dtype=np.int64)
    for lo, hi in ((0, data), (data, s.nchunks)):
        here = (chunk >= lo) & (chunk < hi)
        within = chunk[here] - lo
        new[here] = lo * parts + (within * parts + part if s.collective.owned else part * (hi - lo) + within)
    columns = s.columns()
    if s.collective.owned or s.nchunks > data:
        columns = expanded(columns)
    message = np.where(columns["message"] >= 0, columns["message"] * parts + part, -1)
    return columns | {"chunk": new[columns["chunk"]], "dst_chunk": new[columns["dst_chunk"]], "message": message}


def expanded(columns: dict[str, Ints]) -> dict[str, Ints]:
    """One row a chunk; the rows of a former range share a message, so they still travel as one."""
    count = columns["count"]
    if (count == 1).all():
        return columns
    fresh = int(columns["message"].max(initial=-1)) + 1 + np.arange(len(count))
    message = np.where((columns["message"] < 0) & (count > 1), fresh, columns["message"])
    rows = np.repeat(np.arange(len(count)), count)
    offset = np.arange(len(rows)) - np.repeat(np.cumsum(count) - count, count)
    out = {key: column[rows] for key, column in (columns | {"message": message}).items()}
    return out | {"chunk": out["chunk"] + offset, "dst_chunk": out["dst_chunk"] + offset, "count": np.ones_like(rows)}
