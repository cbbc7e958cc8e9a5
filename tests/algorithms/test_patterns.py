"""The point-to-point patterns: who sends to whom, what stays, what is refused; their bounds."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest
from collective_reference import distinct_inputs, matches
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

from algorithms.checker import check
from algorithms.collectives import SENDRECV
from algorithms.launch import Launch, Placement
from algorithms.registry import catalogue, find
from algorithms.schedule import Schedule, copy
from algorithms.transforms import merge_channels, pipeline, relabel
from kernels import numpy_executor
from prediction.explain import explain
from prediction.verify import verify_schedule
from sim.bounds import bounds
from sim.model import Model
from sim.simulate import make_launch, run_collective, simulate
from topologies import make
from topologies.errors import ScheduleError
from topologies.graph import Topology
from views.layout import picture
from views.phases import phases


def built(name: str, n: int, **options: object) -> Schedule:
    return find(SENDRECV, name).build(n, **options)


def pairs(schedule: Schedule) -> list[tuple[int, int]]:
    return sorted(zip(schedule.src.tolist(), schedule.dst.tolist(), strict=True))


@pytest.mark.parametrize("by", [1, 3, -1, 12, 8 * 10**9 + 5])
def test_shift(by: int) -> None:
    assert pairs(built("shift", 8, by=by)) == [(r, (r + by) % 8) for r in range(8)]


@pytest.mark.parametrize(("n", "distance"), [(6, 1), (8, 1), (8, 2), (8, 4), (8, 7), (12, 2)])
def test_exchange_is_pairs(n: int, distance: int) -> None:
    found = dict(pairs(built("exchange", n, distance=distance)))
    assert sorted(found) == list(range(n))
    assert all(found[peer] == r != peer and r ^ peer == distance for r, peer in found.items())


@pytest.mark.parametrize("dims", [(5,), (3, 4), (3, 1, 4), (3, 3, 3)])
def test_halo_uses_each_cable_of_its_torus_once(dims: tuple[int, ...]) -> None:
    torus = make("torus", {"dims": dims, "bandwidth": 1e9, "latency": 1e-6})
    schedule = built("halo", len(torus.gpus), dims=dims)
    at = {gpu: rank for rank, gpu in enumerate(torus.gpus)}
    assert pairs(schedule) == sorted((at[link.src], at[link.dst]) for link in torus.links)
    assert set(schedule.send_elements(60).tolist()) == {60 // (2 * sum(side > 1 for side in dims))}


def test_halo_sends_both_blocks_to_the_one_neighbour_of_a_side_of_two() -> None:
    schedule = built("halo", 6, dims=(2, 3))
    assert set(Counter(pairs(schedule)).values()) == {1, 2}
    assert {pair for pair, times in Counter(pairs(schedule)).items() if times == 2} == {(r, (r + 3) % 6) for r in range(6)}
    torus = make("torus", {"dims": (2, 3), "bandwidth": 1e9, "latency": 1e-6})
    took = run_collective(torus, "sendrecv", "halo", 4 * 1000, model=Model(overhead=2e-6))
    assert took.time == pytest.approx(2e-6 + 2 * 1000e-9 + 1e-6)  # two blocks of a quarter share the cable; dims are the topology's


@pytest.mark.parametrize(("n", "rows", "sides"), [(9, 0, (3, 3)), (8, 0, (2, 4)), (8, 4, (4, 2)), (12, 2, (2, 6))])
def test_transpose_turns_a_matrix(n: int, rows: int, sides: tuple[int, int]) -> None:
    schedule = built("transpose", n, rows=rows)
    matrix = np.random.default_rng(n).permutation(n).reshape(sides)
    result = matrix.ravel().copy()
    for src, dst in pairs(schedule):
        result[dst] = matrix.ravel()[src]
    assert result.tolist() == matrix.T.ravel().tolist()
    stay = {i * sides[1] + j for i in range(sides[0]) for j in range(sides[1]) if i * sides[1] + j == j * sides[0] + i}
    assert set(range(n)) - set(schedule.src.tolist()) == stay  # at least the two corners
    assert len(stay) >= 2


def test_random_permutations_move_everyone_and_are_as_likely() -> None:
    drawn = Counter(built("random-permutation", 4, seed=seed).collective.to for seed in range(900))
    assert set(drawn) == {p for p in itertools.permutations(range(4)) if all(i != to for i, to in enumerate(p))}
    assert min(drawn.values()) > 60  # of 100 expected; four standard deviations
    assert pairs(built("random-permutation", 64, seed=5)) == pairs(built("random-permutation", 64, seed=5))
    assert pairs(built("random-permutation", 64, seed=5)) != pairs(built("random-permutation", 64))


@pytest.mark.parametrize(
    ("name", "n", "options", "words"),
    [
        ("shift", 8, {"by": 16}, "needs a rank that sends"), ("transpose", 8, {"rows": 1}, "needs a rank that sends"),
        ("transpose", 8, {"rows": 3}, "divides 8 ranks"), ("transpose", 8, {"rows": -2}, "divides 8 ranks"),
        ("transpose", 7, {}, "no prime"),
        ("exchange", 7, {}, "even number"), ("exchange", 6, {"distance": 2}, "distance 2"), ("exchange", 8, {"distance": 8}, "ranks 0..7"),
        ("exchange", 8, {"distance": 0}, "distance 0"), ("exchange", 8, {"distance": -1}, "distance -1"),
        ("halo", 8, {"dims": "3x3"}, "needs 8, the number of ranks"), ("random-permutation", 8, {"seed": -1}, "0 or more"),
    ],
)  # fmt: skip
def test_refusals(name: str, n: int, options: dict[str, object], words: str) -> None:
    with pytest.raises(ScheduleError, match=words):
        built(name, n, **options)


def test_a_pattern_is_part_of_the_postcondition() -> None:
    to = [1, 2, 0, 0, 2, 1]  # two blocks a rank; both of rank 1 go to rank 0, the first of rank 2 stays
    r, i, moves = np.repeat(range(3), 2), np.tile(range(2), 3), np.asarray(to) != np.repeat(range(3), 2)
    right = Schedule.of("mine", SENDRECV.towards(to), 3, [copy(0, r[moves], np.asarray(to)[moves], chunk=(2 * r + i)[moves])])
    inputs = distinct_inputs(3, 11, seed=3)
    for schedule in (right, pipeline(right, 3), merge_channels("mine", [right, right]), relabel(right, [2, 0, 1])):
        check(schedule)
        assert matches(schedule, numpy_executor.run(schedule, inputs)[0], inputs)
        assert verify_schedule(schedule).ok
    assert relabel(right, [2, 0, 1]).collective.to == (2, 2, 1, 0, 0, 1)  # rank 0 is 2 now: its blocks went to 1 and 2, now 0 and 1
    wrong = Schedule.of("mine", SENDRECV.towards([1, 2, 0, 0, 0, 1]), 3, [copy(0, right.src, right.dst, chunk=right.chunk)])
    with pytest.raises(ScheduleError, match="rank 0 ends with nothing in chunk 4"):
        check(wrong)
    assert not verify_schedule(wrong).ok
    with pytest.raises(ScheduleError, match="different things"):
        merge_channels("both", [right, wrong])
    for bad in ([], [0, 1], [0, 1, 3], [-1, 0, 1]):
        with pytest.raises(ScheduleError, match="destinations of blocks"):
            Schedule.of("mine", SENDRECV.towards(bad), 3, [copy(0, 0, 1, chunk=0)])


# Bounds

TOPOLOGIES = {
    "star": {"gpus": 8}, "ring": {"gpus": 8}, "torus": {"dims": (2, 4)}, "full-mesh": {"gpus": 8}, "dgx-h100": {"nodes": 2, "gpus": 4},
}  # fmt: skip


@pytest.mark.parametrize("place", TOPOLOGIES)
@pytest.mark.parametrize("algorithm", [a.name for a in catalogue(SENDRECV)])
def test_no_pattern_beats_its_bound_nor_that_of_all(place: str, algorithm: str) -> None:
    topology, schedule = make(place, TOPOLOGIES[place]), built(algorithm, 8)
    for elements, model in ((1, Model()), (4099, Model(overhead=1e-6)), (840_000, Model(sharing="fifo"))):
        took = simulate(topology, [Launch(schedule, 4 * elements, Placement.of(topology, schedule))], model).time
        own, any_of_them = (bounds(topology, c, 4 * elements, overhead=model.overhead) for c in (schedule.collective, SENDRECV))
        assert any_of_them.lower_bound_s <= own.lower_bound_s <= took * (1 + 1e-12)
        assert any_of_them.bandwidth_s == 0
        assert any_of_them.latency_s == pytest.approx(model.overhead + min(latency(topology, r) for r in range(1, 8)))


def latency(topology: Topology, there: int) -> float:
    one = Schedule.of("one", SENDRECV.towards([there, *range(1, 8)]), 8, [copy(0, 0, there, chunk=0)])
    return bounds(topology, one.collective, 0).latency_s


def test_bounds_that_are_reached() -> None:
    ring = make("ring", {"gpus": 8, "bandwidth": 1e9, "latency": 1e-6})
    m = 8 * 1000
    assert bounds(ring, built("shift", 8).collective, m).bandwidth_s == pytest.approx(m / 2e9)  # two links leave a rank
    far = bounds(ring, built("shift", 8, by=4).collective, m)
    assert (far.bandwidth_s, far.latency_s) == (pytest.approx(8 * 4 * m / 16e9), pytest.approx(4e-6))
    assert far.limiting.endswith("4 hops a block)")
    halves = make("dgx-h100", {"nodes": 2})
    across, inside = (bounds(halves, built("exchange", 16, distance=d).collective, 2**26) for d in (8, 4))
    assert across.bandwidth_s == pytest.approx(8 * 2**26 / 400e9)  # all of a server through its 8 NICs
    assert "server" in across.limiting
    assert inside.bandwidth_s < across.bandwidth_s
    stays = bounds(ring, SENDRECV.towards(range(8)), m)
    assert (stays.lower_bound_s, stays.latency_s) == (0, 0)
    with pytest.raises(ScheduleError, match="needs as many for each of 8 ranks"):
        bounds(ring, SENDRECV.towards([1, 2, 0]), m)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_bound_is_at_most_the_optimum_over_all_routes(data: st.DataObject) -> None:
    """The multicommodity flow that sends every block in the least time."""
    name = data.draw(st.sampled_from(["ring", "torus", "star"]))
    topology = make(name, {"dims": (2, 3)} if name == "torus" else {"gpus": 6})
    to = data.draw(st.lists(st.integers(0, 5), min_size=6, max_size=6).filter(lambda to: any(r != t for r, t in enumerate(to))))
    links, names = topology.links, list(topology.graph)
    moved = [(r, t) for r, t in enumerate(to) if r != t]
    one = np.zeros((len(names), len(links)))
    for i, link in enumerate(links):
        one[names.index(link.src), i], one[names.index(link.dst), i] = 1, -1
    need = np.zeros((len(moved), len(names)))
    for c, (r, t) in enumerate(moved):
        need[c, names.index(topology.gpus[r])], need[c, names.index(topology.gpus[t])] = 1, -1
    kept = [i for i in range(len(names)) if i]  # balance of the first follows from the others
    equal = np.hstack([np.kron(np.eye(len(moved)), one[kept]), np.zeros((len(moved) * len(kept), 1))])
    most = np.hstack([np.tile(np.eye(len(links)), len(moved)), -np.array([[link.bandwidth] for link in links]) / 1e9])
    found = linprog(np.r_[np.zeros(most.shape[1] - 1), 1], most, np.zeros(len(links)), equal, need[:, kept].ravel(), method="highs")
    assert found.status == 0
    told = bounds(topology, SENDRECV.towards(to), 10**9 * 8, itemsize=8).bandwidth_s / 8
    assert 0 < told <= found.fun * (1 + 1e-7)


def test_a_pattern_is_not_captioned_as_a_ring_or_as_pairs_that_share() -> None:
    for algorithm in catalogue(SENDRECV):
        schedule = algorithm.build(8)
        assert {phase.sentence for phase in phases(schedule, picture(schedule).kind)} == {"say.store"}


def test_of_too_many_ranks_to_look_at_no_pair_is_taken_for_the_nearest(monkeypatch: pytest.MonkeyPatch) -> None:
    ring = make("ring", {"gpus": 6, "latency": 1e-6})
    assert bounds(ring, SENDRECV, 64).latency_s == pytest.approx(1e-6)
    monkeypatch.setattr("sim.bounds.DISTANCE_WORK", 2 * len(ring.links))
    assert bounds(ring, SENDRECV, 64).lower_bound_s == 0
    assert bounds(ring, built("shift", 6, by=3).collective, 64).latency_s == pytest.approx(3e-6)


def test_the_closed_form_stands_beside_a_halo_on_its_torus() -> None:
    for dims, options in (((4, 4), {}), ((4, 4), {"dims": "4x4"}), ((5,), {"dims": "5"})):
        torus = make("torus", {"dims": dims})
        told = explain(torus, make_launch(torus, "sendrecv", "halo", 4 * 1001, options=options), Model(overhead=1e-6), options=options)
        assert told.closed_form is not None
        assert told.closed_form.time_s == pytest.approx(told.result.time, rel=1e-12)
