"""A binary heap of events, earliest time first, then lowest node. Entry 0 holds the number of entries (``node``); entry 1 is the top,
whose time is infinite in an empty heap. ``place[slot]`` is where the entry of a slot is, so that its time can change."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.compiled.jit import called, inlined


@called
def push(heap: Any, place: Any, time: float, node: int, slot: int) -> None:
    size = heap[0].node + 1
    heap[0].node = size
    _up(heap, place, size, time, node, slot)


@called
def pop(heap: Any, place: Any) -> None:
    """Drop the top."""
    size = heap[0].node
    heap[0].node = size - 1
    if size == 1:
        heap[1].time = np.inf
    else:
        last = heap[size]
        _down(heap, place, 1, last.time, last.node, last.slot)


@called
def replace(heap: Any, place: Any, time: float, node: int, slot: int) -> None:
    """Drop the top and push an entry."""
    _down(heap, place, 1, time, node, slot)


@called
def succeed(heap: Any, place: Any, time: float, node: int, slot: int, after: int) -> None:
    """The entry of ``slot`` gives way to a later one, of another slot."""
    _down(heap, place, place[slot], time, node, after)


@called
def move(heap: Any, place: Any, time: float, slot: int) -> None:
    """The entry of this slot has a new time."""
    at = place[slot]
    if time < heap[at].time:
        _up(heap, place, at, time, heap[at].node, slot)
    else:
        _down(heap, place, at, time, heap[at].node, slot)


@inlined
def _up(heap: Any, place: Any, at: int, time: float, node: int, slot: int) -> None:
    while at > 1:
        above = heap[at >> 1]
        if above.time < time or (above.time == time and above.node < node):
            break
        _put(heap, place, at, above.time, above.node, above.slot)
        at >>= 1
    _put(heap, place, at, time, node, slot)


@inlined
def _down(heap: Any, place: Any, at: int, time: float, node: int, slot: int) -> None:
    size = heap[0].node
    while 2 * at <= size:
        child = 2 * at
        if child < size:
            one, two = heap[child], heap[child + 1]
            if two.time < one.time or (two.time == one.time and two.node < one.node):
                child += 1
        below = heap[child]
        if time < below.time or (time == below.time and node < below.node):
            break
        _put(heap, place, at, below.time, below.node, below.slot)
        at = child
    _put(heap, place, at, time, node, slot)


@inlined
def _put(heap: Any, place: Any, at: int, time: float, node: int, slot: int) -> None:
    entry = heap[at]
    entry.time, entry.node, entry.slot = time, node, slot
    place[slot] = at
