"""Engine speed: sends a second and seconds for ring all-reduce on a ring and on a star (where flows meet at a switch).

Machines differ and are noisy: compare ratios. Usage: python bench/engines.py [--gpus 64] [--slices 8] [--repeat 3]
"""

from __future__ import annotations

import argparse
import resource
from time import perf_counter

from sim.simulate import ENGINES, make_launch, simulate
from topologies import Topology, make

CASES = (("ring", "ring"), ("star", "ring"), ("star", "sharded-parameter-server"), ("star", "double-binary-tree"))
NBYTES = 100_000_000


def measure(topology: Topology, algorithm: str, slices: int, engine: str, repeat: int) -> tuple[int, float, float]:
    """Sends, and the best seconds of building the schedule and of simulating it."""
    build = run = float("inf")
    sends = 0
    for _ in range(repeat):
        t0 = perf_counter()
        launch = make_launch(topology, "all-reduce", algorithm, NBYTES, slices=slices)
        t1 = perf_counter()
        sends = len(simulate(topology, [launch], engine=engine).trace.send)
        build, run = min(build, t1 - t0), min(run, perf_counter() - t1)
    return sends, build, run


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--gpus", type=int, default=64)
    parser.add_argument("--slices", type=int, default=8)
    parser.add_argument("--repeat", type=int, default=3)
    args = parser.parse_args()
    print(f"all-reduce of {NBYTES / 1e6:.0f} MB over {args.gpus} GPUs in {args.slices} slices, best of {args.repeat}")
    print(f"{'topology':<10}{'algorithm':<28}{'engine':<8}{'sends':>9}{'build s':>9}{'run s':>8}{'sends/s':>11}{'ratio':>7}")
    first = 0.0
    for topology, algorithm in CASES:
        built = make(topology, {"gpus": args.gpus})
        for engine in ENGINES:
            sends, build, run = measure(built, algorithm, args.slices, engine, args.repeat)
            first = first or sends / run
            speed = sends / run
            print(f"{topology:<10}{algorithm:<28}{engine:<8}{sends:>9,}{build:>9.2f}{run:>8.2f}{speed:>11,.0f}{speed / first:>7.2f}")
    print(f"peak memory {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")


if __name__ == "__main__":
    main()
