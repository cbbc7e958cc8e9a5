"""Altair charts by the data they carry."""

from __future__ import annotations

from typing import Any

import pytest

from algorithms.collectives import ALL_REDUCE
from prediction.compare import Comparison
from prediction.compare import Row as Measured
from prediction.predict import Row, predict
from sim.bounds import Bounds, bounds
from topologies import make
from views import charts
from views.palette import DASHES, KNOWN, LIGHT, dash, line_colour, ordered

SIZES = [2**k for k in range(10, 31, 4)]
FACTOR = 1.75


@pytest.fixture(scope="module")
def rows() -> tuple[Row, ...]:
    return predict(make("star", {"gpus": 8}), "all-reduce", SIZES, algorithms=["ring", "recursive-doubling", "halving-doubling"]).rows


@pytest.fixture(scope="module")
def floor() -> dict[int, Bounds]:
    return {size: bounds(make("star", {"gpus": 8}), ALL_REDUCE, size) for size in (SIZES[0], SIZES[2], SIZES[-1])}


def layers(chart: Any) -> list[dict[str, Any]]:
    spec = chart.to_dict()
    found: list[dict[str, Any]] = spec["layer"]
    for layer in found:
        layer["rows"] = layer["data"].get("values") or spec["datasets"][layer["data"]["name"]]
    return found


def marks(chart: Any, kind: str) -> list[dict[str, Any]]:
    return [layer for layer in layers(chart) if layer["mark"]["type"] == kind]


def test_every_algorithm_and_size_is_in_the_data_in_si_units(rows: tuple[Row, ...], floor: dict[int, Bounds]) -> None:
    chart = charts.time_chart(rows, floor, charts.Look(SIZES[2]))
    curve = marks(chart, "line")[-1]
    got = {(r["algorithm"], r["size"]): r["time_s"] for r in curve["rows"]}
    assert got == {(charts.short("en", c.algorithm), row.size_bytes): c.time_s for row in rows for c in row.candidates}
    assert curve["encoding"]["y"]["scale"]["type"] == "log"
    assert curve["encoding"]["x"]["scale"]["type"] == "log"
    assert "KiB" in curve["encoding"]["x"]["axis"]["labelExpr"]


def test_legend_is_fastest_first_with_colour_and_dash(rows: tuple[Row, ...], floor: dict[int, Bounds]) -> None:
    encoding = marks(charts.time_chart(rows, floor, charts.Look(SIZES[-1])), "line")[-1]["encoding"]
    assert encoding["color"]["scale"]["domain"] == [charts.short("en", c.algorithm) for c in rows[-1].candidates]
    assert encoding["strokeDash"]["scale"]["domain"] == encoding["color"]["scale"]["domain"]
    looks = list(zip(encoding["color"]["scale"]["range"], map(str, encoding["strokeDash"]["scale"]["range"]), strict=True))
    assert len(set(looks)) == len(rows[-1].candidates)


def test_marker_stands_at_the_size_and_the_chosen_algorithm_is_thick(rows: tuple[Row, ...], floor: dict[int, Bounds]) -> None:
    chart = charts.time_chart(rows, floor, charts.Look(SIZES[3], chosen="ring"))
    assert [r["size"] for r in marks(chart, "rule")[0]["rows"]] == [SIZES[3]]
    assert "'ring'" in str(marks(chart, "line")[-1]["encoding"]["strokeWidth"])


def test_no_point_lies_in_the_impossible_area(rows: tuple[Row, ...], floor: dict[int, Bounds]) -> None:
    exact = charts.floor_points({size: bounds(make("star", {"gpus": 8}), ALL_REDUCE, size) for size in SIZES}, FACTOR)
    at = {p["size"]: p for p in exact}
    for point in charts.points(rows, "en"):
        assert point["time_s"] >= at[point["size"]]["time_s"] * (1 - 1e-12)
        assert point["busbw"] <= at[point["size"]]["busbw"] * (1 + 1e-12)


def test_three_sizes_give_the_same_floor_as_many(floor: dict[int, Bounds]) -> None:
    few = {round(p["size"]): p["time_s"] for p in charts.floor_points(floor, None)}
    for size in SIZES:
        assert few[size] == pytest.approx(bounds(make("star", {"gpus": 8}), ALL_REDUCE, size).lower_bound_s, rel=0.02)
    values = [few[size] for size in sorted(few)]
    assert values == sorted(values)
    # The corner where bandwidth takes over is a point of its own: latency still, and just as much bandwidth.
    corner = max(size for size in few if few[size] == pytest.approx(few[SIZES[0]], rel=1e-6))
    assert few[SIZES[-1]] / SIZES[-1] * corner == pytest.approx(few[SIZES[0]], rel=1e-3)


def comparison(*errors: float, collective: str = "all-reduce") -> Comparison:
    made = [Measured(collective, i % 2 == 1, 2 ** (8 + 4 * i), 1e-4, 1e-4 * (1 + e), 1) for i, e in enumerate(errors)]
    return Comparison(collective, "ring", 8, "float", None, "star-8", (), tuple(made))


def test_measured_points_are_drawn_inside_the_range_of_sizes_only(rows: tuple[Row, ...], floor: dict[int, Bounds]) -> None:
    measured = charts.measured_points([comparison(0.1, 0.2, 0.3)], FACTOR, "en")
    assert [m["size"] for m in measured] == [2**8, 2**12, 2**16]
    assert measured[1]["busbw"] == pytest.approx(FACTOR * 2**12 / 1e-4)
    look = charts.Look(SIZES[2])
    for chart in (charts.time_chart(rows, floor, look, measured), charts.busbw_chart(rows, floor, FACTOR, look, measured)):
        assert [r["size"] for r in marks(chart, "point")[0]["rows"]] == [2**12, 2**16]


def test_error_chart_holds_predicted_over_measured_minus_one() -> None:
    dots = marks(charts.error_chart([comparison(-0.5, 0.25)]), "point")[0]
    assert [r["error"] for r in dots["rows"]] == pytest.approx([-0.5, 0.25])
    assert [r["place"] for r in dots["rows"]] == ["out-of-place", "in-place"]
    low, high = dots["encoding"]["y"]["scale"]["domain"]
    assert low < -0.5
    assert high > 0.25


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("what", ["time", "busbw"])
def test_alt_text_names_every_algorithm_and_the_bound(rows: tuple[Row, ...], floor: dict[int, Bounds], lang: str, what: str) -> None:
    said = charts.alt_text(rows, floor, SIZES[2], what, lang)
    assert "256 KiB" in said
    for name in ("ring", "recursive-doubling", "halving-doubling"):
        assert charts.label(lang, "algorithm", name) in said


@pytest.mark.parametrize("dark", [False, True])
def test_known_algorithms_have_looks_of_their_own_whatever_the_company(dark: bool) -> None:
    looks = {(line_colour(ordered([name]), name, dark), str(dash(ordered([name]), name))) for name in KNOWN}
    assert len(looks) == len(KNOWN)
    assert line_colour(ordered(["aaa", "ring", "zzz"]), "ring", dark) == line_colour(ordered(["ring"]), "ring", dark)
    assert dash(ordered(["new-one"]), "new-one") in DASHES
    assert len(LIGHT) % len(DASHES) != 0


def test_a_quote_in_a_name_stays_inside_the_expression() -> None:
    assert charts._quoted("a'b\\") == "'a\\'b\\\\'"
