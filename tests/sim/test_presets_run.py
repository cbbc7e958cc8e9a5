"""Every preset x every algorithm at 64 MiB: it runs and beats no bound, or is refused by a rule. Small presets always, larger
ones with ``-m slow``."""

from __future__ import annotations

from functools import cache

import pytest

from algorithms.collectives import COLLECTIVES
from algorithms.registry import Algorithm, catalogue
from sim.bounds import Bounds, bounds
from sim.simulate import make_launch, simulate
from topologies import Topology, make, names
from topologies.errors import ScheduleError

NBYTES = 64 << 20
SLICES = 4
ULPS = 1 - 1e-9
LARGEST, SMALL = 128, 8
FEW_SENDS = 2_000  # of which the event engine plays all in a second
UNITS = {"dragonfly": {"groups": 4}}  # 32 GPUs, not 72: its few global links are shared by all pairs, which takes minutes


@cache
def machine(name: str) -> Topology:
    return make(name, UNITS.get(name))


SIZES = {name: len(machine(name).gpus) for name in names()}


@cache
def floor(name: str, collective: str, in_network: bool) -> Bounds:
    return bounds(machine(name), COLLECTIVES[collective], NBYTES, in_network=in_network, itemsize=4)


def outcome(name: str, algorithm: Algorithm) -> str:
    """``ran``, ``refused: ...`` or what is wrong."""
    try:
        launch = make_launch(machine(name), algorithm.collective.name, algorithm.name, NBYTES, slices=SLICES if algorithm.pipelined else 1)
    except ScheduleError as error:
        known = str(error).startswith(f"{algorithm.name}: ") and ": needs " in str(error)
        return f"refused: {error}" if known else f"wrong: a refusal without a rule: {error}"
    schedule = launch.schedule
    assert schedule is not None
    engine = "event" if len(schedule) < FEW_SENDS else "compiled"
    took, told = simulate(machine(name), [launch], engine=engine).time, floor(name, algorithm.collective.name, schedule.in_network)
    return "ran" if took > 0 and took >= told.lower_bound_s * ULPS else f"wrong: took {took} s, not below {told}"


def check(name: str, collective: str) -> list[str]:
    found = {str(algorithm): outcome(name, algorithm) for algorithm in catalogue(COLLECTIVES[collective])}
    wrong = {algorithm: what for algorithm, what in found.items() if what.startswith("wrong")}
    assert not wrong
    return [algorithm for algorithm, what in found.items() if what == "ran"]


def test_every_preset_has_a_unit_of_at_most_128_gpus() -> None:
    assert max(SIZES.values()) <= LARGEST
    assert sum(size <= SMALL for size in SIZES.values()) >= 20


@pytest.mark.parametrize("name", [name for name, size in SIZES.items() if size <= SMALL])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_small_presets(name: str, collective: str) -> None:
    assert check(name, collective)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("name", [name for name, size in SIZES.items() if size > SMALL])
@pytest.mark.parametrize("collective", COLLECTIVES)
def test_large_presets(name: str, collective: str) -> None:
    assert check(name, collective)
