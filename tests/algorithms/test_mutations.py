"""The checker rejects a wrong schedule if and only if running it gives a wrong result."""

from __future__ import annotations

import numpy as np
import pytest
from collective_reference import distinct_inputs, matches

from algorithms.checker import check
from algorithms.registry import Algorithm, catalogue
from algorithms.schedule import Schedule, Send
from kernels import numpy_executor
from topologies.errors import ScheduleError

EVERY = [pytest.param(a, id=f"{a.collective.name}-{a.name}") for a in catalogue()]


def mutated(schedule: Schedule, rng: np.random.Generator) -> Schedule:
    """One send dropped, doubled, redirected, of another chunk or operation, or moved to another step."""
    columns = {key: column.copy() for key, column in schedule.columns().items()}
    i = int(rng.integers(len(schedule)))
    kind = rng.choice(["drop", "double", "redirect", "source", "chunk", "op", "step"])
    if kind in ("drop", "double"):
        keep = np.delete(np.arange(len(schedule)), i) if kind == "drop" else np.sort(np.append(np.arange(len(schedule)), i))
        columns = {key: column[keep] for key, column in columns.items()}
    elif kind in ("redirect", "source"):
        columns["dst" if kind == "redirect" else "src"][i] = rng.integers(schedule.places)
    elif kind == "chunk":
        columns["dst_chunk"][i] = rng.integers(schedule.nchunks - columns["count"][i] + 1)
    elif kind == "op":
        columns["op"][i] = 1 - columns["op"][i]
    else:
        columns["step"][i] = rng.integers(schedule.steps)
    return Schedule.of(schedule.name, schedule.collective, schedule.nranks, [Send(**columns)], root=schedule.root, weights=schedule.weights)


@pytest.mark.parametrize("wrongs", [60, pytest.param(600, marks=pytest.mark.slow)])
@pytest.mark.parametrize("algorithm", EVERY)
def test_checker_agrees_with_the_numbers(algorithm: Algorithm, wrongs: int) -> None:
    rng = np.random.default_rng(2024)
    caught = 0
    for n in (4, 5, 8):
        if algorithm.refusal(n):
            continue
        schedule = algorithm.build(n, slices=1 + n % 2)
        inputs = distinct_inputs(n, 4 * len(schedule.weights), seed=n)
        for _ in range(wrongs):
            try:
                wrong = mutated(schedule, rng)
            except ScheduleError:
                continue  # not even well formed
            try:
                right = matches(wrong, numpy_executor.run(wrong, inputs)[0], inputs)
            except ScheduleError:
                right = False
            if right:
                check(wrong)
            else:
                caught += 1
                with pytest.raises(ScheduleError):
                    check(wrong)
    assert caught > 2 * wrongs / 3
