"""Derived waits order exactly what the hazard rules order, no more and no less."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from random_schedules import required_waits, schedules

from algorithms.collectives import ALL_REDUCE
from algorithms.dependencies import dependencies
from algorithms.registry import find
from algorithms.schedule import Schedule


def ordered(nodes: int, waits: set[tuple[int, int, bool]]) -> np.ndarray:
    """Transitive closure over the events start, sent, done of each node."""
    reach = np.eye(3 * nodes, dtype=bool)
    for i in range(nodes):
        reach[3 * i, 3 * i + 1] = reach[3 * i + 1, 3 * i + 2] = True
    for before, after, on_sent in waits:
        reach[3 * before + (1 if on_sent else 2), 3 * after] = True
    for k in range(3 * nodes):
        reach |= reach[:, k : k + 1] & reach[k : k + 1, :]
    return reach


@given(schedules())
@settings(max_examples=400)
def test_same_order_as_the_rules(schedule: Schedule) -> None:
    found = dependencies(schedule)
    edges = set(zip(found.before.tolist(), found.after.tolist(), found.on_sent.tolist(), strict=True))
    n = len(schedule)
    got = ordered(n + found.joins, edges)[: 3 * n, : 3 * n]
    assert np.array_equal(got, ordered(n, required_waits(schedule)))


def test_waits_stay_linear_where_many_meet() -> None:
    """n-1 pushes into one cell, then n-1 pulls from it: 2(n-1) waits through a join, not (n-1)^2."""
    found = dependencies(find(ALL_REDUCE, "parameter-server").build(64))
    assert found.joins == 1
    assert len(found.before) < 4 * 63


def test_ring_waits_for_its_left_neighbour() -> None:
    """Every send but the first of each rank reads what the step before wrote, and all-gather overwrites what was sent."""
    found = dependencies(find(ALL_REDUCE, "ring").build(4))
    done = {(int(b), int(a)) for b, a, sent in zip(found.before, found.after, found.on_sent, strict=True) if not sent}
    assert all((4 * (step - 1) + (rank - 1) % 4, 4 * step + rank) in done for step in range(1, 6) for rank in range(4))
