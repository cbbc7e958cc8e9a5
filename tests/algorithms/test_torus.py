"""Algorithms on tori: swing over dimensions, and the grid of the topology as the default of ``dims``."""

from __future__ import annotations

import math

import numpy as np
import pytest
from collective_reference import distinct_inputs, matches

from algorithms.checker import check
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, REDUCE_SCATTER, Collective
from algorithms.launch import Launch
from algorithms.registry import catalogue, find
from algorithms.schedule import Schedule
from kernels import numpy_executor
from sim.model import Model
from sim.simulate import make_launch, run_collective
from topologies import make
from topologies.errors import ScheduleError
from topologies.faults import apply_faults
from topologies.graph import Topology
from topologies.routing import Router

SWINGS = [(ALL_REDUCE, "swing"), (REDUCE_SCATTER, "swing"), (ALL_GATHER, "swing"), (ALL_REDUCE, "swing-latency")]
GRIDDED = [a for a in catalogue() if a.takes("dims")]


def steps_of(dims: tuple[int, ...]) -> int:
    return sum((size - 1).bit_length() for size in dims)


def distance(step: int) -> int:
    """1, 1, 3, 5, 11, ..."""
    return abs((1 - (-2) ** (step + 1)) // 3)


def loads(schedule: Schedule, elements: int, torus: Topology) -> list[float]:
    """Elements over each link of the torus."""
    moved = np.zeros((schedule.nranks, schedule.nranks))
    np.add.at(moved, (schedule.src, schedule.dst), schedule.send_elements(elements))
    router, carried = Router(torus), {(link.src, link.dst): 0.0 for link in torus.links}
    for src, dst in np.argwhere(moved).tolist():
        for link in router.route(torus.gpus[src], torus.gpus[dst]):
            carried[link.src, link.dst] += moved[src, dst]
    return list(carried.values())


@pytest.mark.parametrize(("collective", "name"), SWINGS)
@pytest.mark.parametrize(
    "dims", [(2,), (8,), (12,), (2, 2), (4, 4), (8, 4), (2, 16), (2, 2, 2), (4, 2, 4), (1, 8), (6, 6), (2, 6), (10, 4), (6, 1, 4, 2)]
)
def test_swing_over_dimensions(collective: Collective, name: str, dims: tuple[int, ...]) -> None:
    """Two copies a dimension, each in one dimension a step; any even sizes, no block sent twice; on distinct numbers the right result."""
    n, copies = math.prod(dims), 2 * sum(size > 1 for size in dims)
    if find(collective, name).refusal(n):
        assert name == "swing-latency"
        assert n & (n - 1)
        return
    schedule = find(collective, name).build(n, dims=dims)
    check(schedule)
    assert schedule.steps == steps_of(dims) * (2 if (collective, name) == SWINGS[0] else 1)
    assert set(schedule.channel.tolist()) == set(range(copies))
    m = n * copies
    volume = {SWINGS[0]: 2 * (m - m / n), SWINGS[3]: m * steps_of(dims)}.get((collective, name), m - m / n)
    assert (np.bincount(schedule.src, weights=schedule.send_elements(m)) == volume).all()
    places = np.array(np.unravel_index([schedule.src, schedule.dst], dims))
    apart = places[:, 0] != places[:, 1]
    assert (apart.sum(axis=0) == 1).all()
    turns = np.unique([schedule.step, schedule.channel, apart.argmax(axis=0)], axis=1)  # of each copy one dimension a step
    assert turns.shape[1] == schedule.steps * copies
    assert np.array_equal(turns[2, 0::2], turns[2, 1::2])  # that of its mirror image
    inputs = distinct_inputs(n, 3 * n + 1, seed=n)
    assert matches(schedule, numpy_executor.run(schedule, inputs)[0], inputs)


@pytest.mark.parametrize(("collective", "name"), SWINGS)
@pytest.mark.parametrize(("channels", "slices"), [(2, 1), (1, 3)])
def test_channels_and_slices_over_dimensions(collective: Collective, name: str, channels: int, slices: int) -> None:
    schedule = find(collective, name).build(8, dims=(4, 2), channels=channels, slices=slices)
    check(schedule)
    inputs = distinct_inputs(8, 5 * len(schedule.weights) + 3, seed=7)
    assert matches(schedule, numpy_executor.run(schedule, inputs)[0], inputs)


def test_swing_goes_round_the_dimensions() -> None:
    """Rank 0 of 4 x 8, neighbours first: each copy takes its turn in the dimensions, then goes on in the one that is left."""
    schedule = find(ALL_REDUCE, "swing-latency").build(32, dims=(4, 8))
    ways = [schedule.dst[(schedule.src == 0) & (schedule.channel == c)].tolist() for c in range(4)]
    assert ways == [[8, 1, 24, 7, 3], [24, 7, 8, 1, 5], [1, 8, 7, 24, 3], [7, 24, 1, 8, 5]]


def test_without_dims_swing_is_one_copy_in_one_dimension() -> None:
    for collective, name in SWINGS:
        one, plain = find(collective, name).build(16), find(collective, name).build(16, dims=(16,))
        mine = plain.channel == 0
        assert set(one.channel.tolist()) == {0}
        assert np.array_equal(one.dst, plain.dst[mine])
        assert np.array_equal(one.src, plain.src[mine])


@pytest.mark.parametrize("dims", [(8,), (16,), (32,), (4, 4), (8, 8), (16, 16), (4, 4, 4), (4, 4, 4, 4)])
def test_swing_loads_every_link_of_a_torus_alike(dims: tuple[int, ...]) -> None:
    """In units of M/(2D): 1/2 distance(0) + 1/4 distance(0) + ..., D steps at each distance. So (n-1)/n at sides of 4, where all partners
    are neighbours; larger ones stay below 6/5 times as much in two dimensions."""
    n, d = math.prod(dims), len(dims)
    schedule, m = find(REDUCE_SCATTER, "swing").build(n, dims=dims), 2 * d * n
    each = set(loads(schedule, m, make("torus", {"dims": dims})))
    assert each == {n * sum(distance(step // d) / 2 ** (step + 1) for step in range(steps_of(dims)))}
    congestion = each.pop() / (n - 1)
    assert congestion == 1 if max(dims) == 4 else 1 < congestion < {1: math.inf, 2: 6 / 5}[d]


def test_the_limits_of_congestion() -> None:
    """Sums over all steps: 6/5, 28/27 and 120/119 in two, three and four dimensions; in one there is no limit."""
    for d, limit in ((2, 6 / 5), (3, 28 / 27), (4, 120 / 119)):
        assert sum(distance(step // d) / 2 ** (step + 1) for step in range(200)) == pytest.approx(limit, rel=1e-9)


@pytest.mark.parametrize("dims", [(8,), (4, 4), (8, 8), (4, 4, 4)])
def test_time_of_swing_on_a_torus(dims: tuple[int, ...]) -> None:
    """Every step: overhead, ``distance`` hops, and as many messages on every link; the latency variant with the whole share."""
    n, d, o, latency = math.prod(dims), len(dims), 2e-6, 1e-6
    torus, m = make("torus", {"dims": dims, "latency": latency}), 4 * 2 * d * n * 16
    rate = torus.links[0].bandwidth
    for name, phases in (("swing", 2), ("swing-latency", 1)):
        parts = [m / (2 * d) / (2 ** (step + 1) if phases == 2 else 1) for step in range(steps_of(dims))]
        took = sum(o + distance(step // d) * (part / rate + latency) for step, part in enumerate(parts))
        assert run_collective(torus, "all-reduce", name, m, model=Model(overhead=o)).time == pytest.approx(phases * took, rel=1e-9)


def test_swing_refuses_odd_dimensions_by_name() -> None:
    for collective, name in SWINGS[:3]:
        with pytest.raises(ScheduleError, match=r"swing: dims 4x3: needs an even size .* dimension 1 has 3: write dims=12"):
            find(collective, name).build(12, dims="4x3")
    with pytest.raises(ScheduleError, match=r"swing-latency: dims 4x4 have 16 places; needs 8"):
        find(ALL_REDUCE, "swing-latency").build(8, dims=(4, 4))
    with pytest.raises(ScheduleError, match=r"swing: dims 4x3: needs an even size"):  # the grid of a topology is not silently left aside
        make_launch(make("torus", {"dims": (4, 3)}), "all-reduce", "swing", 4096)
    make_launch(make("torus", {"dims": (4, 3)}), "all-reduce", "swing", 4096, options={"dims": "12"})


@pytest.mark.parametrize("algorithm", GRIDDED, ids=str)
def test_the_grid_of_the_topology_is_the_default(algorithm) -> None:  # type: ignore[no-untyped-def]
    def same(launch: Launch, dims: tuple[int, ...] | None) -> bool:
        assert launch.schedule is not None
        wanted = algorithm.build(16, **({"dims": dims} if dims else {}))
        return all(np.array_equal(a, b) for a, b in zip(launch.schedule.columns().values(), wanted.columns().values(), strict=True))

    torus, name = make("torus", {"dims": (2, 8)}), (algorithm.collective.name, algorithm.name)
    for topology, dims in (
        (torus, (2, 8)), (apply_faults(torus, ["slow-gpu:3:x2"]), (2, 8)), (make("tpu-v4", {"dims": (2, 2, 4)}), (2, 2, 4)),
        (make("star", {"gpus": 16}), None),
    ):  # fmt: skip
        assert same(make_launch(topology, *name, 1 << 12), dims)
    asked = make_launch(torus, *name, 1 << 12, options={"dims": "4x4"})
    assert same(asked, (4, 4))
    assert not same(asked, (2, 8))


@pytest.mark.parametrize("dims", [(3, 5), (5, 3), (2, 3, 4), (4, 4)])
@pytest.mark.parametrize("name", ["all-reduce", "reduce-scatter", "all-gather"])
def test_torus_buckets_of_a_torus_use_direct_links_alone(name: str, dims: tuple[int, ...]) -> None:
    torus = make("torus", {"dims": dims})
    for bidirectional in (0, 1):
        schedule = make_launch(torus, name, "torus-bucket", 1 << 12, options={"bidirectional": bidirectional}).schedule
        assert schedule is not None
        sends = zip(schedule.src.tolist(), schedule.dst.tolist(), strict=True)
        assert all(torus.graph.has_edge(torus.gpus[src], torus.gpus[dst]) for src, dst in sends)
    assert len(run_collective(torus, name, "torus-bucket", 1 << 12, options={"bidirectional": 1}).link_loads()) == len(torus.links)
