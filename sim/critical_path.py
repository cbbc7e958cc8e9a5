"""What the time was spent on: the chain of events that ends last, walked back to time zero."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from sim.plan import Plan
from sim.times import Times


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """Seconds on the chain, which add up to the time. ``bandwidth_by`` splits the bandwidth term by the link (source, destination)
    or node port (one of them empty) that set the rate; ``messages`` is the chain, first to last."""

    overhead_s: float
    latency_s: float
    bandwidth_s: float
    reduce_s: float
    wait_s: float
    bandwidth_by: Mapping[tuple[str, str], float]
    messages: tuple[int, ...]


def critical_path(plan: Plan, times: Times, overhead: float) -> CriticalPath:
    """Walk back from the message or compute that ends last. Waiting is what no other term explains: a start, compute, a FIFO link."""
    terms = dict.fromkeys(("overhead_s", "latency_s", "bandwidth_s", "reduce_s", "wait_s"), 0.0)
    by: dict[tuple[str, str], float] = defaultdict(float)
    chain: list[int] = []
    ends = np.concatenate([times.end, times.joined])  # compute may end last
    node, sent_only = (int(np.argmax(ends)), False) if len(ends) else (-1, False)
    while node >= 0:
        if node >= plan.messages:
            terms["wait_s"] += float(plan.delay[node - plan.messages])
            node, sent_only = int(times.cause[node]), bool(times.cause_sent[node])
            continue
        chain.append(node)
        if not sent_only:
            terms["reduce_s"] += times.end[node] - times.reducing[node]
            if times.reduce_cause[node] >= 0:  # began when another reduction ended
                node = int(times.reduce_cause[node])
                continue
            terms["latency_s"] += times.arrived[node] - times.sent[node]
        flowing = times.sent[node] - times.flow[node]
        terms["bandwidth_s"] += flowing
        if times.limit[node] >= 0:
            slowest = plan.resources[times.limit[node]]
            by[slowest.src, slowest.dst] += flowing
        paid = min(overhead, times.flow[node] - times.start[node])
        terms["overhead_s"] += paid
        terms["wait_s"] += times.flow[node] - times.start[node] - paid
        node, sent_only = int(times.cause[node]), bool(times.cause_sent[node])
    return CriticalPath(**{key: float(value) for key, value in terms.items()}, bandwidth_by=dict(by), messages=tuple(reversed(chain)))
