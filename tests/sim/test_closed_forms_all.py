"""The closed forms and intervals of the whole catalogue against the simulator, each over its own options."""

from __future__ import annotations

import math
import subprocess
import sys
from itertools import cycle
from typing import Any

import pytest
from test_closed_forms import EXACT, HERE, MODELS, B, evaluate

from algorithms.collectives import collective
from algorithms.registry import catalogue, find
from sim.closed_forms import FORMS, INTERVALS, ClosedForm, interval, lookup
from sim.model import Model
from sim.simulate import run_collective
from topologies import make
from topologies.errors import ScheduleError

Name = tuple[str, str]
OTHERS = [name for name in FORMS if name not in HERE]
NEITHER: dict[Name, str] = {}
"""Algorithms without closed form and interval, each with its reason."""
GROUPED = ("hierarchical", "hierarchical-doubling", "collnet-chain", "collnet-direct", "nccl-tree", "nvls-tree")
EVEN_GRIDS = {2: ((2,),), 4: ((4,), (2, 2)), 8: ((2, 4), (2, 2, 2)), 16: ((4, 4), (8, 1, 2))}
GRIDS = {9: ((3, 3), (9,)), 12: ((3, 4), (12,)), 15: ((5, 3),), 16: ((4, 4),), 27: ((3, 3, 3),)}


def groups(n: int) -> list[tuple[tuple[int, ...], ...]]:
    """All ways to cut n ranks into equal servers."""
    return [tuple(tuple(range(g * k, g * (k + 1))) for k in range(n // g)) for g in range(1, n + 1) if n % g == 0]


def variants(name: Name, n: int) -> list[dict[str, Any]]:
    """Options worth a try for n ranks; a form refuses those that it is not for."""
    algorithm = find(collective(name[0]), name[1])
    if name[1] == "multi-ring":
        return [{"groups": g, "rings": rings} for g in groups(n) for rings in (0, 1)]
    if name[1] == "hierarchical-3":
        return [{"groups": g, "servers": servers} for g in groups(n) for servers in (0, 2, 3)]
    if name[1] == "torus-bucket":
        return [{"dims": dims, "bidirectional": both} for dims in GRIDS.get(n, ((n,),)) for both in (0, 1)]
    if name[1] in GROUPED:
        return [{"groups": g} for g in groups(n)]
    if name[1].startswith("swing"):
        return [{}, *({"dims": dims} for dims in EVEN_GRIDS.get(n, ()))]
    if name[1] == "halo":
        return [{"dims": dims} for dims in GRIDS.get(n, ((n,),))]
    tried = {"radix": (2, 3, 4, 8), "aggregation": (0, 1, 2, 4), "root": (0, n - 1), "by": (1, -1, n + 1), "seed": (0, 1)}
    for option, values in tried.items():
        if algorithm.takes(option):
            return [{option: value} for value in values]
    return [{}]


def simulated(form: ClosedForm, name: Name, n: int, elements: int, model: tuple[float, float, float], options: dict[str, Any]) -> float:
    o, latency, rate = model
    shape = {"dims": options["dims"]} if form.topology == "torus" else {"gpus": n}
    topology = make(form.topology, {**shape, "bandwidth": B, "latency": latency})
    return run_collective(topology, *name, 4 * elements, options=options, model=Model(overhead=o, reduce_rate=rate)).time


def told(form: ClosedForm, n: int, elements: int, model: tuple[float, float, float], options: dict[str, Any]) -> float:
    o, latency, rate = model
    return form.time(n, elements=elements, itemsize=4, bandwidth=B, latency=latency, overhead=o, reduce_rate=rate, **options)


@pytest.mark.parametrize("name", OTHERS)
def test_simulated_is_closed_form(name: Name) -> None:
    """Numbers of ranks, numbers of elements that they divide and not, and options, with models in turn."""
    form, compared, models = FORMS[name], 0, cycle([*MODELS, (1e-6, 5e-5, 1e10)])
    for n in (2, 3, 4, 5, 6, 7, 8, 12, 16):
        for elements in (48 * n * n, 48 * n * n + 1, 7):
            for options in variants(name, n):
                for model in (next(models), next(models)):
                    if not form.refusal(n, elements=elements, reduce_rate=model[2], **options):
                        ran = simulated(form, name, n, elements, model, options)
                        assert ran == pytest.approx(told(form, n, elements, model, options), rel=EXACT, abs=0), (
                            n,
                            elements,
                            model,
                            options,
                        )
                        compared += 1
    assert compared >= 8


@pytest.mark.parametrize("name", INTERVALS)
def test_simulated_lies_in_the_interval(name: Name) -> None:
    held, compared, models = INTERVALS[name], 0, cycle([*MODELS, (1e-6, 5e-5, 1e10)])
    for n in (2, 3, 5, 6, 8, 9, 12, 15, 16, 27):
        for elements in (48 * n * n, 48 * n * n + 1, 7):
            for options in variants(name, n):
                model = next(models)
                if held.least.refusal(n, elements=elements, reduce_rate=model[2], **options):
                    continue
                least, most = (told(end, n, elements, model, options) for end in (held.least, held.most))
                ran = simulated(held.least, name, n, elements, model, options)
                assert least * (1 - EXACT) <= ran <= most * (1 + EXACT), (n, elements, model, options)
                compared += 1
    assert compared >= 10


@pytest.mark.parametrize("name", [name for name in INTERVALS if name[1] == "torus-bucket"])
@pytest.mark.parametrize("dims", [(5,), (3, 3), (4, 4), (3, 3, 3)])
@pytest.mark.parametrize("bidirectional", [0, 1])
def test_buckets_on_a_torus_of_equal_sides_are_exact(name: Name, dims: tuple[int, ...], bidirectional: int) -> None:
    n, low = math.prod(dims), INTERVALS[name].least
    options, model = {"dims": dims, "bidirectional": bidirectional}, (2e-6, 1e-6, math.inf)
    elements = 60 * n
    assert simulated(low, name, n, elements, model, options) == pytest.approx(told(low, n, elements, model, options), rel=EXACT, abs=0)


FOUR_BY_TWO = {"groups": groups(8)[2]}
OPTIONS: dict[str, dict[str, Any]] = dict.fromkeys(("multi-ring", *GROUPED), FOUR_BY_TWO) | {
    "hierarchical-3": {"groups": groups(8)[1], "servers": 2},
    "torus-bucket": {"dims": (4, 4)},
    "halo": {"dims": (4, 4)},
}  # fmt: skip
LETTERS: dict[str, dict[str, float]] = {  # what a formula shown has beyond n, o, M, B, L, R: of the options above
    "hierarchical": {"g": 4, "K": 2}, "hierarchical-doubling": {"g": 4, "K": 2},
    "hierarchical-3": {"g": 2, "K": 4, "k": 2}, "collnet-chain": {"g": 4},
    "nccl-tree": {"g": 4, "h": 4, "H": 5}, "nvls-tree": {"g": 4, "h": 1}, "torus-bucket": {"D": 2, "d": 4, "C": 2}, "halo": {"D": 2},
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "form"),
    [(name, FORMS[name]) for name in OTHERS] + [(name, end) for name, held in INTERVALS.items() for end in (held.least, held.most)],
)
def test_the_formula_shown_is_the_time_told(name: Name, form: ClosedForm) -> None:
    n = 16 if name[1] in ("k-nomial-tree", "torus-bucket", "halo") else 8
    elements, rate = 96 * 64, math.inf if "R" not in form.formula else 1e11
    height = {"h": 3.0 if name[0] == "all-reduce" else 4.0}
    values = {"n": n, "o": 2e-6, "M": 4 * elements, "B": B, "L": form.hops * 1e-6, "R": rate, "S": 1, "k": 2 if name[0] == "barrier" else 4}
    seconds = told(form, n, elements, (2e-6, 1e-6, rate), OPTIONS.get(name[1], {}))
    assert evaluate(form.formula, values | height | LETTERS.get(name[1], {})) == pytest.approx(seconds, rel=EXACT)


@pytest.mark.parametrize("name", [name for name in OTHERS if name[0] != "barrier"])
def test_without_latency_twice_the_data_takes_twice_the_time(name: Name) -> None:
    """In the form as in the simulation: a byte forgotten or counted twice would show."""
    form, n = FORMS[name], 16
    options = {"groups": groups(n)[2]} if find(collective(name[0]), name[1]).takes("groups") else {}
    options |= OPTIONS["halo"] if name[1] == "halo" else {}
    whole, twice = (told(form, n, elements, (0.0, 0.0, math.inf), options) for elements in (96 * n * n, 192 * n * n))
    assert twice == pytest.approx(2 * whole, rel=EXACT)
    assert whole == pytest.approx(simulated(form, name, n, 96 * n * n, (0.0, 0.0, math.inf), options), rel=EXACT)


def test_every_algorithm_has_a_closed_form_or_an_interval() -> None:
    known = {(a.collective.name, a.name) for a in catalogue()}
    lacking = sorted(known - set(FORMS) - set(INTERVALS) - set(NEITHER))
    assert not lacking, f"give these a form or an interval in sim/closed_forms/, or a reason in NEITHER here: {lacking}"
    assert set(FORMS) | set(INTERVALS) | set(NEITHER) == known
    assert not set(FORMS) & set(INTERVALS)
    assert all(NEITHER.values())


def test_lookups_know_both() -> None:
    held = interval("all-reduce", "double-binary-tree")
    assert held is INTERVALS["all-reduce", "double-binary-tree"]
    assert lookup("all-reduce", "double-binary-tree") is None
    assert interval("all-reduce", "ring") is None
    assert lookup("all-to-all", "pairwise") is FORMS["all-to-all", "pairwise"]


@pytest.mark.parametrize("first", ["closed_forms", "closed_forms.base", "closed_forms.groups", "closed_forms.intervals"])
def test_registries_are_full_whatever_is_imported_first(first: str) -> None:
    code = f"import sim.{first}; from sim.closed_forms import FORMS, INTERVALS; print(len(FORMS), len(INTERVALS))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == [str(len(FORMS)), str(len(INTERVALS))]


def test_refusals_say_why() -> None:
    for name, n, options, words in (
        (("gather", "binomial-tree"), 6, {}, "power of two"),
        (("broadcast", "k-nomial-tree"), 7, {}, "power of the radix"),
        (("broadcast", "k-nomial-tree"), 8, {"radix": 1}, "radix"),
        (("all-gather", "pat"), 8, {"aggregation": 3}, "power of two up to 4"),
        (("all-reduce", "hierarchical"), 8, {}, "groups"),
        (("all-reduce", "hierarchical"), 3, {"groups": ((0, 1), (2,))}, "equal size"),
        (("all-reduce", "hierarchical-3"), 8, {"groups": groups(8)[1], "servers": 3}, "divides"),
        (("all-reduce", "two-shot"), 8, {"elements": 12}, "8 divides"),
        (("all-reduce", "multi-ring"), 4, {"groups": groups(4)[1], "reduce_rate": 1e9}, "no time"),
        (("sendrecv", "halo"), 9, {}, "dims"),
    ):
        assert words in str(FORMS[name].refusal(n, **options)), name
    assert "one server" in str(INTERVALS["all-reduce", "nvls"].least.refusal(8, **FOUR_BY_TWO))
    assert "dims" in str(INTERVALS["all-reduce", "torus-bucket"].most.refusal(8))
    with pytest.raises(ScheduleError, match=r"closed form of hierarchical: 8 ranks.*groups"):
        told(FORMS["all-reduce", "hierarchical"], 8, 64, MODELS[0], {})


def test_refused_cases_are_refused_for_a_reason() -> None:
    """Without its rule, each form would tell another time than the simulation."""
    for name, n, elements, rate, options in (
        (("gather", "binomial-tree"), 6, 36, math.inf, {}),
        (("broadcast", "scatter-all-gather"), 6, 36, math.inf, {}),
        (("reduce", "k-nomial-tree"), 7, 6400, math.inf, {}),
        (("all-gather", "bruck"), 8, 12, math.inf, {}),
        (("all-reduce", "binary-blocks"), 6, 36, math.inf, {}),
        (("all-gather", "swing"), 6, 36, math.inf, {}),
        (("all-gather", "swing"), 8, 40, math.inf, {"dims": (2, 4)}),
        (("all-reduce", "swing"), 8, 64, 1e6, {"dims": (2, 4)}),
        (("all-reduce", "swing-latency"), 8, 64, 1e6, {"dims": (2, 4)}),
        (("all-reduce", "collnet-chain"), 8, 64, 1e6, FOUR_BY_TWO),
        (("all-reduce", "multi-ring"), 8, 640, 1e6, FOUR_BY_TWO),
        (("sendrecv", "halo"), 8, 64, math.inf, {"dims": (4, 2)}),
    ):
        form = FORMS[name]
        assert form.refusal(n, elements=elements, reduce_rate=rate, **options), name
        free = ClosedForm(form.algorithm, form.topology, form.hops, form.formula, form._time, ())
        model = (2e-7, 1e-7, rate)
        assert simulated(form, name, n, elements, model, options) != pytest.approx(told(free, n, elements, model, options), rel=1e-6), name
