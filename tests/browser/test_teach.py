"""Teach in a real browser: the first picture, stepping, links, languages, layout, accessibility."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qs, urlparse

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

pytestmark = pytest.mark.browser
Visit = Callable[..., Page]


def open_teach(visit: Visit, path: str = "/") -> Page:
    """The page once its player is there; it takes the focus by itself."""
    page = visit(path)
    expect(page.locator("#player")).to_be_focused()
    return page


def title(page: Page, words: str | re.Pattern[str]) -> None:
    expect(page.locator("#player > svg text").first).to_have_text(words)


def cells(page: Page) -> list[str]:
    """Texts of the cells: those in the middle of a box, after the name of their place."""
    found: list[str] = page.evaluate(
        """() => [...document.querySelectorAll('*')].map((e) => e.shadowRoot?.querySelector('#player')).find(Boolean)
              .querySelectorAll('svg rect + text[font-weight="600"]').values().map((t) => t.textContent).toArray()"""
    )
    return found


def words(page: Page) -> str:
    return page.locator("#player > svg").text_content() or ""


def test_first_picture_needs_no_click_and_keys_work_at_once(visit: Visit) -> None:
    page = open_teach(visit)
    title(page, "all-reduce by ring")
    assert sorted(cells(page)[:64]) == sorted(str(r + 1) for r in range(8) for _ in range(8))
    page.keyboard.press("ArrowRight")
    title(page, "Step 1/14 — reduce-scatter")
    assert "GPU 0 → GPU 1" in words(page)
    assert "8 + 7 = 15" not in words(page)
    assert "1 + 2 = 3" in words(page)


def test_fourteen_steps_sum_every_cell_and_home_returns(visit: Visit) -> None:
    page = open_teach(visit)
    for _ in range(14):
        page.keyboard.press("ArrowRight")
    title(page, "Step 14/14 — all-gather")
    assert cells(page)[:64] == ["36"] * 64
    page.keyboard.press("ArrowRight")
    title(page, "Step 14/14 — all-gather")
    page.keyboard.press("Home")
    title(page, "all-reduce by ring")
    assert "36" not in cells(page)[:64]


@pytest.mark.parametrize(
    ("algorithm", "gpus", "count"),
    [("recursive-doubling", 6, 6), ("halving-doubling", 8, 64), ("double-binary-tree", 7, 14), ("sharp", 5, 6),
     ("bidirectional-ring", 3, 18)],
)  # fmt: skip
def test_browser_computes_the_sum_for_exchanges_trees_and_switches(visit: Visit, algorithm: str, gpus: int, count: int) -> None:
    page = open_teach(visit, f"/?algorithm={algorithm}&gpus={gpus}")
    page.keyboard.press("End")
    title(page, re.compile("^Step"))
    assert cells(page)[:count] == [str(gpus * (gpus + 1) // 2)] * count


@pytest.mark.parametrize(
    ("key", "shown"),
    [("PageDown", "Step 4/14"), ("PageUp", "Step 2/14"), ("ArrowLeft", "Step 2/14"), ("End", "Step 14/14"), ("Home", "all-reduce")],
)
def test_keys(visit: Visit, key: str, shown: str) -> None:
    page = open_teach(visit, "/?step=3")
    title(page, re.compile("^Step 3/14"))
    page.keyboard.press(key)
    title(page, re.compile(f"^{shown}"))


def test_space_plays_to_the_end_and_stops(visit: Visit) -> None:
    page = open_teach(visit, "/?gpus=2")
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("+")
    page.keyboard.press("Space")
    expect(page.locator("#player button.play")).to_have_text("Pause")
    title(page, re.compile("^Step 2/2"))
    expect(page.locator("#player button.play")).to_have_text("Play")


def test_v_shows_contributions_instead_of_values(visit: Visit) -> None:
    page = open_teach(visit, "/?step=14")
    assert cells(page)[:64] == ["36"] * 64
    page.keyboard.press("v")
    assert cells(page)[:64] == ["8"] * 64


def test_permalink_reopens_the_same_state_in_korean(visit: Visit) -> None:
    page = open_teach(visit, "/?algorithm=double-binary-tree&gpus=6&size=1GB&lang=ko&step=2")
    title(page, re.compile("^단계 2/"))
    before, address = words(page), page.url
    asked = parse_qs(urlparse(address).query)
    assert asked == {"algorithm": ["double-binary-tree"], "gpus": ["6"], "size": ["1GB"], "lang": ["ko"], "step": ["2"]}
    page = open_teach(visit, address)
    title(page, re.compile("^단계 2/"))
    assert words(page) == before
    assert page.get_by_role("textbox", name="메시지 크기").input_value() == "1GB"


def test_copy_link_holds_the_step(visit: Visit, page: Page) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    open_teach(visit, "/?gpus=4")
    for _ in range(3):
        page.keyboard.press("ArrowRight")
    page.locator("#player button.link").click()
    expect(page.locator("#player button.link")).to_have_text("Copied")
    copied = page.evaluate("navigator.clipboard.readText()")
    assert parse_qs(urlparse(copied).query) == {"gpus": ["4"], "lang": ["en"], "step": ["3"]}
    open_teach(visit, copied)
    title(page, "Step 3/6 — reduce-scatter")


def test_language_key_keeps_the_step(visit: Visit) -> None:
    page = open_teach(visit, "/?step=5")
    title(page, "Step 5/14 — reduce-scatter")
    page.keyboard.press("l")
    title(page, "단계 5/14 — 리듀스-스캐터")
    expect(page.get_by_role("slider", name="GPU 수")).to_be_visible()
    assert parse_qs(urlparse(page.url).query) == {"lang": ["ko"], "step": ["5"]}


def test_a_new_scenario_starts_at_its_first_step(visit: Visit) -> None:
    page = open_teach(visit, "/?step=5")
    title(page, "Step 5/14 — reduce-scatter")
    page.get_by_role("slider", name="GPUs").press("ArrowLeft")
    title(page, "all-reduce by ring")
    expect(page.locator("#player .count")).to_have_text("0/12")
    expect(page).to_have_url(re.compile(r"gpus=7"))
    assert "step" not in page.url


def test_inputs_and_language_survive_a_visit_to_the_other_page(visit: Visit) -> None:
    page = open_teach(visit, "/?gpus=5&lang=ko")
    for link, path in ((1, "explore"), (0, "")):
        page.get_by_test_id("stTopNavLink").nth(link).click()
        expect(page).to_have_url(re.compile(rf"//[^/]+/{path}\?.*lang=ko"))
    title(page, "올리듀스(all-reduce): 링(ring)")
    expect(page.locator("#player .count")).to_have_text("0/8")


def test_the_language_toggle_is_visible_and_changes_everything(visit: Visit) -> None:
    page = open_teach(visit)
    page.get_by_text("한국어", exact=True).click()
    title(page, "올리듀스(all-reduce): 링(ring)")
    expect(page.get_by_test_id("stTopNavLink").first).to_have_text(re.compile("배우기"))
    page.get_by_text("EN", exact=True).click()
    title(page, "all-reduce by ring")


@pytest.mark.parametrize(
    "bad",
    ["gpus=abc", "gpus=999", "gpus=-1", "algorithm=evil", "collective=<b>x</b>", "size=" + "9" * 300, "bandwidth=-1", "latency=soon",
     "step=-4", "lang=xx"],
)  # fmt: skip
def test_bad_values_are_ignored_with_one_sentence(visit: Visit, bad: str) -> None:
    page = open_teach(visit, f"/?{bad}")
    title(page, "all-reduce by ring")
    expect(page.get_by_test_id("stAlert")).to_have_count(1)
    expect(page.get_by_test_id("stAlert")).to_contain_text(bad.split("=")[0])
    expect(page.get_by_role("slider", name="GPUs")).to_have_value("8")


def test_an_error_stands_below_the_inputs(visit: Visit) -> None:
    page = open_teach(visit)
    size = page.get_by_role("textbox", name="Message size")
    size.fill("64 parsecs")
    size.press("Enter")
    expect(page.get_by_test_id("stAlert")).to_contain_text('Message size: "64 parsecs" is not a size')
    size.fill("1MiB")
    size.press("Enter")
    title(page, "all-reduce by ring")


@pytest.mark.parametrize("query", ["", "?gpus=16", "?algorithm=double-binary-tree&gpus=16&lang=ko", "?algorithm=sharp"])
def test_player_fits_the_first_screen(visit: Visit, query: str) -> None:
    page = open_teach(visit, f"/{query}")
    box = page.locator("#player").bounding_box()
    assert box is not None
    assert box["y"] + box["height"] <= 720
    assert box["x"] + box["width"] <= 1280
    assert box["height"] > 400


def test_text_is_large_enough(visit: Visit) -> None:
    page = open_teach(visit, "/?gpus=16&step=4")
    sizes = page.locator("#player > svg text").evaluate_all("all => all.map((t) => Number(t.getAttribute('font-size')))")
    assert len(sizes) > 256
    assert min(sizes) >= 20


@pytest.mark.parametrize("lang", ["en", "ko"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(visit: Visit, page: Page, lang: str, scheme: str) -> None:
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    open_teach(visit, f"/?lang={lang}&step=3")
    page.keyboard.press("?")
    expect(page.locator("#player .sheet")).to_be_visible()
    found = Axe().run(page).response["violations"]
    assert [(v["id"], v["nodes"][0]["html"][:200]) for v in found if v["impact"] in ("critical", "serious")] == []


def test_dark_theme_darkens_the_picture(visit: Visit, page: Page) -> None:
    page.emulate_media(color_scheme="dark")
    open_teach(visit)
    assert page.locator("#player > svg > rect").first.get_attribute("fill") == "#12161c"


@pytest.mark.parametrize("kind", ["svg", "png"])
def test_pictures_are_saved(visit: Visit, page: Page, tmp_path: Path, kind: str) -> None:
    open_teach(visit, "/?step=2")
    with page.expect_download() as waiting:
        page.keyboard.press(kind[0])
    download = waiting.value
    assert download.suggested_filename == f"ringscope-all-reduce-ring-8-step2.{kind}"
    download.save_as(tmp_path / "saved")
    start = (tmp_path / "saved").read_bytes()[:200]
    assert start.startswith(b"\x89PNG") if kind == "png" else b"<svg" in start


def test_full_screen(visit: Visit) -> None:
    page = open_teach(visit)
    page.keyboard.press("f")
    page.wait_for_function("document.fullscreenElement !== null")
    box = page.locator("#player").bounding_box()
    assert box is not None
    assert (box["width"], box["height"]) == (1280, 720)
    page.keyboard.press("ArrowRight")
    title(page, re.compile("^Step 1/14"))


def test_moving_chips_follow_the_clock(visit: Visit, page: Page) -> None:
    page.emulate_media(reduced_motion="no-preference")
    open_teach(visit, "/?algorithm=parameter-server&step=0")
    chip = "#player > svg g[transform^='translate']:has(> rect[rx='4'] + text[font-weight='700'])"
    page.keyboard.press("ArrowRight")
    before = page.locator(chip).last.get_attribute("transform")
    page.wait_for_timeout(150)
    during = page.locator(chip).last.get_attribute("transform")
    assert before != during
    page.wait_for_timeout(900)
    assert page.locator(chip).last.get_attribute("transform") != during
