"""What NCCL counts on for a link, below the datasheets' rates (``src/graph/topo.h``); RCCL's figure for xGMI."""

from __future__ import annotations

from typing import Literal

from prediction.nccl.constants import GB
from prediction.nccl.graphs import Cpu
from prediction.nccl.version import Version
from topologies.graph import Link

Medium = Literal["nvlink", "c2c", "pcie", "cpu", "net", ""]

NVLINK_SM = {"nvlink1": 60, "nvlink2": 70, "nvlink3": 80, "nvlink-bridge": 86, "nvlink4": 90, "nvlink5": 100}
"""Compute capability of the first GPU with each generation of NVLink: P100, V100, A100, RTX A6000, H100, B200."""
PCIE_LANE = {
    "pcie1": 3 / 16 * GB, "pcie2": 0.375 * GB, "pcie3": 0.75 * GB, "pcie4": 1.5 * GB, "pcie5": 3 * GB, "pcie6": 6 * GB,
}  # fmt: skip
C2C = "nvlink-c2c"
_OWN = "link"
"""A link whose rate the user gave: between GPUs and their switches it is taken for NVLink of the generation that reaches it."""
_OWN_SM = ((800 * GB, 100), (400 * GB, 90), (250 * GB, 80), (0.0, 70))
_XGMI_LANE = {"xgmi": 48 * GB, "xgmi-mi250x": 36 * GB}
_C2C_LANE = 44.7 * GB
_OF_XGMI = 0.75
"""RCCL counts 48 of the 64 GB/s of an xGMI link."""
_CARD_SM = {"pcie1": 60, "pcie2": 60, "pcie3": 75, "pcie4": 89, "pcie5": 90, "pcie6": 100}
"""Cards without NVLink by their PCIe: T4, L40S, H100 PCIe."""
_SOCKETS = {"qpi": 6, "upi": 10, "upi-ice": 10, "upi2": 22, "upi2-20": 40, "upi2-24": 40}
_SOCKET_OF: dict[Cpu, float] = {"intel": 10, "amd": 16, "arm": 6, "power": 32}
_NEWER_INTEL = (2, 26)


def nvlink_rate(sm: int, version: Version) -> float:
    """One NVLink of a GPU with this compute capability [B/s]."""
    if sm >= 100:
        return (40.1 if version >= (2, 27, 4) else 40.0) * GB
    if sm >= 90:
        return (20.6 if version >= (2, 20) else 20.0) * GB
    if sm == 86:
        return 12.0 * GB
    if sm < 70:
        return 18.0 * GB
    return (22.0 if version < (2, 17) else 20.0) * GB


def card_sm(pcie: str) -> int:
    """Compute capability of a GPU of which only the PCIe generation is known."""
    return _CARD_SM.get(pcie, 80)


def is_xgmi(link: Link) -> bool:
    """Between AMD's GPUs."""
    return link.kind.startswith("xgmi") and not link.kind.startswith("xgmi-cpu")


def nvlink_sm(link: Link, ends: tuple[str, str]) -> int | None:
    """Compute capability of a GPU whose NVLink it is, between nodes of these kinds; None: no NVLink."""
    if link.kind == _OWN and "gpu" in ends and set(ends) <= {"gpu", "nvswitch"}:
        return next(sm for least, sm in _OWN_SM if link.bandwidth >= least)
    return NVLINK_SM.get(link.kind)


def medium(link: Link, ends: tuple[str, str]) -> Medium:
    """What kind of link NCCL sees between nodes of these kinds; empty: none that it uses inside a node."""
    if link.kind == C2C:
        return "c2c"
    if link.kind in PCIE_LANE:
        return "pcie"
    if set(ends) == {"cpu"}:
        return "cpu"
    if is_xgmi(link) or nvlink_sm(link, ends):
        return "nvlink"
    return "pcie" if link.kind == _OWN and "switch" not in ends else ""


def nvlinks_rate(link: Link, sm: int, version: Version) -> float:
    """Of all NVLinks between two nodes [B/s]."""
    lanes = link.lanes if link.kind in NVLINK_SM else link.bandwidth / ((50 if sm >= 100 else 25) * GB)
    return lanes * nvlink_rate(sm, version)


def link_rate(link: Link, ends: tuple[str, str], cpu: Cpu, version: Version) -> float:
    """Of all lanes in one direction [B/s]."""
    if is_xgmi(link):
        return link.lanes * _XGMI_LANE[link.kind] if link.kind in _XGMI_LANE else link.bandwidth * _OF_XGMI
    if sm := nvlink_sm(link, ends):
        return nvlinks_rate(link, sm, version)
    if link.kind == C2C:
        return link.lanes * _C2C_LANE
    if set(ends) == {"cpu"}:
        return _socket_rate(link.kind, cpu, version)
    return link.lanes * PCIE_LANE[link.kind] if link.kind in PCIE_LANE else link.bandwidth


def _socket_rate(kind: str, cpu: Cpu, version: Version) -> float:
    if cpu != "intel" or kind not in _SOCKETS:
        return _SOCKET_OF.get(cpu, 10) * GB
    return (_SOCKETS[kind] if version >= _NEWER_INTEL else min(_SOCKETS[kind], 10)) * GB


def cpu_of(kinds: list[str]) -> Cpu:
    """The vendor by the kinds of links between sockets and to the GPUs; where they do not tell, Intel."""
    if any(kind.startswith("xgmi-cpu") for kind in kinds):
        return "amd"
    if C2C in kinds or "grace-link" in kinds:
        return "arm"
    return "power" if "x-bus" in kinds else "intel"
