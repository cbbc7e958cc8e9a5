"""The choice: the time of every algorithm and protocol at a size by NCCL's cost model, the smallest first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from algorithms.launch import DTYPE_BYTES
from prediction.nccl.bandwidth import bandwidth
from prediction.nccl.channels import channels_and_threads, comm_channels
from prediction.nccl.constants import OLD, TREE_CORRECTION, Constants, constants
from prediction.nccl.enabled import FP8, Call, refusal
from prediction.nccl.graphs import Graphs
from prediction.nccl.latency import latency
from prediction.nccl.settings import Settings
from prediction.nccl.version import ALGORITHMS, PROTOCOLS, Algorithm, Protocol, tuned
from topologies.errors import MeasurementError, nearest, quoted

_LAST_RESORT = 1024
"""A ring of more than 8 ranks adds fp8 so often that its rounding shows: NCCL counts it so many times slower."""
_BATCH = 8
"""So many operations of a group share one latency, but for a ring."""
_PLATEAU_BYTES = 64
"""From so many bytes for each channel and rank on, a ring with Simple between nodes has the latency of full slices."""
_OLD_CHANNELS = 64
"""Until 2.17 this limit counted with so many channels, whatever the communicator had."""


@dataclass(frozen=True, slots=True)
class Row:
    """One algorithm and protocol at one size, SI units: ``time_s`` = latency plus size over bandwidth (and corrections)."""

    algorithm: Algorithm
    protocol: Protocol
    time_s: float
    latency_s: float
    bandwidth_Bps: float
    channels: int
    threads: int


@dataclass(frozen=True, slots=True)
class Tuning:
    """``ranking``: the choice first, then runners-up; ``off``: why the other rows do not take part."""

    call: Call
    ranking: tuple[Row, ...]
    off: Mapping[tuple[Algorithm, Protocol], str]
    fallback: bool
    """Until 2.23 NCCL took the ring when the variables left nothing else."""

    @property
    def choice(self) -> Row:
        return self.ranking[0]


def tune(graphs: Graphs, call: Call, settings: Settings | None = None) -> Tuning:
    """What NCCL of ``graphs.version`` would take. Raises MeasurementError: no such function or dtype, a size below 1 byte, or nothing
    left."""
    tuned(call.collective)
    if call.nbytes < 1 or call.operations < 1:
        raise MeasurementError(f"NCCL's tuner: size {call.nbytes} B, operations {call.operations}; write 1 or more")
    if call.dtype not in (*DTYPE_BYTES, *FP8):
        raise MeasurementError(f"NCCL's tuner: dtype {quoted(call.dtype)} is not known{nearest(call.dtype, (*DTYPE_BYTES, *FP8))}")
    settings = settings or Settings()
    amd = graphs.cpu == "amd" or (graphs.cpu == "mixed" and graphs.version >= OLD)
    k = constants(graphs.version, graphs.sm_min, graphs.nodes, amd)
    rows, off = _rows(graphs, call, settings, k)
    fallback = not rows
    if fallback:
        if graphs.version >= (2, 24):
            raise MeasurementError(f"NCCL {graphs.version}: no algorithm and protocol left for {call.collective}; {_hint(off)}")
        rows, _ = _rows(graphs, call, replace(settings, algorithms={}, protocols={}), k)
        rows = [row for row in rows if row.algorithm == "ring" and row.protocol == "simple"]
    return Tuning(call, tuple(sorted(rows, key=lambda row: row.time_s)), off, fallback)  # a stable sort: NCCL keeps the first of equals


def costs(graphs: Graphs, collective: str, settings: Settings | None = None) -> dict[tuple[Algorithm, Protocol], tuple[float, float]]:
    """The table NCCL prints at start (subsystem TUNING): latency [s] and algorithm bandwidth [B/s] of each row that takes part."""
    rows = tune(graphs, Call(collective, 1), settings).ranking
    return {(row.algorithm, row.protocol): (row.latency_s, row.bandwidth_Bps) for row in rows}


def _rows(graphs: Graphs, call: Call, settings: Settings, k: Constants) -> tuple[list[Row], dict[tuple[Algorithm, Protocol], str]]:
    """Rows in NCCL's order of algorithms and protocols."""
    rows, off = [], {}
    run = comm_channels(graphs, settings)
    for algorithm in ALGORITHMS:
        graph = graphs.of(algorithm)
        for protocol in PROTOCOLS:
            reason = refusal(graphs, graph, settings, call, algorithm, protocol)
            speed = 0.0 if reason or graph is None else bandwidth(graphs, graph, k, call.collective, algorithm, protocol)
            if graph is None or not speed > 0:
                off[algorithm, protocol] = reason or "the model gives it no bandwidth"
                continue
            wait = latency(graphs, graph, k, settings, call.collective, algorithm, protocol)
            seconds = _time(graphs, call, k, algorithm, protocol, wait, speed, run)
            rows.append(Row(algorithm, protocol, seconds, wait, speed, *channels_and_threads(graphs, settings, call, algorithm, protocol)))
    return rows, off


def _time(graphs: Graphs, call: Call, k: Constants, algorithm: Algorithm, protocol: Protocol, wait: float, speed: float, run: int) -> float:
    """Seconds of a call: corrections that depend on its size."""
    place = (call.nbytes >> 6).bit_length() - 1
    also = k.corrected == len(TREE_CORRECTION[0]) and graphs.sm_min >= 100 and graphs.cpu in ("intel", "amd", "mixed")
    if (algorithm == "tree" or (also and algorithm == "nvls-tree")) and call.collective == "all-reduce" and 0 <= place < k.corrected:
        speed *= TREE_CORRECTION[PROTOCOLS.index(protocol)][place]
    ring, old = algorithm == "ring", graphs.version < OLD
    plateau = _PLATEAU_BYTES * graphs.ranks * (_OLD_CHANNELS if old else run)
    if ring and protocol == "simple" and call.collective == "all-reduce" and graphs.nodes > 1 and call.nbytes >= plateau:
        wait *= (1.9 if graphs.sm_min < 90 else 1.5) if old else 1.9 if graphs.sm_min < 80 else 1.4
    waits = call.operations if ring else -(-call.operations // _BATCH)
    seconds = wait * waits + call.nbytes / speed
    return seconds * _LAST_RESORT if ring and call.dtype in FP8 and graphs.ranks > 8 else seconds


def _hint(off: Mapping[tuple[Algorithm, Protocol], str]) -> str:
    """The reason of the ring, which only variables can turn off."""
    return f"ring: {off.get(('ring', 'simple'), 'off')}; add ring to NCCL_ALGO and simple to NCCL_PROTO"
