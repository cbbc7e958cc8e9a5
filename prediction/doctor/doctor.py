"""A log, and a machine if one is named -> what is to be said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

from prediction.doctor.diagnosis import Diagnosis, Finding
from prediction.doctor.examine import examine
from prediction.doctor.flags import flags
from prediction.doctor.header import guess, launch_of, other_gpus, told, version_of
from prediction.fit import fitted
from prediction.library.asked import Asked, LaunchMode, Library
from prediction.limits import machine_of
from prediction.log_file import file_log
from prediction.nccl.graphs import Cpu
from prediction.nccl.settings import settings
from prediction.nccl.version import version as known
from prediction.readers import read_log
from prediction.tables import ITEMSIZE, Table
from sim.times import Progress
from topologies import make
from topologies.errors import RingscopeError
from topologies.graph import Topology

_DTYPE = {1: "int8", 2: "float16", 4: "float32", 8: "float64"}
_DOUBT = 1.5
"""How much wider the error at small sizes is where nothing says who launches."""
_ALONE_CHECK = "make MPI=1 MPI_HOME=...; mpirun must start one job of all ranks: '# Using devices' lists every rank once"


def doctor(
    path: str | Path,
    spec: str | None = None,
    params: Mapping[str, str] | None = None,
    *,
    version: str | None = None,
    launch: str | None = None,
    environment: Mapping[str, str] | None = None,
    library: str | None = None,
    cpu: Cpu | None = None,
    progress: Progress | None = None,
) -> Diagnosis:
    """``spec`` and ``params`` of the topology; without it the machine that the header describes, if it describes one. What is not given
    is taken from the log. Of several collectives the one that is worst off is told of.

    Raises RingscopeError: a log that cannot be read, a topology or a word that is not known."""
    settings(environment or {}, known(version or "2.21"))  # a word that is wrong is told before anything is run
    runs = _runs(read_log(path))
    said = told(file_log(Path(path)))
    variables = {**said.variables, **(environment or {})}
    seen = []
    for run in runs:
        machine, doubts = _machine(run[0], spec, params or {}, runs)
        if isinstance(machine, Diagnosis):
            seen.append(replace(machine, flags=flags(run)))
            continue
        amd = any(link.kind.startswith("xgmi") and not link.kind.startswith("xgmi-cpu") for link in machine.links)
        release, note = (version, "") if version else version_of(said.version, any("nvlink5" in link.kind for link in machine.links))
        who = launch or launch_of(run[0])
        asked = Asked(
            library=cast("Library", library or ("rccl" if amd else "nccl")), version=release, environment=variables,
            launch=cast("LaunchMode", who or "process-per-gpu"),
            dtype=_DTYPE[ITEMSIZE[run[0].dtype]], op=run[0].op or "sum", cpu=cpu,
        )  # fmt: skip
        found = examine(run, machine, asked, doubt=1.0 if who else _DOUBT, progress=progress, search=not doubts)
        notes = [*found.notes, note, "" if who else "the log does not say who launches: process-per-gpu is taken"]
        found = replace(found, notes=tuple(x for x in notes if x), flags=(*other_gpus(run[0], machine), *flags(run)))
        if found.verdict == "healthy" and any(row.wrong for table in run for row in table.rows):
            found = replace(found, verdict="unknown", reason="times are as expected, but results are wrong: see the flag")
        seen.append(_unsure(found, doubts) if doubts else found)
    worst = min(seen, key=_urgency)
    others = [f"{x.collective}: {x.verdict}" + (f", {x.ratio:.2f} of expected" if x.ratio else "") for x in seen if x is not worst]
    return replace(worst, notes=(*worst.notes, *others))


def _machine(
    first: Table, spec: str | None, params: Mapping[str, str], runs: Sequence[Sequence[Table]]
) -> tuple[Topology | Diagnosis, str]:
    """The machine and what of it is only usual; or what can be said without one."""
    alone = _alone(first, runs)
    if alone:
        return alone, ""
    about = Diagnosis("unknown", collective=first.collective, nranks=first.nranks)
    if spec is not None:
        if first.nranks is None:
            return replace(about, reason="the log does not say how many ranks ran, and its numbers leave it open"), ""
        servers = _servers(spec, params)
        if "nodes" in params and servers > 1 and first.nservers == 1:
            evidence = f"the machine was named with {servers} servers, but the log lists {first.nranks} ranks on one host"
            return _without_mpi(first, evidence, 0.6), ""
        return fitted(spec, params, first.nranks, first.nservers).topology, ""
    usual = guess(first)
    if isinstance(usual, str):
        return replace(about, reason=usual), ""
    try:
        return make("custom", usual.params), usual.open
    except RingscopeError as error:
        return replace(about, reason=f"the machine of the header cannot be built ({error}); give --topology"), ""


def _servers(spec: str, params: Mapping[str, str]) -> int:
    """Of the machine as it was named; 0 where it cannot be built."""
    try:
        return len(machine_of(spec, params).groups.get("servers", ()))
    except RingscopeError:
        return 0


def _alone(first: Table, runs: Sequence[Sequence[Table]]) -> Diagnosis | None:
    """A test built without MPI: every process measures by itself."""
    tables = [table for run in runs for table in run]
    if all(table.nranks == 1 for table in tables):
        return _without_mpi(first, f"{len(tables)} tables of 1 rank each: every process measured its own GPU alone")
    if any(note.startswith("a rank is listed twice") for table in tables for note in table.notes):
        return _without_mpi(first, "a rank is listed twice: every process measured its own GPUs alone, and their rows are mixed")
    return None


def _without_mpi(first: Table, evidence: str, confidence: float = 0.9) -> Diagnosis:
    cause = Finding("built-without-mpi", confidence, evidence, _ALONE_CHECK)
    return Diagnosis("low", causes=(cause,), other=1 - confidence, collective=first.collective, nranks=first.nranks)


def _unsure(found: Diagnosis, doubts: str) -> Diagnosis:
    """On a machine that is only usual, a fit says that the result is as usual; a misfit says nothing."""
    note = f"the log does not say {doubts}: what is usual is taken ({found.machine})"
    if found.verdict == "healthy" or not found.ratio:
        return replace(found, notes=(*found.notes, note))
    reason = f"{found.ratio:.2f} of what {found.machine} should give, but the log does not say {doubts}; give --topology"
    return replace(found, verdict="unknown", reason=reason, causes=(), alike=(), other=None)


def _runs(tables: Sequence[Table]) -> list[list[Table]]:
    """Tables that differ in size only belong together."""
    runs: dict[tuple[object, ...], list[Table]] = {}
    for table in tables:
        key = table.collective, table.nranks, table.nservers, table.dtype, table.op, table.threads, table.gpus_per_thread
        runs.setdefault(key, []).append(table)
    return list(runs.values())


def _urgency(found: Diagnosis) -> tuple[int, float, int]:
    """Low before high before healthy before unknown; then how far off, then how many sizes."""
    place = ("low", "high", "healthy", "unknown").index(found.verdict)
    off = max((abs(band.deviation) for band in found.bands), default=0.0)
    return place, -off if found.verdict != "healthy" else 0.0, -len(found.points)
