"""Figures for papers and notebooks (matplotlib): the same pictures as the app's, as files that are the same byte for byte."""

from __future__ import annotations

import io
import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.launch import Trace
from algorithms.schedule import Op, Schedule
from prediction.predict import Row
from sim.bounds import Bounds
from topologies.units import format_bytes, format_time
from views.charts import floor_points
from views.palette import dash, line_colour, ordered, short
from views.text import text

KOREAN = ("NanumGothic", "NanumBarunGothic", "Noto Sans CJK KR", "Noto Sans KR", "Malgun Gothic", "Apple SD Gothic Neo", "AppleGothic")
FILES = (
    "/usr/share/fonts/truetype/nanum/NanumGothic.ttf", "/usr/share/fonts/opentype/noto/NotoSansCJK-Regular.ttc",
    "C:/Windows/Fonts/malgun.ttf", "/System/Library/Fonts/AppleSDGothicNeo.ttc",
)  # fmt: skip
"""Where fonts are that matplotlib's own list, made once, may not have."""
STYLE: Any = {
    "svg.hashsalt": "ringscope", "font.size": 11, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#e3e7ec", "axes.axisbelow": True, "axes.unicode_minus": False,
}  # fmt: skip
REDUCE, COPY = "#0072B2", "#E69F00"
CELL: Any = {"ha": "center", "va": "center", "fontsize": 9.5, "family": "DejaVu Sans"}  # its arrows are larger than Nanum's
MOST_LINES = 400
"""Sends whose way from rank to rank is drawn; beyond, a space-time figure shows only when ranks send."""


class Picture(Figure):
    """A figure that notebooks show as SVG. ``family``: its fonts."""

    family: tuple[str, ...] = ("DejaVu Sans",)

    def _repr_svg_(self) -> str:
        return svg(self)


def language(lang: str) -> tuple[str, tuple[str, ...]]:
    """The language that can be drawn here and its fonts: Korean needs one of ``KOREAN``, else a warning and English."""
    if lang != "ko":
        return lang, ("DejaVu Sans",)
    for file in FILES:
        if Path(file).is_file():
            font_manager.fontManager.addfont(file)
    have = {font.name for font in font_manager.fontManager.ttflist}
    found = next((name for name in KOREAN if name in have), None)
    if found is None:
        warnings.warn(f"no Korean font found ({', '.join(KOREAN)}); the labels are English. Debian's package: fonts-nanum", stacklevel=3)
        return "en", ("DejaVu Sans",)
    return "ko", (found, "DejaVu Sans")


def svg(figure: Figure) -> str:
    """SVG text: the same figure gives the same text, today and tomorrow."""
    out = io.StringIO()
    with matplotlib.rc_context(_style(figure)):
        figure.savefig(out, format="svg", metadata={"Date": None})
    return out.getvalue()


def save(figure: Figure, path: str | Path) -> None:
    """Write a figure in the format of the file's name, without a date."""
    with matplotlib.rc_context(_style(figure)):
        dated = {".svg": {"Date": None}, ".pdf": {"CreationDate": None, "ModDate": None}}
        figure.savefig(path, metadata=dated.get(Path(path).suffix, {}), dpi=160)


def _style(figure: Figure) -> Any:
    family = figure.family if isinstance(figure, Picture) else ("DejaVu Sans",)
    return {**STYLE, "font.family": list(family)}


def new(width: float, height: float, lang: str, draw: Callable[[Axes, str], None]) -> Picture:
    """A figure [inches] with one set of axes that ``draw`` fills, in the language that can be drawn."""
    lang, family = language(lang)
    style: Any = {**STYLE, "font.family": list(family)}
    with matplotlib.rc_context(style):
        figure = Picture(figsize=(width, height), layout="constrained")
        figure.family = family
        draw(figure.add_subplot(), lang)
    return figure


def time_vs_size(rows: Sequence[Row], bounds: Mapping[int, Bounds], lang: str = "en") -> Picture:
    """Time against size, log-log, for every algorithm; the grey area lies under the lower bound."""

    def draw(ax: Axes, lang: str) -> None:
        _curves(ax, rows, lambda c: c.time_s, lang)
        floor = floor_points(bounds, None)
        ax.set_yscale("log")
        bottom = ax.get_ylim()[0]
        xs, ys = [p["size"] for p in floor], [p["time_s"] for p in floor]
        _impossible(ax, xs, ys, min(bottom, min(ys, default=bottom) / 2), lang)
        ax.yaxis.set_major_formatter(lambda seconds, _: format_time(seconds))
        ax.set_ylabel(text(lang, "explore.time"))

    return new(6.4, 4.4, lang, draw)


def busbw_vs_size(rows: Sequence[Row], bounds: Mapping[int, Bounds], factor: float, lang: str = "en") -> Picture:
    """busbw against size for every algorithm; above the grey line it cannot go."""

    def draw(ax: Axes, lang: str) -> None:
        _curves(ax, rows, lambda c: c.busbw_Bps, lang)
        floor = floor_points(bounds, factor)
        xs, ys = [p["size"] for p in floor], [p["busbw"] for p in floor]
        top = 1.12 * max([*ys, ax.get_ylim()[1] / 1.12])
        ax.set_ylim(0, top)
        _impossible(ax, xs, ys, top, lang)
        ax.yaxis.set_major_formatter(lambda rate, _: f"{rate / 1e9:g}")
        ax.set_ylabel(text(lang, "explore.busbw"))

    return new(6.4, 4.4, lang, draw)


def _curves(ax: Axes, rows: Sequence[Row], value: Callable[..., float | None], lang: str) -> None:
    names = [c.algorithm for c in rows[-1].candidates]
    known = ordered(names)
    for name in names:
        at = [(row.size_bytes, value(c)) for row in rows for c in row.candidates if c.algorithm == name]
        on, off, *more = dash(known, name)
        pattern: Any = "-" if not off else (0, tuple(length / 2 for length in (on, off, *more)))
        ax.plot(*zip(*at, strict=True), color=line_colour(known, name), linestyle=pattern, label=short(lang, name), linewidth=2)
    ax.set_xscale("log", base=2)
    first, last = rows[0].size_bytes, rows[-1].size_bytes
    ax.set_xlim(first, last)
    ticks = [2**k for k in range(61) if first <= 2**k <= last and (k - math.ceil(math.log2(first))) % 4 == 0]
    ax.set_xticks(ticks, [format_bytes(tick).replace(" ", "\u00a0") for tick in ticks])
    ax.minorticks_off()
    ax.set_xlabel(text(lang, "explore.size"))
    ax.legend(loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=3, frameon=False, fontsize=9.5, handlelength=3.4)


def _impossible(ax: Axes, xs: Sequence[float], ys: Sequence[float], edge: float, lang: str) -> None:
    if not xs:
        return
    ax.fill_between(xs, ys, edge, color="#8a94a0", alpha=0.22, linewidth=0)
    ax.plot(xs, ys, color="#7d8792", linestyle=":", linewidth=1.2)
    ax.set_ylim(*sorted((edge, ax.get_ylim()[1] if edge < max(ys) else ax.get_ylim()[0])))
    under = edge < max(ys)
    place = {"x": 0.97, "y": 0.06, "ha": "right", "va": "bottom"} if under else {"x": 0.03, "y": 0.97, "ha": "left", "va": "top"}
    ax.text(s=text(lang, "explore.impossible"), transform=ax.transAxes, color="#6b7580", style="italic", **place)  # type: ignore[arg-type]


def step_table(schedule: Schedule, lang: str = "en", most: int = 16) -> Picture:
    """Who sends which chunk to whom in each step: a row a step, a column a place; at most ``most`` steps and places."""
    steps, places = min(schedule.steps, most), min(schedule.places, most)
    cells: dict[tuple[int, int], list[str]] = {}
    reduces = np.zeros((steps, places), dtype=bool)
    columns = (schedule.step, schedule.src, schedule.dst, schedule.chunk, schedule.count, schedule.op)
    for step, src, dst, chunk, count, op in zip(*(column.tolist() for column in columns), strict=True):
        if step < steps and src < places:
            chunks = f"c{chunk}" if count == 1 else f"c{chunk}–{chunk + count - 1}"
            cells.setdefault((step, src), []).append(f"{chunks} → {dst}")
            reduces[step, src] |= op == Op.REDUCE

    def draw(ax: Axes, lang: str) -> None:
        ax.grid(False)
        for (step, src), said in cells.items():
            fill = "#dcebf7" if reduces[step, src] else "#fcefd2"
            ax.add_patch(matplotlib.patches.Rectangle((src - 0.46, step - 0.4), 0.92, 0.8, color=fill, linewidth=0))
            ax.text(src, step, "\n".join(said[:2]) + (" …" if len(said) > 2 else ""), **CELL)
        ax.set(xlim=(-0.5, places - 0.5), ylim=(steps - 0.5, -0.5))
        ax.set_xticks(range(places), [f"GPU {p}" if p < schedule.nranks else text(lang, "explore.figure.switch") for p in range(places)])
        ax.set_yticks(range(steps), [str(step + 1) for step in range(steps)])
        ax.set_ylabel(text(lang, "explore.figure.step"))
        ax.xaxis.tick_top()
        ax.tick_params(length=0)
        ax.spines[:].set_visible(False)
        ax.legend(handles=_ops(lang), loc="upper center", bbox_to_anchor=(0.5, -0.01), ncols=2, frameon=False)

    return new(1.0 + 0.95 * places, 1.2 + 0.42 * steps, lang, draw)


def _ops(lang: str, faces: tuple[str, str] = ("#dcebf7", "#fcefd2")) -> list[matplotlib.patches.Patch]:
    hatch = "///" if faces[1] == COPY else ""
    return [
        matplotlib.patches.Patch(facecolor=faces[0], edgecolor="#3c4854", label=text(lang, "explore.figure.reduce")),
        matplotlib.patches.Patch(facecolor=faces[1], edgecolor="#3c4854", hatch=hatch, label=text(lang, "explore.figure.copy")),
    ]


def space_time(schedule: Schedule, trace: Trace, lang: str = "en", launch: int = 0) -> Picture:
    """Ranks from top to bottom, time from left to right: bars while a rank sends, thin lines to the receiver until it may read."""
    mine = trace.launch == launch
    columns = (trace.start, trace.sent, trace.end, trace.src, trace.dst, schedule.op[trace.send])
    sends = list(zip(*(column[mine].tolist() for column in columns), strict=True))

    def draw(ax: Axes, lang: str) -> None:
        for op, face, hatch in ((Op.REDUCE, REDUCE, ""), (Op.COPY, COPY, "///")):
            for place in range(schedule.places):
                bars = [(start, sent - start) for start, sent, _, src, _, kind in sends if src == place and kind == op]
                ax.broken_barh(bars, (place - 0.3, 0.6), facecolor=face, edgecolor="white", linewidth=0.6, hatch=hatch)
        for _, sent, end, src, dst, _ in sends[: MOST_LINES if len(sends) <= MOST_LINES else 0]:
            side = 0.3 if dst > src else -0.3
            ax.plot([sent, end], [src + side, dst - side], color="#56606c", linewidth=0.7, alpha=0.7)
        ax.set(ylim=(schedule.places - 0.5, -0.5), xlim=(0, None))
        every = -(-schedule.places // 16)
        ax.set_yticks(range(0, schedule.places, every), [f"GPU {p}" if p < schedule.nranks else text(lang, "explore.figure.switch")
                                                         for p in range(0, schedule.places, every)])  # fmt: skip
        ax.xaxis.set_major_formatter(lambda seconds, _: format_time(seconds))
        ax.grid(axis="y", visible=False)
        ax.set_xlabel(text(lang, "explore.time"))
        ax.legend(handles=_ops(lang, (REDUCE, COPY)), loc="upper center", bbox_to_anchor=(0.5, -0.14), ncols=2, frameon=False)

    return new(7.6, 1.6 + 0.36 * min(schedule.places, 24), lang, draw)
