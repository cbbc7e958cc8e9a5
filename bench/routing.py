"""Hash collisions: times of ECMP over many seeds beside spraying, fixed shortest ways and rail-aligned ways; a table and a picture.

64 GPUs on a classic leaf/spine network and in 8 servers on rails; docs/routing.md shows the outcome. The seeds of the hash are
0..seeds-1, that of the shuffled ranks is ``--shuffle``: the same call gives the same numbers.
Usage: python bench/routing.py [--seeds 100] [--shuffle 1] [--engine compiled] [--picture docs/images/ecmp_collisions.png] [--large]
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass, replace

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algorithms.launch import Launch, Placement
from sim.model import Model
from sim.simulate import ENGINES, make_launch, simulate
from topologies import Topology, make
from views.figures import STYLE

NBYTES = 64 * 2**20
FABRICS = {
    "leaf/spine, 8 leaves of 8 GPUs, 8 spines": make("leaf-spine", {"gpus_per_leaf": 8, "leaves": 8, "spines": 8}),
    "rail-optimised, 8 servers of 8 GPUs, 16 leaves, 4 spines": make("rail-optimised", {"nodes": 8, "gpus": 8, "unit": 4, "spines": 4}),
}
LARGE = {"rail-optimised, 64 servers of 8 GPUs, 32 leaves, 8 spines": ("rail-optimised", {"nodes": 64, "unit": 16, "spines": 8})}
"""With ``--large``: patterns of which every run takes seconds."""
LARGE_PATTERNS = {
    "all-to-all in two levels": ("all-to-all", "hierarchical", False),
    "ring all-reduce, ranks in order": ("all-reduce", "ring", False),
    "ring all-reduce, ranks shuffled": ("all-reduce", "ring", True),
}
PATTERNS = {
    "all-to-all, all blocks at once": ("all-to-all", "direct", False),
    "all-to-all, pair by pair": ("all-to-all", "pairwise", False),
    "ring all-reduce, ranks in order": ("all-reduce", "ring", False),
    "ring all-reduce, ranks shuffled": ("all-reduce", "ring", True),
}


@dataclass(frozen=True)
class Study:
    """Seconds of one pattern on one fabric."""

    ecmp: list[float]
    adaptive: float
    shortest: float
    rail: float


def launch_of(topology: Topology, collective: str, algorithm: str, shuffled: bool, seed: int) -> Launch:
    launch = make_launch(topology, collective, algorithm, NBYTES)
    assert launch.schedule is not None
    ranks = np.random.default_rng(seed).permutation(len(topology.gpus)).tolist()
    return replace(launch, placement=Placement.of(topology, launch.schedule, ranks)) if shuffled else launch


def study(topology: Topology, launch: Launch, seeds: int, engine: str) -> Study:
    def time(model: Model) -> float:
        return simulate(topology, [launch], model, engine, traced=False).time

    ecmp = [time(Model(routing="ecmp", routing_seed=seed)) for seed in range(seeds)]
    return Study(ecmp, time(Model(routing="adaptive")), time(Model()), time(Model(routing="rail")))


def panel(ax: Axes, told: Study, last: float) -> None:
    ax.set(xlim=(0.9, last), ylim=(0, 1.1))
    ratios = np.asarray(told.ecmp) / told.adaptive
    heights, edges = np.histogram(ratios, bins=np.arange(0.875, last, 0.05))
    ax.bar(edges[:-1], heights / heights.max(), width=np.diff(edges), align="edge", color="#E69F00")
    ax.set_yticks([])
    ax.grid(visible=False, axis="y")
    ax.axvline(1, color="#0072B2", linewidth=2)
    for name, value, colour in (("shortest", told.shortest, "#5b6470"), ("rail", told.rail, "#009E73")):
        ax.plot([value / told.adaptive], [0.78 if name == "rail" else 0.92], marker="D" if name == "rail" else "v", color=colour, zorder=4)
    ax.set_title(f"adaptive {told.adaptive * 1e3:.2f} ms, ECMP median x{np.median(ratios):.2f}", fontsize=9, loc="left")


def picture(studies: dict[tuple[str, str], Study], path: str, seeds: int) -> None:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(10, 8.2), layout="constrained")
        axes = figure.subplots(len(PATTERNS), len(FABRICS), sharex=True, squeeze=False)
        last = 1.1 + max(max(told.ecmp) / told.adaptive for told in studies.values())
        for row, pattern in zip(axes, PATTERNS, strict=True):
            for ax, fabric in zip(row, FABRICS, strict=True):
                panel(ax, studies[fabric, pattern], last)
            row[0].set_ylabel(pattern.replace(", ", ",\n"), fontsize=9)
        for ax, fabric in zip(axes[0], FABRICS, strict=True):
            ax.set_title(fabric.replace(", ", "\n", 1) + "\n\n" + ax.get_title(loc="left"), fontsize=9, loc="left")
        for ax in axes[-1]:
            ax.set_xlabel("time / time of adaptive")
        marks = [
            ("#E69F00", "s", f"ECMP, {seeds} seeds"),
            ("#0072B2", "|", "adaptive"),
            ("#5b6470", "v", "shortest"),
            ("#009E73", "D", "rail"),
        ]
        shown = [axes[0][0].plot([], [], color=c, marker=m, linestyle="", markersize=9, label=label)[0] for c, m, label in marks]
        figure.legend(handles=shown, loc="outside upper center", ncols=4, frameon=False)
        figure.savefig(path, dpi=130, metadata={"Software": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=100)
    parser.add_argument("--shuffle", type=int, default=1)
    parser.add_argument("--engine", choices=list(ENGINES), default="compiled")
    parser.add_argument("--picture", default="")
    parser.add_argument("--large", action="store_true", help="512 GPUs instead, without a picture; a quarter of an hour")
    args = parser.parse_args()
    print(f"{NBYTES / 2**20:.0f} MiB; hash seeds 0..{args.seeds - 1}; seed of the shuffled ranks {args.shuffle}; engine {args.engine}")
    heads = ("adaptive ms", "shortest", "rail", "ecmp min", "median", "p95", "max")
    print(f"{'':<38}{heads[0]:>12}" + "".join(f"{head:>10}" for head in heads[1:]))
    studies: dict[tuple[str, str], Study] = {}
    fabrics = {name: make(*made) for name, made in LARGE.items()} if args.large else FABRICS
    for fabric, topology in fabrics.items():
        print(fabric)
        for pattern, (collective, algorithm, shuffled) in (LARGE_PATTERNS if args.large else PATTERNS).items():
            told = study(topology, launch_of(topology, collective, algorithm, shuffled, args.shuffle), args.seeds, args.engine)
            studies[fabric, pattern] = told
            values = [told.shortest, told.rail, *np.percentile(told.ecmp, [0, 50, 95, 100])]
            print(f"  {pattern:<36}{told.adaptive * 1e3:>12.3f}" + "".join(f"{v / told.adaptive:>10.3f}" for v in values), flush=True)
    if args.picture and not args.large:
        picture(studies, args.picture, args.seeds)


if __name__ == "__main__":
    main()
