"""Channels and threads: how many the communicator has, and how many of them a call of some size takes."""

from __future__ import annotations

from prediction.nccl.bandwidth import GATHERING
from prediction.nccl.constants import GB
from prediction.nccl.enabled import Call
from prediction.nccl.graphs import Graphs
from prediction.nccl.settings import Settings
from prediction.nccl.version import ALGORITHMS, PROTOCOLS, Algorithm, Protocol

MAX_THREADS = 640
"""Of a block; NVLS, CollNet and PAT take them all."""
_CELL_BYTES = 32 << 10
"""The kernel scheduler gives a channel whole cells of this traffic."""
_SLOW_RING = 12 * GB
"""A ring no faster than PCIe 3.0 x16 needs half the threads."""
_HOPPER_NVLS, _CELLS_SINCE = 16, (2, 22)


def comm_channels(graphs: Graphs, settings: Settings) -> int:
    """Channels the communicator sets up (the log's "coll channels"): twice those of the search, the second half with the second tree."""
    most = 64 if graphs.version >= (2, 25) else 32
    count = min(2 * min(graphs.ring.channels, graphs.tree.channels), most)
    chain = graphs.collnet_chain
    if graphs.nodes > 1:
        if graphs.collnet and settings.collnet == 1 and chain and chain.bw_intra > chain.bw_inter and graphs.local_ranks > 1:
            count = count * 3 // 2
        if graphs.sm_min >= 90 and graphs.ring.bw_intra > 45 * GB and count < 16:
            count *= 2
    count = min(count, settings.max_channels or most, most)
    return max(count, min(settings.min_channels or 1, most))


def nvls_channels(graphs: Graphs, settings: Settings) -> int:
    """Channels of NVLS, whatever the search found."""
    if settings.nvls_channels:
        return settings.nvls_channels
    if graphs.sm_min < 100 or graphs.nvls is None:
        return _HOPPER_NVLS
    if graphs.nodes == 1:
        return 24
    nic = graphs.nvls.bw_inter
    if graphs.version < (2, 30) or nic < 48 * GB:
        return 32
    if nic >= 96 * GB and graphs.local_ranks <= 8:
        return 24
    return 32 if graphs.nodes == 2 else 24


def max_threads(graphs: Graphs, settings: Settings, algorithm: Algorithm, protocol: Protocol) -> int:
    """Threads of a block before a small call takes fewer."""
    if algorithm not in ("ring", "tree"):
        return MAX_THREADS
    if protocol == "ll128":
        return _rounded(settings.ll128_threads, 160, 640, 640)
    slow = algorithm == "ring" and protocol == "simple" and graphs.ring.channels * graphs.ring.bw_intra <= _SLOW_RING
    return _rounded(settings.threads, 64, 512, 256 if slow else 512)


def channels_and_threads(graphs: Graphs, settings: Settings, call: Call, algorithm: Algorithm, protocol: Protocol) -> tuple[int, int]:
    """What the chosen algorithm runs with."""
    channels, threads = comm_channels(graphs, settings), max_threads(graphs, settings, algorithm, protocol)
    least = _threshold(graphs, settings, algorithm, protocol)
    if algorithm.startswith("nvls"):
        own = nvls_channels(graphs, settings)
        channels = own if graphs.nodes == 1 else min(own, channels)
    elif algorithm == "collnet-direct":
        channels = _collnet_channels(graphs, call.nbytes, channels, threads, least)
    else:
        channels = max(1, min(channels, call.nbytes // (threads * least)))
        while call.nbytes < channels * threads * least and threads % 128 == 0:
            threads //= 2
    if algorithm in ("tree", "pat"):
        threads = MAX_THREADS
    elif protocol == "simple" and algorithm == "ring":
        threads += 32  # a warp to synchronise
    return _spread(graphs, call, channels, protocol), max(96, threads)


def _rounded(given: int | None, low: int, high: int, default: int) -> int:
    """A user's number of threads as NCCL takes it: whole warps within bounds."""
    return default if given is None else min(max(given // 32 * 32, low), high)


def _threshold(graphs: Graphs, settings: Settings, algorithm: Algorithm, protocol: Protocol) -> int:
    """Bytes a thread of a channel should have at least."""
    place = ALGORITHMS.index(algorithm) * 3 + PROTOCOLS.index(protocol)
    given = settings.thresholds[place] if place < len(settings.thresholds) else -1
    if given >= 0:
        return max(given, 1)
    if algorithm == "collnet-direct":
        return 512
    if protocol == "simple":
        return 64
    return 8 * graphs.ranks if (algorithm, protocol) == ("ring", "ll") else 8


def _collnet_channels(graphs: Graphs, nbytes: int, channels: int, threads: int, least: int) -> int:
    graph = graphs.of("collnet-direct")
    heads = graph.channels if graph else 1
    threshold = float(least)
    for level in (16, 8, 4, 2, 1):
        while nbytes < channels * threads * heads * threshold and channels > level:
            if 2 * channels == 3 * level:
                threshold /= 2
            channels -= 1
    return channels


def _spread(graphs: Graphs, call: Call, channels: int, protocol: Protocol) -> int:
    """The scheduler hands out whole cells of traffic, so a small call meets fewer channels."""
    if graphs.version < _CELLS_SINCE:
        return channels
    share = graphs.ranks if call.collective in GATHERING else 1  # counted from one rank's part, weighed with all ranks
    weight = (2 if call.collective == "all-reduce" else share) * (4 if protocol == "ll" else 1)
    cell = -(-_CELL_BYTES // weight // 16) * 16
    return max(1, min(channels, -(-(call.nbytes // share) // cell)))
