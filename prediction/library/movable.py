"""What a calibration may move: few constants, those of one cause by one common factor, within what machines are known to do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prediction.library.constants import US, Constants
from prediction.library.sites import sites_of
from prediction.library.wire import Wire
from topologies.graph import Topology

MOST_FLOOR = 100 * US
LEAST_FLOOR = 0.05 * US
"""A floor is above 0 and at most 100 us."""
HOPS = 0.3, 4.0
"""Hops may be so many times what they are without a measurement."""
PARTS = 0.2, 1.0
"""Parts of a rate: no link gives more than its datasheet, and one that gives less than a fifth is broken, not slow."""
BRIDGES = 0.3, 2.0
"""What a CPU's root complex gives, to what it is without a measurement."""


@dataclass(frozen=True, slots=True)
class Knob:
    """``moves``: constants that share a factor on what they make a call take; ``rate``: they are rates, which it divides. The factor is
    from ``least`` to ``most``; without a measurement its logarithm is 0 +- ``spread``."""

    name: str
    moves: tuple[str, ...]
    rate: bool
    spread: float
    least: float
    most: float

    def ends(self, prior: float) -> tuple[float, float]:
        """The least and the most that a constant may become."""
        return (prior / self.most, prior / self.least) if self.rate else (prior * self.least, prior * self.most)

    def held(self, factor: float) -> float:
        return min(max(factor, self.least), self.most)


def knobs(topology: Topology, constants: Constants) -> tuple[list[Knob], dict[str, str]]:
    """What a log of this machine may move, and why the rest stays."""
    direct = Wire(topology, constants).direct
    floor = max(constants.floor, LEAST_FLOOR)
    found = [
        Knob("floor", ("floor", "host") if constants.host else ("floor",), False, 0.4, LEAST_FLOOR / floor, max(1.0, MOST_FLOOR / floor)),
        Knob("inside hop", ("nvlink_hop", "nvls_hop") if direct else ("pcie_hop",), False, 0.3, *HOPS),
        _parts("inside rate", ("nvlink", "nvls"), constants, 0.15)
        if direct
        else Knob("inside rate", ("bridge", "shared_memory"), True, 0.3, 1 / BRIDGES[1], 1 / BRIDGES[0]),
    ]
    if len(sites_of(topology)) == 1:
        return found, dict.fromkeys(("net_hop", "nic"), "one node: nothing goes over the network")
    return [*found, Knob("network hop", ("net_hop",), False, 0.4, *HOPS), _parts("network rate", ("nic",), constants, 0.2)], {}


def moved(constants: Constants, factors: Mapping[Knob, float]) -> Constants:
    """The constants with the factors on what they make a call take."""
    values = {
        name: value / factor if knob.rate else value * factor
        for knob, factor in factors.items()
        for name, value in ((name, getattr(constants, name)) for name in knob.moves)
    }
    return constants.replaced(**values)


def at_bound(factors: Mapping[Knob, float]) -> list[str]:
    """Names of the constants that stand at the end of what is allowed."""
    return [
        name for knob, factor in factors.items() for name in knob.moves
        if any(math.isclose(factor, end, rel_tol=1e-3) for end in (knob.least, knob.most))
    ]  # fmt: skip


def _parts(name: str, moves: Sequence[str], constants: Constants, spread: float) -> Knob:
    values = [getattr(constants, each) for each in moves]
    return Knob(name, tuple(moves), True, spread, max(values) / PARTS[1], max(1.0, min(values) / PARTS[0]))
