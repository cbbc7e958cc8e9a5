"""Loops of a schedule on the machine that the protocol sees -> the time from one call to the next."""

from __future__ import annotations

from algorithms.launch import Launch, Placement
from prediction.library.schedules import Loops, check_sends
from prediction.library.sites import Ways
from sim.model import Model
from sim.simulate import simulate
from topologies.graph import Topology

SMALL = 2000
"""Sends that the event engine plays sooner than the compiled one."""


def period(machine: Topology, loops: Loops, nbytes: int, overhead: float, ways: Ways, *, overlapping: bool) -> float:
    """Seconds a call adds when calls follow each other, as nccl-tests measures. ``overlapping``: the next call sets out before the last
    rank has what the one before sent, as in a rooted collective, where no rank waits for all others."""
    few, many = min(loops.steady, loops.many), loops.many

    def took(times: int) -> float:
        check_sends(loops.one.name, loops.one.nranks, len(loops.one) * times)
        schedule = loops.again(loops.one, times)
        launch = Launch(schedule, max(1, round(nbytes * times / many)), Placement.of(machine, schedule), "int8")
        model = Model(overhead=overhead, overrides=ways.found, fifo_depth=loops.depth)
        return simulate(machine, [launch], model, "event" if len(schedule) <= SMALL else "compiled", traced=False).time

    if overlapping:
        return (took(2 * few) - took(few)) * many / few
    if many <= 2 * few:
        return took(many)
    half, full = took(few), took(2 * few)
    return full + (full - half) * (many - 2 * few) / few
