"""Explore without a browser: what the cards, tables and sentences say, the URL as state, errors in one sentence."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from measured_log import all_reduce_log
from streamlit.testing.v1 import AppTest

from algorithms.collectives import COLLECTIVES
from algorithms.registry import catalogue
from prediction.predict import predict, slices_for
from screens.explore_url import usual
from sim.simulate import run_collective
from topologies import format_time, make, names
from views.text import label, table

PAGE = str(Path(__file__).parents[2] / "screens" / "explore.py")
MIB64 = 64 * 2**20


def explore(locale: str = "en-US", **query: str) -> AppTest:
    at = AppTest.from_file(PAGE, default_timeout=110)  # seconds of the clock: less than the limit of a test, whatever else is running
    at.context = {"locale": locale}
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()


def address(at: AppTest) -> dict[str, str]:
    return {key: value if isinstance(value, str) else value[0] for key, value in at.query_params.items()}


def cards(at: AppTest) -> list[str]:
    return [metric.value for metric in at.metric[:5]]


def said(at: AppTest) -> str:
    return " ".join(markdown.value for markdown in at.markdown)


def test_default_shows_the_fastest_on_a_dgx_h100() -> None:
    at = explore()
    assert not at.exception
    assert not at.error
    everyone = predict(make("dgx-h100"), "all-reduce", [MIB64]).rows[0]
    names = {*usual("all-reduce")[0], *(c.algorithm for c in everyone.candidates[:3])}
    row = replace(everyone, candidates=tuple(c for c in everyone.candidates if c.algorithm in names))
    assert row.best == everyone.best
    assert cards(at)[0] == format_time(row.best.time_s)
    assert cards(at)[3] == label("en", "explore.short", row.best.algorithm) == "SHARP"
    (frame,) = at.table
    assert list(frame.value["Algorithm"]) == [label("en", "algorithm", c.algorithm) for c in row.candidates]
    assert list(frame.value["Time"]) == [format_time(c.time_s) for c in row.candidates]
    assert "Limited by bandwidth" in said(at)
    assert address(at) == {"lang": "en"}


def test_the_url_opens_a_scenario_and_keeps_it() -> None:
    query = {"topology": "dgx-a100", "params": "nodes=2,gpus=4", "collective": "all-gather", "size": "1MiB", "algorithm": "ring"}
    query["lang"] = "ko"
    at = explore(**query)
    assert not at.exception
    result = run_collective(make("dgx-a100", {"nodes": 2, "gpus": 4}), "all-gather", "ring", 2**20)
    assert cards(at)[0] == format_time(result.time)
    assert "한계입니다" in said(at)
    assert address(at) == query


def test_the_chosen_algorithm_changes_the_cards_and_small_messages_are_latency() -> None:
    at = explore(algorithm="ring", size="1KiB")
    assert "Limited by latency" in said(at)
    ring = run_collective(make("dgx-h100"), "all-reduce", "ring", 1024)
    assert cards(at)[0] == format_time(ring.time)


def test_moving_the_slider_changes_the_cards_and_the_url() -> None:
    at = explore(topology="ring")
    before = cards(at)
    at.select_slider(key="explore.size").set_value("1GiB").run()
    assert cards(at) != before
    assert address(at)["size"] == "1GiB"
    result = run_collective(make("ring"), "all-reduce", "bidirectional-ring", 2**30)
    assert cards(at)[0] == format_time(result.time)


@pytest.mark.parametrize("collective", ["broadcast", pytest.param("all-reduce", marks=pytest.mark.slow)])  # four times the algorithms
@pytest.mark.parametrize("name", names())
def test_every_topology_is_shown_or_refused_for_its_size(name: str, collective: str) -> None:
    gpus = len(make(name).gpus)
    if 16 < gpus <= 128:
        pytest.skip(f"{gpus} GPUs take long; tests/views draws them")
    at = explore(topology=name, collective=collective)
    assert not at.exception
    assert [f"{gpus:,} GPUs" in error.value for error in at.error] == [True] * (gpus > 128)
    assert len(at.metric) == (5 if gpus <= 128 else 0)


@pytest.mark.parametrize("collective", [name for name in COLLECTIVES if catalogue(COLLECTIVES[name])])
def test_every_collective_is_shown(collective: str) -> None:
    at = explore(topology="star", collective=collective)
    assert not at.exception
    skipped = " ".join(caption.value for caption in at.caption)
    for name in usual(collective)[0]:
        assert label("en", "algorithm", name) in {*at.table[0].value["Algorithm"]} or f"{label('en', 'algorithm', name)}:" in skipped
    assert len(at.table[0].value) >= 1


def test_other_algorithms_are_added_by_hand_and_by_link() -> None:
    other = "one-shot"  # too slow to come in by itself
    assert other in usual("all-reduce")[1]
    at = explore()
    assert other not in {*at.table[0].value["Algorithm"]}
    at.multiselect(key="explore.also").set_value([other]).run()
    assert not at.exception
    assert label("en", "algorithm", other) in {*at.table[0].value["Algorithm"]}
    assert address(at)["also"] == other
    again = explore(also=other)
    assert list(again.table[0].value["Time"]) == list(at.table[0].value["Time"])


@pytest.mark.parametrize(
    ("key", "value"),
    [("topology", "dgx-z9"), ("params", "<script>"), ("params", "nodes=many"), ("params", "dims=4x4"), ("params", "nodes=²"),
     ("size", "3MiB"), ("size", "1e99GiB"), ("collective", "all"), ("algorithm", "fast"), ("lang", "xx"), ("params", "x" * 999)],
)  # fmt: skip
def test_a_bad_link_names_what_it_cannot_show(key: str, value: str) -> None:
    at = explore(**{key: value})
    assert not at.exception
    (warning,) = at.warning
    assert key in warning.value
    assert len(at.metric) == 5


@pytest.mark.parametrize(
    ("topology", "params", "reason"),
    [("dgx-h100", "nodes=100", "up to 128"), ("ring", "gpus=1", "at least 2"), ("ring", "bandwidth=25Gig", "bandwidth"),
     ("torus", "dims=0x4", "dims"), ("full-mesh", "gpus=9999", "the largest that fits is gpus = 875"), ("dgx-a100", "gpus=9", "gpus"),
     ("leaf-spine", "leaves=64", "up to 128"), ("fat-tree", "k=5", "odd")],
)  # fmt: skip
def test_a_cluster_that_cannot_be_is_refused_in_one_sentence(topology: str, params: str, reason: str) -> None:
    at = explore(topology=topology, params=params)
    assert not at.exception
    (error,) = at.error
    assert reason in error.value
    assert "\n" not in error.value
    assert not at.metric


def upload(at: AppTest, name: str, content: bytes) -> AppTest:
    return at.file_uploader(key="explore.log").set_value((name, content, "text/plain")).run()


def test_a_log_is_compared_with_the_ring_without_calibration() -> None:
    h100 = make("dgx-h100")
    times = {2**k: 2e6 * run_collective(h100, "all-reduce", "ring", 2**k).time for k in (16, 20, 24, 28)}  # measured: twice the ring
    at = upload(explore(), "log.txt", all_reduce_log(times).encode())
    assert not at.exception
    assert at.metric[5].value == "50.0 %"
    assert "**ring**" in said(at)
    assert "no calibration" in said(at)
    assert list(at.table[1].value.iloc[:, -1]) == ["-50.0 %"] * 8


@pytest.mark.parametrize("content", [b"", b"\x00\xff\xfe\x93" * 1000, "기록이 아님".encode(), b"# nothing measured\n" * 50])
def test_garbage_gets_one_sentence(content: bytes) -> None:
    at = upload(explore(), "garbage.log", content)
    assert not at.exception
    (error,) = at.error
    assert "garbage.log" in error.value
    assert "\n" not in error.value
    assert len(at.metric) == 5


def test_a_log_of_other_gpus_says_where_its_points_would_be_seen() -> None:
    at = upload(explore(topology="dgx-a100"), "log.txt", all_reduce_log({2**20: 60.0, 2**24: 200.0}, nranks=4).encode())
    assert not at.exception
    assert "4 GPUs" in at.info[0].value


def test_slices_of_the_picture_are_those_of_the_table() -> None:
    """A pipelined algorithm has one time on the page."""
    at = explore(algorithm="double-binary-tree")
    tree = next(a for a in catalogue(COLLECTIVES["all-reduce"]) if a.name == "double-binary-tree")
    result = run_collective(make("dgx-h100"), "all-reduce", tree.name, MIB64, slices=slices_for(tree, MIB64))
    assert cards(at)[0] == format_time(result.time)
    assert format_time(result.time) in said(at)


def test_the_words_of_explore_are_in_both_languages() -> None:
    mine = [{key for key in table(lang) if key.startswith("explore.")} for lang in ("en", "ko")]
    assert mine[0] == mine[1]
    assert len(mine[0]) > 80
