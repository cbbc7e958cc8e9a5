"""NCCL's topology XML (``NCCL_TOPO_DUMP_FILE``, ``NCCL_TOPO_FILE``; RCCL's too) -> ``Topology``, one server or ``nodes`` of it.

    topology = read_nccl_xml("topo.xml", {"gpu": "h100", "nodes": 4})

PCIe switches and bridges stay as the file has them, but for those with neither GPU nor NIC below. The ports of a NIC are one node.
NVLinks to NVSwitches end in one node, those to a GPU that is not in the file nowhere, as in NCCL. Several ``host_hash`` are several
servers. Files for virtual machines leave out GPUs and NVLinks, which NCCL asks the driver for: parameters say what they would be.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from topologies.errors import RingscopeError, TopologyError, nearest, quoted
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import LINK_TYPES, LinkType
from topologies.nccl_xml_elements import read_elements
from topologies.nccl_xml_network import repeated
from topologies.nccl_xml_parts import Part, find_parts
from topologies.nccl_xml_tables import CARDS, GPUS, MAX_LANES, GpuModel, nvlink_type, sm_by_count, socket_link
from topologies.registry import Value
from topologies.server import near
from topologies.units import parse_count

WHAT = "a topology file of NCCL"
MAX_NAME = 200
MAX_PAIRS = 100_000
"""Cables between two GPUs each."""
_PARAMETERS = ("gpu", "nvlinks", "nic", "nodes")
_FILE_GAP = "give gpu=h100 or nvlinks=18 (--param gpu=h100), nvlinks=0 for cards without NVLink"


def read_nccl_xml(path: str | Path, params: Mapping[str, Value] | None = None) -> Topology:
    """Read a topology file; ``params`` say what it leaves out, as text or numbers:

    ``gpu``: a model (``h100``) for GPUs without NVLinks in the file; ``nvlinks``: their number a GPU, 0 for cards; ``nic``: the link
    type of every NIC; ``nodes``: that many of this server, on the network its NICs are made for.

    Raises TopologyError, starting with the file's name, for a file that is missing, too large, too deep, not XML or not NCCL's, for
    what it leaves out and ``params`` do not say, and all that the topology itself refuses.
    """
    path = Path(path)
    try:
        given = _given(params or {})
        root = read_elements(path, "system", WHAT)
        root.whole("version", 1, 1, 99)
        name = root.text("name") or path.stem
        if not name.isprintable() or len(name) > MAX_NAME:
            raise root.fault("name", f"is not a name; write 1 to {MAX_NAME} printable characters")
        nodes, links, parts = _server(find_parts(root), given)
        servers: dict[int, list[int]] = {}
        for rank, gpu in enumerate(part for part in parts if part.kind == "gpu"):
            servers.setdefault(gpu.host, []).append(rank)
        groups = {"servers": tuple(tuple(ranks) for _, ranks in sorted(servers.items()))}
        topology = Topology.build(name, nodes, links, groups)
        return topology if given.nodes == 1 else repeated(topology, given.nodes, [p for p in parts if p.kind == "nic"], given.nic)
    except RingscopeError as error:
        raise TopologyError(f"{path.name}: {error}") from None


class _Given:
    """Parameters that were read; None where one was not given."""

    gpu: GpuModel | None = None
    gpu_name: str = ""
    nvlinks: int | None = None
    nic: LinkType | None = None
    nodes: int = 1


def _given(params: Mapping[str, Value]) -> _Given:
    given = _Given()
    for key, value in params.items():
        if key not in _PARAMETERS:
            raise TopologyError(f"there is no parameter {quoted(key)}{nearest(key, _PARAMETERS)}")
        text = str(value).strip(" ")[:200] if isinstance(value, str | int) and not isinstance(value, bool) else quoted(value)
        if key == "gpu":
            given.gpu_name = text.lower()
            if given.gpu_name not in GPUS:
                raise TopologyError(f"gpu = {quoted(text)} is not a known model{nearest(given.gpu_name, GPUS)}")
            given.gpu = GPUS[given.gpu_name]
        elif key == "nvlinks":
            given.nvlinks = 0 if text == "0" else parse_count(text, "nvlinks", most=MAX_LANES)
        elif key == "nic":
            if text not in LINK_TYPES:
                raise TopologyError(f"nic = {quoted(text)} is not a link type{nearest(text, LINK_TYPES)}")
            given.nic = LINK_TYPES[text]
        else:
            given.nodes = parse_count(text, "nodes")
    return given


def _server(parts: list[Part], given: _Given) -> tuple[list[Node], list[Link], list[Part]]:
    """Nodes and links in the order of ``server.py``: GPUs, NVSwitch, PCIe switches, NICs, CPUs; NVLinks, PCIe, sockets."""
    by = {kind: [part for part in parts if part.kind == kind] for kind in ("gpu", "pcie", "nic", "cpu")}
    gpus = by["gpu"]
    if len(gpus) < 2:
        found = f"{len(gpus)} GPU{'' if len(gpus) == 1 else 's'} (<pci> of class 0x03.. or 0x12..)"
        raise TopologyError(f"{found}; a collective needs at least 2")
    nvlinks, switched = _nvlinks(gpus, given)
    nodes = [Node(part.name, "gpu", part.host) for part in gpus]
    if switched:
        hosts = {part.host for part in gpus}
        reduces = all(gpu.sm >= 90 for gpu in gpus)
        nodes.append(Node("nvswitch", "nvswitch", 0 if len(hosts) == 1 else None, reduces=reduces))
    nodes += [Node(part.name, kind, part.host) for kind in ("pcie", "nic", "cpu") for part in by[kind]]
    cables = nvlinks + _c2c(gpus)
    taken = {(a, b) for _, a, b, _ in cables}
    for part in (*gpus, *by["nic"], *by["pcie"]):
        assert part.above is not None  # only CPUs stand at the top
        if (part.name, part.above.name) not in taken:  # of C2C and PCIe between the same two, C2C is the wider
            cables.append((part.cable[0], part.name, part.above.name, part.cable[1]))
    cables += _pcie_links(by["pcie"]) + _sockets(parts)
    return nodes, [way for cable in cables for way in both_ways(_link(*cable))], parts


_Cable = tuple[LinkType, str, str, int]


def _link(kind: LinkType, src: str, dst: str, lanes: int) -> Link:
    return Link(src, dst, kind.name, lanes, kind.lane_bandwidth * lanes, kind.latency, kind.source)


def _nvlinks(gpus: list[Part], given: _Given) -> tuple[list[_Cable], bool]:
    """Cables to the NVSwitch, then between GPUs, pair by pair; and whether there is an NVSwitch."""
    lacking = [gpu for gpu in gpus if not gpu.nvlinks_stated]
    if given.nvlinks is not None and not lacking:
        raise TopologyError("nvlinks: the file has the NVLinks of every GPU; leave the parameter out")
    for number, gpu in enumerate(gpus if given.gpu else ()):
        _check_model(number, gpu, given)
    for gpu in lacking:
        _complete(gpu, gpus, given)
    cables = [(_type(gpu), gpu.name, "nvswitch", gpu.to_switch) for gpu in gpus if gpu.to_switch]
    order = {gpu.name: number for number, gpu in enumerate(gpus)}
    pairs = {tuple(sorted((order[a.name], order[b]))) for a in gpus for b in a.to_gpus}
    if len(pairs) > MAX_PAIRS:
        raise TopologyError(f"{len(pairs):,} pairs of GPUs with links; at most {MAX_PAIRS:,}")
    for first, second in sorted(pairs):
        a, b = gpus[first], gpus[second]
        there, back = a.to_gpus.get(b.name, 0), b.to_gpus.get(a.name, 0)
        if there != back:
            lines = f"lines {a.element.line} and {b.element.line}"
            rule = "a link is in both GPUs' lists"
            raise TopologyError(f"{lines}: gpu {first} has {there} links to gpu {second}, which has {back} back; {rule}")
        cables.append((_type(a), a.name, b.name, there))
    return cables, any(gpu.to_switch for gpu in gpus)


def _check_model(number: int, gpu: Part, given: _Given) -> None:
    """The model that was given against what the file says of a GPU; where it says nothing, the model counts."""
    assert given.gpu is not None
    is_amd = gpu.inner is not None and gpu.inner.text("gcn") != ""
    if gpu.sm >= 0 and (gpu.sm != given.gpu.sm or is_amd != given.gpu.mesh):
        own = f"{quoted(gpu.inner.text('gcn'))}, AMD's" if gpu.inner and is_amd else f"sm {gpu.sm}"
        raise TopologyError(f"gpu = {given.gpu_name} has sm {given.gpu.sm}, but gpu {number} (line {gpu.element.line}) has {own}")
    gpu.sm = given.gpu.sm


def _complete(gpu: Part, gpus: list[Part], given: _Given) -> None:
    """What the file leaves out of a GPU without NVLinks. TopologyError where neither the parameters nor its model say."""
    where = f"gpu {gpus.index(gpu)} (line {gpu.element.line})"
    if given.gpu is None and given.nvlinks is None:
        bridged = any(other.to_gpus for other in gpus) and not any(other.to_switch for other in gpus)
        if gpu.stated and (bridged or gpu.sm in CARDS or (gpu.sm >= 0 and nvlink_type(gpu.sm) is None)):
            return  # nothing is missing: such cards have no NVLink, or a bridge between some pairs
        missing = "no nvlink elements" if gpu.stated else "no gpu element, so no nvlink elements"
        raise TopologyError(f"{where}: {missing}; {_FILE_GAP}")
    if given.gpu and given.gpu.mesh:
        gpu.xgmi = True
        gpu.to_gpus = {other.name: 1 for other in gpus if other is not gpu and other.host == gpu.host}
        return
    count = given.nvlinks if given.nvlinks is not None else given.gpu.nvlinks if given.gpu else 0
    if count and gpu.sm < 0:
        found = sm_by_count(count)
        if found is None:
            raise TopologyError(f"{where}: nvlinks = {count} does not tell the NVLink generation; give the model too, as gpu=h100")
        gpu.sm = found
    gpu.to_switch = count


def _type(gpu: Part) -> LinkType:
    if gpu.xgmi:
        gcn = gpu.inner.text("gcn") if gpu.inner else "gfx942"
        if not gcn.startswith("gfx94"):
            raise TopologyError(f"line {gpu.element.line}: gcn={quoted(gcn)}: only the xGMI links of gfx942 (MI300X) are in the link table")
        return LINK_TYPES["xgmi"]
    found = nvlink_type(gpu.sm)
    if found is None:
        line, own = (gpu.inner or gpu.element).line, "no sm" if gpu.sm < 0 else f'sm="{gpu.sm}"'
        raise TopologyError(f'line {line}: {own}, but NVLinks: their rate follows from the compute capability; write sm="90" for H100')
    return found


def _c2c(gpus: list[Part]) -> list[_Cable]:
    """NVLink-C2C, and the NVLinks of POWER systems, from a GPU to its CPU."""
    cables: list[_Cable] = []
    for gpu in gpus:
        if gpu.c2c:
            cables.append((LINK_TYPES["nvlink-c2c"], gpu.name, gpu.cpu().name, gpu.c2c))
        elif gpu.to_cpu:
            cables.append((_type(gpu), gpu.name, gpu.cpu().name, gpu.to_cpu))
    return cables


def _pcie_links(bridges: list[Part]) -> list[_Cable]:
    """``pcilink`` elements: a PCIe switch to another, as wide as its own link up; both ends may name it."""
    by_bus = {(part.host, part.bus): part for part in bridges}
    cables: list[_Cable] = []
    seen = {(part.name, part.above.name) for part in bridges if part.above}
    for part in bridges:
        for link in part.element.all("pcilink"):
            other = by_bus.get((part.host, link.text("target").lower()))
            if other is None or other is part or (part.name, other.name) in seen or (other.name, part.name) in seen:
                continue
            seen.add((part.name, other.name))
            cables.append((part.cable[0], part.name, other.name, part.cable[1]))
    return cables


def _sockets(parts: list[Part]) -> list[_Cable]:
    """Every two CPUs of a server. Two are two sockets; more are two sockets of several: between those the socket links are shared out."""
    cables: list[_Cable] = []
    speeds = [part.cable[0] for part in parts if part.kind != "cpu"]
    fastest = max(speeds, key=lambda kind: kind.lane_bandwidth).name
    hosts = sorted({part.host for part in parts})
    for host in hosts:
        cpus = [part for part in parts if part.kind == "cpu" and part.host == host]
        for i, a in enumerate(cpus):
            for j, b in enumerate(cpus[i + 1 :], i + 1):
                kind = socket_link(a.element, fastest)
                cables.append((kind, a.name, b.name, kind.lanes if near(i, j, len(cpus)) else 1))
    return cables
