"""Explore in a real browser: first picture without a click, inputs, an uploaded log, accessibility."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from measured_log import all_reduce_log
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]


def ready(page: Page) -> Page:
    """The picture, the last thing that takes time, is there."""
    expect(page.get_by_test_id("stImage").locator("img")).to_be_visible(timeout=40_000)
    expect(page.locator("[data-testid=stApp][data-test-script-state='notRunning']")).to_be_visible(timeout=40_000)
    return page


def cards(page: Page) -> list[str]:
    return page.get_by_test_id("stMetricValue").all_inner_texts()


def test_first_picture_needs_no_click(visit: Visit) -> None:
    page = ready(visit("/explore"))
    assert re.fullmatch(r"[\d.]+ µs", cards(page)[0])
    expect(page.get_by_test_id("stTopNavLink")).to_have_count(2)  # also on a server that nobody visited before
    expect(page.get_by_test_id("stVegaLiteChart").locator("canvas, svg")).to_have_count(2)
    drawn = page.get_by_test_id("stImage").locator("img").evaluate("image => [image.naturalWidth, image.naturalHeight]")
    assert drawn[0] == 1200
    assert drawn[1] > 300


def test_nothing_in_the_cards_is_cut(visit: Visit) -> None:
    page = ready(visit("/explore?topology=dgx-a100&collective=all-reduce&algorithm=sharded-parameter-server"))
    values = page.get_by_test_id("stMetricValue")
    cut = values.evaluate_all("all => all.filter(e => e.scrollWidth > e.clientWidth + 1).map(e => e.innerText)")
    assert cut == []


def test_another_machine_and_size_change_the_cards(visit: Visit) -> None:
    page = ready(visit("/explore"))
    before = cards(page)
    page.get_by_role("combobox", name="Machine").fill("Torus")
    page.get_by_role("option", name="Torus").click()
    expect(page).to_have_url(re.compile("topology=torus"))
    ready(page)
    torus = cards(page)
    assert torus != before
    page.get_by_role("slider").focus()
    page.keyboard.press("ArrowRight")
    expect(page).to_have_url(re.compile("size=128MiB"))
    ready(page)
    assert cards(page) != torus


def test_a_log_shows_its_error_and_garbage_one_sentence(visit: Visit, tmp_path: Path) -> None:
    page = ready(visit("/explore"))
    log = tmp_path / "measured.txt"
    log.write_text(all_reduce_log({2**k: 20 + 2**k / 3e5 for k in range(10, 30, 4)}))
    page.locator("input[type=file]").set_input_files(log)
    expect(page.get_by_test_id("stMetricLabel").filter(has_text="MAPE")).to_be_visible()
    expect(page.get_by_test_id("stMetricValue").last).to_have_text(re.compile(r"^\d+\.\d %$"))
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(3)
    garbage = tmp_path / "garbage.log"
    garbage.write_bytes(bytes(range(256)) * 20)
    page.get_by_test_id("stFileUploader").get_by_role("button").last.wait_for()
    page.reload()
    ready(page).locator("input[type=file]").set_input_files(garbage)
    expect(page.get_by_test_id("stAlert")).to_have_count(1)
    expect(page.get_by_test_id("stAlert")).to_contain_text("garbage.log")


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Visit, page: Page, lang: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    ready(visit(f"/explore?lang={lang}"))
    expect(page.get_by_text("한국어")).to_be_visible()
    found = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("critical", "serious")] == []


def test_the_picture_follows_the_theme(visit: Visit, page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    ready(visit("/explore"))
    expect(page.get_by_test_id("stImage").locator("img")).to_have_attribute("src", re.compile("."))
    source = page.get_by_test_id("stImage").locator("img").evaluate("async image => await (await fetch(image.src)).text()")
    assert "#1d3450" in source  # a GPU's fill in the dark theme
