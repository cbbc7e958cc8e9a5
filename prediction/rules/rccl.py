"""RCCL 2.21's tuner on MI300X: NCCL's time model with a table of its own (``rccl_constants.py``).

Not public as a rule, so taken from the machine: the base bandwidth, which RCCL has from ring sets written down for each known server.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prediction.nccl.bandwidth import GATHERING, steps
from prediction.nccl.settings import settings
from prediction.nccl.version import COLLECTIVES
from prediction.nccl.version import version as nccl_version
from prediction.rules.call import Call, Chosen, Row, unknown
from prediction.rules.rccl_constants import BASE, CORRECTION, HOP, OVERHEAD, RATIO
from topologies.errors import MeasurementError
from topologies.graph import Topology

VERSIONS = ("2.21",)
PROTOCOLS = ("ll", "simple")
_GPU_LINK = "xgmi"
_USABLE = 0.75
"""Of an xGMI link: 48 of 64 GB/s (``topologies/links.py``)."""
_SIZES = len(CORRECTION["tree"][0])


@dataclass(frozen=True, slots=True)
class Bandwidths:
    """Of all rings of a rank [B/s]: ``intra`` over its xGMI links, ``inter`` also through the NICs of a node."""

    intra: float
    inter: float
    cpu: str = "intel"


def bandwidths(topology: Topology) -> Bandwidths:
    """Raises MeasurementError: GPUs whose tuning table is not known here."""
    kinds = {node.name: node.kind for node in topology.nodes}
    wires = [link for link in topology.links if kinds[link.src] == "gpu"]
    gpus = {gpu: sum(link.bandwidth for link in wires if link.src == gpu and link.kind == _GPU_LINK) for gpu in topology.gpus}
    if not all(gpus.values()):
        raise MeasurementError(f"{topology.name}: RCCL's tuning table is known here for MI300X only, whose GPUs have links of type xgmi")
    intra = _USABLE * min(gpus.values())
    servers = {topology.node(gpu).server for gpu in gpus}
    nics = sum(link.bandwidth for link in topology.links if kinds[link.src] == "nic" and not link.kind.startswith("pcie"))
    amd = any(link.kind.startswith("xgmi-cpu") for link in topology.links)
    return Bandwidths(intra, min(intra, nics / len(servers)) if nics else intra, "amd" if amd else "intel")


def choose(call: Call, speeds: Bandwidths, version: str = "2.21", environment: Mapping[str, str] | None = None) -> Chosen:
    """Raises MeasurementError: a collective that is not tuned, or a variable that is not RCCL's."""
    if call.collective not in COLLECTIVES:
        raise unknown("RCCL", call.collective, COLLECTIVES)
    given = {name: value for name, value in (environment or {}).items() if not name.startswith("RCCL_")}
    asked = settings(given, nccl_version("2.21"))
    read = {"NCCL_ALGO", "NCCL_PROTO"}
    rows, off = [], {("tree", "ll128"): "LL128 is off on MI300X", ("ring", "ll128"): "LL128 is off on MI300X"}
    for algorithm in ("tree", "ring"):
        for protocol in PROTOCOLS:
            if reason := _refusal(call, algorithm, protocol):
                off[algorithm, protocol] = reason
            elif algorithm not in asked.algorithms.get(call.collective, (algorithm,)):
                off[algorithm, protocol] = "NCCL_ALGO leaves it out"
            elif protocol not in asked.protocols.get(call.collective, (protocol,)):
                off[algorithm, protocol] = "NCCL_PROTO leaves it out"
            else:
                rows.append(_row(call, speeds, algorithm, protocol))
    fallback = not rows
    if fallback:
        rows = [_row(call, speeds, "ring", "simple")]
    notes = [
        f"RCCL's ring sets are not known here: its base bandwidth is taken as {speeds.intra / 1e9:g} GB/s on one node, "
        f"{speeds.inter / 1e9:g} GB/s between nodes, and every channel as a ring of its own",
    ]
    if call.nodes == 1 and call.collective == "all-reduce":
        notes.append("small all-reduces on one node run MSCCL or MSCCL++ kernels instead, up to a size that is not known here")
    return Chosen(
        "rccl", version, call, tuple(sorted(rows, key=lambda row: row.time_s or 0.0)), "the smallest time of RCCL's own model",
        tuple(notes), off, fallback, tuple(name for name in environment or () if name not in read),
    )  # fmt: skip


def _refusal(call: Call, algorithm: str, protocol: str) -> str | None:
    if algorithm == "tree" and call.collective != "all-reduce":
        return f"RCCL has no tree {call.collective}"
    return "off on one node of MI300X" if algorithm == "tree" and protocol == "simple" and call.nodes == 1 else None


def _row(call: Call, speeds: Bandwidths, algorithm: str, protocol: str) -> Row:
    wait, speed = _latency(call, speeds, algorithm, protocol), _bandwidth(call, speeds, algorithm, protocol)
    called = f"{algorithm.capitalize()}, {protocol.upper() if protocol == 'll' else protocol.capitalize()}"
    schedule = "nccl-tree" if algorithm == "tree" else "chain" if call.collective in ("broadcast", "reduce") else "ring"
    return Row(algorithm, called, protocol, None, wait + call.nbytes / speed, wait, speed, made_by=schedule)


def _bandwidth(call: Call, speeds: Bandwidths, algorithm: str, protocol: str) -> float:
    """Algorithm bandwidth [B/s] at the size of the call."""
    column, far = PROTOCOLS.index(protocol), call.nodes > 2
    bus = (speeds.inter if far else speeds.intra) * RATIO[algorithm, far][column]
    if algorithm == "tree" or call.nodes > 1:
        place = (max(call.nbytes, 64) >> 6).bit_length() - 1
        bus *= CORRECTION[algorithm][column][min(place, _SIZES - 1)]
    return bus * (call.ranks / steps(call.collective, call.ranks) if algorithm == "ring" else 0.5)


def _latency(call: Call, speeds: Bandwidths, algorithm: str, protocol: str) -> float:
    """Seconds of a call without bytes."""
    column, nodes = PROTOCOLS.index(protocol), call.nodes
    intra = HOP["xgmi", algorithm][column]
    inter = HOP["net", "tree" if nodes == call.ranks else algorithm][column]
    if algorithm == "tree":
        return BASE[column] + 2 * ((call.ranks // nodes - 1) * intra + (nodes.bit_length() - 1) * inter)
    count = steps(call.collective, call.ranks)
    if call.collective not in (*GATHERING, "all-reduce"):
        wire, of = "xgmi" if nodes == 1 else "net", "tree" if protocol == "simple" else "ring"
        return BASE[column] + count * HOP[wire, of][column]
    if nodes == 1:
        return BASE[column] + count * intra
    crossings = 2 * nodes if call.collective == "all-reduce" else nodes - 1
    overhead = OVERHEAD[speeds.cpu] * (3 if protocol == "simple" else 1)
    return BASE[column] + (count - crossings) * max(intra, overhead) + crossings * inter
