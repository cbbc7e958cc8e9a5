"""What a simulation on many GPUs must not do: import what it does not need, or print a line for every link."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

import cli

STAR = ["--topology", "star", "--collective", "broadcast", "--algorithm", "binomial-tree", "--size", "4KiB"]


def simulated(capsys: pytest.CaptureFixture[str], gpus: int) -> Any:
    assert cli.main(["simulate", *STAR, "--param", f"gpus={gpus}", "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_a_star_is_simulated_without_heavy_libraries() -> None:
    words = ["simulate", "--topology", "star", "--collective", "all-reduce", "--algorithm", "ring", "--size", "1MiB", "--json"]
    told = "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    script = f"import sys, cli; assert cli.main({words}) == 0; {told}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert json.loads(done.stdout)["nranks"] == 8
    assert {"networkx", "numpy"} <= set(done.stderr.split())
    assert not {"scipy", "matplotlib", "streamlit", "altair", "rich"} & set(done.stderr.split())


def test_only_the_module_of_the_command_is_imported() -> None:
    told = "print(*(name for name in sys.modules if name.startswith('commands.')))"
    script = f"import sys, cli; assert cli.main(['topologies', '--help']) == 0; {told}"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert sorted(done.stdout.splitlines()[-1].split()) == ["commands.lists", "commands.options"]


def test_every_command_of_the_table_is_in_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["--help"]) == 0
    listed = capsys.readouterr().out.split("Commands:")[1].splitlines()
    assert [line.split()[0] for line in listed if line[:3].strip()] == list(cli.COMMANDS)


def test_more_than_a_thousand_links_and_ranks_are_summed_up(capsys: pytest.CaptureFixture[str]) -> None:
    n, size = 1001, 4096
    found = simulated(capsys, n)
    links, summary = found["links"], found["links_summary"]
    senders = summary["count"] - (n - 1)  # every rank but the root receives by one link, and the senders send by one each
    assert 1 < senders < n
    assert summary["bytes_total"] == 2 * (n - 1) * size  # two hops a message
    assert summary["by_kind"] == {"link": {"count": summary["count"], "bytes_total": summary["bytes_total"]}}
    assert len(links) == 20
    assert links[0] == {"src": "gpu0", "dst": "switch", "bytes": 10 * size, "busy_s": summary["busy_s_max"]}  # ten children
    assert [link["busy_s"] for link in links] == sorted((link["busy_s"] for link in links), reverse=True)
    assert summary["busy_s_median"] == pytest.approx(size / 25e9, rel=1e-12)  # that of one message
    assert found["bytes_per_rank"] == {"min": 0, "max": 10 * size, "sum": (n - 1) * size}


def test_up_to_a_thousand_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    found = simulated(capsys, 600)
    assert "links_summary" not in found
    assert 599 < len(found["links"]) <= 1000
    assert sum(link["bytes"] for link in found["links"]) == 2 * sum(found["bytes_per_rank"]) == 2 * 599 * 4096


def test_text_says_how_busy_the_other_links_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(["simulate", *STAR, "--param", "gpus=1001"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[-1].split()[1] == "more"
    assert lines[-1].endswith("busy in the median")
