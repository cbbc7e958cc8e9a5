"""Does an algorithm compute its collective? Proved symbolically, on real arrays, and by the bytes that it moves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.checker import check
from algorithms.collectives import Collective, collective
from algorithms.launch import Launch, Placement, Trace, dtype_bytes
from algorithms.registry import find
from algorithms.schedule import Schedule
from kernels import numpy_executor
from prediction.limits import check_sends
from sim.simulate import make_launch, simulate
from topologies.errors import RingscopeError, ScheduleError, nearest
from topologies.graph import Topology
from topologies.units import format_bytes

Vector = NDArray[Any]
Executor = Callable[[Schedule, list[Any]], tuple[Any, Trace]]

EXECUTORS: dict[str, Executor] = {"numpy": numpy_executor.run}
"""Executors by name; each runs any schedule on real arrays."""
MAX_BUFFERS = 4 << 30
"""Bytes of real buffers a check may use; inputs, what is held and what is wanted are three times the vectors."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at; ``found`` says what, in words."""

    name: str
    ok: bool
    found: str


@dataclass(frozen=True, slots=True)
class Verification:
    """``max_abs_error`` is that of whole numbers, so 0 unless the schedule is wrong; ``bytes_per_rank`` are those sent."""

    schedule: Schedule = field(repr=False)
    executor: str
    seed: int
    elements: int
    dtype: str
    checks: tuple[Check, ...]
    max_abs_error: float
    float_error: float
    float_bound: float
    bytes_per_rank: tuple[int, ...]

    @property
    def ok(self) -> bool:
        return all(check.ok for check in self.checks)

    @property
    def sends(self) -> int:
        return len(self.schedule)


def verify(
    collective_name: str,
    algorithm_name: str,
    nranks: int,
    *,
    options: Mapping[str, Any] | None = None,
    channels: int = 1,
    slices: int = 1,
    dtype: str = "float32",
    executor: str = "numpy",
    topology: Topology | None = None,
    nbytes: int | None = None,
    seed: int = 0,
) -> Verification:
    """Build the schedule and check it; with ``topology`` and ``nbytes`` also the bytes that the simulator counts there.

    Raises ScheduleError for names and numbers that are refused, and for buffers above ``MAX_BUFFERS``."""
    if (topology is None) != (nbytes is None):
        raise ScheduleError("verify: a topology and a size go together; give both or none")
    algorithm = find(collective(collective_name), algorithm_name)
    if algorithm.refusal(nranks) is None:
        check_sends(collective_name, algorithm_name, nranks, channels=channels, slices=slices, options=options)
    if topology is not None and nbytes is not None:
        if len(topology.gpus) != nranks:
            raise ScheduleError(f"verify: {topology.name} has {len(topology.gpus)} GPUs, not {nranks}")
        launch = make_launch(
            topology, collective_name, algorithm_name, nbytes, options=options, channels=channels, slices=slices, dtype=dtype
        )
        return verify_schedule(launch.whole, dtype=dtype, executor=executor, topology=topology, nbytes=nbytes, seed=seed)
    schedule = algorithm.build(nranks, channels=channels, slices=slices, **(options or {}))
    return verify_schedule(schedule, dtype=dtype, executor=executor, seed=seed)


def verify_schedule(
    schedule: Schedule,
    *,
    dtype: str = "float32",
    executor: str = "numpy",
    topology: Topology | None = None,
    nbytes: int | None = None,
    seed: int = 0,
) -> Verification:
    """The same for any schedule; a wrong one gives ``ok`` False and says where."""
    if executor not in EXECUTORS:
        raise ScheduleError(f'executor "{executor}" is not known{nearest(executor, EXECUTORS)}')
    s, itemsize, run = schedule, dtype_bytes(dtype), EXECUTORS[executor]
    elements = _awkward(s) if nbytes is None else Launch(s, nbytes, dtype=dtype).elements
    _refuse_large(s, max(elements * itemsize, _awkward(s) * 8))
    rng = np.random.default_rng(seed)
    checks = [_symbolic(s)]
    if not checks[0].ok:
        return Verification(s, executor, seed, elements, dtype, tuple(checks), float("nan"), float("nan"), float("nan"), ())
    exact, wrong = _integers(s, run, rng)
    rounded, error, bound = _floats(s, run, rng)
    checks += [exact, rounded]
    inputs = _vectors(s, np.frombuffer(rng.bytes(s.nranks * elements * itemsize), dtype=f"uint{8 * itemsize}"))
    held, trace = run(s, inputs)
    checks.append(_bytes(s, held, trace, inputs, itemsize))
    if topology is not None and nbytes is not None:
        checks.append(_simulated(s, trace, topology, nbytes, dtype))
    sent = tuple(trace.bytes_sent(0, s.nranks).tolist())
    return Verification(s, executor, seed, elements, dtype, tuple(checks), wrong, error, bound, sent)


Piece = tuple[int, Vector]
"""Where a run of elements starts, and their values."""


def definition(what: Collective, inputs: Sequence[Vector], blocks: Sequence[int], root: int) -> dict[int, list[Piece]]:
    """Rank -> what it must hold at the end, from the meaning of the collective alone.

    ``blocks[r] : blocks[r + 1]`` are the elements that belong to rank r of n; for all-to-all, where the vectors of all ranks
    count as one, ``blocks[p * n + j] : ...`` are those that rank p has for rank j; for sendrecv those of each block of its pattern."""
    n = len(inputs)
    every = range(n)
    total = np.sum(np.stack(inputs), axis=0, dtype=inputs[0].dtype) if what.reduces else inputs[root]
    own = [slice(blocks[r], blocks[r + 1]) for r in every]
    match what.start, what.end:
        case ("all" | "root", "all"):
            return {r: [(0, total)] for r in every}
        case ("all" | "root", "owner"):
            return {r: [(blocks[r], total[own[r]])] for r in every}
        case ("all", "root"):
            return {root: [(0, total)]}
        case ("owner", "all"):
            return {r: [(blocks[p], inputs[p][own[p]]) for p in every] for r in every}
        case ("owner", "root"):
            return {root: [(blocks[p], inputs[p][own[p]]) for p in every]}
        case ("owner", "target"):
            at = {(p, j): (blocks[p * n + j], blocks[p * n + j + 1], blocks[p * n]) for p in every for j in every}
            return {j: [(at[p, j][0], inputs[p][at[p, j][0] - at[p, j][2] : at[p, j][1] - at[p, j][2]]) for p in every] for j in every}
        case ("owner", "peer"):
            k, ends = len(what.to) // n, {r: list[Piece]() for r in every}
            for b, rank in enumerate(what.to):
                row = blocks[b // k * k]
                ends[rank].append((blocks[b], inputs[b // k][blocks[b] - row : blocks[b + 1] - row]))
            return ends
    raise ScheduleError(f"verify: no definition for a collective from {what.start} to {what.end}")


def _awkward(s: Schedule) -> int:
    """A few elements for each chunk, in a number that the ranks do not divide."""
    elements = 3 * int(s.weights.sum()) + 1
    return elements if elements % s.nranks else elements + 1


def _refuse_large(s: Schedule, nbytes: int) -> None:
    need = 3 * s.nranks * nbytes
    if need > MAX_BUFFERS:
        raise ScheduleError(
            f"verify: {s.nranks} real buffers of {format_bytes(nbytes)} need {need / 2**30:.3g} GiB of memory; at most "
            f"{MAX_BUFFERS >> 30} GiB are used: take a size of at most {format_bytes(MAX_BUFFERS // (3 * s.nranks))}"
        )


def _symbolic(s: Schedule) -> Check:
    try:
        check(s)
    except RingscopeError as error:
        return Check("contributions", False, str(error))
    return Check("contributions", True, f"every chunk ends where {s.collective.name} wants it, each contribution once")


def _differences(s: Schedule, held: Any, inputs: Sequence[Vector]) -> list[Vector]:
    """|held - wanted| per piece that a rank must hold; for a barrier, which carries no data, nothing."""
    if s.collective.idempotent:
        return []
    n, data = s.nranks, len(s.weights)
    bounds = s.chunk_bounds(sum(map(len, inputs)) // n)
    blocks = bounds[:: data // s.collective.unit(n)] if s.collective.personalised else bounds[[r * data // n for r in range(n + 1)]]
    found = []
    for rank, pieces in definition(s.collective, inputs, blocks.tolist(), s.root).items():
        for start, values in pieces:
            first, last = np.searchsorted(bounds, [start, start + len(values)])
            parts = [held[rank][c] for c in range(first, last) if bounds[c] < bounds[c + 1]]
            got = np.concatenate(parts) if parts else values[:0]
            found.append(np.where(got > values, got - values, values - got))  # unsigned numbers cannot be subtracted either way
    return found


def _vectors(s: Schedule, flat: Vector) -> list[Vector]:
    """The values of all ranks as one vector a rank; in all-to-all their lengths may differ by a few, as the shares of all data do."""
    if not s.collective.personalised:
        return np.split(flat, s.nranks)
    return np.split(flat, s.chunk_bounds(len(flat) // s.nranks)[:: len(s.weights) // s.nranks][1:-1])


def _largest(differences: Sequence[Vector]) -> float:
    return max((float(part.max()) for part in differences if len(part)), default=0.0)


def _integers(s: Schedule, run: Executor, rng: np.random.Generator) -> tuple[Check, float]:
    elements = _awkward(s)
    inputs = _vectors(s, rng.choice(1 << 40, size=s.nranks * elements, replace=False).astype(np.int64))
    before = [vector.copy() for vector in inputs]
    held, _ = run(s, inputs)
    worst = _largest(_differences(s, held, before))
    kept = all(np.array_equal(vector, row) for vector, row in zip(inputs, before, strict=True))
    words = "equal to the definition" if worst == 0 and kept else f"wrong by {worst:.0f}" if kept else "the executor changed its inputs"
    return Check("whole numbers", worst == 0 and kept, f"{s.nranks} x {elements} distinct random integers: {words}"), worst


def _floats(s: Schedule, run: Executor, rng: np.random.Generator) -> tuple[Check, float, float]:
    inputs = _vectors(s, rng.standard_normal(s.nranks * _awkward(s)).astype(np.float32))
    exact = [vector.astype(np.float64) for vector in inputs]
    held, _ = run(s, inputs)
    wide = [[None if part is None else part.astype(np.float64) for part in chunks] for chunks in held]
    error = _largest(_differences(s, wide, exact))
    bound = 0.0
    if s.collective.reduces:  # any order of n-1 additions (Higham 2002, 4.2): |error| <= (n-1) u sum|x| + O(u^2), u = eps / 2
        bound = float((s.nranks - 1) * np.finfo(np.float32).eps * np.sum(np.abs(exact), axis=0).max())
    return Check("rounding", error <= bound, f"float32 error {error:.3g}, bound (n-1) eps sum|x| = {bound:.3g}"), error, bound


def _bytes(s: Schedule, held: Any, trace: Trace, inputs: Sequence[Vector], itemsize: int) -> Check:
    """Bytes that really moved, send by send, against what the schedule says; the result at this size on the way."""
    expected = s.send_elements(sum(map(len, inputs)) // s.nranks) * itemsize
    right = bool(np.array_equal(expected, trace.bytes)) and _largest(_differences(s, held, inputs)) == 0
    sent = trace.bytes_sent(0, s.nranks)
    each = f"{sent.min():,}" if sent.min() == sent.max() else f"{sent.min():,} to {sent.max():,}"
    words = f"{len(inputs[0]):,} elements of {itemsize} B: each rank sent {each} B"
    return Check("bytes", right, words if right else "the executor moved other bytes, or other data, than the schedule says")


def _simulated(s: Schedule, trace: Trace, topology: Topology, nbytes: int, dtype: str) -> Check:
    """Bytes per rank and per pair, counted by the executor and by the simulator."""
    played = simulate(topology, [Launch(s, nbytes, Placement.of(topology, s), dtype)]).trace
    ranks = np.array_equal(trace.bytes_sent(0, s.nranks), played.bytes_sent(0, s.nranks))
    pairs = np.array_equal(trace.bytes_pairs(0, s.places), played.bytes_pairs(0, s.places))
    words = f"equal on {topology.name}, per rank and per pair" if ranks and pairs else f"the simulator moves other bytes on {topology.name}"
    return Check("simulator", bool(ranks and pairs), words)
