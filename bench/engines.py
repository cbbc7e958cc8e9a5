"""Engine speed: every engine on six algorithms over a star, from 8 GPUs up, beside SimPy and a plain C++ loop of the same run.

Each measurement is a process of its own with limits on time and memory; an engine leaves a series when it passes them. Machines differ
and are busy: compare ratios. Without --full, small sizes, about a minute. Usage: python bench/engines.py [--full] [--json out.json]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from threading import Timer
from time import perf_counter
from typing import Any

ENGINES = ("event", "compiled", "maxplus")
CASES = {
    "ring": "all-reduce", "double-binary-tree": "all-reduce", "halving-doubling": "all-reduce", "hierarchical": "all-reduce",
    "pairwise": "all-to-all", "direct": "all-to-all",
}  # fmt: skip
SIZES, FULL = (64, 256), (8, 64, 256, 1024, 4096, 16384)
NBYTES = 100_000_000
BANDWIDTH, LATENCY = "25e9", "1e-6"
IMPORTS = 10
"""Seconds that a process may take to load, beyond the limit."""
HERE = Path(__file__).parent
Row = dict[str, Any]


def run(command: list[str], limit: float, memory: float) -> Row:
    """A program and all it took: ``out``, ``wall_s``, ``cpu_s``, ``peak_mb``; ``stopped`` says why, if it did not end well."""

    def limits() -> None:
        resource.setrlimit(resource.RLIMIT_DATA, (int(memory * 1e9), int(memory * 1e9)))

    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        began = perf_counter()
        process = subprocess.Popen(command, stdout=out, stderr=err, preexec_fn=limits)
        timer = Timer(limit, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        wall = perf_counter() - began
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        out.seek(0)
        err.seek(0)
        took = {"wall_s": wall, "cpu_s": used.ru_utime + used.ru_stime, "peak_mb": used.ru_maxrss / 1024}
        if wall >= limit:
            return {"stopped": f"over {limit:g} s"} | took
        if process.returncode:
            return {"stopped": (err.read().strip().splitlines() or [f"exit {process.returncode}"])[-1]} | took
        return {"out": out.read()} | took


def whole(gpus: int) -> int:
    """About ``NBYTES``, the same number of float32 for each GPU."""
    return NBYTES // (4 * gpus) * 4 * gpus


class Bench:
    """The measurements of one run of this script, printed as they come and kept for --json."""

    def __init__(self, args: argparse.Namespace, folder: Path) -> None:
        self.args = args
        self.rows: list[Row] = []
        self.program: Path | None = None
        self.simpy: dict[tuple[str, int], float] = {}
        self.plain: dict[int, float] = {}
        if compiler := shutil.which("g++"):
            self.program = folder / "baseline"
            subprocess.run([compiler, "-O2", "-o", str(self.program), str(HERE / "baseline.cpp")], check=True)

    def child(self, **asked: Any) -> Row:
        """One measurement by one.py; the limit leaves room for imports."""
        limit = self.args.limit
        done = run([sys.executable, str(HERE / "one.py"), json.dumps(asked)], limit + IMPORTS, self.args.memory)
        row: Row = asked | (json.loads(done["out"]) if "out" in done else {"stopped": done["stopped"]})
        if max(row.get("wall_s", 0.0), done["wall_s"] - IMPORTS) > limit:
            row["stopped"] = f"over {limit:g} s"
        self.rows.append(row)
        return row

    def warm(self) -> Iterator[str]:
        """Compile what is compiled once a machine: numba keeps it."""
        for engine in self.args.engines:
            asked = {"collective": "all-reduce", "algorithm": "ring", "engine": engine, "gpus": 8, "bytes": 80_000}
            began = perf_counter()
            run([sys.executable, str(HERE / "one.py"), json.dumps({"kind": "collective"} | asked)], 600, self.args.memory)
            if (took := perf_counter() - began) > 10:
                yield f"{engine}: compiled in {took:.0f} s, once"

    def baseline(self) -> Iterator[str]:
        """The C++ loop on every size until it passes the limit."""
        for gpus in self.args.sizes if self.program else ():
            done = run(
                [str(self.program), str(gpus), str(whole(gpus)), BANDWIDTH, str(2 * float(LATENCY))], self.args.limit, self.args.memory
            )
            if "out" not in done:
                return
            row = {"kind": "baseline", "algorithm": "ring", "gpus": gpus, "engine": "C++"} | json.loads(done.pop("out"))
            row |= {"peak_mb": done["peak_mb"], "command": done}
            self.plain[gpus] = row["cpu_s"]
            self.rows.append(row)
            yield line("ring", gpus, "C++", row, done["cpu_s"], None, 1.0)

    def series(self, algorithm: str, engine: str) -> Iterator[str]:
        """One engine on one algorithm, size after size, in a process that is warm and from the command line."""
        for gpus in self.args.sizes:
            asked = {"collective": CASES[algorithm], "algorithm": algorithm, "engine": engine, "gpus": gpus}
            row = self.child(kind="collective", bytes=whole(gpus), **asked)
            if "time" not in row:
                yield line(algorithm, gpus, engine, row)
                return
            self.check(row)
            if engine == "event":
                self.simpy[algorithm, gpus] = row["cpu_s"]
            command = self.command(row) if self.args.command in ("all", algorithm) else None
            simpy = self.simpy.get((algorithm, gpus))
            plain = self.plain.get(gpus) if algorithm == "ring" else None
            yield line(algorithm, gpus, engine, row, command, simpy and simpy / row["cpu_s"], plain and plain / row["cpu_s"])
            if "stopped" in row:
                return

    def command(self, row: Row) -> float | None:
        """CPU seconds of the same from the command line; what it costs is in ``row["command"]``."""
        asked = ["-t", "star", "--param", f"gpus={row['gpus']}", "--param", f"bandwidth={float(BANDWIDTH):g}B/s", "--param", "latency=1us"]
        asked += ["-c", row["collective"], "-a", row["algorithm"], "-s", f"{row['bytes']}B", "--engine", row["engine"], "--json"]
        program = str(Path(sys.executable).with_name("ringscope"))
        done = run([program, "simulate", *asked], self.args.limit + IMPORTS, self.args.memory)
        done.pop("out", None)
        row["command"] = done
        return None if "stopped" in done else done["cpu_s"]

    def check(self, row: Row) -> None:
        """Engines that do not agree are not compared."""
        same = [r for r in self.rows if all(r.get(key) == row[key] for key in ("algorithm", "gpus"))]
        apart = max(abs(r["time"] / row["time"] - 1) for r in same if "time" in r)
        if apart > 1e-9:
            sys.exit(f"{row['algorithm']}, {row['gpus']} GPUs: engine {row['engine']} is {apart:.1e} apart from the others")

    def shared(self) -> Iterator[str]:
        """Every cable shared by k flows, that begin together or apart."""
        yield f"\nk rings at once over {self.args.shared} GPUs: microseconds of CPU a send\n{'starts':<10}{'engine':<10}" + "".join(
            f"{f'k={k}':>9}" for k in self.args.flows
        )
        for apart in (False, True):
            for engine in ("event", "compiled"):
                costs = []
                for k in self.args.flows:
                    row = self.child(kind="contention", k=k, apart=apart, engine=engine, gpus=self.args.shared, bytes=NBYTES)
                    costs.append(f"{row['cpu_s'] / row['sends'] * 1e6:>9.2f}" if "sends" in row else f"{'-':>9}")
                yield f"{'apart' if apart else 'together':<10}{engine:<10}" + "".join(costs)

    def sweep(self) -> Iterator[str]:
        """Many sizes of a ring in one pass of the max-plus evaluator, against one size."""
        yield "\nsizes in one pass of maxplus, ring: CPU seconds, and ratio to one size"
        for gpus in self.args.sizes:
            found = [self.child(kind="sweep", gpus=gpus, bytes=NBYTES, sizes=sizes) for sizes in (1, 8, 32)]
            if any("stopped" in row for row in found):
                return
            first = found[0]["cpu_s"]
            yield f"{gpus:>7,} GPUs  " + "  ".join(f"{row['sizes']} sizes {row['cpu_s']:.3f} ({row['cpu_s'] / first:.2f})" for row in found)


HEAD = (
    f"{'algorithm':<20}{'GPUs':>7} {'engine':<10}{'sends':>13}{'cpu s':>9}{'command':>9}{'sends/s':>13}{'MB':>8}{'x SimPy':>9}{'x C++':>8}"
)


def line(
    algorithm: str, gpus: int, engine: str, row: Row, command: float | None = None, simpy: float | None = None, plain: float | None = None
) -> str:
    """A row of the table; ratios are of speeds, above 1 is faster."""
    head = f"{algorithm:<20}{gpus:>7,} {engine:<10}"
    if "time" not in row:
        return f"{head}  {row['stopped'][:90]}"
    shown = [f"{x:>{width}{form}}" if x else " " * (width - 1) + "-" for x, width, form in ((simpy, 9, ",.2f"), (plain, 8, ",.3f"))]
    started = f"{command:>9.2f}" if command is not None else f"{'-':>9}"
    speed = row["sends"] / max(row["cpu_s"], 1e-9)
    return f"{head}{row['sends']:>13,}{row['cpu_s']:>9.3f}{started}{speed:>13,.0f}{row['peak_mb']:>8,.0f}" + "".join(shown)


def machine() -> Row:
    """What it was measured on, and how busy that was."""
    cpu = next((x.split(":")[1].strip() for x in Path("/proc/cpuinfo").read_text().splitlines() if x.startswith("model name")), "?")
    return {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "load": os.getloadavg()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="up to 16,384 GPUs, all from the command line too; half an hour")
    parser.add_argument("--sizes", type=lambda text: [int(n) for n in text.split(",")], help="GPUs, ascending: 64,256")
    parser.add_argument("--engines", type=lambda text: text.split(","), default=ENGINES)
    parser.add_argument("--algorithms", type=lambda text: text.split(","), default=tuple(CASES))
    parser.add_argument("--limit", type=float, help="seconds of one run, imports apart [60, quick 10]")
    parser.add_argument("--memory", type=float, default=8.0, help="GB of one run")
    parser.add_argument("--shared", type=int, help="GPUs where cables are shared [64, quick 32]")
    parser.add_argument("--json", type=Path, help="write all measurements there, for plot_engines.py")
    args = parser.parse_args()
    if unknown := {*args.engines} - {*ENGINES} | {*args.algorithms} - {*CASES}:
        parser.error(f"not known: {', '.join(sorted(unknown))}; engines are {', '.join(ENGINES)}, algorithms {', '.join(CASES)}")
    args.sizes = args.sizes or (FULL if args.full else SIZES)
    args.limit, args.shared = args.limit or (60 if args.full else 10), args.shared or (64 if args.full else 32)
    args.command, args.flows = ("all", (1, 2, 4, 8)) if args.full else ("ring", (1, 4))
    before = machine()
    print(f"{before['cores']} cores of {before['cpu']}, load {before['load'][0]:.1f}; star, {NBYTES / 1e6:g} MB, whole chunks\n{HEAD}")
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(args, Path(folder))
        parts = [
            bench.warm(),
            bench.baseline(),
            *(bench.series(a, e) for a in args.algorithms for e in args.engines),
            bench.shared(),
            bench.sweep(),
        ]
        for part in parts:
            for text in part:
                print(text, flush=True)
            if args.json:
                told = {"machine": before, "load_after": os.getloadavg(), "limit_s": args.limit, "memory_gb": args.memory}
                args.json.write_text(json.dumps(told | {"rows": bench.rows}, indent=1), encoding="utf-8")
    print(f"\nload {os.getloadavg()[0]:.1f} at the end; x SimPy and x C++ are ratios of CPU time, above 1 is faster")


if __name__ == "__main__":
    main()
