"""Results -> text for a terminal: the answer first, then what it rests on, in aligned tables."""

from __future__ import annotations

import io
import math
import textwrap
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Literal

from topologies.units import format_bandwidth, format_bytes, format_time

if TYPE_CHECKING:  # rich and the rooms of other commands: JSON and a simulation must not wait for them
    from rich.table import Table

    from algorithms.registry import Algorithm
    from prediction.explain import Explained
    from prediction.predict import Candidate, Prediction
    from prediction.verify import Verification
    from sim.bounds import Bounds
    from sim.result import Result
    from topologies.registry import Entry

    Part = str | Table

BUSIEST, MOST_LINKS = 5, 1000
"""Links that are listed; of more than so many in all the terminal says how busy the others are."""
TERMS = {"bandwidth_s": "bandwidth", "latency_s": "latency", "overhead_s": "overhead", "reduce_s": "reducing", "wait_s": "waiting"}

COLUMNS = 8
"""Algorithms side by side on one line of a usual terminal."""


def page(parts: Sequence[Part], color: bool = False) -> str:
    """Parts one below the other; nothing is cut, and lines have no trailing blanks."""
    lines: list[str] = []
    for part in parts:
        if isinstance(part, str):
            lines.append(part)
            continue
        from rich.console import Console

        out = io.StringIO()
        palette: Literal["standard"] | None = "standard" if color else None
        Console(file=out, width=10_000, force_terminal=color, color_system=palette, highlight=False).print(part)
        lines += [line.rstrip() for line in out.getvalue().rstrip("\n").split("\n")]
    return "\n".join(lines)


def table(*columns: str, gap: int = 2) -> Table:
    """No lines, ``gap`` blanks between columns; a column whose name starts with ``>`` is right-aligned."""
    from rich.table import Table
    from rich.text import Text

    made = Table(box=None, pad_edge=False, padding=(0, gap, 0, 0), show_header=any(c.strip(">") for c in columns), header_style="")
    for column in columns:
        justify: Literal["left", "right"] = "right" if column.startswith(">") else "left"
        made.add_column(Text(column.lstrip(">")), justify=justify, no_wrap=True)
    return made


def topology_lines(entries: Sequence[Entry]) -> list[Part]:
    """One line each: the name, then the parameters with their defaults, then what it is."""
    made = table("topology", "parameters: what it is")
    for entry in entries:
        parameters = " ".join(f"{p.name}={p.text}" if p.text else p.name for p in entry.parameters)
        made.add_row(entry.name, f"{parameters}: {entry.summary.replace('``', '')}")
    return [made]


def algorithm_lines(algorithms: Sequence[Algorithm]) -> list[Part]:
    """One line each."""
    made = table("collective", "algorithm", "options", "how it works")
    for a in algorithms:
        options = " ".join(o.name if o.default is None else f"{o.name}={o.default}" for o in a.options)
        made.add_row(a.collective.name, a.name, options, a.summary)
    return [made]


def percent(share: float) -> str:
    """``0.9971`` -> ``99.7 %``."""
    return f"{100 * share:.1f} %"


def rate(bandwidth: float | None) -> str:
    """A bandwidth, or a dash where there is none (barrier)."""
    return "-" if bandwidth is None else format_bandwidth(bandwidth)


def result_lines(told: Explained) -> list[Part]:
    """Time and bandwidths, what limits them, and how far that is from what is possible."""
    result, bound, form = told.result, told.bound, told.closed_form
    launch, time = result.launches[0], result.time
    s = launch.schedule
    assert s is not None
    lines: list[Part] = [
        f"{s.collective.name} of {format_bytes(launch.nbytes)} by {s.name} on {result.topology.name}: {format_time(time)}",
        f"algbw {rate(result.algbw())}, busbw {rate(result.busbw())}",
        "",
    ]
    facts = table("", "", "")
    facts.add_row("limited by", _limit(result), "")
    facts.add_row("lower bound", f"{format_time(bound.lower_bound_s)}, {percent(bound.lower_bound_s / time)} of the time", bound.limiting)
    if form is not None:
        off = time / form.time_s - 1
        same = "the same" if abs(off) < 1e-9 else f"simulated {100 * off:+.2f} %"
        facts.add_row("closed form", f"{format_time(form.time_s)}, {same}", form.text)
    sent = result.bytes_per_rank()
    most, least = format_bytes(int(sent.max())), format_bytes(int(sent.min()))
    facts.add_row("each rank sent", most if most == least else f"{least} to {most}", "")
    facts.add_row("played", f"{len(s):,} sends in {s.steps:,} steps by {s.nranks:,} ranks, {result.engine} engine", "")
    lines += [facts, "", "The time, along the chain of messages that ends last:", _terms(result), "", "Busiest links:", _links(result)]
    return lines


def _limit(result: Result) -> str:
    """The largest term of the critical path, and for bandwidth where."""
    path, time = result.critical_path(), result.time
    key = max(TERMS, key=lambda name: getattr(path, name))
    where = ""
    if key == "bandwidth_s" and path.bandwidth_by:
        first = max(path.bandwidth_by, key=lambda name: path.bandwidth_by[name])
        where = f" of {_place(*first)}" + (f" and {len(path.bandwidth_by) - 1} more" if len(path.bandwidth_by) > 1 else "")
    return f"{TERMS[key]}{where}, {percent(getattr(path, key) / time)} of the time"


def _place(src: str, dst: str) -> str:
    """A link, or the port of a node (one end empty)."""
    if src and dst:
        return f"{src} -> {dst}"
    return f"what {src} can send" if src else f"what {dst} can receive"


def _terms(result: Result) -> Table:
    path, time = result.critical_path(), result.time
    made = table("", ">", ">", "")
    by = sorted(path.bandwidth_by.items(), key=lambda item: -item[1])
    for key, name in TERMS.items():
        seconds = getattr(path, key)
        if seconds > 1e-9 * time:
            note = ", ".join(f"{_place(*ends)} {percent(spent / time)}" for ends, spent in by[:2]) if key == "bandwidth_s" else ""
            more = f", {len(by) - 2} more" if key == "bandwidth_s" and len(by) > 2 else ""
            made.add_row(f"  {name}", format_time(seconds), percent(seconds / time), note + more)
    return made


def _links(result: Result) -> Table:
    made = table("", ">", ">", "")
    loads = result.link_loads()
    for load in loads[:BUSIEST]:
        made.add_row(f"  {load.src} -> {load.dst}", format_bytes(load.bytes), percent(load.busy_s / result.time), "busy")
    if len(loads) > BUSIEST:
        others = loads[BUSIEST:]
        if len(loads) > MOST_LINKS:
            total, middle = sum(load.bytes for load in others), median(load.busy_s for load in others)
            made.add_row(f"  {len(others):,} more", f"{format_bytes(total)} in all", percent(middle / result.time), "busy in the median")
        else:
            made.add_row(f"  {len(others)} more", "", "", "")
    return made


def prediction_lines(p: Prediction) -> list[Part]:
    """What is best from which size on, then a row a size and a column an algorithm; ``*`` marks the best of a row."""
    from rich.text import Text

    from prediction.predict import MAX_SLICES, SLICE_BYTES

    first = min(p.rows, key=lambda row: row.size_bytes).best.algorithm
    always = "" if p.crossovers else " at every size"
    rivals = len(p.rows[0].candidates) > 1
    verdict = f"{first} is best{always}" if rivals else first
    lines: list[Part] = [f"{p.collective.name} on {p.topology.name}, {p.nranks} ranks, {p.dtype}: {verdict}"]
    lines += [f"from about {_about(c.size_bytes)} on {c.to} is best" for c in p.crossovers] + [""]
    names, others = _columns(p)
    made = table(">size", *(">" + name.replace("-", "\n") for name in names), ">best\nbusbw", gap=1)
    for row in p.rows:
        at = {c.algorithm: c for c in row.candidates}
        cells = [Text(_cell(at[name], row.best), style="bold" if name == row.best.algorithm else "") for name in names]
        made.add_row(format_bytes(row.size_bytes), *cells, rate(row.best.busbw_Bps))
    lines += [made, "", "* the best of its size; --csv and --json have all digits"]
    if others:
        lines += textwrap.wrap(f"slower at every size (--algorithm, --csv and --json show them): {', '.join(others)}", 100)
    pipelined = sorted({c.algorithm for row in p.rows for c in row.candidates if c.slices > 1})
    if pipelined:
        lines.append(f"{', '.join(pipelined)}: in slices of {format_bytes(SLICE_BYTES)}, at most {MAX_SLICES}")
    lines += [f"left out: {name}: {reason}" for name, reason in p.skipped.items()]
    return lines


def _columns(p: Prediction) -> tuple[list[str], list[str]]:
    """Algorithms that get a column, at most ``COLUMNS``: those that come nearest to the best at some size; and the others."""
    nearest = {c.algorithm: min(d.time_s / row.best.time_s for row in p.rows for d in row.candidates if d.algorithm == c.algorithm)
               for c in p.rows[0].candidates}  # fmt: skip
    ranked = sorted(nearest, key=lambda name: (nearest[name], name))
    best = {row.best.algorithm for row in p.rows}
    shown = sorted(ranked, key=lambda name: name not in best)[: max(COLUMNS, len(best))]
    return sorted(shown), [name for name in ranked if name not in shown]


def _cell(candidate: Candidate, best: Candidate) -> str:
    return f"{format_time(float(f'{candidate.time_s:.2e}'))}{'*' if candidate is best else ' '}"  # three digits


def _about(nbytes: int) -> str:
    """Three digits in a unit of 1024, so that several read alike."""
    power = max(0, (nbytes.bit_length() - 1) // 10)
    return f"{float(f'{nbytes / 1024**power:.3g}'):g} {('B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB')[power]}"


def verification_lines(v: Verification) -> list[Part]:
    """The verdict, then each check."""
    s = v.schedule
    made = table("", "", "")
    for check in v.checks:
        made.add_row(f"  {'ok' if check.ok else 'WRONG'}", check.name, check.found)
    verdict = "correct" if v.ok else "WRONG"
    return [f"{s.collective.name} by {s.name}, {s.nranks} ranks, {v.sends:,} sends: {verdict} ({v.executor}, seed {v.seed})", made]


def bounds_lines(topology: str, nranks: int, collective: str, nbytes: int, plain: Bounds, in_network: Bounds) -> list[Part]:
    """The bound, its parts, and the bound for switches that reduce where that is lower."""
    made = table("", ">", "")
    made.add_row("  latency", format_time(plain.latency_s), "")
    made.add_row("  bandwidth", format_time(plain.bandwidth_s), "")
    if in_network.lower_bound_s < plain.lower_bound_s:
        made.add_row("  with switches that reduce", format_time(in_network.lower_bound_s), in_network.limiting)
    head = f"{collective} of {format_bytes(nbytes)} over {nranks} ranks on {topology} takes at least {format_time(plain.lower_bound_s)}"
    return [head, f"limited by {plain.limiting}", *_faster(plain), made]


def _faster(bound: Bounds) -> list[str]:
    """One line: what would raise the bound, by how much, and what binds then."""
    from sim.bounds import WIDER

    relief = bound.relief
    if relief is None or not bound.lower_bound_s:
        return []
    latency = bound.latency_s >= bound.bandwidth_s
    others = f" and {relief.ties} other{'s' * (relief.ties > 1)} that bind{'s' * (relief.ties == 1)} as much" if relief.ties else ""
    what = "less latency (more bandwidth does not help)" if latency else f"more bandwidth at {bound.limiting}{others}"
    if not relief.next_limit:
        return [f"to go faster: {what}; nothing else limits"]
    if relief.headroom >= WIDER and not latency:
        return [f"to go faster: {what}; nothing else limits before {WIDER}x"]
    return [f"to go faster: {what}, up to {math.floor(100 * relief.headroom) / 100:.2f}x, then {relief.next_limit} binds"]
