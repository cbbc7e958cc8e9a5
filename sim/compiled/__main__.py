"""``python -m sim.compiled``: compile the engine, so that no first run waits for it."""

from __future__ import annotations

from time import perf_counter

from algorithms.collectives import BROADCAST
from algorithms.launch import Launch, Placement
from algorithms.schedule import Schedule, copy
from sim.simulate import simulate
from topologies import make


def main() -> None:
    """Play one message."""
    began = perf_counter()
    schedule = Schedule.of("warm-up", BROADCAST, 2, [copy(0, 0, 1, 0)])
    machine = make("star", {"gpus": "2"})
    simulate(machine, [Launch(schedule, 4096, Placement.of(machine, schedule))], engine="compiled")
    print(f"compiled engine ready after {perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()
