"""Cached calls of the predictor and the simulator for Explore: the same scenario is simulated once."""

from __future__ import annotations

import streamlit as st

from algorithms.collectives import collective
from algorithms.registry import catalogue, find
from prediction.compare import Report, compare
from prediction.limits import machine_of
from prediction.predict import Row, predict, slices_for
from prediction.readers import read_text
from screens.explore_inputs import Scenario
from screens.explore_url import Params
from sim.bounds import Bounds, bounds
from sim.result import Result
from sim.simulate import make_launch, run_collective
from topologies import Topology, TopologyError
from views.explored import Reason, reason
from views.text import text
from views.topology_picture import result_svg

ALL_UP_TO = 16
"""GPUs up to which every algorithm is simulated at the chosen size, so that the fastest is the fastest of all."""
BEST = 3
"""So many of the fastest get a curve whether textbook or not."""
MAX_GPUS = 128
"""The page simulates no more while a person waits; the terminal does."""
FIRST, LAST = 10, 32
"""Curves go from 2^10 to 2^32 bytes."""
SMALL = 12
"""As many sizes are simulated where that takes about a second; fewer, behind a progress bar, where it takes longer."""


@st.cache_resource(max_entries=64, show_spinner=False)
def cluster(name: str, params: Params) -> Topology:
    """A registered topology; frozen, so that all sessions share it."""
    return machine_of(name, dict(params))


def gpus_of(chosen: Scenario, lang: str) -> int:
    """How many GPUs the machine has; TopologyError for one that cannot be, or is too large to simulate while a person waits."""
    gpus = len(cluster(chosen.topology, chosen.params).gpus)
    if gpus > MAX_GPUS:
        raise TopologyError(text(lang, "explore.too_large", n=f"{gpus:,}", most=MAX_GPUS, topology=chosen.topology))
    return gpus


@st.cache_data(max_entries=256, show_spinner=False)
def row(name: str, params: Params, collective_name: str, algorithms: tuple[str, ...], nbytes: int) -> tuple[Row, dict[str, str]]:
    """These algorithms at one size, and why some are left out."""
    found = predict(cluster(name, params), collective_name, [nbytes], algorithms=algorithms)
    return found.rows[0], dict(found.skipped)


@st.cache_data(max_entries=256, show_spinner=False)
def bound(name: str, params: Params, collective_name: str, nbytes: int, in_network: bool, pattern: str = "") -> Bounds:
    """The lower bound at one size; of point-to-point patterns that of ``pattern``, or what holds for all."""
    machine, what = cluster(name, params), collective(collective_name)
    if what.end == "peer" and pattern:
        what = make_launch(machine, collective_name, pattern, nbytes).whole.collective
    return bounds(machine, what, nbytes, in_network=in_network)


def run(chosen: Scenario, algorithm: str) -> Result:
    """One algorithm at the chosen size, in the slices that the prediction takes."""
    slices = slices_for(find(collective(chosen.collective), algorithm), chosen.nbytes)
    return run_collective(cluster(chosen.topology, chosen.params), chosen.collective, algorithm, chosen.nbytes, slices=slices)


@st.cache_data(max_entries=256, show_spinner=False)
def picture(chosen: Scenario, algorithm: str, lang: str, dark: bool) -> tuple[str, Reason]:
    """The topology coloured by load, and what limits the time."""
    result = run(chosen, algorithm)
    limit = bound(chosen.topology, chosen.params, chosen.collective, chosen.nbytes, in_network(chosen, algorithm), algorithm)
    return result_svg(result, lang=lang, dark=dark), reason(result, limit, lang)


@st.cache_data(max_entries=256, show_spinner=False)
def in_network(chosen: Scenario, algorithm: str) -> bool:
    """Whether switches take part in the algorithm, so that other lower bounds hold."""
    return find(collective(chosen.collective), algorithm).build(len(cluster(chosen.topology, chosen.params).gpus)).in_network


def sizes(chosen: Scenario) -> list[int]:
    """The sizes of the curves: fewer where a run takes longer, always with the chosen one and both ends."""
    gpus = len(cluster(chosen.topology, chosen.params).gpus)
    apart = 2 if gpus <= 16 else 3 if gpus <= 32 else 4
    return sorted({*(2**k for k in range(FIRST, LAST + 1, apart)), chosen.nbytes, 2**LAST})


def drawn(chosen: Scenario) -> tuple[str, ...]:
    """The algorithms that get a curve: those asked for, and the fastest of all at the chosen size where all are simulated there."""
    if len(cluster(chosen.topology, chosen.params).gpus) > ALL_UP_TO or collective(chosen.collective).end == "peer":
        return chosen.algorithms  # patterns are different jobs: none is the fastest
    every = tuple(a.name for a in catalogue(collective(chosen.collective)))
    best = [c.algorithm for c in row(chosen.topology, chosen.params, chosen.collective, every, chosen.nbytes)[0].candidates[:BEST]]
    return (*chosen.algorithms, *(name for name in best if name not in chosen.algorithms))


def curve(chosen: Scenario, words: str) -> tuple[list[Row], dict[str, str]]:
    """The algorithms at every size, behind a progress bar with ``words`` if that takes a while."""
    rows, skipped = [], dict[str, str]()
    wanted, algorithms = sizes(chosen), drawn(chosen)
    slot = st.empty()
    for done, nbytes in enumerate(wanted):
        if len(wanted) < SMALL:
            slot.progress(done / len(wanted), words)
        found, skipped = row(chosen.topology, chosen.params, chosen.collective, algorithms, nbytes)
        rows.append(found)
    slot.empty()
    return rows, skipped


@st.cache_data(max_entries=32, show_spinner=False)
def report(content: bytes, name: str, topology: str, params: Params) -> Report:
    """An uploaded log against the topology; how many servers and GPUs comes from the log. Raises RingscopeError."""
    utf16 = content[:2] in (b"\xff\xfe", b"\xfe\xff")
    tables = read_text(content.decode("utf-16" if utf16 else "utf-8-sig", errors="replace"), name)
    return compare(tables, topology, {key: value for key, value in params if key not in ("nodes", "gpus")})
