"""Both languages say the same things, with the same blanks."""

from __future__ import annotations

import re
from string import Formatter

import pytest

from algorithms.collectives import COLLECTIVES
from views.text import LANGUAGES, label, language_of, table, templates, text


def blanks(template: str) -> set[str]:
    return {name for _, name, _, _ in Formatter().parse(template) if name}


def test_keys_are_equal() -> None:
    assert set(table("en")) == set(table("ko"))


@pytest.mark.parametrize("key", sorted(table("en")))
def test_blanks_are_equal(key: str) -> None:
    assert blanks(table("en")[key]) == blanks(table("ko")[key])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_nothing_is_empty(lang: str) -> None:
    assert [key for key, value in table(lang).items() if not value.strip()] == []


def test_korean_is_korean() -> None:
    sentences = {key: value for key, value in table("ko").items() if key.startswith(("say.", "start.", "done.", "input."))}
    assert [key for key, value in sentences.items() if key != "input.refused" and not re.search("[가-힣]", value)] == []


@pytest.mark.parametrize("name", COLLECTIVES)
def test_every_collective_has_its_sentences(name: str) -> None:
    for lang in LANGUAGES:
        assert text(lang, f"start.{name}", root=1, sum=3)
        assert text(lang, f"done.{name}", root=1, sum=3)


def test_missing_keys_values_and_languages_are_errors() -> None:
    with pytest.raises(KeyError, match=r"no\.such"):
        text("en", "no.such")
    with pytest.raises(KeyError, match="phase"):
        text("en", "player.title", k=1, n=2)
    with pytest.raises(KeyError, match="xx"):
        text("xx", "page.teach")


def test_labels_fall_back_to_the_registered_name() -> None:
    assert label("ko", "algorithm", "ring") == "링(ring)"
    assert label("ko", "algorithm", "my-new-one") == "my-new-one"


@pytest.mark.parametrize(("locale", "lang"), [("ko-KR", "ko"), ("KO", "ko"), ("en-US", "en"), ("kok-IN", "en"), (None, "en"), ("", "en")])
def test_language_follows_the_browser(locale: str | None, lang: str) -> None:
    assert language_of(locale) == lang


def test_templates_lose_the_prefix_only() -> None:
    found = templates("en", "player.")
    assert found["title"] == "Step {k}/{n} — {phase}"
    assert len(found) == len([key for key in table("en") if key.startswith("player.")])
