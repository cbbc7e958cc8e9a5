"""Steps of a schedule and rows of a comparison -> text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from algorithms.schedule import Op, Schedule
from topologies.units import format_bytes, format_time
from views.holdings import holdings, words
from views.layout import picture
from views.phases import phases, step_slices
from views.terminal import table
from views.text import text

if TYPE_CHECKING:  # one of two commands needs each
    from prediction.compare import Comparison, Report
    from prediction.compare import Row as Measured
    from sim.result import Result
    from views.terminal import Part

MOST_SENDS, MOST_RANKS, MOST_CHUNKS = 16, 32, 16
"""What is shown of a step and of the table; the rest is counted."""


def show_lines(result: Result, steps: Sequence[int]) -> list[Part]:
    """Each step in words with its sends, then who holds what after the last of them."""
    s = result.launches[0].whole
    size = format_bytes(result.launches[0].nbytes)
    lines: list[Part] = [
        f"{s.collective.name} of {size} by {s.name} on {result.topology.name}: {format_time(result.time)}; "
        f"ranks {s.nranks}, chunks {s.nchunks}, steps {s.steps}, sends {len(s)}",
        text("en", f"start.{s.collective.name}", root=s.root),
    ]
    said = ""
    for phase, of in zip(phases(s, picture(s).kind), step_slices(s), strict=True):
        step = int(s.step[of.start])
        if step not in steps:
            continue
        sentence = text("en", phase.sentence)
        ends = format_time(float(result.trace.end[of].max()))
        lines += ["", f"step {step}, done at {ends}. {sentence if sentence != said else text('en', phase.name).capitalize() + ' goes on.'}"]
        lines.append(_sends(result, s, range(of.start, of.stop)))
        said = sentence
    return [*lines, "", *_held(s, max(steps))]


def _sends(result: Result, s: Schedule, sends: range) -> Part:
    made = table("", "", "", ">", ">", "")
    for i in sends[:MOST_SENDS]:
        last = s.chunk[i] + s.count[i] - 1
        chunks = f"chunk {s.chunk[i]}" if s.count[i] == 1 else f"chunks {s.chunk[i]}-{last}"
        into = "" if s.chunk[i] == s.dst_chunk[i] else f" into chunk {s.dst_chunk[i]}"
        how = "added" if s.op[i] == Op.REDUCE else "stored"
        began, ended = (format_time(float(t[i])) for t in (result.trace.start, result.trace.end))
        size = format_bytes(int(result.trace.bytes[i]))
        made.add_row(f"  {_who(s, s.src[i])} -> {_who(s, s.dst[i])}", chunks + into, how, size, began, f"to {ended}")
    if len(sends) > MOST_SENDS:
        made.add_row(f"  {len(sends) - MOST_SENDS} more sends")
    return made


def _who(s: Schedule, place: int) -> str:
    return f"rank {place}" if place < s.nranks else f"switch {place - s.nranks}"


def _held(s: Schedule, after: int) -> list[Part]:
    rows = holdings(s, after)
    shown = min(s.nchunks, MOST_CHUNKS)
    made = table("", *(f"chunk {c}" if c < len(s.weights) else f"slot {c}" for c in range(shown)))
    for place, row in enumerate(rows[:MOST_RANKS]):
        made.add_row(f"  {_who(s, place)}", *(words(cell, chunk, s.nranks) for chunk, cell in enumerate(row[:shown])))
    counts = ("places", len(rows) - MOST_RANKS), ("chunks", s.nchunks - MOST_CHUNKS)
    rest = [f"{more} more {what}" for what, more in counts if more > 0]
    head = f"After step {after}, whose data each holds (all: the sum of every rank's; .: nothing):"
    return [head, made, *([f"  and {' and '.join(rest)}"] if rest else [])]


def comparison_lines(report: Report) -> list[Part]:
    """The error of the whole log, then a table for each part with predicted beside measured."""
    by = report.algorithm.replace(",", ", ")
    lines: list[Part] = [f"mean absolute error {report.mape:.1f} % over {len(report.rows)} rows by {by}; nothing is fitted to the log"]
    for part in report.compared:
        data = f"{part.dtype}, {part.gpu}" if part.gpu else part.dtype
        lines += ["", f"{part.collective} by {part.algorithm}, {part.nranks} ranks on {part.topology} ({data}): {part.mape:.1f} %"]
        lines += [f"  {note}" for note in part.notes]
        lines.append(_rows(part))
    if report.skipped or report.notes:
        lines.append("")
    lines += [f"left out: {reason}" for reason in report.skipped]
    return [*lines, *(f"note: {note}" for note in report.notes)]


def _rows(part: Comparison) -> Part:
    """A line a size; sizes measured more than once a half take more lines."""
    halves: dict[int, tuple[list[Measured], list[Measured]]] = {}
    for row in part.rows:
        halves.setdefault(row.size_bytes, ([], []))[row.in_place].append(row)
    both = any(inside for _, inside in halves.values())
    made = table(">size", ">predicted", ">measured", ">error", *((">in place", ">error") if both else ()))
    for size, (outside, inside) in halves.items():
        for i in range(max(len(outside), len(inside))):
            cells = [*_measured(outside, i), *(_measured(inside, i) if both else ())]
            made.add_row(f"  {format_bytes(size)}", format_time((outside + inside)[0].predicted_s), *cells)
    return made


def _measured(rows: Sequence[Measured], i: int) -> tuple[str, str]:
    return (format_time(rows[i].measured_s), f"{100 * rows[i].error:+.1f} %") if i < len(rows) else ("", "")
