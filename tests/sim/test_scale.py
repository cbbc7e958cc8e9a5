"""Thousands of GPUs with contention: hierarchical all-reduce on rails, against the sum of its steps, even and oversubscribed."""

from __future__ import annotations

import resource
import time

import pytest

from algorithms.steps import Stream
from sim.model import Model
from sim.simulate import make_launch, simulate
from topologies import make

NVLINK, NIC, HOP, GPUS = 450e9, 50e9, 1e-6, 8


def expected(servers: int, unit: int, nbytes: int, oversubscription: float) -> float:
    """Rings in the servers, then halves across: below a leaf 4 hops, over a spine 6 and a leaf's uplinks shared by all its servers."""
    part = nbytes / GPUS
    inside = 2 * (GPUS - 1) * (part / NVLINK + 2 * HOP)
    across = 0.0
    for level in range(servers.bit_length() - 1):
        far = 1 << level >= unit
        rate = NIC / oversubscription if far else NIC
        across += 2 * (part / 2 ** (level + 1) / rate + (6 if far else 4) * HOP)
    return inside + across


def run(servers: int, unit: int, engine: str, oversubscription: float) -> float:
    machine = make("rail-optimised", {"nodes": str(servers), "unit": str(unit), "oversubscription": str(oversubscription)})
    launch = make_launch(machine, "all-reduce", "hierarchical-doubling", 1 << 30, streamed=True)
    assert isinstance(launch.schedule, Stream)
    return simulate(machine, [launch], Model(), engine, traced=False).time


@pytest.mark.parametrize("oversubscription", [1.0, 2.0])
def test_512_gpus(oversubscription: float) -> None:
    """Uplinks shared by 16 flows are for the event engines alone; ringing in time they take just their share."""
    assert run(64, 16, "compiled", oversubscription) == pytest.approx(expected(64, 16, 1 << 30, oversubscription), rel=1e-9)


def test_512_gpus_on_leaves_that_are_not_shared() -> None:
    assert run(64, 1 << 10, "maxplus", 1.0) == pytest.approx(expected(64, 1 << 10, 1 << 30, 1.0), rel=1e-9)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("oversubscription", [1.0, 2.0])
def test_65_536_gpus_in_a_minute(oversubscription: float) -> None:
    began = time.perf_counter()
    found = run(8192, 64, "compiled", oversubscription)
    print(f"{time.perf_counter() - began:.0f} s, peak {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6:.1f} GB")
    assert found == pytest.approx(expected(8192, 64, 1 << 30, oversubscription), rel=0.01)
