"""An algorithm and a protocol at a size -> the schedule of one loop of its channels, and how many loops there are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from prediction.nccl.settings import Settings
from prediction.nccl.version import Protocol
from topologies.errors import ScheduleError

KIB = 1 << 10
RING_STEPS: dict[Protocol, int] = {"ll": 1, "ll128": 1, "simple": 4}
"""Of them in a chunk of a ring, in two slices with Simple."""
SLICE: dict[Protocol, int] = {"ll": 4 * KIB, "ll128": 76_800, "simple": 16 * KIB}
"""Least data of a slice: with LL and LL128 a line is passed on when it is there, so what the threads move at once is one."""
MOST_SENDS, MOST_SWITCHED = 1_500_000, 300_000
"""Of one call that are simulated, and of one through NVSwitches, where many share a link: ten seconds or so. Above, the closed form."""
_IN_STEP, _FULL = 3, 6
_PATTERNS = {"balanced-tree": BALANCED, "split-tree": SPLIT}


@dataclass(frozen=True, slots=True)
class Buffers:
    """``step``: data of one of the 8 steps of a channel's buffer [B]; ``nvls``: of a chunk of NVLS at most."""

    step: Mapping[Protocol, int]
    nvls: int

    @staticmethod
    def of(given: Settings) -> Buffers:
        """By NCCL_BUFFSIZE and its like; of LL's half is data, of LL128's 120 of 128 bytes."""
        steps: dict[Protocol, int] = {
            "ll": given.ll_buffer // 16,
            "ll128": given.ll128_buffer // 8 * 120 // 128,
            "simple": given.buffer // 8,
        }
        return Buffers(steps, given.nvls_chunk)


BUFFERS = Buffers.of(Settings())


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
        return _IN_STEP if self.again is repeated else self.one.steps + _FULL


def ring(
    collective: Collective,
    graph: Graph,
    channels: int,
    nbytes: int,
    protocol: Protocol,
    sites: Sequence[Site],
    ways: Ways,
    buffers: Buffers,
) -> Loops:
    """Rings through all GPUs. Rooted collectives go down them as chains, in one piece a buffer step."""
    n, use, data = sum(len(site.ranks) for site in sites), lanes(graph, channels), nbytes / channels
    many = count(data / n, RING_STEPS[protocol] * buffers.step[protocol])
    pieces = int(min(2 if protocol == "simple" else 8, max(1, data / n / many // SLICE[protocol])))
    if not collective.rooted:
        check_sends("ring", n, n * (n - 1) * (2 if collective is ALL_REDUCE else 1) * len(use) * pieces)
    base, parts = find(collective, "chain" if collective.rooted else "ring").build(n), []
    for lane in use:
        order = ring_order(lane, graph, sites, ways)
        parts.append(relabel(base, np.roll(order, -order.index(0))))
    one = merge_channels("ring", parts)
    if collective.rooted:
        many = count(data, buffers.step[protocol] if protocol == "simple" else SLICE[protocol])
        return Loops(one, many, pipeline, data / many)
    return Loops(pipeline(one, pieces), many, repeated, data / n / many / pieces, 4 if protocol == "simple" else 0)


def ring_order(lane: Lane, graph: Graph, sites: Sequence[Site], ways: Ways) -> list[int]:
    """Ranks in the order of a ring. Where it leaves by another NIC than it came, odd nodes take the order of the channel's twin, so that
    it comes in by the NIC of the same number, whether the call uses the twin or not."""
    twin, other = lane, lane.channel ^ 1
    if graph.cross_nic > 0 and other < graph.channels and graph.nics:
        twin = Lane(other, tuple(graph.orders[other]), *graph.nics[other], lane.tree)
    turns = [twin if k % 2 else lane for k in range(len(sites))]
    visits = [site.visit(turn.order) for site, turn in zip(sites, turns, strict=True)]
    if len(sites) > 1:
        for k, site in enumerate(sites):
            after = (k + 1) % len(sites)
            ways.over(visits[k][-1], site.nic(turns[k].nic_out), sites[after].nic(turns[after].nic_in), visits[after][0])
    return [rank for visit in visits for rank in visit]


def tree(graph: Graph, channels: int, nbytes: int, protocol: Protocol, sites: Sequence[Site], ways: Ways, buffers: Buffers) -> Loops:
    """A chain in each node, over the nodes a tree: sums up, results down."""
    n, nodes, use = sum(len(site.ranks) for site in sites), len(sites), lanes(graph, channels)
    attach = ATTACH[_PATTERNS.get(graph.pattern, TREE)]
    sends: list[Send] = []
    for share, lane in enumerate(use):
        chains = [site.visit(lane.order) for site in sites]
        parent = np.full(n, -1)
        for chain in chains:
            parent[chain[1:]] = chain[:-1]
        new = second_tree(nodes) if lane.tree else range(nodes)
        for child, up in enumerate(tree_parents(nodes)):
            if up >= 0:
                a, b = new[child], new[up]
                head, meet = chains[a][0], chains[b][attach[0 if child < up else 1] % len(chains[b])]
                parent[head] = meet
                out, into = sites[a].nic(lane.nic_in), sites[b].nic(lane.nic_in)
                ways.over(head, out, into, meet)
                ways.over(meet, into, out, head)
        sends += up_and_down(parent.tolist(), chunk=share, queue=5 * share)
    data = nbytes / channels
    many = count(data, tree_chunk(data, protocol, n, nodes, buffers))
    return Loops(Schedule.of("tree", ALL_REDUCE, n, sends), many, pipeline, data / many, 8 if protocol == "simple" else 0)


def tree_chunk(data: float, protocol: Protocol, n: int, nodes: int, buffers: Buffers) -> float:
    """NCCL shrinks the chunks of LL128 where a channel has little data; LL and LL128 pass on what threads move at once."""
    if protocol != "ll128":
        return buffers.step[protocol] if protocol == "simple" else SLICE[protocol]
    chunk, each = float(buffers.step[protocol]), n / nodes
    levels = 1 + nodes.bit_length() - 1 + 0.1 * each
    for factor, least in ((64, 128 * KIB), (16, 32 * KIB)):
        while data / chunk < factor * levels / each and chunk > least:
            chunk /= 2
    return min(chunk, SLICE[protocol])


def nvls(algorithm: str, collective: Collective, heads: int, channels: int, nbytes: int, sites: Sequence[Site], buffers: Buffers) -> Loops:
    """Heads of every node through its NVSwitch."""
    groups, data = tuple(site.ranks for site in sites), nbytes / channels
    n = sum(len(group) for group in groups)
    chunk = nvls_tree_chunk(data, heads, len(sites), buffers.nvls) if algorithm == "nvls-tree" else nvls_chunk(data, heads, buffers.nvls)
    if collective is ALL_REDUCE:
        one = find(collective, algorithm).build(n, groups=groups)
    else:
        one = Schedule.of("nvls", collective, n, _gather_or_scatter(collective, n))
    many = count(data, heads * chunk)
    return Loops(one, many, pipeline, data / many / heads, 8 * len(groups[0]))


def nvls_chunk(data: float, heads: int, most: int) -> int:
    """Of a head: NCCL's rule for small calls."""
    for factor, size in ((2, 16), (8, 32), (64, 64)):
        if data < factor * heads * most:
            return min(size * KIB, most)
    return most


def nvls_tree_chunk(data: float, heads: int, nodes: int, most: int) -> int:
    """The same for NVLSTree."""
    chunk = min(64 * KIB, most) if nodes >= 4 else most
    for factor, size in ((32, 256), (16, 128), (4, 64), (1, 32)):
        if data < factor * heads * chunk:
            chunk = min(chunk, size * KIB)
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
    many = count(nbytes / len(sites[0].ranks), 8 * BUFFERS.step["simple"]) if found.pipelined else 1
    data = nbytes * n if collective.personalised else nbytes
    return Loops(one, many, pipeline, data / len(one.weights) / many)


class TooManyError(ScheduleError):
    """A call that would take minutes to simulate."""


def check_sends(name: str, n: int, sends: int) -> None:
    """Raises TooManyError, before anything is built."""
    most = MOST_SWITCHED if name.startswith("nvls") else MOST_SENDS
    if sends > most:
        raise TooManyError(f"{name}: {n} ranks: a call would be simulated with {sends:,} sends; at most {most:,} are")


def count(data: float, piece: float) -> int:
    """Pieces of at most this size."""
    return max(1, int(-(-data // piece)))
