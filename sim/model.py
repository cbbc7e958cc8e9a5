"""What the simulation charges for, beyond bandwidth and latency of links."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

from topologies.errors import RingscopeError, nearest, quoted
from topologies.multipath import POLICIES, Overrides, Policy

MOST_PAYLOAD = 2**30
"""Bytes of the largest mtu there may be; as no header is longer, a message at most doubles."""


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
    routing: Policy = "shortest"
    """Which of the equal-cost shortest ways a message takes: one, one by its hash, all of them, or the one that keeps to the rails."""
    routing_seed: int = 0
    """Of the hash of ``ecmp``."""
    overrides: Overrides = field(default_factory=dict, hash=False)
    """(source, destination) -> all nodes of the way; goes over ``routing``."""
    header: int = 0
    """Bytes that each packet carries beside its payload."""
    mtu: int = 4096
    """Most payload of a packet [B]."""
    hop_latency: float = 0.0
    """What each link out of a switch adds to its latency [s]."""
    pcie_ceiling: float = 1.0
    """Fraction of its bandwidth that a PCIe link can carry."""
    nic_ceiling: float = 1.0
    """The same of a link between a NIC and the network."""
    incast: float = 0.0
    """k flows that come together at an exit of the network get 1 / (1 + incast (k - 1)) of its capacity; ``fifo`` has no k > 1."""

    def __post_init__(self) -> None:
        if not (self.overhead >= 0 and math.isfinite(self.overhead)):
            raise ModelError(f"model: overhead {self.overhead} s must be zero or positive, and finite")
        if not self.reduce_rate > 0:
            raise ModelError(f"model: reduce-rate {self.reduce_rate} B/s must be positive")
        if self.sharing not in ("fair", "fifo"):
            raise ModelError(f'model: sharing "{self.sharing}" is not known; known: fair, fifo')
        if self.fifo_depth < 0:
            raise ModelError(f"model: fifo-depth {self.fifo_depth} must be zero (no limit) or positive")
        if self.routing not in POLICIES:
            raise ModelError(f"model: routing {quoted(self.routing)} is not known{nearest(str(self.routing), POLICIES)}")
        if not 0 <= self.routing_seed < 2**32:
            raise ModelError(f"model: routing-seed {quoted(self.routing_seed)} must be from 0 to {2**32 - 1}")
        if not (isinstance(self.mtu, int) and 1 <= self.mtu <= MOST_PAYLOAD):
            raise ModelError(f"model: mtu {quoted(self.mtu)} B must be a whole number from 1 to {MOST_PAYLOAD}")
        if not (isinstance(self.header, int) and 0 <= self.header <= self.mtu):
            raise ModelError(f"model: header {quoted(self.header)} B must be a whole number from 0 to the mtu, {self.mtu}")
        if not (self.hop_latency >= 0 and math.isfinite(self.hop_latency)):
            raise ModelError(f"model: hop-latency {self.hop_latency} s must be zero or positive, and finite")
        for name, fraction in (("pcie-ceiling", self.pcie_ceiling), ("nic-ceiling", self.nic_ceiling)):
            if not 0 < fraction <= 1:
                raise ModelError(f"model: {name} {fraction} is a fraction of a link's bandwidth; it must be above 0 and at most 1")
        if not (self.incast >= 0 and math.isfinite(self.incast)):
            raise ModelError(f"model: incast {self.incast} must be zero (no penalty) or positive, and finite")

    @property
    def nominal(self) -> bool:
        """Links carry payload alone, at all of their bandwidth and at their own latency: no knob of the network is turned."""
        return not (self.header or self.hop_latency or self.incast) and self.pcie_ceiling == self.nic_ceiling == 1
