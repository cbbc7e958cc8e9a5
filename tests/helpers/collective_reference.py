"""What a collective must produce, computed from its definition alone (no schedule, no checker)."""

from __future__ import annotations

import numpy as np

from algorithms.schedule import Schedule
from kernels import numpy_executor

Vectors = list[np.ndarray]


def distinct_inputs(nranks: int, elements: int, seed: int) -> Vectors:
    """Random integers, no two alike, so that a lost, doubled or misplaced element shows."""
    rng = np.random.default_rng(seed)
    values = rng.choice(1 << 40, size=nranks * elements, replace=False)
    return list(values.reshape(nranks, elements).astype(np.int64))


def wanted(schedule: Schedule, inputs: Vectors) -> dict[tuple[int, int], np.ndarray]:
    """(rank, chunk) -> the elements that must be there at the end."""
    name, n, chunks = schedule.collective.name, schedule.nranks, len(schedule.weights)
    personal = schedule.collective.personalised
    bounds = schedule.chunk_bounds(sum(map(len, inputs)) // n if personal else len(inputs[0]))
    total = inputs[0] if personal else np.sum(inputs, axis=0)
    owner = [c * n // chunks for c in range(chunks)]
    out: dict[tuple[int, int], np.ndarray] = {}
    for c in np.flatnonzero(schedule.weights).tolist():  # what has no elements need not be anywhere
        part = slice(bounds[c], bounds[c + 1])
        if name == "all-reduce":
            out |= {(r, c): total[part] for r in range(n)}
        elif name == "reduce-scatter":
            out[owner[c], c] = total[part]
        elif name == "reduce":
            out[schedule.root, c] = total[part]
        elif name == "all-gather":
            out |= {(r, c): inputs[owner[c]][part] for r in range(n)}
        elif name == "broadcast":
            out |= {(r, c): inputs[schedule.root][part] for r in range(n)}
        elif name == "scatter":
            out[owner[c], c] = inputs[schedule.root][part]
        elif name == "gather":
            out[schedule.root, c] = inputs[owner[c]][part]
        elif name == "all-to-all":  # row p of the chunks is what rank p has, column j what rank j must get
            p, j = c * n // chunks, c * n * n // chunks % n
            row = bounds[p * chunks // n]
            out[j, c] = inputs[p][bounds[c] - row : bounds[c + 1] - row]
        elif name == "sendrecv":
            p, row = c * n // chunks, bounds[c * n // chunks * chunks // n]
            out[schedule.collective.to[c * len(schedule.collective.to) // chunks], c] = inputs[p][bounds[c] - row : bounds[c + 1] - row]
        else:
            raise AssertionError(f"no definition for {name}")
    return out


def matches(schedule: Schedule, held: list[list[np.ndarray | None]], inputs: Vectors) -> bool:
    """Whether every wanted cell holds exactly the wanted elements. A barrier: whether every rank has heard from every rank, as
    often as it likes."""
    if schedule.collective.idempotent:
        return everyone_heard(schedule)
    return all(
        held[rank][chunk] is not None and np.array_equal(held[rank][chunk], value)
        for (rank, chunk), value in wanted(schedule, inputs).items()
    )


def everyone_heard(schedule: Schedule) -> bool:
    """Every rank puts a 1 of its own into each chunk; executed, each chunk of each rank must have all of them, 1 or more."""
    n, chunks = schedule.nranks, len(schedule.weights)
    signs = [np.tile(row, int(schedule.weights.sum())) for row in np.eye(n, dtype=np.int64)]
    held, _ = numpy_executor.run(schedule, signs)
    cells = [held[rank][chunk] for rank in range(n) for chunk in range(chunks)]
    return all(cell is not None and (cell > 0).all() for cell in cells)
