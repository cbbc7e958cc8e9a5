"""What Explore's inputs can be, and how the URL says it: stable codes, read strictly."""

from __future__ import annotations

from algorithms.collectives import COLLECTIVES, collective
from algorithms.registry import catalogue
from screens.shared import Reader, one_of
from topologies import registry
from topologies.units import parse_bytes
from views.palette import KNOWN

FIRST = ("dgx-h100", "dgx-a100", "dgx-1v", "rail-optimised", "leaf-spine", "fat-tree")
TOPOLOGIES = [*(name for name in FIRST if name in registry.names()), *(name for name in registry.names() if name not in FIRST)]
OFFERED = [name for name in COLLECTIVES if catalogue(collective(name))]
SIZES = {f"{2 ** (k % 10)}{('KiB', 'MiB', 'GiB')[k // 10 - 1]}": 2**k for k in range(10, 33)}
"""Codes in the URL and bytes: 1KiB to 4GiB."""
MOST_COUNT = 9999
AUTO = "fastest"
DEFAULTS = {"topology": "dgx-h100", "params": "", "collective": "all-reduce", "size": "64MiB", "algorithm": AUTO, "also": ""}
Params = tuple[tuple[str, str], ...]


def usual(collective_name: str) -> tuple[list[str], list[str]]:
    """The textbook algorithms of a collective, which are simulated at once, and those to add by hand: a chart of twenty curves
    shows nothing, and some take seconds. A collective without a textbook algorithm here has all at once."""
    names = [a.name for a in catalogue(collective(collective_name))]
    known = {"shift"} if collective(collective_name).end == "peer" else KNOWN
    first = [name for name in names if name in known] or names
    return first, [name for name in names if name not in first]


def read_names(given: str) -> list[str]:
    """Algorithms, comma-separated; ValueError for one that is not registered."""
    names = given.split(",")
    if not {*names} <= {a.name for a in catalogue()}:
        raise ValueError(given)
    return names


def read_params(given: str) -> dict[str, str]:
    """``"nodes=4,gpus=8"`` -> names and values; ValueError for anything else."""
    pairs = [part.partition("=") for part in given.split(",") if part]
    if not all(equals and name and value for name, equals, value in pairs):
        raise ValueError(given)
    return {name: value for name, _, value in pairs}


def _size(given: str) -> str:
    """Any spelling of a size that the slider has."""
    by_bytes = {nbytes: code for code, nbytes in SIZES.items()}
    if parse_bytes(given) not in by_bytes:
        raise ValueError(given)
    return by_bytes[parse_bytes(given)]


READERS: dict[str, Reader] = {
    "topology": one_of(*TOPOLOGIES), "params": read_params, "collective": one_of(*OFFERED), "size": _size,
    "algorithm": one_of(AUTO, *{a.name for a in catalogue()}), "also": read_names,
}  # fmt: skip
