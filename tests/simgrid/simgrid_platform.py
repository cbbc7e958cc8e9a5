"""Our topologies as SimGrid's platform files, and how SimGrid is run: as another program, since it comes with the system's Python."""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from topologies.graph import Topology

PYTHON = "/usr/bin/python3"
"""The Python that Debian's python3-simgrid goes with."""
IDEAL = {
    "network/model": "CM02", "network/bandwidth-factor": "1", "network/latency-factor": "1", "network/TCP-gamma": "0",
    "network/weight-S": "0", "network/crosstraffic": "0", "surf/precision": "1e-14", "maxmin/precision": "1e-9",
}  # fmt: skip
"""Plain max-min sharing: no corrections for TCP, no weights beyond the latency of the route, no rounding of times to 10 us."""
SIDE = Path(__file__).with_name("simgrid_side.py")


def platform(topology: Topology) -> str:
    """GPUs as hosts, all else as routers, and each direction of a cable as a link; SimGrid finds the ways by itself (Floyd)."""
    lines = ['<?xml version="1.0"?>', '<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">', '<platform version="4.1">']
    lines.append('<zone id="all" routing="Floyd">')
    lines += [f'<host id="{x.name}" speed="1Gf"/>' if x.kind == "gpu" else f'<router id="{x.name}"/>' for x in topology.nodes]
    lines += [f'<link id="{x.src}-{x.dst}" bandwidth="{x.bandwidth!r}Bps" latency="{x.latency!r}s"/>' for x in topology.links]
    lines += [f'<route src="{x.src}" dst="{x.dst}" symmetrical="NO"><link_ctn id="{x.src}-{x.dst}"/></route>' for x in topology.links]
    return "\n".join([*lines, "</zone>", "</platform>"])


@cache
def version() -> str:
    """SimGrid's version; skips the test, with the reason, where there is none."""
    asked = [PYTHON, "-c", "import simgrid; print(simgrid.simgrid_version)"]
    try:
        found = subprocess.run(asked, capture_output=True, text=True, timeout=60, check=True)
    except (OSError, subprocess.SubprocessError):
        pytest.skip(f"{PYTHON} has no module simgrid: install Debian's package python3-simgrid")
    return found.stdout.strip()


def played(topology: Topology, programs: dict[str, Any], folder: Path) -> dict[str, list[float]]:
    """When SimGrid's messages came [s], by "source destination" in the order of sending; programs as in ``simgrid_side``."""
    xml = folder / "platform.xml"
    xml.write_text(platform(topology), encoding="utf-8")
    config = [*(f"--cfg={key}:{value}" for key, value in IDEAL.items()), "--log=root.thres:critical"]
    done = subprocess.run([PYTHON, str(SIDE), str(xml), *config], input=json.dumps(programs), capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    ends: dict[str, list[float]] = json.loads(done.stdout)
    return ends


def noted(*row: Any) -> None:
    """A row of docs/validation-simgrid.md, as a line of JSON in the file that SIMGRID_TABLE names: version, case, engine, messages,
    SimGrid's seconds, ours, largest relative difference of a message."""
    if table := os.environ.get("SIMGRID_TABLE"):
        with Path(table).open("a", encoding="utf-8") as file:
            print(json.dumps(row), file=file)
