"""One call for one collective or many: lay out the launches, play them, return what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.collectives import collective
from algorithms.launch import Launch, Placement, Trace
from algorithms.registry import find
from sim import event
from sim.event import Progress, Times
from sim.model import Model, ModelError
from sim.plan import Plan, make_plan
from sim.result import Result
from topologies.errors import nearest
from topologies.graph import Topology

ENGINES = {"event": event.run}
"""Engines by name; every one keeps the meaning of ``docs/model.md``."""


def simulate(
    topology: Topology,
    launches: Sequence[Launch],
    model: Model | None = None,
    engine: str = "event",
    progress: Progress | None = None,
) -> Result:
    """Run launches on a topology, all at once but for their start times and ``after``. Raises ScheduleError or ModelError."""
    if engine not in ENGINES:
        raise ModelError(f'engine "{engine}" is not known{nearest(engine, ENGINES)}')
    model = model or Model()
    plan = make_plan(topology, launches, model)
    times = ENGINES[engine](plan, model, progress)
    return Result(topology, tuple(launches), model, engine, _trace(plan, times, launches), plan, times)


def run_collective(
    topology: Topology,
    collective_name: str,
    algorithm_name: str,
    nbytes: int,
    *,
    model: Model | None = None,
    engine: str = "event",
    progress: Progress | None = None,
    **built: Any,
) -> Result:
    """One collective by one algorithm over all GPUs of a topology; ``built`` as for ``make_launch``. Raises ScheduleError, ModelError."""
    return simulate(topology, [make_launch(topology, collective_name, algorithm_name, nbytes, **built)], model, engine, progress)


def make_launch(
    topology: Topology,
    collective_name: str,
    algorithm_name: str,
    nbytes: int,
    *,
    options: Mapping[str, Any] | None = None,
    channels: int = 1,
    slices: int = 1,
    dtype: str = "float32",
) -> Launch:
    """The launch of one collective over all GPUs. An algorithm that takes ``groups`` gets those of the topology that it names as its
    default (else the leaves), unless told."""
    chosen = find(collective(collective_name), algorithm_name)
    given = dict(options or {})
    for option in (option for option in chosen.options if option.type is tuple):
        given[option.name] = _groups(topology, given.get(option.name), option.default or "leaves")
    schedule = chosen.build(len(topology.gpus), channels=channels, slices=slices, **given)
    carried = 0 if chosen.collective.idempotent else nbytes  # a barrier's messages are signals
    launch = Launch(schedule, carried, Placement.of(topology, schedule), dtype)
    launch.elements  # noqa: B018  refuse a size that is not a whole number of elements before anything runs
    return launch


def _groups(topology: Topology, groups: Any, default: str) -> Any:
    """A group name of the topology (``servers``, ``leaves``) as ranks; anything else as it is. No leaves: all under one; another
    ``default`` that the topology lacks is left to the algorithm (None)."""
    if groups is None:
        groups = default if default in topology.groups or default == "leaves" else None
    if groups == "leaves" and groups not in topology.groups:
        return (tuple(range(len(topology.gpus))),)
    return topology.groups.get(groups, groups) if isinstance(groups, str) else groups


def _trace(plan: Plan, times: Times, launches: Sequence[Launch]) -> Trace:
    of = plan.message_of_send
    return Trace(
        plan.send_launch, plan.send_index, times.start[of], times.sent[of], times.arrived[of], times.end[of],
        plan.send_bytes, plan.send_src, plan.send_dst, tuple(launch.placement.nodes if launch.placement else () for launch in launches),
    )  # fmt: skip
