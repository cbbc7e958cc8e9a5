"""Teach: step through one collective, with the simulator's clock."""

from __future__ import annotations

from typing import Any

import streamlit as st

from algorithms.collectives import ALL_GATHER, ALL_REDUCE, BROADCAST, REDUCE, REDUCE_SCATTER, collective
from algorithms.launch import Launch, Placement
from algorithms.registry import Algorithm, catalogue, find
from screens.shared import checked, errors_at, language, language_picker, one_of, publish, seed, toggle_language, whole
from sim.simulate import simulate
from topologies import registry
from topologies.units import parse_bandwidth, parse_bytes, parse_time
from views import player
from views.facts import Fact, facts, setting
from views.layout import neighbours_only
from views.text import label, text

COLLECTIVES = [c.name for c in (ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE) if catalogue(c)]
DEFAULTS = {
    "collective": "all-reduce", "algorithm": "ring", "gpus": 8, "size": "64MiB", "bandwidth": "25GB/s", "latency": "1us", "step": 0,
}  # fmt: skip
READERS = {
    "collective": one_of(*COLLECTIVES),
    "algorithm": one_of(*{a.name for a in catalogue()}),
    "gpus": one_of(*range(2, 17)),
    "size": checked(parse_bytes),
    "bandwidth": checked(parse_bandwidth),
    "latency": checked(parse_time),
    "step": one_of(*range(1000)),
}

step_player = st.components.v2.component("ringscope_player", html=player.HTML, css=player.style(), js=player.script())


@st.cache_data(max_entries=256, show_spinner=False)
def lesson(
    collective_name: str, algorithm: str, gpus: int, nbytes: int, bandwidth: float, latency: float, lang: str
) -> tuple[dict[str, Any], list[Fact]]:
    """The player's data and the numbers below it."""
    schedule = find(collective(collective_name), algorithm).build(gpus)
    kind = "ring" if neighbours_only(schedule) else "star"
    topology = registry.make(kind, {"gpus": gpus, "bandwidth": bandwidth, "latency": latency})
    result = simulate(topology, [Launch(schedule, nbytes, Placement.of(topology, schedule), "uint8")])
    note = setting(lang, kind, bandwidth, latency, nbytes)
    return player.payload(schedule, result.trace, lang, note=note), facts(result, lang)


def offered(chosen: str, gpus: int) -> dict[str, str]:
    """Algorithms of a collective by name, with their labels; those that do not take ``gpus`` say why."""
    lang = language()

    def shown(a: Algorithm) -> str:
        name, reason = label(lang, "algorithm", a.name), a.refusal(gpus)
        return text(lang, "input.refused", name=name, reason=reason) if reason else name

    return {a.name: shown(a) for a in catalogue(collective(chosen))}


lang = language()
seed("teach", DEFAULTS, READERS)
state = st.session_state
columns = st.columns([1.45, 2.0, 2.15, 1.8, 1.25, 1.2, 1.0])
with columns[0]:
    language_picker()
columns[1].selectbox(
    text(lang, "input.collective"), COLLECTIVES, key="teach.collective", persist_state="session",
    format_func=lambda name: label(lang, "collective", name),
)  # fmt: skip
names = offered(state["teach.collective"], state["teach.gpus"])
if state["teach.algorithm"] not in names:
    state["teach.algorithm"] = "ring" if "ring" in names else next(iter(names))
columns[2].selectbox(
    text(lang, "input.algorithm"), list(names), key="teach.algorithm", persist_state="session",
    format_func=lambda name: names.get(name, name),
)  # fmt: skip
columns[3].slider(text(lang, "input.gpus"), 2, 16, key="teach.gpus", persist_state="session")
for column, key in zip(columns[4:], ("size", "bandwidth", "latency"), strict=True):
    words, help_ = text(lang, f"input.{key}"), text(lang, f"input.{key}_help")
    column.text_input(words, key=f"teach.{key}", max_chars=48, help=help_, persist_state="session")

with errors_at(text(lang, "input.size")):
    nbytes = parse_bytes(state["teach.size"])
with errors_at(text(lang, "input.bandwidth")):
    bandwidth = parse_bandwidth(state["teach.bandwidth"])
with errors_at(text(lang, "input.latency")):
    latency = parse_time(state["teach.latency"])
with errors_at(text(lang, "input.algorithm")):
    data, numbers = lesson(state["teach.collective"], state["teach.algorithm"], state["teach.gpus"], nbytes, bandwidth, latency, lang)

# The browser owns the step and keeps it in the address; a new scenario starts at 0.
if state.get("teach.shown", data["id"]) != data["id"]:
    state["teach.step"] = 0
elif "teach.shown" in state:
    state["teach.step"] = whole(st.query_params.get("step", "0"), most=len(data["steps"]))
state["teach.shown"] = data["id"]
publish({key: state[f"teach.{key}"] for key in DEFAULTS}, DEFAULTS)
step_player(data=data | {"step": state["teach.step"]}, key="teach.player", on_lang_change=toggle_language)

for column, fact in zip(st.columns(len(numbers)), numbers, strict=True):
    column.metric(fact.label, fact.value, help=fact.help, border=True)
