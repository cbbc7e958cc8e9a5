"""``ringscope explain --library``: the rules of libraries beside NCCL in words and in JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest

from cli import main

ASK = ["explain", "-t", "dgx-h100", "--nodes", "2", "-c", "all-reduce", "-s", "64KiB"]
MI300X = ["explain", "-t", "mi300x", "--nodes", "2", "-c", "all-reduce", "-s", "64KiB"]


def told(capsys: pytest.CaptureFixture[str], *words: str) -> Any:
    assert main([*words, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("library", ["rccl", "gloo", "open-mpi", "mpich"])
def test_the_record_has_the_keys_of_nccl(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    ask = MI300X if library == "rccl" else ASK
    nccl, found = told(capsys, *ASK), told(capsys, *ask, "--library", library)
    assert set(nccl) - {"graphs", "comm_channels", "nvls_channels"} <= set(found)
    assert set(nccl["choice"]) - {"threads"} <= set(found["choice"])
    assert found["library"] == library
    assert (found["nranks"], found["nodes"], found["size_bytes"]) == (16, 2, 65536)
    assert found["choice"] == found["ranking"][0]
    assert found["rule"]
    assert (found["choice"]["time_s"] is None) == (library != "rccl")
    if library == "rccl":
        times = [row["time_s"] for row in found["ranking"]]
        assert times == sorted(times)
        assert len(times) == 4


def test_words_say_the_choice_and_why(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASK, "--library", "open-mpi"]) == 0
    words = capsys.readouterr().out
    assert "takes halving-doubling (6 rabenseifner)" in words
    assert "16 to 31 ranks, 4 KiB or more" in words
    assert main([*MI300X, "--library", "rccl"]) == 0
    words = capsys.readouterr().out
    assert "rccl 2.21 takes tree (Tree, LL), protocol ll" in words
    assert words.count("runner-up") == 2
    assert "ring sets are not known" in words


def test_what_cannot_be_simulated_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    ask = ["explain", "-t", "star", "--param", "gpus=200", "-c", "all-reduce", "-s", "64KiB", "--library", "open-mpi"]
    choice = told(capsys, *ask)["choice"]
    assert (choice["algorithm"], choice["schedule"]) == ("reduce-broadcast", None)
    assert choice["options"] == {"reduce": "binomial-tree", "broadcast": "k-nomial-tree"}
    assert main(ask) == 0
    assert "not simulated here" in capsys.readouterr().out


def test_schedules_named_are_those_of_simulate(capsys: pytest.CaptureFixture[str]) -> None:
    for library in ("gloo", "open-mpi", "mpich"):
        schedule = told(capsys, *ASK, "--library", library)["choice"]["schedule"]
        assert told(capsys, "simulate", *ASK[1:], "-a", schedule)["algorithm"] == schedule


def test_versions_and_picks_change_it(capsys: pytest.CaptureFixture[str]) -> None:
    ask = [*ASK[:-1], "2KiB", "--library"]
    assert told(capsys, *ask, "mpich")["choice"]["algorithm"] == "halving-doubling"
    assert told(capsys, *ask, "mpich", "--library-version", "3")["choice"]["algorithm"] == "recursive-doubling"
    more = ["--library-version", "3", "--env", "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE=1000"]
    assert told(capsys, *ask, "mpich", *more)["choice"]["algorithm"] == "halving-doubling"
    assert told(capsys, *ask, "gloo")["choice"]["algorithm"] == "ring"
    assert told(capsys, *ask, "gloo", "-a", "bcube")["choice"]["algorithm"] == "halving-doubling"


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--library", "rcl"], 'did you mean "rccl"'),
        (["--library", "rccl"], "MI300X only"),
        (["--library", "gloo", "-a", "rng"], 'did you mean "ring"'),
        (["--library", "mpich", "-a", "ring"], "only Gloo's caller"),
        (["--library", "mpich", "--nccl-version", "2.21"], "--nccl-version is NCCL's"),
        (["--library", "mpich", "--library-version", "5"], "4 and 3"),
        (["--library-version", "2.21"], "NCCL takes --nccl-version"),
        (["-a", "ring"], "NCCL takes --nccl-version"),
        (["--library", "open-mpi", "--env", "OMPI_MCA_coll_tuned_use_dynamic_rules=1"], "not modelled"),
    ],
)
def test_refusals(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*ASK, *words]) == 2
    out, line = capsys.readouterr()
    assert out == ""
    assert says in line
    assert line.count("\n") == 1
