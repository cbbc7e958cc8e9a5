"""Predictions, bounds and comparisons -> Altair charts; seconds and bytes stay SI in the data, units are put on by the labels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import altair as alt

from prediction.compare import Comparison
from prediction.predict import Candidate, Row
from sim.bounds import Bounds
from topologies.units import format_bandwidth, format_bytes, format_time
from views.palette import MEASURED, dash, line_colour, ordered, short
from views.text import label, text

HEIGHT = 390
SIZE_LABEL = (
    "datum.value >= 1073741824 ? datum.value / 1073741824 + ' GiB' : datum.value >= 1048576 ? datum.value / 1048576 + ' MiB' : "
    "datum.value >= 1024 ? datum.value / 1024 + ' KiB' : datum.value + ' B'"
)
TIME_LABEL = (
    "datum.value < 9.99e-7 ? format(datum.value * 1e9, '~g') + ' ns' : datum.value < 9.99e-4 ? format(datum.value * 1e6, '~g') + ' µs' : "
    "datum.value < 0.999 ? format(datum.value * 1e3, '~g') + ' ms' : format(datum.value, '~g') + ' s'"
)
RATE_LABEL = "format(datum.value / 1e9, '~g')"
Record = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Look:
    """What a chart of curves stresses: the size now chosen [bytes] and an algorithm; and how it looks."""

    size: int
    chosen: str = ""
    lang: str = "en"
    dark: bool = False


def points(rows: Iterable[Row], lang: str) -> list[Record]:
    """One record an algorithm and size: SI numbers, and the same with units for the tooltip."""
    return [_point(row.size_bytes, c, lang) for row in rows for c in row.candidates]


def _point(size: int, c: Candidate, lang: str) -> Record:
    return {
        "size": size, "algorithm": short(lang, c.algorithm), "name": label(lang, "algorithm", c.algorithm),
        "time_s": c.time_s, "busbw": c.busbw_Bps, "size_text": format_bytes(size), "time_text": format_time(c.time_s),
        "busbw_text": "" if c.busbw_Bps is None else format_bandwidth(c.busbw_Bps),
    }  # fmt: skip


def floor_points(bounds: Mapping[int, Bounds], factor: float | None) -> list[Record]:
    """The lower bound by size, smooth between the sizes given; ``busbw`` is the most it allows."""
    sizes = sorted(bounds)
    found = [(float(size), bounds[size].lower_bound_s) for size in sizes]
    for low, high in pairwise(sizes):
        above = bounds[high]  # latency does not change with the size, bandwidth is in proportion to it
        between = [low * 2 ** (k / 2) for k in range(1, math.ceil(2 * math.log2(high / low)))]
        corner = high * above.latency_s / above.bandwidth_s if above.bandwidth_s else 0.0
        between += [corner] if low < corner < high else []
        found += [(size, max(above.latency_s, above.bandwidth_s * size / high)) for size in between]
    return [
        {"size": size, "time_s": floor, "busbw": factor * size / floor if factor and floor else None, "time_text": format_time(floor),
         "busbw_text": format_bandwidth(factor * size / floor) if factor and floor else "", "size_text": format_bytes(round(size))}
        for size, floor in sorted(found) if floor > 0
    ]  # fmt: skip


def measured_points(compared: Iterable[Comparison], factor: float | None, lang: str) -> list[Record]:
    """The rows of a log as they are drawn over the curves."""
    return [
        {"size": row.size_bytes, "time_s": row.measured_s, "busbw": factor * row.size_bytes / row.measured_s if factor else None,
         "size_text": format_bytes(row.size_bytes), "time_text": format_time(row.measured_s),
         "busbw_text": format_bandwidth(factor * row.size_bytes / row.measured_s) if factor else "",
         "name": text(lang, "explore.measured"), "place": text(lang, f"explore.in_place.{str(row.in_place).lower()}")}
        for part in compared for row in part.rows
    ]  # fmt: skip


def time_chart(rows: Sequence[Row], bounds: Mapping[int, Bounds], look: Look, measured: Sequence[Record] = ()) -> alt.LayerChart:
    """Time against size, both logarithmic; what lies under the lower bound is grey: impossible."""
    floor = floor_points(bounds, None)
    times = [p["time_s"] for p in (*points(rows, look.lang), *floor, *measured)]
    lowest = 10 ** (math.floor(math.log10(min(times)) * 2) / 2)
    scale = alt.Scale(type="log", domain=[lowest, max(times) * 1.3], nice=False)
    y = alt.Y("time_s:Q", title=text(look.lang, "explore.time"), scale=scale, axis=alt.Axis(labelExpr=TIME_LABEL, values=_decades(times)))
    return _layers(rows, [{**p, "edge": lowest} for p in floor], y, "time_s", look, measured)


def busbw_chart(
    rows: Sequence[Row], bounds: Mapping[int, Bounds], factor: float, look: Look, measured: Sequence[Record] = ()
) -> alt.LayerChart:
    """busbw against size; above what the lower bound allows it is grey. The axis is linear: where curves differ by a few percent at
    the top is what is asked here, and small sizes are told apart in the chart of times."""
    floor = floor_points(bounds, factor)
    top = 1.12 * max([p["busbw"] for p in (*floor, *measured, *points(rows, look.lang)) if p["busbw"]])
    scale = alt.Scale(domain=[0, top], nice=False)
    y = alt.Y("busbw:Q", title=text(look.lang, "explore.busbw"), scale=scale, axis=alt.Axis(labelExpr=RATE_LABEL, tickCount=6))
    return _layers(rows, [{**p, "edge": top} for p in floor], y, "busbw", look, measured)


def _decades(times: Iterable[float]) -> list[float]:
    low, high = math.floor(math.log10(min(times))), math.ceil(math.log10(max(times)))
    return [10.0**power for power in range(low, high + 1)]


def _size_axis(sizes: Sequence[int], lang: str) -> alt.X:
    first, last = math.floor(math.log2(min(sizes))), math.ceil(math.log2(max(sizes)))
    marks = [2**power for power in range(0, 61, 4) if first <= power + 2 <= last]
    marks = [4 * mark for mark in marks] if first % 4 else marks
    return alt.X(
        "size:Q", title=text(lang, "explore.size"), scale=alt.Scale(type="log", base=2, domain=[min(sizes), max(sizes)], nice=False),
        axis=alt.Axis(labelExpr=SIZE_LABEL, values=[m for m in marks if min(sizes) <= m <= max(sizes)], labelOverlap=True),
    )  # fmt: skip


def _layers(rows: Sequence[Row], grey: Sequence[Record], y: alt.Y, field: str, look: Look, measured: Sequence[Record]) -> alt.LayerChart:
    lang, dark = look.lang, look.dark
    x = _size_axis([row.size_bytes for row in rows], lang)
    here = next((row for row in rows if row.size_bytes == look.size), rows[-1])
    fastest_first = [c.algorithm for c in here.candidates]
    known = ordered(fastest_first)
    names = [short(lang, name) for name in fastest_first]
    legend = alt.Legend(title=None, orient="bottom", columns=3, symbolSize=700, symbolStrokeWidth=3, labelLimit=0)
    colours = alt.Scale(domain=names, range=[line_colour(known, name, dark) for name in fastest_first])
    patterns = alt.Scale(domain=names, range=[dash(known, name) for name in fastest_first])
    colour = alt.Color("algorithm:N", scale=colours, legend=legend)
    dashes = alt.StrokeDash("algorithm:N", scale=patterns, legend=legend)
    width = alt.condition(f"datum.algorithm === {_quoted(short(lang, look.chosen))}", alt.value(4.5), alt.value(2.2))
    tip = [
        alt.Tooltip("name:N", title=text(lang, "explore.algorithm")), alt.Tooltip("size_text:N", title=text(lang, "explore.size")),
        alt.Tooltip("time_text:N", title=text(lang, "explore.time")), alt.Tooltip("busbw_text:N", title="busbw"),
    ]  # fmt: skip
    curves = _chart(points(rows, lang)).encode(x=x, y=y)
    parts: list[alt.Chart] = []
    if grey:
        below = _chart(grey).encode(x=x)
        bound_tip = [alt.Tooltip(f"{field.removesuffix('_s')}_text:N", title=text(lang, "explore.bound")), tip[1]]
        parts.append(below.mark_area(color="#8a94a0", opacity=0.22, clip=True).encode(y=y, y2="edge:Q", tooltip=bound_tip))
        parts.append(below.mark_line(color="#7d8792", strokeDash=[3, 3], strokeWidth=1.6).encode(y=y))
        parts.append(_impossible(grey, field, lang))
    parts.append(_marker(look.size, x, dark))
    parts.append(curves.mark_line().encode(color=colour, strokeDash=dashes, strokeWidth=width))
    parts.append(curves.mark_circle(size=90, opacity=0.001).encode(tooltip=tip))
    inside = [m for m in measured if rows[0].size_bytes <= m["size"] <= rows[-1].size_bytes]
    if inside:
        ink = MEASURED[dark]
        overlay = _chart(inside).mark_point(shape="diamond", size=70, filled=False, color=ink, strokeWidth=2)
        parts.append(overlay.encode(x=x, y=y, tooltip=[*tip, alt.Tooltip("place:N", title=" ")]))
    return _stack(parts, HEIGHT)


def _chart(values: Sequence[Record]) -> alt.Chart:
    return alt.Chart(alt.Data(values=list(values)))  # type: ignore[no-untyped-call]


def _stack(parts: Sequence[alt.Chart], height: int) -> alt.LayerChart:
    return alt.LayerChart(layer=list(parts)).properties(height=height)


def _impossible(grey: Sequence[Record], field: str, lang: str) -> alt.Chart:
    """The word in the grey area, where there is most of it: below the times of large sizes, above the busbw of small ones."""
    first, last = grey[0], grey[-1]
    at = {"size": last["size"] / 1.3, field: math.sqrt(last["edge"] ** 1.3 * last[field] ** 0.7)}
    if field == "busbw":
        at = {"size": first["size"] * 1.6, field: 0.93 * first["edge"]}
    at["said"] = text(lang, "explore.impossible")
    said = _chart([at])
    align: Literal["right", "left"] = "right" if field == "time_s" else "left"
    word = said.mark_text(align=align, fontSize=13, fontStyle="italic", color="#7d8792")
    placed: alt.Chart = word.encode(x=alt.X("size:Q"), y=alt.Y(f"{field}:Q"), text=alt.Text("said:N"))
    return placed


def _marker(size: int, x: alt.X, dark: bool) -> alt.Chart:
    rule = _chart([{"size": size, "said": format_bytes(size)}]).mark_rule(color=MEASURED[dark], strokeDash=[2, 4], strokeWidth=1.5)
    placed: alt.Chart = rule.encode(x=x, tooltip=alt.Tooltip("said:N", title=" "))
    return placed


def error_chart(compared: Sequence[Comparison], lang: str = "en", dark: bool = False) -> alt.LayerChart:
    """Predicted over measured, minus one, by size; one shape and colour for each half of the log."""
    values: list[Record] = [
        {"size": row.size_bytes, "error": row.error, "place": text(lang, f"explore.in_place.{str(row.in_place).lower()}"),
         "size_text": format_bytes(row.size_bytes), "error_text": f"{100 * row.error:+.1f} %",
         "measured_text": format_time(row.measured_s), "predicted_text": format_time(row.predicted_s)}
        for part in compared for row in part.rows
    ]  # fmt: skip
    sizes = [value["size"] for value in values]
    scale = alt.Scale(domain=[1.08 * min([-0.1, *(v["error"] for v in values)]), 1.08 * max([0.1, *(v["error"] for v in values)])])
    y = alt.Y("error:Q", title=text(lang, "explore.error_axis"), axis=alt.Axis(format="+.0%"), scale=scale)
    halves = [text(lang, f"explore.in_place.{half}") for half in ("false", "true")]
    colours = alt.Scale(domain=halves, range=[line_colour(["a", "b"], "a", dark), line_colour(["a", "b"], "b", dark)])
    legend = alt.Legend(title=None, orient="bottom", labelLimit=0)
    tip = [
        alt.Tooltip(f"{key}:N", title=text(lang, f"explore.{title}"))
        for key, title in (("size_text", "size"), ("measured_text", "measured"), ("predicted_text", "predicted"), ("error_text", "error"))
    ]
    dots = _chart(values).mark_point(size=80, strokeWidth=2).encode(
        x=_size_axis(sizes, lang), y=y, color=alt.Color("place:N", scale=colours, legend=legend),
        shape=alt.Shape("place:N", scale=alt.Scale(domain=halves, range=["circle", "cross"]), legend=legend), tooltip=tip,
    )  # fmt: skip
    zero = _chart([{"error": 0}]).mark_rule(color=MEASURED[dark], strokeWidth=1.2).encode(y=y)
    return _stack([zero, dots], 300)


def alt_text(rows: Sequence[Row], bounds: Mapping[int, Bounds], size: int, what: str, lang: str) -> str:
    """What a chart shows, in words: range, the order at ``size`` and the lower bound there. ``what`` is ``time`` or ``busbw``."""
    here = next(row for row in rows if row.size_bytes == size)
    values = ", ".join(f"{label(lang, 'algorithm', c.algorithm)} {_value(c, what)}" for c in here.candidates)
    return text(
        lang, f"explore.alt.{what}", first=format_bytes(rows[0].size_bytes), last=format_bytes(rows[-1].size_bytes),
        size=format_bytes(size), values=values, bound=format_time(bounds[size].lower_bound_s),
    )  # fmt: skip


def _value(c: Candidate, what: str) -> str:
    return format_time(c.time_s) if what == "time" or c.busbw_Bps is None else format_bandwidth(c.busbw_Bps)


def _quoted(said: str) -> str:
    """A string of the chart's expression language."""
    return "'" + said.replace("\\", "\\\\").replace("'", "\\'") + "'"
