"""``predict --library``, ``compare --library`` and ``calibrate``: keys that scripts use, files that read back, one line for a mistake."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
from log_writers import csv_text
from measured_log import all_reduce_log

from cli import main
from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.library.predict import predict_library
from topologies import make, read_cluster

KEYS = {"size_bytes", "time_s", "low_s", "high_s", "algbw_Bps", "busbw_Bps", "algorithm", "protocol"}
PREDICT = ["predict", "-t", "dgx-a100", "--nodes", "1", "-c", "all-reduce"]
SIZES = [8 << 4 * i for i in range(7)]


def read(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> Any:
    assert main([*words, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(list(words)) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1
    return err


@pytest.fixture
def log(tmp_path: Path) -> Path:
    """Of a DGX A100 whose one process launches slowly and whose NVLinks give less."""
    machine, asked = make("dgx-a100", {"nodes": "1"}), Asked(launch="one-process")
    priors = Constants.of(machine, asked)
    true = priors.replaced(floor=1.5 * priors.floor, host=1.5 * priors.host, nvlink=0.9 * priors.nvlink, nvls=0.9 * priors.nvls)
    rows = predict_library(machine, "all-reduce", SIZES, asked, true)
    path = tmp_path / "measured.txt"
    path.write_text(all_reduce_log({row.size_bytes: 1e6 * row.time_s for row in rows}))
    return path


def test_predict_with_a_library(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, *PREDICT, "--sizes", "8B,64KiB,1GiB", "--library", "nccl", "--nccl-version", "2.21")
    assert [row["size_bytes"] for row in found["rows"]] == [8, 64 << 10, 1 << 30]
    for row in found["rows"]:
        assert set(row) >= KEYS
        assert 0 < row["low_s"] < row["time_s"] < row["high_s"]
        assert row["algbw_Bps"] == pytest.approx(row["size_bytes"] / row["time_s"])
        assert row["busbw_Bps"] == pytest.approx(row["algbw_Bps"] * 2 * 7 / 8)
        assert row["protocol"] in ("ll", "ll128", "simple")
    assert (found["library"], found["version"], found["launch"]) == ("nccl", "2.21", "process-per-gpu")
    slow = read(capsys, *PREDICT, "--sizes", "8B", "--library", "nccl", "--launch", "one-process")
    assert slow["rows"][0]["time_s"] > 1.3 * found["rows"][0]["time_s"]
    tree = read(capsys, *PREDICT, "--sizes", "8B", "--library", "nccl", "--env", "NCCL_ALGO=tree", "--env", "NCCL_PROTO=simple")
    assert (tree["rows"][0]["algorithm"], tree["rows"][0]["protocol"]) == ("tree", "simple")


def test_predict_as_a_table_and_as_csv(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*PREDICT, "--sizes", "64KiB", "--library", "nccl", "--env", "NCCL_ALGO=ring"]) == 0
    text = capsys.readouterr().out
    assert "NCCL 2.30, process-per-gpu, NCCL_ALGO=ring" in text
    assert all(word in text for word in ("64 KiB", "busbw", "four of five", "protocol"))
    assert main([*PREDICT, "--sizes", "8B,64KiB", "--library", "nccl", "--csv"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert [row["size_bytes"] for row in rows] == ["8", "65536"]
    assert set(rows[0]) >= KEYS


def test_without_a_library_nothing_changes(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, *PREDICT, "--sizes", "64KiB")
    assert len(found["rows"][0]["candidates"]) > 1
    assert "library" not in found


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--nccl-version", "2.21"], "--nccl-version is of a library; write --library nccl"),
        (["--launch", "one-process"], "--launch is of a library"),
        (["--env", "NCCL_ALGO=ring"], "--env is of a library"),
        (["--library", "ncl"], 'library "ncl" is not known; did you mean "nccl"?'),
        (["--library", "nccl", "--nccl-version", "two"], "write it as 2.21"),
        (["--library", "nccl", "--nccl-version", "2.99"], "2.16 to 2.30 are modelled"),
        (["--library", "nccl", "--launch", "one-proces"], 'did you mean "one-process"?'),
        (["--library", "nccl", "--env", "NCCL_ALGO"], "write --env key=value"),
        (["--library", "nccl", "--env", "NCCL_ALGO=rong"], "rong"),
        (["--library", "nccl", "-a", "ring"], "--algorithm does not go with --library"),
        (["--library", "nccl", "--model", "overhead=1us"], "--model does not go with --library"),
        (["--library", "nccl", "--engine", "event"], "--engine does not go with --library"),
        (["--library", "nccl", "-c", "barrier"], "barrier is none of its collectives"),
        (["--library", "nccl", "-c", "all-redcue"], 'did you mean "all-reduce"?'),
        (["--library", "nccl", "-t", "star", "--param", "gpus=4"], "in no server"),
    ],
)
def test_refusals(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    base = ["predict", "-t", "dgx-a100", "-c", "all-reduce", "--sizes", "8B"]
    for flag in ("-t", "-c"):
        if flag in words:
            at = base.index(flag)
            del base[at : at + 2]
    assert says in refused(capsys, *base, *words)


def test_too_large_a_call_is_refused_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["-t", "superpod-h100", "--param", "units=8", "-c", "all-to-all", "--sizes", "8B", "--library", "nccl"]
    assert "take fewer GPUs" in refused(capsys, "predict", *words)


def test_compare_with_a_library(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", str(log), "-t", "dgx-a100", "--library", "nccl"]
    found = read(capsys, *words)
    assert {"S", "M", "L", "all"} == set(found["bands"])
    assert found["mape"] == found["bands"]["all"]["mape"] > 10
    assert found["tables"][0]["launch"] == "one-process"  # the log says so
    assert len(found["rows"]) == 2 * len(SIZES)
    row = found["rows"][-1]
    assert row["error"] == pytest.approx(row["predicted_s"] / row["measured_s"] - 1)
    assert {"algorithm", "protocol", "low_s", "high_s", "in_place"} <= set(row)
    assert read(capsys, *words, "--launch", "process-per-gpu")["tables"][0]["launch"] == "process-per-gpu"
    assert main(words) == 0
    text = capsys.readouterr().out
    assert "up to 64 KiB" in text
    assert "the log says who launches: one-process" in text
    assert "--algorithm does not go with --library" in refused(capsys, *words, "-a", "ring")
    assert "has 16 GPUs" in refused(capsys, *words, "--nodes", "2", "--param", "gpus=8")


def test_calibrate_writes_a_machine_that_predicts_the_log(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "machine.toml"
    found = read(capsys, "calibrate", str(log), "-t", "dgx-a100", "-o", str(file))
    assert found["refused"] is None
    assert found["file"] == str(file)
    assert found["bands"]["all"]["after"] < 3 < found["bands"]["all"]["before"]
    moved = found["moved"]["nvlink"]
    assert moved["after"] == pytest.approx(0.9 * moved["before"], rel=0.03)
    assert moved["low"] < moved["after"] < moved["high"]
    assert "one node" in found["undetermined"]["nic"]
    machine = read_cluster(file)
    assert machine.constants["nvlink"] == moved["after"]
    assert "host" not in machine.constants
    again = read(capsys, "compare", str(log), "-t", str(file), "--library", "nccl")
    assert again["mape"] < 3
    larger = read(capsys, *PREDICT[:1], "-t", str(file), "--nodes", "2", *PREDICT[5:], "--sizes", "8B", "--library", "nccl")
    assert larger["nranks"] == 16
    written = file.read_bytes()
    assert main(["calibrate", str(log), "-t", "dgx-a100", "-o", str(file)]) == 0
    assert file.read_bytes() == written
    text = capsys.readouterr().out
    assert "not told: net_hop, nic: one node" in text
    assert "give it as --topology" in text


def test_calibrate_a_machine_of_a_file(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plain, file = tmp_path / "plain.toml", tmp_path / "machine.toml"
    plain.write_text('topology = "dgx-a100"\nparams = { nodes = 1 }\nconstants = { net_hop = "5us" }\n')
    assert main(["calibrate", str(log), "-t", str(plain), "-o", str(file)]) == 0
    capsys.readouterr()
    machine = read_cluster(file)
    assert machine.links == read_cluster(plain).links
    assert machine.constants["net_hop"] == 5e-6
    assert "floor" in machine.constants


def test_a_bad_fit_writes_nothing(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, file = tmp_path / "bad.csv", tmp_path / "machine.toml"
    rows = [("all-reduce", 8, size, 3000.0 if i % 2 else 1.0) for i, size in enumerate(SIZES)]
    bad.write_text(csv_text(("collective", "ranks", "size_bytes", "time_us"), rows))
    found = read(capsys, "calibrate", str(bad), "-t", "dgx-a100", "-o", str(file), code=1)
    assert found["refused"]
    assert found["file"] is None
    assert not file.exists()


def test_calibrate_from_two_numbers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "q.toml"
    words = ["calibrate", "-t", "dgx-a100", "--nodes", "1", "--quick", "25us", "9.9ms", "--sizes", "8B,1GiB"]
    found = read(capsys, *words, "-o", str(file))
    assert found["bands"]["all"]["after"] < 1
    rows = read(capsys, "predict", "-t", str(file), "-c", "all-reduce", "--sizes", "8B,1GiB", "--library", "nccl")["rows"]
    assert [row["time_s"] for row in rows] == pytest.approx([25e-6, 9.9e-3], rel=0.01)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ([], "give a log, or two times with --quick"),
        (["LOG", "--quick", "1us", "1ms"], "and not both"),
        (["LOG", "-c", "all-gather"], "go with --quick"),
        (["--quick", "1", "1ms"], '--quick: "1" is not a time'),
        (["--quick", "1us", "1ms", "--sizes", "8B"], "two times are of two sizes"),
        (["--quick", "1us", "1ms", "-c", "barrier"], "barrier is none of its collectives"),
        (["nothere.txt"], "nothere.txt"),
        (["LOG", "--launch", "foo"], 'launch "foo" is not known'),
        (["LOG", "--nodes", "2", "--param", "gpus=8"], "8 ranks"),
        (["LOG", "-o", "/proc/nothing/machine.toml"], "there is no folder"),
        (["LOG", "-o", "machine.xml"], "not the name of a cluster file"),
        (["LOG", "-o", ""], "not the name of a cluster file"),
    ],
)
def test_calibrate_refusals(words: list[str], says: str, log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert says in refused(capsys, "calibrate", "-t", "dgx-a100", *(str(log) if word == "LOG" else word for word in words))


def test_logs_of_two_machines_are_no_one_machine(log: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "four.csv"
    rows = [("all-reduce", 4, 8, 12.0), ("all-reduce", 4, 1024, 14.0)]
    other.write_text(csv_text(("collective", "ranks", "size_bytes", "time_us"), rows))
    assert "of 4, 8 ranks" in refused(capsys, "calibrate", str(log), str(other), "-t", "dgx-a100")
