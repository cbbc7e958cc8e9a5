"""``ringscope doctor``: words, JSON keys, and one line for what it cannot answer."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli import main
from tests.helpers.measured_log import all_reduce_log

TIMES = {1024: 40.0, 65536: 45.0, 1 << 20: 95.0, 1 << 25: 1700.0, 1 << 28: 13000.0}


@pytest.fixture
def log(tmp_path: Path) -> str:
    path = tmp_path / "run.txt"
    path.write_text(all_reduce_log(TIMES))
    return str(path)


def test_a_low_result_in_words_and_in_json(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", log, "--nccl-version", "2.21", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["verdict"] == "low"
    assert 0 < told["ratio"] < 0.5
    assert {"id", "confidence", "evidence"} <= set(told["causes"][0])
    assert sum(cause["confidence"] for cause in told["causes"]) <= 1
    assert [row["size_bytes"] for row in told["rows"]] == list(TIMES)
    assert main(["doctor", log, "--nccl-version", "2.21"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("low: all-reduce over 8 ranks")
    assert told["causes"][0]["id"] in said
    assert "check: " in said


def test_variables_change_what_is_expected(log: str, capsys: pytest.CaptureFixture[str]) -> None:
    found = []
    for more in ([], ["--env", "NCCL_PROTO=LL"], ["-t", "dgx-a100"]):
        assert main(["doctor", log, "--nccl-version", "2.21", *more, "--json"]) == 0
        found.append(json.loads(capsys.readouterr().out)["ratio"])
    assert found[0] < found[1]
    assert found[0] < found[2]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--param", "gpus=8"], "add --topology custom"),
        (["--launch", "fork"], 'launch "fork" is not known'),
        (["-t", "dgx-h2000"], "did you mean"),
        (["--nccl-version", "two"], "write it as 2.21"),
        (["--env", "NCCL_ALGO=rong"], "rong"),
    ],
)
def test_refusals(log: str, words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", log, *words]) == 2
    line = capsys.readouterr().err
    assert says in line
    assert line.count("\n") == 1
