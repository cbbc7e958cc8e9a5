"""``Topology`` -> cluster TOML with every node and link spelt out, or as a name with parameters; it reads back equal."""

from __future__ import annotations

import contextlib
import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from topologies.cluster_file import read_cluster
from topologies.errors import TopologyError, quoted
from topologies.graph import Link, Node, Topology
from topologies.links import LINK_TYPES
from topologies.registry import Value
from topologies.units import exact_bandwidth, exact_time


def write_cluster(topology: Topology, path: str | Path, named: tuple[str, Mapping[str, Value]] | None = None) -> None:
    """Write ``path`` whole or not at all: a file that does not read back equal never takes its place. Raises TopologyError.

    ``named``: the registered topology and the parameters that it was made with, which are then all that is written of it."""
    check_target(path)
    path = Path(path).resolve()
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        # Cables in pairs are half as long, but give some graphs another order of ports, and with it other routes.
        forms = [_named_lines(topology, *named)] if named else [_lines(topology, paired) for paired in (True, False)]
        if any(_reads_back(topology, beside, form) for form in forms):
            beside.replace(path)
            return
        raise TopologyError(f"{path.name}: {topology.name} does not read back equal from its own file; it was not written")
    except TopologyError as error:
        raise TopologyError(str(error).replace(beside.name, path.name)) from None
    except (OSError, ValueError) as error:
        raise TopologyError(f"{quoted(str(path))}: cannot be written: {getattr(error, 'strerror', None) or error}") from None
    finally:
        with contextlib.suppress(OSError):
            beside.unlink(missing_ok=True)


def check_target(path: str | Path) -> None:
    """Raises TopologyError where ``write_cluster`` could not put a file: no name of a .toml, no such folder, not a plain file."""
    shown, target = quoted(str(path)), Path(path)
    try:
        if target.suffix != ".toml":
            raise TopologyError(f'{shown} is not the name of a cluster file; write a name as "cluster.toml"')
        target = target.resolve()
        if not target.parent.is_dir():
            raise TopologyError(f"{shown}: there is no folder {quoted(str(target.parent))}")
        if target.exists() and not target.is_file():
            raise TopologyError(f"{shown} is not a plain file; write to another name")
    except (OSError, RuntimeError) as error:  # a name that is too long, links in a circle
        raise TopologyError(f"{shown}: cannot be written: {getattr(error, 'strerror', None) or error}") from None


def _reads_back(topology: Topology, path: Path, lines: Iterator[str]) -> bool:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    return read_cluster(path) == topology


def _lines(topology: Topology, paired: bool) -> Iterator[str]:
    yield f"name = {_text(topology.name)}"
    if topology.dims:
        yield f"dims = {list(topology.dims)}"
    yield from ("", "nodes = [", *(f"    {{ {_node(node)} }}," for node in topology.nodes), "]", "", "links = [")
    seen: set[tuple[str, str]] = set()
    for link in topology.links:
        if (link.src, link.dst) in seen:
            continue
        seen.add((link.src, link.dst))
        both = paired and topology.graph.has_edge(link.dst, link.src) and topology.link(link.dst, link.src) == link.reversed()
        if both:
            seen.add((link.dst, link.src))
        ends = f"between = [{_text(link.src)}, {_text(link.dst)}]" if both else f"from = {_text(link.src)}, to = {_text(link.dst)}"
        yield f"    {{ {ends}, {_link(link)} }},"
    yield "]"
    if topology.groups:
        yield from ("", "[groups]")
    for name, parts in topology.groups.items():
        key = name if name.isascii() and name.isidentifier() else _text(name)
        yield from (f"{key} = [", *(f"    {list(part)}," for part in parts), "]")
    yield from _constants(topology)


def _named_lines(topology: Topology, name: str, params: Mapping[str, Value]) -> Iterator[str]:
    yield f"topology = {_text(name)}"
    if params:
        yield from ("", "[params]", *(f"{key} = {_text(str(value))}" for key, value in params.items()))
    yield from _constants(topology)


def _constants(topology: Topology) -> Iterator[str]:
    """By their size parts of something (as numbers), times or bandwidths; text of either reads back as the same number."""
    if topology.constants:
        yield from ("", "[constants]")
    for name, value in topology.constants.items():
        key = name if name.isascii() and name.isidentifier() else _text(name)
        yield f"{key} = {value!r}" if 0.01 < value <= 1 else f"{key} = {_text(exact_bandwidth(value) if value > 1 else exact_time(value))}"


def _node(node: Node) -> str:
    fields = [f"name = {_text(node.name)}", f"kind = {_text(node.kind)}"]
    if node.server is not None:
        fields.append(f"server = {node.server}")
    for what, rate in (("injection", node.injection), ("ejection", node.ejection)):
        if math.isfinite(rate):
            fields.append(f"{what} = {_text(exact_bandwidth(rate))}")
    if node.reduces:
        fields.append("reduces = true")
    return ", ".join(fields)


def _link(link: Link) -> str:
    """What the link table does not already say."""
    known = LINK_TYPES.get(link.kind)
    fields = [f"kind = {_text(link.kind)}"]
    if link.lanes != (known.lanes if known else 1):
        fields.append(f"lanes = {link.lanes}")
    source = known.source if known else "user"
    if not known or link.bandwidth != known.lane_bandwidth * link.lanes:
        fields.append(f"bandwidth = {_text(exact_bandwidth(link.bandwidth))}")
        source = "user"
    if not known or link.latency != known.latency:
        fields.append(f"latency = {_text(exact_time(link.latency))}")
        source = "user"
    if link.source != source:
        fields.append(f"source = {_text(link.source)}")
    return ", ".join(fields)


def _text(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
