"""The compiled pass over sends gives the waits of ``algorithms.dependencies``: the event engine plays both plans alike."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_schedules import schedules

from algorithms.launch import Launch, Placement
from algorithms.registry import Algorithm, catalogue
from algorithms.schedule import Schedule
from sim import event
from sim.compiled import waits
from sim.model import Model
from sim.plan import make_plan
from sim.simulate import make_launch
from topologies import Topology, make
from topologies.errors import RingscopeError, ScheduleError

DENSE = (1000, 0)
"""Every chunk a cell; chunks told apart only where ranges end."""


def same(topology: Topology, launches: list[Launch], model: Model) -> None:
    plain = make_plan(topology, launches, model)
    try:
        expected = event.run(plain, model)
    except ScheduleError:
        with pytest.raises(ScheduleError):
            event.run(make_plan(topology, launches, model, waits.Compiled()), model)
        return
    found = event.run(make_plan(topology, launches, model, waits.Compiled()), model)
    for name in ("start", "flow", "sent", "arrived", "reducing", "end"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name), name)


@given(schedules(max_sends=24), st.sampled_from(DENSE), st.sampled_from([0, 2]), st.booleans(), st.booleans())
@settings(max_examples=150, deadline=None)
def test_random_schedules(s: Schedule, dense: int, depth: int, barrier: bool, diagonal: bool) -> None:
    topology = make("star", {"gpus": str(max(2, s.places))})
    launch = Launch(s, 1201, Placement.of(topology, s), "int8")
    later = Launch(s, 900, launch.placement, "int8", after=(0,), start=1e-6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(waits, "DENSE", dense)
        patch.setattr(waits, "_diagonal", lambda s: diagonal and s.places <= s.nchunks)
        patch.setattr(waits, "EDGES", 16)  # so that there is never room
        same(topology, [launch, later], Model(1e-7, 3e9, barrier=barrier, fifo_depth=depth))


@pytest.mark.parametrize("chosen", catalogue(), ids=str)
def test_every_algorithm(chosen: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    for ranks in (5, 8):
        topology = make("star", {"gpus": str(ranks)})
        for dense, slices in zip(DENSE, (1, 3), strict=True):
            monkeypatch.setattr(waits, "DENSE", dense)
            try:
                launch = make_launch(topology, chosen.collective.name, chosen.name, 160_012, slices=slices)
            except RingscopeError:
                continue
            same(topology, [launch], Model(1e-6, 1e11))


def test_waits_grow_with_the_sends_not_with_their_pairs() -> None:
    """A chunk that many add to and many read: one join stands for all."""
    topology = make("star", {"gpus": "65"})
    launch = make_launch(topology, "all-reduce", "parameter-server", 65_000)
    plan = make_plan(topology, [launch], Model(), waits.Compiled())
    assert len(plan.after) < 4 * len(launch.whole)
