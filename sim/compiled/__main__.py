"""``python -m sim.compiled``: compile the engine, so that no first run waits for it."""

from __future__ import annotations

from time import perf_counter

from sim.simulate import run_collective
from topologies import make


def main() -> None:
    """Play a small collective."""
    began = perf_counter()
    run_collective(make("star", {"gpus": "4"}), "all-reduce", "ring", 4096, engine="compiled")
    print(f"compiled engine ready after {perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
