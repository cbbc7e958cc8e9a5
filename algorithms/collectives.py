"""Collectives as pre- and postconditions: who holds which chunk at first, and who must hold what at the end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from topologies.errors import ScheduleError, nearest

Holders = Literal["all", "owner", "root", "target", "peer"]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Expected:
    """The postcondition as columns: place ``rank[i]`` must hold in ``chunk[i]`` the data of that chunk, once from each rank set
    in ``contributors[i]`` (shape [len, nranks])."""

    rank: Ints
    chunk: Ints
    contributors: Bools


@dataclass(frozen=True, slots=True)
class Collective:
    """``start`` and ``end``: who holds the data chunks: every rank, the owner of the chunk (chunk c of C belongs to rank
    c*n//C), the root, or (all-to-all, where chunk (p*n + j)*k + i is block i of what rank p has for rank j) its target j,
    or (sendrecv, where ``to`` tells the pattern) its peer.
    ``busbw`` is nccl-tests' factor from algbw: twice ("2(n-1)/n"), once ("(n-1)/n"), one, or none."""

    name: str
    start: Holders
    end: Holders
    reduces: bool = False
    busbw: Literal["twice", "once", "one", "none"] = "one"
    idempotent: bool = False
    """A contribution may arrive more than once (barrier: hearing twice does no harm)."""
    to: tuple[int, ...] = field(default=(), repr=False)
    """The pattern of a sendrecv: of the k blocks that each rank r has, block i must end at rank ``to[r*k + i]`` (r itself: it
    stays). Empty: no pattern is told yet, and no schedule can be built."""

    @property
    def rooted(self) -> bool:
        """The call takes a root rank."""
        return "root" in (self.start, self.end)

    @property
    def personalised(self) -> bool:
        """Every rank has other data for every rank, so the chunks cover ``nranks`` vectors, not one."""
        return self.end in ("target", "peer")

    @property
    def owned(self) -> bool:
        """Chunks belong to ranks."""
        return self.start == "owner" or self.end == "owner"

    def unit(self, nranks: int) -> int:
        """The number of data chunks must be a multiple of this."""
        if self.end == "peer":
            if not self.to or len(self.to) % nranks or not all(0 <= rank < nranks for rank in self.to):
                raise ScheduleError(
                    f"{self.name}: {len(self.to)} destinations of blocks: needs as many for each of {nranks} ranks, 0..{nranks - 1} each"
                )
            return len(self.to)
        return nranks**2 if self.personalised else nranks if self.owned else 1

    def towards(self, to: Iterable[int]) -> Collective:
        """The same collective with the pattern ``to``."""
        return replace(self, to=tuple(int(rank) for rank in to))

    def busbw_factor(self, nranks: int) -> float | None:
        """busbw / algbw (NVIDIA nccl-tests doc/PERFORMANCE.md); None where bandwidth means nothing (barrier)."""
        once = (nranks - 1) / nranks
        return {"twice": 2 * once, "once": once, "one": 1.0, "none": None}[self.busbw]

    def initial(self, nranks: int, nchunks: int, root: int) -> Bools:
        """Shape [nranks, nchunks]: which data chunks a rank holds its own data of when the collective starts."""
        return _holders(self.start, nranks, nchunks, root, self.to)

    def expected(self, nranks: int, nchunks: int, root: int) -> Expected:
        """The postcondition for ``nchunks`` data chunks."""
        rank, chunk = np.nonzero(_holders(self.end, nranks, nchunks, root, self.to))
        contributors = self.initial(nranks, nchunks, root).T[chunk]
        return Expected(rank.astype(np.int64), chunk.astype(np.int64), contributors)


def _holders(which: Holders, nranks: int, nchunks: int, root: int, to: tuple[int, ...]) -> Bools:
    rank, chunk = np.arange(nranks)[:, None], np.arange(nchunks)[None, :]
    held: Bools = np.ones((nranks, nchunks), dtype=np.bool_)
    if which == "owner":
        held = rank == chunk * nranks // nchunks
    elif which == "target":
        held = rank == chunk * nranks**2 // nchunks % nranks
    elif which == "peer":
        held = rank == np.asarray(to, dtype=np.int64)[chunk * len(to) // nchunks]
    elif which == "root":
        held[np.arange(nranks) != root] = False
    return held


ALL_REDUCE = Collective("all-reduce", "all", "all", reduces=True, busbw="twice")
REDUCE_SCATTER = Collective("reduce-scatter", "all", "owner", reduces=True, busbw="once")
ALL_GATHER = Collective("all-gather", "owner", "all", busbw="once")
BROADCAST = Collective("broadcast", "root", "all")
REDUCE = Collective("reduce", "all", "root", reduces=True)
SCATTER = Collective("scatter", "root", "owner", busbw="once")
GATHER = Collective("gather", "owner", "root", busbw="once")
ALL_TO_ALL = Collective("all-to-all", "owner", "target", busbw="once")
SENDRECV = Collective("sendrecv", "owner", "peer")
BARRIER = Collective("barrier", "all", "all", reduces=True, busbw="none", idempotent=True)

COLLECTIVES = {
    c.name: c for c in (ALL_REDUCE, REDUCE_SCATTER, ALL_GATHER, BROADCAST, REDUCE, SCATTER, GATHER, ALL_TO_ALL, SENDRECV, BARRIER)
}


def collective(name: str) -> Collective:
    """The collective called ``name``; ScheduleError names the nearest known one."""
    if name not in COLLECTIVES:
        raise ScheduleError(f'collective "{name}" is not known{nearest(name, COLLECTIVES)}')
    return COLLECTIVES[name]
