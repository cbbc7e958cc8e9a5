"""What a library beside NCCL would choose: a record for JSON and lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topologies.units import format_bandwidth, format_bytes, format_time
from views.terminal import table

if TYPE_CHECKING:
    from prediction.rules.call import Call, Chosen, Row
    from views.terminal import Part

RUNNERS_UP = 2


def rule_record(chosen: Chosen, topology: str) -> dict[str, Any]:
    """The keys of NCCL's choice; null is what the library does not compute or does not have. ``schedule``: the algorithm here that
    does the same, null where there is none (``missing`` says why)."""
    call = chosen.call
    ranking = [_row_record(row, call) for row in chosen.ranking]
    return {
        "topology": topology, "nranks": call.ranks, "nodes": call.nodes, "library": chosen.library, "version": chosen.version,
        "collective": call.collective, "size_bytes": call.nbytes, "op": call.op, "dtype": call.dtype,
        "choice": ranking[0], "ranking": ranking, "fallback": chosen.fallback, "rule": chosen.rule, "notes": list(chosen.notes),
        "off": [{"algorithm": algorithm, "protocol": protocol, "reason": reason} for (algorithm, protocol), reason in chosen.off.items()],
        "variables_elsewhere": list(chosen.elsewhere),
    }  # fmt: skip


def _row_record(row: Row, call: Call) -> dict[str, Any]:
    missing = row.missing(call)
    return {
        "algorithm": row.algorithm, "protocol": row.protocol, "channels": row.channels, "time_s": row.time_s,
        "latency_s": row.latency_s, "bandwidth_Bps": row.bandwidth_Bps, "called": row.called, "options": dict(row.options),
        "schedule": None if missing else row.schedule, "missing": missing,
    }  # fmt: skip


def rule_lines(chosen: Chosen, topology: str) -> list[Part]:
    """The choice, the rule behind it, runners-up where the library compares times, and what the answer leaves out."""
    call, best = chosen.call, chosen.choice
    protocol = f", protocol {best.protocol}," if best.protocol else ""
    asked = f"{call.collective} of {format_bytes(call.nbytes)} over {call.ranks} ranks on {topology}"
    time = f": {format_time(best.time_s)} by its model" if best.time_s is not None else ""
    version = "" if chosen.version == "any" else f" {chosen.version}"
    lines: list[Part] = [f"{chosen.library}{version} takes {best.algorithm} ({best.called}){protocol} for {asked}{time}"]
    lines.append(f"  because: {chosen.rule}")
    if best.options:
        lines.append(f"  with {', '.join(f'{name} {value}' for name, value in best.options.items())}")
    if missing := best.missing(call):
        lines.append(f"  not simulated here: {missing}")
    if best.time_s is not None:
        lines.append(_ranking(chosen))
    if chosen.fallback:
        lines.append("the variables leave nothing; this version falls back to the ring")
    lines += [f"no {algorithm}, {protocol}: {reason}" for (algorithm, protocol), reason in chosen.off.items()]
    lines += [f"note: {note}" for note in chosen.notes]
    if chosen.elsewhere:
        lines.append(f"without effect on the choice here: {', '.join(chosen.elsewhere)}")
    return lines


def _ranking(chosen: Chosen) -> Part:
    made = table("", "algorithm", "protocol", ">time", ">latency", ">bandwidth", ">slower")
    best = chosen.choice.time_s or 0.0
    for place, row in enumerate(chosen.ranking[: 1 + RUNNERS_UP]):
        behind = f"{(row.time_s or 0.0) / best - 1:.1%}" if place else ""
        cells = format_time(row.time_s or 0.0), format_time(row.latency_s or 0.0), format_bandwidth(row.bandwidth_Bps or 0.0), behind
        made.add_row("  runner-up" if place else "  choice", row.algorithm, row.protocol or "", *cells)
    return made
