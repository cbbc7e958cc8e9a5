"""Every registered algorithm, whatever file it comes from, keeps the promises of the catalogue."""

from __future__ import annotations

from collections.abc import Container, Iterable
from functools import cache

import numpy as np
import pytest
from collective_reference import distinct_inputs, matches

from algorithms.checker import check
from algorithms.collectives import Collective
from algorithms.launch import Launch, Placement
from algorithms.registry import Algorithm, catalogue
from kernels import numpy_executor
from sim.bounds import bounds
from sim.simulate import simulate
from topologies import make
from topologies.errors import ScheduleError

EVERY = [pytest.param(a, id=f"{a.collective.name}-{a.name}") for a in catalogue()]
FEW = 8  # of more the compiled engine, which tests/sim holds against the event engine, is quicker
MOST_SENDS = 20_000  # larger schedules are checked symbolically alone: time, not meaning
MOST_COUNTS = 500_000_000  # (place, chunk, rank) counts of the symbolic check: leaves out all-to-all over 255 ranks


def refused(algorithm: Algorithm, n: int) -> bool:
    """Whether n is refused; the refusal must then name the rule."""
    reason = algorithm.refusal(n)
    if reason is not None:
        with pytest.raises(ScheduleError, match="needs"):
            algorithm.build(n)
    return reason is not None


@cache
def lower_bound(collective: Collective, n: int, nbytes: int, in_network: bool) -> float:
    """Bounds are the same for all algorithms of a collective (a pattern, of sendrecv) on one star."""
    return bounds(make("star", {"gpus": n}), collective, nbytes, in_network=in_network).lower_bound_s


def ran(algorithm: Algorithm, numbers: Iterable[int], simulated: Container[int]) -> int:
    """How many numbers of ranks were taken: for each the result is right, and, ``simulated``, bytes and bound."""
    taken = [n for n in numbers if not refused(algorithm, n)]
    for n in taken:
        schedule = algorithm.build(n)
        if schedule.places * schedule.nchunks * n > MOST_COUNTS:
            continue
        check(schedule)
        if len(schedule) > MOST_SENDS:
            continue
        elements = 3 * n + 1 if n < 64 else n + 1  # never a multiple of n or of its powers of two
        inputs = distinct_inputs(n, elements, seed=n)
        held, executed = numpy_executor.run(schedule, inputs)
        assert matches(schedule, held, inputs), n
        if n not in simulated:
            continue
        topology = make("star", {"gpus": n})
        launch = Launch(schedule, elements * 8, Placement.of(topology, schedule), "int64")
        result = simulate(topology, [launch], engine="event" if n <= FEW else "compiled")
        assert np.array_equal(result.trace.bytes_pairs(0, schedule.places), executed.bytes_pairs(0, schedule.places)), n
        assert result.time >= lower_bound(schedule.collective, n, elements * 8, schedule.in_network) * (1 - 1e-12), n
    return len(taken)


@pytest.mark.parametrize("algorithm", EVERY)
def test_result_bytes_and_bound_for_every_number_of_ranks(algorithm: Algorithm) -> None:
    assert ran(algorithm, (*range(2, 34), 64, 130), simulated=(*range(2, 18), 32, 64, 130)) >= 5


@pytest.mark.slow
@pytest.mark.parametrize("algorithm", EVERY)
def test_result_bytes_and_bound_for_more_numbers_of_ranks(algorithm: Algorithm) -> None:
    assert ran(algorithm, (*range(18, 64), 100, 128, 255), simulated=range(256)) >= 1


@pytest.mark.parametrize("algorithm", EVERY)
@pytest.mark.parametrize(("channels", "slices"), [(2, 1), (1, 3), (3, 4)])
def test_channels_and_slices_keep_the_result(algorithm: Algorithm, channels: int, slices: int) -> None:
    for n in (2, 3, 6, 8):
        if refused(algorithm, n):
            continue
        one, many = algorithm.build(n), algorithm.build(n, channels=channels, slices=slices)
        check(many)
        elements = len(many.weights) * 5 + 3
        inputs = distinct_inputs(n, elements, seed=7)
        held, _ = numpy_executor.run(many, inputs)
        assert matches(many, held, inputs)
        full = len(many.weights) * 4
        assert many.send_elements(full).sum() == one.send_elements(full).sum()


@pytest.mark.parametrize("algorithm", [p for p in EVERY if p.values[0].takes("root")])
def test_every_root(algorithm: Algorithm) -> None:
    for n in (2, 5, 8):
        for root in range(n):
            schedule = algorithm.build(n, root=root)
            check(schedule)
            inputs = distinct_inputs(n, 11, seed=root)
            assert matches(schedule, numpy_executor.run(schedule, inputs)[0], inputs)
        for bad in (-1, n, 10**9):
            with pytest.raises(ScheduleError, match=f"ranks are 0..{n - 1}"):
                algorithm.build(n, root=bad)


@pytest.mark.parametrize("algorithm", EVERY)
def test_built_twice_is_the_same(algorithm: Algorithm) -> None:
    one, two = algorithm.build(8), algorithm.build(8)
    assert all(np.array_equal(a, b) for a, b in zip(one.columns().values(), two.columns().values(), strict=True))


@pytest.mark.parametrize("algorithm", EVERY)
def test_refuses_what_is_no_number_of_ranks(algorithm: Algorithm) -> None:
    for n in (-1, 0, 1):
        with pytest.raises(ScheduleError, match="at least 2"):
            algorithm.build(n)
    with pytest.raises(ScheduleError, match="option"):
        algorithm.build(8, speed=3)
    with pytest.raises(ScheduleError, match="slices"):
        algorithm.build(8, slices=0)
