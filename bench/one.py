"""One measurement in a process of its own: reads a question as JSON from its first argument, prints the answer as JSON.

Started by engines.py, which limits time and memory. Seconds are without imports and loading compiled code; ``cpu_s`` is processor time,
which other work on the machine disturbs less than ``wall_s``.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

from algorithms.launch import Launch
from sim.maxplus.evaluator import evaluate
from sim.model import Model
from sim.result import Result
from sim.simulate import make_launch, simulate
from topologies import Topology, make
from topologies.errors import RingscopeError

SHORT = 2.0
"""Seconds below which the best of three counts."""
BANDWIDTH, LATENCY = 25e9, 1e-6  # of a cable; a route of the star has two


def timed(work: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    wall, cpu = perf_counter(), process_time()
    done = work()
    return done, {"cpu_s": process_time() - cpu, "wall_s": perf_counter() - wall}


def star(gpus: int) -> Topology:
    return make("star", {"gpus": gpus, "bandwidth": BANDWIDTH, "latency": LATENCY})


def peak_mb() -> float:
    """The most memory that this process had resident; getrusage would count what its parent had before it."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def collective(asked: dict[str, Any]) -> dict[str, Any]:
    """One collective over all GPUs of a star: laying out and playing, sends summed up."""
    topology, laid = timed(lambda: star(asked["gpus"]))

    def run() -> Result:
        launch = make_launch(topology, asked["collective"], asked["algorithm"], asked["bytes"], streamed=asked["engine"] != "event")
        return simulate(topology, [launch], engine=asked["engine"], traced=False)

    result, took = timed(run)
    schedule = result.launches[0].schedule
    return {"sends": len(schedule or ()), "time": result.time, "topology_cpu_s": laid["cpu_s"], **took}


def contention(asked: dict[str, Any]) -> dict[str, Any]:
    """``k`` rings over the same GPUs at once, so that every cable carries k flows; ``apart``: each starts a little after the one before,
    so that flows begin and end at times of their own."""
    topology, k = star(asked["gpus"]), asked["k"]
    ring = make_launch(topology, "all-reduce", "ring", asked["bytes"] // k // 4 * 4)
    launches: Sequence[Launch] = [replace(ring, start=1.7e-6 * i / k if asked["apart"] else 0.0) for i in range(k)]
    result, took = timed(lambda: simulate(topology, launches, engine=asked["engine"], traced=False))
    return {"sends": sum(len(launch.schedule or ()) for launch in launches), "time": result.time, **took}


def sweep(asked: dict[str, Any]) -> dict[str, Any]:
    """``sizes`` message sizes of a ring in one pass of the max-plus evaluator."""
    topology = star(asked["gpus"])
    launch = make_launch(topology, "all-reduce", "ring", asked["bytes"], streamed=True)
    elements = [[asked["bytes"] // 4 * (i + 1) // asked["sizes"] for i in range(asked["sizes"])]]
    _, took = timed(lambda: evaluate(topology, [launch], Model(), elements))
    return {"sends": len(launch.schedule or ()) * asked["sizes"], **took}


def main() -> None:
    asked = json.loads(sys.argv[1])
    kind = {"collective": collective, "contention": contention, "sweep": sweep}[asked["kind"]]
    try:
        kind(asked | {"gpus": 8, "bytes": 80_000})  # load what is loaded once
        found = [kind(asked)]
        while found[-1]["cpu_s"] < SHORT and len(found) < 3:
            found.append(kind(asked))
        print(json.dumps(min(found, key=lambda row: row["cpu_s"]) | {"peak_mb": peak_mb()}))
    except RingscopeError as refused:
        print(json.dumps({"stopped": str(refused)}))
    except MemoryError:
        print(json.dumps({"stopped": "memory"}))


if __name__ == "__main__":
    main()
