"""What an engine leaves behind: who ended when, what each route carried, and what the time was spent on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from algorithms.launch import Launch, Trace
from sim.critical_path import CriticalPath, critical_path
from sim.plan import Plan
from sim.routes import Resource, Route
from sim.times import Times
from topologies.errors import ScheduleError

Ints = NDArray[np.int64]


class Played(Protocol):
    """What ``Result`` reads, from any engine. Raises ScheduleError for a trace that was not kept."""

    @property
    def resources(self) -> Sequence[Resource]: ...
    @property
    def routes(self) -> Sequence[Route]: ...
    @property
    def route_bytes(self) -> Ints: ...
    @property
    def route_wire(self) -> Ints: ...
    @property
    def ends(self) -> Sequence[float]: ...
    @property
    def trace(self) -> Trace: ...
    def rank_bytes(self, launch: int) -> Ints: ...
    def critical_path(self) -> CriticalPath: ...


def nodes_of(launches: Sequence[Launch]) -> tuple[tuple[str, ...], ...]:
    """Per launch, the node of each place."""
    return tuple(launch.placement.nodes if launch.placement else () for launch in launches)


def no_trace(sends: int) -> ScheduleError:
    """The refusal of a trace that was not kept."""
    return ScheduleError(f"the {sends:,} sends of this run were summed up, not kept; ask for a trace, of fewer sends")


@dataclass(frozen=True, eq=False)
class PlayedPlan:
    """A plan and the times of its messages."""

    plan: Plan
    times: Times
    launches: tuple[Launch, ...]
    overhead: float

    @property
    def resources(self) -> Sequence[Resource]:
        return self.plan.resources

    @property
    def routes(self) -> Sequence[Route]:
        return self.plan.routes

    @cached_property
    def route_bytes(self) -> Ints:
        """Shape [routes]."""
        return _summed(self.plan.route, self.plan.payload, len(self.plan.routes))

    @cached_property
    def route_wire(self) -> Ints:
        """Shape [routes]: bytes with headers."""
        if self.plan.bytes is self.plan.payload:
            return self.route_bytes
        return _summed(self.plan.route, self.plan.bytes, len(self.plan.routes))

    @cached_property
    def ends(self) -> Sequence[float]:
        """Per launch, when it is done [s]; a compute launch ends its duration after what it waited for."""
        ends: list[float] = []
        for number, launch in enumerate(self.launches):
            began = max([launch.start, *(ends[other] for other in launch.after)])
            lo, hi = self.plan.first[number : number + 2]
            ends.append(float(self.times.end[lo:hi].max(initial=began)) if launch.schedule else began + launch.duration)
        return ends

    @cached_property
    def trace(self) -> Trace:
        """One row a send."""
        plan, times, of = self.plan, self.times, self.plan.message_of_send
        if len(of) < plan.messages:
            raise no_trace(plan.messages)
        return Trace(
            plan.send_launch, plan.send_index, times.start[of], times.sent[of], times.arrived[of], times.end[of],
            plan.send_bytes, plan.send_src, plan.send_dst, nodes_of(self.launches),
        )  # fmt: skip

    def rank_bytes(self, launch: int) -> Ints:
        """Shape [places]: bytes that each place of a launch sent to another."""
        return self.plan.sent[launch]

    def critical_path(self) -> CriticalPath:
        """The chain of events that ends last, and what it spent its time on."""
        return critical_path(self.plan, self.times, self.overhead)


BLOCK = 1 << 20


def _summed(index: Ints, amount: Ints, size: int) -> Ints:
    """Exact integer sums, in blocks whose float histogram is exact: no sum reaches 2**53."""
    total = np.zeros(size, dtype=np.int64)
    if amount.max(initial=0) >= 2**53 // BLOCK:
        np.add.at(total, index, amount)
        return total
    for lo in range(0, len(index), BLOCK):
        total += np.bincount(index[lo : lo + BLOCK], weights=amount[lo : lo + BLOCK], minlength=size).astype(np.int64)
    return total
