"""When flows end: a heap of trains. A flow that ends after the last of a train goes behind it, so where flows end in about the order in
which they began, the heap is small; in ``ends`` is the first flow of each train."""

from __future__ import annotations

from typing import Any

from sim.compiled.heap import move, pop, push, replace, succeed
from sim.compiled.jit import inlined


@inlined
def ends(s: Any, queue: int, time: float) -> None:
    """The flow of a queue, which stands in no train, ends at this time."""
    flow = s.flows[queue]
    flow.until, flow.before, flow.behind, flow.train = time, -1, -1, -1
    for i in range(len(s.trains)):
        last = s.trains[i]
        if last < 0 or _later(s, time, flow.message, last):
            s.trains[i] = queue
            flow.train = i
            if last >= 0:
                s.flows[last].behind = queue
                flow.before = last
                return
            break
    push(s.ends, s.ends_at, time, flow.message, queue)


@inlined
def _later(s: Any, time: float, message: int, queue: int) -> bool:
    flow = s.flows[queue]
    return bool(flow.until < time or (flow.until == time and flow.message < message))


@inlined
def ends_else(s: Any, queue: int, time: float) -> None:
    """The flow ends at another time than it seemed."""
    flow = s.flows[queue]
    if flow.before < 0 and flow.behind < 0:
        flow.until = time
        move(s.ends, s.ends_at, time, queue)
        return
    if flow.before >= 0:
        s.flows[flow.before].behind = flow.behind
    else:
        first = s.flows[flow.behind]
        succeed(s.ends, s.ends_at, first.until, first.message, queue, flow.behind)
    _out(s, queue)
    ends(s, queue, time)


@inlined
def ended(s: Any, queue: int) -> None:
    """The flow that ends first does."""
    behind = s.flows[queue].behind
    if behind >= 0:
        first = s.flows[behind]
        replace(s.ends, s.ends_at, first.until, first.message, behind)
    else:
        pop(s.ends, s.ends_at)
    _out(s, queue)


@inlined
def _out(s: Any, queue: int) -> None:
    flow = s.flows[queue]
    if flow.behind >= 0:
        s.flows[flow.behind].before = flow.before
    elif flow.train >= 0:
        s.trains[flow.train] = flow.before
