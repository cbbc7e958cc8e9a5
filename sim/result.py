"""What came out of a simulation, in SI units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from algorithms.launch import Launch, Trace
from sim.critical_path import CriticalPath
from sim.model import Model
from sim.played import Played
from topologies.graph import Topology


@dataclass(frozen=True, slots=True)
class LinkLoad:
    """Traffic of one direction of a link: bytes of payload, and the seconds they take with their headers at all the link can carry."""

    src: str
    dst: str
    bytes: int
    busy_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """Inputs, and what the engine left: its trace, and what follows from it."""

    topology: Topology
    launches: tuple[Launch, ...]
    model: Model
    engine: str
    played: Played = field(repr=False)

    @property
    def trace(self) -> Trace:
        """What happened to each send. Raises ScheduleError for a run that was asked to sum up instead."""
        return self.played.trace

    @property
    def time(self) -> float:
        """End of the last send (or compute) [s]."""
        return max(self.ends)

    def launch_end(self, launch: int) -> float:
        """When one launch is done [s]."""
        return self.ends[launch]

    @property
    def ends(self) -> Sequence[float]:
        """Per launch, when it is done [s]; a compute launch ends its duration after what it waited for."""
        return self.played.ends

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
        routes, resources = self.played.routes, self.played.resources
        hops = np.fromiter((len(route.resources) for route in routes), dtype=np.int64, count=len(routes))
        used = np.fromiter(chain.from_iterable(route.resources for route in routes), dtype=np.int64, count=int(hops.sum()))
        weights = np.fromiter(chain.from_iterable(route.weights for route in routes), dtype=np.float64, count=len(used))
        payload, wire = (
            np.bincount(used, weights=np.repeat(carried, hops) * weights, minlength=len(resources)).tolist()
            for carried in (self.played.route_bytes, self.played.route_wire)
        )
        loads = [
            LinkLoad(r.src, r.dst, round(nbytes), on_wire / r.capacity)
            for r, nbytes, on_wire in zip(resources, payload, wire, strict=True)
            if r.src and r.dst and nbytes
        ]
        return sorted(loads, key=lambda load: (-load.busy_s, load.src, load.dst))

    def critical_path(self) -> CriticalPath:
        """The chain of events that ends last, and what it spent its time on."""
        return self.played.critical_path()

    def bytes_per_rank(self, launch: int = 0) -> NDArray[np.int64]:
        """Shape [nranks]: bytes that each rank sent."""
        schedule = self.launches[launch].schedule
        return self.played.rank_bytes(launch)[: schedule.nranks if schedule else 0]
