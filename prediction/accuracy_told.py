"""What a method is told of a curve: two points, a small log, and whom a log of few nodes should serve."""

from __future__ import annotations

from collections.abc import Sequence

from prediction.accuracy_tables import Curve, Dataset, Point

_LOG_POINTS, _MOST_NODES = 6, 64


def two_points(curve: Curve) -> tuple[Point, ...]:
    """Its smallest and its largest size; none for a curve without a third."""
    sure = [point for point in curve.points if not point.outlier]
    if len({point.size_bytes for point in sure}) < 3:
        return ()
    return sure[0], sure[-1]


def few_points(curve: Curve) -> tuple[Point, ...]:
    """Up to six of its points, spread evenly from the smallest to the largest."""
    sure = [point for point in curve.points if not point.outlier]
    if len(sure) <= _LOG_POINTS:
        return tuple(sure)
    return tuple(sure[round(i * (len(sure) - 1) / (_LOG_POINTS - 1))] for i in range(_LOG_POINTS))


def log_curve(curves: Sequence[Curve]) -> Curve:
    """The curve a person would measure: all-reduce, else the longest."""
    return max(curves, key=lambda curve: (curve.collective == "all-reduce", len(curve.points)))


def families(datasets: Sequence[tuple[int, Dataset]]) -> list[list[Dataset]]:
    """Data sets of one cluster with the same servers, those of the fewest nodes first: of two to 64, each given with its number."""
    by: dict[tuple[str, ...], list[tuple[int, Dataset]]] = {}
    for nodes, dataset in datasets:
        if 2 <= nodes <= _MOST_NODES:
            key = (dataset.cluster, *(dataset.text(column) for column in ("gpu", "gpus_per_node", "nics_per_node", "nic_gbps")))
            by.setdefault(key, []).append((nodes, dataset))
    found = []
    for family in by.values():
        fewest = min(nodes for nodes, _ in family)
        first = next(dataset for nodes, dataset in family if nodes == fewest)
        found.append([first, *(dataset for nodes, dataset in family if nodes > fewest)])
    return found
