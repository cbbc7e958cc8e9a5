"""The verifier accepts what is right and rejects what is wrong, whatever is wrong."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from algorithms.collectives import ALL_REDUCE, ALL_TO_ALL, COLLECTIVES, GATHER, REDUCE, SCATTER, Collective
from algorithms.registry import catalogue
from algorithms.schedule import Op, Schedule, Send, copy, reduce
from kernels import numpy_executor
from prediction import verify as module
from prediction.verify import definition, verify, verify_schedule
from sim.simulate import run_collective
from topologies import make
from topologies.errors import RingscopeError


@pytest.mark.parametrize("algorithm", catalogue(), ids=lambda a: f"{a.collective.name}-{a.name}")
@pytest.mark.parametrize("ranks", [2, 5, 8])
def test_every_algorithm_is_right(algorithm, ranks: int) -> None:  # type: ignore[no-untyped-def]
    if algorithm.refusal(ranks):
        pytest.skip(f"{algorithm.name}: {algorithm.refusal(ranks)}")
    found = verify(algorithm.collective.name, algorithm.name, ranks, channels=2, slices=3, seed=ranks)
    assert found.ok
    assert found.max_abs_error == 0
    assert found.float_error <= found.float_bound
    assert found.elements % ranks != 0
    assert len(found.bytes_per_rank) == ranks


def test_ring_sends_what_it_must() -> None:
    found = verify("all-reduce", "ring", 4, topology=make("ring", {"gpus": 4}), nbytes=4096)
    assert found.bytes_per_rank == (6144,) * 4  # 2(n-1)/n of 4096
    assert found.sends == 24
    assert [check.name for check in found.checks] == ["contributions", "whole numbers", "rounding", "bytes", "simulator"]


def test_bytes_are_those_of_the_simulator() -> None:
    topology = make("star", {"gpus": 6})
    found = verify("all-reduce", "double-binary-tree", 6, slices=2, dtype="float16", topology=topology, nbytes=2 * 1001)
    played = run_collective(topology, "all-reduce", "double-binary-tree", 2 * 1001, slices=2, dtype="float16")
    assert found.bytes_per_rank == tuple(played.bytes_per_rank().tolist())


def test_other_bytes_in_the_simulator_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    real = module.simulate
    monkeypatch.setattr(module, "simulate", lambda topology, launches: real(topology, [replace(launches[0], nbytes=8192)]))
    found = verify("all-reduce", "ring", 4, topology=make("ring", {"gpus": 4}), nbytes=4096)
    assert not found.ok
    assert [check.name for check in found.checks if not check.ok] == ["simulator"]


def test_a_wrong_schedule_is_named() -> None:
    ring = next(a for a in catalogue(ALL_REDUCE) if a.name == "ring").build(4)
    columns = {key: column[:-1] for key, column in ring.columns().items()}
    wrong = Schedule.of("ring", ALL_REDUCE, 4, [Send(**columns)], weights=ring.weights)
    found = verify_schedule(wrong)
    assert not found.ok
    assert found.checks[0].name == "contributions"
    assert "rank" in found.checks[0].found


@pytest.mark.parametrize("fault", ["adds wrongly", "loses an element", "changes its inputs", "rounds away"])
def test_a_wrong_executor_is_found(monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    def broken(schedule, inputs):  # type: ignore[no-untyped-def]
        held, trace = numpy_executor.run(schedule, inputs)
        if fault == "changes its inputs" and inputs[0].flags.writeable:
            inputs[0][0] += 1
        elif fault == "adds wrongly" and held[1][0].dtype == np.int64:
            held[1][0] = held[1][0] + 1
        elif fault == "loses an element" and held[1][0].dtype.kind == "u":
            held[1][0] = np.zeros_like(held[1][0])
        elif fault == "rounds away" and held[1][0].dtype == np.float32:
            held[1][0] = held[1][0] + np.float32(0.001)
        return held, trace

    monkeypatch.setitem(module.EXECUTORS, "numpy", broken)
    found = verify("all-reduce", "ring", 4)
    assert not found.ok
    assert (found.max_abs_error > 0) == (fault == "adds wrongly")


def test_rooted_and_personalised_collectives_that_have_no_algorithm_yet() -> None:
    n = 3
    away = np.array([0, 1])
    p, j = (axis.ravel() for axis in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    off = p != j
    sends: dict[Collective, list[Send]] = {
        SCATTER: [copy(0, 2, away, chunk=away)],
        GATHER: [copy(0, away, 2, chunk=away)],
        REDUCE: [reduce(0, away, 2, chunk=0)],
        ALL_TO_ALL: [copy(0, p[off], j[off], chunk=(p * n + j)[off], channel=j[off])],
    }
    for collective, made in sends.items():
        right = Schedule.of("by hand", collective, n, made, root=0 if collective is ALL_TO_ALL else 2)
        assert verify_schedule(right).ok, collective.name


def test_the_definition_by_hand() -> None:
    x = [np.array([1, 2, 3]), np.array([10, 20, 30])]
    shares = [0, 2, 3]

    def of(name: str, root: int = 0) -> dict[int, list[tuple[int, list[int]]]]:
        found = definition(COLLECTIVES[name], x, shares, root)
        return {rank: [(start, values.tolist()) for start, values in pieces] for rank, pieces in found.items()}

    assert of("all-reduce") == {0: [(0, [11, 22, 33])], 1: [(0, [11, 22, 33])]}
    assert of("reduce-scatter") == {0: [(0, [11, 22])], 1: [(2, [33])]}
    assert of("all-gather") == {r: [(0, [1, 2]), (2, [30])] for r in (0, 1)}
    assert of("broadcast", 1) == {r: [(0, [10, 20, 30])] for r in (0, 1)}
    assert of("reduce", 1) == {1: [(0, [11, 22, 33])]}
    assert of("scatter", 1) == {0: [(0, [10, 20])], 1: [(2, [30])]}
    assert of("gather", 1) == {1: [(0, [1, 2]), (2, [30])]}
    blocks = definition(ALL_TO_ALL, x, [0, 2, 3, 4, 6], 0)  # rank 0 has 2 and 1 elements, rank 1 1 and 2
    assert [(start, values.tolist()) for start, values in blocks[1]] == [(2, [3]), (4, [20, 30])]


def test_the_same_seed_is_the_same_run() -> None:
    first, again, other = (verify("all-reduce", "ring", 5, seed=seed).float_error for seed in (7, 7, 8))
    assert first == again != other


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"executor": "nunpy"}, 'did you mean "numpy"'),
        ({"nbytes": 4096}, "go together"),
        ({"topology": make("ring"), "nbytes": 4096}, "has 8 GPUs, not 4"),
        ({"dtype": "float31"}, "float32"),
        ({"topology": make("ring", {"gpus": 4}), "nbytes": 8 << 30}, "GiB"),
        ({"topology": make("ring", {"gpus": 4}), "nbytes": 4097}, "whole number"),
    ],
)
def test_what_cannot_be_verified_is_refused(arguments: dict[str, object], words: str) -> None:
    with pytest.raises(RingscopeError, match=words):
        verify("all-reduce", "ring", 4, **arguments)  # type: ignore[arg-type]


def test_reduction_is_a_reduction() -> None:
    """Guards the tests above: in a copy-only all-reduce the numbers must be found wrong."""
    tree = next(a for a in catalogue(ALL_REDUCE) if a.name == "binomial-tree").build(4)
    assert not verify_schedule(tree.with_columns(op=np.full(len(tree), Op.COPY, dtype=np.int64))).ok
