"""What Explore says in words and tables: cards, what limits the time, the table of algorithms and its CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from algorithms.launch import dtype_bytes
from prediction.compare import Report
from prediction.predict import Candidate, Row
from sim.bounds import Bounds
from sim.closed_forms import lookup
from sim.result import Result
from topologies.routing import Router
from topologies.units import format_bandwidth, format_bytes, format_time
from views.facts import Fact
from views.palette import short
from views.text import label, text
from views.topology_picture import kind_name

Cells = list[dict[str, str]]


def cards(row: Row, chosen: Candidate, bound: Bounds, lang: str) -> list[Fact]:
    """The chosen algorithm in numbers, the fastest, and how near the lower bound the chosen one comes."""
    busbw = "–" if chosen.busbw_Bps is None else format_bandwidth(chosen.busbw_Bps)
    name, best = label(lang, "algorithm", chosen.algorithm), row.best
    share = "–" if not chosen.time_s else f"{100 * min(1.0, bound.lower_bound_s / chosen.time_s):.0f} %"
    words = {"algorithm": name, "short": short(lang, chosen.algorithm), "bound": format_time(bound.lower_bound_s), "why": bound.limiting}
    return [
        Fact(text(lang, "explore.card.time", **words), format_time(chosen.time_s), text(lang, "explore.card.time_help", **words)),
        Fact(text(lang, "explore.card.busbw"), busbw, text(lang, "explore.card.busbw_help")),
        Fact(text(lang, "explore.card.algbw"), format_bandwidth(chosen.algbw_Bps), text(lang, "explore.card.algbw_help")),
        Fact(text(lang, "explore.card.fastest"), short(lang, best.algorithm),
             text(lang, "explore.card.fastest_help", name=label(lang, "algorithm", best.algorithm), time=format_time(best.time_s))),
        Fact(text(lang, "explore.card.share"), share, text(lang, "explore.card.share_help", **words)),
    ]  # fmt: skip


@dataclass(frozen=True, slots=True)
class Reason:
    """One sentence on what the time goes into, one on the lower bound, and the closed form with its numbers (empty: none)."""

    sentence: str
    bound: str
    formula: str


def reason(result: Result, bound: Bounds, lang: str) -> Reason:
    """From the critical path: the largest of its terms, for bandwidth with the link that set the rate longest."""
    path = result.critical_path()
    terms = {
        "overhead": path.overhead_s, "latency": path.latency_s, "bandwidth": path.bandwidth_s, "reduce": path.reduce_s, "wait": path.wait_s,
    }  # fmt: skip
    total = sum(terms.values()) or 1.0
    most = max(terms, key=terms.__getitem__)
    link = ""
    if most == "bandwidth" and path.bandwidth_by:
        src, dst = max(path.bandwidth_by, key=path.bandwidth_by.__getitem__)
        known = bool(src and dst)
        link = f"{src} → {dst} ({kind_name(result.topology.link(src, dst))})" if known else text(lang, "explore.port", node=src or dst)
    shares = {f"{name}_share": f"{100 * seconds / total:.0f}" for name, seconds in terms.items()}
    said = text(lang, f"explore.limit.{most}", link=link, messages=len(path.messages), time=format_time(total), **shares)
    limit = text(lang, "explore.limit.bound", bound=format_time(bound.lower_bound_s), why=bound.limiting)
    return Reason(said, limit, formula(result, lang))


def formula(result: Result, lang: str) -> str:
    """The textbook formula of the algorithm with this machine's numbers (of the way from GPU 0 to GPU 1) beside the simulated
    time; empty where there is none that holds for this number of ranks, slices and elements."""
    launch, gpus = result.launches[0], result.topology.gpus
    assert launch.schedule is not None
    form = lookup(launch.schedule.collective.name, launch.schedule.name)
    if form is None or form.refusal(len(gpus), elements=launch.elements, reduce_rate=result.model.reduce_rate):
        return ""
    route = Router(result.topology).route(gpus[0], gpus[1])
    rate, latency = min(link.bandwidth for link in route), sum(link.latency for link in route)
    seconds = form.time(
        len(gpus), elements=launch.elements, itemsize=dtype_bytes(launch.dtype), bandwidth=rate, latency=latency / form.hops,
        overhead=result.model.overhead, reduce_rate=result.model.reduce_rate,
    )  # fmt: skip
    same = abs(seconds / result.time - 1) < 1e-9
    return text(
        lang, f"explore.formula.{'same' if same else 'other'}", algorithm=label(lang, "algorithm", form.algorithm), formula=form.formula,
        n=len(gpus), size=format_bytes(launch.nbytes), bandwidth=format_bandwidth(rate), latency=format_time(latency),
        time=format_time(seconds), simulated=format_time(result.time),
    )  # fmt: skip


def comparison_cells(row: Row, lang: str) -> Cells:
    """One line an algorithm at one size, fastest first, for people."""
    keys = ("algorithm", "time", "busbw", "algbw", "slower")
    heads = {key: text(lang, f"explore.head.{key}") for key in keys}
    return [
        {heads["algorithm"]: label(lang, "algorithm", c.algorithm), heads["time"]: format_time(c.time_s),
         heads["busbw"]: "–" if c.busbw_Bps is None else format_bandwidth(c.busbw_Bps), heads["algbw"]: format_bandwidth(c.algbw_Bps),
         heads["slower"]: f"{c.time_s / row.best.time_s:.3g} ×" if row.best.time_s else "–"}
        for c in row.candidates
    ]  # fmt: skip


def rows_csv(rows: Iterable[Row]) -> str:
    """Every algorithm at every size in SI units, for programs."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(["size_bytes", "algorithm", "slices", "time_s", "algbw_Bps", "busbw_Bps"])
    for row in rows:
        for c in row.candidates:
            writer.writerow([row.size_bytes, c.algorithm, c.slices, c.time_s, c.algbw_Bps, "" if c.busbw_Bps is None else c.busbw_Bps])
    return out.getvalue()


def log_summary(report: Report, lang: str) -> list[str]:
    """One sentence a run of the log: what was compared with what, and the error."""
    return [
        text(
            lang, "explore.log.run", collective=label(lang, "collective", part.collective), n=part.nranks, gpu=part.gpu or "GPU",
            topology=part.topology, algorithm=label(lang, "algorithm", part.algorithm), mape=f"{part.mape:.1f}",
        )
        for part in report.compared
    ]  # fmt: skip


def log_cells(report: Report, lang: str) -> Cells:
    """Measured, predicted and error by size."""
    heads = {key: text(lang, f"explore.{key}") for key in ("size", "measured", "predicted", "error")}
    half = text(lang, "explore.half")
    return [
        {heads["size"]: format_bytes(row.size_bytes), half: text(lang, f"explore.in_place.{str(row.in_place).lower()}"),
         heads["measured"]: format_time(row.measured_s), heads["predicted"]: format_time(row.predicted_s),
         heads["error"]: f"{100 * row.error:+.1f} %"}
        for row in report.rows
    ]  # fmt: skip


def skipped_words(skipped: Mapping[str, str], lang: str) -> str:
    """Algorithms that are left out, with their reasons, as one line; empty if there are none."""
    parts: Sequence[str] = [f"{label(lang, 'algorithm', name)}: {why}" for name, why in skipped.items()]
    return text(lang, "explore.skipped", what="; ".join(parts)) if parts else ""
