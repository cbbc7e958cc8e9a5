"""Every schedule that a library's call is made of does its collective, whatever machine, algorithm, protocol and size, and moves the bytes
that its algorithm says, no more and no fewer."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from library_calls import CASES, built, calls, loops

from algorithms.checker import check
from algorithms.schedule import Schedule
from prediction.library.predict import Calls, Choice
from prediction.nccl.version import COLLECTIVES as TUNED
from topologies.errors import RingscopeError, ScheduleError

COLLECTIVES = [*TUNED, "all-to-all", "sendrecv", "gather", "scatter"]
SIZES = (3, 1 << 16, 1 << 20, 1 << 24, 1 << 31)
FORCED = [(algorithm, protocol) for algorithm in ("ring", "tree", "nvls", "nvlstree") for protocol in ("ll", "ll128", "simple")]
FEW, MOST = 4_000, 40_000
"""Sends up to which a schedule is proved three times over, and at all: the large ones are the small ones on more lanes."""


def _choices(name: str, nodes: int, collective: str) -> Iterator[tuple[Calls, Choice, int]]:
    """What is chosen at all sizes, and what else can be forced: each algorithm, protocol and number of channels once."""
    free, seen = calls(name, nodes, collective), set()
    asked: list[tuple[Calls, int]] = [(free, nbytes) for nbytes in SIZES]
    if collective in TUNED:
        for algorithm, protocol in FORCED:
            words = {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol}
            asked += [(calls(name, nodes, collective, words), nbytes) for nbytes in (1 << 20, 1 << 28)]
    for call, nbytes in asked:
        try:
            found = list(call._choices(nbytes))
        except RingscopeError:  # the machine does not have it
            continue
        for choice in found:
            if (choice.algorithm, choice.protocol, choice.channels) not in seen:
                seen.add((choice.algorithm, choice.protocol, choice.channels))
                yield call, choice, nbytes


@pytest.mark.parametrize(("name", "nodes"), CASES)
def test_all_schedules_do_their_collective(name: str, nodes: int) -> None:
    proved = set()
    for collective in COLLECTIVES:
        for call, choice, nbytes in _choices(name, nodes, collective):
            made = loops(call, choice, nbytes)[0]
            key = collective, choice.algorithm, len(made.one)
            if key in proved or len(made.one) > MOST:
                continue
            proved.add(key)
            for times in (1, 2, 3) if len(made.one) <= FEW else (1,):
                schedule = made.again(made.one, times)
                check(schedule)
                _moves_the_right_bytes(schedule, choice.algorithm, call)
    assert {collective for collective, *_ in proved} == set(COLLECTIVES)


def test_every_algorithm_and_protocol_is_proved_somewhere() -> None:
    found = {
        (collective, choice.algorithm, choice.protocol)
        for name, nodes in (("dgx-a100", 2), ("dgx-h100", 1), ("dgx-h100", 2), ("mi300x", 1))
        for collective in COLLECTIVES
        for _, choice, _ in _choices(name, nodes, collective)
    }
    rings = {(collective, "ring", protocol) for collective in TUNED for protocol in ("ll", "ll128", "simple")}
    trees = {("all-reduce", "tree", protocol) for protocol in ("ll", "ll128", "simple")}
    switches = {(collective, "nvls", "simple") for collective in ("all-reduce", "all-gather", "reduce-scatter")}
    pairs = {
        (collective, algorithm, protocol)
        for collective, algorithm in (("all-to-all", "direct"), ("sendrecv", "shift"), ("gather", "flat"), ("scatter", "flat"))
        for protocol in ("ll", "simple")
    }
    others = {("all-reduce", "nvls-tree", "simple"), ("all-reduce", "two-shot", "ll")}
    assert found == rings | trees | switches | pairs | others


@pytest.mark.parametrize("collective", ["all-gather", "reduce-scatter"])
def test_pat_is_taken_with_one_gpu_a_node(collective: str) -> None:
    call = calls("dgx-h100", 4, collective, gpus=1)
    choice = next(call._choices(1 << 20))
    assert choice.algorithm == "pat"
    schedule = loops(call, choice, 1 << 20)[0].one
    check(schedule)
    _moves_the_right_bytes(schedule, "pat", call)


def test_a_schedule_that_lacks_a_send_is_not_proved() -> None:
    """The proof above is no empty word. NVSwitches also write what the owner of a slice has already: those sends nobody needs."""
    for name, algorithm in (("dgx-a100", "ring"), ("dgx-a100", "tree"), ("dgx-h100", "nvls")):
        call = calls(name, 1, "all-reduce", {"NCCL_ALGO": algorithm})
        whole = loops(call, next(call._choices(1 << 20)), 1 << 20)[0].one
        for lost in range(0, len(whole) if algorithm != "nvls" else 72, 5):
            kept = np.arange(len(whole)) != lost
            with pytest.raises(ScheduleError):
                check(whole.with_columns(**{key: column[kept] for key, column in whole.columns().items()}))


def _moves_the_right_bytes(schedule: Schedule, algorithm: str, call: Calls) -> None:
    """Each rank sends what the algorithm says; the data is so large that all chunks are whole."""
    name, n, nodes = schedule.collective.name, schedule.nranks, len(call.sites)
    one = 16 * len(schedule.weights)
    each = schedule.send_elements(one)
    assert (schedule.weights == schedule.weights[0]).all(), "channels get equal shares"
    if schedule.collective.personalised:
        assert one % n == 0
    sent = np.bincount(schedule.src, weights=each, minlength=schedule.places)[:n]
    share = one / n
    per_rank = {
        ("all-reduce", "ring"): 2 * (n - 1) * share, ("all-gather", "ring"): (n - 1) * share, ("reduce-scatter", "ring"): (n - 1) * share,
        ("all-to-all", "direct"): (n - 1) * share, ("sendrecv", "shift"): one, ("all-reduce", "two-shot"): 2 * (n - 1) * share,
        ("all-gather", "nvls"): share, ("reduce-scatter", "nvls"): one, ("all-reduce", "nvls"): one + share,
    }.get((name, algorithm))  # fmt: skip
    total = {
        ("all-reduce", "tree"): 2 * (n - 1) * one, ("broadcast", "ring"): (n - 1) * one, ("reduce", "ring"): (n - 1) * one,
        ("gather", "flat"): (n - 1) * share, ("scatter", "flat"): (n - 1) * share, ("all-gather", "pat"): (n - 1) * one,
        ("reduce-scatter", "pat"): (n - 1) * one, ("all-reduce", "nvls-tree"): n * one + nodes * one + 2 * (nodes - 1) * one,
    }.get((name, algorithm))  # fmt: skip
    assert per_rank is not None or total is not None, f"no rule for {name} {algorithm}"
    if per_rank is not None:
        np.testing.assert_allclose(sent, per_rank, rtol=1e-12)
    else:
        assert sent.sum() == pytest.approx(total, rel=1e-12)
    if schedule.collective.rooted and algorithm == "ring":
        assert sent.max() <= one, "a chain passes each byte on once"


def test_machines_of_the_list_differ() -> None:
    assert len({(built(name, nodes).name, len(built(name, nodes).gpus)) for name, nodes in CASES}) == len(CASES)
