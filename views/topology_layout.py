"""Where the nodes of a topology stand in a picture: a circle, a row, a grid, or the tiers of a cluster; by role, never by name."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from topologies.graph import Topology
from views.topology_parts import GAP, MARGIN, WIDTH, Arrangement, Box, Line, gpu_label, settle, straight
from views.topology_tiers import tiers

LABELLED = 64
"""GPUs on one circle or grid that still get a number each."""


def arrange(topology: Topology, busy: Mapping[tuple[str, str], float] | None = None) -> Arrangement:
    """Boxes and lines, the same for the same topology. ``busy`` (any measure by directed link) chooses the servers and
    switches that are drawn where not all have room."""
    nodes = topology.nodes
    switches = [node.name for node in nodes if node.kind != "gpu"]
    if any(node.server is not None for node in nodes) or len(switches) > 1:
        return tiers(topology, busy or {})
    if switches:
        hub = switches[0]
        return _circle(topology, list(topology.gpus), hub)
    around = _cycle(topology)
    if around and len(around) == len(topology.gpus):
        ends = [gpu for gpu in around if topology.graph.out_degree(gpu) < 2]
        return _row(topology, around) if ends else _circle(topology, around)
    dims = grid_dims(topology)
    return _grid(topology, dims) if dims else _circle(topology, list(topology.gpus))


def grid_dims(topology: Topology) -> tuple[int, ...] | None:
    """The dimensions (2 or 3, all above 1) of the row-major grid, wrapped or not, whose cables these are; None if there is none."""
    n = len(topology.gpus)
    rank = {gpu: r for r, gpu in enumerate(topology.gpus)}
    pairs = [(rank[link.src], rank[link.dst]) for link in topology.links]
    divisors = [d for d in range(2, n // 2 + 1) if n % d == 0]
    two: list[tuple[int, ...]] = [(a, n // a) for a in divisors]
    three: list[tuple[int, ...]] = [(a, b, n // a // b) for a in divisors for b in divisors if n % (a * b) == 0 and n // a // b > 1]
    # The squarest first: a 4x4 torus is also a part of others with longer wraps.
    for dims in sorted(two + three, key=lambda dims: (max(dims) - min(dims), len(dims), dims)):
        if len(pairs) >= 2 * sum(n - n // d for d in dims) and all(_neighbours(a, b, dims) for a, b in pairs):
            return dims
    return None


def _position(rank: int, dims: Sequence[int]) -> list[int]:
    place = []
    for size in reversed(dims):
        rank, at = divmod(rank, size)
        place.append(at)
    return place[::-1]


def _neighbours(a: int, b: int, dims: Sequence[int]) -> bool:
    apart = [(abs(p - q), size) for p, q, size in zip(_position(a, dims), _position(b, dims), dims, strict=True) if p != q]
    return len(apart) == 1 and apart[0][0] in (1, apart[0][1] - 1)


def _cycle(topology: Topology) -> list[str] | None:
    """GPUs along the one cycle or path that all cables form, from the end of a path or from rank 0."""
    graph = topology.graph
    if any(graph.out_degree(gpu) > 2 for gpu in topology.gpus):
        return None
    here = next((gpu for gpu in topology.gpus if graph.out_degree(gpu) < 2), topology.gpus[0])
    order = [here]
    seen = {here}
    while following := [other for other in graph.successors(here) if other not in seen]:
        here = following[0]
        order.append(here)
        seen.add(here)
    return order


def _circle(topology: Topology, order: Sequence[str], hub: str = "") -> Arrangement:
    n = len(order)
    radius = 250.0 if n <= 32 else 300.0
    room = 2 * radius * math.sin(math.pi / n)
    width, height = min(88.0, 0.8 * room), min(38.0, 0.59 * room)  # 0.8 and 0.6 as cosine and sine: neighbours never overlap
    middle_y = MARGIN + radius + height / 2
    boxes = {}
    for i, gpu in enumerate(order):
        angle = 2 * math.pi * i / n - math.pi / 2
        x, y = WIDTH / 2 + radius * math.cos(angle), middle_y + radius * math.sin(angle)
        boxes[gpu] = Box(gpu_label(topology.gpus.index(gpu), width, n - 1) if n <= LABELLED else "", "gpu", x, y, width, height)
    if hub:
        boxes[hub] = Box("Switch", topology.node(hub).kind, WIDTH / 2, middle_y, 130.0, 64.0)
    return settle(boxes, _lines(topology, boxes))


def _row(topology: Topology, order: Sequence[str]) -> Arrangement:
    """To and fro where one row has no room."""
    columns = min(len(order), 10)
    dx, dy = (WIDTH - 2 * MARGIN) / columns, 84.0
    boxes = {}
    for i, gpu in enumerate(order):
        row, column = divmod(i, columns)
        column = columns - 1 - column if row % 2 else column
        width = min(88.0, 0.6 * dx)
        label = gpu_label(topology.gpus.index(gpu), width, len(order) - 1)
        boxes[gpu] = Box(label, "gpu", MARGIN + dx * (column + 0.5), MARGIN + dy * (row + 0.5), width, 38.0)
    return settle(boxes, _lines(topology, boxes))


def _grid(topology: Topology, dims: Sequence[int]) -> Arrangement:
    """Two dimensions as rows and columns; a third as planes behind one another. Wrap-around cables bow around the row."""
    planes, rows, columns = (1, *dims) if len(dims) == 2 else dims
    dx, dy = min(190.0, (WIDTH - 2 * MARGIN) / columns), max(70.0, min(150.0 if planes == 1 else 190.0, 620.0 / rows))
    back_x, back_y = (0.0, 0.0) if planes == 1 else (0.74 * dx / planes, 0.7 * dy / planes)
    left = (WIDTH - (columns - 1) * dx - (planes - 1) * back_x) / 2
    top = MARGIN + 0.6 * dy + (planes - 1) * back_y
    width = min(88.0, 0.5 * dx) if planes == 1 else min(40.0, 0.9 * back_x)
    height = 36.0 if planes == 1 else min(26.0, 0.9 * back_y)
    boxes, bows = {}, {}
    labelled = len(topology.gpus) <= 2 * LABELLED
    place = {gpu: _position(rank, (planes, rows, columns)) for rank, gpu in enumerate(topology.gpus)}
    for rank, gpu in enumerate(topology.gpus):
        plane, row, column = place[gpu]
        label = gpu_label(rank, width, len(topology.gpus) - 1) if labelled else ""
        boxes[gpu] = Box(label, "gpu", left + column * dx + plane * back_x, top + row * dy - plane * back_y, width, height)
    for link in topology.links:
        apart = [q - p for p, q in zip(place[link.src], place[link.dst], strict=True)]
        axis = next(i for i, d in enumerate(apart) if d)
        if abs(apart[axis]) > 1:
            bows[link.src, link.dst] = {0: (0.35 * back_x, 0.9 * dy / planes), 1: (0.84 * dx, 0.0), 2: (0.0, -0.84 * dy)}[axis]
    return settle(boxes, _lines(topology, boxes, bows))


def _lines(
    topology: Topology, boxes: Mapping[str, Box], bows: Mapping[tuple[str, str], tuple[float, float]] | None = None
) -> dict[tuple[str, str], Line]:
    """Centre to centre, each direction on its right-hand side; a bow moves the control point."""
    lines = {}
    for link in topology.links:
        a, b = boxes[link.src], boxes[link.dst]
        bow = (bows or {}).get((link.src, link.dst), (0.0, 0.0))
        lines[link.src, link.dst] = straight(a.x, a.y, b.x, b.y, bow, GAP)
    return lines
