"""The constants of NCCL's cost model by version. Source: NCCL's ``src/graph/tuning.cc`` (``src/tuner`` later), read release by
release; every entry holds from the version in its first column until the next entry of the same key. Rows are LL, LL128, Simple.

2.16 and 2.17 are the old model (``OLD``), with rules of their own in ``bandwidth.py`` and ``latency.py``. Not known: where in 2.18 the
Simple hop of the tree changed (between 2.18.1 and 2.18.5).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from prediction.nccl.version import ALGORITHMS, Algorithm, Version

US, GB = 1e-6, 1e9
"""NCCL counts in microseconds and in 1e9 bytes a second."""

Wire = Literal["nvlink", "pci", "net"]
Row = tuple[float, float, float]
Scales = tuple[float, float, float]
"""On 1 node, 2 nodes, 3 or more."""
Since = tuple[int, ...]

_BASE: tuple[tuple[Since, Algorithm, Row], ...] = (  # [us], the start of a call
    ((2, 16), "tree", (4.4, 4.4, 0)),
    ((2, 18), "tree", (6.8, 14.0, 0)),
    ((2, 23), "tree", (6.8, 14.0, 8.4)),
    ((2, 16), "ring", (3.6, 10.0, 8.4)),
    ((2, 18), "ring", (6.6, 14.0, 8.4)),
    ((2, 17), "nvls", (0, 0, 40)),
    ((2, 18), "nvls", (0, 0, 23)),
    ((2, 19), "nvls", (0, 0, 0)),
    ((2, 18), "nvls-tree", (0, 0, 23)),
    ((2, 19), "nvls-tree", (0, 0, 0)),
    ((2, 23), "pat", (8, 8, 8)),
)
_HOP: tuple[tuple[Since, Wire, Algorithm, Row], ...] = (  # [us], one hop
    ((2, 16), "nvlink", "tree", (0.52, 1.25, 28)),
    ((2, 18), "nvlink", "tree", (0.6, 1.25, 28)),
    ((2, 18, 5), "nvlink", "tree", (0.6, 1.25, 4.0)),
    ((2, 19), "nvlink", "tree", (0.6, 1.25, 28)),
    ((2, 23), "nvlink", "tree", (0.6, 1.25, 4.0)),
    ((2, 16), "pci", "tree", (1.0, 1.9, 28)),
    ((2, 18, 5), "pci", "tree", (1.0, 1.9, 6.0)),
    ((2, 19), "pci", "tree", (1.0, 1.9, 28)),
    ((2, 23), "pci", "tree", (1.0, 1.9, 4.0)),
    ((2, 16), "net", "tree", (5.0, 8.5, 28)),
    ((2, 18, 5), "net", "tree", (5.0, 8.5, 14)),
    ((2, 19), "net", "tree", (5.0, 8.5, 28)),
    ((2, 23), "net", "tree", (5.0, 8.5, 14)),
    ((2, 16), "nvlink", "ring", (0.47, 1.9, 3.4)),
    ((2, 18), "nvlink", "ring", (0.6, 1.9, 3.4)),
    ((2, 16), "pci", "ring", (1.0, 2.5, 5.7)),
    ((2, 16), "net", "ring", (2.7, 4.0, 9.6)),
    ((2, 18), "net", "ring", (2.7, 4.0, 14.0)),
    ((2, 16), "nvlink", "collnet-direct", (0, 0, 8.0)),
    ((2, 19), "nvlink", "collnet-direct", (0, 0, 3.7)),
    ((2, 16), "pci", "collnet-direct", (0, 0, 8.0)),
    ((2, 19), "pci", "collnet-direct", (0, 0, 3.7)),
    ((2, 16), "net", "collnet-direct", (0, 0, 10.7)),
    ((2, 19), "net", "collnet-direct", (0, 0, 31)),
    ((2, 16), "nvlink", "collnet-chain", (0, 0, 8.0)),
    ((2, 18), "nvlink", "collnet-chain", (0, 0, 4.75)),
    ((2, 19), "nvlink", "collnet-chain", (0, 0, 2.8)),
    ((2, 16), "pci", "collnet-chain", (0, 0, 8.0)),
    ((2, 18), "pci", "collnet-chain", (0, 0, 4.75)),  # taken as NVLink's
    ((2, 19), "pci", "collnet-chain", (0, 0, 2.8)),
    ((2, 16), "net", "collnet-chain", (0, 0, 10.7)),
    ((2, 18), "net", "collnet-chain", (0, 0, 14)),
    ((2, 19), "net", "collnet-chain", (0, 0, 30)),
    ((2, 19), "nvlink", "nvls", (0, 0, 23)),
    ((2, 21), "nvlink", "nvls", (0, 0, 25)),
    ((2, 18), "net", "nvls", (0, 0, 18)),
    ((2, 19), "nvlink", "nvls-tree", (0, 0, 23)),
    ((2, 21), "nvlink", "nvls-tree", (0, 0, 25)),
    ((2, 18), "net", "nvls-tree", (0, 0, 19)),
    ((2, 19), "net", "nvls-tree", (0, 0, 14)),
    ((2, 28, 7), "net", "nvls-tree", (0, 0, 20.9)),
    ((2, 23), "nvlink", "pat", (0, 0, 4.0)),
    ((2, 23), "pci", "pat", (0, 0, 4.0)),
    ((2, 23), "net", "pat", (0, 0, 14)),
)

Arch = Literal["volta", "ampere", "hopper", "blackwell"]
_LL_TOTAL: dict[Arch, Scales] = {
    "volta": (39.0, 39.0, 20.4),
    "ampere": (87.7, 22.5, 19.0),
    "hopper": (141.0, 45.0, 35.0),
    "blackwell": (282.0, 90.0, 70.0),
}
_CAPS: dict[Arch, tuple[Scales, Scales, Scales, Scales]] = {  # [GB/s] a channel: ring LL128, tree LL128, tree, NVLSTree
    "volta": ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (26.5, 18.5, 10.0), (26.5, 18.5, 10.0)),
    "ampere": ((20.0, 20.0, 20.0), (20.0, 20.0, 20.0), (24.0, 23.6, 17.8), (24.0, 23.6, 17.8)),
    "hopper": ((36.7, 36.7, 36.7), (36.7, 36.7, 29.0), (38.7, 41.4, 36.0), (0.0, 57.7, 45.5)),
    "blackwell": ((40.0, 40.0, 40.0), (55.6, 31.67, 20.0), (70.0, 42.8, 24.0), (0.0, 96.0, 80.0)),
}
_NVLS_EFFICIENCY: dict[Arch, float] = {"volta": 0.0, "ampere": 0.0, "hopper": 0.85, "blackwell": 0.74}
_OLD_CAPS: dict[Arch, tuple[Scales, Scales, Scales, Scales]] = _CAPS | {
    "hopper": ((36.7, 36.7, 36.7), (36.7, 36.7, 36.7), (38.7, 41.4, 33.0), (0.0, 0.0, 0.0)),
}
OLD, _FIRST_BLACKWELL, _NVLS_FORMULA = (2, 18), (2, 25), (2, 28)
"""First versions of: today's model, a column for Blackwell, NVLS's efficiency."""

TREE_CORRECTION: tuple[tuple[float, ...], ...] = (  # of the tree's bandwidth, from 64 B on, a power of two each; LL, LL128, Simple
    (1, 1, 1, 1, 0.9, 0.8, 0.7, 0.7, 0.7, 0.7, 0.6, 0.5, 0.4, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1, 1, 1, 1),
    (1, 1, 1, 1, 1, 0.9, 0.8, 0.8, 0.8, 0.7, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.8, 0.9, 0.9, 0.9, 0.9, 1, 1, 1),
    (0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.9, 0.8, 0.7, 0.6, 0.6, 0.5, 0.5, 0.5, 0.5, 0.6, 0.7, 0.8, 0.7, 0.7, 0.8, 0.9, 0.9, 0.9),
)


@dataclass(frozen=True, slots=True)
class Constants:
    """What holds in one version for GPUs of one architecture on one number of nodes: latencies [s] as (LL, LL128, Simple), caps
    [B/s]; a cap of a channel but for ``ll_total``."""

    base: dict[Algorithm, Row]
    hop: dict[tuple[Wire, Algorithm], Row]
    ll_total: float
    ring_ll128: float
    tree_ll128: float
    tree: float
    nvls_tree: float
    nvls_efficiency: float
    """0 before 2.28: NVLS is not derated by its efficiency but by 5/6."""
    corrected: int
    """How many entries of ``TREE_CORRECTION`` count."""


def architecture(version: Version, sm: int) -> Arch:
    """The column of the caps for the lowest compute capability; before 2.25 there is none for Blackwell, which takes Hopper's."""
    if sm >= 100 and version >= _FIRST_BLACKWELL:
        return "blackwell"
    return "hopper" if sm >= 90 else "ampere" if sm >= 80 else "volta"


def constants(version: Version, sm: int, nodes: int, amd: bool) -> Constants:
    """``sm``: the lowest compute capability; ``amd``: hosts of AMD or of several vendors, which alone decide the cap of LL on several
    nodes (the row of Ampere for AMD, of Volta for others)."""
    arch, scale = architecture(version, sm), min(nodes, 3) - 1
    caps = tuple(row[scale] * GB for row in (_CAPS if version >= OLD else _OLD_CAPS)[arch])
    if arch == "blackwell" and version < _NVLS_FORMULA:  # 2.25 to 2.27: twice Hopper's
        caps = tuple(2 * row[scale] * GB for row in _CAPS["hopper"])
    rows: Arch = arch if nodes == 1 else "ampere" if amd else "volta"
    rows = "ampere" if version < OLD and rows == "hopper" else rows
    return Constants(
        base=dict.fromkeys(ALGORITHMS, (0.0, 0.0, 0.0)) | {name: _seconds(row) for since, name, row in _BASE if version >= since},
        hop={(wire, name): _seconds(row) for since, wire, name, row in _HOP if version >= since},
        ll_total=_LL_TOTAL[rows][scale] * GB,
        ring_ll128=caps[0],
        tree_ll128=caps[1],
        tree=caps[2],
        nvls_tree=caps[3],
        nvls_efficiency=_NVLS_EFFICIENCY[arch] if version >= _NVLS_FORMULA else 0.0,
        corrected=24 if version >= (2, 29) else 23,
    )


def _seconds(row: Row) -> Row:
    return (row[0] * US, row[1] * US, row[2] * US)
