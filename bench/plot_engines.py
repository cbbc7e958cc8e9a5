"""Curves of docs/performance.md from what bench/engines.py --json wrote. Usage: python bench/plot_engines.py out.json [picture.png]"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib import pyplot as plt
from matplotlib.axes import Axes

Row = dict[str, Any]
LOOKS = {"event": ("SimPy (event)", "#1b6ca8", "o"), "compiled": ("compiled", "#d1495b", "s"), "maxplus": ("max-plus", "#2e8b57", "^")}
LOOKS |= {"C++": ("C++ loop", "#444444", "x")}
ALGORITHMS = ("ring", "double-binary-tree", "halving-doubling", "hierarchical", "pairwise", "direct")


def curves(ax: Axes, rows: list[Row], value: Callable[[Row], float | None], title: str, unit: str) -> None:
    """A line an engine over the number of GPUs, both axes in powers."""
    for engine, (label, colour, mark) in LOOKS.items():
        points = [(row["gpus"], y) for row in rows if row["engine"] == engine and "time" in row and (y := value(row))]
        if points:
            ax.plot(*zip(*points, strict=True), color=colour, marker=mark, markersize=5, label=label)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    gpus = sorted({row["gpus"] for row in rows})
    ax.set_xticks(gpus, [f"{n:,}" for n in gpus])
    ax.set_xticks([], minor=True)
    ax.set(title=title, xlabel="GPUs", ylabel=unit)


def contention(ax: Axes, rows: list[Row]) -> None:
    """Microseconds a send over the flows that share every link; starts together or apart."""
    lines: dict[tuple[str, bool], list[tuple[int, float]]] = defaultdict(list)
    for row in rows:
        if row.get("sends"):
            lines[row["engine"], row["apart"]].append((row["k"], row["cpu_s"] / row["sends"] * 1e6))
    for (engine, apart), points in lines.items():
        label, colour, mark = LOOKS[engine]
        name = f"{label}, starts {'apart' if apart else 'together'}"
        ax.plot(*zip(*points, strict=True), color=colour, marker=mark, linestyle="--" if apart else "-", label=name)
    ax.set_xscale("log", base=2)
    ax.set_yscale("log")
    flows = sorted({row["k"] for row in rows})
    ax.set_xticks(flows, [str(k) for k in flows])
    ax.set(
        title=f"every link shared, {rows[0]['gpus'] if rows else 0} GPUs", xlabel="flows on every link", ylabel="CPU microseconds a send"
    )
    ax.legend(fontsize=8)


def main() -> None:
    told = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    picture = Path(sys.argv[2] if len(sys.argv) > 2 else Path(__file__).parent.parent / "docs" / "images" / "engines.png")
    kinds: dict[str, list[Row]] = defaultdict(list)
    for row in told["rows"]:
        kinds["collective" if row["kind"] == "baseline" else row["kind"]].append(row)
    mpl.rcParams.update({"font.size": 10, "axes.grid": True, "grid.alpha": 0.3, "axes.titlesize": 11})
    figure, axes = plt.subplots(3, 3, figsize=(15, 13), layout="constrained")
    of = {name: [row for row in kinds["collective"] if row["algorithm"] == name] for name in ALGORITHMS}
    for ax, name in zip(axes.flat, ALGORITHMS, strict=False):
        curves(
            ax, of[name], lambda row: row["cpu_s"], f"{name} {'all-to-all' if name in ('pairwise', 'direct') else 'all-reduce'}", "CPU s"
        )
    axes[0, 0].legend(fontsize=9)
    curves(axes[2, 0], of["ring"], lambda row: row.get("command", {}).get("cpu_s"), "ring, whole command", "CPU s, start included")
    curves(axes[2, 1], of["ring"], lambda row: None if row["engine"] == "C++" else row["peak_mb"], "ring, peak memory", "MB resident")
    contention(axes[2, 2], kinds["contention"])
    figure.savefig(picture, dpi=90)


if __name__ == "__main__":
    main()
