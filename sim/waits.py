"""Who waits for whom: how a plan finds the waits of schedules, and orders them by what is waited for."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from algorithms.dependencies import dependencies
from algorithms.schedule import Schedule
from algorithms.steps import Block, Stream

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


class Waits(Protocol):
    """Finds what the messages of one launch wait for: blocks are added in order. ``finish`` gives parts of edges between messages
    (numbered from 0) and joins (-1, -2, ...), and the number of joins."""

    def add(self, block: Block, message: Ints) -> None: ...
    def finish(self) -> tuple[list[Any], int]: ...


class Ways(Protocol):
    """How a plan is made: ``integers`` is the type of its columns, and edges are in parts of a form that only these know."""

    integers: type[np.signedinteger[Any]]

    def waits(self, schedule: Schedule | Stream) -> Waits: ...
    def edges(self, before: Ints, after: Ints, *, on_sent: bool) -> Any: ...
    def moved(self, part: Any, first: int, joins: int) -> Any:
        """The part with messages numbered from ``first``, and joins after ``joins`` others."""

    def sort(self, parts: list[Any], messages: int, joins: int) -> tuple[Any, Any, Any, Any]:
        """``waits``, ``start``, ``after`` and ``on_sent`` of the plan; joins come after messages."""


class Arrays:
    """Edges by ``algorithms.dependencies``, in numpy alone: a part is columns (before, after, on_sent)."""

    integers = np.int64

    def waits(self, schedule: Schedule | Stream) -> Waits:
        return _Derived(schedule.whole() if isinstance(schedule, Stream) else schedule)

    def edges(self, before: Ints, after: Ints, *, on_sent: bool) -> tuple[Ints, Ints, Bools]:
        return before, after, np.full(len(before), on_sent)

    def moved(self, part: tuple[Ints, Ints, Bools], first: int, joins: int) -> tuple[Ints, Ints, Bools]:
        before, after = (np.where(node >= 0, node + first, node - joins) for node in part[:2])
        return before, after, part[2]

    def sort(self, parts: list[tuple[Ints, Ints, Bools]], messages: int, joins: int) -> tuple[Ints, Ints, Ints, Bools]:
        none = np.empty(0, dtype=np.int64)
        before, after, on_sent = (np.concatenate(part) for part in zip((none, none, none.astype(np.bool_)), *parts, strict=True))
        before, after = (np.where(node >= 0, node, messages - 1 - node) for node in (before, after))
        order = np.lexsort((after, before))
        before, after, on_sent = before[order], after[order], on_sent[order]
        nodes = messages + joins
        return np.bincount(after, minlength=nodes), np.searchsorted(before, np.arange(nodes + 1)), after, on_sent


class _Derived:
    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.message: list[Ints] = []

    def add(self, block: Block, message: Ints) -> None:
        self.message.append(message)

    def finish(self) -> tuple[list[Any], int]:
        waits = dependencies(self.schedule)
        node = np.concatenate([*self.message, -1 - np.arange(waits.joins)])
        before, after = node[waits.before], node[waits.after]
        apart = before != after
        return [(before[apart], after[apart], waits.on_sent[apart])], waits.joins
