"""A topology as an SVG picture, its links coloured by how busy they were."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from sim.result import LinkLoad, Result
from topologies.graph import Link, Topology
from topologies.units import format_bandwidth, format_bytes
from views.text import text
from views.topology_layout import arrange
from views.topology_parts import FONT, MARGIN, WIDTH, Arrangement, Box, Line

CIVIDIS = ("#00224e", "#1a386f", "#434e6c", "#61656f", "#7d7c78", "#9b9476", "#bcae6c", "#dec958", "#fee838")
"""matplotlib's colour map at 0, 1/8 .. 1: even steps of lightness, read alike by people who are colour-blind."""
FAMILY = (
    "'Source Sans 3','Noto Sans','Segoe UI',Roboto,'Helvetica Neue',Arial,"
    "'Noto Sans KR','Malgun Gothic','Apple SD Gothic Neo',NanumGothic,sans-serif"
)
TOP, BOTTOM = 46.0, 54.0


@dataclass(frozen=True, slots=True)
class Ink:
    """Colours of one theme; ``scale`` goes from barely busy to busy all the time, ever farther from the background."""

    text: str
    faint: str
    idle: str
    frame: str
    mark: str
    paper: str
    scale: tuple[str, ...]
    fills: dict[str, str]


LIGHT = Ink(
    "#1d2530", "#56606c", "#cdd5de", "#9aa6b4", "#c43e00", "#ffffff", CIVIDIS[7::-1],
    {"gpu": "#e3eefa", "nvswitch": "#dff3ea", "pcie": "#f3eefa", "nic": "#fdf1df", "cpu": "#eceff3", "switch": "#dff3ea"},
)  # fmt: skip
DARK = Ink(
    "#eef2f6", "#aeb9c6", "#3b4653", "#66727f", "#ff8a4c", "#12161c", CIVIDIS[1:],
    {"gpu": "#1d3450", "nvswitch": "#153d31", "pcie": "#352a48", "nic": "#4a3716", "cpu": "#2b333d", "switch": "#153d31"},
)  # fmt: skip


def ink(dark: bool) -> Ink:
    """The colours for a light or a dark page."""
    return DARK if dark else LIGHT


def colour(share: float, scale: Sequence[str]) -> str:
    """The colour of a busy share (0..1), between the steps of ``scale``."""
    at = min(max(share, 0.0), 1.0) * (len(scale) - 1)
    low = min(int(at), len(scale) - 2)
    mixed = (round(a + (b - a) * (at - low)) for a, b in zip(_rgb(scale[low]), _rgb(scale[low + 1]), strict=True))
    return "#" + "".join(f"{value:02x}" for value in mixed)


def _rgb(code: str) -> tuple[int, int, int]:
    return int(code[1:3], 16), int(code[3:5], 16), int(code[5:7], 16)


@dataclass(frozen=True, slots=True)
class Busy:
    """Loads as shares of the time, most busy first; ``alike``: how many are as busy as the first, itself included."""

    share: dict[tuple[str, str], float]
    loads: dict[tuple[str, str], LinkLoad]
    first: tuple[str, str] | None
    alike: int

    @staticmethod
    def of(loads: Iterable[LinkLoad], seconds: float) -> Busy:
        """From a result's ``link_loads()`` and its time."""
        by = {(load.src, load.dst): load for load in loads}
        share = {pair: load.busy_s / seconds if seconds > 0 else 0.0 for pair, load in by.items()}
        most = max(share.values(), default=0.0)
        top = [pair for pair, value in share.items() if value >= most * (1 - 1e-9) and most > 0]
        return Busy(share, by, top[0] if top else None, len(top))


def busiest(topology: Topology, busy: Busy, lang: str) -> str:
    """One sentence on the busiest link, empty without loads."""
    if busy.first is None:
        return ""
    link = topology.link(*busy.first)
    named = text(lang, "explore.busiest", src=link.src, dst=link.dst, kind=kind_name(link), share=f"{100 * busy.share[busy.first]:.0f}")
    return named + (text(lang, "explore.busiest_more", n=busy.alike - 1) if busy.alike > 1 else "")


def kind_name(link: Link) -> str:
    """``18 x nvlink4, 450 GB/s``."""
    return f"{f'{link.lanes} × ' if link.lanes > 1 else ''}{link.kind}, {format_bandwidth(link.bandwidth)}"


def result_svg(result: Result, *, lang: str = "en", dark: bool = False) -> str:
    """The picture of a simulated collective."""
    return topology_svg(result.topology, result.link_loads(), result.time, lang=lang, dark=dark)


def topology_svg(topology: Topology, loads: Iterable[LinkLoad] = (), seconds: float = 0.0, *, lang: str = "en", dark: bool = False) -> str:
    """SVG text, 1200 wide: colour and width of a line say for which share of ``seconds`` [s] that direction was busy, a mark
    names the busiest. The same input gives the same text."""
    paint, busy = ink(dark), Busy.of(loads, seconds)
    plan = arrange(topology, busy.share)
    height = TOP + plan.height + BOTTOM
    title = text(lang, "explore.picture_title", topology=topology.name, n=len(topology.gpus))
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH:g} {height:.0f}" width="{WIDTH:g}" height="{height:.0f}" role="img" '
        f'aria-labelledby="t d" font-family="{FAMILY}" font-size="{FONT:g}">',
        f'<title id="t">{_safe(title)}</title><desc id="d">{_safe(busiest(topology, busy, lang) or title)}</desc>',
        f'<g transform="translate(0 {TOP:g})">',
        *_frames(plan, paint),
        *_drawn_lines(topology, plan, busy, paint),
        *(_drawn_box(name, box, paint) for name, box in plan.boxes.items()),
        *_mark(plan, busy, paint),
        "</g>",
        *_caption(topology, busy, paint, lang),
        *_legend(plan, busy, paint, height - BOTTOM + 12, lang),
        "</svg>",
    ]
    return "\n".join(parts)


def _frames(plan: Arrangement, paint: Ink) -> Iterator[str]:
    for frame in plan.frames:
        yield (
            f'<rect x="{frame.x:.1f}" y="{frame.y:.1f}" width="{frame.w:.1f}" height="{frame.h:.1f}" rx="10" fill="none" '
            f'stroke="{paint.frame}"/>'
        )
        yield _words(frame.label, frame.x + frame.w / 2, frame.y + frame.h - 12, paint.faint)
    if not any(box.label.startswith("GPU") for box in plan.boxes.values()):
        for name, y in plan.rows:
            yield _words(name, MARGIN, y + 6, paint.faint, anchor="start", size=15)


def _drawn_lines(topology: Topology, plan: Arrangement, busy: Busy, paint: Ink) -> Iterator[str]:
    narrow = len(plan.lines) > 160
    most = max(busy.share.values(), default=0.0) or 1.0
    for pair, line in sorted(plan.lines.items(), key=lambda item: busy.share.get(item[0], 0.0)):
        share, load = busy.share.get(pair, 0.0), busy.loads.get(pair)
        stroke = colour(share, paint.scale) if load else paint.idle
        width = (1.4 if narrow else 2.0) + (2.4 if narrow else 4.0) * share / most if load else 1.2
        link = topology.link(*pair)
        about = f"{link.src} → {link.dst}: {kind_name(link)}" + (f"; {format_bytes(load.bytes)}, {100 * share:.0f} %" if load else "")
        path = f"M{line.x1:.1f} {line.y1:.1f}Q{line.cx:.1f} {line.cy:.1f} {line.x2:.1f} {line.y2:.1f}"
        yield f'<path d="{path}" fill="none" stroke="{stroke}" stroke-width="{width:.2f}"><title>{_safe(about)}</title></path>'
        if load and not narrow and line.length > 34:
            yield _arrow(line, width, stroke)


def _arrow(line: Line, width: float, stroke: str) -> str:
    (x, y), (dx, dy), size = line.at(0.6), line.heading(0.6), 7 + 1.2 * width
    across = 0.42 * size
    tip, left, right = (x + dx * size, y + dy * size), (x - dy * across, y + dx * across), (x + dy * across, y - dx * across)
    return f'<polygon points="{" ".join(f"{px:.1f},{py:.1f}" for px, py in (tip, left, right))}" fill="{stroke}"/>'


def _drawn_box(name: str, box: Box, paint: Ink) -> str:
    about = f"<title>{_safe(name)}</title>"
    rect = (
        f'<rect x="{box.x - box.w / 2:.1f}" y="{box.y - box.h / 2:.1f}" width="{box.w:.1f}" height="{box.h:.1f}" '
        f'rx="{min(6.0, box.w / 4, box.h / 4):.1f}" fill="{paint.fills[box.kind]}" stroke="{paint.frame}"/>'
    )
    return f"<g>{about}{rect}{_words(box.label, box.x, box.y + 6, paint.text)}</g>"


def _mark(plan: Arrangement, busy: Busy, paint: Ink) -> Iterator[str]:
    """On the busiest line, if it is drawn: a shape, so that colour is not the only sign."""
    if busy.first in plan.lines:
        line = plan.lines[busy.first]  # type: ignore[index]
        (x, y), (dx, dy) = line.at(0.42), line.heading(0.42)
        if line.length < 60:  # beside a short line, so as not to hide its ends
            x, y = x - 14 * dy, y + 14 * dx
        yield f'<circle class="mark" cx="{x:.1f}" cy="{y:.1f}" r="12" fill="{paint.mark}" stroke="{paint.paper}"/>'
        yield _words("!", x, y + 6, paint.paper, weight="700")


def _caption(topology: Topology, busy: Busy, paint: Ink, lang: str) -> Iterator[str]:
    said = busiest(topology, busy, lang)
    if said:
        yield f'<circle cx="{MARGIN + 12:.1f}" cy="24" r="12" fill="{paint.mark}"/>'
        yield _words("!", MARGIN + 12, 30, paint.paper, weight="700")
        yield _words(said, MARGIN + 34, 30, paint.text, anchor="start", size=18)


def _legend(plan: Arrangement, busy: Busy, paint: Ink, y: float, lang: str) -> Iterator[str]:
    """Colour bar with the width of the lines, and what is not drawn."""
    x, length = WIDTH - MARGIN - 262, 220.0
    if busy.first:
        stops = "".join(f'<stop offset="{i / 8:g}" stop-color="{colour(i / 8, paint.scale)}"/>' for i in range(9))
        yield f'<defs><linearGradient id="busy">{stops}</linearGradient></defs>'
        wedge = f"{x:.0f},{y + 6:.0f} {x + length:.0f},{y:.0f} {x + length:.0f},{y + 14:.0f} {x:.0f},{y + 8:.0f}"
        yield f'<polygon points="{wedge}" fill="url(#busy)"/>'
        for i, label in enumerate(("0", "50", "100 %")):
            yield _words(label, x + i * length / 2, y + 32, paint.faint, size=15)
        yield _words(text(lang, "explore.busy_scale"), x - 14, y + 13, paint.text, anchor="end", size=15)
    out = ", ".join(text(lang, f"explore.left_out.{kind}", n=n) for kind, n in (plan.left_out or {}).items())
    if out:
        yield _words(text(lang, "explore.left_out", what=out), MARGIN, y + 13, paint.faint, anchor="start", size=15)


def _words(said: str, x: float, y: float, fill: str, *, anchor: str = "middle", size: float = FONT, weight: str = "400") -> str:
    if not said:
        return ""
    style = f'text-anchor="{anchor}" font-size="{size:g}" font-weight="{weight}" fill="{fill}"'
    return f'<text x="{x:.1f}" y="{y:.1f}" {style}>{_safe(said)}</text>'


def _safe(said: str) -> str:
    """Escaped, and without the characters that XML forbids."""
    return escape("".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in said), {'"': "&quot;"})
