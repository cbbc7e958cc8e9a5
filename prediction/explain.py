"""One simulated collective together with what it should be held against: lower bounds and a closed form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from algorithms.collectives import Collective
from algorithms.launch import Launch, dtype_bytes
from algorithms.registry import find
from algorithms.schedule import Schedule
from algorithms.steps import Stream
from sim.bounds import Bounds, bounds
from sim.closed_forms import lookup
from sim.model import Model
from sim.result import Result
from sim.simulate import simulate
from sim.times import Progress
from topologies.errors import ScheduleError
from topologies.graph import Topology


@dataclass(frozen=True, slots=True)
class Formula:
    """A closed form whose conditions hold here, and its seconds."""

    text: str
    time_s: float


@dataclass(frozen=True, slots=True, eq=False)
class Explained:
    """``bound`` is the in-network one for a schedule in which switches reduce; ``closed_form`` None: no conditions hold."""

    result: Result
    bound: Bounds
    closed_form: Formula | None


def explain(
    topology: Topology,
    launch: Launch,
    model: Model,
    engine: str = "auto",
    progress: Progress | None = None,
    *,
    channels: int = 1,
    slices: int = 1,
    options: Mapping[str, Any] | None = None,
) -> Explained:
    """Simulate one launch and put its bound and closed form beside it; ``channels``, ``slices`` and ``options`` are those that its
    schedule was built with. Raises ScheduleError and ModelError."""
    schedule = launch.schedule
    if schedule is None:
        raise ScheduleError("explain: needs a collective, not a compute time")
    result = simulate(topology, [launch], model, engine, progress, traced=False)
    bound = bounds(
        topology, schedule.collective, launch.nbytes, root=schedule.root, in_network=schedule.in_network, overhead=model.overhead,
        itemsize=dtype_bytes(launch.dtype),
    )  # fmt: skip
    return Explained(result, bound, _formula(result, schedule, slices, options or {}) if channels == 1 else None)


def _formula(result: Result, schedule: Schedule | Stream, slices: int, options: Mapping[str, Any]) -> Formula | None:
    """The closed form, if all its conditions hold: the model's, those of the routes, and its own."""
    form, model, launch = lookup(schedule.collective.name, schedule.name), result.model, result.launches[0]
    if form is None or model.barrier or model.fifo_depth or model.sharing != "fair" or not model.nominal:
        return None
    links = _equal_links(result, form.hops)
    if links is None or schedule.places > schedule.nranks + 1 or "groups" in options:  # more aggregators: more levels than one
        return None
    sizes = options.get("dims", result.topology.dims)
    given: dict[str, Any] = {key: int(value) for key, value in options.items() if key != "dims"}
    given["dims"] = tuple(int(size) for size in (sizes.split("x") if isinstance(sizes, str) else sizes))
    reason = form.refusal(schedule.nranks, elements=launch.elements, reduce_rate=model.reduce_rate, slices=slices, **given)
    if reason:
        return None
    bandwidth, latency = links
    seconds = form.time(
        schedule.nranks, elements=launch.elements, itemsize=dtype_bytes(launch.dtype), bandwidth=bandwidth, latency=latency,
        overhead=model.overhead, reduce_rate=model.reduce_rate, slices=slices, **given,
    )  # fmt: skip
    return Formula(form.formula, seconds)


def _equal_links(result: Result, hops: int) -> tuple[float, float] | None:
    """Bandwidth and latency of every link of every route, if all routes have ``hops`` equal links, meet at one switch when they
    have two, and no node's port limits them; else None."""
    plan = result.played
    routes, latencies = plan.routes, {route.latency for route in plan.routes}
    if len(latencies) != 1 or any(len(route.resources) != hops for route in routes):
        return None
    used = [plan.resources[i] for i in {i for route in routes for i in route.resources}]
    middles = {plan.resources[route.resources[0]].dst for route in routes} if hops == 2 else set()
    plain = all(resource.src and resource.dst for resource in used)
    if not plain or len(middles) > 1 or len({resource.capacity for resource in used}) != 1:
        return None
    return used[0].capacity, latencies.pop() / hops


def both_bounds(topology: Topology, collective: Collective, nbytes: int, *, root: int = 0, dtype: str = "float32") -> tuple[Bounds, Bounds]:
    """Lower bounds point to point (with what would raise them), and for switches that reduce and multicast; of patterns that of ``shift``.
    Raises ScheduleError."""
    itemsize = dtype_bytes(dtype)
    Launch(None, nbytes, dtype=dtype).elements  # noqa: B018  refuse a size that is not a whole number of elements
    if collective.end == "peer" and not collective.to:  # without a pattern nothing need move far
        collective = find(collective, "shift").build(len(topology.gpus)).collective
    plain = bounds(topology, collective, nbytes, root=root, itemsize=itemsize, relief=True)
    return plain, bounds(topology, collective, nbytes, root=root, itemsize=itemsize, in_network=True)
