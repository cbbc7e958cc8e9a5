"""What the docs show works as shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from algorithms.checker import check
from algorithms.collectives import ALL_REDUCE
from algorithms.schedule import Schedule, copy, reduce
from topologies import read_cluster
from views.catalogue import files

DOCS = Path(__file__).parents[1] / "docs"


def blocks(name: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)


@pytest.mark.parametrize("text", blocks("clusters.md", "toml"))
def test_cluster_files_of_the_page_are_read(text: str, tmp_path: Path) -> None:
    path = tmp_path / "cluster.toml"
    path.write_text(text, encoding="utf-8")
    assert len(read_cluster(path).gpus) >= 4


def test_ring_of_the_design_page_is_a_correct_all_reduce() -> None:
    (source,) = blocks("design.md", "python")
    body = source.split("\n", 1)[1]  # without the decorator, which would register it twice
    import numpy as np

    scope: dict[str, object] = {"np": np, "reduce": reduce, "copy": copy, "Iterator": object}
    exec("from __future__ import annotations\n" + body, scope)
    ring = scope["ring"]
    assert callable(ring)
    for n in (2, 5, 8):
        check(Schedule.of("page", ALL_REDUCE, n, ring(n)))


def test_every_file_named_in_the_docs_exists() -> None:
    root = DOCS.parent
    for page in [root / "README.md", root / "CONTRIBUTING.md", *DOCS.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_catalogue_is_up_to_date() -> None:
    """Written anew by `python -m views.catalogue`; no picture is left of an algorithm that is gone."""
    wanted = files()
    for path, text in wanted.items():
        assert (DOCS / path).read_text(encoding="utf-8") == text, f"docs/{path}: run python -m views.catalogue"
    assert {p.name for p in (DOCS / "images" / "catalogue").iterdir()} == {p.name for p in wanted if p.suffix == ".svg"}
