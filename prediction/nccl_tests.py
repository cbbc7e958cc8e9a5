"""Text of nccl-tests and rccl-tests, of any age and with anything around it, into measured tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from statistics import median
from typing import Literal

from prediction.identify import SIGNATURES, Verdict, agrees, factor, gather_evidence, identify
from prediction.log_file import MAX_LINE, MAX_ROWS, some, text_log
from prediction.nccl_lines import COLUMNS, COMMAND, INFO_RANKS, LAUNCH, START, average, header, is_footer, row, shown
from prediction.tables import Line, Printed, Row, Table
from topologies.errors import MeasurementError

_LOOKED_FOR = 'rows such as "1048576  262144  float  sum  -1  61.2  17.13  29.98  0"'


@dataclass(slots=True)
class Run:
    """What has been read of one run so far; filled line by line, hence not frozen."""

    line: int = 0
    started: str | None = None
    commands: list[tuple[int, str]] = field(default_factory=list)
    columns: list[str] | None = None
    launch: tuple[int, int] | None = None
    ranks: dict[str, set[int]] = field(default_factory=dict)
    again: int = 0
    hosts: set[str] = field(default_factory=set)
    models: set[str] = field(default_factory=set)
    info_ranks: set[int] = field(default_factory=set)
    lines: list[Line] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)
    broken: list[str] = field(default_factory=list)
    average: Printed | None = None
    closed: bool = False
    word: Literal["line", "result"] = "line"

    @property
    def has_rows(self) -> bool:
        return bool(self.lines or self.empty or self.broken)

    def ends_before(self, found: re.Match[str]) -> bool:
        """A header line begins the next run: after rows, after column names, or when it says again what was said."""
        known = {START: self.started or self.launch, LAUNCH: self.launch}
        return self.has_rows or self.columns is not None or known.get(found.re) is not None

    def read_header(self, found: re.Match[str]) -> None:
        if found.re is START:
            self.started = found[1]
        elif found.re is LAUNCH:
            self.launch = (int(found[1]), int(found[2]))
        elif found.re is COLUMNS:
            # The versions of 2016 to 2018 head the first two columns "bytes N" and count milliseconds.
            self.columns = found[1].split()
        else:
            rank, group, host, model = found.groups()
            members = self.ranks.setdefault(group or "", set())
            self.again += int(rank) in members
            members.add(int(rank))
            self.hosts.add(host)
            if model.strip():
                self.models.add(model.strip())

    def read_row(self, found: Line | str) -> None:
        if isinstance(found, str):
            self.broken.append(found)
        elif found.size == 0:
            self.empty.append(found.number)
        else:
            self.lines.append(found)


def read_text(text: str, name: str) -> list[Table]:
    """Tables of a text, in its order; see ``read_lines``."""
    return read_lines(text_log(text, name).lines(), name)


def read_lines(lines: Iterable[str], name: str) -> list[Table]:
    """Tables of a log, in its order: sizes in bytes, times in s, bandwidths in B/s. ``name`` stands in the messages and may
    name the test (``all_reduce.txt``). Rows of size 0 and rows that cannot be read are left out and named in ``Table.notes``.
    Raises MeasurementError when no row is left and beyond 100,000 rows."""
    tables: list[Table] = []
    left_out: list[str] = []
    first: list[str] = []
    for run in _runs(lines, name, first):
        if run.lines:
            tables += run_tables(run, name)
        elif run.broken or run.empty:
            left_out += run.broken + [f"line {number}: a row of size 0" for number in run.empty]
        elif run.line:
            left_out.append(f"line {run.line}: the header of a run without rows")
    if not tables:
        found = some(left_out + first) or "an empty text"
        raise MeasurementError(f"{name}: no measured row to read; looked for {_LOOKED_FOR}; found {found}")
    return _with_notes(tables, [f"left out: {some(left_out)}"] if left_out else [])


def _runs(lines: Iterable[str], name: str, first: list[str]) -> Iterator[Run]:
    """Cut a log into runs. ``first`` receives a description of its first line that is not blank."""
    run, count = Run(), 0
    for number, text in enumerate(lines, 1):
        text = text.rstrip()
        if text and not first:
            hint = " (null bytes: a binary file, or UTF-16 to be saved as UTF-8)" if "\0" in text else ""
            hint += " (lines of NCCL INFO say how NCCL is set up and measure nothing)" if "NCCL INFO" in text else ""
            first.append(f"line {number}: {shown(text.strip())}{hint}")
        if len(text) > MAX_LINE:
            continue  # No row or header is that long, and patterns stay cheap.
        if is_footer(text):
            run.closed, run.average = run.has_rows or run.columns is not None, average(text) or run.average
            continue
        found = header(text)
        command = None if found or "_perf" not in text else COMMAND.search(text)
        measured = None if found or command else row(number, text, None if run.closed else run.columns)
        if (found and run.ends_before(found)) or (command and run.has_rows) or (run.closed and (found or command or measured)):
            yield run
            run = Run()
        if found:
            run.line = run.line or number
            run.read_header(found)
        elif command:
            run.commands.append((number, command[1]))
        elif measured:
            run.line = run.line or number
            run.read_row(measured)
            count += 1
            if count > MAX_ROWS:
                raise MeasurementError(f"{name}:{number}: more than {MAX_ROWS} rows; split the log")
        elif "nranks" in text and "NCCL INFO" in text and (info := INFO_RANKS.search(text)):
            run.info_ranks.add(int(info[1]))
    yield run


def run_tables(run: Run, name: str) -> list[Table]:
    """One table for each data type and operation of the run; the first carries the notes on the whole run."""
    notes = []
    if run.empty:
        notes.append(f"rows of size 0 left out ({len(run.empty)}, {run.word} {some([str(n) for n in run.empty], ', ')}): nothing was sent")
    if run.broken:
        notes.append(f"broken rows left out ({len(run.broken)}): {some(run.broken)}")
    if run.again:
        notes.append("a rank is listed twice: a test built without MPI runs once per process, each on its own ranks")
    if len(run.ranks) > 1:
        notes.append(f"{len(run.ranks)} groups of ranks ran at once: nranks is the size of one")
    groups = [tuple(group) for _, group in groupby(run.lines, key=lambda line: (line.dtype, line.op))]
    return _with_notes([_table(run, group, name, group is groups[0]) for group in groups], notes)


def _table(run: Run, lines: tuple[Line, ...], name: str, is_first: bool) -> Table:
    columns, notes = run.columns or [], []
    unit = _unit(lines)
    if unit == 1e-3:
        notes.append("times are in ms, as versions before 2019 print them")
    listed = max((len(members) for members in run.ranks.values()), default=None)
    hint = listed if listed is not None or len(run.info_ranks) != 1 else min(run.info_ranks)
    mean = None if run.broken or run.empty else run.average
    op_column = run.columns is None or "redop" in columns or "op" in columns
    seen = gather_evidence(lines, unit, op_column, old="#wrong" not in columns, average=mean)
    verdict = identify(seen, hint, run.started, run.commands, name)
    notes += verdict.notes
    if listed is None and verdict.nranks is not None:
        notes.append(f"no list of ranks: {verdict.nranks} ranks from {'NCCL INFO lines' if hint == verdict.nranks else 'the rows'}")
    elif not verdict.header_ok:
        notes.append(f"the header lists {listed} ranks but the rows are of {verdict.nranks}: the list is cut short, servers are not known")
    rows, doubts = _rows(lines, unit, verdict, run.word)
    threads, gpus = run.launch or (None, None)
    per_process = (threads or 0) * (gpus or 0)
    whole = per_process and verdict.nranks is not None and verdict.nranks % per_process == 0
    return Table(
        source=name,
        line=run.line if is_first else lines[0].number,
        collective=verdict.collective,
        decided_by=verdict.decided_by,
        nranks=verdict.nranks,
        nservers=len(run.hosts) if run.hosts and verdict.header_ok else None,
        gpu=" + ".join(sorted(run.models)) or None,
        dtype=lines[0].dtype,
        op=lines[0].op,
        threads=threads,
        gpus_per_thread=gpus,
        processes=verdict.nranks // per_process if whole and verdict.nranks else None,
        rows=rows,
        notes=tuple(notes + doubts),
        word=run.word,
    )


def _unit(lines: Sequence[Line]) -> float:
    """Seconds per unit of the time column: us, or ms in old versions, which shows in algbw against size/time."""
    ratios = [half.algbw.value * 1e3 * half.time.value / line.size for line in lines for half in line.halves if half.algbw.value > 0]
    return 1e-3 if ratios and median(ratios) < 0.03 else 1e-6


def _rows(lines: Sequence[Line], unit: float, verdict: Verdict, word: str) -> tuple[tuple[Row, ...], list[str]]:
    """Rows in SI units, and notes on printed numbers that do not agree with size, time and the collective's factor."""
    name, n = verdict.collective, verdict.nranks
    signature = SIGNATURES.get(name or "")
    times = factor(signature.factor, n or 1) if signature and (n is not None or signature.factor == "1") else None
    less = factor("(n-1)/n", n) if n is not None else 1.0
    rows, reduced, wrong = [], 0, []
    algbw: list[str] = []
    busbw: list[str] = []
    for line in lines:
        for in_place, half in enumerate(line.halves):
            expected = half.size_over_time(line.size, unit)
            if not agrees(half.algbw, expected):
                if agrees(half.algbw, expected, less):
                    reduced += 1
                else:
                    algbw.append(str(line.number))
            if times is not None and not agrees(half.busbw, expected, times):
                busbw.append(str(line.number))
            if half.wrong:
                wrong.append(str(line.number))
            time = half.time.value * unit
            rate = line.size / time
            bus = rate * times if times is not None else half.busbw.value * 1e9
            rows.append(Row(line.size, line.count, bool(in_place), time, rate, bus, line.root, half.wrong, line.number))
    notes = []
    if reduced and name != "hypercube":
        notes.append(f"{reduced} rows print algbw = (n-1)/n of size/time, as versions of about 2019 do: corrected to size/time")
    if algbw:
        notes.append(f"printed algbw is not size/time within rounding in {len(algbw)} rows ({word} {some(algbw, ', ')}): size/time is kept")
    if busbw:
        where = f"{len(busbw)} rows ({word} {some(busbw, ', ')})"
        notes.append(f"printed busbw is not that of {name} on {n} ranks in {where}: computed from size/time")
    if wrong:
        notes.append(f"wrong results (#wrong above 0) in {len(wrong)} rows ({word} {some(wrong, ', ')}): kept, with Row.wrong")
    return tuple(rows), notes


def _with_notes(tables: list[Table], notes: Sequence[str]) -> list[Table]:
    return [replace(tables[0], notes=(*notes, *tables[0].notes)), *tables[1:]]
