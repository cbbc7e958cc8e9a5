"""The app without a browser: labels, every algorithm, errors, the URL as state."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from algorithms.collectives import COLLECTIVES
from algorithms.registry import catalogue, find

APP = str(Path(__file__).parents[2] / "app.py")
TAUGHT = ("all-reduce", "reduce-scatter", "all-gather", "broadcast", "reduce")
CASES = [
    pytest.param(a.collective.name, a.name, gpus, marks=[] if (i + n) % 2 else pytest.mark.slow, id=f"{a.collective.name}-{a.name}-{gpus}")
    for i, a in enumerate(a for name in TAUGHT for a in catalogue(COLLECTIVES[name]))
    for n, gpus in enumerate(("3", "16"))
]
"""Every algorithm with one of the numbers of ranks, in turn; with the other where time is no matter."""


def teach(locale: str = "en-US", **query: str) -> AppTest:
    at = AppTest.from_file(APP, default_timeout=110)  # seconds of the clock, as for Explore
    at.context = {"locale": locale}
    for key, value in query.items():
        at.query_params[key] = value
    return at.run()


def address(at: AppTest) -> dict[str, str]:
    """The query parameters, one value each (AppTest keeps those it was given as lists)."""
    return {key: value if isinstance(value, str) else value[0] for key, value in at.query_params.items()}


def shown(at: AppTest) -> dict[str, Any]:
    """The data that the player got."""
    (component,) = at.get("bidi_component")
    found: dict[str, Any] = json.loads(component.proto.json)
    return found


def test_default_is_the_eight_gpu_ring() -> None:
    at = teach()
    assert not at.exception
    data = shown(at)
    assert (data["ranks"], len(data["steps"]), data["title"]) == (8, 14, "all-reduce by ring")
    assert [m.value for m in at.metric] == ["4.712 ms", "14.24 GB/s", "24.93 GB/s", "112 MiB"]


@pytest.mark.parametrize(("collective", "algorithm", "gpus"), CASES)
def test_every_algorithm_is_shown(collective: str, algorithm: str, gpus: str) -> None:
    if find(COLLECTIVES[collective], algorithm).refusal(int(gpus)):
        gpus = "4"
    at = teach(collective=collective, algorithm=algorithm, gpus=gpus)
    assert not at.exception
    assert not at.error
    assert not at.warning
    assert shown(at)["ranks"] == int(gpus)
    assert at.selectbox(key="teach.algorithm").value == algorithm


def test_korean_follows_the_browser_and_the_link_wins() -> None:
    assert [s.label for s in teach("ko-KR").selectbox] == ["집합 통신", "알고리즘"]
    assert shown(teach("ko-KR"))["text"]["title"] == "단계 {k}/{n} — {phase}"
    assert [s.label for s in teach("ko-KR", lang="en").selectbox] == ["Collective", "Algorithm"]
    assert teach("en-US", lang="ko").metric[0].label == "시간"


def test_link_state_goes_round() -> None:
    asked = {"collective": "broadcast", "algorithm": "chain", "gpus": "5", "size": "1GB", "bandwidth": "400Gb/s", "latency": "300ns"}
    asked |= {"step": "2", "lang": "ko"}
    at = teach(**asked)
    assert address(at) == asked
    assert shown(at)["step"] == 2
    assert "50 GB/s" in shown(at)["note"]


def test_defaults_stay_out_of_the_link() -> None:
    assert address(teach()) == {"lang": "en"}


@pytest.mark.parametrize(
    ("key", "value"),
    [("gpus", "abc"), ("gpus", "999"), ("gpus", "-1"), ("gpus", "1"), ("gpus", "８"), ("algorithm", "evil"), ("collective", "nope"),
     ("size", "9" * 500), ("size", "-1"), ("bandwidth", "fast"), ("latency", "1"), ("step", "x"), ("step", "9" * 20), ("lang", "xx")],
)  # fmt: skip
def test_bad_link_values_are_named_and_ignored(key: str, value: str) -> None:
    at = teach(**{key: value})
    assert not at.exception
    assert len(at.warning) == 1
    assert key in at.warning[0].value
    assert value not in at.warning[0].value or len(value) < 3
    assert shown(at)["title"] == "all-reduce by ring"


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [("size", "64", ""), ("size", "64Mb", "Message size:"), ("size", "3B", ""), ("bandwidth", "0GB/s", "Bandwidth:"),
     ("latency", "7", "Latency:")],
)  # fmt: skip
def test_errors_say_which_input(key: str, value: str, message: str) -> None:
    at = teach()
    at.text_input(key=f"teach.{key}").set_value(value).run()
    assert not at.exception
    assert [e.value.startswith(message) for e in at.error] == ([True] if message else [])


def test_a_collective_without_the_algorithm_takes_one_it_has() -> None:
    at = teach(algorithm="sharp")
    at.selectbox(key="teach.collective").select("broadcast").run()
    assert not at.exception
    assert at.selectbox(key="teach.algorithm").value in {a.name for a in catalogue(COLLECTIVES["broadcast"])}


def test_algorithms_that_refuse_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    from algorithms import registry

    real = registry.Algorithm.refusal
    monkeypatch.setattr(registry.Algorithm, "refusal", lambda a, n: "needs a power of two" if a.name == "ring" and n == 6 else real(a, n))
    at = teach(gpus="6")
    assert "ring (needs a power of two)" in at.selectbox(key="teach.algorithm").options
    assert "needs a power of two" in at.error[0].value
    assert not at.exception


def test_ring_of_cables_for_neighbours_and_a_star_for_others() -> None:
    assert shown(teach())["note"].startswith("ring of cables")
    assert shown(teach(algorithm="sharp"))["note"].startswith("star around one switch")
