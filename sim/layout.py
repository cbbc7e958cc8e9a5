"""Sends in blocks -> messages, their bytes, and the numbers of their routes, queues and reducers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.launch import Launch, dtype_bytes
from algorithms.steps import Block, Stream
from sim.model import Model
from sim.routes import RouteTable

Ints = NDArray[np.int64]


class Layout:
    """Routes, queues (numbered from ``queues``) and reducers of the messages of a launch on ``nodes``; blocks often have the ends of the
    block before."""

    def __init__(
        self, table: RouteTable, reducer_of: dict[str, int], nodes: Sequence[str], queues: int, integers: type[np.signedinteger[Any]]
    ) -> None:
        self.table, self.nodes, self.first, self.integers = table, nodes, queues, integers
        self.reducer = np.asarray([reducer_of.setdefault(node, len(reducer_of)) for node in nodes], dtype=np.int64)
        self.channels = np.empty(0, dtype=np.int64)
        self.ends: tuple[Ints, ...] = ()
        self.found: dict[str, Ints] = {}

    @property
    def queues(self) -> int:
        return len(self.channels) * len(self.nodes)

    def columns(self, src: Ints, dst: Ints, channel: Ints) -> dict[str, Ints]:
        """``route``, ``queue`` and ``reducer`` of messages."""
        if not (self.ends and all(np.array_equal(a, b) for a, b in zip(self.ends, (src, dst, channel), strict=True))):
            self.ends = src, dst, channel
            self.channels = np.concatenate([self.channels, np.setdiff1d(channel, self.channels)])
            order = np.argsort(self.channels)
            queue = self.first + order[np.searchsorted(self.channels, channel, sorter=order)] * len(self.nodes) + src
            found = {"route": self._routes(src, dst, channel), "queue": queue, "reducer": self.reducer[dst]}
            self.found = {name: column.astype(self.integers) for name, column in found.items()}
        return self.found

    def _routes(self, src: Ints, dst: Ints, channel: Ints) -> Ints:
        nodes, places, table = self.nodes, len(self.nodes), self.table
        key = src * places + dst
        if table.by_channel:
            key = key * (int(channel.max(initial=0)) + 1) + channel
        _, head, of = np.unique(key, return_index=True, return_inverse=True)
        ends = zip(src[head].tolist(), dst[head].tolist(), channel[head].tolist(), strict=True)
        return np.asarray([table.route(nodes[a], nodes[b], c) for a, b, c in ends], dtype=np.int64)[of]


class Sizes:
    """Bytes of the sends of a launch, block by block."""

    def __init__(self, launch: Launch) -> None:
        s = launch.schedule
        assert s is not None
        size = dtype_bytes(launch.dtype)
        self.bounds = s.chunk_bounds(launch.elements) * size
        keeps = isinstance(s, Stream) or np.array_equal(s.chunk, s.dst_chunk)
        self.moved = None if keeps or isinstance(s, Stream) else s.send_elements(launch.elements) * size

    def of(self, block: Block, first: int) -> Ints:
        """Shape [sends]; ``first``: sends before the block."""
        if self.moved is not None:
            return self.moved[first : first + len(block)]
        return np.asarray(self.bounds.take(block.chunk + block.count) - self.bounds.take(block.chunk), dtype=np.int64)


def messages_of(block: Block) -> tuple[Ints, Ints]:
    """Message of each send, numbered in order of first sends, and the first send of each message."""
    index = np.arange(len(block))
    if isinstance(block.message, int) and block.message < 0:
        return index, index
    names = ("step", "src", "dst", "channel", "message")
    keys = np.stack([*(block.column(name) for name in names), np.where(block.column("message") < 0, index, -1)])
    _, first, of = np.unique(keys, axis=1, return_index=True, return_inverse=True)
    by_first = np.argsort(first)
    number = np.empty_like(by_first)
    number[by_first] = np.arange(len(first))
    return number[of.ravel()], first[by_first]


def summed(message: Ints, amount: Ints, count: int) -> Ints:
    """Shape [count]: amounts of sends by message."""
    if count == len(message):
        return amount
    total = np.zeros(count, dtype=np.int64)
    np.add.at(total, message, amount)
    return total


def wire_bytes(payload: Ints, model: Model) -> Ints:
    """Of messages, what links carry for them: a header for each packet; none for a message of no bytes."""
    return payload - payload // -model.mtu * model.header if model.header else payload
