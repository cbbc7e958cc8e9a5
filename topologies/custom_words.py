"""What a description of servers leaves open -> what is usual; what cannot be is refused with the nearest right answer."""

from __future__ import annotations

from typing import Literal, get_args

from topologies.custom_parts import FABRICS, Network
from topologies.errors import TopologyError
from topologies.gpus import Gpu

Intra = Literal["nvswitch", "nvlink-mesh", "nvl72", "xgmi-mesh", "pcie-p2p", "pcie-shm", "none"]
INTRA: tuple[Intra, ...] = get_args(Intra)
"""What joins the GPUs of a server: NVSwitches, of one server or of a rack (``nvl72``), links, PCIe without and with the host's memory."""
CPUS = ("intel", "amd", "arm")
MOST_GPUS = 16
"""Of a server."""
_LANES, _RACK, _TRAY = 16, 72, 8
_CONSUMER = ("rtx3090", "rtx4090", "rtx5090")
"""Cards whose driver lets none reach another over PCIe."""


def usual(model: Gpu, gpus: int) -> Intra:
    """What joins so many GPUs of a model in one server, if nobody says."""
    if gpus == 1 and not (model.switched and model.per_grace):
        return "none"
    if model.amd:
        return "xgmi-mesh"
    if model.switched:
        return "nvl72" if model.per_grace else "nvswitch"
    if model.name in ("p100", "v100", "gh200"):
        return "nvlink-mesh"
    return "pcie-shm" if model.name in _CONSUMER else "pcie-p2p"


def check_joined(model: Gpu, intra: str, gpus: int) -> None:
    """Refuse a GPU that has no such links."""
    right = usual(model, max(gpus, 2))
    wrong = {
        "none": gpus > 1,
        "xgmi-mesh": not model.amd,
        "nvl72": not model.per_grace or gpus > _TRAY,
        "nvswitch": not model.link.startswith("nvlink") or model.link in ("nvlink1", "nvlink-bridge"),
        "nvlink-mesh": not model.link.startswith("nvlink"),
        "pcie-p2p": model.per_grace > 0,
        "pcie-shm": model.per_grace > 0,
    }
    if wrong[intra]:
        raise TopologyError(f"custom: {gpus} {model.name} a server with intra = {intra} cannot be; write intra = {right}")


def links_of(model: Gpu, intra: str, links: int | None) -> int:
    """NVLinks of a GPU, or PCIe lanes of its slot: those given, at most as many as there are."""
    most = _LANES if intra.startswith("pcie") else model.links
    if links and links > most and intra != "none":
        raise TopologyError(f"custom: links = {links}; with intra = {intra} one {model.name} has at most {most}")
    return links or most


def domain_of(intra: str, nodes: int, gpus: int, domain: int | None) -> int:
    """GPUs of an NVLink domain: a server's, or of as many servers as a rack of 72 holds and divide all evenly."""
    if intra != "nvl72":
        if domain not in (None, gpus):
            raise TopologyError(f"custom: domain = {domain} with intra = {intra}; an NVLink domain over several servers is intra = nvl72")
        return gpus
    most = domain or max(_RACK, gpus)
    fits = max(d for d in range(1, nodes + 1) if nodes % d == 0 and d * gpus <= max(most, gpus)) * gpus
    if domain not in (None, fits):
        raise TopologyError(f"custom: domain = {domain}; {nodes} servers of {gpus} GPUs make equal domains: write domain = {fits}")
    return fits


def network(model: Gpu, needed: bool, gpus: int, nics: int | None, nic: float | None, fabric: str | None, rails: bool) -> Network | None:
    """The NICs and what they are plugged into; None where one NVLink domain is all there is."""
    if not needed:
        return None
    if fabric == "none":
        raise TopologyError(f"custom: fabric = none, but servers need one; write one of {', '.join(FABRICS)}")
    count = nics or gpus
    if count > gpus and count % gpus:
        raise TopologyError(
            f"custom: nics = {count} on {gpus} GPUs; more NICs than GPUs are as many for each: write {count // gpus * gpus}"
        )
    kinds = FABRICS[fabric or "ib"]
    rate = nic or min(kinds, key=lambda known: abs(known - model.nic))
    if rate not in kinds:
        near = min(kinds, key=lambda known: abs(known - rate))
        shown = ", ".join(f"{known * 8 / 1e9:g}" for known in kinds)
        raise TopologyError(
            f"custom: nic = {rate * 8 / 1e9:g} Gb/s on fabric = {fabric or 'ib'}; known: {shown} Gb/s; nearest: {near * 8 / 1e9:g}Gb/s"
        )
    return Network(fabric or "ib", kinds[rate], rate, min(count, gpus), max(1, count // gpus), rails)
