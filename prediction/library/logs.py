"""Measured tables x a machine x what is asked of a library -> predicted beside measured, or the points of a calibration."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, median

from prediction.compare import nranks_of, runs_of, where_of
from prediction.fit import Fitted, fitted
from prediction.library.asked import Asked, LaunchMode
from prediction.library.calibration import BANDS, Measured, band_of
from prediction.library.predict import Row, predict_library
from prediction.library.sites import sites_of
from prediction.limits import check_sends, machine_of
from prediction.tables import Table
from sim.times import Progress
from topologies.errors import MeasurementError, RingscopeError
from topologies.graph import Topology

_WORDS = {"float": "float32", "half": "float16", "double": "float64", "char": "int8", "int": "int32"}
_FP8 = {"f8e4m3": "float8_e4m3", "fp8_e4m3": "float8_e4m3", "f8e5m2": "float8_e5m2", "fp8_e5m2": "float8_e5m2"}
_SENDS = {
    "all-reduce": "ring", "all-gather": "ring", "reduce-scatter": "ring", "broadcast": "chain", "reduce": "chain",
    "all-to-all": "direct", "sendrecv": "shift", "gather": "flat", "scatter": "flat",
}  # fmt: skip
"""Algorithms that have about as many sends as the library's."""


@dataclass(frozen=True, slots=True)
class HeldRow:
    """One measurement and what the library should take; ``error`` is predicted / measured - 1."""

    collective: str
    in_place: bool
    size_bytes: int
    measured_s: float
    predicted: Row

    @property
    def error(self) -> float:
        return self.predicted.time_s / self.measured_s - 1


@dataclass(frozen=True, slots=True)
class Held:
    """One run of a log (its tables of one collective, dtype and number of ranks) on one machine."""

    collective: str
    nranks: int
    gpu: str | None
    topology: str
    asked: Asked
    notes: tuple[str, ...]
    rows: tuple[HeldRow, ...]


@dataclass(frozen=True, slots=True)
class Band:
    """Errors of time in percent: mean and median of their amounts, and how many of the measurements lie in the interval."""

    rows: int
    mape: float
    median: float
    inside: float


@dataclass(frozen=True, slots=True)
class LibraryReport:
    """All of a log: what was compared, and what was not and why."""

    compared: tuple[Held, ...]
    skipped: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def rows(self) -> tuple[HeldRow, ...]:
        return tuple(row for part in self.compared for row in part.rows)

    def bands(self) -> dict[str, Band]:
        """By band, and "all"."""
        found: dict[str, list[HeldRow]] = {}
        for row in self.rows:
            for name in (band_of(row.size_bytes), "all"):
                found.setdefault(name, []).append(row)
        return {name: _band(found[name]) for name in (*(name for name, _ in BANDS), "all") if name in found}


def hold(
    tables: Sequence[Table],
    spec: str,
    params: Mapping[str, str],
    asked: Asked,
    launch: str | None = None,
    progress: Progress | None = None,
    faults: Sequence[str] = (),
    seed: int = 0,
) -> LibraryReport:
    """Every row of ``tables`` beside the library's time on the topology ``spec`` with ``params`` (see ``prediction.fit``). ``launch``:
    what a person said; otherwise what the log says counts. A table that cannot be predicted is skipped with its reason. Raises
    RingscopeError when none is left."""
    compared: list[Held] = []
    skipped: list[str] = []
    errors: list[RingscopeError] = []
    for run in runs_of(tables):
        first = run[0]
        try:
            fit = machine(run, spec, params, faults, seed)
            call, said = as_run(first, asked, launch)
            rows = [row for table in run for row in table.rows if row.size_bytes > 0 and 0 < row.time_s < math.inf]
            sizes = sorted({row.size_bytes for row in rows})
            if not sizes:
                raise MeasurementError("no row has a size and a time above 0")
            name = _collective(first)
            check_calls(name, fit.topology)
            at = {row.size_bytes: row for row in predict_library(fit.topology, name, sizes, call, progress=progress)}
        except RingscopeError as error:
            skipped.append(f"{where_of(run)}: {error}")
            errors.append(error)
        else:
            notes = tuple(note for note in (fit.note, said) if note)
            held = tuple(HeldRow(name, row.in_place, row.size_bytes, row.time_s, at[row.size_bytes]) for row in rows)
            compared.append(Held(name, len(fit.topology.gpus), first.gpu, fit.topology.name, call, notes, held))
    if not compared:
        raise errors[0] if len(errors) == 1 else MeasurementError(f"no table can be compared: {'; '.join(skipped[:3])}")
    return LibraryReport(tuple(compared), tuple(skipped), tuple(dict.fromkeys(note for table in tables for note in table.notes)))


@dataclass(frozen=True, slots=True)
class Points:
    """What a calibration takes from logs of one machine, and what it could not take."""

    fit: Fitted
    asked: Asked
    measured: tuple[Measured, ...]
    notes: tuple[str, ...]


def points(tables: Sequence[Table], spec: str, params: Mapping[str, str], asked: Asked, launch: str | None = None) -> Points:
    """All rows of all ``tables``. Raises RingscopeError: logs of several machines or launch modes, a collective that is not known."""
    runs = runs_of(tables)
    kinds = sorted({nranks_of(run[0]) for run in runs})
    if len(kinds) > 1:
        raise MeasurementError(f"the logs are of {', '.join(map(str, kinds))} ranks; calibrate with the logs of one machine")
    fit = machine(runs[0], spec, params)
    calls = [as_run(run[0], asked, launch) for run in runs]
    modes = list(dict.fromkeys(call.launch for call, _ in calls))
    if len(modes) > 1:
        raise MeasurementError(f"the logs are of launch modes {', '.join(modes)}, which have floors of their own; give one, or --launch")
    measured = [
        Measured(_collective(table), row.size_bytes, row.time_s)
        for table in tables for row in table.rows if row.size_bytes > 0 and 0 < row.time_s < math.inf
    ]  # fmt: skip
    if not measured:
        raise MeasurementError("no row of the logs has a size and a time above 0")
    for name in {point.collective for point in measured}:
        check_calls(name, fit.topology)
    said = (fit.note, *(note for _, note in calls), *(note for table in tables for note in table.notes))
    return Points(fit, calls[0][0], tuple(measured), tuple(dict.fromkeys(note for note in said if note)))


def told_two(spec: str, params: Mapping[str, str], asked: Asked, collective: str, sizes: Sequence[int], times: Sequence[float]) -> Points:
    """Two sizes [B] and their times [s], told without a log. Raises RingscopeError."""
    if len(sizes) != 2:
        raise MeasurementError(f"two times are of two sizes, not {len(sizes)}; write them as 8B,1GiB")
    topology = machine_of(spec, params)
    check_calls(collective, topology)
    measured = tuple(Measured(collective, size, time) for size, time in zip(sizes, times, strict=True))
    return Points(Fitted(topology, "", params), asked, measured, ())


def machine(run: Sequence[Table], spec: str, params: Mapping[str, str], faults: Sequence[str] = (), seed: int = 0) -> Fitted:
    """The topology with as many GPUs as the log has ranks."""
    return fitted(spec, params, nranks_of(run[0]), run[0].nservers, faults=faults, seed=seed)


def as_run(table: Table, asked: Asked, launch: str | None) -> tuple[Asked, str]:
    """Data type, operation and, unless a person said it, launch mode from the log; and a note on the latter."""
    dtype = _FP8.get(table.dtype) or _WORDS.get(table.dtype, table.dtype)
    op = table.op if table.op in ("sum", "prod", "min", "max", "avg") else "sum"
    mode = None if launch else _launch(table)
    note = f"the log says who launches: {mode}" if mode and mode != asked.launch else ""
    return replace(asked, dtype=dtype, op=op, launch=mode or asked.launch), note


def check_calls(collective: str, topology: Topology) -> None:
    """Raises ScheduleError for calls with more sends than can be simulated: rings go over every NIC, but an all-reduce of many nodes is
    done by trees."""
    if collective in _SENDS:  # others are refused by whoever predicts
        sites = sites_of(topology)
        rings = len(sites) > 1 and _SENDS[collective] == "ring" and collective != "all-reduce"
        lanes = max(1, len(sites[0].nics)) if rings else 1
        check_sends(collective, _SENDS[collective], len(topology.gpus), channels=lanes, engine="compiled")


def _launch(table: Table) -> LaunchMode | None:
    if table.gpus_per_thread is None and table.threads is None:
        return None
    if (table.threads or 1) > 1:
        return "thread-per-gpu"
    return "one-process" if (table.gpus_per_thread or 1) > 1 else "process-per-gpu"


def _collective(table: Table) -> str:
    if table.collective is None:
        raise MeasurementError(f"the collective is {table.decided_by}")
    return table.collective


def _band(rows: Sequence[HeldRow]) -> Band:
    off = [100 * abs(row.error) for row in rows]
    inside = [row.predicted.low_s <= row.measured_s <= row.predicted.high_s for row in rows]
    return Band(len(rows), fmean(off), median(off), 100 * fmean(inside))
