"""Loops of a schedule on the machine that the protocol sees -> the time from one call to the next."""

from __future__ import annotations

from algorithms.collectives import Collective
from algorithms.launch import Launch, Placement
from prediction.library.schedules import Loops
from prediction.library.sites import Ways
from sim.model import Model
from sim.simulate import simulate
from topologies.graph import Topology

STEADY = 48
"""Loops after which each adds as much as the one before: a pipeline is full, or all ranks are in step."""
SMALL = 2000
"""Sends that the event engine plays sooner than the compiled one."""


def period(machine: Topology, collective: Collective, loops: Loops, nbytes: int, overhead: float, ways: Ways) -> float:
    """Seconds a call adds when calls follow each other, as nccl-tests measures: a rooted collective's next call sets out before the last
    rank has what the one before sent."""
    few, many = min(STEADY, loops.many), loops.many

    def took(times: int) -> float:
        schedule = loops.again(loops.one, times)
        launch = Launch(schedule, max(1, round(nbytes * times / many)), Placement.of(machine, schedule), "int8")
        model = Model(overhead=overhead, overrides=ways.found, fifo_depth=loops.depth)
        return simulate(machine, [launch], model, "event" if len(schedule) <= SMALL else "compiled", traced=False).time

    if collective.rooted:
        return (took(2 * few) - took(few)) * many / few
    if many <= 2 * few:
        return took(many)
    half, full = took(few), took(2 * few)
    return full + (full - half) * (many - 2 * few) / few
