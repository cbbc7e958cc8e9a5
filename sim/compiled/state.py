"""What the compiled engine plays on: the plan as 32-bit columns, and one record for each queue, resource and reducer."""

from __future__ import annotations

from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sim.model import Model
from sim.plan import Plan

Array = NDArray[Any]

OVER, MORE, FULL = range(3)
"""How a slice of the loop ends: nothing is left to happen; the slice is used up; ``arrivals`` needs room."""

FLOW = np.dtype([
    ("left", "f8"), ("rate", "f8"), ("since", "f8"),  # bytes left at ``since``, and the rate from then on (0: none yet)
    ("until", "f8"),  # when it ends
    ("mark", "i8"),  # the last search for components that met it
    ("head", "i4"),  # the message that leaves next (-1: none)
    ("message", "i4"),  # the message that holds the queue (-1: it is free)
    ("wants", "i4"),  # the route that the message flows over (-1: none)
    ("held", "i4"),  # the route under which the resources know it (-1: none)
    ("limit", "i4"),  # the resource that holds it to its rate
    ("slot", "i4"), ("width", "i4"), ("changed", "i4"),  # its first slot, and how many it stands in
    ("before", "i4"), ("behind", "i4"), ("train", "i4"),  # queues whose flows end before and after it (``ends.py``), and which train
], align=True)  # fmt: skip
"""One a queue: at most one message of it flows at a time."""
SLOT = np.dtype([("weight", "f8"), ("resource", "i4"), ("queue", "i4"), ("before", "i4"), ("behind", "i4")], align=True)
"""A flow in the line of a resource."""
RESOURCE = np.dtype([
    ("capacity", "f8"), ("left", "f8"), ("weight", "f8"), ("share", "f8"),  # while rates are filled: left and weight of open flows
    ("mark", "i8"), ("first", "i4"), ("last", "i4"), ("count", "i4"), ("open", "i4"), ("touched", "i4"), ("full", "i4"),
], align=True)  # fmt: skip
EVENT = np.dtype([("time", "f8"), ("node", "i4"), ("slot", "i4")], align=True)
"""An entry of a heap (``heap.py``)."""
LINE = np.dtype([("delay", "f8"), ("first", "i4"), ("last", "i4")], align=True)
"""Messages on the wire for one latency, in order of arrival; or those in line for a reducer."""
CLOCK = np.dtype([
    ("now", "f8"), ("overhead", "f8"), ("reduce_rate", "f8"), ("mark", "i8"),
    ("done", "i4"), ("changed", "i4"), ("touched", "i4"), ("fair", "i4"), ("begun", "i4"),
], align=True)  # fmt: skip


class Given(NamedTuple):
    """Columns of the plan; those of routes are ``resource[first[i]:first[i+1]]``."""

    start: Array
    after: Array
    on_sent: Array
    bytes: Array
    reduced: Array
    route: Array
    queue: Array
    reducer: Array
    delay: Array
    route_line: Array
    route_first: Array
    route_resource: Array
    route_weight: Array


class Out(NamedTuple):
    """Columns of ``Times``. Columns that cannot differ are one array."""

    start: Array
    flow: Array
    sent: Array
    arrived: Array
    reducing: Array
    end: Array
    cause: Array
    cause_sent: Array
    reduce_cause: Array
    limit: Array
    joined: Array


class State(NamedTuple):
    """Everything that changes, so that a run can stop and go on. A message stands in one line at a time (its queue's, the wire's, the
    reducer's), so ``behind`` serves them all."""

    clock: Array
    waits: Array
    behind: Array
    flows: Array
    slots: Array
    resources: Array
    incast: Array
    wires: Array
    reducers: Array
    ends: Array
    ends_at: Array
    trains: Array
    arrivals: Array
    reductions: Array
    joins: Array
    starts: Array
    shares: Array
    nowhere: Array
    changed: Array
    touched: Array
    found_flows: Array
    found_resources: Array
    full: Array
    new_rate: Array


def given(plan: Plan) -> Given:
    """The plan's own arrays where they are 32-bit already."""
    width = np.fromiter((len(r.resources) for r in plan.routes), np.int32, len(plan.routes))
    latency = np.fromiter((r.latency for r in plan.routes), np.float64, len(plan.routes))
    total = int(width.sum())
    return Given(
        start=_narrow(plan.start), after=_narrow(plan.after), on_sent=np.ascontiguousarray(plan.on_sent),
        bytes=_sizes(plan.bytes), reduced=_sizes(plan.reduced), route=_narrow(plan.route), queue=_narrow(plan.queue),
        reducer=_narrow(plan.reducer), delay=np.ascontiguousarray(plan.delay, dtype=np.float64),
        route_line=np.unique(latency, return_inverse=True)[1].astype(np.int32),
        route_first=np.concatenate([[0], np.cumsum(width)]).astype(np.int32),
        route_resource=np.fromiter(chain.from_iterable(r.resources for r in plan.routes), np.int32, total),
        route_weight=np.fromiter(chain.from_iterable(r.weights for r in plan.routes), np.float64, total),
    )  # fmt: skip


def out(plan: Plan, model: Model) -> Out:
    m = plan.messages
    start, sent, arrived = np.zeros(m), np.zeros(m), np.zeros(m)
    reduces = np.isfinite(model.reduce_rate)
    return Out(
        start, start if model.overhead == 0 and model.sharing == "fair" else np.zeros(m), sent,
        arrived, np.zeros(m) if reduces else arrived, np.zeros(m) if reduces else arrived,
        cause=np.full(plan.nodes, -1, np.int32), cause_sent=np.zeros(plan.nodes, np.bool_),
        reduce_cause=np.full(m if reduces else 0, -1, np.int32),  # nobody waits for a reducer that takes no time
        limit=np.full(m, -1, np.int32), joined=np.zeros(plan.nodes - m),
    )  # fmt: skip


def state(plan: Plan, model: Model, columns: Given) -> State:
    """Time 0, nothing ready yet."""
    queues = int(columns.queue.max(initial=-1)) + 1
    flows = np.zeros(queues, FLOW)
    for name in ("head", "message", "wants", "held", "limit"):
        flows[name] = -1
    width = np.zeros(queues + 1, np.int32)
    np.maximum.at(width, columns.queue + 1, np.diff(columns.route_first)[columns.route])
    first = np.cumsum(width, dtype=np.int64)
    flows["slot"] = first[:-1]
    resources = np.zeros(len(plan.resources), RESOURCE)
    resources["capacity"] = np.fromiter((r.capacity for r in plan.resources), np.float64, len(resources))
    resources["first"] = resources["last"] = -1
    latency = np.unique([r.latency for r in plan.routes])
    wires = np.zeros(len(latency), LINE)
    wires["delay"] = latency
    reducers = np.zeros(int(columns.reducer.max(initial=-1)) + 1, LINE)
    wires["first"] = reducers["first"] = -1
    clock = np.zeros(1, CLOCK)
    clock["overhead"], clock["reduce_rate"], clock["fair"] = model.overhead, model.reduce_rate, model.sharing == "fair"
    many = max(queues, len(resources), len(plan.delay), len(reducers), len(wires))
    return State(
        clock, waits=np.array(plan.waits, dtype=np.int32), behind=np.full(plan.messages, -1, np.int32), flows=flows,
        slots=np.zeros(int(first[-1]), SLOT), resources=resources,
        incast=np.asarray([r.incast for r in plan.resources] if model.incast else [], dtype=np.float64), wires=wires, reducers=reducers,
        ends=_heap(queues), ends_at=np.zeros(queues, np.int32), trains=np.full(TRAINS, -1, np.int32), arrivals=_heap(len(wires) + SPARE),
        reductions=_heap(len(reducers)), joins=_heap(len(plan.delay)), starts=_heap(queues),
        shares=_heap(max(queues, len(resources))), nowhere=np.zeros(many + 1, np.int32),
        changed=np.zeros(queues, np.int32), touched=np.zeros(len(resources), np.int32), found_flows=np.zeros(queues, np.int32),
        found_resources=np.zeros(len(resources), np.int32), full=np.zeros(len(resources), np.int32),
        new_rate=np.zeros(queues),
    )  # fmt: skip


def _heap(entries: int) -> Array:
    """An empty heap with room for so many."""
    heap = np.zeros(entries + 2, EVENT)
    heap["time"][1] = np.inf
    return heap


TRAINS = 8
"""Orders in which flows end that are told apart."""
SPARE = 1024
"""Arrivals out of order that there is room for at first."""


def _narrow(column: Array) -> Array:
    return np.ascontiguousarray(column, dtype=np.int32)


def _sizes(column: Array) -> Array:
    """Shape [messages, 32-bit words of a number]: one type for both widths. Numba runs on little-endian machines alone."""
    width = np.int32 if column.dtype == np.int32 else np.int64
    return np.ascontiguousarray(column, dtype=width).view(np.int32).reshape(len(column), -1 if len(column) else 1)
