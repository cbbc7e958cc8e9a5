"""An algorithm and a protocol at a size -> the schedule of one loop of its channels, and how many loops there are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from algorithms.collectives import ALL_REDUCE, Collective
from algorithms.double_binary_tree import second_tree, tree_parents
from algorithms.nccl_tree import ATTACH, BALANCED, SPLIT, TREE
from algorithms.registry import find
from algorithms.schedule import Schedule, Send, copy, reduce
from algorithms.transforms import merge_channels, pipeline, relabel, repeated
from algorithms.trees import up_and_down
from prediction.library.lanes import Lane, lanes
from prediction.library.sites import Site, Ways
from prediction.nccl.graphs import Graph
from prediction.nccl.version import Protocol
from topologies.errors import ScheduleError

KIB = 1 << 10
STEP: dict[Protocol, int] = {"ll": 32 * KIB, "ll128": 576_000, "simple": 512 * KIB}
"""Data of one of the 8 steps of a channel's buffer [B]."""
RING_STEPS: dict[Protocol, int] = {"ll": 1, "ll128": 1, "simple": 4}
"""Of them in a chunk of a ring, in two slices with Simple."""
SLICE: dict[Protocol, int] = {"ll": 4 * KIB, "ll128": 76_800, "simple": 16 * KIB}
"""Least data of a slice: with LL and LL128 a line is passed on when it is there, so what the threads move at once is one."""
MOST_SENDS = 8_000_000
"""Of one call that are built: half a minute and some GB of memory."""
_NVLS_STEP = 128 * KIB
_IN_STEP = 6
_PATTERNS = {"balanced-tree": BALANCED, "split-tree": SPLIT}


@dataclass(frozen=True, slots=True)
class Loops:
    """``one`` on an equal share of the data, ``many`` times, put together by ``again``: one after the other (``repeated``) or one behind
    the other (``pipeline``). ``message``: bytes of a message of one channel; ``depth``: messages on their way at once (0: no limit)."""

    one: Schedule
    many: int
    again: Callable[[Schedule, int], Schedule]
    message: float
    depth: int = 0

    @property
    def steady(self) -> int:
        """Loops after which each adds as much as the one before: once a pipeline is full, or all ranks of a ring are in step."""
        return _IN_STEP if self.again is repeated else self.one.steps + _IN_STEP


def ring(collective: Collective, graph: Graph, channels: int, nbytes: int, protocol: Protocol, sites: Sequence[Site], ways: Ways) -> Loops:
    """Rings through all GPUs. Rooted collectives go down them as chains, in one piece a buffer step."""
    n, use, data = sum(len(site.ranks) for site in sites), lanes(graph, channels), nbytes / channels
    many = count(data / n, RING_STEPS[protocol] * STEP[protocol])
    pieces = int(min(2 if protocol == "simple" else 8, max(1, data / n / many // SLICE[protocol])))
    if not collective.rooted:
        check_sends("ring", n, n * (n - 1) * (2 if collective is ALL_REDUCE else 1) * len(use) * pieces)
    base, parts = find(collective, "chain" if collective.rooted else "ring").build(n), []
    for lane in use:
        order = ring_order(lane, graph, sites, ways)
        parts.append(relabel(base, np.roll(order, -order.index(0))))
    one = merge_channels("ring", parts)
    if collective.rooted:
        many = count(data, STEP[protocol] if protocol == "simple" else SLICE[protocol])
        return Loops(one, many, pipeline, data / many)
    return Loops(pipeline(one, pieces), many, repeated, data / n / many / pieces, 4 if protocol == "simple" else 0)


def ring_order(lane: Lane, graph: Graph, sites: Sequence[Site], ways: Ways) -> list[int]:
    """Ranks in the order of a ring. Where it leaves by another NIC than it came, odd nodes take the order of the channel's twin, so that
    it comes in by the NIC of the same number, whether the call uses the twin or not."""
    twin, other = lane, lane.channel ^ 1
    if graph.cross_nic > 0 and other < graph.channels and graph.nics:
        twin = Lane(other, tuple(graph.orders[other]), *graph.nics[other], lane.tree)
    turns = [twin if k % 2 else lane for k in range(len(sites))]
    visits = [[site.ranks[i] for i in turn.order] for site, turn in zip(sites, turns, strict=True)]
    if len(sites) > 1:
        for k, site in enumerate(sites):
            after = (k + 1) % len(sites)
            ways.over(visits[k][-1], site.nics[turns[k].nic_out], sites[after].nics[turns[after].nic_in], visits[after][0])
    return [rank for visit in visits for rank in visit]


def tree(graph: Graph, channels: int, nbytes: int, protocol: Protocol, sites: Sequence[Site], ways: Ways) -> Loops:
    """A chain in each node, over the nodes a tree: sums up, results down."""
    n, nodes, use = sum(len(site.ranks) for site in sites), len(sites), lanes(graph, channels)
    attach = ATTACH[_PATTERNS.get(graph.pattern, TREE)]
    sends: list[Send] = []
    for share, lane in enumerate(use):
        chains = [[site.ranks[i] for i in lane.order] for site in sites]
        parent = np.full(n, -1)
        for chain in chains:
            parent[chain[1:]] = chain[:-1]
        new = second_tree(nodes) if lane.tree else range(nodes)
        for child, up in enumerate(tree_parents(nodes)):
            if up >= 0:
                a, b = new[child], new[up]
                head, meet = chains[a][0], chains[b][attach[0 if child < up else 1] % len(chains[b])]
                parent[head] = meet
                out, into = sites[a].nics[lane.nic_in], sites[b].nics[lane.nic_in]
                ways.over(head, out, into, meet)
                ways.over(meet, into, out, head)
        sends += up_and_down(parent.tolist(), chunk=share, queue=5 * share)
    data = nbytes / channels
    many = count(data, tree_chunk(data, protocol, n, nodes))
    return Loops(Schedule.of("tree", ALL_REDUCE, n, sends), many, pipeline, data / many, 8 if protocol == "simple" else 0)


def tree_chunk(data: float, protocol: Protocol, n: int, nodes: int) -> float:
    """NCCL shrinks the chunks of LL128 where a channel has little data; LL and LL128 pass on what threads move at once."""
    if protocol != "ll128":
        return STEP[protocol] if protocol == "simple" else SLICE[protocol]
    chunk, each = float(STEP[protocol]), n / nodes
    levels = 1 + nodes.bit_length() - 1 + 0.1 * each
    for factor, least in ((64, 128 * KIB), (16, 32 * KIB)):
        while data / chunk < factor * levels / each and chunk > least:
            chunk /= 2
    return min(chunk, SLICE[protocol])


def nvls(algorithm: str, collective: Collective, heads: int, channels: int, nbytes: int, sites: Sequence[Site]) -> Loops:
    """Heads of every node through its NVSwitch."""
    groups, data = tuple(site.ranks for site in sites), nbytes / channels
    n = sum(len(group) for group in groups)
    chunk = nvls_tree_chunk(data, heads, len(sites)) if algorithm == "nvls-tree" else nvls_chunk(data, heads)
    if collective is ALL_REDUCE:
        one = find(collective, algorithm).build(n, groups=groups)
    else:
        one = Schedule.of("nvls", collective, n, _gather_or_scatter(collective, n))
    many = count(data, heads * chunk)
    return Loops(one, many, pipeline, data / many / heads, 8)


def nvls_chunk(data: float, heads: int) -> int:
    """Of a head: NCCL's rule for small calls."""
    for factor, size in ((2, 16), (8, 32), (64, 64)):
        if data < factor * heads * _NVLS_STEP:
            return size * KIB
    return _NVLS_STEP


def nvls_tree_chunk(data: float, heads: int, nodes: int) -> int:
    chunk = 64 * KIB if nodes >= 4 else _NVLS_STEP
    for factor, most in ((32, 256), (16, 128), (4, 64), (1, 32)):
        if data < factor * heads * chunk:
            chunk = min(chunk, most * KIB)
    return chunk


def _gather_or_scatter(collective: Collective, n: int) -> list[Send]:
    rank, switch = np.arange(n), n
    if collective.reduces:
        return [reduce(0, rank[:, None], switch, chunk=rank), copy(1, switch, rank, chunk=rank, channel=rank)]
    return [copy(0, rank, switch, chunk=rank), copy(1, switch, rank[:, None], chunk=rank, channel=rank[:, None])]


def plain(algorithm: str, collective: Collective, nbytes: int, sites: Sequence[Site]) -> Loops:
    """One of the catalogue, all at once: what is made of sends and receives, or runs in the network's switches."""
    n, found = sum(len(site.ranks) for site in sites), find(collective, algorithm)
    if algorithm in ("direct", "two-shot", "pat"):
        check_sends(algorithm, n, n * (n - 1) * (2 if algorithm == "two-shot" else 1))
    groups: dict[str, Any] = {"groups": tuple(site.ranks for site in sites)} if found.takes("groups") else {}
    one = found.build(n, **groups)
    many = count(nbytes / len(sites[0].ranks), 8 * STEP["simple"]) if found.pipelined else 1
    data = nbytes * n if collective.personalised else nbytes
    return Loops(one, many, pipeline, data / len(one.weights) / many)


def check_sends(name: str, n: int, sends: int) -> None:
    """Refuses what would take minutes, before it is built."""
    if sends > MOST_SENDS:
        raise ScheduleError(
            f"{name}: {n} ranks: a call would be simulated with {sends:,} sends, more than {MOST_SENDS:,}; take fewer nodes, or the times "
            "of NCCL's own cost model: ringscope explain"
        )


def count(data: float, piece: float) -> int:
    """Pieces of at most this size."""
    return max(1, int(-(-data // piece)))
