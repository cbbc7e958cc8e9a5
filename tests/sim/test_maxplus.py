"""The max-plus evaluator: equal to the event engine to the last bit where it applies, and a refusal where flows share something."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st
from random_schedules import schedules

from algorithms.collectives import ALL_REDUCE
from algorithms.launch import Launch, Placement
from algorithms.registry import Algorithm, catalogue
from algorithms.schedule import Schedule, Send
from algorithms.steps import Stream
from sim.maxplus import evaluator, hazards
from sim.maxplus.evaluator import evaluate
from sim.maxplus.outcome import Outcome
from sim.maxplus.rounds import RefusedError
from sim.model import Model
from sim.simulate import make_launch, simulate
from topologies import Topology, make
from topologies.errors import RingscopeError, ScheduleError
from topologies.faults import apply_faults

KNOBS = (Model(), Model(overhead=1e-6, reduce_rate=1e11), Model(barrier=True, overhead=3e-7))


def agrees(topology: Topology, launches: list[Launch], model: Model) -> bool:
    """Whether the evaluator applies; every send is then timed as by the event engine."""
    try:
        mine = evaluate(topology, launches, model, traced=True)
    except RefusedError:
        return False
    theirs = simulate(topology, launches, model, "event")
    for name in ("launch", "send", "start", "sent", "arrived", "end", "bytes", "src", "dst"):
        np.testing.assert_array_equal(getattr(mine.trace, name), getattr(theirs.trace, name), name)
    assert mine.ends == theirs.ends
    for number in range(len(launches)):
        np.testing.assert_array_equal(mine.rank_bytes(number), theirs.played.rank_bytes(number))
    np.testing.assert_array_equal(_by_ends(mine), _by_ends(theirs.played))
    path = mine.critical_path()
    total = path.overhead_s + path.latency_s + path.bandwidth_s + path.reduce_s + path.wait_s
    assert total == pytest.approx(theirs.time, rel=1e-9)
    return True


def _by_ends(played: Outcome) -> list[tuple[str, str, int]]:
    return sorted((r.src, r.dst, int(b)) for r, b in zip(played.routes, played.route_bytes, strict=True))


def mesh(gpus: int, latency: str = "300ns") -> Topology:
    return make("full-mesh", {"gpus": str(gpus), "bandwidth": "2GB/s", "latency": latency})


@given(schedules(), st.sampled_from(KNOBS), st.booleans())
@settings(max_examples=150, deadline=None)
def test_random_schedules_agree_or_are_refused(s: Schedule, model: Model, table: bool) -> None:
    topology = mesh(s.nranks) if s.nranks > 1 else mesh(2)
    launch = Launch(s, 1201, Placement.of(topology, s), "int8")
    with pytest.MonkeyPatch.context() as patch:
        if table:
            patch.setattr(evaluator, "Recent", lambda sizes: _Forgetful())
        try:
            event(f"applies: {agrees(topology, [launch], model)}")
        except ScheduleError:
            with pytest.raises(ScheduleError):  # messages that wait for each other for ever
                simulate(topology, [launch], model, "event")


class _Forgetful:
    def ready(self, *_: object) -> None:
        raise hazards.UndecidedError


@pytest.mark.parametrize("chosen", catalogue(), ids=str)
def test_every_algorithm_agrees_where_it_applies(chosen: Algorithm) -> None:
    applied = 0
    machines = ("star", "gpus", "2"), ("star", "gpus", "7"), ("full-mesh", "gpus", "4"), ("ring", "gpus", "6"), ("torus", "dims", "4x4")
    for name, key, value in machines:
        topology = make(name, {key: value})
        for model in KNOBS:
            try:
                launch = make_launch(topology, chosen.collective.name, chosen.name, 400_012)
            except RingscopeError:
                continue
            applied += agrees(topology, [launch], model)
    assert applied


def test_many_sizes_at_once_are_the_sizes_one_by_one() -> None:
    topology = make("star", {"gpus": "8"})
    sizes = [0, 4, 20, 1024, 4_000_004, 64 << 20]
    for algorithm in ("ring", "swing", "halving-doubling", "binomial-tree"):
        launch, model = make_launch(topology, "all-reduce", algorithm, 4), Model(overhead=1e-6)
        together = evaluate(topology, [launch], model, [[size // 4 for size in sizes]])
        alone = [simulate(topology, [replace(launch, nbytes=size)], model, "event") for size in sizes]
        assert together.times[0].tolist() == [result.time for result in alone]
        fast = evaluate(topology, [launch], model, [[size // 4 for size in sizes]], terms=False)
        assert fast.times.tolist() == together.times.tolist()
        assert not fast.terms.any()
        for terms, result in zip(together.terms[0], alone, strict=True):
            assert terms[1] == pytest.approx(result.critical_path().latency_s, rel=1e-9)


def test_launches_that_wait_for_others_and_for_a_start() -> None:
    topology = make("star", {"gpus": "8"})
    ring = make_launch(topology, "all-reduce", "ring", 80_000)
    halves = [make_launch(make("star", {"gpus": "4"}), "all-gather", "ring", 4096).whole] * 2
    launches = [
        Launch(None, duration=3e-6),
        Launch(ring.schedule, 80_000, ring.placement, after=(0,)),
        Launch(None, duration=2e-6, after=(1,), start=1e-3),
        *(
            Launch(half, 4096, Placement.of(topology, half, range(4 * i, 4 * i + 4)), after=(2,), start=4e-3 * i)
            for i, half in enumerate(halves)
        ),
    ]
    assert agrees(topology, launches, Model(overhead=1e-7))
    with pytest.raises(ScheduleError, match="may only wait for launches before it"):
        evaluate(topology, [Launch(None, duration=1.0, after=(0,))], Model())


def test_ranks_out_of_pace_are_followed_cell_by_cell(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = apply_faults(make("ring", {"gpus": "12"}), ["slow-link:gpu3-gpu4:x9"], 0)
    launch = make_launch(slow, "all-reduce", "ring", 4_800_000)
    assert agrees(slow, [launch], Model())
    monkeypatch.setattr(evaluator, "TABLE_BYTES", 0)
    with pytest.raises(RefusedError, match="too far apart"):
        evaluate(slow, [launch], Model())
    with pytest.raises(ScheduleError, match=r"engine maxplus: .*; take engine compiled"):
        simulate(slow, [launch], engine="maxplus")


@pytest.mark.parametrize(
    ("topology", "algorithm", "model", "why"),
    [
        ("star", "one-shot", Model(), "share the link gpu. -> switch"),
        ("star", "ring", Model(fifo_depth=2), "fifo-depth"),
        ("star", "parameter-server", Model(), "share the link"),
    ],
)
def test_refusals_name_what_is_shared(topology: str, algorithm: str, model: Model, why: str) -> None:
    built = make(topology, {"gpus": "4"})
    with pytest.raises(RefusedError, match=why):
        evaluate(built, [make_launch(built, "all-reduce", algorithm, 4096)], model)


def test_two_launches_on_one_link_are_refused() -> None:
    topology = make("ring", {"gpus": "4"})
    launch = make_launch(topology, "all-reduce", "ring", 4096)
    assert agrees(topology, [launch], Model())
    assert not agrees(topology, [launch, launch], Model())


def test_progress_is_told_and_can_cancel() -> None:
    topology = make("star", {"gpus": "4"})
    seen: list[tuple[int, int]] = []
    evaluate(topology, [make_launch(topology, "all-reduce", "ring", 4096)], Model(), progress=lambda *done: seen.append(done))
    assert seen[0][1] == 24

    def stop(*_: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        evaluate(topology, [make_launch(topology, "all-reduce", "ring", 4096)], Model(), progress=stop)


def weighted(topology: Topology, nbytes: int, weights: list[int], *sends: Send) -> Launch:
    s = Schedule.of("weighted", ALL_REDUCE, len(topology.gpus), list(sends), weights=np.asarray(weights))
    return Launch(s, nbytes, Placement.of(topology, s), "int8")


def test_an_old_write_that_is_still_on_its_way_is_waited_for() -> None:
    far = mesh(3, "1ms")  # so the write of step 0 arrives long after step 7, which reads it, and is no longer kept
    launch = weighted(far, 7000, [1] * 9, Send(0, 0, 1, 0), *(Send(k, 1, 0, k) for k in range(1, 7)), Send(7, 1, 2, 0))
    assert agrees(far, [launch], Model())


def test_messages_of_no_bytes_hold_no_link() -> None:
    """Chunks of 4, 0 and 5 bytes: the second takes no time on a link, and keeps nobody from it."""
    three = mesh(3)
    held = weighted(three, 9, [10, 1, 10], Send(0, 2, 0, 1), Send(1, 0, 1, 1), Send(2, 0, 1, 2, channel=1))
    assert held.schedule is not None
    assert np.diff(held.schedule.chunk_bounds(9)).tolist() == [4, 0, 5]
    assert agrees(three, [held], Model())
    beside = weighted(three, 9, [10, 1, 10], Send(0, 0, 1, 0), Send(1, 0, 1, 1, channel=1))  # leaves while the 4 bytes are on the link
    assert agrees(three, [beside], Model())
    taken = weighted(three, 9, [10, 1, 10], Send(0, 0, 1, 0), Send(1, 0, 1, 1), Send(2, 0, 1, 2, channel=1))
    with pytest.raises(RefusedError, match="share the link gpu0 -> gpu1"):  # the 4 bytes before them are still on it
        evaluate(three, [taken], Model())


def test_messages_of_no_bytes_do_not_overlap_within_a_round() -> None:
    ring = make("ring", {"gpus": "8"})
    sends = Send(0, 2, 1, 0), Send(1, 0, 2, 1), Send(1, 1, 3, 0)  # both of step 1 go from gpu1 to gpu2, the last with nothing
    launch = weighted(ring, 10**7, [1, 10**7], *sends)
    assert launch.schedule is not None
    assert np.diff(launch.schedule.chunk_bounds(10**7)).tolist() == [0, 10**7]
    assert agrees(ring, [launch], Model())


def test_overlaps_are_looked_for_at_every_size() -> None:
    ring = make("ring", {"gpus": "8"})
    launch = weighted(ring, 11, [1, 10], Send(0, 2, 1, 0), Send(1, 0, 2, 1), Send(1, 1, 3, 0))
    evaluate(ring, [launch], Model(), [[11]])
    three = mesh(3)  # the second message of the link waits for one that is there soon, whatever the first has to carry
    later = weighted(three, 11, [10, 1], Send(0, 0, 1, 0), Send(0, 2, 0, 1), Send(1, 0, 1, 1, channel=1))
    evaluate(three, [later], Model(), [[11]])
    for sizes in ([11, 11 << 20], [11 << 20, 11]):
        with pytest.raises(RefusedError, match="share the link gpu1 -> gpu2"):
            evaluate(ring, [launch], Model(), [sizes])
        with pytest.raises(RefusedError, match="share the link gpu0 -> gpu1"):
            evaluate(three, [later], Model(), [sizes])


def test_every_term_is_that_of_the_critical_path() -> None:
    star = make("star", {"gpus": "8"})
    ring = make_launch(star, "all-reduce", "ring", 80_000)
    chained = [
        Launch(None, duration=3e-6),
        Launch(ring.schedule, 80_000, ring.placement, after=(0,)),
        Launch(None, duration=2e-6, after=(1,), start=1e-6),
    ]
    for launches in (chained, chained[:2], [Launch(ring.schedule, 80_000, ring.placement, start=5e-6)]):
        mine, theirs = (
            simulate(star, launches, Model(overhead=1e-7, reduce_rate=1e10), engine).critical_path() for engine in ("maxplus", "event")
        )
        for term in ("overhead_s", "latency_s", "bandwidth_s", "reduce_s", "wait_s"):
            assert getattr(theirs, term) > 0
            assert getattr(mine, term) == pytest.approx(getattr(theirs, term), rel=1e-9), term


@pytest.mark.parametrize("chosen", catalogue(), ids=str)
def test_a_stream_has_the_sends_of_the_schedule(chosen: Algorithm) -> None:
    ranks = 12 if chosen.refusal(12) is None else 16
    try:
        built = chosen.build(ranks)
    except RingscopeError:
        pytest.skip("needs options")
    streamed = chosen.stream(ranks)
    whole = streamed.whole() if isinstance(streamed, Stream) else streamed
    for name, column in built.columns().items():
        np.testing.assert_array_equal(whole.columns()[name], column, name)
    assert (whole.places, whole.nchunks, len(streamed), streamed.steps) == (built.places, built.nchunks, len(built), built.steps)
    topology = make("star", {"gpus": str(ranks)})
    if not built.in_network:
        one = simulate(topology, [Launch(built, 48_000, Placement.of(topology, built))], engine="event").time
        launch = Launch(streamed, 48_000, Placement.of(topology, built))
        assert simulate(topology, [launch], engine="compiled", traced=False).time == one
        try:
            found = evaluate(topology, [launch], Model()).ends[0]
        except RefusedError:
            return
        assert found == one
