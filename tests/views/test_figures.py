"""Figures for papers by their data, and their bytes."""

from __future__ import annotations

import warnings
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from algorithms.collectives import ALL_REDUCE
from prediction.predict import Row, predict
from sim.bounds import Bounds, bounds
from sim.result import Result
from sim.simulate import run_collective
from topologies import make, names
from views import figures
from views.topology_figure import topology_load

SIZES = [2**k for k in range(10, 31, 5)]


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    return predict(make("star", {"gpus": 4}), "all-reduce", SIZES, algorithms=["ring", "halving-doubling"]).rows


@pytest.fixture(scope="module")
def floor() -> dict[int, Bounds]:
    return {size: bounds(make("star", {"gpus": 4}), ALL_REDUCE, size) for size in SIZES}


@pytest.fixture(scope="module")
def ring() -> Result:
    return run_collective(make("ring", {"gpus": 4}), "all-reduce", "ring", 2**20)


def texts(figure: figures.Picture) -> list[str]:
    return [said.get_text() for said in figure.findobj(lambda artist: hasattr(artist, "get_text")) if said.get_text()]  # type: ignore[attr-defined]


def test_curves_hold_the_predicted_times(rows: tuple[Row, ...], floor: dict[int, Bounds]) -> None:
    ax = figures.time_vs_size(rows, floor).axes[0]
    drawn = {line.get_label(): list(line.get_ydata()) for line in ax.lines}
    for name in ("ring", "halving-doubling"):
        expected = [c.time_s for row in rows for c in row.candidates if c.algorithm == name]
        assert drawn[figures.short("en", name)] == expected
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.get_ylim()[0] < min(b.lower_bound_s for b in floor.values())


def test_busbw_stays_under_the_grey_line(rows: tuple[Row, ...], floor: dict[int, Bounds]) -> None:
    ax = figures.busbw_vs_size(rows, floor, 1.5).axes[0]
    *curves, limit = ax.lines
    top = dict(zip(limit.get_xdata(), limit.get_ydata(), strict=True))
    for curve in curves:
        for size, rate in zip(curve.get_xdata(), curve.get_ydata(), strict=True):
            assert rate <= top[size] * (1 + 1e-12)
    assert ax.get_ylim()[1] > max(top.values())


def test_step_table_says_who_sends_what(ring: Result) -> None:
    schedule = ring.launches[0].schedule
    assert schedule is not None
    said = texts(figures.step_table(schedule))
    assert sum("→" in cell for cell in said) == 4 * 6
    assert "c3 → 1" in said  # step 0: rank 0 passes chunk n-1 to rank 1


def test_space_time_bars_are_the_trace(ring: Result) -> None:
    schedule = ring.launches[0].schedule
    assert schedule is not None
    ax = figures.space_time(schedule, ring.trace).axes[0]
    bars = sorted(
        (round(path.vertices[:, 0].min(), 12), round(path.vertices[:, 0].max(), 12), round(path.vertices[:, 1].mean()))
        for collection in ax.collections for path in collection.get_paths()
    )  # fmt: skip
    rows = zip(ring.trace.start.tolist(), ring.trace.sent.tolist(), ring.trace.src.tolist(), strict=True)
    assert bars == sorted((round(start, 12), round(sent, 12), src) for start, sent, src in rows)
    assert len(ax.lines) == len(schedule)


@pytest.mark.parametrize("name", names())
def test_load_of_every_topology_is_drawn_with_the_busiest_named(name: str) -> None:
    result = run_collective(make(name), "all-reduce", "ring", 2**16)
    figure = topology_load(result)
    first = result.link_loads()[0]
    assert f"{first.src} → {first.dst}" in figure.axes[0].get_title(loc="left")
    assert len(figure.axes[0].patches) > len(result.topology.gpus)


def test_the_same_figure_gives_the_same_bytes_without_a_date(ring: Result, tmp_path: Path) -> None:
    one, two = figures.svg(topology_load(ring)), figures.svg(topology_load(ring))
    assert one == two
    assert "<dc:date>" not in one
    ET.fromstring(one)
    for suffix in ("svg", "pdf", "png"):
        for number in (1, 2):
            figures.save(topology_load(ring), tmp_path / f"{number}.{suffix}")
        assert (tmp_path / f"1.{suffix}").read_bytes() == (tmp_path / f"2.{suffix}").read_bytes()


def test_korean_labels_if_a_font_is_there_else_english_with_a_warning(
    rows: tuple[Row, ...], floor: dict[int, Bounds], monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        have, _ = figures.language("ko")
    assert (have == "en") == any("no Korean font" in str(w.message) for w in caught)
    if have == "ko":
        assert "메시지 크기" in texts(figures.time_vs_size(rows, floor, "ko"))
    monkeypatch.setattr(figures, "KOREAN", ("No Such Font",))
    with pytest.warns(UserWarning, match="no Korean font"):
        figure = figures.time_vs_size(rows, floor, "ko")
    assert "message size" in texts(figure)
    assert "메시지 크기" not in texts(figure)
