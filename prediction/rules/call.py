"""What is asked of a library's rule, and what the rule answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from algorithms.collectives import collective as named
from algorithms.launch import dtype_bytes
from algorithms.registry import catalogue
from topologies.errors import MeasurementError

USER_OP = "user"
"""An operation that a program defines itself (commutative); libraries keep algorithms from it that cut the vector."""


@dataclass(frozen=True, slots=True)
class Call:
    """``nbytes``: the full vector on a rank, as everywhere here (all-gather, all-to-all: all blocks of a rank). ``ranks`` on
    ``nodes`` servers. Raises RingscopeError: an unknown collective or dtype, a size or a count out of range."""

    collective: str
    nbytes: int
    ranks: int
    nodes: int = 1
    dtype: str = "float32"
    op: str = "sum"

    def __post_init__(self) -> None:
        named(self.collective)  # these two raise
        dtype_bytes(self.dtype)
        if self.nbytes < 1 or self.ranks < 2 or not 1 <= self.nodes <= self.ranks:
            raise MeasurementError(
                f"{self.collective}: size {self.nbytes} B over {self.ranks} ranks on {self.nodes} nodes; "
                "write 1 B or more, 2 ranks or more, on at most so many nodes"
            )

    @property
    def elements(self) -> int:
        return self.nbytes // dtype_bytes(self.dtype)

    @property
    def block(self) -> int:
        """Bytes of one rank's part of the vector."""
        return self.nbytes // self.ranks

    @property
    def power(self) -> int:
        """The largest power of two of ranks."""
        return 1 << (self.ranks.bit_length() - 1)


@dataclass(frozen=True, slots=True)
class Row:
    """One way to do the call. ``algorithm``: a name of ``algorithms/`` where it has this one (or ``made_by``), else the library's word.
    ``called``: the library's own name. ``options`` of the algorithm. What the library does not compute or does not have is None."""

    algorithm: str
    called: str
    protocol: str | None = None
    channels: int | None = None
    time_s: float | None = None
    latency_s: float | None = None
    bandwidth_Bps: float | None = None
    options: Mapping[str, int | str] = field(default_factory=dict)
    made_by: str = ""
    """The name in ``algorithms/`` where it is another word."""

    def missing(self, call: Call) -> str | None:
        """Why nothing here can simulate it; None: ``algorithms/`` has its schedule for these ranks."""
        found = next((a for a in catalogue(named(call.collective)) if a.name == self.schedule), None)
        if found is None:
            return f"there is no schedule of it for {call.collective}"
        reason = found.refusal(call.ranks)
        return f"its schedule does not take {call.ranks} ranks: {reason}" if reason else None

    @property
    def schedule(self) -> str:
        """What ``algorithms/`` calls it, if it is there at all (``missing``)."""
        return self.made_by or self.algorithm


@dataclass(frozen=True, slots=True)
class Chosen:
    """``ranking``: the choice, then the runners-up of a library that compares times. ``rule``: the line of the library's rule that
    applied. ``notes``: what this answer leaves out. ``elsewhere``: variables given that do not act on the choice."""

    library: str
    version: str
    call: Call
    ranking: tuple[Row, ...]
    rule: str
    notes: tuple[str, ...] = ()
    off: Mapping[tuple[str, str], str] = field(default_factory=dict)
    fallback: bool = False
    elsewhere: tuple[str, ...] = ()

    @property
    def choice(self) -> Row:
        return self.ranking[0]


def unknown(library: str, collective: str, known: Iterable[str]) -> MeasurementError:
    """The error for a collective whose rule is not known."""
    return MeasurementError(f"{library}: its rule for {collective} is not known here; known: {', '.join(known)}")
