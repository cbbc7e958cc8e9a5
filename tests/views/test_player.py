"""The player's payload: moves and words that agree with the schedule, places that do not overlap."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pytest

from algorithms.collectives import ALL_REDUCE, BROADCAST, REDUCE, collective
from algorithms.launch import Trace
from algorithms.registry import Algorithm, catalogue, find
from algorithms.schedule import Op, Schedule
from topologies.errors import ScheduleError
from views.layout import HEIGHT, WIDTH, neighbours_only, picture
from views.phases import phases, step_slices
from views.player import payload, script, style
from views.text import LANGUAGES

CASES = [(a, n) for a in catalogue() for n in (2, 3, 4, 5, 7, 8, 16) if a.refusal(n) is None]


def lockstep(s: Schedule) -> Trace:
    """Every step takes 2 µs, from 1 s on."""
    start = 1.0 + 2e-6 * s.step.astype(float)
    index = np.arange(len(s))
    return Trace(np.zeros(len(s), dtype=np.int64), index, start, start, start + 1e-6, start + 2e-6, s.count, s.src, s.dst)


def built(collective_name: str, name: str, n: int) -> Schedule:
    return find(collective(collective_name), name).build(n)


def run(data: dict[str, Any]) -> list[list[int | None]]:
    """What the browser computes: rank r starts with r + 1; all reads of a step come before its writes."""
    cells: list[list[int | None]] = [
        [p + 1 if p < data["ranks"] and data["holds"][p][c] == "1" else None for c in range(data["chunks"])] for p in range(data["places"])
    ]
    for step in data["steps"]:
        before = [row[:] for row in cells]
        for src, dst, chunk, count, into, op, *_ in step["sends"]:
            for i in range(count):
                got, had = before[src][chunk + i], cells[dst][into + i]
                if got is not None:
                    cells[dst][into + i] = got + had if op == Op.REDUCE and had is not None else got
    return cells


@pytest.mark.parametrize(("algorithm", "n"), CASES, ids=lambda v: f"{v.collective.name}-{v.name}" if isinstance(v, Algorithm) else str(v))
def test_moves_lead_to_what_the_collective_wants(algorithm: Algorithm, n: int) -> None:
    s = algorithm.build(n)
    data = payload(s, lockstep(s), "en")
    wanted = s.collective.expected(n, len(s.weights), s.root)
    cells = run(data)
    for rank, chunk, contributors in zip(wanted.rank, wanted.chunk, wanted.contributors, strict=True):
        assert data["wants"][rank][chunk] == "1"
        if not s.collective.idempotent:
            assert cells[rank][chunk] == int((np.flatnonzero(contributors) + 1).sum())
    assert sum(row.count("1") for row in data["wants"]) == len(wanted.rank)
    assert sum(len(step["sends"]) for step in data["steps"]) == len(s)


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize(("algorithm", "n"), CASES[::5], ids=str)
def test_payload_is_small_plain_json(algorithm: Algorithm, n: int, lang: str) -> None:
    s = algorithm.build(n)
    data = payload(s, lockstep(s), lang)
    assert json.loads(json.dumps(data, allow_nan=False)) == json.loads(json.dumps(data))
    assert len(json.dumps(data)) < 60_000
    assert all(step["phase"] and step["say"] for step in data["steps"])


@pytest.mark.parametrize(("algorithm", "n"), CASES, ids=lambda v: f"{v.collective.name}-{v.name}" if isinstance(v, Algorithm) else str(v))
def test_cards_do_not_overlap(algorithm: Algorithm, n: int) -> None:
    s = algorithm.build(n)
    shown = picture(s)
    width, height = (48.0, 48.0) if shown.matrix else (shown.card.width * shown.card.scale, shown.card.height * shown.card.scale)
    room = 400.0 if shown.matrix else WIDTH
    for panel in shown.panels:
        assert set(panel.at) == set(range(s.places))
        spots = [(x * (room / len(shown.panels) - 14 - width), y * (HEIGHT - 40 - height)) for x, y in panel.at.values()]
        assert all(-1e-6 <= x <= 1 + 1e-6 and -1e-6 <= y <= 1 + 1e-6 for x, y in panel.at.values())
        for (ax, ay), (bx, by) in combinations(spots, 2):
            assert abs(ax - bx) >= width - 1 or abs(ay - by) >= height - 1, (ax, ay, bx, by, width, height)


@pytest.mark.parametrize(
    ("collective_name", "name", "n", "kind"),
    [
        ("all-reduce", "ring", 8, "circle"), ("all-reduce", "ring", 2, "path"), ("all-reduce", "sharp", 8, "hub"),
        ("all-reduce", "parameter-server", 8, "hub"), ("all-reduce", "double-binary-tree", 8, "tree"),
        ("broadcast", "binomial-tree", 16, "tree"), ("broadcast", "chain", 8, "path"),
        ("all-reduce", "recursive-doubling", 8, "circle"), ("all-reduce", "binomial-tree", 4, "tree"),
    ],
)  # fmt: skip
def test_kind_of_picture_follows_the_sends(collective_name: str, name: str, n: int, kind: str) -> None:
    assert picture(built(collective_name, name, n)).kind == kind


def test_double_tree_is_two_panels_with_the_root_on_top() -> None:
    first, second = picture(built("all-reduce", "double-binary-tree", 8)).panels
    assert (first.chunks, second.chunks) == ((0,), (1,))
    assert [p for p, (_, y) in first.at.items() if y == 0] == [0]
    assert [p for p, (_, y) in second.at.items() if y == 0] == [7]


def test_aggregator_stands_in_the_middle() -> None:
    assert picture(built("all-reduce", "sharp", 8)).panels[0].at[8] == (0.5, 0.5)
    assert picture(built("all-reduce", "parameter-server", 8)).panels[0].at[0] == (0.5, 0.5)


def test_many_cells_become_a_table() -> None:
    assert not picture(built("all-reduce", "ring", 8)).matrix
    assert picture(built("all-reduce", "ring", 16)).matrix
    assert not picture(built("all-reduce", "double-binary-tree", 16)).matrix


@pytest.mark.parametrize(
    ("collective_name", "name", "n", "words"),
    [
        ("all-reduce", "ring", 4, ["reduce-scatter"] * 3 + ["all-gather"] * 3),
        ("all-reduce", "double-binary-tree", 4, ["tree-up"] * 2 + ["tree-down"] * 2),
        ("all-reduce", "sharp", 4, ["switch-up", "switch-down"]), ("all-reduce", "parameter-server", 4, ["push", "pull"]),
        ("all-reduce", "recursive-doubling", 5, ["fold", "exchange", "exchange", "unfold"]), ("broadcast", "chain", 4, ["broadcast"] * 3),
        ("reduce", "chain", 4, ["reduce"] * 3), ("broadcast", "binomial-tree", 8, ["tree-down"] * 3),
        ("reduce", "binomial-tree", 8, ["tree-up"] * 3),
    ],
)  # fmt: skip
def test_phases_in_words(collective_name: str, name: str, n: int, words: list[str]) -> None:
    s = built(collective_name, name, n)
    assert [p.name for p in phases(s, picture(s).kind)] == [f"phase.{w}" for w in words]


def test_phases_do_not_depend_on_the_name() -> None:
    s = built("all-reduce", "sharp", 4)
    assert phases(replace(s, name="ring"), picture(s).kind) == phases(s, picture(s).kind)


@pytest.mark.parametrize(
    ("collective_name", "name", "pattern"),
    [("reduce-scatter", "ring", "right"), ("reduce-scatter", "bidirectional-ring", "both"),
     ("all-reduce", "halving-doubling", "pair"), ("all-reduce", "sharded-parameter-server", "direct")],
)  # fmt: skip
def test_sentence_says_who_sends_to_whom(collective_name: str, name: str, pattern: str) -> None:
    s = built(collective_name, name, 8)
    assert phases(s, picture(s).kind)[0].sentence == f"say.reduce-scatter.{pattern}"


def test_clock_counts_microseconds_from_the_first_start() -> None:
    s = built("all-reduce", "ring", 4)
    data = payload(s, lockstep(s), "en")
    assert [step["end"] for step in data["steps"]] == [2.0, 4.0, 6.0, 8.0, 10.0, 12.0]
    assert data["steps"][1]["sends"][0][-2:] == (2.0, 4.0)


def test_trace_rows_may_come_in_any_order_and_with_other_launches() -> None:
    s = built("all-reduce", "ring", 4)
    trace = lockstep(s)
    back = np.arange(len(s))[::-1]
    other = np.concatenate([back, back])
    both = Trace(*(np.asarray(column)[other] for column in (
        trace.launch, trace.send, trace.start, trace.sent, trace.arrived, trace.end, trace.bytes, trace.src, trace.dst,
    )))  # fmt: skip
    both.launch[: len(s)] = 1
    assert payload(s, both, "en") == payload(s, trace, "en")
    assert payload(s, both, "en", launch=1)["steps"] == payload(s, trace, "en")["steps"]


def test_identity_is_the_same_in_every_language_and_differs_by_time() -> None:
    s = built("all-reduce", "ring", 4)
    trace = lockstep(s)
    slower = replace(trace, end=trace.end + 1e-6)
    assert payload(s, trace, "en", note="a")["id"] == payload(s, trace, "ko", note="b")["id"] != payload(s, slower, "en")["id"]


def test_a_trace_of_something_else_is_refused() -> None:
    with pytest.raises(ScheduleError, match="24 sends of launch 0, the schedule 4"):
        payload(built("broadcast", "chain", 5), lockstep(built("all-reduce", "ring", 4)), "en")


def test_too_large_to_follow_is_refused() -> None:
    s = built("broadcast", "binomial-tree", 65)
    with pytest.raises(ScheduleError, match="at most 64 ranks"):
        payload(s, lockstep(s), "en")


def test_steps_without_sends_are_left_out() -> None:
    s = built("all-reduce", "sharded-parameter-server", 2)
    assert s.steps == 3
    assert len(step_slices(s)) == len(payload(s, lockstep(s), "en")["steps"]) == 2


def test_neighbours() -> None:
    assert neighbours_only(built("all-reduce", "ring", 8))
    assert neighbours_only(built("all-reduce", "bidirectional-ring", 8))
    assert not neighbours_only(built("all-reduce", "recursive-doubling", 8))
    assert not neighbours_only(built("all-reduce", "sharp", 2))


def test_rooted_sentences_name_the_root() -> None:
    s = find(BROADCAST, "chain").build(4, root=2)
    data = payload(s, lockstep(s), "en")
    assert "GPU 2" in data["start"]
    assert data["holds"] == ["0", "0", "1", "0"]
    s = find(REDUCE, "chain").build(4, root=1)
    assert payload(s, lockstep(s), "ko")["wants"] == ["0", "1", "0", "0"]


def test_done_names_the_sum() -> None:
    s = find(ALL_REDUCE, "ring").build(8)
    assert "36" in payload(s, lockstep(s), "en")["done"]


def test_script_is_one_module_without_html_injection() -> None:
    code = script()
    assert code.count("export default") == 1
    assert code.count("export ") == 1
    assert "innerHTML" not in code
    assert "http" not in code.replace("http://www.w3.org/2000/svg", "").replace("plain http", "")
    assert "@import" not in style()
    assert "url(" not in style()
