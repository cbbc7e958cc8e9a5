"""What a picture of a topology is made of: boxes, lines, frames, in units of a picture 1200 wide."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

WIDTH, MARGIN, FONT = 1200.0, 24.0, 17.0
GAP, NARROW_GAP = 9.0, 4.5
"""Between the two directions of a cable."""


@dataclass(frozen=True, slots=True)
class Box:
    """A node: its centre, its size, and its label, empty where there is no room."""

    label: str
    kind: str
    x: float
    y: float
    w: float
    h: float


@dataclass(frozen=True, slots=True)
class Line:
    """One direction of a link: a quadratic curve from 1 to 2 with control point c."""

    x1: float
    y1: float
    cx: float
    cy: float
    x2: float
    y2: float

    @property
    def length(self) -> float:
        """End to end."""
        return math.hypot(self.x2 - self.x1, self.y2 - self.y1)

    def at(self, t: float) -> tuple[float, float]:
        """The point at share ``t`` of the curve's parameter."""
        a, b, c = (1 - t) ** 2, 2 * t * (1 - t), t * t
        return a * self.x1 + b * self.cx + c * self.x2, a * self.y1 + b * self.cy + c * self.y2

    def heading(self, t: float) -> tuple[float, float]:
        """The unit vector along the curve at ``t``."""
        dx = (1 - t) * (self.cx - self.x1) + t * (self.x2 - self.cx)
        dy = (1 - t) * (self.cy - self.y1) + t * (self.y2 - self.cy)
        size = math.hypot(dx, dy) or 1.0
        return dx / size, dy / size


@dataclass(frozen=True, slots=True)
class Frame:
    """A labelled frame around the parts of a server."""

    label: str
    x: float
    y: float
    w: float
    h: float


@dataclass(frozen=True, slots=True)
class Arrangement:
    """A picture before it has colours. ``boxes`` by node and ``lines`` by (source, destination) hold what is drawn; ``left_out``
    counts what is not, by kind (``server``, ``gpu``, ``switch``, ``cpu``)."""

    height: float
    boxes: Mapping[str, Box]
    lines: Mapping[tuple[str, str], Line]
    frames: tuple[Frame, ...] = ()
    rows: tuple[tuple[str, float], ...] = ()
    """Names of rows at the left edge, where boxes are too narrow for them."""
    left_out: Mapping[str, int] | None = None


def fits(label: str, width: float, font: float = FONT) -> bool:
    """Whether a label of Latin letters has room."""
    return len(label) * 0.57 * font <= width


def gpu_label(number: int, width: float, most: int) -> str:
    """``GPU 3``, or ``3``, or nothing, as there is room for all up to ``most``."""
    return f"GPU {number}" if fits(f"GPU {most}", width) else str(number) if fits(str(most), width) else ""


def extent(boxes: Mapping[str, Box], lines: Mapping[tuple[str, str], Line]) -> tuple[float, float]:
    """The highest and the lowest point drawn."""
    tops = [*(box.y - box.h / 2 for box in boxes.values()), *(line.at(0.5)[1] for line in lines.values())]
    bottoms = [*(box.y + box.h / 2 for box in boxes.values()), *(line.at(0.5)[1] for line in lines.values())]
    return min(tops), max(bottoms)


def settle(boxes: Mapping[str, Box], lines: Mapping[tuple[str, str], Line]) -> Arrangement:
    """Moved up or down so that the highest point is a margin below the edge."""
    top, bottom = extent(boxes, lines)
    up = top - MARGIN
    moved = {name: replace(box, y=box.y - up) for name, box in boxes.items()}
    bent = {pair: replace(line, y1=line.y1 - up, cy=line.cy - up, y2=line.y2 - up) for pair, line in lines.items()}
    return Arrangement(bottom - up + MARGIN, moved, bent)


def straight(x1: float, y1: float, x2: float, y2: float, bow: tuple[float, float] = (0.0, 0.0), gap: float = GAP) -> Line:
    """A line moved half a gap to the right of its direction; ``bow`` moves its control point."""
    size = math.hypot(x2 - x1, y2 - y1) or 1.0
    ox, oy = -(y2 - y1) / size * gap / 2, (x2 - x1) / size * gap / 2
    return Line(x1 + ox, y1 + oy, (x1 + x2) / 2 + ox + bow[0], (y1 + y2) / 2 + oy + bow[1], x2 + ox, y2 + oy)
