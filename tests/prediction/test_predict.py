"""Predicted tables: the same numbers as single simulations, the best, the crossovers, and what is left out."""

from __future__ import annotations

import pytest

from algorithms.collectives import ALL_REDUCE
from algorithms.registry import Algorithm, catalogue, find
from prediction.expected import expected
from prediction.explain import explain
from prediction.limits import MAX_GPUS, MAX_SENDS, limited_launch, machine_of
from prediction.predict import MAX_SLICES, SLICE_BYTES, Candidate, Progress, Runner, predict, slices_for
from sim.model import Model
from sim.simulate import make_launch, run_collective
from topologies import make
from topologies.errors import RingscopeError, ScheduleError


def test_every_candidate_is_a_simulation() -> None:
    topology, model = make("dgx-h100"), Model(overhead=2e-6, reduce_rate=2e11)
    table = predict(topology, "all-reduce", [4096, 2 << 20], model=model)
    assert {c.algorithm for c in table.rows[0].candidates} == {a.name for a in catalogue(ALL_REDUCE)}
    for row in table.rows:
        for c in row.candidates:
            alone = run_collective(topology, "all-reduce", c.algorithm, row.size_bytes, slices=c.slices, model=model)
            assert (c.time_s, c.algbw_Bps, c.busbw_Bps) == (alone.time, alone.algbw(), alone.busbw())


def test_candidates_are_sorted_and_the_best_is_first() -> None:
    for row in predict(make("ring"), "all-reduce", [1024, 1 << 20]).rows:
        times = [c.time_s for c in row.candidates]
        assert times == sorted(times)
        assert row.best.time_s == min(times)


def test_equal_times_keep_the_order_of_names() -> None:
    # On a full mesh of two both algorithms send the same two messages at the same time; rounding must not choose.
    row = predict(make("full-mesh", {"gpus": 2}), "all-reduce", [3 << 20], algorithms=["ring", "halving-doubling"]).rows[0]
    assert [c.algorithm for c in row.candidates] == ["halving-doubling", "ring"]


def test_slices_follow_the_rule() -> None:
    chain, tree = find(ALL_REDUCE, "double-binary-tree"), find(ALL_REDUCE, "ring")
    assert [slices_for(chain, size) for size in (1, SLICE_BYTES, 3 * SLICE_BYTES, 1 << 30)] == [1, 1, 3, MAX_SLICES]
    assert slices_for(tree, 1 << 30) == 1
    row = predict(make("star"), "broadcast", [3 * SLICE_BYTES], algorithms=["chain"]).rows[0]
    assert row.best.slices == 3


def test_a_crossover_is_where_the_best_changes() -> None:
    topology, sizes = make("ring"), [1024, 1 << 20]
    table = predict(topology, "all-reduce", sizes, algorithms=["recursive-doubling", "bidirectional-ring"])
    (crossover,) = table.crossovers
    assert (crossover.was, crossover.to) == ("recursive-doubling", "bidirectional-ring")
    assert (crossover.after, crossover.before) == (1024, 1 << 20)
    at, below = crossover.size_bytes, crossover.size_bytes - crossover.within_bytes
    rows = predict(topology, "all-reduce", [below, at], algorithms=["recursive-doubling", "bidirectional-ring"]).rows
    assert [row.best.algorithm for row in rows] == ["recursive-doubling", "bidirectional-ring"]
    assert crossover.within_bytes < 1024


def test_no_crossover_where_one_is_best() -> None:
    assert predict(make("star"), "all-reduce", [1 << 20, 1 << 24], algorithms=["ring"]).crossovers == ()


def test_one_refusal_hides_no_other() -> None:
    table = predict(make("dgx-a100"), "all-reduce", [4096])
    assert "needs a switch that reduces" in table.skipped["sharp"]
    assert {c.algorithm for c in table.rows[0].candidates} >= {"ring", "halving-doubling"}


def test_an_algorithm_that_is_refused_at_one_size_is_in_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Runner.run

    def some(self: Runner, algorithm: Algorithm, nbytes: int, progress: Progress | None = None) -> Candidate:
        if algorithm.name == "swing" and nbytes == 2048:
            raise ScheduleError("links are shared")
        return run(self, algorithm, nbytes, progress)

    monkeypatch.setattr(Runner, "run", some)
    table = predict(make("ring"), "all-reduce", [1024, 2048, 4096], algorithms=["ring", "swing"])
    assert table.skipped == {"swing": "links are shared"}
    assert [[c.algorithm for c in row.candidates] for row in table.rows] == [["ring"]] * 3
    assert table.crossovers == ()
    with pytest.raises(ScheduleError, match=r"no algorithm for all-reduce on .*links are shared"):
        predict(make("ring"), "all-reduce", [2048], algorithms=["swing"])


def test_it_can_be_cancelled_and_says_how_far_it_is() -> None:
    seen: list[tuple[int, int]] = []
    found = predict(make("star"), "broadcast", [4096, 8192], progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (2 * len(found.rows[0].candidates),) * 2

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict(make("star"), "broadcast", [4096], progress=stop)


@pytest.mark.parametrize(
    ("collective", "sizes", "algorithms", "words"),
    [
        ("all-reduce", [], None, "no size"),
        ("all-reduce", [6], None, "whole number"),
        ("all-reduce", [4], ["rang"], 'did you mean "ring"'),
        ("all-reduce", [4], ["sharp"], "needs a switch that reduces"),
        ("barrier", [4], ["ring"], "barrier has dissemination"),
    ],
)
def test_what_cannot_be_predicted_is_refused(collective: str, sizes: list[int], algorithms: list[str] | None, words: str) -> None:
    with pytest.raises(RingscopeError, match=words):
        predict(make("ring"), collective, sizes, algorithms=algorithms)


@pytest.mark.parametrize("algorithm", catalogue(), ids=lambda a: f"{a.collective.name}-{a.name}")
def test_extrapolated_sends_are_near(algorithm) -> None:  # type: ignore[no-untyped-def]
    if algorithm.refusal(256) is None:
        assert expected(algorithm, 256, slices=2).sends == pytest.approx(len(algorithm.build(256, slices=2)), rel=0.1)


def test_too_much_is_refused_before_it_is_built() -> None:
    with pytest.raises(ScheduleError, match=f"1,000,000 ranks .* at most {MAX_SENDS['event']:,}"):
        limited_launch("ring", {"gpus": "1000000"}, "all-reduce", "ring", 1 << 26)
    with pytest.raises(ScheduleError, match=f"1,000,000 GPUs .* at most {MAX_GPUS:,}"):
        machine_of("star", {"gpus": "1000000"})
    with pytest.raises(ScheduleError, match=f"70,000 GPUs .* at most {MAX_GPUS:,}"):
        machine_of("fat-tree", {"k": "66", "gpus": "70000"})


def test_the_closed_form_stands_beside_a_run_only_where_it_is_exact() -> None:
    def told(topology: str, algorithm: str, size: int = 1 << 20, model: Model | None = None, **built: int):  # type: ignore[no-untyped-def]
        machine = make(topology)
        launch = make_launch(machine, "all-reduce", algorithm, size, **built)
        return explain(machine, launch, model or Model(overhead=1e-6), **built)

    for topology, algorithm in (("ring", "ring"), ("full-mesh", "ring"), ("star", "halving-doubling"), ("dgx-a100", "recursive-doubling")):
        exact = told(topology, algorithm)
        assert exact.closed_form is not None
        assert exact.closed_form.time_s == pytest.approx(exact.result.time, rel=1e-12)
    sliced = told("star", "sharp", slices=4)
    assert sliced.closed_form is not None
    assert sliced.closed_form.time_s == pytest.approx(sliced.result.time, rel=1e-12)
    assert told("ring", "ring", model=Model(barrier=True)).closed_form is None
    assert told("ring", "ring", channels=2).closed_form is None
    assert told("torus", "ring").closed_form is None
    assert told("star", "ring").closed_form is None
    assert told("star", "halving-doubling", size=4 * 1001).closed_form is None
