"""One run of a log on one machine -> its verdict and, where it is not healthy, its causes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from prediction.doctor.causes import PROTOCOLS
from prediction.doctor.diagnosis import Diagnosis, Finding, Judged, Point, Verdict
from prediction.doctor.flags import by_size
from prediction.doctor.scene import Array, Scene
from prediction.doctor.shape import SAME, Z80, Fit, confidences, deviation, error_of, fits
from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.library.interval import Band
from prediction.library.interval import band as band_of
from prediction.tables import Table
from sim.times import Progress
from topologies.errors import RingscopeError
from topologies.graph import Topology

DEVIATION, RATIO = 2.5, {"S": 1.6, "M": 1.4, "L": 1.1}
"""Standard deviations of the model's error, and ratios, from which on a band is not as expected."""
BELIEVED = 0.02
"""Causes with less confidence are not shown."""
_POINTS = ((8, 9), (16, 7), (1 << 20, 6))
"""Sizes simulated, by the most ranks."""
_BANDS: tuple[Band, ...] = ("S", "M", "L")


def examine(
    run: Sequence[Table], topology: Topology, asked: Asked, constants: Constants | None = None, doubt: float = 1.0,
    progress: Progress | None = None, search: bool = True,
) -> Diagnosis:  # fmt: skip
    """``run``: tables of one collective. ``doubt``: how much wider the model's error is at small sizes. What cannot be predicted is
    unknown, with the reason. ``search``: for causes, which takes most of the time."""
    first, times = run[0], by_size([row for table in run for row in table.rows])
    about = Diagnosis(
        "unknown", machine=topology.name, collective=first.collective, nranks=first.nranks, version=asked.version, launch=asked.launch
    )
    if first.collective is None:
        return replace(about, reason=f"the collective is {first.decided_by}")
    if not times:
        return replace(about, reason="no row has a size and a time above 0")
    sizes = _thin(list(times), next(many for ranks, many in _POINTS if len(topology.gpus) <= ranks))
    scene = Scene(topology, first.collective, asked, constants or Constants.of(topology, asked), tuple(sizes))
    try:
        rows = scene.rows
    except (RingscopeError, LookupError) as error:
        return replace(about, reason=f"no prediction: {error}")
    measured = np.array([times[size] for size in sizes])
    covariance = error_of(rows, doubt)
    residual = np.log(measured) - np.log(scene.times)
    bands = tuple(_judged(band, sizes, residual, covariance) for band in _BANDS if any(band_of(size) == band for size in sizes))
    verdict, told = _verdict(bands)
    points = tuple(
        Point(row.size_bytes, time, row.time_s, row.low_s, row.high_s, row.algorithm, row.protocol)
        for row, time in zip(rows, measured.tolist(), strict=True)
    )
    found = replace(about, verdict=verdict, ratio=told.ratio, band=told.band, bands=bands, points=points, notes=_remarks(scene))
    if verdict == "healthy" or not search:
        return found
    shares = confidences(fits(scene, measured, covariance, high=verdict == "high", progress=progress), residual, covariance)
    causes = tuple(_finding(fit, share, scene, told, bands) for fit, share in shares if share >= BELIEVED)
    alike = tuple(fit.cause.id for fit, share in shares if share >= BELIEVED and shares[0][0].best - fit.best < SAME)
    other = max(0.0, 1 - sum(share for _, share in shares))
    return replace(found, causes=causes, alike=alike if len(alike) > 1 else (), other=other)


def _thin(sizes: list[int], most: int) -> list[int]:
    """At most so many, even in log size, with the first and the last."""
    if len(sizes) <= most:
        return sizes
    aims = np.geomspace(sizes[0], sizes[-1], most)
    return sorted({min(sizes, key=lambda size: abs(math.log(size / aim))) for aim in aims})


def _judged(band: Band, sizes: Sequence[int], residual: Array, covariance: Array) -> Judged:
    chosen = np.array([float(band_of(size) == band) for size in sizes])
    mean, off = deviation(residual, covariance, chosen)
    spread = abs(mean / off) if off else 0.0
    return Judged(band, math.exp(-mean), -off, math.exp(-Z80 * spread), math.exp(Z80 * spread), int(chosen.sum()))


def _verdict(bands: Sequence[Judged]) -> tuple[Verdict, Judged]:
    """The largest sizes tell what a machine is worth; of small ones only that they are slow."""
    last = bands[-1]
    slow = [band for band in bands if band.deviation < -DEVIATION and band.ratio < 1 / RATIO[band.band]]
    if slow:
        return "low", last if last in slow else min(slow, key=lambda band: band.deviation)
    if last.band == "L" and last.deviation > DEVIATION and last.ratio > RATIO["L"]:
        return "high", last
    return "healthy", last


def _finding(fit: Fit, share: float, scene: Scene, told: Judged, bands: Sequence[Judged]) -> Finding:
    """``L band at 0.12 of expected; all GPUs of a server share one NIC: simulated 0.125 (S 1.03, M 0.55)``."""
    words = {"x": fit.severity, "us": fit.severity * 1e6, "word": PROTOCOLS[int(fit.severity) % len(PROTOCOLS)]}
    gives = {band.band: _ratio(fit, scene, band.band) for band in bands}
    rest = ", ".join(f"{band.band} {gives[band.band]:.2f} against {band.ratio:.2f}" for band in bands if band.band != told.band)
    seen = f"{told.band} band at {told.ratio:.3g} of expected; {fit.cause.says.format(**words)}: simulated {gives[told.band]:.3g}"
    return Finding(fit.cause.id, share, seen + (f" ({rest})" if rest else ""), fit.cause.check)


def _ratio(fit: Fit, scene: Scene, band: Band) -> float:
    logs = [math.log(a / b) for a, b, size in zip(scene.times, fit.times, scene.sizes, strict=True) if band_of(size) == band]
    return math.exp(sum(logs) / len(logs))


def _remarks(scene: Scene) -> tuple[str, ...]:
    """What a healthy result may still mislead about."""
    rows, found = scene.rows, []
    algorithms = [row.algorithm for row in rows]
    if scene.servers == 2 and scene.collective == "all-reduce" and algorithms[-1] in ("tree", "nvls-tree", "nvls"):
        found.append(
            f"tree-flatters-two-nodes: {algorithms[-1]} over exactly two servers sends half of what a ring does over each NIC, so that "
            "busbw may exceed the NICs' rate; it does not hold for more servers"
        )
    if band_of(scene.sizes[-1]) != "L":
        found.append("no size above 16 MiB was measured: nothing is known of the bandwidth of links")
        switched = any(node.kind == "nvswitch" and node.reduces for node in scene.topology.nodes)
        if switched and not any(name.startswith("nvls") for name in algorithms):
            found.append("too-small-for-nvls: the library takes NVLink SHARP for larger sizes than were measured")
    return tuple(found)
