"""One call for one collective or many: lay out the launches, play them, return what happened."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from algorithms.collectives import collective
from algorithms.launch import Launch, Placement
from algorithms.registry import Dims, find
from algorithms.schedule import Schedule
from algorithms.steps import Stream
from sim.engines import ENGINES
from sim.model import Model, ModelError
from sim.result import Result
from sim.times import Progress
from topologies.errors import ScheduleError, nearest
from topologies.graph import Topology


def simulate(
    topology: Topology,
    launches: Sequence[Launch],
    model: Model | None = None,
    engine: str = "auto",
    progress: Progress | None = None,
    *,
    traced: bool = True,
) -> Result:
    """Run launches on a topology, all at once but for their start times and ``after``. ``traced`` False: sends are summed up, not kept,
    in less memory. Raises ScheduleError (with engine ``maxplus`` also where links are shared) or ModelError."""
    if engine not in ENGINES:
        raise ModelError(f'engine "{engine}" is not known{nearest(engine, ENGINES)}')
    if not launches:
        raise ScheduleError(f"{topology.name}: nothing to simulate; give at least one launch")
    model = model or Model()
    used, played = ENGINES[engine](topology, launches, model, progress, traced)
    return Result(topology, tuple(launches), model, used, played)


def run_collective(
    topology: Topology,
    collective_name: str,
    algorithm_name: str,
    nbytes: int,
    *,
    model: Model | None = None,
    engine: str = "auto",
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
    streamed: bool = False,
) -> Launch:
    """The launch of one collective over all GPUs; ``streamed``: its steps are made when they are read, where they can be.

    An algorithm that takes ``groups`` gets those of the topology that it names as its default (else the leaves), one that takes ``dims``
    the grid that the ranks of the topology fill, if they do; unless told."""
    chosen = find(collective(collective_name), algorithm_name)
    given = dict(options or {})
    for option in chosen.options:
        if option.type is tuple:
            given[option.name] = _groups(topology, given.get(option.name), option.default or "leaves")
        elif option.type is Dims and topology.dims:
            given.setdefault(option.name, topology.dims)
    ranks = len(topology.gpus)
    if streamed and channels == slices == 1:
        schedule: Schedule | Stream = chosen.stream(ranks, **given)
    else:
        schedule = chosen.build(ranks, channels=channels, slices=slices, **given)
    carried = 0 if chosen.collective.idempotent else nbytes  # a barrier's messages are signals
    launch = Launch(schedule, carried, Placement.of(topology, schedule), dtype)
    launch.elements  # noqa: B018  refuse a size that is not a whole number of elements before anything runs
    return launch


def _groups(topology: Topology, groups: Any, default: str) -> Any:
    """A group name of the topology (``servers``, ``leaves``) as ranks; anything else as it is. No leaves: all under one; another
    ``default`` that the topology lacks is left to the algorithm (None)."""
    if default == "domains" and default not in topology.groups:
        default = "servers"
    if groups is None:
        groups = default if default in topology.groups or default == "leaves" else None
    if groups == "leaves" and groups not in topology.groups:
        return (tuple(range(len(topology.gpus))),)
    return topology.groups.get(groups, groups) if isinstance(groups, str) else groups
