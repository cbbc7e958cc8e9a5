"""How far measurements lie from predictions: the 80 % interval of a row, by size and by what joins the GPUs.

Tenth and ninetieth percentile of measured over predicted time on public tables, each cluster counting the same; the percentiles of all
other clusters hold four of five points of a cluster left out (``bench/accuracy.py``). Predictions err on the fast side: a fabric, a host or
a launch that nobody described makes calls slower, hardly ever faster.
"""

from __future__ import annotations

from typing import Literal

from topologies.graph import Topology

Reach = Literal["node", "ib", "other"]
Band = Literal["S", "M", "L"]
SMALL, MIDDLE = 64 << 10, 16 << 20
"""Bytes up to which a call is of band S and of band M."""
RATIOS: dict[tuple[Band, Reach], tuple[float, float]] = {
    ("S", "node"): (0.84, 1.62), ("M", "node"): (0.86, 1.65), ("L", "node"): (0.92, 1.16),
    ("S", "ib"): (0.78, 1.65), ("M", "ib"): (0.88, 1.90), ("L", "ib"): (0.92, 1.70),
    ("S", "other"): (0.76, 1.95), ("M", "other"): (0.95, 3.30), ("L", "other"): (0.94, 1.75),
}  # fmt: skip
"""``node``: one server or NVLink domain; ``ib``: InfiniBand or RoCE between them; ``other``: EFA, TCPXO, Slingshot."""


def band(nbytes: int) -> Band:
    return "S" if nbytes <= SMALL else "M" if nbytes <= MIDDLE else "L"


def reach(topology: Topology, nodes: int) -> Reach:
    if nodes == 1:
        return "node"
    return "ib" if any(link.kind.startswith(("ib-", "roce-")) for link in topology.links) else "other"


def interval(nbytes: int, time_s: float, far: Reach) -> tuple[float, float]:
    """Between which four of five measurements lie [s]."""
    low, high = RATIOS[band(nbytes), far]
    return time_s * low, time_s * high
