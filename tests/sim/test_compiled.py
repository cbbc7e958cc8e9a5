"""The compiled engine means what the event engine means, on whatever both can play."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_schedules import schedules
from test_random import topologies

from algorithms.collectives import ALL_REDUCE
from algorithms.launch import Launch, Placement
from algorithms.registry import Algorithm, catalogue
from algorithms.schedule import Schedule, Send, copy, reduce
from sim import event
from sim.compiled import engine, native
from sim.compiled.cells import EDGE
from sim.compiled.engine import loop
from sim.compiled.state import OVER, State, out, state
from sim.compiled.state import given as columns
from sim.model import Model
from sim.plan import Plan, make_plan
from sim.simulate import make_launch, run_collective, simulate
from sim.times import Times
from topologies import make
from topologies.errors import ScheduleError
from topologies.faults import apply_faults
from topologies.graph import Topology

TIMES = ("start", "flow", "sent", "arrived", "reducing", "end", "joined")


def same(plan: Plan, model: Model, *, exact: bool) -> Times:
    """Both engines play it alike: to the last bit with all causes where no link is shared, else to 1e-9."""
    told, reference = engine.play(plan, model), event.run(plan, model)
    for field in fields(Times):
        ours, theirs = getattr(told, field.name), getattr(reference, field.name)
        if exact:
            assert np.array_equal(ours, theirs), field.name
        elif field.name in TIMES:
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=0, err_msg=field.name)
    return told


MODELS = st.builds(
    Model, overhead=st.sampled_from([0.0, 1e-6, 3.3e-7]), reduce_rate=st.sampled_from([float("inf"), 3e9, 7.1e8]),
    sharing=st.sampled_from(["fair", "fifo"]), barrier=st.booleans(), fifo_depth=st.sampled_from([0, 1, 3]),
)  # fmt: skip


@given(st.data(), schedules(), MODELS, st.integers(0, 1300))
@settings(max_examples=150, deadline=None)
def test_random_schedules_on_random_trees(data: st.DataObject, s: Schedule, model: Model, nbytes: int) -> None:
    topology = data.draw(topologies(s.nranks))
    launch = Launch(s, nbytes, Placement.of(topology, s), "int8")
    starts = st.sampled_from([0.0, 1e-6, 1e-6 * (1 + 2**-52), 2.5e-7])
    launches = [
        launch, replace(launch, start=data.draw(starts)), Launch(None, duration=data.draw(starts), after=(0,)),
        replace(launch, start=data.draw(starts), after=data.draw(st.sampled_from([(), (2,), (1,)]))),
    ][: data.draw(st.integers(1, 4))]  # fmt: skip
    plan = make_plan(topology, launches, model)
    try:
        same(plan, model, exact=True)  # whole routes: the same sums in the same order, shared or not
    except ScheduleError:
        same_error(plan, model)


def same_error(plan: Plan, model: Model) -> None:
    with pytest.raises(ScheduleError, match="for ever") as ours:
        engine.play(plan, model)
    with pytest.raises(ScheduleError) as theirs:
        event.run(plan, model)
    assert str(ours.value) == str(theirs.value)


@given(st.data(), schedules(max_sends=20), st.sampled_from([0.0, 1e-6]))
@settings(max_examples=200, deadline=None)
def test_flows_spread_over_several_ways(data: st.DataObject, s: Schedule, overhead: float) -> None:
    """Fractions of a flow on each of its resources; no reducers, whose order would turn on the last bit."""
    topology, model = data.draw(topologies(s.nranks)), Model(overhead)
    plan = make_plan(topology, [Launch(s, 1200, Placement.of(topology, s), "int8")], model)
    fractions = st.sampled_from([1.0, 0.5, 0.25, 1 / 3, 0.1])
    spread = tuple(replace(r, weights=tuple(data.draw(fractions) for _ in r.weights)) for r in plan.routes)
    try:
        same(replace(plan, routes=spread), model, exact=False)
    except ScheduleError:
        same_error(plan, model)


PLACES = {
    "star": make("star", {"gpus": 8}),
    "ring": make("ring", {"gpus": 8}),
    "two servers": make("dgx-a100", {"nodes": 1}),
    "faulty": apply_faults(make("torus", {"dims": "2x4"}), ["jitter:0.3", "slow-gpu:3:x1.6"]),
}


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("algorithm", catalogue(), ids=str)
def test_every_algorithm(algorithm: Algorithm, place: str) -> None:
    topology = PLACES[place]
    played = 0
    for model in (Model(), Model(overhead=1e-6, reduce_rate=2e10), Model(sharing="fifo", barrier=True)):
        for channels, slices in ((1, 1), (2, 3)):
            try:
                launch = make_launch(topology, algorithm.collective.name, algorithm.name, 4 * 8 * 997, channels=channels, slices=slices)
            except ScheduleError:
                continue  # not for eight ranks on this
            same(make_plan(topology, [launch], model), model, exact=True)
            played += 1
    assert played or place != "star"


def test_columns_of_32_bits_are_played_in_place_and_alike() -> None:
    topology, model = make("star", {"gpus": 6}), Model(reduce_rate=1e10)
    plan = make_plan(topology, [make_launch(topology, "all-reduce", "ring", 6 * 4 * 101)], model)
    names = ("bytes", "reduced", "route", "queue", "reducer", "waits", "start", "after")
    narrow = replace(plan, **{name: getattr(plan, name).astype(np.int32) for name in names})
    for name in names:
        getattr(narrow, name).flags.writeable = False
    given = columns(narrow)
    assert all(np.shares_memory(getattr(given, name), getattr(narrow, name)) for name in names if name != "waits")
    assert np.array_equal(engine.play(narrow, model).end, engine.play(plan, model).end)
    mixed = replace(plan, bytes=narrow.bytes)
    assert np.array_equal(engine.play(mixed, model).end, engine.play(plan, model).end)


def play(s: Schedule, topology: Topology, nbytes: int) -> tuple[Plan, Model]:
    model = Model()
    return make_plan(topology, [Launch(s, nbytes, Placement.of(topology, s), "int8")], model), model


@given(st.data(), st.integers(3, 9), st.integers(1, 4))
@settings(max_examples=100, deadline=None)
def test_rates_are_max_min_at_every_instant(data: st.DataObject, gpus: int, channels: int) -> None:
    """Each flow has a full resource where no other flow is faster, whenever an instant is over; many shares, so that later rounds count."""
    pairs = st.tuples(st.integers(0, gpus - 1), st.integers(0, gpus - 1)).filter(lambda p: p[0] != p[1])
    drawn = data.draw(st.lists(st.tuples(pairs, st.integers(1, 3), st.integers(0, channels - 1)), min_size=1, max_size=30))
    sends = [copy(0, src, dst, 3 * i, count=count, channel=channel) for i, ((src, dst), count, channel) in enumerate(drawn)]
    plan, model = play(Schedule.of("hand", ALL_REDUCE, gpus, sends), data.draw(topologies(gpus)), 3000 * len(sends))
    fractions = st.sampled_from([1.0, 0.5, 1 / 3])
    if data.draw(st.booleans()):
        plan = replace(plan, routes=tuple(replace(r, weights=tuple(data.draw(fractions) for _ in r.weights)) for r in plan.routes))
    instants = 0
    for s in slices(plan, model):
        if not s.clock["changed"][0]:
            instants += 1
            assert_max_min(plan, s)
    assert instants > 2


def slices(plan: Plan, model: Model):  # type: ignore[no-untyped-def]
    """The state after every event."""
    p, t = columns(plan), out(plan, model)
    s = state(plan, model, p)
    while loop(p, s, t, 1) != OVER:
        yield s


def assert_max_min(plan: Plan, s: State) -> None:
    capacity = np.asarray([r.capacity for r in plan.resources])
    flows = [(float(f["rate"]), plan.routes[f["held"]], int(f["limit"])) for f in s.flows if f["held"] >= 0]
    used, fastest = np.zeros(len(capacity)), np.zeros(len(capacity))
    for rate, route, _ in flows:
        for r, weight in zip(route.resources, route.weights, strict=True):
            used[r] += rate * weight
            fastest[r] = max(fastest[r], rate)
    assert (used <= capacity * (1 + 1e-9)).all()
    for rate, route, limit in flows:
        assert limit in route.resources
        assert used[limit] >= capacity[limit] * (1 - 1e-9)
        assert rate >= fastest[limit] * (1 - 1e-9)


def test_many_distinct_shares_go_through_the_heap() -> None:
    """Ports of 60 different rates in one component: more rounds than are scanned."""
    n = 60
    topology = apply_faults(make("star", {"gpus": n}), [f"slow-gpu:{i}:x{1 + (i + 1) / 16}" for i in range(n)])
    pairs = [(src, (src + 1 + k * (src + 3)) % n, k) for k in range(4) for src in range(n)]
    sends = [Send(0, src, dst, 0, dst_chunk=1 + k, channel=k) for src, dst, k in pairs if src != dst]
    plan, model = play(Schedule.of("hand", ALL_REDUCE, n, sends), topology, 35_000)
    same(plan, model, exact=True)
    first = next(s for s in slices(plan, model) if s.flows["rate"].any())
    assert_max_min(plan, first)
    assert len(set(first.flows["rate"].tolist())) > 8


def test_arrivals_within_an_ulp_are_handled_by_node() -> None:
    """Two sends end one ulp apart; after a latency of a second both arrive at once, the lower message first, and reduce in that order."""
    topology = make("star", {"gpus": 3, "bandwidth": 1e9, "latency": 0.5})
    low, high = Schedule.of("a", ALL_REDUCE, 3, [reduce(0, 0, 2, 0)]), Schedule.of("b", ALL_REDUCE, 3, [reduce(0, 1, 2, 0)])
    at = 1e-6
    model = Model(reduce_rate=1e9)
    launches = [
        Launch(s, 1000, Placement.of(topology, s), "int8", start=start) for s, start in ((low, at * (1 + 2**-52)), (high, at))
    ]  # fmt: skip
    plan = make_plan(topology, launches, model)
    wide = replace(plan, routes=tuple(replace(r, resources=r.resources[:1], weights=r.weights[:1]) for r in plan.routes))
    t = same(wide, model, exact=True)
    assert t.sent[0] > t.sent[1]
    assert t.arrived[0] == t.arrived[1]
    assert t.reducing[0] < t.reducing[1] == t.end[0]


def test_room_for_arrivals_out_of_order_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sim.compiled.state.SPARE", 0)
    n = 12
    topology = make("star", {"gpus": n + 1, "bandwidth": 1e9, "latency": 0.5})
    single = [Schedule.of("a", ALL_REDUCE, n + 1, [reduce(0, i, n, 0)]) for i in range(n)]
    launches = [
        Launch(s, 1000, Placement.of(topology, s), "int8", start=1e-6 * (1 + (n - i) * 2**-52)) for i, s in enumerate(single)
    ]  # fmt: skip
    model = Model(reduce_rate=1e9)
    plan = make_plan(topology, launches, model)
    wide = replace(plan, routes=tuple(replace(r, resources=r.resources[:1], weights=r.weights[:1]) for r in plan.routes))
    same(wide, model, exact=True)


def test_progress_is_reported_and_can_cancel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Cancelled(Exception):
        pass

    monkeypatch.setattr(engine, "REPORT_EVERY", 0.0)
    monkeypatch.setattr(engine, "SLICE", 1000)
    seen: list[tuple[int, int]] = []

    def watch(done: int, total: int) -> None:
        seen.append((done, total))
        if len(seen) == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        run_collective(make("star", {"gpus": 64}), "all-reduce", "ring", 1 << 20, engine="compiled", progress=watch)
    assert seen[0][0] < seen[1][0] < seen[2][0] < seen[2][1] == 2 * 63 * 64


def test_messages_that_wait_for_each_other_are_an_error() -> None:
    sends = [Send(0, 0, 1, 0, message=0), Send(0, 2, 1, 0, message=1), Send(0, 2, 1, 1, message=1), Send(0, 0, 1, 1, message=0)]
    plan, model = play(Schedule.of("hand", ALL_REDUCE, 3, sends), make("star", {"gpus": 3}), 2000)
    same_error(plan, model)


def test_same_input_same_bytes_whatever_the_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    topology, model = make("dgx-a100", {"nodes": 2}), Model(reduce_rate=2e10)
    plan = make_plan(topology, [make_launch(topology, "all-reduce", "double-binary-tree", 1 << 20, channels=2, slices=4)], model)
    whole = engine.play(plan, model)
    monkeypatch.setattr(engine, "SLICE", 1)
    assert all(np.array_equal(getattr(whole, f.name), getattr(engine.play(plan, model), f.name)) for f in fields(Times))


def test_ends_in_trains_or_one_by_one_are_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """Halves of two sizes that share links, so that rates change under way and flows leave the middle of a train."""
    topology, model = make("leaf-spine", {"gpus_per_leaf": 4, "oversubscription": 2.0}), Model(reduce_rate=2e10)
    launches = [replace(make_launch(topology, "all-reduce", "halving-doubling", 1 << size), start=size * 1e-6) for size in (20, 21, 22)]
    plan = make_plan(topology, launches, model)
    played = []
    for trains in (0, 1, 8):
        monkeypatch.setattr("sim.compiled.state.TRAINS", trains)
        played.append(same(plan, model, exact=False))
    for field in fields(Times):
        assert np.array_equal(getattr(played[0], field.name), getattr(played[1], field.name)), field.name
        assert np.array_equal(getattr(played[0], field.name), getattr(played[2], field.name)), field.name


def test_compute_alone_is_played() -> None:
    topology = make("star", {"gpus": 2})
    assert simulate(topology, [Launch(None, duration=1e-3)], engine="compiled").time == 1e-3


def test_machine_code_is_kept_in_a_file_and_made_again_where_that_is_broken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    compile_, folders = native._compiled, [tmp_path / "kept"]
    monkeypatch.setattr(native, "_compiled", lambda function, given: made.append(function.__name__) or compile_(function, given))
    monkeypatch.setattr(native, "_folders", lambda: iter(folders))

    def counted() -> list[int]:
        edges, waits, start = np.array([(0, 2), (3, 2), (4, 1)], EDGE), np.zeros(4, np.int32), np.zeros(6, np.int32)
        native.Native("hazards", "count")(edges, 3, waits, start)
        return [*waits.tolist(), *start.tolist()]

    expected = [0, 1, 2, 0, 0, 0, 1, 1, 1, 0]
    assert counted() == counted() == expected
    assert made == ["count"]
    (kept,) = folders[0].iterdir()
    kept.write_bytes(kept.read_bytes()[:-7])
    assert counted() == counted() == expected
    assert made == ["count"] * 2
    folders[0] = kept  # a file: nothing can be kept in it
    assert counted() == expected
    assert made == ["count"] * 3


def test_compiled_code_takes_only_arrays_in_one_piece() -> None:
    edges, waits, start = np.zeros(4, EDGE), np.zeros(4, np.int32), np.zeros(6, np.int32)
    with pytest.raises(TypeError, match="contiguous"):
        native.Native("hazards", "count")(edges[::2], 3, waits, start)


def test_machine_code_that_is_kept_needs_no_numba() -> None:
    code = (
        "import sys; from sim.simulate import run_collective; from topologies import make; "
        "run_collective(make('star', {'gpus': '4'}), 'all-reduce', 'ring', 4096, engine='compiled'); sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=False)  # compiles, where nobody has yet
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_nothing_imports_numba_before_it_is_used() -> None:
    code = "import sys, app, cli, sim.simulate, sim.engines; sim.engines.ENGINES['compiled']; sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
