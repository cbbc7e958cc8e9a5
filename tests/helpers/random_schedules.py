"""Random well-formed schedules (not collectives): small, dense in hazards."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from algorithms.collectives import ALL_REDUCE
from algorithms.schedule import Schedule, Send


@st.composite
def schedules(draw: st.DrawFn, max_sends: int = 14) -> Schedule:
    places, chunks = draw(st.integers(2, 4)), draw(st.integers(1, 3))
    sends = []
    for _ in range(draw(st.integers(1, max_sends))):
        src, dst = draw(st.integers(0, places - 1)), draw(st.integers(0, places - 1))
        count = draw(st.integers(1, chunks))
        chunk, dst_chunk = draw(st.integers(0, chunks - count)), draw(st.integers(0, chunks - count))
        if src == dst and chunk == dst_chunk:
            continue
        step, op, channel = draw(st.integers(0, 4)), draw(st.integers(0, 1)), draw(st.integers(0, 1))
        message = draw(st.sampled_from([-1, -1, 0]))
        sends.append(Send(step, src, dst, chunk, dst_chunk, count, op, channel, message))
    if not sends:
        sends = [Send(0, 0, 1, 0)]
    return Schedule.of("random", ALL_REDUCE, places, sends, weights=np.ones(chunks, dtype=np.int64))


def required_waits(s: Schedule) -> set[tuple[int, int, bool]]:
    """(before, after, on_sent) straight from the words of docs/model.md, pair by pair."""
    out = set()
    for i in range(len(s)):
        reads_i = {(int(s.src[i]), int(s.chunk[i]) + k) for k in range(s.count[i])}
        writes_i = {(int(s.dst[i]), int(s.dst_chunk[i]) + k) for k in range(s.count[i])}
        for j in range(len(s)):
            reads_j = {(int(s.src[j]), int(s.chunk[j]) + k) for k in range(s.count[j])}
            writes_j = {(int(s.dst[j]), int(s.dst_chunk[j]) + k) for k in range(s.count[j])}
            if s.step[i] < s.step[j] and writes_i & reads_j:
                out.add((i, j, False))
            if s.step[i] < s.step[j] and reads_i & writes_j:
                out.add((i, j, True))
            if (s.step[i], i) < (s.step[j], j) and writes_i & writes_j and not (s.op[i] == 1 and s.op[j] == 1):
                out.add((i, j, False))
    return out
