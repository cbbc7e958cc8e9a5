"""Elements of a topology file -> its CPUs, PCIe switches, GPUs and NICs, named and in order, each with its link up."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from topologies.links import LinkType
from topologies.nccl_xml_elements import Element, ElementError
from topologies.nccl_xml_tables import (
    BRIDGE,
    GPU_CLASSES,
    HIDDEN_SWITCH,
    MAX_LANES,
    NIC_CLASS,
    NVSWITCH,
    POWER_BRIDGE,
    UNKNOWN_PCIE,
    pcie_link,
)

MAX_CPUS, MAX_GPUS, MAX_PARTS = 256, 1024, 4096
_UNKNOWN_SPEED = 10_000.0
"""Mb/s: what NCCL takes for a port whose driver says nothing."""


@dataclass(slots=True, eq=False)
class Part:
    """A node in the making; the reader fills in what the file leaves out, hence not frozen."""

    kind: Literal["gpu", "pcie", "nic", "cpu"]
    element: Element
    above: Part | None
    host: int
    cable: tuple[LinkType, int] = (UNKNOWN_PCIE, 16)
    """Type and lanes of the link up."""
    inner: Element | None = None
    """The ``gpu`` element."""
    ports: list[Element] = field(default_factory=list)
    """The ``net`` elements."""
    name: str = ""
    sm: int = -1
    xgmi: bool = False
    to_switch: int = 0
    to_cpu: int = 0
    c2c: int = 0
    to_gpus: dict[str, int] = field(default_factory=dict)

    @property
    def bus(self) -> str:
        return self.element.text("busid").lower()

    @property
    def stated(self) -> bool:
        """The file has a ``gpu`` element."""
        return self.inner is not None

    @property
    def nvlinks_stated(self) -> bool:
        return self.inner is not None and bool(self.inner.all("nvlink", "xgmi"))

    def cpu(self) -> Part:
        return self if self.above is None else self.above.cpu()

    def speed(self) -> float | None:
        """Of all ports of a NIC [B/s]; None without ``net`` elements. NCCL reads 0 and -1 as unknown."""
        rates = [float(port.whole("speed", 0, -1, 10**8)) for port in self.ports]
        return sum(rate if rate > 0 else _UNKNOWN_SPEED for rate in rates) * 1e6 / 8 if rates else None

    def latency(self) -> float:
        """Of a NIC, the largest of its ports [s]."""
        return max((port.number("latency", 0.0, 1e6) for port in self.ports), default=0.0) * 1e-6


def find_parts(system: Element) -> list[Part]:
    """GPUs by rank, then PCIe switches in the order of the file, NICs by number, CPUs by NUMA node. Raises ElementError."""
    hashes = list(dict.fromkeys(cpu.text("host_hash") for cpu in system.all("cpu")))
    if not hashes:
        raise ElementError(f"line {system.line}: <system> has no <cpu>; GPUs and NICs stand below one")
    parts: list[Part] = []
    for cpu in system.all("cpu"):
        top = Part("cpu", cpu, None, hashes.index(cpu.text("host_hash")))
        parts += [top, *_below(top)]
    used: set[int] = set()
    for part in parts:
        end = part if part.kind in ("gpu", "nic") else None
        while end is not None and id(end) not in used:
            used.add(id(end))
            end = end.above
    parts = [part for part in parts if id(part) in used]
    for kind, most in (("cpu", MAX_CPUS), ("gpu", MAX_GPUS), ("", MAX_PARTS)):
        count = sum(part.kind == kind or not kind for part in parts)
        if count > most:
            raise ElementError(f"{count:,} {kind.upper() or 'GPU, NIC, PCIe and CPU'} elements; at most {most:,} are read")
    gpus = _sorted([part for part in parts if part.kind == "gpu"], "rank", "dev", lambda part: [part.inner] if part.inner else [])
    nics = _sorted([part for part in parts if part.kind == "nic"], "", "dev", lambda part: part.ports)
    cpus = sorted((part for part in parts if part.kind == "cpu"), key=lambda part: (part.host, _numa(part)))
    ordered = gpus + [part for part in parts if part.kind == "pcie"] + nics + cpus
    _name(ordered, len(hashes) > 1)
    _resolve(gpus)
    return ordered


def _below(above: Part) -> Iterator[Part]:
    for child in above.element.children:
        if child.tag == "nic" and above.kind == "cpu":  # of a virtual machine: NCCL hangs it on the CPU
            yield Part("nic", child, above, above.host, ports=child.all("net"))
        elif child.tag == "gpu" and above.kind == "cpu":
            raise ElementError(f"line {child.line}: <gpu> stands in <cpu>; it belongs in the <pci> of that GPU")
        elif child.tag == "pci":
            kind = _kind(child)
            if kind is None:
                continue
            part = Part(kind, child, above, above.host, pcie_link(child))
            if kind == "gpu":
                found = child.all("gpu")
                if len(found) > 1:
                    raise ElementError(f"line {found[1].line}: a second <gpu> in one <pci>; partitions of a GPU are not read")
                part.inner = found[0] if found else None
                part.sm = part.inner.whole("sm", -1, -1, 10_000) if part.inner else -1
                yield part
            elif kind == "nic":
                part.ports = [net for nic in child.all("nic") for net in nic.all("net")]
                yield part
            else:
                yield part
                yield from _below(part)


def _kind(pci: Element) -> Literal["gpu", "pcie", "nic"] | None:
    """By what the element holds, else by its class; None for what is no part of the way (storage, an NVSwitch's own entry)."""
    code = pci.text("class").lower()
    if code and not re.fullmatch(r"0x[0-9a-f]{2,6}", code, re.ASCII):
        raise pci.fault("class", 'write a PCI class, as "0x030200" for a GPU')
    if pci.all("gpu") or code.startswith(GPU_CLASSES):
        return "gpu"
    if pci.all("nic") or code.startswith(NIC_CLASS):
        return "nic"
    return "pcie" if code.startswith(BRIDGE) or pci.all("pci") else None


def _numa(cpu: Part) -> int:
    return cpu.element.whole("numaid", 0, -1, 65535)


def _sorted(parts: list[Part], whole: str, local: str, inner: Callable[[Part], list[Element]]) -> list[Part]:
    """By a number of the whole system, else by one of the server, else as they stand; ElementError for a number that stands twice."""
    for key in (whole, local):
        if not key or not all(any(key in element.attributes for element in inner(part)) for part in parts):
            continue
        numbers = [min(element.whole(key, 2**31, -1, 2**31) for element in inner(part)) for part in parts]
        if min(numbers, default=0) < 0:
            continue
        places = [(0 if key == whole else part.host, number) for part, number in zip(parts, numbers, strict=True)]
        first: dict[tuple[int, int], Part] = {}
        for part, place in zip(parts, places, strict=True):
            if place in first:
                lines = f"lines {first[place].element.line} and {part.element.line}"
                raise ElementError(f'{lines}: {key}="{place[1]}" stands twice; every {part.kind} has its own')
            first[place] = part
        return [first[place] for place in sorted(first)]
    return parts


def _name(parts: list[Part], several: bool) -> None:
    counts: dict[tuple[str, int], int] = {}
    names: dict[str, Part] = {}
    for part in parts:
        number = counts.get((part.kind, part.host), 0)
        counts[part.kind, part.host] = number + 1
        shown = max(_numa(part), 0) if part.kind == "cpu" else number
        part.name = f"s{part.host}.{part.kind}{shown}" if several else f"{part.kind}{shown}"
        if part.name in names:  # only of CPUs
            raise ElementError(f'lines {names[part.name].element.line} and {part.element.line}: numaid="{shown}" stands twice')
        names[part.name] = part


def _resolve(gpus: list[Part]) -> None:
    """Links of each GPU by what they lead to."""
    by_bus: dict[tuple[int, str], Part] = {}
    for gpu in gpus:
        if gpu.bus and by_bus.setdefault((gpu.host, gpu.bus), gpu) is not gpu:
            raise gpu.element.fault("busid", f"line {by_bus[gpu.host, gpu.bus].element.line} has it too; every GPU has its own")
    for gpu in gpus:
        for c2c in gpu.inner.all("c2c") if gpu.inner else []:
            gpu.c2c += c2c.whole("count", None, 0, MAX_LANES)
        for link in gpu.inner.all("nvlink", "xgmi") if gpu.inner else []:
            count = link.whole("count", None, 0, MAX_LANES)
            gpu.xgmi |= link.tag == "xgmi"
            kind, target = link.text("tclass").lower(), link.text("target").lower()
            other = by_bus.get((gpu.host, target))
            if kind.startswith(POWER_BRIDGE):
                gpu.to_cpu += count
            elif kind.startswith(NVSWITCH) or target == HIDDEN_SWITCH or (not kind and other is None):
                gpu.to_switch += count
            elif other is not None and other is not gpu and count:
                gpu.to_gpus[other.name] = gpu.to_gpus.get(other.name, 0) + count
        if max(gpu.to_switch, gpu.to_cpu, gpu.c2c, *gpu.to_gpus.values(), 0) > MAX_LANES:
            raise ElementError(f"line {gpu.element.line}: more than {MAX_LANES} links of one GPU to the same place")
