"""What the max-plus evaluator leaves behind, for the first size as any engine does, and the times of all sizes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from algorithms.launch import Launch, Trace
from algorithms.steps import in_blocks
from sim.critical_path import CriticalPath
from sim.layout import Sizes
from sim.maxplus.rows import Floats, Ints
from sim.played import no_trace, nodes_of
from sim.routes import Resource, Route, RouteTable

TERMS = ("overhead_s", "latency_s", "reduce_s", "wait_s")


@dataclass(frozen=True, slots=True, eq=False)
class Sends:
    """Columns over all sends of all launches, the times of a trace [s]."""

    start: Floats
    sent: Floats
    arrived: Floats
    end: Floats


@dataclass(frozen=True, eq=False)
class Outcome:
    """``times``: shape [launches, sizes], when each is done; ``terms``: shape [launches, sizes, len(TERMS)], of the chain that ends a
    launch last (the rest of the time is bandwidth). For the first size: ``route_bytes``, ``route_wire`` (with headers), and bytes
    ``sent`` by each place of each launch; ``sends`` if asked for."""

    launches: tuple[Launch, ...]
    times: Floats
    terms: Floats
    table: RouteTable
    route_bytes: Ints
    route_wire: Ints
    sent: tuple[Ints, ...]
    sends: Sends | None

    @property
    def resources(self) -> Sequence[Resource]:
        return self.table.resources

    @property
    def routes(self) -> Sequence[Route]:
        return self.table.routes

    @property
    def ends(self) -> Sequence[float]:
        """Per launch, when it is done [s]."""
        ends: list[float] = self.times[:, 0].tolist()
        return ends

    def rank_bytes(self, launch: int) -> Ints:
        """Shape [places]: bytes that each place of a launch sent to another."""
        return self.sent[launch]

    def critical_path(self) -> CriticalPath:
        """Terms of the chain that ends last; its messages, and which link set the rate of each, are not kept."""
        last = int(np.argmax(self.times[:, 0]))
        terms = dict(zip(TERMS, self.terms[last, 0].tolist(), strict=True))
        bandwidth = float(self.times[last, 0]) - sum(terms.values())
        return CriticalPath(**terms, bandwidth_s=max(0.0, bandwidth), bandwidth_by={}, messages=())

    @cached_property
    def trace(self) -> Trace:
        """One row a send."""
        schedules = [(number, launch.schedule) for number, launch in enumerate(self.launches) if launch.schedule]
        if self.sends is None:
            raise no_trace(sum(len(schedule) for _, schedule in schedules))
        columns: list[list[Ints]] = [[np.zeros(0, dtype=np.int64)] for _ in range(5)]
        for number, schedule in schedules:
            sizes, done = Sizes(self.launches[number]), 0
            for block in in_blocks(schedule):
                index = done + np.arange(len(block))
                parts = (np.full(len(block), number), index, sizes.of(block, done), block.src, block.dst)
                for column, part in zip(columns, parts, strict=True):
                    column.append(part)
                done += len(block)
        launch, send, nbytes, src, dst = (np.concatenate(column) for column in columns)
        times = self.sends
        return Trace(launch, send, times.start, times.sent, times.arrived, times.end, nbytes, src, dst, nodes_of(self.launches))
