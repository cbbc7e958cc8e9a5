"""Who uses which resource, and new rates at the end of an instant: ``sim.sharing`` on arrays. A flow is named by its queue."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.compiled.columns import slots_of
from sim.compiled.ends import ends, ends_else
from sim.compiled.filling import component
from sim.compiled.heap import pop, push
from sim.compiled.jit import called, inlined


@inlined
def want(s: Any, queue: int, route: int) -> None:
    """The message of a queue flows over a route from the next settling on, or no more (-1)."""
    flow, clock = s.flows[queue], s.clock[0]
    flow.wants = route
    if not flow.changed:
        flow.changed = 1
        s.changed[clock.changed] = queue
        clock.changed += 1


@inlined
def flows_at(s: Any, t: Any, queue: int, rate: float, now: float) -> None:
    """A flow has this rate from now on."""
    flow = s.flows[queue]
    if rate == flow.rate:
        return
    if flow.rate > 0:
        flow.left = max(0.0, flow.left - flow.rate * (now - flow.since))
        flow.rate, flow.since = rate, now
        ends_else(s, queue, now + flow.left / rate)
    else:
        flow.rate = rate
        _begins(s, t, queue, now)


@inlined
def _begins(s: Any, t: Any, queue: int, now: float) -> None:
    flow = s.flows[queue]
    t.flow[flow.message] = now
    flow.since = now
    ends(s, queue, now + flow.left / flow.rate)


@called
def settle_fair(p: Any, s: Any, t: Any, now: float) -> int:
    """Max-min fair rates for all flows that share, over others, a resource with a start or an end. Returns flows looked at."""
    clock = s.clock[0]
    clock.mark += 2  # flows and resources marked from here on were met in this settling; flows marked + 1 have their rate
    for i in range(clock.changed):
        queue = s.changed[i]
        flow = s.flows[queue]
        if flow.held != flow.wants:  # else the next message takes the place of the last: nobody's rate changes, nor its own
            if flow.held >= 0:
                _leave(s, queue)
            flow.rate = 0.0
            if flow.wants >= 0:
                _join(p, s, queue)
    for i in range(clock.changed):
        queue = s.changed[i]
        flow = s.flows[queue]
        flow.changed = 0
        if flow.rate > 0:
            _begins(s, t, queue, now)
        elif flow.wants >= 0 and _alone(s, queue):
            flow.mark = clock.mark + 1
            flows_at(s, t, queue, _full_rate(s, queue), now)
        elif flow.wants >= 0:
            for slot in slots_of(s.flows[queue]):
                _touch(s, s.slots[slot].resource)
    looked_at = clock.changed
    for i in range(clock.touched):
        resource = s.resources[s.touched[i]]
        resource.touched = 0
        if resource.count and resource.mark < clock.mark and s.flows[s.slots[resource.first].queue].mark <= clock.mark:
            flows = component(s, s.touched[i])
            for k in range(flows):
                queue = s.found_flows[k]
                flows_at(s, t, queue, s.new_rate[queue], now)
            looked_at += flows
    clock.changed = clock.touched = 0
    return int(looked_at)


@called
def settle_fifo(p: Any, s: Any, t: Any, now: float) -> int:
    """The resources that were left serve the next in line; new flows stand in line, lower messages first."""
    clock = s.clock[0]
    for i in range(clock.changed):
        queue = s.changed[i]
        flow = s.flows[queue]
        flow.changed = 0
        if flow.held >= 0:
            _leave(s, queue)
        flow.rate = 0.0
        if flow.wants >= 0:
            push(s.shares, s.nowhere, 0.0, flow.message, queue)
    while s.shares[0].node:
        queue = s.shares[1].slot
        pop(s.shares, s.nowhere)
        _join(p, s, queue)
        for slot in slots_of(s.flows[queue]):
            _touch(s, s.slots[slot].resource)
    for i in range(clock.touched):
        resource = s.resources[s.touched[i]]
        resource.touched = 0
        if resource.count:
            queue = s.slots[resource.first].queue
            if s.flows[queue].rate == 0 and _first_in_line(s, queue):
                flows_at(s, t, queue, _full_rate(s, queue), now)
    looked_at = clock.changed
    clock.changed = clock.touched = 0
    return int(looked_at)


@inlined
def _touch(s: Any, index: int) -> None:
    resource, clock = s.resources[index], s.clock[0]
    if not resource.touched:
        resource.touched = 1
        s.touched[clock.touched] = index
        clock.touched += 1


@inlined
def _join(p: Any, s: Any, queue: int) -> None:
    """Stand in the line of each resource of the route."""
    flow = s.flows[queue]
    flow.held = flow.wants
    first = p.route_first[flow.held]
    flow.width = p.route_first[flow.held + 1] - first
    for slot in slots_of(flow):
        entry = s.slots[slot]
        entry.queue, entry.resource = queue, p.route_resource[first + slot - flow.slot]
        entry.weight = p.route_weight[first + slot - flow.slot]
        resource = s.resources[entry.resource]
        entry.before, entry.behind = resource.last, -1
        if resource.last >= 0:
            s.slots[resource.last].behind = slot
        else:
            resource.first = slot
        resource.last = slot
        resource.count += 1


@inlined
def _leave(s: Any, queue: int) -> None:
    """Leave the lines, and touch the resources."""
    for slot in slots_of(s.flows[queue]):
        entry = s.slots[slot]
        resource = s.resources[entry.resource]
        if entry.before >= 0:
            s.slots[entry.before].behind = entry.behind
        else:
            resource.first = entry.behind
        if entry.behind >= 0:
            s.slots[entry.behind].before = entry.before
        else:
            resource.last = entry.before
        resource.count -= 1
        _touch(s, entry.resource)
    s.flows[queue].held = -1


@inlined
def _alone(s: Any, queue: int) -> bool:
    for slot in slots_of(s.flows[queue]):  # noqa: SIM110  a generator cannot be inlined
        if s.resources[s.slots[slot].resource].count != 1:
            return False
    return True


@inlined
def _first_in_line(s: Any, queue: int) -> bool:
    for slot in slots_of(s.flows[queue]):  # noqa: SIM110  the same
        if s.resources[s.slots[slot].resource].first != slot:
            return False
    return True


@inlined
def _full_rate(s: Any, queue: int) -> float:
    """The rate of a flow that has its resources for itself; of equal limits the lowest resource."""
    flow = s.flows[queue]
    least = np.inf
    for slot in slots_of(s.flows[queue]):
        entry = s.slots[slot]
        rate = s.resources[entry.resource].capacity / entry.weight
        if rate < least or (rate == least and entry.resource < flow.limit):
            least, flow.limit = rate, entry.resource
    return least
