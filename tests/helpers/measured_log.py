"""A small log in the form of nccl-tests, with times that a test chooses."""

from __future__ import annotations

from collections.abc import Mapping


def all_reduce_log(times_us: Mapping[int, float], nranks: int = 8) -> str:
    """All-reduce of float on one host; ``times_us`` by size [bytes], the same for both halves."""
    factor = 2 * (nranks - 1) / nranks
    lines = [
        "# nThread 1 nGpus 8 minBytes 1024 maxBytes 67108864 step: 4(factor) warmup iters: 5 iters: 20 agg iters: 1 validation: 1 graph: 0",
        "#", "# Using devices",
        *(f"#  Rank {r:2} Group  0 Pid   1000 on    made-up device {r:2} [0x{r:02x}] NVIDIA H100 80GB HBM3" for r in range(nranks)),
        "#",
        "#                                                              out-of-place                       in-place",
        "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong",
        "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]  # fmt: skip
    for size, microseconds in times_us.items():
        algbw = size / microseconds / 1e3
        half = f"{microseconds:8.2f} {algbw:7.2f} {algbw * factor:7.2f}      0"
        lines.append(f"{size:12} {size // 4:13}     float     sum      -1 {half} {half}")
    return "\n".join([*lines, "# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 1.0", "#", ""])
