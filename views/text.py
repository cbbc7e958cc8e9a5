"""Words of the app in English and Korean: keys from ``locales/*.json`` -> text."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

LANGUAGES = ("en", "ko")
"""Stable codes, as they stand in the URL (``?lang=ko``)."""


@cache
def table(lang: str) -> dict[str, str]:
    """All templates of a language by key; KeyError for an unknown language."""
    if lang not in LANGUAGES:
        raise KeyError(f'language "{lang}" is not known; known: {", ".join(LANGUAGES)}')
    read: dict[str, str] = json.loads((Path(__file__).parent / "locales" / f"{lang}.json").read_text(encoding="utf-8"))
    return read


def text(lang: str, key: str, **values: object) -> str:
    """The template of ``key`` with its ``{names}`` filled in; KeyError for a missing key or value."""
    return table(lang)[key].format(**values)


def templates(lang: str, prefix: str) -> dict[str, str]:
    """The unfilled templates whose keys start with ``prefix``, without it: what the browser fills in itself."""
    return {key.removeprefix(prefix): value for key, value in table(lang).items() if key.startswith(prefix)}


def label(lang: str, group: str, name: str) -> str:
    """The word for a registered name (an algorithm, a topology), or the name itself: a new one needs no edit here."""
    return table(lang).get(f"{group}.{name}", name)


def language_of(locale: str | None) -> str:
    """The language for a browser locale: ``"ko-KR"`` -> ``"ko"``, anything else -> ``"en"``."""
    return "ko" if (locale or "").lower().split("-")[0] == "ko" else "en"
