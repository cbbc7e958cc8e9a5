"""Clusters in tiers: spines above leaves above servers, and in a server NICs above PCIe switches above GPUs above NVSwitches."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from topologies.graph import Topology
from views.topology_parts import GAP, MARGIN, NARROW_GAP, WIDTH, Arrangement, Box, Frame, Line, extent, fits, gpu_label, straight

COLUMNS = 64
"""GPUs side by side; servers beyond are left out, the least busy first."""
SWITCHES = 24
"""Switches of a tier side by side."""
GUTTER, SPACE = 80.0, 14.0
NAMES = {"gpu": "GPU", "nic": "NIC", "pcie": "PCIe", "cpu": "CPU", "nvswitch": "NVSwitch"}
HEIGHTS = {"gpu": 34.0, "nic": 28.0, "pcie": 26.0, "cpu": 28.0, "nvswitch": 30.0, "switch": 34.0}

Spans = dict[str, tuple[float, float]]


def tiers(topology: Topology, busy: Mapping[tuple[str, str], float]) -> Arrangement:
    """Servers (or GPUs of one leaf) side by side under the switches of the network."""
    load: dict[str, float] = defaultdict(float)
    for (src, dst), share in busy.items():
        load[src], load[dst] = max(load[src], share), max(load[dst], share)
    blocks = _blocks(topology)
    shown = _chosen(blocks, topology, load)
    with_cpu = len(blocks) == 1
    inside = [kind for kind in ("cpu", "nic", "pcie", "gpu", "nvswitch") if kind != "cpu" or with_cpu]
    spans, frames = _columns(topology, [blocks[i] for i in shown], shown)
    network, levels = _network(topology, {node for i in shown for node in blocks[i]}, load)
    present = [kind for kind in inside if any(topology.node(name).kind == kind for name in spans)]
    rows, heights = _rows(levels, present)
    boxes = dict(_boxes(topology, spans, network, heights, inside))
    lines = {(a, b): _line(boxes[a], boxes[b], with_cpu) for a, b in topology.graph.edges if a in boxes and b in boxes}
    bottom = extent(boxes, lines)[1]
    if frames:
        top = min(heights[kind] for kind in present) - 30
        bottom += 40 if frames[0].label else 14
        frames = [replace(frame, y=top, h=bottom - top) for frame in frames]
    left_out = {"server" if frames else "group": len(blocks) - len(shown)}
    left_out["gpu"] = sum(gpu not in boxes for gpu in topology.gpus)
    left_out["switch"] = sum(node.kind == "switch" and node.server is None and node.name not in boxes for node in topology.nodes)
    left_out["cpu"] = 0 if with_cpu else sum(node.kind == "cpu" for node in topology.nodes)
    return Arrangement(bottom + MARGIN, boxes, lines, tuple(frames), tuple(rows), {kind: n for kind, n in left_out.items() if n})


def _blocks(topology: Topology) -> list[list[str]]:
    """Nodes by server; without servers, GPUs by the first switch they are cabled to."""
    blocks: dict[object, list[str]] = defaultdict(list)
    for node in topology.nodes:
        if node.server is not None:
            blocks[node.server].append(node.name)
        elif node.kind not in ("switch", "nvswitch"):
            above = (other for other in topology.graph.successors(node.name) if topology.node(other).kind == "switch")
            blocks[next(above, "")].append(node.name)
    return list(blocks.values())


def _gpus(topology: Topology, names: Iterable[str]) -> list[str]:
    return [name for name in names if topology.node(name).kind == "gpu"]


def _chosen(blocks: Sequence[Sequence[str]], topology: Topology, load: Mapping[str, float]) -> list[int]:
    room, chosen = COLUMNS, list[int]()
    for i in sorted(range(len(blocks)), key=lambda i: (-max(load.get(name, 0.0) for name in blocks[i]), i)):
        width = max(1, len(_gpus(topology, blocks[i])))
        if width <= room or not chosen:
            chosen.append(i)
            room -= width
    return sorted(chosen)


def _columns(topology: Topology, blocks: Sequence[Sequence[str]], numbers: Sequence[int]) -> tuple[Spans, list[Frame]]:
    """From left to right what of the picture's width each node of the servers takes."""
    counts = [min(COLUMNS, max(1, len(_gpus(topology, block)))) for block in blocks]
    gutter = 0.0 if sum(counts) <= 12 else GUTTER  # few enough for every box to carry its full name
    column = min(150.0, (WIDTH - 2 * MARGIN - gutter - SPACE * (len(blocks) + 1)) / sum(counts))
    left = MARGIN + gutter + (WIDTH - 2 * MARGIN - gutter - column * sum(counts) - SPACE * (len(blocks) - 1)) / 2
    spans: Spans = {}
    frames = []
    for block, count, number in zip(blocks, counts, numbers, strict=True):
        gpus = _gpus(topology, block)[:count]
        mine: Spans = {gpu: (left + i * column, left + (i + 1) * column) for i, gpu in enumerate(gpus)}
        for kind, onto in (("nvswitch", ("gpu",)), ("pcie", ("gpu",)), ("cpu", ("pcie",)), ("nic", ("pcie", "gpu"))):
            _spread(topology, block, kind, onto, mine, (left, left + count * column))
        spans |= mine
        if any(topology.node(name).server is not None for name in block):
            label = f"server {number}" if fits(f"server {number}", count * column) else str(number)
            frames.append(Frame(label if len(blocks) > 1 else "", left - SPACE / 2 + 1, 0, count * column + SPACE - 2, 0))
        left += count * column + SPACE
    shared = [node.name for node in topology.nodes if node.kind == "nvswitch" and node.server is None]
    ends = [end for span in spans.values() for end in span]
    for i, name in enumerate(shared):  # an NVSwitch of several servers lies below them all
        part = (max(ends) - min(ends)) / len(shared)
        spans[name] = (min(ends) + i * part, min(ends) + (i + 1) * part)
    return spans, frames


def _spread(topology: Topology, block: Iterable[str], kind: str, onto: Sequence[str], spans: Spans, whole: tuple[float, float]) -> None:
    """Give the nodes of a kind the width of the neighbours they hang on; those on the same neighbours share it."""
    by: dict[tuple[float, float], list[str]] = defaultdict(list)
    for name in (name for name in block if topology.node(name).kind == kind):
        beside = [spans[other] for other in topology.graph.successors(name) if other in spans and topology.node(other).kind in onto]
        by[(min(a for a, _ in beside), max(b for _, b in beside)) if beside else whole].append(name)
    for (a, b), names in by.items():
        for i, name in enumerate(names):
            spans[name] = (a + (b - a) * i / len(names), a + (b - a) * (i + 1) / len(names))


def _network(topology: Topology, below: set[str], load: Mapping[str, float]) -> tuple[dict[str, int], list[int]]:
    """Shown switches of the network with their tier (1 is next to the servers), and the tiers there are, highest first."""
    tier = {node.name: 0 for node in topology.nodes if node.kind != "switch" or node.server is not None}
    front, level = list(tier), 0
    while front:
        level += 1
        front = [other for name in front for other in topology.graph.successors(name) if tier.setdefault(other, level) == level]
        front = list(dict.fromkeys(front))
    shown: dict[str, int] = {}
    for level in range(1, max(tier.values(), default=0) + 1):
        mine = [node.name for node in topology.nodes if tier.get(node.name) == level]
        order = {name: i for i, name in enumerate(mine)}
        near = {name: any(other in below for other in topology.graph.successors(name)) for name in mine}
        kept = sorted(mine, key=lambda name: (not near[name], -load.get(name, 0.0), order[name]))[:SWITCHES]
        shown |= dict.fromkeys(sorted(kept, key=order.__getitem__), level)
    return shown, sorted(set(shown.values()), reverse=True)


def _rows(levels: Sequence[int], inside: Sequence[str]) -> tuple[list[tuple[str, float]], dict[str, float]]:
    """Names of the rows and their height in the picture."""
    y = MARGIN + 20
    heights: dict[str, float] = {}
    for level in levels:
        heights[f"switch{level}"] = y
        y += 128
    rows = []
    for kind in inside:
        heights[kind] = y
        rows.append((NAMES[kind], y))
        y += {"nic": 66, "cpu": 84, "pcie": 78, "gpu": 88, "nvswitch": 60}[kind]
    return rows, heights


def _boxes(
    topology: Topology, spans: Spans, network: Mapping[str, int], heights: Mapping[str, float], inside: Sequence[str]
) -> Iterable[tuple[str, Box]]:
    counted: dict[tuple[object, str], int] = defaultdict(int)
    servers = {node.server for node in topology.nodes if node.kind == "gpu"}
    most = max((len(topology.gpus) if None in servers else -(-len(topology.gpus) // len(servers))) - 1, 0)
    for name in topology.graph:  # in the order of the topology, so that labels count up
        node = topology.node(name)
        number = counted[node.server, node.kind]
        counted[node.server, node.kind] += 1
        if name in spans and node.kind in inside:
            a, b = spans[name]
            width = _width(node.kind, b - a)
            rank = topology.gpus.index(name) if node.kind == "gpu" and node.server is None else number
            yield name, Box(_label(node.kind, rank, width, most), node.kind, (a + b) / 2, heights[node.kind], width, HEIGHTS[node.kind])
    for level in sorted(set(network.values())):
        mine = [name for name in network if network[name] == level]
        room = (WIDTH - 2 * MARGIN - GUTTER) / len(mine)
        for i, name in enumerate(mine):
            width = min(120.0, 0.84 * room)
            short = name.rpartition(".")[2]
            label = next((said for said in (name, short, short.lstrip("abcdefghijklmnopqrstuvwxyz")) if fits(said, width)), "")
            yield name, Box(label, "switch", MARGIN + GUTTER + room * (i + 0.5), heights[f"switch{level}"], width, HEIGHTS["switch"])


def _width(kind: str, room: float) -> float:
    if kind == "cpu":
        return room - 40  # the link between two of them shows
    if kind in ("pcie", "nvswitch"):
        return max(room - 5, 0.9 * room)
    return min(96.0, 0.62 * room) if room >= 40 else max(room - 4, 0.8 * room)


def _label(kind: str, number: int, width: float, most: int) -> str:
    if kind == "gpu":
        return gpu_label(number, width, most)
    if kind == "nvswitch":
        return NAMES[kind] if fits(NAMES[kind], width) else ""
    return next((said for said in (f"{NAMES[kind]} {number}", str(number)) if fits(said, width)), "")


def _line(a: Box, b: Box, wide: bool) -> Line:
    """Vertical where two parts of a server overlap, fanned out at switches of the network, an arc between GPUs of a row."""
    gap = GAP if wide or min(a.w, b.w) > 34 else NARROW_GAP
    if a.y == b.y:
        if a.kind == b.kind == "gpu":
            depth = (34.0 if wide else 14.0) + 0.36 * abs(b.x - a.x) * (1.0 if wide else 0.5)
            side = 4.0 if b.x > a.x else -4.0  # the two directions start apart and keep apart
            y = a.y + a.h / 2
            return Line(a.x + side, y, (a.x + b.x) / 2, y + 2 * depth + 2 * side, b.x + side, y)
        left = 1 if a.x < b.x else -1
        return straight(a.x + left * a.w / 2, a.y, b.x - left * b.w / 2, b.y, gap=gap)
    down = 1 if a.y < b.y else -1
    y1, y2 = a.y + down * a.h / 2, b.y - down * b.h / 2
    if "switch" in (a.kind, b.kind):
        return straight(_fan(a, b), y1, _fan(b, a), y2, gap=gap)
    low, high = max(a.x - a.w / 2, b.x - b.w / 2), min(a.x + a.w / 2, b.x + b.w / 2)
    if low > high:
        return straight(a.x, y1, b.x, y2, gap=gap)
    x = high - 12 if "cpu" in (a.kind, b.kind) else (low + high) / 2  # past the NICs
    return straight(x, y1, x, y2, gap=gap)


def _fan(box: Box, other: Box) -> float:
    """Where on a switch the line from ``other`` ends."""
    if box.kind != "switch":
        return box.x
    return box.x + 0.8 * box.w / 2 * (other.x - WIDTH / 2) / (WIDTH / 2)
