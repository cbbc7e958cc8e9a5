"""What a library's calls take, beside a log, and what a calibration found: records for JSON, CSV, and lines for a terminal."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topologies.units import format_bandwidth, format_bytes, format_time
from views.terminal import rate, table

if TYPE_CHECKING:
    from prediction.library.asked import Asked
    from prediction.library.calibration import Calibration, Fit
    from prediction.library.logs import Held, LibraryReport
    from prediction.library.predict import Row
    from topologies.graph import Topology
    from views.terminal import Part

BANDS = {"S": "up to 64 KiB", "M": "up to 16 MiB", "L": "above", "all": "all"}


def asked_record(asked: Asked) -> dict[str, Any]:
    return {
        "library": asked.library, "version": asked.version, "launch": asked.launch, "environment": dict(asked.environment),
        "dtype": asked.dtype,
    }  # fmt: skip


def library_record(topology: Topology, collective: str, asked: Asked, rows: Sequence[Row], seed: int) -> dict[str, Any]:
    """A row a size, SI units; four of five measurements lie from ``low_s`` to ``high_s``."""
    head = {"collective": collective, "topology": topology.name, "nranks": len(topology.gpus), **asked_record(asked), "seed": seed}
    return {**head, "rows": [asdict(row) for row in rows]}


def library_csv(rows: Sequence[Row]) -> str:
    """One line a size."""
    out = io.StringIO()
    made = csv.DictWriter(out, list(asdict(rows[0])), lineterminator="\n")
    made.writeheader()
    made.writerows(asdict(row) for row in rows)
    return out.getvalue().rstrip("\n")


def library_lines(topology: Topology, collective: str, asked: Asked, rows: Sequence[Row], idle: Sequence[str] = ()) -> list[Part]:
    """A line a size; ``idle``: variables that change nothing here."""
    made = table(">size", ">time", ">four of five", ">algbw", ">busbw", "algorithm", "protocol", ">channels")
    for row in rows:
        between = f"{format_time(row.low_s)} to {format_time(row.high_s)}"
        cells = format_time(row.time_s), between, format_bandwidth(row.algbw_Bps), rate(row.busbw_Bps)
        made.add_row(format_bytes(row.size_bytes), *cells, row.algorithm, row.protocol, str(row.channels))
    head = f"{collective} on {topology.name}, {len(topology.gpus)} ranks, {asked.dtype}: {_by(asked)}"
    large = [format_bytes(row.size_bytes) for row in rows if not row.simulated]
    note = f"by the closed form, with more sends than are simulated: {', '.join(large)}"
    notes = [note] if large else []
    if idle:
        notes.append(f"without effect on the prediction: {', '.join(idle)}")
    return [head, made, *notes]


def held_record(report: LibraryReport, seed: int) -> dict[str, Any]:
    """All rows of a log, then the same in bands and in parts; ``mape``, ``median`` and ``inside`` in percent."""
    rows = [
        {
            "collective": row.collective, "in_place": row.in_place, "size_bytes": row.size_bytes, "measured_s": row.measured_s,
            "predicted_s": row.predicted.time_s, "low_s": row.predicted.low_s, "high_s": row.predicted.high_s, "error": row.error,
            "algorithm": row.predicted.algorithm, "protocol": row.predicted.protocol, "channels": row.predicted.channels,
        }
        for row in report.rows
    ]  # fmt: skip
    parts = [
        {
            "collective": part.collective, "nranks": part.nranks, "topology": part.topology, "gpu": part.gpu, "rows": len(part.rows),
            **asked_record(part.asked), "notes": list(part.notes),
        }
        for part in report.compared
    ]  # fmt: skip
    bands = {name: asdict(band) for name, band in report.bands().items()}
    return {
        "mape": bands["all"]["mape"], "bands": bands, "rows": rows, "tables": parts, "skipped": list(report.skipped),
        "notes": list(report.notes), "seed": seed,
    }  # fmt: skip


def held_lines(report: LibraryReport) -> list[Part]:
    """Errors by band, then predicted beside measured."""
    made = table("  sizes", ">rows", ">mean", ">median", ">in the interval")
    for name, band in report.bands().items():
        made.add_row(f"  {BANDS[name]}", str(band.rows), f"{band.mape:.1f} %", f"{band.median:.1f} %", f"{band.inside:.0f} %")
    total = report.bands()["all"]
    lines: list[Part] = [f"mean absolute error {total.mape:.1f} % over {total.rows} rows; nothing is fitted to the log", made]
    for part in report.compared:
        data = f"{part.asked.dtype}, {part.gpu}" if part.gpu else part.asked.dtype
        lines += ["", f"{part.collective}, {part.nranks} ranks on {part.topology} ({data}): {_by(part.asked)}"]
        lines += [*(f"  {note}" for note in part.notes), _held(part)]
    if report.skipped or report.notes:
        lines.append("")
    lines += [f"left out: {reason}" for reason in report.skipped]
    return [*lines, *(f"note: {note}" for note in report.notes)]


def _held(part: Held) -> Part:
    both = len({row.in_place for row in part.rows}) > 1
    made = table(">size", ">predicted", ">measured", ">error", *(("",) if both else ()), "algorithm", "protocol")
    for row in part.rows:
        where = (("in place" if row.in_place else ""),) if both else ()
        cells = format_time(row.predicted.time_s), format_time(row.measured_s), f"{100 * row.error:+.1f} %"
        made.add_row(f"  {format_bytes(row.size_bytes)}", *cells, *where, row.predicted.algorithm, row.predicted.protocol)
    return made


def calibration_record(topology: Topology, asked: Asked, found: Calibration, notes: Sequence[str], file: str | None) -> dict[str, Any]:
    """``moved``: constants in SI units, ``low`` to ``high`` holds four of five; ``bands``: mean errors in percent before and after;
    ``refused``: why nothing moved, or null; ``file``: what was written."""
    return {
        "topology": topology.name, "nranks": len(topology.gpus), **asked_record(asked), "refused": found.refused,
        "bands": {name: asdict(fit) for name, fit in found.bands.items()},
        "moved": {name: asdict(moved) for name, moved in found.moved.items()}, "undetermined": dict(found.undetermined),
        "constants": asdict(found.constants), "notes": [*notes, *found.notes], "file": file,
    }  # fmt: skip


def calibration_lines(topology: Topology, asked: Asked, found: Calibration, notes: Sequence[str], file: str | None) -> list[Part]:
    """The verdict, the errors, what moved, and what did not and why."""
    total = found.bands["all"]
    verdict = f"refused: {found.refused}" if found.refused else f"mean absolute error {total.before:.1f} % -> {total.after:.1f} %"
    lines: list[Part] = [f"{topology.name}, {len(topology.gpus)} ranks, {_by(asked)}: {verdict}", _fits(found.bands), ""]
    made = table("  constant", ">before", ">after" if not found.refused else ">would be", ">four of five")
    for name, moved in found.moved.items():
        made.add_row(f"  {name}", *(_value(name, value) for value in (moved.before, moved.after)), _span(name, moved.low, moved.high))
    lines.append(made)
    stay: dict[str, list[str]] = {}
    for name, reason in found.undetermined.items():
        stay.setdefault(reason, []).append(name)
    lines += [f"  not told: {', '.join(names)}: {reason}" for reason, names in stay.items()]
    lines += [f"note: {note}" for note in (*notes, *found.notes)]
    if file:
        lines.append(f"written: {file}; give it as --topology")
    return lines


def _fits(bands: Mapping[str, Fit]) -> Part:
    made = table("  sizes", ">rows", ">before", ">after")
    for name, fit in bands.items():
        made.add_row(f"  {BANDS[name]}", str(fit.rows), f"{fit.before:.1f} %", f"{fit.after:.1f} %")
    return made


def _span(name: str, low: float, high: float) -> str:
    return f"{_value(name, low)} to {_value(name, high)}"


def _value(name: str, value: float) -> str:
    """Parts as they are, the rest by their size: seconds are small, bandwidths large."""
    if name in ("nvlink", "nvls", "nic"):
        return f"{value:.3f}"
    return format_time(value) if value < 1 else format_bandwidth(value)


def _by(asked: Asked) -> str:
    told = "".join(f", {name}={value}" for name, value in asked.environment.items())
    return f"{asked.library.upper()} {asked.version}, {asked.launch}{told}"
