"""The text of ``nvidia-smi topo -m`` -> ``Topology`` of that server, or of several like it on rails of switches.

The text tells NVLinks, PCIe switches, CPUs and NICs, but no model and no speed. Those come from parameters: ``gpu`` (model: NVLink and
PCIe generation), ``pcie`` (generation, over the GPU's), ``nic`` (speed, only for ``nodes`` of more than one), ``sockets`` (link type
between CPUs), ``nvswitch`` (true where direct links would do too), ``gpus`` (the first of each server). Which generation a GPU has:
NVIDIA's datasheets; between CPUs the usual link of that PCIe generation (``SOCKETS``). What had to be assumed is logged as a warning.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

from topologies.errors import TopologyError, nearest, quoted
from topologies.fabric import infiniband, most_servers, one_switch
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import LINK_TYPES, link_of, link_type
from topologies.nvidia_smi_places import above, cpus_of, nvlinks, pcie_tree, rails
from topologies.nvidia_smi_text import MAX_FILE, Matrix, is_matrix, parse_matrix
from topologies.registry import Value, check_size
from topologies.server import near
from topologies.units import parse_bandwidth, parse_count

GPUS = {
    model: kinds
    for kinds, models in {
        ("nvlink1", 3): ("p100",),
        ("nvlink2", 3): ("v100",),
        ("nvlink3", 4): ("a100", "a100-pcie", "a800", "a30"),
        ("nvlink4", 5): ("h100", "h100-pcie", "h200", "h800", "h20"),
        ("nvlink5", 5): ("b200",),
        ("nvlink-bridge", 4): ("a40", "a6000", "rtx3090"),
        ("", 3): ("t4",),
        ("", 4): ("a10", "l4", "l40", "l40s", "rtx4090"),
    }.items()
    for model in models
}
"""NVLink type (empty: none) and PCIe generation of a GPU."""
FEWER_NVLINKS = {"a30": 4, "a800": 8, "h800": 8}
"""Of models that have not all of their generation: NVIDIA's datasheets (200 and 400 GB/s)."""
SOCKETS = {3: "upi", 4: "xgmi-cpu", 5: "upi2", 6: "upi2-24"}
"""Between CPUs by PCIe generation: Skylake, EPYC Rome (as in DGX A100), Sapphire Rapids, Granite Rapids."""
PORTS = {12.5e9: 36, 25e9: 40, 50e9: 64, 100e9: 144}
"""Of a switch by speed of a port [B/s]: Mellanox SB7800, QM8700, QM9700, Q3400; Ethernet taken alike."""
_CAN_REDUCE = ("nvlink4", "nvlink5")
_NICS = tuple(name for name in LINK_TYPES if name.startswith(("ib-", "roce-", "efa-", "gvnic-", "slingshot-")))
_PARAMS = ("gpu", "pcie", "nic", "sockets", "nvswitch", "nodes", "gpus")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class _Server:
    """One server: GPUs and NICs by their names in the text, in the order of ranks and rails; ``parent`` in the PCIe tree."""

    nvlink: str
    pcie: str
    sockets: str
    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    parent: Mapping[str, str]
    node: Mapping[str, str]
    """Name of the node of each GPU and NIC: their places in the text."""
    direct: tuple[tuple[str, str, int], ...]
    switched: tuple[Mapping[str, int], ...]


def holds_matrix(path: Path) -> bool:
    """Whether a file is meant as such a text: by its name (.topo), or by a line that starts with a GPU, whatever its name but .toml."""
    if path.suffix in (".toml", ".topo"):
        return path.suffix == ".topo"
    try:
        if not path.is_file():  # before opening: a pipe would block
            return False
        with path.open("rb") as file:
            return is_matrix(file.read(MAX_FILE).decode("utf-8", "replace"))
    except (OSError, ValueError):
        return False


def read_nvidia_smi(path: str | Path, params: Mapping[str, Value] | None = None) -> Topology:
    """Read a file with such a text; ``params`` as above, text or numbers. Raises TopologyError, starting with the file's name."""
    path = Path(path)
    try:
        if not path.is_file():  # before opening: a pipe would block
            raise TopologyError("there is no such file" if not path.exists() else "is not a regular file")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
        topology, notes = topology_of(raw, path.stem, params)
    except (OSError, ValueError) as error:  # a name with a null byte is a ValueError, as is TopologyError
        raise TopologyError(f"{path.name}: {getattr(error, 'strerror', None) or error}") from None
    for note in notes:
        _log.warning("%s: %s", path.name, note)
    return topology


def topology_of(raw: bytes, name: str, params: Mapping[str, Value] | None = None) -> tuple[Topology, list[str]]:
    """The topology of a text, and what had to be assumed, a line each. Raises TopologyError."""
    if len(raw) > MAX_FILE:
        raise TopologyError(f"more than {MAX_FILE} bytes (1 MiB); a matrix of nvidia-smi topo -m is far smaller")
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TopologyError(f"byte {error.start} is not UTF-8 text; paste the text of nvidia-smi topo -m") from None
    given = {key.replace("-", "_"): value for key, value in (params or {}).items()}
    for key in given:
        if key not in _PARAMS:
            raise TopologyError(f"there is no parameter {quoted(key)}{nearest(key, _PARAMS)}")
    matrix = parse_matrix(text)
    nodes = parse_count(given.get("nodes", 1), "nodes")  # type: ignore[arg-type]
    count = parse_count(given.get("gpus", len(matrix.gpus)), "gpus", len(matrix.gpus))  # type: ignore[arg-type]
    server, way, notes = _server(matrix, given, count, nodes)
    return _cluster(f"{name}-{nodes}x{count}", server, way, given, nodes), [*matrix.notes, *notes]


def _server(matrix: Matrix, given: Mapping[str, Value], count: int, nodes: int) -> tuple[_Server, dict[str, str], list[str]]:
    """The server with its first ``count`` GPUs, their ways out, and notes. With fewer GPUs, or a network, only NICs that GPUs use."""
    has_nvlinks = any(matrix.nvlinks(a, b) for a, b in combinations(matrix.gpus, 2))
    nvlink, generation, model = _generations(given, has_nvlinks)
    switched = _flag(given["nvswitch"]) if "nvswitch" in given else None
    direct, through = nvlinks(matrix, FEWER_NVLINKS.get(model, LINK_TYPES[nvlink].lanes), model, switched) if has_nvlinks else ([], [])
    cpus, notes = cpus_of(matrix)
    gpus = matrix.gpus[:count]
    way = {gpu: nic for gpu, nic in rails(matrix).items() if gpu in gpus}
    used = tuple(dict.fromkeys(way.values()))
    nics = used if nodes > 1 or count < len(matrix.gpus) else matrix.nics
    if len(nics) < len(matrix.nics):
        notes.append(f"left out: {', '.join(nic for nic in matrix.nics if nic not in nics)}, which no GPU has as its nearest NIC")
    sockets = str(given.get("sockets", SOCKETS[generation]))
    link_type(sockets)
    node = {gpu: f"gpu{i}" for i, gpu in enumerate(matrix.gpus)} | {nic: f"nic{i}" for i, nic in enumerate(matrix.nics)}
    kept = tuple((a, b, lanes) for a, b, lanes in direct if a in gpus and b in gpus)
    boards = [{gpu: lanes for gpu, lanes in board.items() if gpu in gpus} for board in through]
    tree = pcie_tree(matrix, cpus)
    return _Server(nvlink, f"pcie{generation}", sockets, gpus, nics, tree, node, kept, tuple(b for b in boards if b)), way, notes


def _generations(given: Mapping[str, Value], has_nvlinks: bool) -> tuple[str, int, str]:
    """NVLink type, PCIe generation, GPU model (empty: not given and not needed)."""
    model, pcie = given.get("gpu"), given.get("pcie")
    if model is None and (has_nvlinks or pcie is None):
        lacks = "NVLink generation" if has_nvlinks else "PCIe generation"
        other = "" if has_nvlinks else ", or pcie=3 to 6"
        raise TopologyError(f"the text does not tell the {lacks}: give gpu= (--param gpu=h100{other}); known: {', '.join(GPUS)}")
    if model is not None and str(model).lower() not in GPUS:
        raise TopologyError(f"gpu: {quoted(model)} is not a GPU that is known here{nearest(str(model).lower(), GPUS)}")
    name = "" if model is None else str(model).lower()
    nvlink, generation = GPUS[name] if name else ("", 0)
    if has_nvlinks and not nvlink:
        raise TopologyError(f"the text has NVLinks, and gpu={name} has none; name the GPU that was measured: {', '.join(GPUS)}")
    if pcie is not None:
        generation = parse_count(pcie, "pcie", 99)  # type: ignore[arg-type]
        if generation not in SOCKETS:
            raise TopologyError(f"pcie: {generation} is not a generation of PCIe that is known here; write 3, 4, 5 or 6")
    return nvlink, generation, name


def _flag(value: Value) -> bool:
    if value in (True, "true") or value in (False, "false"):
        return value in (True, "true")
    raise TopologyError(f"nvswitch: {quoted(value)} is neither true nor false")


def _nic(given: Mapping[str, Value]) -> str:
    """Link type of the NICs."""
    value = given.get("nic")
    rates = {LINK_TYPES[name].bandwidth: name for name in _NICS if name.startswith("ib-")}
    if value is None:
        raise TopologyError(f'the text does not tell the speed of NICs: give nic= ("400Gb/s" for InfiniBand, or one of {", ".join(_NICS)})')
    if value in _NICS:
        return str(value)
    if isinstance(value, str) and value[:1].isalpha():
        raise TopologyError(f'nic: {quoted(value)} is not a type of NIC; write "400Gb/s"{nearest(value, _NICS)}')
    rate = parse_bandwidth(value, "nic")  # type: ignore[arg-type]
    if rate not in rates:
        raise TopologyError(f"nic: {quoted(value)} is no speed of InfiniBand; write 100, 200, 400 or 800Gb/s, or one of {', '.join(_NICS)}")
    return rates[rate]


def _cluster(name: str, server: _Server, way: Mapping[str, str], given: Mapping[str, Value], nodes: int) -> Topology:
    count = len(server.gpus)
    check_size(name, "nodes", nodes, lambda n: n * (3 * len(server.node) + 8 * len(server.direct) + 10 * count))
    parts: list[Node] = []
    links: list[Link] = []
    for s in range(nodes):
        prefix = f"s{s}." if nodes > 1 else ""
        parts += _nodes(server, s, prefix)
        links += _links(server, prefix)
    groups = {"servers": tuple(tuple(range(s * count, (s + 1) * count)) for s in range(nodes))}
    if nodes == 1:
        if "nic" in given:
            _nic(given)
        return Topology.build(name, parts, links, groups)
    kind = _nic(given)
    if not server.nics:
        raise TopologyError(f"nodes = {nodes}, but the text has no NIC; nodes = 1 is what it can tell")
    plain = kind.startswith(("ib-", "roce-"))
    ports = PORTS[LINK_TYPES[kind].bandwidth]
    most = max(1, most_servers(len(server.nics), ports)) if plain else nodes
    if nodes > most:
        raise TopologyError(f"nodes = {nodes}; with {len(server.nics)} rails two tiers of {ports}-port switches take nodes = 1 to {most}")
    names = [[f"s{s}.{server.node[nic]}" for nic in server.nics] for s in range(nodes)]
    switches, cables = infiniband(name, names, kind, ports, sharp=kind.startswith("ib-")) if plain else one_switch(names, kind, 1)
    unit = ports // 2 if plain else nodes
    rail = [server.nics.index(way[gpu]) for gpu in server.gpus]
    places = [(s // unit, rail[g]) for s in range(nodes) for g in range(count)]
    groups["rails"] = tuple(tuple(rank for rank, place in enumerate(places) if place[1] == r) for r in range(len(server.nics)))
    leaves = sorted(set(places)) if plain else [None]
    groups["leaves"] = tuple(tuple(rank for rank, at in enumerate(places) if leaf in (None, at)) for leaf in leaves)
    return Topology.build(name, parts + switches, links + cables, groups)


def _nodes(server: _Server, s: int, prefix: str) -> list[Node]:
    """GPUs first, so that their order is the order of ranks."""
    over = above(dict(server.parent), server.gpus + server.nics)
    nodes = [Node(prefix + server.node[gpu], "gpu", s) for gpu in server.gpus]
    nodes += [Node(prefix + _board(server, i), "nvswitch", s, reduces=server.nvlink in _CAN_REDUCE) for i in range(len(server.switched))]
    nodes += [Node(prefix + switch, "pcie", s) for switch in over if switch.startswith("pcie")]
    nodes += [Node(prefix + server.node[nic], "nic", s) for nic in server.nics]
    return nodes + [Node(prefix + cpu, "cpu", s) for cpu in _by_number(over)]


def _board(server: _Server, board: int) -> str:
    return "nvswitch" if len(server.switched) == 1 else f"nvswitch{board}"


def _by_number(over: list[str]) -> list[str]:
    return sorted((name for name in over if name.startswith("cpu")), key=lambda name: int(name[3:]))


def _links(server: _Server, prefix: str) -> list[Link]:
    over = above(dict(server.parent), server.gpus + server.nics)
    cables: list[tuple[str, str, str, int | None]] = []
    for i, board in enumerate(server.switched):
        cables += [(server.nvlink, server.node[gpu], _board(server, i), lanes) for gpu, lanes in board.items()]
    cables += [(server.nvlink, server.node[a], server.node[b], lanes) for a, b, lanes in server.direct]
    cables += [(server.pcie, server.node[device], server.parent[device], None) for device in server.gpus + server.nics]
    cables += [(server.pcie, switch, server.parent[switch], None) for switch in over if switch in server.parent]
    cpus = _by_number(over)
    for i, j in combinations(range(len(cpus)), 2):
        cables.append((server.sockets, cpus[i], cpus[j], None if near(i, j, len(cpus)) else 1))
    return [way for kind, a, b, lanes in cables for way in both_ways(link_of(kind, prefix + a, prefix + b, lanes))]
