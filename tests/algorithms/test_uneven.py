"""Blocks of weight 0: nobody sends them, nobody needs them, and everything else arrives as before."""

from __future__ import annotations

import numpy as np
import pytest
from collective_reference import matches

from algorithms.checker import check
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, COLLECTIVES, GATHER, REDUCE_SCATTER, SCATTER, SENDRECV
from algorithms.launch import Launch, Placement
from algorithms.registry import Algorithm, catalogue
from algorithms.schedule import Schedule, Send, copy
from algorithms.uneven import uneven
from kernels import numpy_executor
from prediction.verify import verify_schedule
from sim.model import Model
from sim.simulate import simulate
from topologies import make
from topologies.errors import ScheduleError

OWNED = (ALL_TO_ALL, ALL_GATHER, REDUCE_SCATTER, SCATTER, GATHER, SENDRECV)
EVERY = [pytest.param(a, id=str(a)) for c in OWNED for a in catalogue(c)]


def inputs_of(schedule: Schedule, elements: int) -> list[np.ndarray]:
    """Distinct numbers; of a personalised collective each rank has as many as its row of blocks."""
    n = schedule.nranks
    lengths = [elements] * n
    if schedule.collective.personalised:
        bounds = schedule.chunk_bounds(elements)
        lengths = np.diff(bounds[:: len(schedule.weights) // n]).tolist()
    flat = np.random.default_rng(1).choice(1 << 40, size=sum(lengths), replace=False).astype(np.int64)
    return np.split(flat, np.cumsum(lengths)[:-1])


@pytest.mark.parametrize("algorithm", EVERY)
@pytest.mark.parametrize("slices", [1, 2])
def test_some_blocks_are_empty(algorithm: Algorithm, slices: int) -> None:
    rng, n = np.random.default_rng(9), 8
    even = algorithm.build(n, slices=slices)
    for share in (0.2, 0.5, 0.9):
        counts = rng.integers(1, 9, even.collective.unit(n)) * (rng.random(even.collective.unit(n)) > share)
        counts[n // 2] = 3  # of rank 0 or more; all-to-all: for another rank, so that something is left
        schedule = uneven(even, counts)
        check(schedule)
        assert verify_schedule(schedule).ok
        total = 3 * int(schedule.weights.sum())
        inputs = inputs_of(schedule, total)
        held, executed = numpy_executor.run(schedule, inputs)
        assert matches(schedule, held, inputs)
        assert (executed.bytes > 0).all()  # no message without bytes is left
        full = Schedule.of(
            even.name, even.collective, n, [Send(**even.columns())], root=even.root, weights=schedule.weights,
            scratch=even.nchunks - len(even.weights),
        )  # fmt: skip
        for root in range(n):  # as many bytes as with the empty messages
            assert schedule.send_elements(total)[schedule.src == root].sum() == full.send_elements(total)[full.src == root].sum()
        star = make("star", {"gpus": n})
        fast, slow = (
            simulate(star, [Launch(s, total * 8, Placement.of(star, s), "int64")], Model(overhead=1e-6)) for s in (schedule, full)
        )
        assert fast.trace.bytes_pairs(0, n).tolist() == slow.trace.bytes_pairs(0, n).tolist()


def test_the_empty_messages_cost_nothing() -> None:
    """One block of many: its overhead, bytes and latency, and no more."""
    counts = np.zeros((4, 4), dtype=np.int64)
    counts[2, 1] = 4
    star = make("star", {"gpus": 4, "bandwidth": 1e9, "latency": 1e-6})
    for algorithm in catalogue(ALL_TO_ALL):
        schedule = uneven(algorithm.build(4), counts)
        took = simulate(star, [Launch(schedule, 4000, Placement.of(star, schedule))], Model(overhead=3e-6)).time
        hops = len(schedule)
        assert hops == 1 or algorithm.name in ("bruck", "hierarchical")
        assert took == pytest.approx(hops * (3e-6 + 16000e-9 + 2e-6)), algorithm.name


def test_a_checker_still_wants_what_has_weight() -> None:
    weights = [2, 0, 1, 0]
    sends = [copy(0, [0, 2], 1, chunk=[0, 2]), copy(0, 2, 0, chunk=2, channel=1), copy(0, 0, 2, chunk=0, channel=1)]
    right = Schedule.of("mine", ALL_GATHER, 4, [*sends, copy(1, 1, 3, chunk=[0, 2])], weights=weights)
    check(right)
    with pytest.raises(ScheduleError, match="rank 3 ends with nothing in chunk 2"):
        check(Schedule.of("mine", ALL_GATHER, 4, [*sends, copy(1, 1, 3, chunk=0)], weights=weights))


@pytest.mark.parametrize("weights", [[0, 0, 0, 0], [1, -1, 1, 1], [0, 0, 0, -3]])
def test_weights_that_no_schedule_may_have(weights: list[int]) -> None:
    with pytest.raises(ScheduleError, match="at least 0, and at least one"):
        uneven(catalogue(COLLECTIVES["all-gather"])[0].build(4), weights)


def test_nothing_to_send_is_a_schedule_of_nothing() -> None:
    schedule = uneven(catalogue(ALL_TO_ALL)[0].build(4), np.eye(4, dtype=np.int64))
    check(schedule)
    assert (len(schedule), schedule.steps) == (0, 0)
    star = make("star", {"gpus": 4})
    assert simulate(star, [Launch(schedule, 64, Placement.of(star, schedule))]).time == 0


def test_weights_without_zeros_change_no_send() -> None:
    for algorithm in (*catalogue(ALL_GATHER), *catalogue(ALL_TO_ALL)):
        even = algorithm.build(4)
        schedule = uneven(even, np.arange(1, even.collective.unit(4) + 1))
        assert all(np.array_equal(a, b) for a, b in zip(even.columns().values(), schedule.columns().values(), strict=True))
    with pytest.raises(ScheduleError, match="needs 1 whole numbers"):
        uneven(catalogue(ALL_REDUCE)[0].build(4), [1, 2])
