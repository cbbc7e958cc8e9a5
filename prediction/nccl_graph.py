"""NCCL's graph XML (``NCCL_GRAPH_DUMP_FILE``) -> what its topology search found: ring orders, trees, heads, channel by channel.

    graphs = read_nccl_graphs("graph.xml")
    ring = graphs["ring"]
    ring.channels[0].gpus        # (0, 3, 2, 1): the order in this server
    ring.channels[0].nets        # (0, 0): the NICs it enters and leaves by; () for one server

Numbers are NCCL's: GPUs by ``dev`` (by ``rank`` in domains of several hosts), NICs by ``dev``; bandwidths of one channel.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from topologies.errors import RingscopeError, TopologyError
from topologies.nccl_xml_elements import Element, ElementError, read_elements

WHAT = "a graph file of NCCL"
Kind = Literal["ring", "tree", "collnet-chain", "nvls", "collnet-direct"]
KINDS: tuple[Kind, ...] = ("ring", "tree", "collnet-chain", "nvls", "collnet-direct")
"""By the number of the graph."""
PATTERNS = {1: "balanced tree", 2: "split tree", 3: "tree", 4: "ring", 5: "nvls", 6: "collnet-direct"}
PATHS = ("LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS")
MAX_CHANNELS, MAX_GPUS = 64, 1024
_MAX_NUMBER = 2**62  # NCCL puts the number of the host above that of the device


@dataclass(frozen=True, slots=True)
class Channel:
    """GPUs in the order of the channel (of an NVLS channel only its head), and the NICs it enters and leaves the server by."""

    gpus: tuple[int, ...]
    nets: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class SearchGraph:
    """One graph of the search: bandwidths [B/s] of a channel inside and between servers, types as NCCL's worst hop."""

    kind: Kind
    pattern: str
    cross_nic: int
    bandwidth_intra: float
    bandwidth_inter: float
    latency_inter: float
    """Of the NIC [s]."""
    type_intra: str
    type_inter: str
    same_channels: bool
    channels: tuple[Channel, ...]


def read_nccl_graphs(path: str | Path) -> dict[Kind, SearchGraph]:
    """The graphs of a file by kind. Raises TopologyError, with file and line, for one that is missing, too large, not XML or not NCCL's,
    for a channel that has a GPU twice, and for rings over different GPUs."""
    path = Path(path)
    try:
        root = read_elements(path, "graphs", WHAT)
        root.whole("version", 1, 1, 99)
        graphs: dict[Kind, SearchGraph] = {}
        for element in root.all("graph"):
            graph = _graph(element)
            if graph.kind in graphs:
                raise element.fault("id", f"stands twice; a file has one {graph.kind} graph")
            graphs[graph.kind] = graph
        if not graphs:
            raise ElementError(f"line {root.line}: has no <graph>; {WHAT} has one for ring, tree, ...")
    except RingscopeError as error:
        raise TopologyError(f"{path.name}: {error}") from None
    return graphs


def _graph(element: Element) -> SearchGraph:
    kind = KINDS[element.whole("id", None, 0, len(KINDS) - 1)]
    channels = tuple(_channel(child, kind) for child in element.all("channel"))
    declared = element.whole("nchannels", len(channels), 0, MAX_CHANNELS)
    if declared != len(channels):
        raise element.fault("nchannels", f"there are {len(channels)} <channel>; a cut file? dump it anew")
    if kind == "ring":
        for number, channel in enumerate(channels):
            if set(channel.gpus) != set(channels[0].gpus):
                raise ElementError(f"line {element.line}: ring {number} goes over other GPUs than ring 0; every ring goes over all of them")
    return SearchGraph(
        kind,
        PATTERNS[element.whole("pattern", None, 1, len(PATTERNS))],
        element.whole("crossnic", 0, 0, 2),
        element.number("speedintra", 0.0, 1e6) * 1e9,
        element.number("speedinter", 0.0, 1e6) * 1e9,
        element.number("latencyinter", 0.0, 1e6) * 1e-6,
        element.one_of("typeintra", PATHS),
        element.one_of("typeinter", PATHS),
        bool(element.whole("samechannels", 0, 0, 1)),
        channels,
    )


def _channel(element: Element, kind: Kind) -> Channel:
    gpus = tuple(gpu.whole("dev" if "dev" in gpu.attributes else "rank", None, 0, _MAX_NUMBER) for gpu in element.all("gpu"))
    nets = tuple(net.whole("dev", None, 0, _MAX_NUMBER) for net in element.all("net"))
    if not 1 <= len(gpus) <= MAX_GPUS:
        raise ElementError(f"line {element.line}: {len(gpus)} GPUs in a channel; it has 1 to {MAX_GPUS}")
    if len(nets) not in (0, 1, 2):
        raise ElementError(f"line {element.line}: {len(nets)} <net> in a channel; it enters by one NIC and leaves by one")
    for gpu, number in zip(element.all("gpu"), gpus, strict=True):
        if kind != "collnet-direct" and gpus.count(number) > 1:
            raise ElementError(f"line {gpu.line}: GPU {number} stands twice in a channel")
    return Channel(gpus, nets)
