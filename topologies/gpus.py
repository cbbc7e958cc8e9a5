"""GPU models by name: the links each has to other GPUs and to its host.

Link counts are those of the datasheets (``links.py``); export models (A800, H800) have 8 NVLinks. A pair of GPUs on a PCIe switch in
8-GPU servers until A100, one from H100 on (NCCL's topology files of such servers); one Grace for each GPU of a GH200, for two of a
GB200 or GB300.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Gpu:
    """``links`` of type ``link`` to other GPUs or switches; ``pcie`` x16 to the host; ``nic`` [B/s] usual beside it."""

    name: str
    link: str
    links: int
    pcie: str
    nic: float
    switched: bool = False
    """Usual behind NVSwitches; else in a mesh, or as cards."""
    pairs: bool = False
    """Two to a PCIe switch in servers of 8."""
    per_grace: int = 0
    """GPUs of one Grace CPU; 0: the host is another."""

    @property
    def amd(self) -> bool:
        return self.link.startswith("xgmi")

    @property
    def multicast(self) -> bool:
        """Its NVSwitches do NVLink SHARP."""
        return self.link in ("nvlink4", "nvlink5")


_MODELS = (
    Gpu("p100", "nvlink1", 4, "pcie3", 12.5e9, pairs=True),
    Gpu("v100", "nvlink2", 6, "pcie3", 12.5e9, pairs=True),
    Gpu("a100", "nvlink3", 12, "pcie4", 25e9, switched=True, pairs=True),
    Gpu("a800", "nvlink3", 8, "pcie4", 25e9, switched=True, pairs=True),
    Gpu("h100", "nvlink4", 18, "pcie5", 50e9, switched=True),
    Gpu("h200", "nvlink4", 18, "pcie5", 50e9, switched=True),
    Gpu("h800", "nvlink4", 8, "pcie5", 50e9, switched=True),
    Gpu("h20", "nvlink4", 18, "pcie5", 50e9, switched=True),
    Gpu("b200", "nvlink5", 18, "pcie5", 50e9, switched=True),
    Gpu("b300", "nvlink5", 18, "pcie6", 100e9, switched=True),
    Gpu("gh200", "nvlink4", 18, "pcie5", 25e9, per_grace=1),
    Gpu("gb200", "nvlink5", 18, "pcie5", 50e9, switched=True, per_grace=2),
    Gpu("gb300", "nvlink5", 18, "pcie6", 100e9, switched=True, per_grace=2),
    Gpu("mi250x", "xgmi-mi250x", 7, "pcie4", 25e9),
    Gpu("mi300x", "xgmi", 7, "pcie5", 50e9),
    Gpu("mi325x", "xgmi", 7, "pcie5", 50e9),
    Gpu("mi350x", "xgmi-mi355x", 7, "pcie5", 50e9),
    Gpu("mi355x", "xgmi-mi355x", 7, "pcie5", 50e9),
    Gpu("p100-pcie", "", 0, "pcie3", 12.5e9),
    Gpu("v100-pcie", "", 0, "pcie3", 12.5e9),
    Gpu("t4", "", 0, "pcie3", 12.5e9),
    Gpu("a100-pcie", "nvlink3", 12, "pcie4", 25e9),
    Gpu("a30", "nvlink3", 4, "pcie4", 25e9),
    Gpu("a10", "", 0, "pcie4", 25e9),
    Gpu("a40", "nvlink-bridge", 4, "pcie4", 25e9),
    Gpu("a6000", "nvlink-bridge", 4, "pcie4", 25e9),
    Gpu("rtx3090", "nvlink-bridge", 4, "pcie4", 25e9),
    Gpu("rtx4090", "", 0, "pcie4", 25e9),
    Gpu("l4", "", 0, "pcie4", 25e9),
    Gpu("l40", "", 0, "pcie4", 25e9),
    Gpu("l40s", "", 0, "pcie4", 25e9),
    Gpu("h100-pcie", "nvlink4", 12, "pcie5", 50e9),
    Gpu("h100-nvl", "nvlink4", 12, "pcie5", 50e9),
    Gpu("h200-nvl", "nvlink4", 18, "pcie5", 50e9),
    Gpu("rtx5090", "", 0, "pcie5", 50e9),
    Gpu("rtx-pro-6000", "", 0, "pcie5", 50e9),
)
GPUS: dict[str, Gpu] = {model.name: model for model in _MODELS}
