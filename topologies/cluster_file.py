"""Cluster TOML -> ``Topology``. Two forms, every key checked:

    topology = "dgx-a100"        # a registered topology
    params = { nodes = 4 }

    name = "pair"                # or everything spelt out
    nodes = [{ name = "gpu0", kind = "gpu" }, { name = "gpu1", kind = "gpu", server = 0 }]
    links = [{ between = ["gpu0", "gpu1"], kind = "nvlink3" }, { from = ..., to = ..., bandwidth = "400Gb/s", latency = "1us" }]
    groups = { servers = [[0, 1]] }
    dims = [2]                   # the ranks are a row of 2, as [4, 4] would be 4 rows of 4

Both may say what a calibration found: constants = { floor = "7.2us", nic = 0.93, bridge = "21.7GB/s" }.

``between`` is both directions of a cable; ``kind`` of the link table gives lanes, bandwidth, latency and source unless stated.
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from topologies.errors import TopologyError, nearest, quoted
from topologies.graph import NODE_KINDS, Link, Node, Topology, both_ways
from topologies.links import LINK_TYPES
from topologies.registry import Value, get, make
from topologies.units import parse_bandwidth, parse_count, parse_time

MAX_FILE = 16 * 2**20
MAX_DIMS = 32
_KEY = r"""(?:[\w-]++|"[^"\n]*+"|'[^'\n]*+')"""
_DEEP_KEY = re.compile(rf"(?<![\w-]){_KEY}(?:[ \t]*+\.[ \t]*+{_KEY}){{16}}")  # the TOML parser is quadratic in the parts of a key
_TOP_KEYS = ("topology", "params", "name", "nodes", "links", "groups", "dims", "constants")
MAX_CONSTANTS = 100
Table = Mapping[str, Any]


def load(spec: str, params: Mapping[str, Value] | None = None) -> Topology:
    """A topology by its registered name, or from a cluster file (``spec`` ends in .toml or is a file). Raises TopologyError."""
    try:
        is_file = spec.endswith(".toml") or Path(spec).is_file()
    except OSError:  # a name longer than the file system allows
        is_file = False
    return read_cluster(Path(spec), params) if is_file else make(spec, params)


def read_cluster(path: str | Path, params: Mapping[str, Value] | None = None) -> Topology:
    """Read a cluster file; ``params`` go over those of a file that names a registered topology. NCCL's topology file (``.xml``) and a
    text of ``nvidia-smi topo -m`` are cluster files too (``topologies.nccl_xml``, ``topologies.nvidia_smi``).

    Raises TopologyError, starting with the file's name, for a file that is missing, empty, above 16 MiB, not UTF-8 or not
    TOML, for an unknown or missing key, a wrong type, and all that the topology itself refuses.
    """
    path = Path(path)
    if path.suffix == ".xml":
        from topologies.nccl_xml import read_nccl_xml

        return read_nccl_xml(path, params)
    if path.suffix != ".toml":
        from topologies.nvidia_smi import holds_matrix, read_nvidia_smi

        if holds_matrix(path):
            return read_nvidia_smi(path, params)
    try:
        table = _parse(_text(path))
        constants = _constants(table.get("constants", {}))
        if "topology" in table:
            return replace(_preset(table, params or {}), constants=constants)
        return replace(_explicit(table, path.stem, params or {}), constants=constants)
    except TopologyError as error:
        raise TopologyError(f"{path.name}: {error}") from None


def _text(path: Path) -> str:
    try:
        if not path.is_file():  # before opening: a pipe would block
            raise TopologyError("there is no such file" if not path.exists() else "is not a regular file; name a cluster file")
        if path.stat().st_size > MAX_FILE:
            raise TopologyError(f"has {path.stat().st_size} bytes; a cluster file has at most {MAX_FILE} (16 MiB)")
        with path.open("rb") as file:
            raw = file.read(MAX_FILE + 1)
    except (OSError, ValueError) as error:
        if isinstance(error, TopologyError):
            raise
        raise TopologyError(f"cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not raw.strip():
        raise TopologyError('is empty; write topology = "dgx-a100", or nodes and links')
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TopologyError(f"byte {error.start} is not UTF-8 text; a cluster file is TOML") from None
    if "\0" in text:
        raise TopologyError("is a binary file; a cluster file is TOML")
    return text


def _parse(text: str) -> Table:
    deep = _DEEP_KEY.search(text)
    if deep:
        raise TopologyError(f"line {text.count(chr(10), 0, deep.start()) + 1}: a key of more than 16 parts; no key here has more than 2")
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise TopologyError(f"is not TOML: {str(error)[:200]}") from None
    except RecursionError:
        raise TopologyError("is not a cluster file: its values nest too deep; nothing here nests more than 3 deep") from None
    except ValueError as error:  # an integer of thousands of digits, a date that does not exist
        raise TopologyError(f"is not TOML: {str(error)[:200]}") from None


def _preset(table: Table, params: Mapping[str, Value]) -> Topology:
    _check_keys(table, "", ("topology", "params", "constants"), ("topology",))
    stated = table.get("params", {})
    _check_type(table["topology"], "topology", str, 'a name, as "dgx-a100"')
    _check_type(stated, "params", dict, "a table, as [params] with nodes = 4")
    get(table["topology"])
    own = {key.replace("-", "_"): value for key, value in params.items()}
    return make(table["topology"], {key: value for key, value in stated.items() if key.replace("-", "_") not in own} | own, "params")


def _explicit(table: Table, stem: str, params: Mapping[str, Value]) -> Topology:
    _check_keys(table, "", ("name", "nodes", "links", "groups", "dims", "constants"), ("nodes", "links"))
    if params:
        raise TopologyError(f"lists its own nodes and links, so it takes no parameter {quoted(next(iter(params)))}; edit the file")
    name = table.get("name", stem)
    _check_type(name, "name", str, "text")
    nodes = [_node(entry, where) for entry, where in _entries(table, "nodes")]
    links = [link for entry, where in _entries(table, "links") for link in _links(entry, where)]
    ranks = sum(node.kind == "gpu" for node in nodes)
    return Topology.build(name, nodes, links, _groups(table.get("groups", {}), ranks), _dims(table.get("dims", []), ranks))


def _entries(table: Table, key: str) -> Iterator[tuple[Table, str]]:
    _check_type(table[key], key, list, f"a list of tables, as [[{key}]]")
    for index, entry in enumerate(table[key]):
        _check_type(entry, f"{key}[{index}]", dict, f"a table, as [[{key}]]")
        yield entry, f"{key}[{index}]"


def _node(entry: Table, where: str) -> Node:
    _check_keys(entry, where, ("name", "kind", "server", "injection", "ejection", "reduces"), ("name", "kind"))
    name, kind, server, reduces = entry["name"], entry["kind"], entry.get("server"), entry.get("reduces", False)
    _check_name(name, f"{where}.name")
    if kind not in NODE_KINDS:
        raise TopologyError(f"{where}.kind: {quoted(kind)} is not a kind of node{nearest(str(kind), NODE_KINDS)}")
    if server is not None and (isinstance(server, bool) or not isinstance(server, int) or not 0 <= server < 2**31):
        raise TopologyError(f"{where}.server: {quoted(server)} is not the number of a server; write 0, 1, 2, ...")
    _check_type(reduces, f"{where}.reduces", bool, "true or false")
    ports = [parse_bandwidth(_unit_text(entry[k]), f"{where}.{k}") if k in entry else math.inf for k in ("injection", "ejection")]
    return Node(name, kind, server, ports[0], ports[1], reduces)


def _links(entry: Table, where: str) -> tuple[Link, ...]:
    _check_keys(entry, where, ("between", "from", "to", "kind", "lanes", "bandwidth", "latency", "source"), ())
    if "between" in entry:
        ends, both = entry["between"], True
        if not isinstance(ends, list) or len(ends) != 2 or "from" in entry or "to" in entry:
            raise TopologyError(f'{where}.between: {quoted(ends)}: write between = ["gpu0", "gpu1"] alone, or from and to')
    elif "from" in entry and "to" in entry:
        ends, both = [entry["from"], entry["to"]], False
    else:
        raise TopologyError(f'{where}: an end is missing; write between = ["gpu0", "gpu1"], or from = "gpu0" and to = "gpu1"')
    for end in ends:
        _check_name(end, where)
    kind = entry.get("kind", "link")
    _check_name(kind, f"{where}.kind")
    known = LINK_TYPES.get(kind)
    if known is None and not {"bandwidth", "latency"} <= entry.keys():
        rule = "is not a link type, so bandwidth and latency must be stated"
        raise TopologyError(f"{where}.kind: {quoted(kind)} {rule}{nearest(kind, LINK_TYPES)}")
    lanes = entry.get("lanes", known.lanes if known else 1)
    _check_type(lanes, f"{where}.lanes", int, "a count; write a whole number without quotes")
    lanes = parse_count(lanes, f"{where}.lanes", most=2**20)
    bandwidth = known.lane_bandwidth * lanes if known else 0.0
    latency = known.latency if known else 0.0
    source = known.source if known and not {"bandwidth", "latency"} & entry.keys() else "user"
    if "bandwidth" in entry:
        bandwidth = parse_bandwidth(_unit_text(entry["bandwidth"]), f"{where}.bandwidth")
    if "latency" in entry:
        latency = parse_time(_unit_text(entry["latency"]), f"{where}.latency")
    source = entry.get("source", source)
    _check_type(source, f"{where}.source", str, "text")
    link = Link(ends[0], ends[1], kind, lanes, bandwidth, latency, source)
    return both_ways(link) if both else (link,)


def _groups(table: Table, ranks: int) -> dict[str, tuple[tuple[int, ...], ...]]:
    _check_type(table, "groups", dict, "a table, as [groups] with servers = [[0, 1], [2, 3]]")
    groups = {}
    for key, parts in table.items():
        where = f"groups.{key}"
        if not isinstance(parts, list) or not all(isinstance(part, list) for part in parts):
            raise TopologyError(f"{where}: {quoted(parts)} is not a list of lists of ranks; write [[0, 1], [2, 3]]")
        seen: set[int] = set()
        for rank in (rank for part in parts for rank in part):
            if isinstance(rank, bool) or not isinstance(rank, int) or not 0 <= rank < ranks:
                raise TopologyError(f"{where}: {quoted(rank)} is not a rank; there are 0 to {ranks - 1}")
            if rank in seen:
                raise TopologyError(f"{where}: rank {rank} stands twice; a rank is in one part of a group at most")
            seen.add(rank)
        groups[key] = tuple(tuple(part) for part in parts)
    return groups


_CONSTANT = 'write a part as 0.92, a time as "7.2us", a bandwidth as "21.7GB/s"'


def _constants(table: Any) -> dict[str, float]:
    """Their names are checked by whoever predicts with them."""
    _check_type(table, "constants", dict, 'a table, as [constants] with floor = "7.2us"')
    if len(table) > MAX_CONSTANTS:
        raise TopologyError(f"constants: {len(table)} of them; there are {MAX_CONSTANTS} at most")
    found = {}
    for name, value in table.items():
        _check_name(name, "constants")
        where = f"constants.{name}"
        if isinstance(value, str):
            if not re.search(r"(s|bps)\s*$", value):
                raise TopologyError(f"{where}: {quoted(value)} has no unit; {_CONSTANT}")
            found[name] = parse_bandwidth(value, where) if value.rstrip(" ").endswith(("/s", "bps")) else parse_time(value, where)
        elif isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= 1:
            raise TopologyError(f"{where}: {quoted(value)} is not a number above 0 and at most 1; {_CONSTANT}")
        else:
            found[name] = float(value)
    return found


def _dims(sizes: Any, ranks: int) -> tuple[int, ...]:
    _check_type(sizes, "dims", list, "a list of sizes; write [4, 4]")
    if len(sizes) > MAX_DIMS:
        raise TopologyError(f"dims: {len(sizes)} sizes; a grid has at most {MAX_DIMS} dimensions")
    for size in sizes:
        _check_type(size, "dims", int, "a size; write whole numbers, as [4, 4]")
    return tuple(parse_count(size, "dims", most=max(1, ranks)) for size in sizes)


def _check_keys(table: Table, where: str, known: tuple[str, ...], needed: tuple[str, ...]) -> None:
    prefix = f"{where}: " if where else ""
    for key in table:
        if key not in known:
            raise TopologyError(f"{prefix}there is no key {quoted(key)}{nearest(key, known if where else _TOP_KEYS)}")
    for key in needed:
        if key not in table:
            rule = "" if where else "; a file names a topology, or lists nodes and links"
            raise TopologyError(f"{prefix}the key {quoted(key)} is missing{rule}")


def _check_type(value: object, where: str, kind: type, right: str) -> None:
    if not isinstance(value, kind):
        raise TopologyError(f"{where}: {quoted(value)} is not {right}")


def _check_name(value: object, where: str) -> None:
    if not isinstance(value, str) or not 1 <= len(value) <= 200:
        raise TopologyError(f"{where}: {quoted(value)} is not a name; write 1 to 200 characters of text")


def _unit_text(value: Any) -> Any:
    """A number of a file as text, so that it is refused for want of a unit."""
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e30 else value
