"""What a log with NCCL_DEBUG=INFO says, as data: rings, trees, searches, paths, tuning tables and choices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple


class Searched(NamedTuple):
    """The result of one topology search: bandwidths in B/s, types as NCCL names them, one list of node names a channel."""

    pattern: int
    cross_nic: int
    nchannels: int
    bw_intra_Bps: float
    bw_inter_Bps: float
    type_intra: str
    type_inter: str
    same_channels: bool
    channels: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Choice:
    """What was chosen for a call of ``nbytes`` [bytes]; ``time_s`` [s] and ``channels`` (first, last) where printed."""

    collective: str | None
    nbytes: int
    algorithm: str
    protocol: str
    time_s: float | None
    channels: tuple[int, int] | None
    line: int


@dataclass(frozen=True, slots=True)
class Tree:
    """A rank's place in a tree: ``up`` is None at the root."""

    up: int | None
    down: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Path:
    """Between two nodes of a host: hops, bandwidth [B/s], type as NCCL names it (NVL, PIX, PXB, PXN, PHB, SYS, ...)."""

    hops: int
    bw_Bps: float
    kind: str


@dataclass(frozen=True, slots=True)
class Channels:
    """How many channels of each kind; None where the version does not print it."""

    coll: int
    collnet: int | None
    nvls: int | None
    p2p: int
    p2p_per_peer: int


@dataclass(frozen=True, slots=True)
class Communicator:
    """All communicators of one number of ranks, as one: of what is said twice, the first counts, and a difference is noted.
    ``nranks`` is None for lines of processes that never said it."""

    nranks: int | None
    nnodes: int | None
    rings: Mapping[int, tuple[int, ...]]
    """Channel -> ranks in order, as rank 0 prints them (NCCL cuts long lines), or as the neighbours of all ranks give them."""
    neighbours: Mapping[tuple[int, int], tuple[int, int]]
    """(channel, rank) -> (previous, next)."""
    trees: Mapping[tuple[int, int], Tree]
    """(channel, rank) -> its place."""
    searches: tuple[Searched, ...]
    """As the first process prints them: ring, tree, and what else it searched."""
    paths: Mapping[tuple[str, str, str], Path]
    """(host, from, to)."""
    connections: Mapping[tuple[int, int, int, str], str]
    """(channel, from, to, "both", "send" or "receive") -> transport, such as P2P/CUMEM or NET/IB/0/GDRDMA. The two ends of one through a
    network may use different NICs."""
    channels: Channels | None
    tuning: Mapping[tuple[str, str, str], tuple[float, float]]
    """(collective, algorithm, protocol) -> (latency [s], bandwidth [B/s]); 0 is NCCL's word for a disabled one."""
    nvls_heads: Mapping[int, tuple[int, ...]]
    choices: tuple[Choice, ...]

    def ring_complete(self, channel: int) -> bool:
        """All ranks are in the ring; False where the line was cut."""
        return self.nranks is not None and len(self.rings.get(channel, ())) == self.nranks


@dataclass(frozen=True, slots=True)
class NcclInfo:
    """One log. ``version`` is (major, minor, patch); ``nvls`` and ``collnet`` are None where nothing is said of them."""

    source: str
    version: tuple[int, int, int] | None
    cuda: str | None
    environment: Mapping[str, str]
    nets: tuple[str, ...]
    """Networks and plugins in use, then NICs, as printed."""
    nvls: bool | None
    collnet: bool | None
    communicators: tuple[Communicator, ...]
    """Most ranks first."""
    notes: tuple[str, ...]
