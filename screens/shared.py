"""What the pages share: language, the URL as the state of the inputs, and errors shown where the input is."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

import streamlit as st

from topologies.errors import RingscopeError
from views.text import LANGUAGES, language_of, text

T = TypeVar("T")
Reader = Callable[[str], object]
"""Reads a URL value; ValueError when the page cannot show it."""

LONGEST = 100  # characters of a value in the URL; no input of the app needs more


def one_of(*known: T) -> Callable[[str], T]:
    """A reader of values that ``known`` lists, by their text."""
    by_text = {str(value): value for value in known}

    def read(given: str) -> T:
        if given not in by_text:
            raise ValueError(given)
        return by_text[given]

    return read


def whole(given: str, most: int) -> int:
    """A number from 0 to ``most`` that the browser wrote; 0 for anything else."""
    return int(given) if given in map(str, range(most + 1)) else 0


def checked(parse: Callable[[str], object]) -> Reader:
    """A reader of text that ``parse`` accepts; the text itself stays, as the user wrote it."""

    def read(given: str) -> str:
        parse(given)
        return given

    return read


def language() -> str:
    """The language of this session: from the URL, else from the browser."""
    if "language" not in st.session_state:
        asked = st.query_params.get("lang", "")
        st.session_state["language"] = asked if asked in LANGUAGES else language_of(st.context.locale)
    chosen: str = st.session_state["language"]
    return chosen


def language_picker() -> None:
    """The visible toggle. Its own state may vanish when the page changes, so ``language()`` does not depend on it."""
    st.session_state["lang"] = language()
    st.segmented_control(
        text(language(), "input.language"), LANGUAGES, format_func={"en": "EN", "ko": "한국어"}.__getitem__, key="lang", required=True,
        on_change=_picked,
    )  # fmt: skip


def _picked() -> None:
    st.session_state["language"] = st.session_state["lang"] or language()


def toggle_language() -> None:
    """The other language; for callbacks."""
    st.session_state["language"] = "en" if language() == "ko" else "ko"


def seed(page: str, defaults: Mapping[str, object], readers: Mapping[str, Reader]) -> None:
    """Once a session, put the URL's values into the session state of the widgets ``page.key``, and the defaults where the URL
    has none. What a reader refuses is named in one sentence; the default stands in its place."""
    ignored = [] if st.query_params.get("lang", "en") in LANGUAGES else ["lang"]
    for key, value in defaults.items():
        if f"{page}.{key}" in st.session_state:
            continue
        st.session_state[f"{page}.{key}"] = value
        given = st.query_params.get(key)
        if given is None or f"{page}.seeded" in st.session_state:
            continue
        try:
            if len(given) > LONGEST:
                raise ValueError("too long")
            st.session_state[f"{page}.{key}"] = readers[key](given)
        except ValueError:
            ignored.append(key)
    if ignored and f"{page}.seeded" not in st.session_state:
        st.warning(text(language(), "url.ignored", names=", ".join(ignored)))
    st.session_state[f"{page}.seeded"] = True


def publish(values: Mapping[str, object], defaults: Mapping[str, object]) -> None:
    """Make the URL say this state: the language, and every value that is not the default."""
    shown = {key: str(value) for key, value in values.items() if value != defaults.get(key)}
    shown["lang"] = language()
    if st.query_params.to_dict() != shown:
        st.query_params.from_dict(shown)


@contextmanager
def errors_at(label: str) -> Iterator[None]:
    """Show a user's error below the input called ``label`` and end the page there."""
    try:
        yield
    except RingscopeError as error:
        st.error(text(language(), "error.at", where=label, message=error))
        st.stop()
