"""Closed forms of algorithms in levels, for groups that are told: K groups of g ranks; terms: ``base``."""

from __future__ import annotations

from typing import Any

from sim.closed_forms.base import Case, even, even_ranks, form, grouped, no_sums


def _sizes(case: Case) -> tuple[int, int]:
    """(K, g)"""
    groups = case.options["groups"]
    return len(groups), len(groups[0])


def _group(case: Case) -> int:
    return _sizes(case)[1]


def _rings(case: Case, dims: tuple[int, ...], *, sums: bool) -> float:
    """Rings along one dimension after the other, all ranks in step: d-1 hops of what is left, a d-th."""
    total, parts = 0.0, 1
    for size in dims:
        parts *= size
        m = case.piece(parts)
        total += (size - 1) * (case.c(m) + case.latency + (case.g(m) if sums else 0.0))
    return total


@form("reduce-scatter", "hierarchical", "star", "(g+K-2)(o + L) + (n-1)(M/(nB) + M/(nR))", grouped, even_ranks)
def hierarchical_reduce_scatter(case: Case) -> float:
    """Exact for n | E: g-1 hops of M/g, K-1 of M/n; together M(n-1)/n."""
    return _rings(case, _sizes(case)[::-1], sums=True)


@form("all-gather", "hierarchical", "star", "(g+K-2)(o + L) + (n-1)M/(nB)", grouped, even_ranks)
def hierarchical_all_gather(case: Case) -> float:
    """Exact for n | E."""
    return _rings(case, _sizes(case)[::-1], sums=False)


@form("all-reduce", "hierarchical", "star", "2(g+K-2)(o + L) + 2(n-1)M/(nB) + (n-1)M/(nR)", grouped, even_ranks)
def hierarchical(case: Case) -> float:
    """Exact for n | E."""
    return hierarchical_reduce_scatter(case) + hierarchical_all_gather(case)


def _doubling(case: Case) -> str | None:
    count = _sizes(case)[0]
    return None if count & (count - 1) == 0 else "needs a number of servers that is a power of two"


@form("all-reduce", "hierarchical-doubling", "star", "2(g-1+log2 K)(o + L) + 2(n-1)M/(nB) + (n-1)M/(nR)", grouped, _doubling, even_ranks)
def hierarchical_doubling(case: Case) -> float:
    """Exact for n | E and K a power of two: rings of g, then halves of the M/g of a GPU, and back."""
    count, size = _sizes(case)
    total = _rings(case, (size,), sums=True) + _rings(case, (size,), sums=False)
    for level in range(1, count.bit_length()):
        m = case.piece(size << level)
        total += 2 * (case.c(m) + case.latency) + case.g(m)
    return total


def _whole_racks(case: Case) -> str | None:
    servers, count = int(case.options.get("servers") or 0), _sizes(case)[0]
    return None if servers >= 0 and (servers == 0 or count % servers == 0) else "needs a number of servers of a rack that divides theirs"


def _racks(case: Case) -> tuple[int, int, int]:
    """(g, servers of a rack, racks); 0 servers: racks as large as they are many or larger, where K allows."""
    count, size = _sizes(case)
    servers = int(case.options.get("servers") or 0)
    if servers:
        return size, servers, count // servers
    rack = min(d for d in range(1, count + 1) if count % d == 0 and d * d >= count)
    return size, rack, count // rack


@form("all-reduce", "hierarchical-3", "star", "2(g+k+K/k-3)(o + L) + 2(n-1)M/(nB) + (n-1)M/(nR)", grouped, _whole_racks, even_ranks)
def hierarchical_3(case: Case) -> float:
    """Exact for n | E: k servers in each of K/k racks."""
    return _rings(case, _racks(case), sums=True) + _rings(case, _racks(case), sums=False)


@form("all-to-all", "hierarchical", "star", "(g-1)(o + M/(gB)) + (K-1)(o + M/(KB)) + 2L", grouped, even_ranks)
def hierarchical_all_to_all(case: Case) -> float:
    """Exact for n | E: no message waits for another of its level. Shown for two levels: one alone has one latency."""
    count, size = _sizes(case)
    inside = across = 0.0
    if size > 1:
        inside = (size - 1) * case.c(case.piece(size)) + case.latency
    if count > 1:
        across = (count - 1) * case.c(case.piece(count)) + case.latency
    return inside + across


def _ring_count(case: Case) -> int:
    """Rings of the multi-ring: told, or one a GPU of a server; of one server at most 8, of more than 16 ranks 2."""
    groups: Any = case.options.get("groups") or ()
    if len(groups) > 1:
        return int(case.options.get("rings") or len(groups[0]))
    disjoint = max(1, case.n - 1 - (case.n + 1) % 2) if case.n > 2 else 1
    return int(case.options.get("rings") or min(disjoint, 8 if case.n <= 16 else 2))


_even_rings = even(lambda case: case.n * _ring_count(case))


@form("reduce-scatter", "multi-ring", "star", "(n-1)(o + M/(nB) + L)", grouped, no_sums, _even_rings)
def multi_ring_reduce_scatter(case: Case) -> float:
    """Exact for nC | E: on a star C rings share every link, each with a C-th of the chunks, and go on in step."""
    return (case.n - 1) * (case.c(case.piece(case.n)) + case.latency)


@form("all-gather", "multi-ring", "star", "(n-1)(o + M/(nB) + L)", grouped, _even_rings)
def multi_ring_all_gather(case: Case) -> float:
    """Exact as the reduce-scatter."""
    return multi_ring_reduce_scatter(case)


@form("all-reduce", "multi-ring", "star", "2(n-1)(o + M/(nB) + L)", grouped, no_sums, _even_rings)
def multi_ring(case: Case) -> float:
    """Exact as its halves."""
    return 2 * multi_ring_reduce_scatter(case)


@form("all-reduce", "collnet-chain", "star", "2g(o + M/(gB)) + (2g-1)L", grouped, no_sums, even(_group))
def collnet_chain(case: Case) -> float:
    """Exact for g | E: in each step every rank sends on one rail; 2(g-1) hops between ranks, up and down one link (half of L)."""
    size = _group(case)
    return 2 * size * case.c(case.piece(size)) + (2 * size - 1) * case.latency


@form("all-reduce", "collnet-direct", "star", "4o + 2M/B + 3L", grouped, no_sums, even(_group))
def collnet_direct(case: Case) -> float:
    """Exact for g | E: g-1 parts of M/g at once, M/g up and down one link (half of L), g-1 parts at once. Shown for g > 1."""
    size = _group(case)
    inside = 2 * (case.overhead + (size - 1) * case.piece(size) / case.bandwidth + case.latency) if size > 1 else 0.0
    return inside + 2 * case.c(case.piece(size)) + case.latency
