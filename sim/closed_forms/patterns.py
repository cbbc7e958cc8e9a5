"""Closed forms of the point-to-point patterns."""

from __future__ import annotations

import math

from sim.closed_forms.base import Case, form


def _whole(case: Case) -> float:
    """Each rank sends one vector and gets one at most, each on links of its own; slices follow one another through one queue."""
    return case.queued + case.latency


@form("sendrecv", "shift", "star", "S o + M/B + L", sliced=True)
def shift(case: Case) -> float:
    """Exact for any n, E and distance."""
    return _whole(case)


def _even(case: Case) -> str | None:
    return "needs an even number of ranks" if case.n % 2 else None


@form("sendrecv", "exchange", "star", "S o + M/B + L", _even, sliced=True)
def exchange(case: Case) -> float:
    """Exact for any even n, E and distance."""
    return _whole(case)


def _composite(case: Case) -> str | None:
    return None if any(case.n % side == 0 for side in range(2, case.n)) else "needs a grid: no prime number of ranks"


@form("sendrecv", "transpose", "star", "S o + M/B + L", _composite, sliced=True)
def transpose(case: Case) -> float:
    """Exact for any n that is no prime, E and sides."""
    return _whole(case)


@form("sendrecv", "random-permutation", "star", "S o + M/B + L", sliced=True)
def random_permutation(case: Case) -> float:
    """Exact for any n, E and seed."""
    return _whole(case)


def _sides(case: Case) -> tuple[int, ...]:
    return tuple(case.options.get("dims") or ())


def _told(case: Case) -> str | None:
    return None if math.prod(_sides(case)) == case.n else "needs dims, told, of n places"


def _no_pairs(case: Case) -> str | None:
    return None if 2 not in _sides(case) else "needs sides other than 2: there both neighbours are at the end of one cable"


@form("sendrecv", "halo", "torus", "S o + M/(2DB) + L", _told, _no_pairs, sliced=True)
def halo(case: Case) -> float:
    """Exact for any E on a torus of the same dims, D of which are not 1: a cable for each neighbour."""
    blocks = 2 * sum(size > 1 for size in _sides(case))
    return case.slices * case.overhead + case.piece(blocks) / case.bandwidth + case.latency
