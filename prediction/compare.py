"""Measured tables x topology -> predicted beside measured, and the error in percent. Nothing is fitted to the log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum

from algorithms.collectives import COLLECTIVES, Collective
from algorithms.registry import Algorithm, catalogue, find
from prediction.fit import Fitted, fitted
from prediction.log_file import some
from prediction.predict import SLICE_BYTES, Candidate, Runner, slices_for
from prediction.tables import ITEMSIZE, Table
from sim.model import Model
from sim.simulate import simulate
from topologies.errors import MeasurementError, RingscopeError, ScheduleError
from topologies.units import format_bytes

Progress = Callable[[int, int], None]
"""Called with (rows done, rows in all); an exception raised in it cancels."""

PREFERRED = ("ring", "chain", "direct", "flat", "shift")
"""What NCCL runs where nothing better is known: a ring; its ring broadcast and ring reduce are pipelined chains; the rest is
sends and receives at once, those of sendrecv_perf to the next rank."""
_DTYPE = {1: "int8", 2: "float16", 4: "float32", 8: "float64"}


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement; ``error`` is predicted / measured - 1."""

    collective: str
    in_place: bool
    size_bytes: int
    measured_s: float
    predicted_s: float
    slices: int

    @property
    def error(self) -> float:
        return self.predicted_s / self.measured_s - 1


@dataclass(frozen=True, slots=True)
class Comparison:
    """One run of a log (its tables of one collective, dtype and number of ranks) on one machine by one algorithm."""

    collective: str
    algorithm: str
    nranks: int
    dtype: str
    gpu: str | None
    topology: str
    notes: tuple[str, ...]
    rows: tuple[Row, ...]

    @property
    def mape(self) -> float:
        """Mean absolute error over the rows, in percent."""
        return _mape(self.rows)


@dataclass(frozen=True, slots=True)
class Report:
    """All of a log: what was compared, and what was not and why."""

    compared: tuple[Comparison, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...] = field(default=())

    @property
    def rows(self) -> tuple[Row, ...]:
        return tuple(row for part in self.compared for row in part.rows)

    @property
    def mape(self) -> float:
        """Mean absolute error over all rows, in percent."""
        return _mape(self.rows)

    @property
    def algorithm(self) -> str:
        """The algorithms used, joined by commas."""
        return ",".join(dict.fromkeys(part.algorithm for part in self.compared))


def compare(
    tables: Sequence[Table],
    spec: str,
    params: Mapping[str, str] | None = None,
    *,
    algorithm: str | None = None,
    model: Model | None = None,
    engine: str = "auto",
    progress: Progress | None = None,
    faults: Sequence[str] = (),
    seed: int = 0,
) -> Report:
    """Predict every row of ``tables`` (one log) on the topology ``spec`` with ``params`` and ``faults`` (see ``prediction.fit``).

    The size column of nccl-tests is the full vector, which is what the simulator takes. A table whose collective is not known,
    has no algorithm, or does not fit the machine is skipped with its reason. Raises RingscopeError when none is left."""
    runs = runs_of(tables)
    total, done = sum(len(table.rows) for table in tables), 0
    compared: list[Comparison] = []
    skipped: list[str] = []
    machines: dict[tuple[int, int | None], Fitted] = {}
    errors: list[RingscopeError] = []
    for run in runs:
        first = run[0]
        try:
            chosen = _chosen(first, algorithm)
            nranks = nranks_of(first)
            key = nranks, first.nservers
            if key not in machines:
                machines[key] = fitted(spec, params or {}, *key, faults=faults, seed=seed)
            runner = Runner(machines[key].topology, chosen.collective, _DTYPE[ITEMSIZE[first.dtype]], model or Model(), engine)
            rows, odd = _rows(run, chosen, runner, _counted(progress, done, total))
        except RingscopeError as error:
            skipped.append(f"{where_of(run)}: {error}")
            errors.append(error)
        else:
            said = machines[key].note, odd, _pipeline_note(chosen, rows), _nic_note(runner, chosen, rows)
            notes = tuple(note for note in said if note)
            compared.append(Comparison(
                chosen.collective.name, chosen.name, nranks, first.dtype, first.gpu, runner.topology.name, notes, rows
            ))  # fmt: skip
        done += sum(len(table.rows) for table in run)
    if not compared:
        more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
        raise errors[0] if len(errors) == 1 else MeasurementError(f"no table can be compared: {skipped[0]}{more}")
    return Report(tuple(compared), tuple(skipped), tuple(dict.fromkeys(note for table in tables for note in table.notes)))


def runs_of(tables: Sequence[Table]) -> list[list[Table]]:
    """Tables that differ in size only belong together: a script that calls the test once a size prints a table for each."""
    runs: dict[tuple[object, ...], list[Table]] = {}
    for table in tables:
        key = table.collective or table.decided_by.partition(" (")[0], table.nranks, table.nservers, table.dtype, table.op
        runs.setdefault(key, []).append(table)
    return list(runs.values())


def _counted(progress: Progress | None, before: int, total: int) -> Callable[[int], None]:
    return lambda done: progress(before + done, total) if progress else None


def where_of(run: Sequence[Table]) -> str:
    """Where its first table stands in the log."""
    return f"{run[0].word} {run[0].line}" + (f" and {len(run) - 1} more tables" if len(run) > 1 else "")


def nranks_of(table: Table) -> int:
    """How many ranks ran. Raises MeasurementError: not known, or one."""
    if table.nranks is None:
        raise MeasurementError("the log does not say how many ranks ran, and its numbers leave it open")
    if table.nranks < 2:
        raise MeasurementError(f"{table.nranks} rank; a collective needs at least 2")
    return table.nranks


def _chosen(table: Table, algorithm: str | None) -> Algorithm:
    if table.collective is None:
        raise MeasurementError(f"the collective is {table.decided_by}")
    known: Collective | None = COLLECTIVES.get(table.collective)
    if known is None:
        raise ScheduleError(f"{table.collective} is not a collective that is simulated")
    if algorithm is not None:
        return find(known, algorithm)
    here = catalogue(known)
    if not here:
        raise ScheduleError(f"there is no algorithm for {known.name} yet")
    return next((a for name in PREFERRED for a in here if a.name == name), here[0])


def _rows(run: Sequence[Table], chosen: Algorithm, runner: Runner, progress: Callable[[int], None]) -> tuple[tuple[Row, ...], str]:
    """Rows with a prediction, and a note on those left out because their size is not a whole number of elements."""
    at: dict[int, Candidate] = {}
    rows = []
    dtype, itemsize = run[0].dtype, ITEMSIZE[run[0].dtype]
    sizes = {row.size_bytes for table in run for row in table.rows if row.size_bytes > 0 and row.size_bytes % itemsize == 0}
    runner = runner.settled([chosen], sorted(sizes)) if sizes else runner
    odd: list[str] = []
    for number, (table, row) in enumerate((of, row) for of in run for row in of.rows):
        progress(number)
        if row.size_bytes % itemsize:
            odd.append(f"{table.at(row.line)} ({row.size_bytes} bytes)")
        elif row.size_bytes > 0 and row.time_s > 0:
            if row.size_bytes not in at:
                at[row.size_bytes] = runner.run(chosen, row.size_bytes, _still(progress, number))
            predicted = at[row.size_bytes]
            rows.append(Row(chosen.collective.name, row.in_place, row.size_bytes, row.time_s, predicted.time_s, predicted.slices))
    note = f"left out, not a whole number of {dtype} ({itemsize} bytes each): {len(odd)} rows: {some(odd)}" if odd else ""
    if not rows:
        raise MeasurementError(note or "no row has a size and a time above 0")
    return tuple(rows), note


def _still(progress: Callable[[int], None], row: int) -> Progress:
    """Messages of a run as a call that says the same row again: a long run can be cancelled."""
    return lambda messages, of: progress(row)


def _pipeline_note(chosen: Algorithm, rows: Sequence[Row]) -> str:
    if not chosen.pipelined:
        return ""
    most = slices_for(chosen, max(row.size_bytes for row in rows))
    why = ", as NCCL's ring does this collective" if chosen.name == "chain" else ""
    return f"{chosen.name} in slices of {format_bytes(SLICE_BYTES)}, at most {most}{why}"


def _nic_note(runner: Runner, chosen: Algorithm, rows: Sequence[Row]) -> str:
    """Why a prediction over several servers is slow, where it is: it leaves a server by few of its NICs."""
    result = simulate(runner.topology, [runner.launch(chosen, rows[0].size_bytes)], runner.model, runner.engine, traced=False)
    nics = {node.name: node.server for node in runner.topology.nodes if node.kind == "nic"}
    loaded = {end for load in result.link_loads() for end in (load.src, load.dst) if end in nics}
    used, there = (Counter(nics[name] for name in names) for names in (loaded, nics))
    server, most = min(((s, used[s]) for s in used), key=lambda pair: pair[1] - there[pair[0]], default=(None, 0))
    if len(used) < 2 or most == there[server]:
        return ""
    rails = any(a.name == "multi-ring" for a in catalogue(chosen.collective))
    return f"leaves a server by {most} of its {there[server]} NICs; NCCL drives all of them{', as multi-ring does' if rails else ''}"


def _mape(rows: Sequence[Row]) -> float:
    return 100 * fsum(abs(row.error) for row in rows) / len(rows)
