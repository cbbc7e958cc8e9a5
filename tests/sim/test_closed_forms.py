"""Closed forms against the simulator, and the simulator's independence from them."""

from __future__ import annotations

import ast
import math
import re
from pathlib import Path
from typing import Any

import pytest

from algorithms.collectives import collective
from algorithms.launch import Launch, Placement
from algorithms.registry import catalogue, find
from sim.closed_forms import FORMS, ClosedForm, lookup
from sim.model import Model
from sim.simulate import run_collective, simulate
from topologies import make
from topologies.errors import ScheduleError
from topologies.graph import Link, Node, Topology, both_ways

B = 25e9
HERE = [name for name, form in FORMS.items() if form._time.__module__ == "sim.closed_forms.classic"]
"""The forms of that file; the others and the intervals have test_closed_forms_all.py."""
EXACT = 1e-12
MODELS = [  # overhead, link latency, reduce rate: each alone, the sender the slower and the reducer the slower
    (0.0, 0.0, math.inf),
    (3e-6, 0.0, math.inf),
    (0.0, 1e-6, math.inf),
    (2e-6, 1e-6, 40e9),
    (1e-7, 1e-6, 2e8),
]


def agree(
    form: ClosedForm, name: tuple[str, str], n: int, elements: int, model: tuple[float, float, float], slices: int = 1, **options: Any
) -> None:
    o, latency, rate = model
    topology = make(form.topology, {"gpus": n, "bandwidth": B, "latency": latency})
    ran = run_collective(topology, *name, 4 * elements, options=options, slices=slices, model=Model(overhead=o, reduce_rate=rate))
    told = form.time(
        n, elements=elements, itemsize=4, bandwidth=B, latency=latency, overhead=o, reduce_rate=rate, slices=slices, **options
    )  # fmt: skip
    assert ran.time == pytest.approx(told, rel=EXACT, abs=0), (name, n, elements, model, slices, options)


@pytest.mark.parametrize("name", [key for key in HERE if "ring" in key[1]])
def test_rings_of_2_to_64_ranks(name: tuple[str, str]) -> None:
    """Every n up to 24, some of the others, with models in turn, and a number of elements that n does not divide where that is allowed."""
    form = FORMS[name]
    for n in (*range(2, 25), 31, 32, 33, 48, 63, 64):
        model = MODELS[n % len(MODELS)]
        if not form.refusal(n):
            uneven = not form.refusal(n, elements=2 * n * 1000 + 1, reduce_rate=model[2])
            agree(form, name, n, 2 * n * 1000 + uneven, model)


@pytest.mark.parametrize("name", HERE)
@pytest.mark.parametrize("model", MODELS)
def test_simulated_is_closed_form(name: tuple[str, str], model: tuple[float, float, float]) -> None:
    form, compared = FORMS[name], 0
    for n in (2, 3, 4, 6, 8, 9):
        for elements in (48 * n * n, 48 * n * n + 1, 7):
            for slices in (1, 2, 3, 8) if not form.refusal(n, slices=2) else (1,):
                for options in [{"servers": s} for s in range(n + 1)] if "sharded" in name[1] else [{}]:
                    if form.refusal(n, elements=elements, reduce_rate=model[2], slices=slices, **options):
                        continue
                    agree(form, name, n, elements, model, slices, **options)
                    compared += 1
    assert compared >= 3


@pytest.mark.parametrize("n", [32, 64])
def test_halving_doubling_and_trees_of_many_ranks(n: int) -> None:
    for name in (
        ("all-reduce", "halving-doubling"),
        ("all-reduce", "recursive-doubling"),
        ("broadcast", "binomial-tree"),
        ("all-reduce", "binomial-tree"),
    ):
        agree(FORMS[name], name, n, 640 * n, MODELS[3])


@pytest.mark.parametrize("root", [1, 4])
def test_the_root_makes_no_difference(root: int) -> None:
    for name in (("broadcast", "chain"), ("reduce", "chain"), ("broadcast", "binomial-tree"), ("all-reduce", "parameter-server")):
        agree(FORMS[name], name, 5, 1001, MODELS[1], root=root)


@pytest.mark.parametrize("slices", [1, 4, 7])
def test_sharp_over_two_levels_of_switches(slices: int) -> None:
    groups = ((0, 1, 2), (3, 4), (5, 6, 7))
    nodes = [
        *(Node(f"gpu{r}", "gpu") for r in range(8)),
        *(Node(f"leaf{i}", "switch", reduces=True) for i in range(3)),
        Node("top", "switch", reduces=True),
    ]
    pairs = [(f"gpu{r}", f"leaf{i}") for i, group in enumerate(groups) for r in group] + [(f"leaf{i}", "top") for i in range(3)]
    tree = Topology.build("tree", nodes, [way for a, b in pairs for way in both_ways(Link(a, b, "link", 1, B, 2e-6))], {"leaves": groups})
    ran = run_collective(tree, "all-reduce", "sharp", 4 * 1001, slices=slices, model=Model(overhead=1e-6))
    m = 4 * math.ceil(1001 / slices)
    told = FORMS["all-reduce", "sharp"].time(
        8, elements=1001, itemsize=4, bandwidth=B, latency=2e-6, overhead=1e-6, slices=slices, groups=groups
    )  # fmt: skip
    assert ran.time == pytest.approx(told, rel=EXACT, abs=0)
    assert told == pytest.approx(8e-6 + slices * 1e-6 + 4004 / B + 3 * (1e-6 + m / B), rel=EXACT)
    assert FORMS["all-reduce", "sharp"].refusal(8, reduce_rate=1e9, groups=groups)


def test_chain_on_a_ring_and_both_conventions_of_alpha() -> None:
    n, slices, elements, alpha = 6, 4, 4000, 3e-6
    m, chain = 4 * elements // slices / B, FORMS["broadcast", "chain"]
    ring = make("ring", {"gpus": n, "bandwidth": B, "latency": alpha})
    on_ring = run_collective(ring, "broadcast", "chain", 4 * elements, slices=slices).time
    told = {"elements": elements, "itemsize": 4, "bandwidth": B, "slices": slices}
    assert on_ring == pytest.approx((n - 1) * (alpha + m) + (slices - 1) * m, rel=EXACT)
    assert on_ring == pytest.approx(chain.time(n, latency=alpha / chain.hops, **told), rel=EXACT)
    assert chain.time(n, latency=0, overhead=alpha, **told) == pytest.approx((n + slices - 2) * (alpha + m), rel=EXACT)


def test_numbers_reckoned_by_hand() -> None:
    """4 ranks, 4,000 B, 1 GB/s, 1 us a link: a chunk takes 1 us, all of it 4 us."""
    by_hand = {
        ("all-reduce", "ring"): 6 * (1 + 1),
        ("all-reduce", "bidirectional-ring"): 6 * (0.5 + 1),
        ("all-reduce", "halving-doubling"): 4 * 2 + 2 * (2 + 1),
        ("all-reduce", "recursive-doubling"): 2 * (4 + 2),
        ("all-reduce", "parameter-server"): 12 + 12 + 2 * 2,
        ("all-reduce", "sharded-parameter-server"): 3 + 3 + 2 * 2,
        ("all-reduce", "sharp"): 2 * (4 + 1),
        ("broadcast", "chain"): 3 * (4 + 2),
    }
    for name, microseconds in by_hand.items():
        assert FORMS[name].time(4, elements=1000, itemsize=4, bandwidth=1e9, latency=1e-6) == pytest.approx(
            microseconds * 1e-6, rel=EXACT
        ), name


def evaluate(formula: str, values: dict[str, float]) -> float:
    """A formula as it is shown, with implied products: ``2(n-1)M/(nB)``, ``ceil(log2 n)L``."""
    tokens = re.findall(r"ceil|floor|log2|max|min|\d+|[A-Za-z]|[()+\-/,]", re.sub(r"log2 (\w)", r"log2(\1)", formula))
    functions = {"ceil": math.ceil, "floor": math.floor, "log2": math.log2, "max": max, "min": min}
    text = ""
    for before, token in zip(["+", *tokens], tokens, strict=False):
        text += "*" if (before not in functions and before not in "(+-/,") and token not in ")+-/," else ""
        text += token
    return float(eval(text, functions | values))


@pytest.mark.parametrize("name", HERE)
def test_the_formula_shown_is_the_time_told(name: tuple[str, str]) -> None:
    form, n, elements = FORMS[name], 8, 48 * 64
    slices = 4 if not form.refusal(n, slices=4) else 1
    rate = math.inf if "R" not in form.formula else 1e11
    servers = {"servers": 4} if "sharded" in name[1] else {}
    told = form.time(
        n, elements=elements, itemsize=4, bandwidth=B, latency=1e-6, overhead=2e-6, reduce_rate=rate, slices=slices, **servers
    )  # fmt: skip
    values = {"n": n, "o": 2e-6, "M": 4 * elements, "B": B, "L": form.hops * 1e-6, "R": rate, "S": servers.get("servers", slices), "d": 1}
    assert evaluate(form.formula, values) == pytest.approx(told, rel=EXACT)


@pytest.mark.parametrize("name", HERE)
def test_half_the_bandwidth_of_one_link_slows_the_simulation_and_not_the_form(name: tuple[str, str]) -> None:
    form, n = FORMS[name], 8
    even = make(form.topology, {"gpus": n, "bandwidth": B, "latency": 1e-6})
    slow = _with_slow_link(even, "gpu4" if name[0] == "reduce" else "gpu0")
    schedule = find(collective(name[0]), name[1]).build(n)
    whole, halved = (simulate(t, [Launch(schedule, 4 * 64 * 48, Placement.of(t, schedule))]).time for t in (even, slow))
    told = form.time(n, elements=64 * 48, itemsize=4, bandwidth=B, latency=1e-6)
    assert whole == pytest.approx(told, rel=EXACT)
    assert halved > told * 1.001


def _with_slow_link(topology: Topology, src: str) -> Topology:
    """Half the bandwidth on the link out of a GPU, towards the next one or the switch."""
    slow = next(link for link in topology.links if link.src == src)
    links = [Link(k.src, k.dst, k.kind, k.lanes, k.bandwidth / 2 if k is slow else k.bandwidth, k.latency) for k in topology.links]
    return Topology.build(topology.name, topology.nodes, links, topology.groups)


def test_refusals_say_why() -> None:
    assert "power of two" in str(FORMS["all-reduce", "halving-doubling"].refusal(6))
    assert FORMS["all-reduce", "halving-doubling"].refusal(8) is None
    assert "8 divides" in str(FORMS["all-reduce", "halving-doubling"].refusal(8, elements=12))
    assert "3 ranks" in str(FORMS["all-gather", "bidirectional-ring"].refusal(2))
    assert "1 slice" in str(FORMS["all-reduce", "ring"].refusal(4, slices=2))
    assert "number of servers" in str(FORMS["all-reduce", "sharded-parameter-server"].refusal(8, servers=3))
    assert "number of servers" in str(FORMS["all-reduce", "sharded-parameter-server"].refusal(8, servers=-4))
    assert "at least 2" in str(FORMS["all-reduce", "ring"].refusal(1))
    with pytest.raises(ScheduleError, match=r"closed form of binomial-tree: 6 ranks.*power of two"):
        FORMS["all-reduce", "binomial-tree"].time(6, elements=8, itemsize=4, bandwidth=B, latency=0)


def test_refused_cases_are_refused_for_a_reason() -> None:
    """Without its rule, each form would tell another time than the simulation."""
    for name, n, elements, rate, options in (
        (("reduce", "binomial-tree"), 3, 300, math.inf, {}),
        (("all-reduce", "recursive-doubling"), 3, 300, math.inf, {}),
        (("all-reduce", "halving-doubling"), 6, 36, math.inf, {}),
        (("all-reduce", "halving-doubling"), 8, 3, math.inf, {}),
        (("all-gather", "bidirectional-ring"), 2, 400, math.inf, {}),
        (("all-reduce", "bidirectional-ring"), 3, 7, 1e6, {}),
        (("all-reduce", "sharded-parameter-server"), 5, 300, math.inf, {"servers": 3}),
        (("all-reduce", "sharded-parameter-server"), 4, 7, math.inf, {}),
    ):
        form = FORMS[name]
        assert form.refusal(n, elements=elements, reduce_rate=rate, **options), name
        free = ClosedForm(form.algorithm, form.topology, form.hops, form.formula, form._time, ())
        topology = make(form.topology, {"gpus": n, "bandwidth": 1e6, "latency": 0.0})
        ran = run_collective(topology, *name, 4 * elements, options=options, model=Model(reduce_rate=rate)).time
        assert ran != pytest.approx(
            free.time(n, elements=elements, itemsize=4, bandwidth=1e6, latency=0, reduce_rate=rate, **options), rel=1e-6
        ), name


def test_lookup_knows_the_catalogue() -> None:
    assert lookup("all-reduce", "double-binary-tree") is None
    assert lookup("broadcast", "ring") is None
    known = {(a.collective.name, a.name) for a in catalogue()}
    assert set(FORMS) <= known
    assert all(lookup(*key) is form for key, form in FORMS.items())


def test_engines_and_executors_know_no_algorithm_and_no_closed_form() -> None:
    """By syntax, so that a word in a docstring or a comment does no harm."""
    root = Path(__file__).parents[2]
    files = [f for room in ("sim", "kernels") for f in sorted((root / room).rglob("*.py"))]
    files = [f for f in files if f.parent.name != "closed_forms" and f.name != "bounds.py"]
    assert len(files) > 5
    names = {a.name for a in catalogue()}
    modules = {a.make.__module__ for a in catalogue()}
    for file in files:
        assert not _knows(ast.parse(file.read_text()), names, modules), file


def test_the_scan_finds_what_it_looks_for() -> None:
    imports = (
        "from sim.closed_forms import lookup",
        "import sim.closed_forms",
        "import sim.closed_forms.base",
        "from sim.closed_forms.base import FORMS",
        "from sim import closed_forms",
        "from algorithms import ring",
    )
    for line in (*imports, "from algorithms.ring import ring", "x = 'double-binary-tree'"):
        assert _knows(ast.parse(line), {"double-binary-tree"}, {"algorithms.ring"}), line
    assert not _knows(ast.parse('"""A ring."""\nfrom itertools import chain'), {"ring", "chain"}, {"algorithms.ring"})


def _knows(tree: ast.AST, names: set[str], modules: set[str]) -> list[str]:
    found: list[str] = []
    for node in ast.walk(tree):
        taken: set[str] = set()
        if isinstance(node, ast.Import):
            taken = {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            taken = {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant) and node.value in names:
            found.append(node.value)
        found += [name for name in taken if name in modules or name.startswith("sim.closed_forms")]
    return found
