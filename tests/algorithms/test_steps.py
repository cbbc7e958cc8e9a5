"""Schedules step by step: what a stream counts, and that blocks and steps of any size are the sends in their order."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from algorithms.collectives import ALL_GATHER, ALL_REDUCE
from algorithms.schedule import Schedule, Send
from algorithms.steps import Stream, in_blocks, in_steps
from topologies.errors import ScheduleError


def odd() -> Stream:
    """Steps 0, 3 and 7 of 2, 3 and 1 sends; places 4 and 5 are no ranks; counts differ."""
    sends = [
        Send(0, np.arange(2), np.arange(2) + 1, np.arange(2)),
        Send(3, np.arange(3), 5 - np.arange(3), np.arange(3) * 2, count=2),
        Send(7, 0, 1, 0, count=3),
    ]
    stream = Stream.of("odd", ALL_REDUCE, 4, lambda: sends)
    assert stream is not None
    return stream


def test_a_stream_counts_what_it_sends() -> None:
    s, whole = odd(), odd().whole()
    assert (s.places, s.nchunks, len(s), s.steps, s.widest, s.chunks) == (6, 6, 6, 8, 3, 11)
    assert (whole.places, whole.nchunks, len(whole), whole.steps, whole.chunks) == (6, 6, 6, 8, 11)
    gathered = Stream.of("units", ALL_GATHER, 4, lambda: [Send(0, 0, 1, 5)])  # whole chunks of each rank: 6 become 8
    assert gathered is not None
    assert (gathered.nchunks, gathered.places, gathered.widest) == (8, 4, 1)


@pytest.mark.parametrize("rows", [1, 2, 3, 4, 100])
@pytest.mark.parametrize("built", [False, True])
def test_blocks_are_whole_steps_of_about_so_many_sends(rows: int, built: bool) -> None:
    whole = odd().whole()
    blocks = list(in_blocks(whole if built else odd(), rows))
    for name, column in whole.columns().items():
        np.testing.assert_array_equal(np.concatenate([block.column(name) for block in blocks]), column, name)
    edges = [(int(block.column("step")[0]), int(block.column("step")[-1])) for block in blocks]
    assert (
        edges == {1: [(0, 0), (3, 3), (7, 7)], 2: [(0, 0), (3, 3), (7, 7)], 3: [(0, 3), (7, 7)], 4: [(0, 3), (7, 7)], 100: [(0, 7)]}[rows]
    )
    assert all(last < first for (_, last), (first, _) in pairwise(edges))
    assert sum(block.chunks for block in blocks) == 11


@pytest.mark.parametrize("built", [False, True])
def test_every_block_is_counted_anew(built: bool) -> None:
    stream = Stream.of("thin", ALL_REDUCE, 2, lambda: [Send(step, step % 2, 1 - step % 2, step) for step in range(7)])
    assert stream is not None
    assert [len(block) for block in in_blocks(stream.whole() if built else stream, 3)] == [3, 3, 1]


def test_empty_steps_are_left_out() -> None:
    assert [block.step for block in in_steps(odd())] == [block.step for block in in_steps(odd().whole())] == [0, 3, 7]
    assert [len(block) for block in in_steps(odd())] == [2, 3, 1]


def test_a_chunk_that_changes_its_index_is_seen_in_blocks() -> None:
    moved = Schedule.of("moved", ALL_REDUCE, 3, [Send(0, 0, 1, 0, 1), Send(1, 1, 2, 1), Send(1, 2, 0, 0)])
    columns = [(block.chunk.tolist(), block.dst_chunk.tolist()) for block in in_blocks(moved, 1)]
    assert columns == [([0], [1]), ([1, 0], [1, 0])]


@pytest.mark.parametrize("wrong", [{"chunk": -1}, {"dst": -1}, {"src": -1}, {"channel": -1}, {"count": 0}], ids=str)
def test_a_stream_refuses_what_a_schedule_refuses(wrong: dict[str, int]) -> None:
    sends = [Send(0, 0, 1, 0), Send(3, **{"src": 0, "dst": 1, "chunk": 0} | wrong)]
    with pytest.raises(ScheduleError, match=r"^bad: step 3: ranks, chunks and channels must not be negative, count at least 1"):
        Stream.of("bad", ALL_REDUCE, 2, lambda: sends)


def test_what_needs_the_whole_schedule_is_no_stream() -> None:
    assert Stream.of("backwards", ALL_REDUCE, 2, lambda: [Send(1, 0, 1, 0), Send(0, 1, 0, 0)]) is None
    assert Stream.of("moved", ALL_REDUCE, 2, lambda: [Send(0, 0, 1, 0, 1)]) is None
