"""Whatever is wrong with the input: one clear line on stderr, exit code 2, nothing on stdout, nothing written."""

from __future__ import annotations

import os
import socket
import time
from pathlib import Path

import pytest

import cli

RING = "-c all-reduce -a ring -s 1MiB"

# Words of the command, and what the line must say. {tmp} is a folder with the files made below.
CASES = {
    "unknown command": ("simulte -t ring", 'did you mean "simulate"'),
    "unknown option": (f"simulate -t ring {RING} --sise 3", 'did you mean "--size"'),
    "missing option": ("simulate -t ring -c all-reduce -a ring", "--size"),
    "missing value": (f"simulate {RING} -t", "requires an argument"),
    "missing log": ("compare -t ring", "Missing argument"),
    "too many words": (f"simulate -t ring {RING} more", "more"),
    "unknown topology": (f"simulate -t rung {RING}", 'did you mean "ring"'),
    "unknown parameter": (f"simulate -t ring --param gpu=4 {RING}", 'did you mean "gpus"'),
    "parameter without value": (f"simulate -t ring --param gpus {RING}", "write --param key=value"),
    "parameter twice": (f"simulate -t ring --param gpus=4 --param gpus=5 {RING}", "stands twice"),
    "nodes twice": (f"simulate -t dgx-a100 --nodes 2 --param nodes=2 {RING}", "say the same"),
    "nodes of a ring": (f"simulate -t ring --nodes 2 {RING}", '"nodes"'),
    "one GPU": (f"simulate -t ring --param gpus=1 {RING}", "at least 2"),
    "no GPU": (f"simulate -t ring --param gpus=0 {RING}", '"0" is not a count'),
    "negative GPUs": (f"simulate -t ring --param gpus=-4 {RING}", '"-4" is not a count'),
    "10^9 GPUs": (f"simulate -t ring --param gpus=1000000000 {RING}", "GB of memory"),
    "10^9 GPUs, bounds": ("bounds -t star --param gpus=1000000000 -c all-reduce -s 1MiB", "1,000,000,000 GPUs need about"),
    "10^6 GPUs": (f"simulate -t ring --param gpus=1000000 {RING}", "about 2.1e+12 sends"),
    "10^6 GPUs in a chain": ("simulate -t star --param gpus=1000000 -c broadcast -a chain -s 1MiB", "1,000,000 GPUs need about 20 GB"),
    "10^6 ranks": ("verify -c all-reduce -a ring -n 1000000", "about 2.1e+12 sends"),
    "GPUs too many for a DGX": (f"simulate -t dgx-a100 --param gpus=9 {RING}", "write 1 to 8"),
    "bandwidth without unit": (f"simulate -t ring --param bandwidth=25 {RING}", "25Gb/s"),
    "bandwidth in wrong unit": (f"simulate -t ring --param bandwidth=400Gig {RING}", '"400Gb/s"'),
    "bandwidth 0": (f"simulate -t ring --param bandwidth=0GB/s {RING}", "1B/s"),
    "bandwidth NaN": (f"simulate -t ring --param bandwidth=nan {RING}", '"nan"'),
    "latency negative": (f"simulate -t ring --param latency=-1us {RING}", '"-1us"'),
    "latency infinite": (f"simulate -t ring --param latency=inf {RING}", '"inf"'),
    "unknown collective": ("simulate -t ring -c allreduce -a ring -s 1MiB", 'did you mean "all-reduce"'),
    "unknown algorithm": ("simulate -t ring -c all-reduce -a rng -s 1MiB", 'did you mean "ring"'),
    "algorithm of another collective": ("simulate -t ring -c all-reduce -a chain -s 1MiB", "broadcast"),
    "no switch reduces": ("simulate -t ring -c all-reduce -a sharp -s 1MiB", "needs a switch that reduces"),
    "size 0": ("simulate -t ring -c all-reduce -a ring -s 0", "from 1 B"),
    "size negative": ("simulate -t ring -c all-reduce -a ring -s -5", '"-5"'),
    "size in bits": ("simulate -t ring -c all-reduce -a ring -s 64Mb", "bits"),
    "size NaN": ("simulate -t ring -c all-reduce -a ring -s nan", '"nan"'),
    "size infinite": ("simulate -t ring -c all-reduce -a ring -s inf", '"inf"'),
    "size too large": ("simulate -t ring -c all-reduce -a ring -s 9999999TiB", "1 EiB"),
    "size of half an element": ("simulate -t ring -c all-reduce -a ring -s 6", "write 4 B or 8 B"),
    "unknown dtype": (f"simulate -t ring {RING} --dtype float33", 'did you mean "float32"'),
    "unknown engine": (f"simulate -t ring {RING} --engine evnt", 'did you mean "event"'),
    "unknown model knob": (f"simulate -t ring {RING} --model overheat=1us", 'did you mean "overhead"'),
    "overhead without unit": (f"simulate -t ring {RING} --model overhead=1", '"1us"'),
    "unknown sharing": (f"simulate -t ring {RING} --model sharing=lifo", "fair, fifo"),
    "barrier neither true nor false": (f"simulate -t ring {RING} --model barrier=1", "neither true nor false"),
    "reduce rate 0": (f"simulate -t ring {RING} --model reduce-rate=0GB/s", "1B/s"),
    "fifo depth negative": (f"simulate -t ring {RING} --model fifo-depth=-1", "whole number"),
    "no fault": (f"simulate -t ring {RING} --fault slow-gpx:0:x2", "slow-gpu"),
    "a fault of nothing there": (f"simulate -t ring {RING} --fault dead-link:gpu0-gpu9", "gpu9"),
    "unknown option of the algorithm": (f"simulate -t ring {RING} --option root=1", "root"),
    "root that is no rank": ("simulate -t ring -c broadcast -a chain -s 1MiB --option root=8", "ranks are 0..7"),
    "root that is no number": ("simulate -t ring -c broadcast -a chain -s 1MiB --option root=x", "whole number"),
    "no channels": (f"simulate -t ring {RING} --channels 0", "from 1 to 1024"),
    "slices in words": (f"simulate -t ring {RING} --slices many", '"many" is not a whole number'),
    "all steps of 4,096 GPUs": ("show -t star --param gpus=4096 -c all-reduce -a ring -s 1MiB", "of them at once; at most 10,000,000"),
    "a thousand slices of many sends": (f"simulate -t ring --param gpus=128 {RING} --slices 1024", "sends"),
    "seed negative": (f"simulate -t ring {RING} --seed -1", "from 0 up"),
    "a step that is not": (f"show -t ring {RING} --step 14", "from 0 to 13"),
    "sizes backwards": ("predict -t ring -c all-reduce --sizes 1GiB:1MiB:x2", "last must not be below"),
    "sizes without growth": ("predict -t ring -c all-reduce --sizes 1:8:x1", "at least 2"),
    "sizes without end": ("predict -t ring -c all-reduce --sizes 4B:1GiB:+4B", "at most 10000"),
    "JSON and CSV": ("predict -t ring -c all-reduce --sizes 1MiB --json --csv", "one of them"),
    "no algorithm": ("predict -t ring -c barrier --sizes 4B -a ring", "barrier"),
    "no log": ("compare {tmp}/none.txt -t ring", "not a file"),
    "log is a folder": ("compare {tmp} -t ring", "not a file"),
    "log is empty": ("compare {tmp}/empty -t ring", "no measured row"),
    "log is garbage": ("compare {tmp}/garbage.txt -t ring", "no measured row"),
    "log is binary": ("compare {tmp}/binary -t ring", "no measured row"),
    "log of other GPUs": ("compare {tmp}/log.txt -t torus", "16 GPUs, but the log has 4 ranks"),
    "one rank": ("verify -c all-reduce -a ring -n 1", "from 2"),
    "ranks in words": ("verify -c all-reduce -a ring -n eight", '"eight"'),
    "unknown executor": ("verify -c all-reduce -a ring -n 4 --executor nunpy", 'did you mean "numpy"'),
    "size without topology": ("verify -c all-reduce -a ring -n 4 --size 1MiB", "go together"),
    "buffers too large": ("verify -c all-reduce -a ring -n 4 -t ring --size 64GiB", "GiB of memory"),
    "root of bounds": ("bounds -t ring -c broadcast -s 1MiB --root 8", "from 0 to 7"),
    "no cluster file": (f"simulate -t {{tmp}}/none.toml {RING}", "no such file"),
    "cluster is a folder": (f"simulate -t {{tmp}} {RING}", "not a regular file"),
    "cluster is empty": (f"simulate -t {{tmp}}/empty {RING}", "is empty"),
    "cluster is binary": (f"simulate -t {{tmp}}/binary {RING}", "binary"),
    "cluster is no TOML": (f"simulate -t {{tmp}}/garbage.toml {RING}", "not TOML"),
    "cluster with a misspelt key": (f"simulate -t {{tmp}}/misspelt.toml {RING}", 'did you mean "topology"'),
    "cluster with a misspelt unit": (f"simulate -t {{tmp}}/unit.toml {RING}", "400Gb/s"),
    "cluster in two parts": (f"simulate -t {{tmp}}/parts.toml {RING}", "no path"),
    "a name with a line break": (f"simulate -t ri\x01\nng {RING}", "is not a topology"),
    "a name with no end": (f"simulate -t {'x' * 5000} {RING}", "is not a topology"),
    "port 0": ("app --port 0", "from 1 to 65535"),
    "port in words": ("app --port http", '"http"'),
}


@pytest.fixture
def tmp(tmp_path: Path) -> Path:
    files: dict[str, str | bytes] = {
        "empty": "",
        "garbage.txt": "The quick brown fox\njumps 12 times over 3 lazy dogs\n",
        "garbage.toml": "topology = = 3\n",
        "binary": b"\x00\x01\x02ELF\x00\n" * 40,
        "misspelt.toml": 'topolgy = "ring"\n',
        "unit.toml": 'topology = "ring"\nparams = { bandwidth = "400Gig" }\n',
        "parts.toml": 'nodes = [{ name = "a", kind = "gpu" }, { name = "b", kind = "gpu" }]\nlinks = []\n',
        "log.txt": "# nThread 1 nGpus 4\n"
        + "".join(f"#  Rank  {r} Group  0 Pid 1 on h device  {r} [0x07] NVIDIA A100\n" for r in range(4))
        + "#  size  count  type  redop  root  time  algbw  busbw #wrong  time  algbw  busbw #wrong\n"
        "  1048576  262144  float  sum  -1  50.00  20.97  31.46  0  40.00  26.21  39.32  0\n",
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], words: list[str]) -> str:
    assert cli.main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ringscope: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    assert all(c.isprintable() for c in err[:-1])
    return err


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_nothing_else(case: str, tmp: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp)
    before = sorted(tmp.rglob("*"))
    command, says = CASES[case]
    began = time.monotonic()
    line = refused(capsys, [word.format(tmp=tmp) for word in command.split(" ")])
    assert time.monotonic() - began < 20
    assert says in line
    assert len(line) < 700
    assert sorted(tmp.rglob("*")) == before


def test_there_are_at_least_forty_cases() -> None:
    assert len(CASES) >= 40


def test_a_busy_port(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        assert f"--port {port} cannot be used" in refused(capsys, ["app", "--port", str(port)])


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(capsys: pytest.CaptureFixture[str], tmp: Path) -> None:
    log = tmp / "log.txt"
    log.chmod(0)
    assert "cannot be read" in refused(capsys, ["compare", str(log), "-t", "ring"])


def test_a_full_disk(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **kwargs: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("commands.lists.say", full)
    assert "cannot write: No space left on device" in refused(capsys, ["topologies"])


def test_not_enough_memory(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def too_much(*args: object, **kwargs: object) -> None:
        raise MemoryError

    monkeypatch.setattr("commands.lists.say", too_much)
    assert "more memory than there is" in refused(capsys, ["topologies"])


def test_a_defect_is_not_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: object, **kwargs: object) -> None:
        raise ValueError("of ours")

    monkeypatch.setattr("commands.lists.say", broken)
    with pytest.raises(ValueError, match="of ours"):
        cli.main(["topologies"])


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("simulate -t star -c broadcast -a chain -s 64KiB --option root=--3", "not a whole number"),
        ("simulate -t star -c all-reduce -a torus-bucket -s 64KiB --option dims=" + "9" * 5000, "list of sizes"),
        ("simulate -t star -c all-reduce -a hierarchical-3 -s 64KiB --option servers=-1", "needs a divisor"),
        ("simulate -t star -c all-reduce -a hierarchical -s 64KiB --option groups=０,1,2,3/4,5,6,7", "list of groups"),
        ("simulate -t star -c all-reduce -a ring -s 1B", "write 4 B"),
    ],
)
def test_options_that_no_algorithm_takes(command: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert says in refused(capsys, command.split(" "))


def test_names_that_a_terminal_would_obey_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "evil.toml"
    cables = '[{ between = ["gpu0", "gpu1"], kind = "nvlink3" }]'
    path.write_text('name = "\\u001b[31m"\nnodes = [{ name = "gpu0", kind = "gpu" }, { name = "gpu1", kind = "gpu" }]\nlinks = ' + cables)
    assert "printable" in refused(capsys, ["simulate", "-t", str(path), "-c", "all-reduce", "-a", "ring", "-s", "1MiB"])
