"""The event engine (SimPy): the reference meaning of ``docs/model.md``, one message at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np
import simpy
from simpy.events import EventPriority

from sim.model import Model
from sim.plan import Plan
from sim.sharing import FairSharing, FifoSharing, Sharing
from sim.times import Progress, Times
from topologies.errors import ScheduleError

FLOW_END, ARRIVAL, REDUCED, JOINED, FLOW_START, SETTLE = range(6)  # order within one instant
REPORT_EVERY = 2048


class _Timer(simpy.Event):
    """A SimPy event that calls back with what it is for."""

    __slots__ = ("kind", "node", "version")

    def __init__(self, env: simpy.Environment, kind: int, node: int, version: int, fire: Callable[[simpy.Event], None]) -> None:
        self.env = env
        self.callbacks = [fire]
        self._ok = True
        self._value = None
        self.kind, self.node, self.version = kind, node, version


def run(plan: Plan, model: Model, progress: Progress | None = None) -> Times:
    """Play the plan. ScheduleError when messages wait for one another for ever."""
    return _Engine(plan, model, progress).run()


class _Engine:
    def __init__(self, plan: Plan, model: Model, progress: Progress | None) -> None:
        self.plan, self.model, self.progress = plan, model, progress
        self.env = simpy.Environment()
        capacity = [resource.capacity for resource in plan.resources]
        incast = [resource.incast for resource in plan.resources]
        self.sharing: Sharing = FairSharing(capacity, incast) if model.sharing == "fair" else FifoSharing(capacity)
        self.settling = False
        self.done = 0
        m, n = plan.messages, plan.nodes
        self.waits: list[int] = plan.waits.tolist()
        self.successors = plan.start.tolist(), plan.after.tolist(), plan.on_sent.tolist()
        self.bytes, self.reduced = plan.bytes.tolist(), plan.reduced.tolist()
        self.route, self.queue, self.reducer = plan.route.tolist(), plan.queue.tolist(), plan.reducer.tolist()
        self.line: list[list[int]] = [[] for _ in range(max(self.queue, default=-1) + 1)]
        for message in reversed(range(m)):
            self.line[self.queue[message]].append(message)  # a stack whose top is the next to leave
        self.queue_busy = [False] * len(self.line)
        self.reductions: list[deque[int]] = [deque() for _ in range(max(self.reducer, default=-1) + 1)]  # the first is under way
        self.left = [float(b) for b in self.bytes]
        self.rate, self.since, self.version = [0.0] * m, [0.0] * m, [0] * m
        self.times = {key: [0.0] * m for key in ("start", "flow", "sent", "arrived", "reducing", "end")}
        self.cause, self.cause_sent, self.reduce_cause = [-1] * n, [False] * n, [-1] * m
        self.joined = [0.0] * (n - m)

    def run(self) -> Times:
        for node in range(self.plan.nodes):
            if self.waits[node] == 0:
                self._ready(node)
        self.env.run()
        if self.done < self.plan.messages:
            stuck = next(node for node, waits in enumerate(self.waits) if waits)
            raise ScheduleError(f"{self.plan.messages - self.done} messages wait for one another for ever (message {stuck} among them)")
        limit = np.asarray([self.sharing.limit.get(i, -1) for i in range(self.plan.messages)], dtype=np.int64)
        columns = {key: np.asarray(column, dtype=np.float64) for key, column in self.times.items()}
        return Times(
            **columns, cause=np.asarray(self.cause, dtype=np.int64), cause_sent=np.asarray(self.cause_sent, dtype=np.bool_),
            reduce_cause=np.asarray(self.reduce_cause, dtype=np.int64), limit=limit,
            joined=np.asarray(self.joined, dtype=np.float64),
        )  # fmt: skip

    def _at(self, delay: float, kind: int, node: int, version: int = 0) -> None:
        """Events of one instant are handled by kind, then node number, never by creation."""
        priority = EventPriority(kind * self.plan.nodes + node)
        self.env.schedule(_Timer(self.env, kind, node, version, self._fire), priority, delay)

    def _fire(self, event: simpy.Event) -> None:
        assert isinstance(event, _Timer)
        kind, node = event.kind, event.node
        if kind == SETTLE:
            self._settle()
        elif kind == FLOW_END:
            if event.version == self.version[node]:
                self._flow_end(node)
        elif kind == FLOW_START:
            self._flow_start(node)
        elif kind == ARRIVAL:
            self._arrive(node)
        elif kind == REDUCED:
            self._reduced(node)
        else:
            self.joined[node - self.plan.messages] = self.env.now
            self._release(node, sent=False)

    def _release(self, node: int, *, sent: bool) -> None:
        """Node was sent, or is done: count down those that wait for that."""
        start, after, on_sent = self.successors
        for i in range(start[node], start[node + 1]):
            if on_sent[i] == sent:
                other = after[i]
                self.waits[other] -= 1
                if self.waits[other] == 0:
                    self.cause[other], self.cause_sent[other] = node, sent
                    self._ready(other)

    def _ready(self, node: int) -> None:
        if node >= self.plan.messages:
            self._at(float(self.plan.delay[node - self.plan.messages]), JOINED, node)
        else:
            self._next(self.queue[node])

    def _next(self, queue: int) -> None:
        """The head of a queue starts when the queue is free and nothing holds it back."""
        line = self.line[queue]
        if line and not self.queue_busy[queue] and self.waits[line[-1]] == 0:
            message = line.pop()
            self.queue_busy[queue] = True
            self.times["start"][message] = self.env.now
            if self.model.overhead:
                self._at(self.model.overhead, FLOW_START, message)
            else:
                self._flow_start(message)

    def _flow_start(self, message: int) -> None:
        route = self.plan.routes[self.route[message]]
        if not route.resources or not self.bytes[message]:  # within a place, or nothing but a signal
            self.times["flow"][message] = self.env.now
            self._at(0.0, FLOW_END, message)
            return
        self.sharing.add(message, route)
        self._dirty()

    def _dirty(self) -> None:
        if not self.settling:
            self.settling = True
            self._at(0.0, SETTLE, 0)

    def _settle(self) -> None:
        """Starts and ends of this instant are all in: give out new rates."""
        self.settling = False
        now = self.env.now
        for message, rate in self.sharing.settle():
            if self.rate[message]:
                self.left[message] = max(0.0, self.left[message] - self.rate[message] * (now - self.since[message]))
            else:
                self.times["flow"][message] = now
            self.rate[message], self.since[message] = rate, now
            self.version[message] += 1
            self._at(self.left[message] / rate, FLOW_END, message, self.version[message])

    def _flow_end(self, message: int) -> None:
        self.times["sent"][message] = self.env.now
        if self.rate[message]:
            self.sharing.remove(message)
            self._dirty()
        queue = self.queue[message]
        self.queue_busy[queue] = False
        if self.line[queue]:
            head = self.line[queue][-1]
            if self.waits[head] == 0:  # held back by the queue alone
                self.cause[head], self.cause_sent[head] = message, True
        self._at(self.plan.routes[self.route[message]].latency, ARRIVAL, message)
        self._release(message, sent=True)
        self._next(queue)

    def _arrive(self, message: int) -> None:
        now = self.env.now
        self.times["arrived"][message] = self.times["reducing"][message] = now
        if self._work(message) == 0:
            self._end(message)
            return
        line = self.reductions[self.reducer[message]]
        line.append(message)
        if len(line) == 1:
            self._at(self._work(message), REDUCED, message)

    def _work(self, message: int) -> float:
        return float(self.reduced[message] / self.model.reduce_rate)

    def _reduced(self, message: int) -> None:
        """The reducer takes the next in line."""
        self._end(message)
        now, line = self.env.now, self.reductions[self.reducer[message]]
        line.popleft()
        if line:
            if now > self.times["arrived"][line[0]]:
                self.reduce_cause[line[0]] = message
            self.times["reducing"][line[0]] = now
            self._at(self._work(line[0]), REDUCED, line[0])

    def _end(self, message: int) -> None:
        self.times["end"][message] = self.env.now
        self.done += 1
        if self.progress and self.done % REPORT_EVERY == 0:
            self.progress(self.done, self.plan.messages)
        self._release(message, sent=False)
