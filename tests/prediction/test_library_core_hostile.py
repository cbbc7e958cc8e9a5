"""Calls that make no sense, machines that no library runs on, and runs that would take too long: refused in words, never a traceback."""

from __future__ import annotations

import math
import time

import pytest
from library_calls import asked, built, calls

from prediction.library import schedules
from prediction.library.asked import Asked
from prediction.library.predict import Row, predict_library
from topologies import make
from topologies.errors import MeasurementError, RingscopeError

ALL = ["all-reduce", "all-gather", "reduce-scatter", "broadcast", "reduce", "all-to-all", "sendrecv", "gather", "scatter"]


def _sane(row: Row, nbytes: int) -> None:
    assert row.size_bytes == nbytes
    assert 0 < row.low_s < row.time_s < row.high_s < math.inf
    assert row.algbw_Bps == pytest.approx(nbytes / row.time_s)


@pytest.mark.parametrize("nbytes", [0, -1, -(2**60)])
@pytest.mark.parametrize("collective", ["all-reduce", "sendrecv"])
def test_sizes_below_one_byte_are_refused(collective: str, nbytes: int) -> None:
    with pytest.raises(MeasurementError, match=rf"^nccl: size {nbytes} B; write 1 or more$"):
        calls("dgx-a100", 1, collective).row(nbytes)


@pytest.mark.parametrize("nbytes", [2**50 + 1, 2**60, 2**63, 2**70])
@pytest.mark.parametrize("collective", ["all-reduce", "sendrecv"])
def test_sizes_that_no_machine_has_are_refused(collective: str, nbytes: int) -> None:
    with pytest.raises(MeasurementError, match=rf"^nccl: size {nbytes} B; write at most {2**50} \(1 PiB\)$"):
        calls("dgx-a100", 1, collective).row(nbytes)


@pytest.mark.parametrize("nbytes", [1, 3, 2**41 + 1, 2**50])
@pytest.mark.parametrize("collective", ALL)
@pytest.mark.parametrize("nodes", [1, 2])
def test_the_smallest_and_the_largest_sizes_have_a_time(nodes: int, collective: str, nbytes: int) -> None:
    began = time.perf_counter()
    row = calls("dgx-h100", nodes, collective).row(nbytes)
    _sane(row, nbytes)
    assert time.perf_counter() - began < 60  # the engine may have to be compiled first
    if nbytes > 2**40:
        assert 1e9 < row.algbw_Bps < 1e12, "as fast as the links, not as numbers that overflow"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"library": "ncl"}, r'library "ncl" is not known; did you mean "nccl"\?'), ({"launch": "one"}, 'launch "one" is not known'),
        ({"version": "1.0"}, "2.16 to 2.30 are modelled; nearest: 2.16"), ({"version": "new"}, "write it as 2.21"),
        ({"environment": {"PATH": "1"}}, '"PATH" is not a variable of NCCL'),
        ({"environment": {"NCCL_ALGO": "rng"}}, 'did you mean "ring"'),
        ({"environment": {"NCCL_PROTO": "ll256"}}, 'did you mean "ll128"'), ({"environment": {"NCCL_MAX_CTAS": "0"}}, "write 1 to 64"),
        ({"environment": {"NCCL_ALGO": "nvls"}}, "no algorithm and protocol left for all-reduce"), ({"cpu": "via"}, '"via" is not a CPU'),
    ],
)  # fmt: skip
def test_unknown_words_are_named_with_the_right_ones(change: dict[str, object], words: str) -> None:
    with pytest.raises(MeasurementError, match=words):
        predict_library(built("dgx-a100", 1), "all-reduce", [1 << 20], Asked(**change))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("collective", "words"), [("all-reduc", 'did you mean "all-reduce"'), ("barrier", "none of its collectives; it has ")]
)
def test_other_collectives_are_refused(collective: str, words: str) -> None:
    with pytest.raises(RingscopeError, match=words):
        calls("dgx-a100", 1, collective)


@pytest.mark.parametrize("name", ["star", "ring", "torus", "fat-tree", "leaf-spine", "dragonfly", "tpu-v4"])
def test_machines_without_servers_or_nics_are_refused_or_have_a_time(name: str) -> None:
    topology = make(name, {})
    with pytest.raises(MeasurementError, match="server"):
        predict_library(topology, "all-reduce", [1 << 20], asked(topology))
    _sane(predict_library(topology, "all-to-all", [1 << 20], asked(topology))[0], 1 << 20)


@pytest.mark.parametrize(("nodes", "gpus"), [(4, 1), (2, 3), (3, 2)])
@pytest.mark.parametrize("collective", ALL)
def test_servers_of_few_gpus_have_times(nodes: int, gpus: int, collective: str) -> None:
    call = calls("dgx-h100", nodes, collective, gpus=gpus)
    for nbytes in (5, 1 << 20, 1 << 28):
        _sane(call.row(nbytes), nbytes)


def test_no_sizes_are_no_rows() -> None:
    assert predict_library(built("dgx-a100", 1), "all-reduce", [], Asked()) == ()


@pytest.mark.parametrize("collective", ["all-gather", "all-reduce", "broadcast"])
def test_2040_gpus_have_a_closed_form_at_once(collective: str) -> None:
    topology = built("superpod-h100", 255)
    began = time.perf_counter()
    rows = predict_library(topology, collective, [8, 1 << 20, 1 << 30], Asked())
    assert time.perf_counter() - began < 30, "before anything is built"
    assert not rows[-1].simulated
    times = [row.time_s for row in rows]
    assert times == sorted(times)
    for row in rows:
        _sane(row, row.size_bytes)


@pytest.mark.parametrize("collective", ["all-reduce", "all-to-all", "broadcast", "all-gather"])
def test_above_the_limit_stands_the_closed_form(monkeypatch: pytest.MonkeyPatch, collective: str) -> None:
    call = calls("dgx-h100", 2, collective)
    for name in ("MOST_SENDS", "MOST_SWITCHED"):
        monkeypatch.setattr(schedules, name, 100)
    instant = call.row(8 << 20)
    monkeypatch.undo()
    played = call.row(8 << 20)
    assert (instant.simulated, played.simulated) == (False, True)
    assert instant.time_s != played.time_s
    _sane(instant, 8 << 20)


@pytest.mark.parametrize(
    ("machine", "nodes", "collective", "nbytes", "margin"),
    [
        ("dgx-a100", 1, "all-reduce", 8, 0.001), ("dgx-a100", 1, "all-reduce", 1 << 20, 0.001),
        ("dgx-a100", 1, "all-reduce", 1 << 28, 0.02), ("dgx-h100", 1, "all-reduce", 1 << 32, 0.04),
        ("dgx-a100", 4, "all-reduce", 1 << 28, 0.08), ("dgx-h100", 2, "all-gather", 1 << 32, 0.08),
        ("dgx-h100", 2, "broadcast", 1 << 32, 0.08), ("dgx-h100", 2, "all-to-all", 1 << 28, 0.01),
        ("dgx-h100", 2, "sendrecv", 1 << 28, 0.01), ("dgx-h100", 4, "all-reduce", 8, 0.15),
        ("dgx-h100", 4, "all-reduce", 1 << 28, 0.15),
    ],
)  # fmt: skip
def test_closed_form_and_simulation_agree(
    monkeypatch: pytest.MonkeyPatch, machine: str, nodes: int, collective: str, nbytes: int, margin: float
) -> None:
    call = calls(machine, nodes, collective)
    played = call.row(nbytes)
    for name in ("MOST_SENDS", "MOST_SWITCHED"):
        monkeypatch.setattr(schedules, name, 0)
    assert call.row(nbytes).time_s == pytest.approx(played.time_s, rel=margin)
