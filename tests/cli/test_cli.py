"""Each command as a script and as a person uses it: keys of the JSON, words of the text, exit codes."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import cli
from algorithms.registry import catalogue
from topologies import names

ROOT = Path(__file__).parents[2]
RING = ["--topology", "ring", "--collective", "all-reduce", "--algorithm", "ring", "--size", "64MiB"]
LOG = (
    "# Collective test starting: all_reduce_perf\n# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)\n"
    + "".join(f"#  Rank {r:2} Group  0 Pid {100 + r} on host0 device  {r} [0x07] NVIDIA A100-SXM4-80GB\n" for r in range(8))
    + "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"
    "     1048576        262144     float     sum      -1    50.00   20.97   36.70      0    40.00   26.21   45.88      0\n"
)


def run(capsys: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    """Standard output of a command that must end with ``code`` and be silent on stderr."""
    assert cli.main(args) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def read(capsys: pytest.CaptureFixture[str], *args: str) -> Any:
    """The JSON of a command; nothing else may stand on stdout, and no NaN or infinity in it."""

    def refuse(word: str) -> None:
        raise AssertionError(f"{word} in JSON")

    return json.loads(run(capsys, *args, "--json"), parse_constant=refuse)


def test_topologies(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, "topologies")
    assert [entry["name"] for entry in found] == names()
    params = next(entry["params"] for entry in found if entry["name"] == "ring")
    assert params["bandwidth"] == {"unit": "bandwidth", "default": "25GB/s"}
    lines = run(capsys, "topologies").splitlines()
    assert [line.split()[0] for line in lines[1:]] == names()


def test_algorithms(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, "algorithms")
    assert [(a["collective"], a["name"]) for a in found] == [(a.collective.name, a.name) for a in catalogue()]
    assert next(a["options"] for a in found if a["name"] == "chain") == {"root": 0}
    assert len(run(capsys, "algorithms").splitlines()) == 1 + len(catalogue())


def test_simulate_has_the_closed_form(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, "simulate", *RING, "--param", "gpus=8", "--param", "bandwidth=25GB/s", "--param", "latency=1us")
    expected = 2 * 7 * (1e-6 + 2**26 / (8 * 25e9))
    assert found["time_s"] == pytest.approx(expected, rel=1e-12)
    assert found["closed_form_s"] == pytest.approx(expected, rel=1e-12)
    assert found["algbw_Bps"] == pytest.approx(2**26 / expected, rel=1e-12)
    assert found["busbw_Bps"] == pytest.approx(2 * 7 / 8 * 2**26 / expected, rel=1e-12)
    assert 0 < found["lower_bound_s"] <= found["time_s"]
    assert (found["nranks"], found["collective"], found["algorithm"], found["topology"], found["engine"], found["sends"]) == (
        8, "all-reduce", "ring", "ring-8", "event", 112,
    )  # fmt: skip
    assert found["bytes_per_rank"] == [2 * 7 * 2**23] * 8
    assert {"src", "dst", "bytes", "busy_s"} == found["links"][0].keys()
    path = found["critical_path"]
    terms = [path[key] for key in ("overhead_s", "latency_s", "bandwidth_s", "reduce_s", "wait_s")]
    assert sum(terms) == pytest.approx(expected, rel=1e-12)
    assert found["seed"] == 0


def test_model_options_and_text_units_reach_the_simulator(capsys: pytest.CaptureFixture[str]) -> None:
    plain = read(capsys, "simulate", *RING)["time_s"]
    slow = read(capsys, "simulate", *RING, "--model", "overhead=2us", "--model", "reduce-rate=200GB/s", "--seed", "5")
    assert slow["time_s"] == pytest.approx(plain + 14 * 2e-6 + 7 * 2**23 / 200e9, rel=1e-9)
    assert slow["seed"] == 5
    turned = {"overhead_s": 2e-6, "reduce_rate_Bps": 2e11, "sharing": "fair", "barrier": False, "fifo_depth": 0, "routing": "shortest"}
    assert slow["model"].items() >= turned.items()
    knobs = ["--model", "sharing=fifo", "--model", "barrier=true", "--model", "fifo-depth=4"]
    assert read(capsys, "simulate", *RING, *knobs)["model"]["sharing"] == "fifo"
    half = read(capsys, "simulate", *RING, "--param", "bandwidth=100Gb/s")["time_s"]
    assert half == pytest.approx(2 * 7 * (1e-6 + 2**26 / (8 * 12.5e9)), rel=1e-12)


def test_a_seed_reaches_all_that_draws(capsys: pytest.CaptureFixture[str]) -> None:
    hashed = ["simulate", "-t", "fat-tree", "-c", "all-to-all", "-a", "direct", "-s", "64KiB", "--model"]
    asked = (
        ["routing=ecmp"],
        ["routing=ecmp", "--seed", "5"],
        ["routing=ecmp,routing-seed=5"],
        ["routing=ecmp,routing_seed=5", "--seed", "7"],
    )
    runs = [read(capsys, *hashed, *words) for words in asked]
    assert [found["model"]["routing_seed"] for found in runs] == [0, 5, 5, 5]
    first, *others = [[(link["src"], link["dst"], link["bytes"]) for link in found["links"]] for found in runs]
    assert all(links == others[0] != first for links in others)
    drawn = ["show", "-t", "star", "--param", "gpus=16", "-c", "sendrecv", "-a", "random-permutation", "-s", "4KiB", "--seed"]
    ends = [[(send["src"], send["dst"]) for send in read(capsys, *drawn, seed)["sends"]] for seed in ("0", "5", "5")]
    assert ends[0] != ends[1] == ends[2]


def test_options_channels_slices_dtype_and_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    chain = ["-t", "dgx-a100", "-c", "broadcast", "-a", "chain", "-s", "1MiB"]
    found = read(capsys, "simulate", *chain, "--nodes", "2", "--option", "root=3", "--slices", "4", "--channels", "2", "--dtype", "float16")
    assert (found["nranks"], found["topology"], found["dtype"]) == (16, "dgx-a100-2x8", "float16")
    assert found["sends"] == 15 * 4 * 2
    assert found["bytes_per_rank"][2] == 0  # the chain from rank 3 ends at rank 2


def test_a_barrier_has_no_bandwidth_but_a_number_for_time() -> None:
    from views.terminal import rate

    assert rate(None) == "-"


def test_simulate_in_words_says_the_answer_first(capsys: pytest.CaptureFixture[str]) -> None:
    lines = run(capsys, "simulate", *RING).splitlines()
    assert lines[0] == "all-reduce of 64 MiB by ring on ring-8: 4.712 ms"
    text = "\n".join(lines)
    for words in ("busbw 24.93 GB/s", "limited by", "gpu5 -> gpu6", "lower bound", "closed form", "the same", "latency", "99.7 %"):
        assert words in text
    assert max(map(len, lines)) <= 120


def test_a_cluster_file_is_a_topology(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    cluster = tmp_path / "pair.toml"
    cluster.write_text('topology = "star"\nparams = { gpus = 4 }\n')
    found = read(capsys, "simulate", "-t", str(cluster), "-c", "all-reduce", "-a", "ring", "-s", "4KiB")
    assert found["nranks"] == 4


def test_show(capsys: pytest.CaptureFixture[str]) -> None:
    four = ["show", *RING[2:], "--topology", "ring", "--param", "gpus=4"]
    text = run(capsys, *four)
    assert "step 0" in text
    assert "step 5" in text
    assert text.count("all      all      all") == 4
    one = run(capsys, *four, "--step", "1")
    assert "step 0" not in one
    assert "rank 0 -> rank 1  chunk 2  added  16 MiB" in one
    assert "  rank 1  1        1        0-1,3    0-1\n" in one
    found = read(capsys, *four, "--step", "1")
    assert len(found["sends"]) == 4
    assert found["holds"][1] == ["1", "1", "0-1,3", "0-1"]


def test_holdings_of_a_broadcast(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, "show", "-t", "ring", "--param", "gpus=3", "-c", "broadcast", "-a", "chain", "-s", "4KiB", "--step", "0")
    assert found["holds"] == [["0"], ["0"], ["."]]


def test_predict(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["predict", "--topology", "ring", "--collective", "all-reduce", "--sizes", "1KiB:1MiB:x32"]
    found = read(capsys, *asked)
    assert [row["size_bytes"] for row in found["rows"]] == [1 << 10, 1 << 15, 1 << 20]
    for row in found["rows"]:
        times = {c["algorithm"]: c["time_s"] for c in row["candidates"]}
        assert row["time_s"] == min(times.values()) == times[row["algorithm"]]
        assert row["algbw_Bps"] == pytest.approx(row["size_bytes"] / row["time_s"])
        assert row["busbw_Bps"] == pytest.approx(row["algbw_Bps"] * 14 / 8)
    assert [c["to"] for c in found["crossovers"]] == [
        b["algorithm"] for a, b in pairwise(found["rows"]) if a["algorithm"] != b["algorithm"]
    ]
    table = list(csv.DictReader(io.StringIO(run(capsys, *asked, "--csv"))))
    assert len(table) == sum(len(row["candidates"]) for row in found["rows"])
    assert [row["algorithm"] for row in table if row["best"] == "1"] == [row["algorithm"] for row in found["rows"]]
    assert float(table[0]["time_s"]) == found["rows"][0]["time_s"]
    text = run(capsys, *asked)
    assert text.count("*") == 4  # one a size, and its explanation
    assert "from about" in text.splitlines()[1]
    assert "left out: sharp" in text
    assert max(map(len, text.splitlines())) <= 100


def test_predict_of_one_algorithm(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, "predict", "-t", "ring", "-c", "all-reduce", "--sizes", "1MiB", "-a", "ring", "-a", "recursive-doubling")
    assert {c["algorithm"] for c in found["rows"][0]["candidates"]} == {"ring", "recursive-doubling"}


def test_compare(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text(LOG)
    found = read(capsys, "compare", str(log), "--topology", "dgx-a100")
    assert found["algorithm"] == "ring"
    assert [(r["collective"], r["in_place"], r["size_bytes"]) for r in found["rows"]] == [
        ("all-reduce", False, 1 << 20), ("all-reduce", True, 1 << 20),
    ]  # fmt: skip
    for row in found["rows"]:
        assert row["error"] == pytest.approx(row["predicted_s"] / row["measured_s"] - 1)
    assert found["mape"] == pytest.approx(50 * sum(abs(row["error"]) for row in found["rows"]))
    text = run(capsys, "compare", str(log), "--topology", "dgx-a100")
    assert text.startswith(f"mean absolute error {found['mape']:.1f} % over 2 rows by ring")
    assert "1 MiB" in text
    assert "nodes=1, gpus=8" in text


def test_verify(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = ["verify", "--collective", "all-reduce", "--algorithm", "halving-doubling", "--ranks", "6"]
    found = read(capsys, *asked)
    assert (found["ok"], found["max_abs_error"]) == (True, 0)
    assert len(found["bytes_per_rank"]) == 6
    with_size = read(capsys, *asked, "--topology", "star", "--size", "4KiB")
    played = read(capsys, "simulate", "-t", "star", "--param", "gpus=6", "-c", "all-reduce", "-a", "halving-doubling", "-s", "4KiB")
    assert with_size["bytes_per_rank"] == played["bytes_per_rank"]
    assert with_size["sends"] == played["sends"]
    assert "correct" in run(capsys, *asked)
    from prediction import verify as module

    monkeypatch.setitem(module.EXECUTORS, "numpy", _wrong_executor)
    assert "WRONG" in run(capsys, *asked, code=1)


def _wrong_executor(schedule: Any, inputs: Any) -> Any:
    from kernels import numpy_executor

    held, trace = numpy_executor.run(schedule, inputs)
    held[0][0] = held[0][0] * 0
    return held, trace


def test_bounds(capsys: pytest.CaptureFixture[str]) -> None:
    found = read(capsys, "bounds", "-t", "star", "-c", "all-reduce", "-s", "1MiB")
    assert found["lower_bound_s"] == max(found["latency_s"], found["bandwidth_s"])
    assert found["bandwidth_s"] == pytest.approx(2 * 7 / 8 * 2**20 / 25e9, rel=1e-9)
    assert found["limiting"]
    assert found["in_network"]["lower_bound_s"] == pytest.approx(2**20 / 25e9, rel=1e-9)
    text = run(capsys, "bounds", "-t", "star", "-c", "all-reduce", "-s", "1MiB")
    assert "takes at least 73.4 µs" in text.splitlines()[0]


def test_no_arguments_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    text = run(capsys)
    for command in ("topologies", "algorithms", "simulate", "show", "predict", "compare", "verify", "bounds", "app"):
        assert f"  {command} " in text
    assert "--topology" in run(capsys, "simulate", "--help")


def test_app_starts_streamlit_on_this_machine_only(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[list[str]] = []
    monkeypatch.setattr(os, "execv", lambda program, arguments: started.append([program, *arguments]))
    monkeypatch.chdir(ROOT)
    assert "http://127.0.0.1:8599" in run(capsys, "app", "--port", "8599")
    (words,) = started
    assert words[:5] == [sys.executable, sys.executable, "-m", "streamlit", "run"]
    assert {"--server.address=127.0.0.1", "--server.port=8599", "--server.headless=true", "--browser.gatherUsageStats=false"} < set(words)


def test_ctrl_c_is_one_line(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    from prediction import predict

    def interrupt(*args: Any, **kwargs: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(predict, "simulate", interrupt)
    assert cli.main(["predict", "-t", "ring", "-c", "all-reduce", "--sizes", "1KiB"]) == 130
    assert capsys.readouterr() == ("", "ringscope: interrupted\n")


def test_a_progress_bar_does_not_touch_the_result(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    import views.bar

    monkeypatch.setattr(views.bar, "PATIENCE", 0.0)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    assert cli.main(["predict", "-t", "star", "-c", "broadcast", "--sizes", "1KiB:1MiB:x2", "--json"]) == 0
    out, err = capsys.readouterr()
    assert len(json.loads(out)["rows"]) == 11
    assert "runs" in err


def shell(command: str) -> subprocess.CompletedProcess[str]:
    program = f"{sys.executable} -c 'import sys, cli; sys.exit(cli.main())'"
    return subprocess.run(["bash", "-c", command.replace("ringscope", program)], cwd=ROOT, capture_output=True, text=True, check=False)


def test_the_reader_may_leave_early() -> None:
    done = shell("ringscope show -t star --param gpus=32 -c all-reduce -a ring -s 1MiB | head -1; exit ${PIPESTATUS[0]}")
    assert done.stdout.startswith("all-reduce of 1 MiB by ring on star-32")
    assert done.stderr == ""


def test_help_needs_no_heavy_library() -> None:
    timed = f"{sys.executable} -X importtime -c 'import cli; cli.main([\"--help\"])' 2>&1 >/dev/null"
    done = shell(f"ringscope --help; {timed} | grep -cE 'numpy|networkx|simpy|scipy'")
    assert done.stdout.startswith("Usage: ringscope")
    assert done.stdout.splitlines()[-1] == "0"
