"""Max-min fair rates of one component (flows connected by the resources they share) by progressive filling: ``FairSharing._fill``."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.compiled.columns import slots_of
from sim.compiled.heap import pop, push, replace
from sim.compiled.jit import inlined
from sim.sharing import SAME

SCANS = 3
"""Rounds that look at all open resources; symmetric steps need no more. Later rounds keep a heap of shares, unless resources are few."""
FEW = 32


@inlined
def component(s: Any, resource: int) -> int:
    """Fill the component of a resource. Returns how many flows ``found_flows`` names; their rates are in ``new_rate``."""
    flows, resources = _find(s, resource)
    share, frozen, rounds = 0.0, 0, 0
    while frozen < flows:
        rounds += 1
        if rounds <= SCANS or resources <= FEW:
            share, full, resources = _scan(s, share, resources)
        else:
            if rounds == SCANS + 1:
                _heap_up(s, resources)
            share, full = _pick(s, share)
        if frozen == 0 and _all_at_once(s, flows, share, full):
            break
        for i in range(full):
            slot = s.resources[s.full[i]].first
            while slot >= 0:
                entry = s.slots[slot]
                if s.flows[entry.queue].mark == s.clock[0].mark:
                    _freeze(s, entry.queue, share)
                    frozen += 1
                slot = entry.behind
        for i in range(full):
            s.resources[s.full[i]].full = 0
    s.shares[0].node = 0
    s.shares[1].time = np.inf
    return int(flows)


@inlined
def _all_at_once(s: Any, flows: int, share: float, full: int) -> bool:
    """Whether every flow of the component uses every full resource; if so, their rates."""
    limit = len(s.resources)
    for i in range(full):
        if s.resources[s.full[i]].count < flows:
            return False
        limit = min(limit, s.full[i])
    for i in range(full):
        s.resources[s.full[i]].full = 0
    for i in range(flows):
        queue = s.found_flows[i]
        s.flows[queue].limit = limit
        s.new_rate[queue] = share
    return True


@inlined
def _find(s: Any, resource: int) -> Any:
    """Flows and resources reached from a resource; their shares are those of all flows at once."""
    mark = s.clock[0].mark
    s.found_resources[0] = resource
    s.resources[resource].mark = mark
    flows, resources, i = 0, 1, 0
    while i < resources:
        here = s.resources[s.found_resources[i]]
        here.left, here.weight, here.open = here.capacity, 0.0, here.count
        if len(s.incast):
            here.left /= 1 + s.incast[s.found_resources[i]] * (here.count - 1)
        slot = here.first
        while slot >= 0:
            entry = s.slots[slot]
            here.weight += entry.weight
            flow = s.flows[entry.queue]
            if flow.mark < mark:
                flow.mark = mark
                s.found_flows[flows] = entry.queue
                flows += 1
                for k in slots_of(flow):
                    there = s.resources[s.slots[k].resource]
                    if there.mark < mark:
                        there.mark = mark
                        s.found_resources[resources] = s.slots[k].resource
                        resources += 1
            slot = entry.behind
        i += 1
    return flows, resources


@inlined
def _scan(s: Any, share: float, resources: int) -> Any:
    """The next share, how many resources are full at it (``full``), and how many are still open (first in ``found_resources``)."""
    least, left = np.inf, 0
    for i in range(resources):
        index = s.found_resources[i]
        resource = s.resources[index]
        if resource.open:
            s.found_resources[left] = index
            left += 1
            resource.share = resource.left / resource.weight
            least = min(least, resource.share)
    share = max(share, least)  # never falls in exact arithmetic
    full = 0
    for i in range(left):
        index = s.found_resources[i]
        if s.resources[index].share <= share * SAME:
            s.resources[index].full = 1
            s.full[full] = index
            full += 1
    return share, full, left


@inlined
def _heap_up(s: Any, resources: int) -> None:
    for i in range(resources):
        resource = s.resources[s.found_resources[i]]
        if resource.open:
            push(s.shares, s.nowhere, resource.left / resource.weight, s.found_resources[i], 0)


@inlined
def _pick(s: Any, share: float) -> Any:
    """As ``_scan``, from the heap: shares only grow, so an entry is a lower bound, looked at again when it comes to the top."""
    full, bound = 0, np.inf
    while s.shares[1].time <= bound and s.shares[0].node:
        index = s.shares[1].node
        resource = s.resources[index]
        if not resource.open:
            pop(s.shares, s.nowhere)
            continue
        now = resource.left / resource.weight
        if now > s.shares[1].time:
            replace(s.shares, s.nowhere, now, index, 0)
            continue
        if not full:
            share = max(share, now)
            bound = share * SAME
        pop(s.shares, s.nowhere)
        resource.full = 1
        s.full[full] = index
        full += 1
    return share, full


@inlined
def _freeze(s: Any, queue: int, share: float) -> None:
    """A flow has its rate; the lowest of its full resources is its limit."""
    flow = s.flows[queue]
    flow.mark += 1
    flow.limit = len(s.resources)
    s.new_rate[queue] = share
    for slot in slots_of(flow):
        entry = s.slots[slot]
        resource = s.resources[entry.resource]
        resource.left = max(0.0, resource.left - share * entry.weight)
        resource.weight -= entry.weight
        resource.open -= 1
        if resource.full:
            flow.limit = min(flow.limit, entry.resource)
