"""Predicted against measured times, a point a measurement, a colour and a mark a class (matplotlib)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from prediction.accuracy_errors import Judged
from views.palette import LIGHT

MARKS = "os^vDPX*"
TITLES = {"nccl_tuner": "NCCL's own tuner"}
_LOOK: Any = {"font.size": 10, "axes.grid": True, "grid.color": "#e3e7ec", "axes.axisbelow": True, "svg.hashsalt": "ringscope"}


def accuracy_figure(methods: dict[str, Sequence[Judged]]) -> Figure:
    """A square for each method that has rows."""
    shown = {name: rows for name, rows in methods.items() if rows}
    kinds = sorted({row.kind for rows in shown.values() for row in rows})
    with matplotlib.rc_context(_LOOK):
        figure = Figure(figsize=(1 + 5.5 * max(1, len(shown)), 6), layout="constrained")
        for place, (name, rows) in enumerate(shown.items(), 1):
            axes = figure.add_subplot(1, len(shown), place)
            ends = [1e6 * value for row in rows for value in (row.measured_s, row.predicted_s)]
            axes.plot([min(ends), max(ends)], [min(ends), max(ends)], color="#1d2530", linewidth=0.8)
            for i, kind in enumerate(kinds):
                of = [row for row in rows if row.kind == kind]
                axes.plot(
                    [1e6 * row.measured_s for row in of], [1e6 * row.predicted_s for row in of], linestyle="", marker=MARKS[i % len(MARKS)],
                    markersize=3.5, alpha=0.6, color=LIGHT[i % len(LIGHT)], label=kind,
                )  # fmt: skip
            title = TITLES.get(name, name.replace("_", " "))
            axes.set(title=title, xlabel="measured [µs]", ylabel="predicted [µs]", xscale="log", yscale="log", aspect="equal")
            axes.legend(fontsize=8)
    return figure


def save_accuracy(methods: dict[str, Sequence[Judged]], path: Path) -> None:
    """Write the figure; the ending of ``path`` says the format. The same rows give the same bytes."""
    with matplotlib.rc_context(_LOOK):
        accuracy_figure(methods).savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else None)
