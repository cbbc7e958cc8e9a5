"""MPI_Allreduce as SimGrid's SMPI runs it, message by message from real MPI code, takes what ours does and 16 B more for each message,
SMPI's header. Run by `make simgrid`."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from simgrid_platform import IDEAL, noted, platform, version

from sim.simulate import run_collective
from topologies import make

pytestmark = pytest.mark.simgrid
HEADER = 16
BANDWIDTH, LATENCY = 25e9, 1e-6
FREE = ("simulate-computation:no", "wtime:0", "test:0", "iprobe:0", "init:0")
"""Only messages take time."""
PAIRS = {"lr": "ring", "rdb": "recursive-doubling", "rab": "halving-doubling"}


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not (shutil.which("smpicc") and shutil.which("smpirun")):
        pytest.skip("no smpicc and smpirun: install Debian's package libsimgrid-dev")
    built = tmp_path_factory.mktemp("smpi") / "allreduce"
    source = Path(__file__).with_name("smpi_allreduce.c")
    subprocess.run(["smpicc", "-O1", str(source), "-o", str(built)], check=True, capture_output=True)
    return built


@pytest.mark.parametrize("nbytes", [32_768, 4_194_304])
@pytest.mark.parametrize("gpus", [8, 64])
@pytest.mark.parametrize("theirs", PAIRS)
def test_all_reduce_takes_what_smpi_says(theirs: str, gpus: int, nbytes: int, program: Path, tmp_path: Path) -> None:
    topology = make("star", {"gpus": gpus, "bandwidth": BANDWIDTH, "latency": LATENCY})
    xml, hosts = tmp_path / "platform.xml", tmp_path / "hosts"
    xml.write_text(platform(topology), encoding="utf-8")
    hosts.write_text("\n".join(topology.gpus), encoding="utf-8")
    config = [*(f"{key}:{value}" for key, value in IDEAL.items()), *(f"smpi/{item}" for item in FREE), f"smpi/allreduce:{theirs}"]
    command = ["smpirun", "-np", str(gpus), "-platform", str(xml), "-hostfile", str(hosts), "--log=root.thres:critical"]
    command += [*(f"--cfg={item}" for item in config), str(program), str(nbytes // 4)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    smpi = max(map(float, done.stdout.split()))
    result = run_collective(topology, "all-reduce", PAIRS[theirs], nbytes)
    assert smpi == pytest.approx(result.time, rel=3e-3)
    headers = result.launches[0].whole.steps * HEADER / BANDWIDTH
    assert smpi - headers == pytest.approx(result.time, rel=1e-6)
    noted(version(), f"SMPI {theirs}, {gpus} ranks, {nbytes} B", "event", len(result.trace.send), smpi, result.time, smpi / result.time - 1)
