"""Topology x collective x sizes -> what each algorithm would take, which is best at which size, and where the best changes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise

from algorithms.collectives import Collective, collective
from algorithms.launch import Launch, dtype_bytes
from algorithms.registry import Algorithm, catalogue, find
from prediction.limits import check_sends
from sim.engines import SMALL
from sim.model import Model
from sim.simulate import make_launch, simulate
from topologies.errors import RingscopeError, ScheduleError
from topologies.graph import Topology

Progress = Callable[[int, int], None]
"""Called with (runs done, runs in all); an exception raised in it cancels."""

SLICE_BYTES = 512 << 10
"""A pipelined algorithm moves slices of this size, NCCL's step of its Simple protocol (a buffer of 4 MiB in 8 steps)."""
MAX_SLICES = 16
"""More slices than this are not simulated, for the sake of waiting: a chain of 8 ranks then takes 1.4 times its limit M/B."""
SAME = 1e-9
"""Times that differ by less, relative, are equal: engines agree no better."""
REFINE_SENDS = 20_000
"""Crossovers between schedules with more sends than this stay as coarse as the sizes asked for."""
REFINE_RUNS = 12


@dataclass(frozen=True, slots=True)
class Candidate:
    """One algorithm at one size, in SI units. ``busbw_Bps`` is None for a barrier."""

    algorithm: str
    slices: int
    time_s: float
    algbw_Bps: float
    busbw_Bps: float | None


@dataclass(frozen=True, slots=True)
class Row:
    """One size: candidates, fastest first; equal times in the order of names."""

    size_bytes: int
    candidates: tuple[Candidate, ...]

    @property
    def best(self) -> Candidate:
        """The fastest."""
        return self.candidates[0]


@dataclass(frozen=True, slots=True)
class Crossover:
    """From ``size_bytes`` on (found between the sizes ``after`` and ``before``, exact to ``within_bytes``) ``to`` is the
    fastest; below it ``was``."""

    was: str
    to: str
    size_bytes: int
    within_bytes: int
    after: int
    before: int


@dataclass(frozen=True, slots=True)
class Prediction:
    """Rows in the order of the sizes; ``skipped`` says why an algorithm was left out."""

    topology: Topology = field(repr=False)
    collective: Collective
    nranks: int
    dtype: str
    model: Model
    engine: str
    rows: tuple[Row, ...]
    skipped: Mapping[str, str]
    crossovers: tuple[Crossover, ...]


def slices_for(algorithm: Algorithm, nbytes: int) -> int:
    """The one rule for slices: as many of ``SLICE_BYTES`` as fit, from 1 to ``MAX_SLICES``; 1 if not made for a pipeline."""
    return min(MAX_SLICES, max(1, nbytes // SLICE_BYTES)) if algorithm.pipelined else 1


def predict(
    topology: Topology,
    collective_name: str,
    sizes: Sequence[int],
    *,
    model: Model | None = None,
    dtype: str = "float32",
    algorithms: Sequence[str] | None = None,
    engine: str = "auto",
    progress: Progress | None = None,
) -> Prediction:
    """Simulate every algorithm of a collective (or those named) at every size [bytes].

    An algorithm that refuses the number of ranks, finds no switch that reduces or would have too many sends is skipped with
    its reason. Raises ScheduleError for an unknown name, a size that is not a whole number of elements, or if none is left."""
    wanted = collective(collective_name)
    if not sizes:
        raise ScheduleError("predict: no size is given; write 8B:8GiB:x2")
    named = [find(wanted, name) for name in dict.fromkeys(algorithms)] if algorithms else catalogue(wanted)
    if wanted.end == "peer" and not algorithms:  # patterns do different jobs: none is the best, unless someone wants to see several
        named = [find(wanted, "shift")]
    for size in sizes:
        Launch(None, size, dtype=dtype).elements  # noqa: B018  refuse a size before anything runs
    runner = Runner(topology, wanted, dtype, model or Model(), engine)
    skipped: dict[str, str] = {}
    usable = []
    for algorithm in named:
        try:
            runner.launch(algorithm, max(sizes))
            usable.append(algorithm)
        except RingscopeError as error:
            skipped[algorithm.name] = str(error).removeprefix(f"{algorithm.name}: ")
    if not usable:
        raise _none_left(wanted, topology, skipped)
    runner = runner.settled(usable, sizes)
    total = len(sizes) * len(usable)
    tried: list[tuple[int, list[Candidate]]] = []
    for i, size in enumerate(sizes):
        found: list[Candidate] = []
        for j, algorithm in enumerate(usable):
            done = i * len(usable) + j
            if algorithm.name in skipped:
                continue
            try:
                found.append(runner.run(algorithm, size, None if progress is None else _within(progress, done, total)))
            except ScheduleError as error:  # by engine maxplus, where flows share a link
                skipped[algorithm.name] = str(error)
        tried.append((size, found))
    usable = [algorithm for algorithm in usable if algorithm.name not in skipped]
    if not usable:
        raise _none_left(wanted, topology, skipped)
    rows = [Row(size, _ranked([c for c in found if c.algorithm not in skipped])) for size, found in tried]
    if progress:
        progress(total, total)
    crossovers = _crossovers(runner, rows, {a.name: a for a in usable}, progress, total)
    return Prediction(topology, wanted, len(topology.gpus), dtype, runner.model, runner.engine, tuple(rows), skipped, crossovers)


def _none_left(wanted: Collective, topology: Topology, skipped: Mapping[str, str]) -> ScheduleError:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in skipped.items()) or "none is registered yet"
    return ScheduleError(f"no algorithm for {wanted.name} on {topology.name}: {reasons}")


@dataclass(frozen=True, slots=True)
class Runner:
    """Simulates algorithms of one collective on one topology at many sizes; a schedule is built and placed once."""

    topology: Topology
    collective: Collective
    dtype: str
    model: Model
    engine: str
    _launches: dict[tuple[str, int], Launch] = field(default_factory=dict, repr=False)

    def launch(self, algorithm: Algorithm, nbytes: int) -> Launch:
        """The launch at ``nbytes``, in slices by the rule. Raises RingscopeError as the algorithm or the placement does."""
        slices = slices_for(algorithm, nbytes)
        key = algorithm.name, slices
        if key not in self._launches:
            reason = algorithm.refusal(len(self.topology.gpus))
            if reason:
                raise ScheduleError(f"{algorithm.name}: {len(self.topology.gpus)} ranks: {reason}")
            check_sends(self.collective.name, algorithm.name, len(self.topology.gpus), slices=slices, engine=self.engine)
            self._launches[key] = make_launch(self.topology, self.collective.name, algorithm.name, nbytes, slices=slices, dtype=self.dtype)
        return replace(self._launches[key], nbytes=nbytes)

    def settled(self, algorithms: Sequence[Algorithm], sizes: Sequence[int]) -> Runner:
        """``auto`` becomes one engine for all runs: many small ones are worth the second that the compiled engine takes to load."""
        if self.engine != "auto":
            return self
        sends = sum(len(self.launch(algorithm, max(sizes)).whole) for algorithm in algorithms)
        return replace(self, engine="compiled" if sends * len(sizes) > SMALL else "event")

    def run(self, algorithm: Algorithm, nbytes: int, progress: Progress | None = None) -> Candidate:
        """Time of one algorithm at one size."""
        result = simulate(self.topology, [self.launch(algorithm, nbytes)], self.model, self.engine, progress, traced=False)
        return Candidate(algorithm.name, slices_for(algorithm, nbytes), result.time, result.algbw(), result.busbw())


def _within(progress: Progress, done: int, total: int) -> Progress:
    """Messages of one run as a call that says the same runs again: a long run can be cancelled, and a bar stays alive."""
    return lambda messages, of: progress(done, total)


def _ranked(found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Fastest first; those as fast as the fastest come in the order of names, so that rounding does not choose the best."""
    fastest = min(candidate.time_s for candidate in found)
    return tuple(sorted(found, key=lambda c: (0.0 if c.time_s <= fastest * (1 + SAME) else c.time_s, c.algorithm)))


def _crossovers(
    runner: Runner, rows: Sequence[Row], by_name: Mapping[str, Algorithm], progress: Progress | None, total: int
) -> tuple[Crossover, ...]:
    ordered = sorted(rows, key=lambda row: row.size_bytes)
    return tuple(
        _refined(runner, by_name[low.best.algorithm], by_name[high.best.algorithm], low.size_bytes, high.size_bytes, progress, total)
        for low, high in pairwise(ordered)
        if low.best.algorithm != high.best.algorithm
    )


def _refined(runner: Runner, was: Algorithm, to: Algorithm, low: int, high: int, progress: Progress | None, total: int) -> Crossover:
    """Halve the interval on whole elements: at ``low`` the one is fastest, at ``high`` the other."""
    unit, after, before = dtype_bytes(runner.dtype), low, high
    schedules = [runner.launch(algorithm, high).schedule for algorithm in (was, to)]
    cheap = max(len(schedule) for schedule in schedules if schedule) <= REFINE_SENDS
    for _ in range(REFINE_RUNS if cheap else 0):
        middle = (low + high) // 2 // unit * unit
        if not low < middle < high:
            break
        if progress:
            progress(total, total)
        winner = _ranked([runner.run(was, middle), runner.run(to, middle)])[0].algorithm
        low, high = (middle, high) if winner == was.name else (low, middle)
    return Crossover(was.name, to.name, high, high - low, after, before)
