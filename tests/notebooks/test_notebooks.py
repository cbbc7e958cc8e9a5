"""Notebooks run from top to bottom in a fresh kernel; a cell that raises fails the test."""

from __future__ import annotations

import re
from pathlib import Path

import jupytext
import nbformat
import pytest
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.py"))


def execute(notebook: nbformat.NotebookNode) -> nbformat.NotebookNode:
    return NotebookClient(notebook, timeout=60, resources={"metadata": {"path": str(ROOT)}}).execute()


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_runs_and_shows_pictures(path: Path) -> None:
    done = execute(jupytext.read(path))
    outputs = [output for cell in done.cells if cell.cell_type == "code" for output in cell.outputs]
    pictures = [output for output in outputs if "image/svg+xml" in output.get("data", {})]
    assert len(pictures) >= 3
    assert not [output for output in outputs if output.output_type == "stream" and output.name == "stderr"]


def test_a_raising_cell_is_noticed() -> None:
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("assert 1 == 2")])
    with pytest.raises(CellExecutionError):
        execute(notebook)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_every_long_text_stands_in_both_languages(path: Path) -> None:
    texts = [cell.source for cell in jupytext.read(path).cells if cell.cell_type == "markdown" and len(cell.source) > 200]
    assert texts
    for said in texts:
        assert len(re.findall("[가-힣]", said)) > 40 or "|" in said, said[:60]
        assert "**English.**" in said
