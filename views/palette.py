"""One colour, one dash and a short name for each algorithm, in every chart and figure: told apart without colour too."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from views.text import label, table

KNOWN = (
    "ring", "double-binary-tree", "halving-doubling", "sharp", "bidirectional-ring", "binomial-tree", "recursive-doubling",
    "parameter-server", "sharded-parameter-server", "chain",
)  # fmt: skip
"""These keep their look whatever they stand beside; others follow by name."""
LIGHT = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#8a6d00", "#5b3a8c", "#4d4d4d", "#6b3f1d")
DARK = ("#56B4E9", "#E69F00", "#2fd1a0", "#e59ac6", "#9fd6f7", "#F0E442", "#b39ddb", "#c8c8c8", "#c49a6c")
"""Okabe and Ito's, with yellow darkened on white and all lightened on black; violet, grey and brown added."""
DASHES = ([1, 0], [8, 4], [2, 3], [10, 3, 2, 3], [5, 2], [14, 4], [2, 6])
MEASURED = {False: "#1d2530", True: "#eef2f6"}
"""Measured points and markers, on a light and on a dark page."""


def ordered(names: Iterable[str]) -> list[str]:
    """All names that get a look: the known ones first, so that a look does not change with the company."""
    return [*KNOWN, *sorted(set(names) - set(KNOWN))]


def line_colour(order: Sequence[str], name: str, dark: bool = False) -> str:
    """The colour of ``name`` among ``ordered`` names."""
    colours = DARK if dark else LIGHT
    return colours[order.index(name) % len(colours)]


def dash(order: Sequence[str], name: str) -> list[int]:
    """Its dash; 9 colours and 7 dashes tell 63 names apart."""
    return DASHES[order.index(name) % len(DASHES)]


def short(lang: str, algorithm: str) -> str:
    """A name that a legend or a card has room for, if there is one, else the usual."""
    return table(lang).get(f"explore.short.{algorithm}") or label(lang, "algorithm", algorithm)
