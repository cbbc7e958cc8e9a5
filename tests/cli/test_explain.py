"""``ringscope explain``: NCCL's choice in words and in JSON, and one line for what it cannot answer."""

from __future__ import annotations

import json

import pytest

from cli import main

ASK = ["explain", "-t", "dgx-h100", "--nodes", "2", "-c", "all-reduce", "-s", "64MiB"]


def test_the_choice_with_its_runners_up(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASK, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    best, *others = told["ranking"]
    assert told["choice"] == best
    assert {"algorithm", "protocol", "channels", "time_s"} <= set(best)
    assert len(others) >= 2
    assert all(best["time_s"] <= row["time_s"] for row in others)
    assert main(ASK) == 0
    assert f"takes {best['algorithm']}, protocol {best['protocol']}" in capsys.readouterr().out


def test_variables_and_versions_change_it(capsys: pytest.CaptureFixture[str]) -> None:
    choices = []
    for more in ([], ["--nccl-version", "2.16"], ["--env", "NCCL_ALGO=ring", "--env", "NCCL_PROTO=Simple"]):
        assert main([*ASK, *more, "--json"]) == 0
        choice = json.loads(capsys.readouterr().out)["choice"]
        choices.append((choice["algorithm"], choice["protocol"]))
    assert choices[2] == ("ring", "simple")
    assert len(set(choices)) == 3


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--library", "cnccl"], 'library "cnccl" is not known; did you mean "nccl"'),
        (["--nccl-version", "two"], "write it as 2.21"),
        (["--env", "NCCL_ALGO"], "write --env key=value"),
        (["--env", "NCCL_ALGO=rong"], "rong"),
    ],
)
def test_refusals(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASK, *words]) == 2
    line = capsys.readouterr().err
    assert says in line
    assert line.count("\n") == 1
