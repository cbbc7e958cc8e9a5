"""Text of the OSU micro-benchmarks (MPI or XCCL, any buffer, with and without -f) into measured tables."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

from prediction.identify import MAX_RANKS, SIGNATURES, factor
from prediction.log_file import MAX_LINE, MAX_ROWS, Log, some
from prediction.nccl_lines import shown
from prediction.tables import ITEMSIZE, Row, Table
from topologies.errors import MeasurementError, nearest

HEADER = re.compile(r"#\s*OSU\s+(?:MPI|XCCL|NCCL|RCCL)\S*\s+(\S.{0,80}?)\s+Test\b")
TESTS = {
    "Allreduce Latency": "all-reduce",
    "Reduce_scatter Latency": "reduce-scatter",
    "Allgather Latency": "all-gather",
    "All-to-All Personalized Exchange Latency": "all-to-all",
    "Alltoall Latency": "all-to-all",
    "Broadcast Latency": "broadcast",
    "Bcast Latency": "broadcast",
    "Reduce Latency": "reduce",
    "Gather Latency": "gather",
    "Scatter Latency": "scatter",
    "Latency": "sendrecv",
    "Bandwidth": "sendrecv",
}
"""The collective by the name of the test."""
_PER_RANK = ("Allgather", "All-to-All", "Alltoall", "Gather", "Scatter")
"""Here the size column is what one rank gives to, or gets from, one other; elsewhere, also in osu_reduce_scatter, which shares
it out itself, it is the whole vector."""
_DTYPES = {"MPI_CHAR": "char", "MPI_INT": "int", "MPI_FLOAT": "float", "MPI_DOUBLE": "double"}
_TAG = re.compile(r"^\s*(?:\[[0-9]+,[0-9]+\]<std(?:out|err)>\s*:|[0-9]{1,6}:)")  # mpirun --tag-output, srun -l
_RANKS = re.compile(r"(?:^|\s)(?:--?np|-n|--ntasks)(?:\s+|=|)([0-9]{1,9})(?=\s|$)")
_NODES = re.compile(r"\bsrun\b.*?\s(?:-N|--nodes)(?:\s+|=|)([0-9]{1,9})(?=\s|$)")
_PER_NODE = re.compile(r"(?:\s--?ppn(?:\s+|=)|\s--?npernode\s+|\s--ntasks-per-node(?:\s+|=)|\bppr:)([0-9]{1,9})(?=\s|:node|$)")
_SAID = re.compile(r"#\s*(nranks|nnodes)\s*[:=]?\s*([0-9]{1,9})\s*$")
_ROW = re.compile(r"^\s*(-?\d\S*)\s+([-+.]?\d\S*|nan|inf)(?=\s|$)", re.IGNORECASE)  # any digit: full-width ones are named as broken
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.[0-9]{0,12})?(?:e[+-]?[0-9]{1,2})?", re.IGNORECASE)


@dataclass(slots=True)
class _Run:
    """A table so far; filled line by line, hence not frozen."""

    line: int
    test: str
    nranks: int | None
    nnodes: int | None
    dtype: str | None = None
    rows: list[tuple[int, int, float]] = field(default_factory=list)
    """(line, size as printed, latency in us or bandwidth in MB/s)"""
    empty: int = 0
    broken: list[str] = field(default_factory=list)


def read_osu(log: Log) -> list[Table]:
    """One table for each test and datatype. The number of ranks is that of the command line in the log (mpirun -np 8) or of a
    line ``# nranks 8``; tests whose size is that of one rank need it. Rows that cannot be read are left out and named. Raises
    MeasurementError when no table is left, and beyond 100,000 rows."""
    tables: list[Table] = []
    left_out: list[str] = []
    for run in _runs(log):
        try:
            tables.append(_table(run, log.name))
        except ValueError as error:
            left_out.append(f"line {run.line}: {error}")
    if not tables:
        raise MeasurementError(f"{log.name}: no measured table of OSU to read; left out: {some(left_out)}")
    if left_out:
        tables[0] = replace(tables[0], notes=(f"left out: {some(left_out)}", *tables[0].notes))
    return tables


def _runs(log: Log) -> list[_Run]:
    runs: list[_Run] = []
    count = 0
    said: dict[str, int | None] = {"nranks": None, "nnodes": None}
    for number, text in enumerate(log.lines(), 1):
        if len(text) > MAX_LINE:
            continue
        if count > MAX_ROWS:
            raise MeasurementError(f"{log.name}:{number - 1}: more than {MAX_ROWS} rows and headers; split the log")
        text = _TAG.sub("", text.rstrip(), count=1)
        if found := HEADER.search(text):
            count += 1
            runs.append(_Run(number, found[1], said["nranks"], said["nnodes"]))
        elif found := _SAID.search(text):
            said[found[1]] = int(found[2])
        elif found := _RANKS.search(text) if "osu_" in text or "mpirun" in text or "srun" in text or "mpiexec" in text else None:
            said = _launched(text, int(found[1]))
        elif runs and "Datatype:" in text:
            count += 1
            _datatype(runs, number, text)
        elif runs and (found := _ROW.search(text)):
            count += 1
            _row(runs[-1], number, found[1], found[2])
    return runs


def _launched(text: str, nranks: int) -> dict[str, int | None]:
    nodes, per = _NODES.search(text), _PER_NODE.search(text)
    each = int(per[1]) if per else 0
    return {"nranks": nranks, "nnodes": int(nodes[1]) if nodes else nranks // each if each and nranks % each == 0 else None}


def _datatype(runs: list[_Run], number: int, text: str) -> None:
    """The line that names the datatype; after rows it begins the next table of the same test."""
    name = text.partition("Datatype:")[2].strip().rstrip(".")
    if runs[-1].rows:
        runs.append(_Run(number, runs[-1].test, runs[-1].nranks, runs[-1].nnodes))
    runs[-1].dtype = _DTYPES.get(name, name)


def _row(run: _Run, number: int, size: str, value: str) -> None:
    if re.fullmatch(r"[0-9]{1,18}", size) is None:
        run.broken.append(f"line {number}: size {shown(size)} is not a whole number from 0 to 10^18")
    elif _NUMBER.fullmatch(value) is None or float(value) == 0:
        run.broken.append(f"line {number}: {shown(value)} is not a number above 0")
    elif int(size) == 0:
        run.empty += 1
    else:
        run.rows.append((number, int(size), float(value)))


def _table(run: _Run, name: str) -> Table:
    """Raises ValueError with the reason why a run is no table."""
    collective = TESTS.get(run.test)
    if collective is None:
        raise ValueError(f"the test {shown(run.test)} is not read{nearest(run.test, TESTS)}")
    if not run.rows:
        raise ValueError(run.broken[0].partition(": ")[2] if run.broken else f"{run.test} has no row of a size above 0")
    nranks, nnodes = (2 if collective == "sendrecv" else run.nranks), run.nnodes
    if nranks is not None and not 1 <= nranks <= MAX_RANKS:
        raise ValueError(f"{nranks} ranks; from 1 to {MAX_RANKS} are read")
    per_rank = run.test.startswith(_PER_RANK)
    if per_rank and nranks is None:
        raise ValueError(f"{run.test} prints the bytes of one rank, and the log does not say how many ran; write a line: # nranks 8")
    dtype = run.dtype or ("float" if SIGNATURES[collective].reduces and collective != "sendrecv" else "char")
    if dtype not in ITEMSIZE:
        raise ValueError(f"datatype {shown(dtype)} is not known{nearest(dtype, _DTYPES)}")
    notes = [f"broken rows left out ({len(run.broken)}): {some(run.broken)}"] if run.broken else []
    if run.empty:
        notes.append(f"rows of size 0 left out ({run.empty}): nothing was sent")
    if per_rank:
        notes.append(f"{run.test}: size is that of one rank; {nranks} times as much is the whole vector")
    if run.test == "Bandwidth":
        notes.append("Bandwidth: time is size/bandwidth, the mean over a window of sends at once: no latency is in it")
    return Table(
        source=name,
        line=run.line,
        collective=collective,
        decided_by=f"the header: OSU {run.test} Test",
        nranks=nranks,
        nservers=nnodes if nnodes and nranks and nnodes <= nranks else None,
        gpu=None,
        dtype=dtype,
        op="sum" if SIGNATURES[collective].reduces and collective != "sendrecv" else None,
        threads=None,
        gpus_per_thread=None,
        processes=nranks,
        rows=_rows(run, collective, nranks, per_rank, ITEMSIZE[dtype]),
        notes=tuple(notes),
    )


def _rows(run: _Run, collective: str, nranks: int | None, per_rank: bool, itemsize: int) -> tuple[Row, ...]:
    signature = SIGNATURES[collective]
    known = nranks is not None or signature.factor == "1"
    times = factor(signature.factor, nranks or 1) if known else float("nan")
    root = 0 if signature.rooted else None
    rows = []
    for line, printed, value in run.rows:
        size = printed * nranks if per_rank and nranks else printed
        time = printed / (value * 1e6) if run.test == "Bandwidth" else value * 1e-6
        count = size // itemsize // (nranks or 1 if signature.per_rank else 1)
        rows.append(Row(size, count, False, time, size / time, size / time * times, root, None, line))
    return tuple(rows)
