"""What the simulation charges for, beyond bandwidth and latency of links."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

from topologies.errors import RingscopeError


class ModelError(RingscopeError):
    """A model parameter outside its range."""


@dataclass(frozen=True, slots=True)
class Model:
    """The knobs of ``docs/model.md``; the defaults charge bandwidth and latency only."""

    overhead: float = 0.0
    """Time that a sender spends on each message before its first byte leaves [s]."""
    reduce_rate: float = math.inf
    """Bytes that a place reduces in a second [B/s]."""
    sharing: Literal["fair", "fifo"] = "fair"
    """How messages share a link: max-min fair, or one after the other in order of arrival."""
    barrier: bool = False
    """Lock-step: no send of a step starts before every send of the step before is done."""
    fifo_depth: int = 0
    """Messages from one place to another on one channel that may be under way or unread at once; 0: no limit."""

    def __post_init__(self) -> None:
        if not (self.overhead >= 0 and math.isfinite(self.overhead)):
            raise ModelError(f"model: overhead {self.overhead} s must be zero or positive, and finite")
        if not self.reduce_rate > 0:
            raise ModelError(f"model: reduce-rate {self.reduce_rate} B/s must be positive")
        if self.sharing not in ("fair", "fifo"):
            raise ModelError(f'model: sharing "{self.sharing}" is not known; known: fair, fifo')
        if self.fifo_depth < 0:
            raise ModelError(f"model: fifo-depth {self.fifo_depth} must be zero (no limit) or positive")
