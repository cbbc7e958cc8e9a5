"""Kernels on symmetric memory (2.27 on: buffers registered as windows, all ranks direct NVLink peers), which have a model of their own.

Source: NCCL's ``src/symmetric.cc``; a time is the latency plus ln(1 + exp(bytes/bandwidth - 1)) in microseconds, and the bandwidth
approaches its peak as blocks are added. Bandwidths count in GiB/s.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from prediction.nccl.constants import US
from topologies.errors import MeasurementError, nearest, quoted

_GIB_PER_US = 2**30 / 1e6  # one GiB/s in bytes a microsecond
_MOST_BLOCKS = 64
_CLOSE, _COST_OF_BLOCK = 1.025, 0.025
"""So near to the fastest, fewer blocks are better; each block counts as so much time."""


@dataclass(frozen=True, slots=True)
class _Kernel:
    """Bytes it moves for B bytes a rank on n ranks, and how many times a block's bandwidth it reaches: ``fixed`` + ``per_rank`` n."""

    name: str
    collective: str
    whole: float
    """Bytes as a multiple of B n, then of B, then of B/n."""
    part: float = 0.0
    reduced: float = 0.0
    fixed: float = 1.0
    per_rank: float = 0.0
    ll: bool = False
    multimem: bool = False
    multicast: bool = False


_KERNELS = (
    _Kernel("ll", "all-reduce", 9, ll=True),
    _Kernel("ll-multicast", "all-reduce", 9, fixed=1.1, ll=True, multicast=True),
    _Kernel("load-reduce-store", "all-reduce", 0, 2, -2),
    _Kernel("multimem", "all-reduce", 0, 1, 1, fixed=0, per_rank=1, multimem=True, multicast=True),
    _Kernel("ll", "all-gather", 9, ll=True),
    _Kernel("ll-multicast", "all-gather", 9, fixed=1.1, ll=True, multicast=True),
    _Kernel("store", "all-gather", 1, -1),
    _Kernel("multimem-store", "all-gather", 1, -1, fixed=0, per_rank=0.55, multimem=True, multicast=True),
    _Kernel("ll", "reduce-scatter", 9, ll=True),
    _Kernel("load", "reduce-scatter", 1, -1),
    _Kernel("multimem-load", "reduce-scatter", 1, -1, fixed=0, per_rank=0.55, multimem=True, multicast=True),
)


@dataclass(frozen=True, slots=True)
class Symmetric:
    """One kernel at one size: its name, blocks (SMs) and seconds."""

    kernel: str
    blocks: int
    time_s: float


def symmetric(collective: str, nbytes: int, ranks: int, sm: int, *, multicast: bool) -> tuple[Symmetric, ...]:
    """Kernels for a call of ``nbytes`` (nccl-tests' size), NCCL's choice first. Raises MeasurementError: no such kernel, or bad numbers."""
    known = {kernel.collective for kernel in _KERNELS}
    if collective not in known:
        raise MeasurementError(f"symmetric kernels: {quoted(collective)} has none{nearest(collective, known)}")
    if nbytes < 1 or ranks < 2:
        raise MeasurementError(f"symmetric kernels: size {nbytes} B on {ranks} ranks; write 1 byte or more on 2 ranks or more")
    each = nbytes if collective == "all-reduce" else nbytes / ranks
    fitting = [kernel for kernel in _KERNELS if kernel.collective == collective and (multicast or not kernel.multicast)]
    found = [_fewest(kernel, each, ranks, sm) for kernel in fitting]
    return tuple(sorted(found, key=lambda one: one.time_s * (1 + _COST_OF_BLOCK * one.blocks)))


def _fewest(kernel: _Kernel, each: float, ranks: int, sm: int) -> Symmetric:
    """The fewest blocks that are about as fast as all of them."""
    most = min(_MOST_BLOCKS, -(-(32 if sm >= 100 else 16) // ranks)) if kernel.multimem else _MOST_BLOCKS
    times = [_time(kernel, each, ranks, sm, blocks) for blocks in range(1, most + 1)]
    blocks = next(i for i, seconds in enumerate(times, 1) if seconds <= _CLOSE * times[-1])
    return Symmetric(kernel.name, blocks, times[blocks - 1])


def _time(kernel: _Kernel, each: float, ranks: int, sm: int, blocks: int) -> float:
    wait, block, peak = _machine(kernel, sm)
    moved = each * (kernel.whole * ranks + kernel.part + kernel.reduced / ranks)
    speed = _soft_min(blocks * block * (kernel.fixed + kernel.per_rank * ranks), peak, block) * _GIB_PER_US  # bytes a microsecond
    over = moved / speed - 1
    return (wait + max(over, 0.0) + math.log1p(math.exp(-abs(over)))) * US


def _machine(kernel: _Kernel, sm: int) -> tuple[float, float, float]:
    """Latency [us], bandwidth of a block and peak [GiB/s]."""
    reduces = kernel.collective == "all-reduce"
    most = reduces and kernel.multimem
    if sm < 100:
        return 4.5 if kernel.ll else 7.8, 65.0 if reduces else 44.0, 480.0 if most else 320.0
    gather = kernel.collective == "all-gather"
    wait = (8.5 if gather else 11.0) if kernel.ll else 19.5 if reduces else 13.0
    return wait, 55.0, 1000.0 if most else 600.0


def _soft_min(x: float, most: float, width: float) -> float:
    """About ``x`` far below ``most``, ``most`` far above."""
    return most - width * math.log1p(math.expm1(most / width) * math.exp(-x / width))
