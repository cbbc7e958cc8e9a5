"""What the doctor says of a log: a record for JSON and lines for a terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topologies.units import format_bytes, format_time
from views.terminal import table

if TYPE_CHECKING:
    from prediction.doctor.diagnosis import Diagnosis
    from views.terminal import Part


def doctor_record(found: Diagnosis) -> dict[str, Any]:
    """SI units. ``ratio``: measured to expected bandwidth in band ``band``; ``causes`` likeliest first, confidences sum to at most 1."""
    return {
        "verdict": found.verdict, "ratio": found.ratio, "causes": [asdict(cause) for cause in found.causes],
        "reason": found.reason, "band": found.band, "alike": list(found.alike), "other": found.other,
        "bands": [asdict(band) for band in found.bands], "rows": [asdict(point) for point in found.points],
        "topology": found.machine, "collective": found.collective, "nranks": found.nranks, "version": found.version,
        "launch": found.launch, "flags": list(found.flags), "notes": list(found.notes),
    }  # fmt: skip


def doctor_lines(found: Diagnosis) -> list[Part]:
    """The verdict, expected against measured, causes with what to check, and what the log shows by itself."""
    what = f"{found.collective} over {found.nranks} ranks on {found.machine}" if found.machine else f"{found.collective or 'a collective'}"
    told = f", {found.band} band at {found.ratio:.2f} of expected" if found.ratio else ""
    lines: list[Part] = [f"{found.verdict}: {what}{told}" + (f": {found.reason}" if found.reason else "")]
    if found.points:
        made = table("", ">size", ">measured", ">expected", ">80 % from", ">to", ">measured/expected", "algorithm", "protocol")
        for row in found.points:
            times = (format_time(x) for x in (row.measured_s, row.expected_s, row.low_s, row.high_s))
            ratio = f"{row.measured_s / row.expected_s:.2f}"
            made.add_row("", format_bytes(row.size_bytes), *times, ratio, row.algorithm, row.protocol)
        lines.append(made)
    if found.causes:
        lines.append("causes that look like this, likeliest first:")
        for cause in found.causes:
            lines += [f"  {cause.confidence:4.0%}  {cause.id}: {cause.evidence}", f"        check: {cause.check}"]
    elif found.verdict in ("low", "high"):
        lines.append("no known cause fits the shape of this curve")
    if found.other is not None and found.causes:
        lines.append(f"  {found.other:4.0%}  a cause not listed")
    if found.alike:
        lines.append(f"this log does not tell apart: {', '.join(found.alike)}")
    lines += [f"in the log: {flag}" for flag in found.flags]
    return [*lines, *(f"note: {note}" for note in found.notes)]
