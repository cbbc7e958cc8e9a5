"""Where places stand in a picture of a schedule: derived from who sends to whom, never from an algorithm's name."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, replace
from typing import Literal

import networkx as nx
import numpy as np

from algorithms.schedule import Op, Schedule

Point = tuple[float, float]
Kind = Literal["circle", "path", "hub", "tree"]

WIDTH, HEIGHT = 850.0, 400.0
"""Room for the places in the 1200-wide picture; the rest of the width is the log."""
CARD_CELLS = 16
DIGIT, ROW, NAME, TITLE = 10.6, 27.0, 74.0, 25.0  # px of the player's 20 px text: a digit, a row of cells, "GPU 15", its line


@dataclass(frozen=True, slots=True)
class Card:
    """Size [px] of a place with its cells, before ``scale``. ``short``: there is only room for its number, not for "GPU 3";
    ``inline``: the cells stand beside the name, not below it."""

    width: float
    height: float
    columns: int
    cell: float
    short: bool
    inline: bool = False
    scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Panel:
    """A part of the picture: the chunks it shows and, per place it shows, the centre in 0..1 of the room that is left when a
    card's size is taken off."""

    chunks: tuple[int, ...]
    at: dict[int, Point]
    edges: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Picture:
    """``matrix``: too many cells for cards; places are dots, and their cells rows of a table beside them."""

    kind: Kind
    matrix: bool
    card: Card
    panels: tuple[Panel, ...]


def neighbours_only(s: Schedule) -> bool:
    """Every send goes to the next or the previous rank, so that a ring of cables serves without a detour."""
    away = (s.dst - s.src) % s.nranks
    return not s.in_network and bool(np.isin(away, (0, 1, s.nranks - 1)).all())


def picture(s: Schedule) -> Picture:
    """A circle for rings, rows and exchanges; one place amid the others if all deal with it alone; levels for one or two trees."""
    graphs = _graphs(s)
    trees = [_tree_root(s, chunks, graph) for chunks, graph in graphs]
    whole = nx.compose_all([graph for _, graph in graphs])
    hub = max(whole.nodes, key=lambda p: whole.degree(p))
    star = len(graphs) == 1 and trees[0] == hub and whole.degree(hub) == s.places - 1 and (s.places > 3 or s.in_network)
    path = not star and neighbours_only(s) and nx.is_tree(whole) and whole.degree(hub) <= 2
    everything = tuple(range(s.nchunks))
    if not star and not path and len(graphs) <= 2 and all(root is not None for root in trees):
        spots = [(chunks, graph, _levels(graph, root)) for (chunks, graph), root in zip(graphs, trees, strict=True) if root is not None]
        slot = (WIDTH / len(spots) - 14) / max(_widest(at) for _, _, at in spots)
        card = _narrow(_card(s, max(len(chunks) for chunks, _, _ in spots)), slot - 7)
        panels = tuple(Panel(chunks, at, tuple(graph.edges)) for chunks, graph, at in spots)
        return Picture("tree", max(len(chunks) for chunks, _, _ in spots) > CARD_CELLS, card, panels)
    card = _card(s, s.nchunks)
    matrix = s.nchunks > CARD_CELLS or (s.nranks > 8 and s.nchunks > 2)
    middle = [hub] if star and not s.in_network else list(range(s.nranks, s.places))
    around = [p for p in range(s.places) if p not in middle]
    if not matrix:
        card = _grown(card, s.places)
    at = _around(around, 48, 48, 460, 0.7) if matrix else _around(around, card.width * card.scale, card.height * card.scale, WIDTH, 0.5)
    beside = matrix or (WIDTH - card.width * card.scale) / (len(middle) + 1) > card.width * card.scale
    for i, place in enumerate(middle):  # side by side, or one above the other where cards are wide
        part = (i + 1) / (len(middle) + 1)
        at[place] = (part, 0.5) if beside else (0.5, part)
    edges = tuple(whole.edges) if star or neighbours_only(s) else ()
    return Picture("hub" if star else "path" if path else "circle", matrix, card, (Panel(everything, at, edges),))


def _graphs(s: Schedule) -> list[tuple[tuple[int, ...], nx.Graph[int]]]:
    """Chunks whose sends join the same pairs of places, and the graph of those pairs."""
    pairs: dict[int, set[tuple[int, int]]] = defaultdict(set)
    columns = (s.src, s.dst, s.chunk, s.dst_chunk, s.count)
    for src, dst, chunk, into, count in zip(*(column.tolist() for column in columns), strict=True):
        for touched in (*range(chunk, chunk + count), *range(into, into + count)):
            pairs[touched].add((min(src, dst), max(src, dst)))
    groups: dict[frozenset[tuple[int, int]], list[int]] = defaultdict(list)
    for touched in sorted(pairs):
        groups[frozenset(pairs[touched])].append(touched)
    return [(tuple(chunks), nx.Graph(sorted(e for e in edges if e[0] != e[1]))) for edges, chunks in groups.items()]


def _tree_root(s: Schedule, chunks: tuple[int, ...], graph: nx.Graph[int]) -> int | None:
    """The place that gives no sum away and receives no result, if the graph spans all places as a tree."""
    if graph.number_of_nodes() != s.places or not nx.is_tree(graph):
        return None
    mine = np.isin(s.chunk, chunks)
    below = set(s.src[mine & (s.op == Op.REDUCE)].tolist()) | set(s.dst[mine & (s.op == Op.COPY)].tolist())
    roots = [p for p in graph.nodes if p not in below]
    return roots[0] if len(roots) == 1 else None


def _levels(tree: nx.Graph[int], root: int) -> dict[int, Point]:
    """Leaves side by side, parents above the middle of their children."""
    depth = nx.single_source_shortest_path_length(tree, root)
    column: dict[int, float] = {}
    leaves = 0
    for place in nx.dfs_postorder_nodes(tree, root, sort_neighbors=sorted):
        below = [column[c] for c in tree.neighbors(place) if depth[c] > depth[place]]
        column[place] = (min(below) + max(below)) / 2 if below else float(leaves)
        leaves += not below
    across, down = max(1, leaves - 1), max(1, *depth.values())
    return {p: (column[p] / across if leaves > 1 else 0.5, depth[p] / down) for p in tree.nodes}


def _widest(at: dict[int, Point]) -> float:
    """How many cards must fit side by side: the room over the least distance within a level."""
    rows: dict[float, list[float]] = defaultdict(list)
    for x, y in at.values():
        rows[y].append(x)
    gaps = [b - a for row in rows.values() for a, b in zip(sorted(row)[:-1], sorted(row)[1:], strict=True)]
    return 1 + 1 / min(gaps, default=1.0)


def _around(places: list[int], width: float, height: float, room: float, power: float) -> dict[int, Point]:
    """Evenly along a rounded rectangle (power 1: an ellipse), clockwise from the top, in units of a card: wide cards get wide
    distances."""
    turn = np.linspace(0, 2 * math.pi, 4001)
    x = np.sign(np.sin(turn)) * np.abs(np.sin(turn)) ** power
    y = -np.sign(np.cos(turn)) * np.abs(np.cos(turn)) ** power
    across, down = (room - width) / (width + 30), (HEIGHT - height) / (height + 30)
    along = np.concatenate([[0], np.cumsum(np.hypot(np.diff(x) * across, np.diff(y) * down))])
    start = 0.75 if len(places) == 2 else 0.0  # two places stand side by side
    stops = (np.arange(len(places)) / len(places) + start) % 1 * along[-1]
    across_at, down_at = (np.interp(stops, along, axis) / 2 + 0.5 for axis in (x, y))
    return dict(zip(places, zip(across_at.tolist(), down_at.tolist(), strict=True), strict=True))


def _card(s: Schedule, cells: int) -> Card:
    digits = len(str(s.nranks * (s.nranks + 1) // 2)) if s.collective.reduces else len(str(s.nranks))
    cell = max(25.0, DIGIT * digits + 6)
    columns = cells if cells <= 8 else math.ceil(cells / 2)
    return Card(max(NAME, columns * cell + 10), TITLE + 5 + math.ceil(cells / columns) * ROW, columns, cell, short=False)


def _narrow(card: Card, room: float) -> Card:
    """The card of a tree, where height is scarce and a level may be crowded: name and cells in one line if they fit."""
    cells = card.columns * card.cell + 6
    for name, short in ((NAME - 12, False), (30.0, True)):
        if card.columns <= 2 and name + cells <= room:
            return replace(card, width=name + cells, height=ROW + 8, short=short, inline=True)
    return replace(card, width=max(min(card.width, room), cells - 4), short=room < NAME)


def _grown(card: Card, places: int) -> Card:
    """Few places: larger cards."""
    most, width, height = (1.7, 250, 110) if places <= 4 else (1.35, 215, 85)
    return replace(card, scale=max(1.0, min(most, width / card.width, height / card.height))) if places <= 6 else card
