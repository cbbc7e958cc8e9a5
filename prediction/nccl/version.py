"""NCCL versions as numbers that compare, and the words for its functions, algorithms and protocols in NCCL's own order."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from topologies.errors import MeasurementError, nearest, quoted

Algorithm = Literal["tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat"]
Protocol = Literal["ll", "ll128", "simple"]
ALGORITHMS: tuple[Algorithm, ...] = ("tree", "ring", "collnet-direct", "collnet-chain", "nvls", "nvls-tree", "pat")
PROTOCOLS: tuple[Protocol, ...] = ("ll", "ll128", "simple")
COLLECTIVES = ("broadcast", "reduce", "all-gather", "reduce-scatter", "all-reduce")
"""The functions NCCL tunes, in its order; everything else is made of point-to-point calls, which have no choice to make."""

FIRST, LAST = (2, 16), (2, 30)
_NO_PATCH = 999


class Version(NamedTuple):
    """A release; compares as a tuple: ``version >= (2, 28)``."""

    major: int
    minor: int
    patch: int = _NO_PATCH

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}" + ("" if self.patch == _NO_PATCH else f".{self.patch}")


def version(text: str) -> Version:
    """``2.21``, ``2.21.5`` or ``v2.21.5-1``; without a patch the last release of that minor version is meant. Raises
    MeasurementError outside 2.16 to 2.30."""
    match = re.fullmatch(r"v?(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?(?:[-+][\w.+-]{0,40})?", text.strip()[:80], re.ASCII)
    if not match:
        raise MeasurementError(f"NCCL version {quoted(text)}: write it as 2.21 or 2.21.5")
    found = Version(int(match[1]), int(match[2]), int(match[3]) if match[3] else _NO_PATCH)
    if not FIRST <= found[:2] <= LAST:
        near = FIRST if found < FIRST else LAST
        raise MeasurementError(f"NCCL version {found}: 2.{FIRST[1]} to 2.{LAST[1]} are modelled; nearest: {near[0]}.{near[1]}")
    return found


def tuned(collective: str) -> str:
    """The collective, if NCCL's tuner chooses for it; raises MeasurementError for any other word."""
    if collective not in COLLECTIVES:
        raise MeasurementError(f"NCCL's tuner: {quoted(collective)} is not tuned{nearest(collective, COLLECTIVES)}")
    return collective
