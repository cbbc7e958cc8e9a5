"""Patterns of the lines that NCCL prints with NCCL_DEBUG=INFO (2.4 to 2.30), and the parts they are made of."""

from __future__ import annotations

import re

from prediction.nccl_facts import Searched

# No pattern may cost more than its line is long: literals first, no repetition inside a repetition.
VERSION = re.compile(r"NCCL version ([0-9]{1,3})\.([0-9]{1,3})(?:\.([0-9]{1,3}))?(?:\+cuda([0-9]{1,3}\.[0-9]{1,3}))?")
ENVIRONMENT = re.compile(r"\b(NCCL_[A-Z0-9_]{1,60}) set by environment to (\S{1,200}?)\.?(?=\s|$)")
COMM = re.compile(r"\bcomm 0x[0-9a-f]{1,16} rank ([0-9]{1,7}) n[rR]anks ([0-9]{1,7})(?: nNodes ([0-9]{1,7}))?")
RING_ORDER = re.compile(r"Channel ([0-9]{1,3})(?:/[0-9]{1,3})? :((?: +[0-9]{1,7})+)\s*$")
RING = re.compile(r"Ring ([0-9]{1,3}) : (-?[0-9]{1,7}) -> ([0-9]{1,7}) -> (-?[0-9]{1,7})")
TREE = re.compile(r"\[([0-9]{1,3})\] (-?[0-9]{1,7}(?:/-?[0-9]{1,7}){0,2})->([0-9]{1,7})->(-?[0-9]{1,7})")
ONE_TREE = re.compile(r"Tree ([0-9]{1,3}) : (-?[0-9]{1,7}) -> ([0-9]{1,7}) -> (-?[0-9]{1,7}(?:/-?[0-9]{1,7}){0,2})")
PATTERN = re.compile(
    r"Pattern ([0-9]{1,2}), crossNic ([0-9]{1,2}), nChannels ([0-9]{1,3}), "
    r"(?:bw|speed) ([0-9]{1,6}\.?[0-9]{0,6})/([0-9]{1,6}\.?[0-9]{0,6}), type ([A-Z0-9]{1,4})/([A-Z0-9]{1,4}), sameChannels ([01])"
)
SEARCHED = re.compile(r" *([0-9]{1,3}) :((?: +(?:GPU|NET|NVS|CPU|PCI)/[\w-]{1,24})+)\s*$")
FROM = re.compile(r"((?:GPU|NET|NVS|CPU|PCI|NIC)/[\w-]{1,24}) :(?=[A-Z])")
PATH = re.compile(r"((?:GPU|NET|NVS|CPU|PCI|NIC)/[\w-]{1,24}) \(([0-9]{1,3})/([0-9]{1,7}\.?[0-9]{0,6})/([A-Z0-9]{1,4})\)")
VIA = re.compile(
    r"Channel ([0-9]{1,3})(?:/[0-9]{1,3})? : ([0-9]{1,7})\[\w{1,16}\] -> ([0-9]{1,7})\[\w{1,16}\] "
    r"(?:\[(send|receive)\] )?via (\S{1,80})"
)
CHANNELS = re.compile(
    r"([0-9]{1,4}) coll channels, (?:([0-9]{1,4}) collnet channels, )?(?:([0-9]{1,4}) nvls channels, )?([0-9]{1,4}) p2p channels, "
    r"([0-9]{1,4}) p2p channels per peer"
)
MULTICAST = re.compile(r"NVLS multicast support is (not )?available")
HEAD = re.compile(r"NVLS Head +([0-9]{1,3}):((?: +-?[0-9]{1,7})+)\s*$")
USING = re.compile(r"(?:Using network|NET/Plugin ?: Loaded net plugin|Initialized NET plugin) (\S{1,80})")
NIC = re.compile(r"\[[0-9]{1,3}\]\s?([^\s;]{1,80})")
CHOSEN = re.compile(
    r"(?:([A-Z][A-Za-z]{1,20}): )?([0-9]{1,19}) Bytes -> Algo (\w{1,20}) proto (\w{1,12})"
    r"(?: time ([0-9]{1,12}\.?[0-9]{0,6}))?(?: channel\{Lo\.\.Hi\}=\{([0-9]{1,3})\.\.([0-9]{1,3})\})?"
)
CELL = re.compile(r" *([0-9]{1,9}\.[0-9]{1,3}) ?/ *([0-9]{1,9}\.[0-9]{1,3}) *")
COLLECTIVES = {
    "Broadcast": "broadcast",
    "Reduce": "reduce",
    "AllGather": "all-gather",
    "ReduceScatter": "reduce-scatter",
    "AllReduce": "all-reduce",
}
_ALGORITHMS = {"collnet": "collnet-direct", "collnetdirect": "collnet-direct", "collnetchain": "collnet-chain", "nvlstree": "nvls-tree"}
BY_NUMBER = ("tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat")
PROTOCOLS = ("ll", "ll128", "simple")


def algorithm(text: str) -> str:
    """Tree, RING, CollNetDirect or the number of NCCL's enumeration, as ringscope names it; an unknown one in small letters."""
    if text.isdigit():
        return BY_NUMBER[int(text)] if int(text) < len(BY_NUMBER) else text
    return _ALGORITHMS.get(text.lower(), text.lower())


def protocol(text: str) -> str:
    """LL, LL128, SIMPLE or the number of NCCL's enumeration, as ringscope names it; an unknown one in small letters."""
    return PROTOCOLS[int(text)] if text.isdigit() and int(text) < len(PROTOCOLS) else text.lower()


def searched(text: str) -> Searched | None:
    """The line that sums up one search."""
    found = PATTERN.search(text)
    if found is None:
        return None
    pattern, cross, count, intra, inter, inside, between, same = found.groups()
    return Searched(int(pattern), int(cross), int(count), float(intra) * 1e9, float(inter) * 1e9, inside, between, same == "1")


def headings(text: str) -> tuple[tuple[str, str], ...]:
    """Columns of the old table of latencies: (algorithm, protocol) for each ``Tree/ LL128``."""
    cells = (cell.partition("/") for cell in text.split("|")[1:] if "/" in cell)
    return tuple((algorithm(name.strip()), protocol(proto.strip())) for name, _, proto in cells)


def downs(text: str) -> tuple[int, ...]:
    """The ranks of ``3/-1/-1`` that there are."""
    return tuple(rank for rank in map(int, text.split("/")) if rank >= 0)
