"""Engines by name: launches on a topology -> what happened, always as ``docs/model.md`` means it. Each is imported when used."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from algorithms.launch import Launch
from sim.model import Model
from sim.plan import Plan, make_plan
from sim.played import Played, PlayedPlan
from sim.times import Progress, Times
from topologies.errors import ScheduleError
from topologies.graph import Topology

SMALL = 20_000
"""Sends that the event engine plays in half a second; the compiled one may have to be compiled first."""
LARGE = 4_000_000
"""Sends above which steps are streamed if no link is shared; a plan takes 80 B a send and more."""

LARGEST = 40_000_000
"""Sends of which a plan of the compiled engine takes some 3 GB."""

Engine = Callable[[Topology, Sequence[Launch], Model, Progress | None, bool], tuple[str, Played]]
"""Returns the name of the engine that did it. With ``traced`` False sends are summed up, not kept."""


def event(topology: Topology, launches: Sequence[Launch], model: Model, progress: Progress | None, traced: bool) -> tuple[str, Played]:
    """SimPy, one event after the other: the reference."""
    from sim.event import run

    plan = make_plan(topology, launches, model, traced=traced)
    return "event", _played(plan, run(plan, model, progress), launches, model)


def compiled(topology: Topology, launches: Sequence[Launch], model: Model, progress: Progress | None, traced: bool) -> tuple[str, Played]:
    """The same on flat arrays, compiled by numba."""
    from sim.compiled.engine import play
    from sim.compiled.waits import Compiled

    plan = make_plan(topology, launches, model, Compiled(), traced=traced)
    return "compiled", _played(plan, play(plan, model, progress), launches, model)


def maxplus(topology: Topology, launches: Sequence[Launch], model: Model, progress: Progress | None, traced: bool) -> tuple[str, Played]:
    """Longest paths over steps. ScheduleError where links are shared."""
    from sim.maxplus.evaluator import evaluate
    from sim.maxplus.rounds import RefusedError

    try:
        return "maxplus", evaluate(topology, launches, model, traced=traced, progress=progress)
    except RefusedError as refused:
        raise ScheduleError(f"engine maxplus: {refused}; take engine compiled") from None


def auto(topology: Topology, launches: Sequence[Launch], model: Model, progress: Progress | None, traced: bool) -> tuple[str, Played]:
    """The event engine for few sends; the max-plus evaluator for very many, where it applies; else the compiled engine."""
    schedules = [launch.schedule for launch in launches if launch.schedule]
    sends = sum(len(schedule) for schedule in schedules)
    if sends <= SMALL and sum(schedule.chunks for schedule in schedules) <= 4 * SMALL:  # it looks at chunks one by one
        return event(topology, launches, model, progress, traced)
    if sends > LARGE and not traced:
        from sim.maxplus.evaluator import evaluate
        from sim.maxplus.rounds import RefusedError

        try:
            return "maxplus", evaluate(topology, launches, model, traced=traced, progress=progress)
        except RefusedError as refused:
            if sends > LARGEST:
                raise ScheduleError(f"{refused}; and {sends:,} sends are more than engine compiled plays ({LARGEST:,})") from None
    return compiled(topology, launches, model, progress, traced)


ENGINES: dict[str, Engine] = {"auto": auto, "event": event, "compiled": compiled, "maxplus": maxplus}


def _played(plan: Plan, times: Times, launches: Sequence[Launch], model: Model) -> Played:
    return PlayedPlan(plan, times, tuple(launches), model.overhead)
