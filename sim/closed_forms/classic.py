"""Closed forms of rings, trees and parameter servers; terms: ``base``."""

from __future__ import annotations

import math

from sim.closed_forms.base import Case, even, form, power_of_two, three


@form("reduce-scatter", "ring", "ring", "(n-1)(o + M/(nB) + L + M/(nR))")
def ring_reduce_scatter(case: Case) -> float:
    """Exact for any n and E: some chunk of ceil(E/n) elements makes all n-1 hops without waiting, and no step takes longer."""
    m = case.piece(case.n)
    return (case.n - 1) * (case.c(m) + case.latency + case.g(m))


@form("all-gather", "ring", "ring", "(n-1)(o + M/(nB) + L)")
def ring_all_gather(case: Case) -> float:
    """Exact for any n and E, as the reduce-scatter."""
    return (case.n - 1) * (case.c(case.piece(case.n)) + case.latency)


@form("all-reduce", "ring", "ring", "2(n-1)(o + M/(nB) + L) + (n-1)M/(nR)")
def ring_all_reduce(case: Case) -> float:
    """Exact for any n and E: a chunk goes on from its last sum into its first copy (Patarasuk & Yuan 2009)."""
    return ring_reduce_scatter(case) + ring_all_gather(case)


_even_halves = even(lambda case: 2 * case.n, if_reducing=True)
_even_slices = even(lambda case: case.slices, if_reducing=True)


@form("reduce-scatter", "bidirectional-ring", "ring", "(n-1)(o + M/(2nB) + L + M/(2nR)) + M/(2nR)", three, _even_halves)
def bidirectional_reduce_scatter(case: Case) -> float:
    """Exact for n > 2; at a finite R if 2n divides E. Both directions share a place's reducer: the second sum of the first step
    waits for the first, and its direction stays so much behind, or, if g > c + L, the reducers never rest."""
    m, steps = case.piece(2 * case.n), case.n - 1
    c, g = case.c(m) + case.latency, case.g(m)
    return max(steps * (c + g) + g, c + 2 * steps * g)


@form("all-gather", "bidirectional-ring", "ring", "(n-1)(o + M/(2nB) + L)", three)
def bidirectional_all_gather(case: Case) -> float:
    """Exact for n > 2 and any E."""
    return (case.n - 1) * (case.c(case.piece(2 * case.n)) + case.latency)


@form("all-reduce", "bidirectional-ring", "ring", "2(n-1)(o + M/(2nB) + L) + M/(2R)", three, _even_halves)
def bidirectional_all_reduce(case: Case) -> float:
    """Exact for n > 2; at a finite R if 2n divides E. The formula shown is for g <= c + L."""
    return bidirectional_reduce_scatter(case) + bidirectional_all_gather(case)


@form("broadcast", "chain", "star", "(n+S-2)(o + M/(SB)) + (n-1)L", sliced=True)
def chain_broadcast(case: Case) -> float:
    """Exact for any n, S and E, on a ring too (one hop). A flow shop of n-1 stages: all slices through one queue, and the largest
    through the other n-2. Holds both conventions: alpha = o gives (n+S-2)(alpha + M/SB), alpha = L gives
    (n-1)(alpha + M/SB) + (S-1)M/SB."""
    return case.queued + (case.n - 2) * case.c(case.piece(case.slices)) + (case.n - 1) * case.latency


@form("reduce", "chain", "star", "(n-1)(o + M/(SB) + L + M/(SR)) + (S-1)max(o + M/(SB), M/(SR))", _even_slices, sliced=True)
def chain_reduce(case: Case) -> float:
    """Exact for any n and S, at a finite R if S divides E: queues and reducers are the stages; the slower kind is kept busy."""
    if case.reduce_rate == math.inf:
        return chain_broadcast(case)
    m = case.piece(case.slices)
    return (case.n - 1) * (case.c(m) + case.latency + case.g(m)) + (case.slices - 1) * max(case.c(m), case.g(m))


@form("broadcast", "binomial-tree", "star", "ceil(log2 n)(o + M/B) + floor(log2 n)L")
def binomial_broadcast(case: Case) -> float:
    """Exact for any n and E. Rank r gets its data after as many sends as steps up to its last set bit, and as many latencies as it
    has set bits: a sender does not wait for arrivals. The most are ceil(log2 n) and floor(log2 n), of rank 2^floor(log2 n) - 1."""
    return (case.n - 1).bit_length() * case.c(case.whole) + (case.n.bit_length() - 1) * case.latency


@form("reduce", "binomial-tree", "star", "log2(n)(o + M/B + L + M/R)", power_of_two)
def binomial_reduce(case: Case) -> float:
    """Exact for n a power of two and any E: the child of step s is ready when s steps are over. (Else early children share the
    link of their parent.)"""
    return (case.n.bit_length() - 1) * (case.c(case.whole) + case.latency + case.g(case.whole))


@form("all-reduce", "binomial-tree", "star", "2 log2(n)(o + M/B + L) + log2(n)M/R", power_of_two)
def binomial_all_reduce(case: Case) -> float:
    """Exact for n a power of two and any E: the broadcast starts when the root has its last sum."""
    return binomial_reduce(case) + binomial_broadcast(case)


@form("all-reduce", "recursive-doubling", "star", "log2(n)(o + M/B + L + M/R)", power_of_two)
def recursive_doubling(case: Case) -> float:
    """Exact for n a power of two and any E: all ranks exchange in step, each over its own links."""
    return binomial_reduce(case)


@form("all-reduce", "halving-doubling", "star", "2 log2(n)(o + L) + 2(n-1)M/(nB) + (n-1)M/(nR)", power_of_two, even(lambda case: case.n))
def halving_doubling(case: Case) -> float:
    """Exact for n a power of two that divides E: pieces of M/2, M/4, ... M/n, and back (Rabenseifner)."""
    moved = case.whole - case.piece(case.n)
    return 2 * ((case.n.bit_length() - 1) * (case.overhead + case.latency) + moved / case.bandwidth) + case.g(moved)


@form("all-reduce", "parameter-server", "star", "n o + 2(n-1)M/B + 2L + (n-1)M/R")
def parameter_server(case: Case) -> float:
    """Exact for any n and E. All push at once and share the server's link fairly, so that all arrive together; the server sums
    them one by one, then sends to one after the other."""
    pushes = case.n - 1
    return case.overhead + pushes * (case.whole / case.bandwidth + case.g(case.whole) + case.c(case.whole)) + 2 * case.latency


def _servers(case: Case) -> int:
    return int(case.options.get("servers") or case.n)


def _even_load(case: Case) -> str | None:
    servers = _servers(case)
    return None if servers > 0 and case.n % servers == 0 else "exact only if the number of servers divides n: else their loads differ"


@form("all-reduce", "sharded-parameter-server", "star", "2(n-1)M/(SB) + 2L + (n-1+min(S, n-1))o", _even_load, even(_servers))
def sharded_parameter_server(case: Case) -> float:
    """Exact if the number of servers S divides n and E. In each turn n/S ranks share a server's link, in the last, without the
    server itself, one less; S = n: n-1 turns of one. A reducer may lag behind the link; the pulls follow its last sum. The formula
    is for R infinite."""
    servers = _servers(case)
    m, each = case.piece(servers), case.n // servers
    turns, left, summed = (servers if each > 1 else case.n - 1), case.n - 1, 0.0
    for turn in range(1, turns + 1):
        came = min(each, left)
        arrived = turn * case.overhead + (case.n - 1 - left + came) * m / case.bandwidth + case.latency
        summed, left = max(summed, arrived) + came * case.g(m), left - came
    return summed + (case.n - 1) * case.c(m) + case.latency


def _levels(case: Case) -> int:
    return 1 if len(case.options.get("groups") or ()) < 2 else 2


def _one_level(case: Case) -> str | None:
    return None if _levels(case) == 1 or case.reduce_rate == math.inf else "of two levels exact only without a reduce rate"


@form("all-reduce", "sharp", "star", "2dL + (2d+S-1)(o + M/(SB))", _one_level, _even_slices, hops=1, sliced=True)
def sharp(case: Case) -> float:
    """Exact for any n, S and E; at a finite R for one level if S divides E. A flow shop of 2d queues, d levels of switches (2 with
    ``groups``: links as those of ranks go to one above the leaves), and, where sums take time, of the switch's reducer, which adds
    n pieces a slice. The formula is for R infinite."""
    m, queues = case.piece(case.slices), 2 * _levels(case)
    if case.reduce_rate == math.inf:
        return case.queued + (queues - 1) * case.c(m) + queues * case.latency
    reducer = case.n * case.g(m)
    return queues * (case.c(m) + case.latency) + reducer + (case.slices - 1) * max(case.c(m), reducer)
