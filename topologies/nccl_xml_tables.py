"""What NCCL's topology XML says in codes, as link types: GPUs by compute capability, PCIe by speed, sockets by CPU, NICs by maker.

Codes, defaults and the order of CPU models follow NCCL 2.30 (``graph/topo.cc``, ``graph/topo.h``); rates are those of ``links.py``, so
datasheet rates, not the lower ones that NCCL counts on. General knowledge: family and model numbers of AMD's CPUs and of Ice Lake and
Granite Rapids, PCI numbers of Amazon, Google and HPE, NVLinks of the GPUs made for one market.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from topologies.links import LinkType, link_type
from topologies.nccl_xml_elements import Element

BRIDGE, GPU_CLASSES, NIC_CLASS = "0x0604", ("0x03", "0x12"), "0x02"
HIDDEN_SWITCH = "fffffff:ffff:ff"
POWER_BRIDGE, NVSWITCH = "0x068001", "0x0680"
MAX_LANES = 1024


@dataclass(frozen=True, slots=True)
class GpuModel:
    """What completes a file that leaves the GPUs out: compute capability and links to the NVSwitch (``mesh``: one to every other GPU)."""

    sm: int
    nvlinks: int
    mesh: bool = False


GPUS = {
    "a100": GpuModel(80, 12),
    "a800": GpuModel(80, 8),
    "h100": GpuModel(90, 18),
    "h200": GpuModel(90, 18),
    "h20": GpuModel(90, 18),
    "h800": GpuModel(90, 8),
    "b200": GpuModel(100, 18),
    "a100-pcie": GpuModel(80, 0),
    "h100-pcie": GpuModel(90, 0),
    "t4": GpuModel(75, 0),
    "l40s": GpuModel(89, 0),
    "mi300x": GpuModel(304, 0, mesh=True),
}
"""Boards on which every GPU's NVLinks go to NVSwitches, and cards. V100 and P100 boxes differ in their meshes, so they are not here."""
_BY_COUNT = {4: 60, 6: 70, 12: 80, 18: 90}
_SM = {"nvlink1": 60, "nvlink2": 70, "nvlink3": 80, "nvlink-bridge": 86, "nvlink4": 90, "nvlink5": 100, "": 89}
CARDS = (75, 86, 87, 89, 120, 121)
"""Compute capabilities of GPUs that have at most a bridge: without NVLinks nothing is missing."""


def nvlink_type(sm: int) -> LinkType | None:
    """NVLink of a compute capability; None where there is none."""
    steps = ((100, "nvlink5"), (90, "nvlink4"), (87, ""), (86, "nvlink-bridge"), (80, "nvlink3"), (70, "nvlink2"), (60, "nvlink1"))
    name = next((kind for least, kind in steps if sm >= least), "") if sm < 120 else ""
    return link_type(name) if name else None


def sm_of(kind: str) -> int | None:
    """A compute capability with NVLinks of this kind (``""``: with none); None for a kind that is no NVLink."""
    return _SM.get(kind)


def sm_by_count(nvlinks: int) -> int | None:
    """The oldest generation that has so many NVLinks a GPU."""
    return _BY_COUNT.get(nvlinks)


_PCIE = {
    "2.5": LinkType("pcie1", 0.25e9, 16, 0.5e-6, "PCIe 1.0: 2.5 GT/s, 8b/10b; 4 GB/s x16"),
    "5": LinkType("pcie2", 0.5e9, 16, 0.5e-6, "PCIe 2.0: 5 GT/s, 8b/10b; 8 GB/s x16"),
    "8": link_type("pcie3"),
    "16": link_type("pcie4"),
    "32": link_type("pcie5"),
    "64": link_type("pcie6"),
}
PCIE_SPEED = {entry.name: f"{speed}.0 GT/s PCIe" if "." not in speed else f"{speed} GT/s PCIe" for speed, entry in _PCIE.items()}
UNKNOWN_PCIE = replace(_PCIE["8"], source=f"{_PCIE['8'].source}; assumed as NCCL does, the file does not say")


def pcie_link(pci: Element) -> tuple[LinkType, int]:
    """Type and lanes of a device's link up; NCCL takes PCIe 3.0 for an unknown speed and 16 lanes for a width of 0."""
    text = pci.text("link_speed").strip()
    match = re.fullmatch(r"([0-9]{1,3}(?:\.[0-9]{1,3})?) GT/s(?: PCIe)?", text, re.ASCII)
    entry = _PCIE.get(f"{float(match[1]):g}") if match else None
    if entry is None and text and not text.startswith("Unknown"):
        raise pci.fault("link_speed", f'write one of {", ".join(_PCIE)} GT/s, as "32.0 GT/s PCIe"')
    return entry or UNKNOWN_PCIE, pci.whole("link_width", 0, 0, 32) or 16


_CPUS = {
    "qpi": ("x86_64", "GenuineIntel", 6, 79),
    "upi": ("x86_64", "GenuineIntel", 6, 85),
    "upi-ice": ("x86_64", "GenuineIntel", 6, 106),
    "upi2": ("x86_64", "GenuineIntel", 6, 143),
    "upi2-24": ("x86_64", "GenuineIntel", 6, 173),
    "upi2-20": ("x86_64", "GenuineIntel", 6, 207),
    "xgmi-cpu": ("x86_64", "AuthenticAMD", 23, 49),
    "xgmi-cpu-genoa": ("x86_64", "AuthenticAMD", 25, 17),
    "grace-link": ("arm64", "ARM", -1, -1),
}
_SOCKETS = {"pcie3": "upi", "pcie4": "upi-ice", "pcie5": "upi2", "pcie6": "upi2-24"}
_X_BUS = LinkType("x-bus", 32e9, 1, 0.5e-6, "IBM POWER9 between sockets: 32 GB/s (NCCL)")


def cpu_codes(kind: str) -> tuple[str, str, int, int] | None:
    """Arch, vendor, family and model of a CPU whose sockets are joined by this kind of link."""
    return _CPUS.get(kind)


def usual_socket(pcie: str) -> str:
    """Link between sockets of a server with this PCIe generation, as in ``pcie_box.py``."""
    return _SOCKETS.get(pcie, "upi")


def socket_link(cpu: Element, pcie: str) -> LinkType:
    """Link from this CPU to others; where the file does not name the CPU, what is usual with the PCIe generation."""
    arch, vendor, model = cpu.text("arch"), cpu.text("vendor"), cpu.whole("modelid", -1, -1, 10**6)
    family = cpu.whole("familyid", -1, -1, 10**6)
    if arch == "ppc64":
        return _X_BUS
    if arch == "arm64":
        return link_type("grace-link")
    if vendor == "AuthenticAMD":
        # NCCL adds the extended family in its place: it prints Zen 3 and 4, family 25, as 175.
        newer = family in (26, 191) or (family in (25, 175) and model >= 16)
        return link_type("xgmi-cpu-genoa" if newer else "xgmi-cpu")
    if vendor == "GenuineIntel" and model >= 0:
        if model in (173, 174):
            return link_type("upi2-24")
        steps = ((207, "upi2-20"), (143, "upi2"), (106, "upi-ice"), (85, "upi"))
        return link_type(next((kind for least, kind in steps if model >= least), "qpi"))
    return link_type(usual_socket(pcie))


_MAKERS = {"0x1d0f": "efa-100", "0x1ae0": "gvnic-200", "0x17db": "slingshot-11"}
_SPEEDS = {
    "ib": ("ib-edr", "ib-hdr", "ib-ndr", "ib-xdr"),
    "roce": ("roce-100", "roce-200", "roce-400", "roce-800"),
}


def network_type(pci: Element | None, speed: float) -> LinkType:
    """Cable of a NIC of ``speed`` [B/s] by its maker or class: the slowest type that carries it, else the fastest."""
    maker = _MAKERS.get(pci.text("vendor").lower()) if pci else None
    if maker:
        return link_type(maker)
    family = _SPEEDS["ib" if pci and pci.text("class").startswith("0x0207") else "roce"]
    return next((link_type(kind) for kind in family if link_type(kind).bandwidth >= speed), link_type(family[-1]))


PORTS = {"ib-edr": 36, "ib-hdr": 40, "ib-ndr": 64, "ib-xdr": 144, "roce-100": 64, "roce-200": 64, "roce-400": 64, "roce-800": 64}
"""Ports of a switch of that network; kinds that are not here are networks whose owners do not publish them."""
