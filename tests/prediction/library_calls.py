"""Machines and calls for the tests of a library's predicted calls."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from prediction.library.asked import Asked, LaunchMode
from prediction.library.predict import Calls, Choice
from prediction.library.schedules import Loops
from prediction.library.sites import Ways
from topologies import make
from topologies.graph import Topology

CASES = [
    *(("dgx-a100", nodes) for nodes in (1, 2, 3, 4)), *(("dgx-h100", nodes) for nodes in (1, 2, 3, 4)), ("dgx-b200", 2),
    ("gh200-quad", 1), ("gh200-quad", 2), ("dgx-1v", 1), ("dgx-1v", 2), ("dgx-2", 1), ("hgx-pcie", 1), ("hgx-pcie", 2),
    ("nvlink-bridge", 1), ("mi300x", 1), ("mi300x", 2), ("gb200-nvl72", 1), ("gb200-nvl72", 2), ("aws-p4d", 2), ("aws-p5", 2),
    ("gcp-a3-mega", 2), ("azure-ndv4", 2), ("superpod-h100", 2),
]  # fmt: skip


@cache
def built(name: str, nodes: int, gpus: int | None = None) -> Topology:
    """A preset; racks of a GB200 NVL72 are cut to 8 GPUs."""
    if name == "gb200-nvl72":
        return make(name, {"racks": nodes, "gpus": gpus or 8})
    if name == "nvlink-bridge":
        return make(name, {})
    return make(name, {"nodes": nodes} | ({"gpus": gpus} if gpus else {}))


def asked(topology: Topology, environment: Mapping[str, str] | None = None, launch: LaunchMode = "process-per-gpu") -> Asked:
    amd = any(link.kind.startswith("xgmi") and not link.kind.startswith("xgmi-cpu") for link in topology.links)
    return Asked(library="rccl" if amd else "nccl", environment=dict(environment or {}), launch=launch)


def calls(name: str, nodes: int, collective: str, environment: Mapping[str, str] | None = None, gpus: int | None = None) -> Calls:
    topology = built(name, nodes, gpus)
    return Calls(topology, collective, asked(topology, environment))


def loops(call: Calls, choice: Choice, nbytes: int) -> tuple[Loops, Ways]:
    ways = Ways(call.topology)
    return call._loops(choice, nbytes, ways), ways
