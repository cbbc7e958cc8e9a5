"""Writes tables as nccl-tests does, for the tests of the reader."""

from __future__ import annotations

import random

from algorithms.collectives import COLLECTIVES
from prediction.nccl_tests import read_text
from prediction.tables import Table

GPU = "ACME X9"
PER_RANK = {"reduce-scatter", "all-gather", "all-to-all", "gather", "scatter"}
REDUCING = {"all-reduce", "reduce-scatter", "reduce", "sendrecv"}  # sendrecv prints a redop
ROOTED = {"broadcast", "reduce", "gather", "scatter"}
NO_IN_PLACE_CHECK = {"all-to-all", "sendrecv"}
TESTS = [*sorted(PER_RANK), "all-reduce", "broadcast", "reduce", "sendrecv"]
SIZES = [2**k for k in range(10, 30, 3)]

HEADER = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong"


def busbw(name: str, n: int) -> float:
    """The factor by the algorithms' own table, which the reader does not use."""
    found = COLLECTIVES[name].busbw_factor(n) if name in COLLECTIVES else 1.0
    assert found is not None
    return found


def number(value: float, width: int) -> str:
    """nccl-tests' getFloatStr: as many decimals as the width leaves."""
    power = sum(value >= 10**k for k in range(20))
    decimals = 2 if power < width - 2 else 1 if power < width - 1 else 0
    return f"{value:{width}.{decimals}f}"


def write(name: str, n: int, sizes: list[int], rate: float = 60e9, *, header: bool = True, start: bool = False, wrong: str = "0") -> str:
    """Format of nccl-tests 2.14 and later: Group and Pid, redop "none", #wrong. Times grow as 20 us + size / rate."""
    lines = [f"# Collective test starting: {name.replace('-', '_')}_perf"] if start else []
    if header:
        lines += ["# nThread 1 nGpus 1 minBytes 8 maxBytes 1024 step: 2(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1"]
        lines += ["#", "# Using devices"]
        for rank in range(n):
            lines += [f"#  Rank {rank:2} Group  0 Pid {900 + rank:6} on     node{rank // 8} device {rank % 8:2} [0000:{rank:02x}:00] {GPU}"]
        lines += ["#", "#                         out-of-place                       in-place", HEADER]
        lines += ["#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)       "]
    random_times = random.Random(7)
    for size in sizes:
        count = size // 4 // (n if name in PER_RANK else 1)
        size = 4 * count * (n if name in PER_RANK else 1)
        text = f"{size:12} {count:13}     float  {'sum' if name in REDUCING else 'none':>6}  {0 if name in ROOTED else -1:>6}"
        for in_place in (False, True):
            us = (20e-6 + size / rate) * random_times.uniform(1, 1.05) * 1e6
            alg = size / us / 1e3
            check = "N/A" if in_place and name in NO_IN_PLACE_CHECK else wrong
            text += f"  {number(us, 7)}  {number(alg, 6)}  {number(alg * busbw(name, n), 6)}  {check:>5}"
        lines.append(text)
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.3456", "#", ""])


def one(text: str, name: str = "log.txt") -> Table:
    tables = read_text(text, name)
    assert len(tables) == 1
    return tables[0]
