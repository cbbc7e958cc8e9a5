"""Facts about single algorithms: step counts, traffic, trees (sources in the docstrings of the algorithms)."""

from __future__ import annotations

import numpy as np
import pytest
from collective_reference import matches

from algorithms.checker import check
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, REDUCE, REDUCE_SCATTER, collective
from algorithms.double_binary_tree import double_tree_parents, tree_parents
from algorithms.registry import find
from algorithms.schedule import Schedule, Send, copy, reduce
from algorithms.transforms import merge_channels, pipeline, relabel, reverse, then
from kernels import numpy_executor
from topologies.errors import ScheduleError


def sent_by_rank(schedule: Schedule, elements: int) -> np.ndarray:
    return np.bincount(schedule.src, weights=schedule.send_elements(elements), minlength=schedule.places)


@pytest.mark.parametrize(
    ("n", "first", "second"),
    [  # NCCL's trees.cc, read out for these sizes
        (4, [-1, 2, 0, 2], [1, 3, 1, -1]),
        (5, [-1, 2, 4, 2, 0], [1, -1, 3, 0, 3]),
        (6, [-1, 2, 4, 2, 0, 4], [1, 5, 3, 1, 3, -1]),
        (8, [-1, 2, 4, 2, 0, 6, 4, 6], [1, 3, 1, 7, 5, 3, 5, -1]),
    ],
)
def test_double_tree_parents(n: int, first: list[int], second: list[int]) -> None:
    assert double_tree_parents(n) == (first, second)


def test_double_tree_properties() -> None:
    for n in range(2, 1025):
        trees = double_tree_parents(n)
        interior = [set(parents) - {-1} for parents in trees]
        for parents in trees:
            depth = {parents.index(-1): 0}
            walk = list(depth)
            children = [[] for _ in range(n)]
            for r, p in enumerate(parents):
                if p >= 0:
                    children[p].append(r)
            for r in walk:
                for c in children[r]:
                    depth[c] = depth[r] + 1
                    walk.append(c)
            assert len(depth) == n
            assert max(depth.values()) == (n - 1).bit_length()
            assert max(map(len, children)) <= 2
        assert len(interior[0] & interior[1]) == n % 2, n


def test_tree_root_has_one_child_the_largest_power_of_two_below_n() -> None:
    for n in range(2, 200):
        assert [r for r, p in enumerate(tree_parents(n)) if p == 0] == [1 << ((n - 1).bit_length() - 1)]


def test_double_tree_traffic() -> None:
    """Total 2(n-1)M as any all-reduce without network help; no rank sends more than 2M."""
    for n in (2, 3, 7, 8, 33):
        sent = sent_by_rank(find(ALL_REDUCE, "double-binary-tree").build(n), 2 * 30)
        assert sent.sum() == 2 * (n - 1) * 60
        assert sent.max() <= 2 * 60


@pytest.mark.parametrize("n", [2, 3, 8, 12, 33])
def test_steps_and_bytes(n: int) -> None:
    m, levels, p = 840 * n, (n - 1).bit_length(), 1 << (n.bit_length() - 1)
    ring = find(ALL_REDUCE, "ring").build(n)
    assert ring.steps == 2 * (n - 1)
    assert (sent_by_rank(ring, m) == 2 * (n - 1) * m / n).all()
    assert find(REDUCE_SCATTER, "ring").build(n).steps == find(ALL_GATHER, "ring").build(n).steps == n - 1
    assert find(BROADCAST, "binomial-tree").build(n).steps == levels
    assert find(ALL_REDUCE, "binomial-tree").build(n).steps == 2 * levels
    folding = 0 if n == p else 2
    assert find(ALL_REDUCE, "recursive-doubling").build(n).steps == p.bit_length() - 1 + folding
    assert find(ALL_REDUCE, "halving-doubling").build(n).steps == 2 * (p.bit_length() - 1) + folding
    sharp = sent_by_rank(find(ALL_REDUCE, "sharp").build(n), m)
    assert (sharp[:n] == m).all()


def test_halving_doubling_off_powers_of_two_sends_more() -> None:
    """n = 12: 2.75 M on the busiest rank against ring's 1.83 M."""
    m = 960
    assert sent_by_rank(find(ALL_REDUCE, "halving-doubling").build(12), m).max() == 2.75 * m


def test_sharp_tree_edges_carry_m_each_way() -> None:
    sharp = find(ALL_REDUCE, "sharp").build(8, groups=((0, 1, 2, 3), (4, 5, 6, 7)))
    check(sharp)
    pairs = np.zeros((sharp.places, sharp.places))
    np.add.at(pairs, (sharp.src, sharp.dst), sharp.send_elements(100))
    assert set(pairs[pairs > 0]) == {100.0}
    assert pairs[8, 10] == pairs[10, 8] == pairs[0, 8] == pairs[8, 0] == 100
    with pytest.raises(ScheduleError, match="each rank"):
        find(ALL_REDUCE, "sharp").build(8, groups="0,1,2/3,4")


def test_reversed_broadcast_is_a_reduce_and_back() -> None:
    for name in ("chain", "binomial-tree"):
        down = find(BROADCAST, name).build(9, root=4)
        up = reverse("up", REDUCE, down)
        check(up)
        again = reverse("again", BROADCAST, up)
        check(again)
        assert np.array_equal(again.src, down.src)
    gather = find(ALL_GATHER, "ring").build(7)
    check(reverse("scatter", REDUCE_SCATTER, gather))


def test_then_builds_all_reduce_from_its_halves() -> None:
    first, second = find(REDUCE_SCATTER, "ring").build(6), find(ALL_GATHER, "ring").build(6)
    both = then("both", ALL_REDUCE, first, second)
    check(both)
    assert both.steps == 10
    with pytest.raises(ScheduleError, match="different"):
        then("bad", ALL_REDUCE, first, find(ALL_GATHER, "ring").build(5))


def test_relabelled_ring_is_still_right() -> None:
    order = np.random.default_rng(3).permutation(8)
    for name in ("all-reduce", "all-gather", "reduce-scatter"):
        check(relabel(find(collective(name), "ring").build(8, slices=2), order))
    check(relabel(find(BROADCAST, "chain").build(8), order))
    with pytest.raises(ScheduleError, match="once"):
        relabel(find(ALL_REDUCE, "ring").build(4), [0, 1, 2, 2])


def test_pipeline_and_channels_commute_with_the_check() -> None:
    ring = find(ALL_REDUCE, "ring").build(5)
    check(pipeline(merge_channels("two", [ring, relabel(ring, -np.arange(5) % 5)]), 3))
    with pytest.raises(ScheduleError, match="different things"):
        merge_channels("bad", [ring, find(ALL_REDUCE, "recursive-doubling").build(5)])


def test_chunks_are_whole_elements_and_fair() -> None:
    ring = find(ALL_REDUCE, "ring").build(7)
    for elements in (0, 1, 6, 7, 8, 10**15 + 3):
        sizes = np.diff(ring.chunk_bounds(elements))
        assert sizes.sum() == elements
        assert set(sizes.tolist()) <= {elements // 7, -(-elements // 7)}


def test_data_that_moves_keeps_its_size() -> None:
    """A chunk copied to another index, then sent on, is as large as where it came from."""
    sends = [Send(0, 0, 1, 0, dst_chunk=2), Send(1, 1, 0, 2, dst_chunk=3)]
    moved = Schedule.of("moved", ALL_REDUCE, 2, sends, weights=[1, 3], scratch=2)
    assert moved.send_elements(8).tolist() == [2, 2]


@pytest.mark.parametrize(
    ("send", "rule"),
    [
        (copy(0, 0, 5, 0, channel=0), "ends with"),
        (copy(-1, 0, 1, 0), "step"),
        (copy(0, -1, 1, 0), "source"),
        (copy(0, 0, -1, 0), "destination"),
        (copy(0, 0, 1, -1), "chunks"),
        (reduce(0, 0, 1, 0, count=0), "count"),
        (Send(0, 0, 1, 0, op=7), "COPY or REDUCE"),
        (Send(0, 0, 1, 0, channel=-1), "channel"),
        (copy(0, 1, 1, 0), "local"),
        (copy(0, 3, 1, 0), "holds nothing"),
    ],
)
def test_malformed_sends_are_named(send: Send, rule: str) -> None:
    with pytest.raises(ScheduleError, match=rule):
        check(Schedule.of("bad", ALL_REDUCE, 2, [send]))


def test_too_many_sends_are_refused_before_memory_runs_out() -> None:
    with pytest.raises(ScheduleError, match="GB of memory"):
        find(ALL_REDUCE, "ring").build(10**6)


def test_all_to_all_as_rows_and_columns() -> None:
    """Chunk (p*n + j): from p to j. Works with uneven blocks, slices and new rank numbers."""
    n = 4
    p, j = (axis.ravel() for axis in np.meshgrid(np.arange(n), np.arange(n), indexing="ij"))
    sends = [copy(0, p[p != j], j[p != j], (p * n + j)[p != j], channel=j[p != j])]
    even = Schedule.of("direct", ALL_TO_ALL, n, sends)
    uneven = Schedule.of("direct", ALL_TO_ALL, n, sends, weights=np.arange(1, n * n + 1))
    for schedule in (even, uneven, pipeline(even, 3), relabel(even, [2, 0, 3, 1])):
        check(schedule)
        bounds = schedule.chunk_bounds(136)
        rows = np.diff(bounds[:: len(schedule.weights) // n])
        inputs = [np.arange(rows[r]) + 1000 * r for r in range(n)]
        assert matches(schedule, numpy_executor.run(schedule, inputs)[0], inputs)
    assert even.send_elements(136).tolist() == [34] * 12
    assert uneven.send_elements(136).sum() == 4 * 136 - sum((1, 6, 11, 16)) * 4
    with pytest.raises(ScheduleError, match="needs 4 vectors"):
        numpy_executor.run(even, [np.arange(7)] * 3)
