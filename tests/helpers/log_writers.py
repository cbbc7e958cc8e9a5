"""Measurements written as nccl-tests' JSON, as OSU text and as CSV, for the tests of the readers."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

PER_RANK = {"reduce-scatter", "all-gather", "all-to-all", "gather", "scatter"}
OSU_TITLES = {
    "all-reduce": "Allreduce Latency", "reduce-scatter": "Reduce_scatter Latency", "all-gather": "Allgather Latency",
    "all-to-all": "All-to-All Personalized Exchange Latency", "broadcast": "Broadcast Latency", "reduce": "Reduce Latency",
    "gather": "Gather Latency", "scatter": "Scatter Latency", "sendrecv": "Latency",
}  # fmt: skip
OSU_PER_RANK = {"all-gather", "all-to-all", "gather", "scatter"}


def nccl_json(name: str, n: int, times_us: Mapping[int, float], busbw: float, per: int = 1) -> dict[str, Any]:
    """File version 2; ``per`` GPUs a process, of which the file lists the first; ``busbw`` over size/time."""
    results = []
    for size, us in times_us.items():
        half = {"time": round(us, 6), "alg_bw": round(size / us / 1e3, 6), "bus_bw": round(size / us / 1e3 * busbw, 6), "nwrong": 0.0}
        results.append({
            "size": size, "count": size // 4 // (n if name in PER_RANK else 1), "type": "float",
            "redop": "sum" if name in ("all-reduce", "reduce-scatter", "reduce", "sendrecv") else "none",
            "root": "     0" if name in ("broadcast", "reduce", "gather", "scatter") else "    -1",
            "out_of_place": half,
            "in_place": half | ({"nwrong": None} if name in ("all-to-all", "sendrecv") else {}),
            "actual_iterations": 20, "experiment_name": "",
        })  # fmt: skip
    devices = [
        {"rank": r, "group": 0, "pid": 5 + r, "hostname": f"host{r // 8}", "device": r % 8, "device_hex": "0", "device_info": "ACME X9"}
        for r in range(0, n, per)
    ]
    return {
        "version": 2, "start_time": "2026-01-01 00:00:00", "args": [f"./build/{name.replace('-', '_')}_perf", "-J", "x"], "env": ["A=1"],
        "nccl_version": 22805, "config": {"nthreads": 1, "ngpus": per, "devices": devices}, "results": results,
        "out_of_bounds": {"count": 0, "okay": "true"}, "average_bus_bandwidth": {"bandwidth": 1.0, "okay": "unchecked"}, "errors": [],
    }  # fmt: skip


def dumped(data: object) -> str:
    return json.dumps(data, separators=(",", ":"))


def osu_text(name: str, n: int, times_us: Mapping[int, float], *, full: bool = False, datatype: str | None = None) -> str:
    """A command and a table of version 7; ``times_us`` by whole vector [bytes]."""
    lines = [f"$ mpirun -np {n} --map-by ppr:4:node osu_{name.replace('-', '')} -d cuda", f"# OSU MPI-CUDA {OSU_TITLES[name]} Test v7.3"]
    lines += [f"# Datatype: {datatype}."] if datatype else []
    lines.append("# Size       Avg Latency(us)" + ("   Min Latency(us)   Max Latency(us)  Iterations" if full else ""))
    for size, us in times_us.items():
        more = f"{us * 0.9:18.2f}{us * 1.1:18.2f}        1000" if full else ""
        lines.append(f"{size // (n if name in OSU_PER_RANK else 1):<10}{us:22.6f}{more}")
    return "\n".join([*lines, ""])


def csv_text(header: Sequence[str], rows: Sequence[Sequence[object]], separator: str = ",") -> str:
    """Decimal commas where the separator is a semicolon, as spreadsheets of half of Europe write."""
    comma = separator == ";"
    cells = [[str(cell).replace(".", ",") if comma and isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    return "\r\n".join(separator.join(row) for row in [list(header), *cells]) + "\r\n"
