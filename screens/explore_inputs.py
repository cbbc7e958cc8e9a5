"""The inputs of Explore: widgets whose state is the URL, as a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import streamlit as st

from screens.explore_url import DEFAULTS, MOST_COUNT, OFFERED, READERS, SIZES, TOPOLOGIES, Params, usual
from screens.shared import LONGEST, language, language_picker, publish
from topologies import registry
from topologies.registry import Parameter
from topologies.units import format_bytes
from views.text import LANGUAGES, label, text


@dataclass(frozen=True, slots=True)
class Scenario:
    """What the person chose; ``params`` are those that differ from the generator's defaults."""

    topology: str
    params: Params
    collective: str
    nbytes: int
    algorithm: str
    algorithms: tuple[str, ...]


def _key(name: str, parameter: str) -> str:
    return f"explore.{name}.{parameter}"


def _seed() -> None:
    """Once a session, the URL into the state of the widgets; what cannot be shown is named in one sentence."""
    state = st.session_state
    first = "explore.topology" not in state
    ignored = ["lang"] if first and st.query_params.get("lang", "en") not in LANGUAGES else []
    found: dict[str, object] = {}
    for key, default in DEFAULTS.items():
        given = st.query_params.get(key, "") if first else ""
        try:
            if len(given) > 4 * LONGEST:
                raise ValueError(key)
            found[key] = READERS[key](given) if given else default
        except ValueError:
            ignored.append(key)
            found[key] = default
    for key in ("topology", "collective", "size", "algorithm"):
        state.setdefault(f"explore.{key}", found[key])
    state.setdefault("explore.also", found["also"] or [])
    if first and isinstance(found["params"], dict) and not _seed_params(state["explore.topology"], found["params"]):
        ignored.append("params")
    if ignored:
        st.warning(text(language(), "url.ignored", names=", ".join(ignored)))


def _seed_params(name: str, params: Mapping[str, str]) -> bool:
    """Whether the topology has all these parameters; if so they are taken."""
    known = {parameter.name: parameter for parameter in registry.get(name).parameters}
    if any(key not in known or (_steps(known[key]) and not (value.isascii() and value.isdigit())) for key, value in params.items()):
        return False
    for key, value in params.items():
        st.session_state[_key(name, key)] = min(MOST_COUNT, max(1, int(value))) if _steps(known[key]) else value
    return True


def _steps(parameter: Parameter) -> bool:
    """A whole number with buttons for one more and one less."""
    return parameter.unit == "count" and parameter.default is not None


def _parameter(parameter: Parameter, name: str) -> str:
    """The widget of one parameter of a generator; its value as text."""
    key, words = _key(name, parameter.name), label(language(), "explore.parameter", parameter.name)
    if _steps(parameter):
        st.session_state.setdefault(key, parameter.default)
        return str(st.number_input(words, 1, MOST_COUNT, key=key, persist_state="session"))
    st.session_state.setdefault(key, parameter.text)
    return str(st.text_input(words, key=key, max_chars=48, placeholder="auto", persist_state="session"))


def scenario() -> Scenario:
    """Draw the inputs, keep the URL, return what was chosen."""
    _seed()
    lang, state = language(), st.session_state
    columns = st.columns([1.7, 2.3, 1.3, 1.3, 1.8, 2.9], vertical_alignment="bottom")
    with columns[0]:
        language_picker()
    name = columns[1].selectbox(
        text(lang, "explore.topology"), TOPOLOGIES, format_func=lambda name: label(lang, "explore.topology", name), key="explore.topology",
        persist_state="session",
    )  # fmt: skip
    parameters = registry.get(name).parameters
    values = {}
    for column, parameter in zip(columns[2:4], parameters, strict=False):
        with column:
            values[parameter.name] = _parameter(parameter, name)
    columns[4].selectbox(
        text(lang, "input.collective"), OFFERED, format_func=lambda name: label(lang, "collective", name), key="explore.collective",
        persist_state="session",
    )  # fmt: skip
    columns[5].select_slider(
        text(lang, "input.size"), list(SIZES), format_func=lambda code: format_bytes(SIZES[code]), key="explore.size",
        persist_state="session",
    )  # fmt: skip
    first, others = usual(state["explore.collective"])
    state["explore.also"] = [a for a in others if a in state["explore.also"] or a == state["explore.algorithm"]]
    if len(parameters) > 2 or others:
        with st.expander(text(lang, "explore.more")):
            for column, parameter in zip(st.columns(max(1, len(parameters) - 2)), parameters[2:], strict=False):
                with column:
                    values[parameter.name] = _parameter(parameter, name)
            if others:
                st.multiselect(
                    text(lang, "explore.also"), others, format_func=lambda name: label(lang, "algorithm", name), key="explore.also",
                    persist_state="session",
                )  # fmt: skip
    own = {p.name: values[p.name] for p in parameters if values[p.name] != p.text}
    chosen = {key: state[f"explore.{key}"] for key in ("topology", "collective", "size", "algorithm")}
    also = state["explore.also"]
    publish(chosen | {"params": ",".join(f"{key}={value}" for key, value in own.items()), "also": ",".join(also)}, DEFAULTS)
    params = tuple((key, value) for key, value in own.items() if value)
    return Scenario(name, params, chosen["collective"], SIZES[chosen["size"]], chosen["algorithm"], (*first, *also))
