"""The sends of a step in rounds: no two messages of a round leave or reach one place, so a round is one array operation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from algorithms.schedule import Op
from algorithms.steps import Block
from sim.layout import messages_of
from sim.maxplus.rows import Floats, Ints
from sim.routes import RouteTable

Bools = NDArray[np.bool_]


class RefusedError(Exception):
    """The schedule shares something; the message says what."""


@dataclass(slots=True, eq=False)
class Round:
    """``index``: the sends of the step it has (all: a slice); ``starts``: the first send of each message (None: each send is one),
    ``message``: the message of each send. ``queue`` is where each leaves from, ``rate`` [B/s] what a flow alone on its route gets;
    ``resources`` are columns of what the messages use, 0 for nothing; ``apart``: no resource stands twice."""

    index: Ints | slice
    starts: Ints | None
    message: Ints
    src: Ints
    dst: Ints
    queue: Ints | slice
    reduces: bool
    places: int
    route: Ints
    rate: Floats
    latency: Floats
    resources: list[Ints]
    apart: bool
    nbytes: Ints | None = None
    """Shape [1 or 2, messages]: bytes of the first size so far, and with headers, if there are any."""
    sent: Floats | None = None
    """When the messages were last sent, while no other structure used the resources."""
    _where: dict[str, Ints] = field(default_factory=dict)
    _partners: dict[tuple[str, int, str], tuple[Round, Ints | int | None, Bools | None]] = field(default_factory=dict)

    def sends(self, column: Ints) -> Ints:
        """The part of a step's column that belongs to this round."""
        return column if isinstance(self.index, slice) else column[self.index]

    def part(self, column: Ints | int) -> Ints | int:
        """The same for a column that may be one number."""
        return column if isinstance(column, int) else self.sends(column)

    def where(self, side: str) -> Ints:
        """Shape [places]: the message at each place as ``src`` or ``dst``; -1 for none."""
        if side not in self._where:
            at = np.full(self.places, -1, dtype=np.int64)
            place = self.src if side == "src" else self.dst
            at[place] = np.arange(len(place))
            self._where[side] = at
        return self._where[side]

    def partners(self, side: str, earlier: Round, other: str) -> tuple[Ints | int | None, Bools | None]:
        """For each message the one of an earlier round whose ``other`` end is its ``side`` end (None: there is none; k: all in turn, from
        message k), and which messages have one (None: all)."""
        key = side, id(earlier), other
        if key in self._partners and self._partners[key][0] is earlier:
            return self._partners[key][1:]
        if len(self._partners) > 64:
            self._partners.clear()
        at: Ints = earlier.where(other)[self.src if side == "src" else self.dst]
        hit = at >= 0
        turned = len(at) == len(earlier.src) and np.array_equal(at, (np.arange(len(at)) + at[0]) % len(at))
        found: Ints | int | None = int(at[0]) if turned else np.maximum(at, 0) if hit.any() else None
        self._partners[key] = earlier, found, None if hit.all() else hit
        return self._partners[key][1:]


@dataclass(slots=True, eq=False)
class Structure:
    """What steps have in common that differ in their chunks alone. ``alone``: one round on resources of its own, so that its
    queues keep it in order."""

    step: Block
    rounds: list[Round]
    alone: bool

    def fits(self, step: Block) -> bool:
        """Whether the step has this structure."""
        mine = self.step
        return (
            len(step) == len(mine)
            and _same(step.src, mine.src)
            and _same(step.dst, mine.dst)
            and _same(step.count, mine.count)
            and _same(step.op, mine.op)
            and _same(step.channel, mine.channel)
            and _same(step.message, mine.message)
        )


def _same(a: Ints | int, b: Ints | int) -> bool:
    if isinstance(a, int) or isinstance(b, int):
        return isinstance(a, int) and isinstance(b, int) and a == b
    return a is b or bool((a == b).all())


def structure(step: Block, node: Ints, routes: Callable[[Ints, Ints, Ints], list[int]], table: RouteTable) -> Structure:
    """Sort the messages of a step into rounds. ``node`` is where each place is (several may share a switch and its reducer);
    ``routes`` gives the numbers in ``table`` of (src, dst, channel)."""
    places = len(node)
    message, head = messages_of(step)
    src, dst, channel, op = (step.column(name)[head] for name in ("src", "dst", "channel", "op"))
    if not isinstance(step.op, int) and (op[message] != step.op).any():
        raise RefusedError("a message both copies and reduces")
    order, edges = _turns(src, node[dst], op)
    route = np.asarray(routes(src, dst, channel), dtype=np.int64)
    numbers, which = np.unique(route, return_inverse=True)
    used = [table.routes[number] for number in numbers.tolist()]
    alone = [min((table.resources[r].capacity / w for r, w in zip(u.resources, u.weights, strict=True)), default=np.inf) for u in used]
    rate, latency = np.asarray(alone)[which], np.asarray([u.latency for u in used])[which]
    width = max(len(u.resources) for u in used)
    padded = np.asarray([[r + 1 for r in u.resources] + [0] * (width - len(u.resources)) for u in used], dtype=np.int64)
    taken = padded[which].T if width else np.zeros((0, len(route)), dtype=np.int64)
    plain = len(head) == len(step)
    rounds = []
    for lo, hi in pairwise(edges):
        these = order[lo:hi]
        whole = len(these) == len(head) and np.array_equal(these, np.arange(len(head)))
        if plain:
            index: Ints | slice = slice(None) if whole else these
            starts, of = None, np.arange(len(these))
        else:
            turn = np.full(len(head), -1, dtype=np.int64)
            turn[these] = np.arange(len(these))
            mine_sends = np.flatnonzero(turn[message] >= 0)
            by_message = np.argsort(turn[message[mine_sends]], kind="stable")
            index, of = mine_sends[by_message], turn[message[mine_sends]][by_message]
            starts = np.searchsorted(of, np.arange(len(these)))
        mine = list(taken[:, these])
        busy = np.concatenate([*mine, np.zeros(0, dtype=np.int64)])
        busy = busy[busy > 0]
        rounds.append(Round(
            index, starts, of, src[these], dst[these], _slice(channel[these] * places + src[these]), bool(op[these[0]] == Op.REDUCE),
            places, route[these], rate[these], latency[these], mine, len(np.unique(busy)) == len(busy),
        ))  # fmt: skip
    return Structure(step, rounds, len(rounds) == 1 and rounds[0].apart)


def _slice(index: Ints) -> Ints | slice:
    """The same index as a slice, which copies nothing, where it is one."""
    return slice(int(index[0]), int(index[-1]) + 1) if (np.diff(index) == 1).all() else index


def _turns(src: Ints, dst: Ints, op: Ints) -> tuple[Ints, list[int]]:
    """Messages in the order of their rounds, and where each round begins; ``dst`` are nodes. A place's messages leave in order."""
    leaving, reaching = _turn(src), _turn(dst)
    if not leaving.any() and not reaching.any() and (op == op[0]).all():
        return np.arange(len(src)), [0, len(src)]
    order = np.lexsort((op, reaching, leaving))
    keys = np.stack([leaving[order], reaching[order], op[order]])
    edges = np.flatnonzero((np.diff(keys, axis=1) != 0).any(axis=0)) + 1
    return order, [0, *edges.tolist(), len(src)]


def _turn(place: Ints) -> Ints:
    """How many items before each have the same place."""
    order = np.argsort(place, kind="stable")
    ordered = place[order]
    turn = np.empty_like(order)
    turn[order] = np.arange(len(place)) - np.searchsorted(ordered, ordered)
    return turn
