"""How often the doctor names the fault: logs simulated with a known fault, an error of the model and noise, and logs with none.

What makes the logs is not what the doctor tries: one server has a fault where the doctor takes all, severities are drawn evenly from
ranges, any GPU or NIC may have it, and all constants are off by a drawn factor. Run: python bench/doctor.py [--draws 3] [--seed 1]
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

import numpy as np
from doctor_faults import FAULTS, Case, healthy

from prediction.doctor.examine import examine
from prediction.library.asked import Asked
from prediction.readers import read_text
from topologies import make
from topologies.errors import RingscopeError

MACHINES: dict[str, tuple[dict[str, str], str, str]] = {
    "h100-8": ({"gpu": "h100"}, "all-reduce", "2.21"),
    "a100-8-ag": ({"gpu": "a100"}, "all-gather", "2.18"),
    "h100-2x8-ag": ({"gpu": "h100", "nodes": "2"}, "all-gather", "2.21"),
    "a100-2x8": ({"gpu": "a100", "nodes": "2"}, "all-reduce", "2.18"),
    "l40s-8": ({"gpu": "l40s", "cpu": "amd"}, "all-reduce", "2.21"),
}
"""Arguments of topology ``custom``, collective, version of NCCL."""
SIZES = tuple(1024 * 8**k for k in range(8))
NOISE, SMALL_ERROR, LARGE_ERROR = 0.03, 0.2, 0.03
"""In log time: of a row; of the model, fading over sizes, up to 16 MiB and above."""
VISIBLE = {False: 1.3, True: 2.0}
"""How many times slower a fault has to make some size, above 16 MiB (False) or below, to be counted."""
CLASSES = (
    {"slow-link", "single-qp", "rail-mismatch", "one-slow-node", "nic-down", "pcie-gen-downgraded", "acs-on"},
    {"gpudirect-off", "acs-on"},
    {"p2p-disabled", "ring-crosses-pcie-hop"},
    {"slow-link", "few-channels"},
)
"""Physically the same on some machines: a narrower way out of a server; the way through the CPU; NVLink gone around; GPUs that
send less."""


def cases(draws: int, seed: int, machines: list[str]) -> Iterator[tuple[str, str, Case]]:
    """Machine, fault (empty: none) and what runs."""
    for name in machines:
        params, collective, version = MACHINES[name]
        topology, random = make("custom", params), np.random.default_rng([seed, *name.encode()])
        asked = Asked(version=version)
        for fault, maker in {"": healthy, **FAULTS}.items():
            for _ in range(draws if fault else 3 * draws):
                try:
                    case = maker(random, topology, asked, collective, SIZES)
                except RingscopeError as error:
                    print(f"{name} {fault}: {error}", file=sys.stderr)
                    continue
                if case is not None:
                    yield name, fault, case


def log_text(case: Case, random: np.random.Generator) -> str:
    """The log of a run with an error of the model and noise."""
    place = np.log2(SIZES)
    near = np.exp(-np.abs(place[:, None] - place[None, :]) / 5)
    spread = np.where(np.array(SIZES) <= 16 << 20, SMALL_ERROR, LARGE_ERROR)
    error = random.multivariate_normal(np.zeros(len(SIZES)), spread[:, None] * spread[None, :] * near)
    n = len(case.topology.gpus)
    factor = (2 if case.collective == "all-reduce" else 1) * (n - 1) / n
    per, op = (1, "sum") if case.collective == "all-reduce" else (n, "none")
    lines = [f"# Collective test starting: {case.collective.replace('-', '_')}_perf"]
    lines += ["# nThread 1 nGpus 1 minBytes 1 maxBytes 2 step: 8(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0"]
    lines += ["# Using devices"]
    lines += [f"#  Rank {r:2} Group  0 Pid {1000 + r} on host{r // 8} device {r % 8:2} [0x{r:02x}] made-up GPU" for r in range(n)]
    lines += ["#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"]
    for size, true, off in zip(SIZES, case.times, error, strict=True):
        halves = []
        for _ in range(2):
            us = true * math.exp(off + NOISE * random.standard_normal()) * 1e6
            halves.append(f"{us:.2f} {size / us / 1e3:.2f} {size / us / 1e3 * factor:.2f} 0")
        lines.append(f"{size:12} {size // 4 // per:12} float {op} -1 {' '.join(halves)}")
    return "\n".join([*lines, "# Out of bounds values : 0 OK", ""])


def alike(a: str, b: str) -> bool:
    return a == b or any({a, b} <= group for group in CLASSES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--draws", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--machines", nargs="+", choices=MACHINES, default=list(MACHINES))
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    random = np.random.default_rng(given.seed)
    rows = []
    expected: dict[str, np.ndarray] = {}
    for machine, fault, case in cases(given.draws, given.seed, given.machines):
        began = time.perf_counter()
        text = log_text(case, random)
        found = examine(read_text(text, "made.txt"), case.topology, case.asked)
        base = expected.setdefault(machine, np.array([point.expected_s for point in found.points]))
        sizes = [point.size_bytes for point in found.points]
        slower = [case.times[SIZES.index(size)] / x for size, x in zip(sizes, base, strict=True)]
        far = [1 / ratio if "tree" in fault else ratio for ratio in slower]
        seen = not fault or any(ratio > VISIBLE[size <= 16 << 20] for size, ratio in zip(sizes, far, strict=True))
        first = found.causes[0].id if found.causes else ""
        mine = next((cause.confidence for cause in found.causes if cause.id == fault), 0.0)
        rows.append({
            "machine": machine, "fault": fault, "detail": case.detail, "visible": seen, "verdict": found.verdict, "first": first,
            "right": first == fault, "alike": alike(first, fault), "confidence": mine, "ratio": found.ratio,
            "seconds": time.perf_counter() - began,
        })  # fmt: skip
        print(f"{machine:12} {fault or 'healthy':22} {case.detail:14} {found.verdict:8} {first:22} {mine:.2f} {rows[-1]['seconds']:.1f} s"
              + ("" if seen else "  (not visible)"), file=sys.stderr, flush=True)  # fmt: skip
    print(json.dumps(rows, indent=1) if given.json else table(rows))


def table(rows: list[dict[str, object]]) -> str:
    """Markdown: a line a fault, then all, then false alarms."""
    groups: dict[str, list[dict[str, object]]] = defaultdict(list)
    for row in rows:
        groups[str(row["fault"])].append(row)
    lines = ["| fault | visible of drawn | not healthy | named first | it or its like first |", "|---|---:|---:|---:|---:|"]
    faulty = [row for row in rows if row["fault"]]
    for name, group in [*((k, v) for k, v in sorted(groups.items()) if k), ("all", faulty)]:
        seen = [row for row in group if row["visible"]]
        found = [sum(bool(test) for test in tests) for tests in (
            [row["verdict"] != "healthy" for row in seen], [row["right"] for row in seen], [row["alike"] for row in seen],
        )]  # fmt: skip
        lines.append(f"| {name} | {len(seen)} of {len(group)} | " + " | ".join(f"{x} ({x / max(1, len(seen)):.0%})" for x in found) + " |")
    well = groups.get("", [])
    alarms = sum(row["verdict"] != "healthy" for row in well)
    return "\n".join([*lines, "", f"False alarms: {alarms} of {len(well)} healthy logs."])


if __name__ == "__main__":
    main()
