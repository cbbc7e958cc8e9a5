"""Messages as the engines take them: queues by channel, bytes beyond 32 bits, exact sums, and which engine ``auto`` is."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.collectives import ALL_REDUCE
from algorithms.launch import Launch, Placement
from algorithms.schedule import Schedule, Send
from sim import engines, played
from sim.compiled.waits import Compiled
from sim.layout import Layout
from sim.model import Model
from sim.plan import make_plan
from sim.routes import RouteTable
from sim.simulate import make_launch, simulate
from topologies import make


def test_another_channel_between_the_same_ends_is_another_queue() -> None:
    star = make("star", {"gpus": "4"})
    layout = Layout(RouteTable(star, Model()), {}, [f"gpu{i}" for i in range(4)], 7, np.int64)
    src, dst, channel = np.asarray([2, 0, 3]), np.asarray([1, 3, 2]), np.zeros(3, dtype=np.int64)
    found = [layout.columns(src, dst, channel + c)["queue"].tolist() for c in (5, 2, 5)]
    assert found == [[9, 7, 10], [13, 11, 14], [9, 7, 10]]
    assert layout.queues == 8


def test_gigabytes() -> None:
    star = make("star", {"gpus": "2"})
    s = Schedule.of("two", ALL_REDUCE, 2, [Send(0, 0, 1, 0), Send(1, 1, 0, 0), Send(2, 0, 1, 1)], weights=np.asarray([3, 1]))
    launch = Launch(s, 12 << 30, Placement.of(star, s), "int8")
    plan = make_plan(star, [launch], Model(header=26), Compiled())
    assert plan.payload.tolist() == [9 << 30, 9 << 30, 3 << 30]
    for model in (Model(), Model(header=26, reduce_rate=3e9)):
        results = [simulate(star, [launch], model, engine, traced=False) for engine in ("event", "compiled", "maxplus")]
        assert len({result.time for result in results}) == 1
        assert all(result.bytes_per_rank().tolist() == [12 << 30, 9 << 30] for result in results)


def test_sums_are_exact_in_both_ways(monkeypatch: pytest.MonkeyPatch) -> None:
    index = np.asarray([0, 1, 0, 1, 1])
    assert played._summed(index, np.asarray([2**53 + 1, 5, 2, 7, 11]), 3).tolist() == [2**53 + 3, 23, 0]
    monkeypatch.setattr(played, "BLOCK", 2)
    assert played._summed(index, np.asarray([3, 5, 2, 7, 11]), 3).tolist() == [5, 23, 0]


def test_auto_counts_chunks_too(monkeypatch: pytest.MonkeyPatch) -> None:
    star = make("star", {"gpus": "32"})
    monkeypatch.setattr(engines, "SMALL", 160)
    for collective, chunks, engine in (("all-gather", 992, "compiled"), ("all-reduce", 160, "event")):
        launch = make_launch(star, collective, "recursive-doubling", 4 * 32)
        assert launch.schedule is not None
        assert (len(launch.schedule), launch.schedule.chunks) == (160, chunks)
        assert simulate(star, [launch]).engine == engine


@pytest.mark.parametrize("engine", ["event", "compiled", "maxplus"])
@pytest.mark.parametrize("header", [0, 26])
def test_bytes_of_each_place_are_the_same_summed_up_or_kept(engine: str, header: int) -> None:
    """Places 2 and 3 are two aggregators on one switch: what one gives the other is no traffic of a link, yet of the place."""
    star = make("star", {"gpus": "4"})
    sends = [Send(0, 0, 2, 0, channel=1), Send(1, 2, 3, 0), Send(2, 3, 1, 0, channel=3)]
    two = Schedule.of("two", ALL_REDUCE, 2, sends)
    first = Launch(two, 5000, Placement(("gpu2", "gpu3", "switch", "switch")), "int8")
    ring = make_launch(star, "all-gather", "ring", 4 * 4 * 101)
    then = Launch(ring.schedule, ring.nbytes, ring.placement, after=(0,))
    launches = [first, then, Launch(two, 700, first.placement, "int8", after=(1,))]
    kept, lean = (simulate(star, launches, Model(header=header), engine, traced=traced) for traced in (True, False))
    for number, wanted in enumerate(([5000, 0, 5000, 5000], [3 * 404] * 4, [700, 0, 700, 700])):
        assert kept.played.rank_bytes(number).tolist() == lean.played.rank_bytes(number).tolist() == wanted
    assert lean.link_loads() == kept.link_loads() == simulate(star, launches, Model(header=header), "event").link_loads()
