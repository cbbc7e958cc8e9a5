"""The topology coloured by load as a matplotlib figure: the same arrangement as the app's picture."""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.patches import FancyBboxPatch, PathPatch
from matplotlib.path import Path as Curve

from sim.result import Result
from views.figures import Picture, new
from views.text import text
from views.topology_layout import arrange
from views.topology_parts import WIDTH, Arrangement, Line
from views.topology_picture import LIGHT, Busy, busiest, colour


def topology_load(result: Result, lang: str = "en") -> Picture:
    """Colour and width of a line say which share of the time that direction of the link was busy; the busiest is named."""
    busy = Busy.of(result.link_loads(), result.time)
    plan = arrange(result.topology, busy.share)

    def draw(ax: Axes, lang: str) -> None:
        ax.set(xlim=(0, WIDTH), ylim=(plan.height, 0), aspect="equal")
        ax.axis("off")
        for frame in plan.frames:
            ax.add_patch(_rounded(frame.x, frame.y, frame.w, frame.h, 10, "none"))
            ax.text(frame.x + frame.w / 2, frame.y + frame.h - 8, frame.label, ha="center", va="bottom", color=LIGHT.faint, fontsize=8.5)
        if not any(box.label.startswith("GPU") for box in plan.boxes.values()):
            for name, y in plan.rows:
                ax.text(10, y, name, ha="left", va="center", color=LIGHT.faint, fontsize=8.5)
        _lines(ax, plan, busy)
        for box in plan.boxes.values():
            ax.add_patch(_rounded(box.x - box.w / 2, box.y - box.h / 2, box.w, box.h, 5, LIGHT.fills[box.kind]))
            ax.text(box.x, box.y, box.label, ha="center", va="center", color=LIGHT.text, fontsize=8.5 if box.w > 24 else 7, zorder=4)
        if busy.first is None:
            return
        if busy.first in plan.lines:
            x, y = plan.lines[busy.first].at(0.42)
            ax.plot([x], [y], marker="o", markersize=11, color=LIGHT.mark, zorder=5)
            ax.text(x, y, "!", color="white", weight="bold", ha="center", va="center", fontsize=9, family="DejaVu Sans", zorder=6)
        ax.set_title(busiest(result.topology, busy, lang), fontsize=10, loc="left")
        scale = ScalarMappable(Normalize(0, 100), LinearSegmentedColormap.from_list("busy", LIGHT.scale))
        bar = ax.figure.colorbar(scale, ax=ax, orientation="horizontal", fraction=0.035, pad=0.02, shrink=0.4)
        bar.set_label(text(lang, "explore.busy_scale") + " (%)", fontsize=9)
        bar.ax.tick_params(labelsize=8.5)

    return new(9.0, 9.0 * plan.height / WIDTH + 1.0, lang, draw)


def _rounded(x: float, y: float, w: float, h: float, radius: float, fill: str) -> FancyBboxPatch:
    radius = min(radius, w / 4, h / 4)
    style = f"round,pad=0,rounding_size={radius:.2f}"
    order = 1 if fill == "none" else 3
    return FancyBboxPatch((x, y), w, h, boxstyle=style, facecolor=fill, edgecolor=LIGHT.frame, linewidth=0.8, zorder=order)


def _lines(ax: Axes, plan: Arrangement, busy: Busy) -> None:
    most = max(busy.share.values(), default=0.0) or 1.0
    thin = 1.0 if len(plan.lines) > 160 else 2.0
    for pair, line in sorted(plan.lines.items(), key=lambda item: busy.share.get(item[0], 0.0)):
        share = busy.share.get(pair, 0.0)
        ink, width = (colour(share, LIGHT.scale), thin * (0.5 + share / most)) if pair in busy.loads else (LIGHT.idle, 0.6)
        ax.add_patch(PathPatch(_curve(line), facecolor="none", edgecolor=ink, linewidth=width, capstyle="butt", zorder=2))
        if pair in busy.loads and line.length > 34 and len(plan.lines) <= 160:
            (x, y), (dx, dy) = line.at(0.55), line.heading(0.55)
            look = {"arrowstyle": "-|>", "color": ink, "linewidth": 0, "mutation_scale": 9}
            ax.annotate("", (x + 9 * dx, y + 9 * dy), (x, y), arrowprops=look)


def _curve(line: Line) -> Curve:
    return Curve([(line.x1, line.y1), (line.cx, line.cy), (line.x2, line.y2)], [Curve.MOVETO, Curve.CURVE3, Curve.CURVE3])
