"""``Topology`` of one server -> NCCL's topology XML, which reads back equal and can serve as ``NCCL_TOPO_FILE``.

Bus numbers, NUMA masks and port numbers are made up. The CPU follows from the links between sockets, the GPU from its NVLinks; a NIC's
speed and kind are not in the topology of one server, so it is InfiniBand of the usual speed with its PCIe generation (100G with 3.0,
200G, 400G, 800G).
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.sax.saxutils import quoteattr

from topologies.errors import TopologyError, quoted
from topologies.graph import Link, Topology
from topologies.nccl_xml import read_nccl_xml
from topologies.nccl_xml_tables import HIDDEN_SWITCH, PCIE_SPEED, UNKNOWN_PCIE, cpu_codes, sm_of, usual_socket

_NIC_SPEED = {"pcie3": 100_000, "pcie4": 200_000, "pcie5": 400_000, "pcie6": 800_000}  # Mb/s
_ORDER = {"gpu": 0, "pcie": 1, "nic": 2}


def write_nccl_xml(topology: Topology, path: str | Path) -> None:
    """Write ``path`` whole or not at all: a file that does not read back equal never takes its place. Raises TopologyError."""
    path = Path(path)
    if not path.name:
        raise TopologyError(f'{quoted(str(path))} is not a file name; write a name as "topo.xml"')
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        with beside.open("w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in _File(topology).lines())
        _check_equal(topology, read_nccl_xml(beside))
        beside.replace(path)
    except TopologyError as error:
        raise TopologyError(f"{path.name}: {topology.name} cannot be written as NCCL's XML: "
                            f"{str(error).removeprefix(f'{beside.name}: ')}; write a cluster file (TOML)") from None  # fmt: skip
    except (OSError, ValueError) as error:
        raise TopologyError(f"{path.name}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        with contextlib.suppress(OSError, ValueError):
            beside.unlink(missing_ok=True)


def _check_equal(topology: Topology, back: Topology) -> None:
    """TopologyError that names the first part that NCCL's XML cannot say."""
    if topology == back:
        return
    if topology.name != back.name:
        raise TopologyError(f"its name would read back as {quoted(back.name)}")
    for node, its in zip(topology.nodes, back.nodes, strict=False):
        if node != its:
            raise TopologyError(f"node {node.name} would read back otherwise: its name, order, kind, server, ports or reduction")
    for link, other in zip(topology.links, back.links, strict=False):
        if link != other:
            what = f"link {link.src} -> {link.dst} ({link.kind}, {link.lanes} lanes)"
            raise TopologyError(f"{what} would read back otherwise: its order, kind or numbers")
    raise TopologyError("its nodes, links, groups or dims would read back as others")


@dataclass(slots=True)
class _Place:
    """A GPU, PCIe switch or NIC below ``above``, at the end of ``link``."""

    name: str
    above: str
    link: Link


class _File:
    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.kind = {node.name: node.kind for node in topology.nodes}
        self.number = {name: n for n, name in enumerate(self.kind)}
        self.cpus = [name for name, kind in self.kind.items() if kind == "cpu"]
        if not self.cpus:
            raise TopologyError("it has no CPUs, below which NCCL's XML puts GPUs and NICs")
        others = sorted({kind for kind in self.kind.values() if kind == "switch"})
        if others or list(self.kind.values()).count("nvswitch") > 1:
            raise TopologyError("it has switches between servers" if others else "it has several NVSwitch nodes, which are one in NCCL")
        self.places = self._tree()
        self.bus = {name: f"{n >> 8:04x}:{n & 255:02x}:00.0" for n, name in enumerate(self.places, 1)}

    def _tree(self) -> dict[str, _Place]:
        """What hangs below each CPU, top down, by the links that are no NVLink between GPUs."""
        places: dict[str, _Place] = {}
        frontier = list(self.cpus)
        while frontier:
            following = []
            for above in frontier:
                below = [name for name in self.topology.graph[above] if self.kind[name] in _ORDER and name not in places]
                for name in sorted(below, key=lambda name: (_ORDER[self.kind[name]], self.number[name])):
                    places[name] = _Place(name, above, self.topology.link(name, above))
                    following += [name] if self.kind[name] == "pcie" else []
            frontier = following
        missing = next((name for name, kind in self.kind.items() if kind in _ORDER and name not in places), None)
        if missing:
            raise TopologyError(f"{missing} has no way to a CPU over PCIe or C2C")
        return places

    def _top(self, name: str) -> str:
        while name in self.places:
            name = self.places[name].above
        return name

    def lines(self) -> Iterator[str]:
        yield f'<system version="1" name={quoteattr(self.topology.name)}>'
        first = {cpu: len(self.number) for cpu in self.cpus}
        for name, number in self.number.items():
            if name in self.places and self.kind[name] != "gpu":
                first[self._top(name)] = min(first[self._top(name)], number)
        for cpu in sorted(self.cpus, key=lambda name: (first[name], self.number[name])):
            yield self._cpu(cpu)
            yield from self._below(cpu, "    ")
            yield "  </cpu>"
        yield "</system>"

    def _cpu(self, cpu: str) -> str:
        numa = cpu.removeprefix("cpu")
        if not (numa.isascii() and numa.isdigit()):
            raise TopologyError(f"{quoted(cpu)} is not the name of a CPU that can be read back, as cpu0")
        kinds = [link["link"].kind for other, link in self.topology.graph[cpu].items() if self.kind[other] == "cpu"]
        pcie = max((place.link.kind for place in self.places.values()), default="")
        codes = cpu_codes(kinds[0] if kinds else usual_socket(pcie))
        if codes is None:
            raise TopologyError(f"no CPU is known whose sockets are joined by {quoted(kinds[0])}")
        arch, vendor, family, model = codes
        ids = f' familyid="{family}" modelid="{model}"' if family >= 0 else ""
        return f'  <cpu numaid="{int(numa)}" affinity="" arch="{arch}" vendor="{vendor}"{ids}>'

    def _below(self, above: str, indent: str) -> Iterator[str]:
        for name in [name for name, place in self.places.items() if place.above == above]:
            kind, link = self.kind[name], self.places[name].link
            code = {"gpu": "0x030200", "pcie": "0x060400", "nic": "0x020700"}[kind]
            if kind == "gpu" and self._nvlink_kind(name) == "xgmi":
                code = "0x120000"
            speed = PCIE_SPEED.get(link.kind, "") if link.source != UNKNOWN_PCIE.source else ""
            width = link.lanes if link.kind in PCIE_SPEED else 0
            yield f'{indent}<pci busid="{self.bus[name]}" class="{code}" link_speed="{speed}" link_width="{width}">'
            if kind == "gpu":
                yield from self._gpu(name, indent + "  ")
            elif kind == "nic":
                yield from self._nic(name, link.kind, indent + "  ")
            else:
                yield from self._below(name, indent + "  ")
            yield f"{indent}</pci>"

    def _nvlink_kind(self, gpu: str) -> str:
        return next((d["link"].kind for other, d in self.topology.graph[gpu].items() if self.kind[other] in ("gpu", "nvswitch")), "")

    def _gpu(self, gpu: str, indent: str) -> Iterator[str]:
        number = self.topology.gpus.index(gpu)
        kind = self._nvlink_kind(gpu) or max(map(self._nvlink_kind, self.topology.gpus))  # a card without a bridge among others with one
        sm = sm_of(kind)
        is_amd = kind == "xgmi"
        if sm is None and not is_amd:
            raise TopologyError(f"no GPU is known whose links are {quoted(kind)}")
        which = 'sm="304" gcn="gfx942"' if is_amd else f'sm="{sm}"'
        yield f'{indent}<gpu dev="{number}" {which} rank="{number}" gdr="1">'
        for other, data in self.topology.graph[gpu].items():
            link: Link = data["link"]
            if self.kind[other] == "nvswitch":
                yield f'{indent}  <nvlink target="{HIDDEN_SWITCH}" count="{link.lanes}" tclass="0x068000"/>'
            elif self.kind[other] == "gpu":
                tag, tclass = ("xgmi", "0x120000") if is_amd else ("nvlink", "0x030200")
                yield f'{indent}  <{tag} target="{self.bus[other]}" count="{link.lanes}" tclass="{tclass}"/>'
            elif link.kind == "nvlink-c2c":
                yield f'{indent}  <c2c bw="{round(link.bandwidth / link.lanes / 1e6)}" count="{link.lanes}"/>'
        yield f"{indent}</gpu>"

    def _nic(self, nic: str, pcie: str, indent: str) -> Iterator[str]:
        number = [name for name, kind in self.kind.items() if kind == "nic"].index(nic)
        speed = _NIC_SPEED.get(pcie, 100_000)
        yield f"{indent}<nic>"
        yield (
            f'{indent}  <net name="{quoteattr(nic)[1:-1]}" dev="{number}" speed="{speed}" port="1" latency="0.000000" '
            f'guid="0x{number + 1:x}" maxconn="131072" gdr="1"/>'
        )
        yield f"{indent}</nic>"
