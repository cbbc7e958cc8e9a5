"""What came out of a simulation, in SI units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from algorithms.launch import Launch, Trace
from sim.critical_path import CriticalPath, critical_path
from sim.event import Times
from sim.model import Model
from sim.plan import Plan
from topologies.graph import Topology


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """Traffic of one direction of a link: bytes, and the seconds they take at its full bandwidth."""

    src: str
    dst: str
    bytes: int
    busy_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Inputs, trace, and what follows from them."""

    topology: Topology
    launches: tuple[Launch, ...]
    model: Model
    engine: str
    trace: Trace
    plan: Plan = field(repr=False)
    times: Times = field(repr=False)

    @property
    def time(self) -> float:
        """End of the last send (or compute) [s]."""
        return max(self.launch_end(i) for i in range(len(self.launches)))

    def launch_end(self, launch: int) -> float:
        """When one launch is done [s]."""
        return float(self.ends[launch])

    @property
    def ends(self) -> Sequence[float]:
        """Per launch, when it is done [s]; a compute launch ends its duration after what it waited for."""
        ends: list[float] = []
        for number, launch in enumerate(self.launches):
            began = max([launch.start, *(ends[other] for other in launch.after)])
            mine = self.trace.end[self.trace.launch == number]
            ends.append(float(mine.max(initial=began)) if launch.schedule else began + launch.duration)
        return ends

    def algbw(self, launch: int = 0) -> float:
        """Bytes over seconds since the launch could begin, as nccl-tests prints it [B/s]; 0 for an empty launch."""
        asked = self.launches[launch]
        took = self.launch_end(launch) - max([asked.start, *(self.launch_end(other) for other in asked.after)])
        return self.launches[launch].nbytes / took if took > 0 else 0.0

    def busbw(self, launch: int = 0) -> float | None:
        """algbw times the collective's factor (nccl-tests doc/PERFORMANCE.md) [B/s]; None for a barrier or compute."""
        schedule = self.launches[launch].schedule
        factor = schedule.collective.busbw_factor(schedule.nranks) if schedule else None
        return None if factor is None else self.algbw(launch) * factor

    def link_loads(self) -> list[LinkLoad]:
        """Every link that carried bytes, most busy first (then by name)."""
        carried = np.zeros(len(self.plan.resources))
        per_route = np.bincount(self.plan.route, weights=self.plan.bytes, minlength=len(self.plan.routes))
        for route, nbytes in zip(self.plan.routes, per_route, strict=True):
            for resource, weight in zip(route.resources, route.weights, strict=True):
                carried[resource] += nbytes * weight
        loads = [
            LinkLoad(r.src, r.dst, round(nbytes), nbytes / r.capacity)
            for r, nbytes in zip(self.plan.resources, carried.tolist(), strict=True)
            if r.src and r.dst and nbytes
        ]
        return sorted(loads, key=lambda load: (-load.busy_s, load.src, load.dst))

    def critical_path(self) -> CriticalPath:
        """The chain of events that ends last, and what it spent its time on."""
        return critical_path(self.plan, self.times, self.model.overhead)

    def bytes_per_rank(self, launch: int = 0) -> NDArray[np.int64]:
        """Shape [nranks]: bytes that each rank sent."""
        schedule = self.launches[launch].schedule
        return self.trace.bytes_sent(launch, schedule.nranks if schedule else 0)
