"""The picture of a topology: every registered one, by what it draws and says."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import combinations

import pytest

from sim.result import LinkLoad
from sim.simulate import run_collective
from topologies import Link, Node, Topology, make, names
from topologies.graph import both_ways
from views.topology_layout import arrange, grid_dims
from views.topology_parts import FONT, WIDTH, Box, fits
from views.topology_picture import CIVIDIS, DARK, LIGHT, colour, result_svg, topology_svg

SVG = "{http://www.w3.org/2000/svg}"
SHOWN = 1000 / WIDTH
"""The narrowest that the page shows the picture, over its own width."""


def overlap(a: Box, b: Box) -> bool:
    return abs(a.x - b.x) < (a.w + b.w) / 2 - 0.1 and abs(a.y - b.y) < (a.h + b.h) / 2 - 0.1


CASES = [
    *((name, {}) for name in names()),
    ("dgx-h100", {"nodes": 2}), ("dgx-a100", {"nodes": 4}), ("dgx-1v", {"nodes": 3}), ("dgx-h100", {"nodes": 8}),
    ("dgx-a100", {"gpus": 1, "nodes": 3}), ("dgx-h100", {"nodes": 40}), ("torus", {"dims": "4x4x4"}), ("torus", {"dims": "2x3x2x2"}),
    ("ring", {"gpus": 64}), ("ring", {"gpus": 2}), ("ring", {"gpus": 300}), ("star", {"gpus": 200}), ("line", {"gpus": 40}),
    ("full-mesh", {"gpus": 16}), ("fat-tree", {"k": 8}), ("leaf-spine", {"leaves": 1, "gpus_per_leaf": 100}),
    ("rail-optimised", {"nodes": 8, "unit": 2}),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params"), CASES, ids=lambda value: str(value))
def test_every_topology_is_drawn_inside_the_picture_without_overlap(name: str, params: dict[str, int | str]) -> None:
    topology = make(name, params)
    plan = arrange(topology)
    assert any(topology.node(box).kind == "gpu" for box in plan.boxes)
    for box in plan.boxes.values():
        assert box.x - box.w / 2 >= 0
        assert box.x + box.w / 2 <= WIDTH
        assert box.y - box.h / 2 >= 0
        assert box.y + box.h / 2 <= plan.height
        assert not box.label or fits(box.label, box.w + 8)
    assert not [pair for pair in combinations(plan.boxes.values(), 2) if overlap(*pair)]
    drawn = {pair for pair in topology.graph.edges if pair[0] in plan.boxes and pair[1] in plan.boxes}
    assert set(plan.lines) == drawn
    missing = len(topology.graph) - len(plan.boxes)
    assert bool(missing) == bool(plan.left_out)
    root = ET.fromstring(topology_svg(topology, lang="ko"))
    assert root.find(f"{SVG}title") is not None
    assert all(float(text.attrib["font-size"]) * SHOWN >= 12 for text in root.iter(f"{SVG}text"))
    assert FONT * SHOWN >= 12


def test_what_is_left_out_is_said_and_the_busiest_servers_stay() -> None:
    topology = make("dgx-h100", {"nodes": 40})
    busy = {("s37.gpu0", "s37.nvswitch"): 1.0, ("s37.gpu1", "s37.nvswitch"): 0.5}
    plan = arrange(topology, busy)
    assert "s37.gpu0" in plan.boxes
    assert "s39.gpu0" not in plan.boxes
    assert plan.left_out == {"server": 32, "gpu": 256, "cpu": 80}
    assert "32 servers, none busier" in topology_svg(topology)


def test_grids_are_known_by_their_cables_not_their_name() -> None:
    torus = make("torus", {"dims": "3x5"})
    renamed = Topology.build("x", torus.nodes, torus.links)
    assert grid_dims(renamed) == (3, 5)
    assert grid_dims(make("torus", {"dims": "3x4x5"})) == (3, 4, 5)
    assert grid_dims(make("full-mesh", {"gpus": 12})) is None
    plan = arrange(renamed)
    assert len({round(box.y) for box in plan.boxes.values()}) == 3
    assert len({round(box.x) for box in plan.boxes.values()}) == 5


def test_lines_have_the_colour_of_their_load_and_the_busiest_is_marked_and_named() -> None:
    topology = make("ring", {"gpus": 4})
    loads = [LinkLoad("gpu2", "gpu3", 500, 0.8), LinkLoad("gpu0", "gpu1", 100, 0.2)]
    root = ET.fromstring(topology_svg(topology, loads, 1.0))
    strokes = {path.find(f"{SVG}title").text.split(":")[0]: path.attrib["stroke"] for path in root.iter(f"{SVG}path")}  # type: ignore[union-attr]
    assert strokes["gpu2 → gpu3"] == colour(0.8, LIGHT.scale)
    assert strokes["gpu0 → gpu1"] == colour(0.2, LIGHT.scale)
    assert strokes["gpu1 → gpu2"] == LIGHT.idle
    assert len(root.findall(f".//{SVG}circle[@class='mark']")) == 1
    said = root.find(f"{SVG}desc").text or ""  # type: ignore[union-attr]
    assert "gpu2 → gpu3" in said
    assert "80 %" in said
    assert "more are as busy" not in said


def test_ties_of_the_busiest_are_counted() -> None:
    said = result_svg(run_collective(make("ring", {"gpus": 5}), "all-reduce", "ring", 5 * 2**20))
    assert "4 more are as busy" in said


def luminance(code: str) -> float:
    parts = [int(code[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(a: str, b: str) -> float:
    high, low = sorted((luminance(a), luminance(b)), reverse=True)
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("paint", [LIGHT, DARK])
def test_busier_is_farther_from_the_background_and_text_is_readable(paint: object) -> None:
    assert isinstance(paint, type(LIGHT))
    away = [contrast(colour(k / 20, paint.scale), paint.paper) for k in range(21)]
    assert away == sorted(away)
    assert away[-1] > 7
    assert all(contrast(paint.text, fill) >= 7 for fill in paint.fills.values())
    assert contrast(paint.text, paint.paper) >= 7
    assert contrast(paint.faint, paint.paper) >= 4.5
    assert contrast(paint.paper, paint.mark) >= 4.5


def test_the_same_input_gives_the_same_text_and_each_theme_its_own() -> None:
    def once(dark: bool) -> str:
        return result_svg(run_collective(make("dgx-a100", {"nodes": 2}), "all-reduce", "ring", 2**20), dark=dark)

    assert once(False) == once(False)
    assert once(False) != once(True)
    assert CIVIDIS[-1] in once(True)


@pytest.mark.parametrize("name", ['<script>alert("x")</script>', "a&b", "\x00\x07", "한글", "'\"]]>", "x" * 500])
def test_hostile_names_are_text(name: str) -> None:
    links = both_ways(Link(name, "b", 'evil"<kind>', 1, 1e9, 0.0))
    topology = Topology.build(name, [Node(name, "gpu"), Node("b", "gpu")], links)
    root = ET.fromstring(topology_svg(topology, [LinkLoad(name, "b", 1, 0.5)], 1.0))
    assert not list(root.iter(f"{SVG}script"))
    assert not [key for element in root.iter() for key in element.attrib if key.startswith("on")]
