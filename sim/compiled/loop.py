"""The event loop of ``sim.event`` on arrays, in slices: everything that goes on is in the state."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.compiled.columns import size
from sim.compiled.ends import ended, ends
from sim.compiled.heap import pop, push, replace
from sim.compiled.jit import inlined
from sim.compiled.sharing import settle_fair, settle_fifo, want
from sim.compiled.state import FULL, MORE, OVER


@inlined
def _line_up(p: Any, s: Any) -> None:
    for message in range(len(p.bytes) - 1, -1, -1):
        flow = s.flows[p.queue[message]]
        s.behind[message] = flow.head
        flow.head = message


@inlined
def _release(p: Any, s: Any, t: Any, now: float, node: int, sent: bool) -> None:
    """Node was sent, or is done: count down those that wait for that."""
    for i in range(p.start[node], p.start[node + 1]):
        if p.on_sent[i] == sent:
            other = p.after[i]
            s.waits[other] -= 1
            if s.waits[other] == 0:
                t.cause[other], t.cause_sent[other] = node, sent
                _ready(p, s, t, now, other)


@inlined
def _ready(p: Any, s: Any, t: Any, now: float, node: int) -> None:
    if node >= len(p.bytes):
        push(s.joins, s.nowhere, now + p.delay[node - len(p.bytes)], node, 0)
    else:
        _next(p, s, t, now, p.queue[node])


@inlined
def _next(p: Any, s: Any, t: Any, now: float, queue: int) -> None:
    """The head of a queue starts when the queue is free and nothing holds it back."""
    flow = s.flows[queue]
    message = flow.head
    if message >= 0 and flow.message < 0 and s.waits[message] == 0:
        flow.head, flow.message = s.behind[message], message
        t.start[message] = now
        overhead = s.clock[0].overhead
        if overhead > 0:
            push(s.starts, s.nowhere, now + overhead, message, queue)
        else:
            _flow_start(p, s, t, now, message)


@inlined
def _flow_start(p: Any, s: Any, t: Any, now: float, message: int) -> None:
    queue, route = p.queue[message], p.route[message]
    if p.route_first[route] == p.route_first[route + 1] or size(p.bytes, message) == 0:  # within a place, or nothing but a signal
        t.flow[message] = now
        ends(s, queue, now)
    else:
        s.flows[queue].left = size(p.bytes, message)
        want(s, queue, route)


@inlined
def _flow_end(p: Any, s: Any, t: Any, now: float, message: int, queue: int) -> None:
    ended(s, queue)
    t.sent[message] = now
    flow = s.flows[queue]
    flow.message = -1
    if flow.wants >= 0:
        t.limit[message] = flow.limit
        want(s, queue, -1)
    head = flow.head
    if head >= 0 and s.waits[head] == 0:  # held back by the queue alone
        t.cause[head], t.cause_sent[head] = message, True
    _on_the_wire(p, s, t, now, message)


@inlined
def _on_the_wire(p: Any, s: Any, t: Any, now: float, message: int) -> None:
    """Arrivals of one latency come in the order in which they were sent; the exception (times that round to one) goes by itself."""
    index = p.route_line[p.route[message]]
    wire = s.wires[index]
    time = now + wire.delay
    t.arrived[message] = time
    s.behind[message] = -1
    last = wire.last
    if wire.first < 0:
        wire.first = message
        push(s.arrivals, s.nowhere, time, message, index)
    elif time > t.arrived[last] or message > last:
        s.behind[last] = message
    else:
        push(s.arrivals, s.nowhere, time, message, len(s.wires))
        return
    wire.last = message


@inlined
def _arrive(p: Any, s: Any, t: Any, now: float) -> int:
    """Returns the message if it is done with that, else -1."""
    message, index = s.arrivals[1].node, s.arrivals[1].slot
    if index == len(s.wires):
        pop(s.arrivals, s.nowhere)
    else:
        behind = s.behind[message]
        s.wires[index].first = behind
        if behind >= 0:
            replace(s.arrivals, s.nowhere, t.arrived[behind], behind, index)
        else:
            pop(s.arrivals, s.nowhere)
    t.reducing[message] = now
    if size(p.reduced, message) / s.clock[0].reduce_rate == 0:
        _done(s, t, now, message)
        return int(message)
    reducer = s.reducers[p.reducer[message]]
    s.behind[message] = -1
    if reducer.first < 0:
        _reduce(p, s, now, message)
        reducer.first = message
    else:
        s.behind[reducer.last] = message
    reducer.last = message
    return -1


@inlined
def _reduce(p: Any, s: Any, now: float, message: int) -> None:
    push(s.reductions, s.nowhere, now + size(p.reduced, message) / s.clock[0].reduce_rate, message, 0)


@inlined
def _reduced(p: Any, s: Any, t: Any, now: float, message: int) -> None:
    """The reducer takes the next of its line; the first in it is the one it works on."""
    pop(s.reductions, s.nowhere)
    _done(s, t, now, message)
    behind = s.behind[message]
    s.reducers[p.reducer[message]].first = behind
    if behind >= 0:
        if now > t.arrived[behind]:
            t.reduce_cause[behind] = message
        t.reducing[behind] = now
        _reduce(p, s, now, behind)


@inlined
def _done(s: Any, t: Any, now: float, message: int) -> None:
    t.end[message] = now
    s.clock[0].done += 1


def play(p: Any, s: Any, t: Any, budget: int) -> int:
    """Play until about ``budget`` events and flows with a new rate are handled. Returns why it stopped."""
    clock = s.clock[0]
    now = clock.now
    if not clock.begun:
        clock.begun = 1
        _line_up(p, s)
        for node in range(len(s.waits)):
            if s.waits[node] == 0:
                _ready(p, s, t, now, node)
    while budget > 0:
        budget -= 1
        if s.arrivals[0].node + 2 == len(s.arrivals):
            clock.now = now
            return FULL
        node, sent, queue = -1, False, -1
        if s.ends[1].time <= now:
            node, sent, queue = s.ends[1].node, True, s.ends[1].slot
            _flow_end(p, s, t, now, node, queue)
        elif s.arrivals[1].time <= now:
            node = _arrive(p, s, t, now)
        elif s.reductions[1].time <= now:
            node = s.reductions[1].node
            _reduced(p, s, t, now, node)
        elif s.joins[1].time <= now:
            node = s.joins[1].node
            pop(s.joins, s.nowhere)
            t.joined[node - len(p.bytes)] = now
        elif s.starts[1].time <= now:
            message = s.starts[1].node
            pop(s.starts, s.nowhere)
            _flow_start(p, s, t, now, message)
        elif clock.changed:  # starts and ends of this instant are all in
            budget -= settle_fair(p, s, t, now) if clock.fair else settle_fifo(p, s, t, now)
        else:
            now = min(s.ends[1].time, s.arrivals[1].time, s.reductions[1].time, s.joins[1].time, s.starts[1].time)
            if now == np.inf:
                return OVER
        if node >= 0:
            _release(p, s, t, now, node, sent)
            if sent:
                _next(p, s, t, now, queue)
    clock.now = now
    return MORE
