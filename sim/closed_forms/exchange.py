"""Closed forms of algorithms in which all ranks do the same in step, each over its own links; terms: ``base``."""

from __future__ import annotations

from collections.abc import Sequence

from sim.closed_forms.base import Case, even, even_ranks, form, no_sums, power_of_two

Round = tuple[int, set[int], set[int]]
"""Blocks of a message, which of them (numbered from the rank that sends) it reads, and where it leaves them at the rank that gets it."""


def _in_step(case: Case, rounds: Sequence[Round], *, sums: bool = False) -> float:
    """Rounds through one queue of every rank; a round waits for the earlier ones that brought (or added to) what it reads."""
    m, sent, added = case.piece(case.n), 0.0, 0.0
    done: list[float] = []
    for blocks, reads, _ in rounds:
        waits = (end for end, (_, _, brought) in zip(done, rounds, strict=False) if reads & brought)
        sent = max([sent, *waits]) + case.c(blocks * m)
        added = max(added, sent + case.latency) + (case.g(blocks * m) if sums else 0.0)
        done.append(added if sums else sent + case.latency)
    return max(done)


def _reversed(rounds: Sequence[Round]) -> list[Round]:
    return [(blocks, brought, reads) for blocks, reads, brought in reversed(rounds)]


def _doubling(case: Case) -> float:
    """1, 2, 4, ... blocks, each round waiting for the one before."""
    return (case.n.bit_length() - 1) * (case.overhead + case.latency) + (case.whole - case.piece(case.n)) / case.bandwidth


def _halving(case: Case) -> float:
    return _doubling(case) + case.g(case.whole - case.piece(case.n))


@form("all-gather", "recursive-doubling", "star", "log2(n)(o + L) + (n-1)M/(nB)", power_of_two, even_ranks)
def recursive_doubling_all_gather(case: Case) -> float:
    """Exact for n a power of two that divides E."""
    return _doubling(case)


@form("reduce-scatter", "recursive-halving", "star", "log2(n)(o + L) + (n-1)(M/(nB) + M/(nR))", power_of_two, even_ranks)
def recursive_halving(case: Case) -> float:
    """Exact for n a power of two that divides E."""
    return _halving(case)


@form("all-reduce", "binary-blocks", "star", "2 log2(n)(o + L) + 2(n-1)M/(nB) + (n-1)M/(nR)", power_of_two, even_ranks)
def binary_blocks(case: Case) -> float:
    """Exact for n a power of two that divides E: one block, halving-doubling. (Else blocks of other sizes share links.)"""
    return _halving(case) + _doubling(case)


def _copies(case: Case) -> int:
    """Copies of swing: over dims two for each dimension."""
    dims: tuple[int, ...] = case.options.get("dims") or ()
    return max(1, 2 * sum(size > 1 for size in dims))


def _lockstep(case: Case) -> str | None:
    """Copies keep in step while they share links evenly; sums of several at one place come one after the other."""
    return no_sums(case) if _copies(case) > 1 else None


_pieces = even(lambda case: case.n * _copies(case))


@form("all-gather", "swing", "star", "log2(n)(o + L) + (n-1)M/(nB)", power_of_two, _pieces)
def swing_all_gather(case: Case) -> float:
    """Exact for n a power of two and C n | E, in C copies (1, or over dims 2 for each): on a star partners do not matter."""
    return _doubling(case)


@form("reduce-scatter", "swing", "star", "log2(n)(o + L) + (n-1)(M/(nB) + M/(nR))", power_of_two, _pieces, _lockstep)
def swing_reduce_scatter(case: Case) -> float:
    """Exact as the all-gather, over dims for R infinite."""
    return _halving(case)


@form("all-reduce", "swing", "star", "2 log2(n)(o + L) + 2(n-1)M/(nB) + (n-1)M/(nR)", power_of_two, _pieces, _lockstep)
def swing(case: Case) -> float:
    """Exact as its halves."""
    return _halving(case) + _doubling(case)


@form("all-reduce", "swing-latency", "star", "log2(n)(o + M/B + L + M/R)", power_of_two, even(_copies), _lockstep)
def swing_latency(case: Case) -> float:
    """Exact for n a power of two and any E, as recursive doubling; in C copies over dims for C | E and R infinite."""
    return (case.n.bit_length() - 1) * (case.c(case.whole) + case.latency + case.g(case.whole))


def _bruck(n: int) -> list[Round]:
    """At distance d = 1, 2, 4... the first min(d, n-d) blocks move to positions d, d+1, ... of the rank that gets them."""
    counts = [(1 << i, min(1 << i, n - (1 << i))) for i in range((n - 1).bit_length())]
    return [(count, set(range(count)), set(range(d, d + count))) for d, count in counts]


@form("all-gather", "bruck", "star", "log2(n)(o + L) + (n-1)M/(nB)", even_ranks)
def bruck_all_gather(case: Case) -> float:
    """Exact for any n that divides E. Shown for a power of two; else the last round may read nothing that the one before it brought,
    and does not wait for its latency."""
    return _in_step(case, _bruck(case.n))


@form("reduce-scatter", "bruck", "star", "log2(n)(o + L) + (n-1)(M/(nB) + M/(nR))", even_ranks)
def bruck_reduce_scatter(case: Case) -> float:
    """Exact as the all-gather."""
    return _in_step(case, _reversed(_bruck(case.n)), sums=True)


@form("all-to-all", "bruck", "star", "log2(n)(o + M/(2B) + L)", even_ranks)
def bruck_all_to_all(case: Case) -> float:
    """Exact for any n that divides E (shown for a power of two): in round k the blocks j with bit k set move on, so that a round
    waits for those before it with which it has a block in common."""
    moves = [{j for j in range(case.n) if j >> k & 1} for k in range((case.n - 1).bit_length())]
    return _in_step(case, [(len(blocks), blocks, blocks) for blocks in moves])


def _pat(case: Case) -> list[Round]:
    """Offsets of the blocks of a round of n up to a power of two P: multiples of P/A as a binomial tree, farthest first; then those
    between, in preorder of their set bits, high ones first. A block comes from the rank as far on as its lowest bit."""
    p = 1 << (case.n - 1).bit_length()
    a = _aggregation(case)
    stride, scale = p // a, a // 2
    rounds = []
    while scale:
        rounds.append([offset * stride for offset in range(scale, a, 2 * scale)])
        scale //= 2
    between = sorted(range(1, stride), key=lambda x: [-(1 << bit) for bit in reversed(range(x.bit_length())) if x >> bit & 1])
    rounds += [[k * stride + position for k in range(a)] for position in between]
    some = [kept for offsets in rounds if (kept := {x for x in offsets if x < case.n})]
    return [(len(kept), {x - (x & -x) for x in kept}, kept) for kept in some]


def _aggregation(case: Case) -> int:
    return int(case.options.get("aggregation") or 1 << (case.n - 1).bit_length() >> 1)


def _aggregates(case: Case) -> str | None:
    a, most = _aggregation(case), 1 << (case.n - 1).bit_length() >> 1
    return None if 0 < a <= most and a & (a - 1) == 0 else f"aggregation must be a power of two up to {most}"


@form("all-gather", "pat", "star", "log2(n)(o + L) + (n-1)M/(nB)", _aggregates, even_ranks)
def pat_all_gather(case: Case) -> float:
    """Exact for any n that divides E and any aggregation A: log2 A + P/A - 1 messages through each queue, of which some wait for
    others. Shown for a power of two and A = n/2, where each waits for the one before."""
    return _in_step(case, _pat(case))


@form("reduce-scatter", "pat", "star", "log2(n)(o + L) + (n-1)(M/(nB) + M/(nR))", _aggregates, even_ranks)
def pat_reduce_scatter(case: Case) -> float:
    """Exact as the all-gather."""
    return _in_step(case, _reversed(_pat(case)), sums=True)


@form("all-to-all", "pairwise", "star", "(n-1)(o + M/(nB)) + L", even_ranks)
def pairwise(case: Case) -> float:
    """Exact for any n that divides E: no message waits for another's arrival."""
    return (case.n - 1) * case.c(case.piece(case.n)) + case.latency


def _at_once(case: Case, nbytes: int) -> float:
    """n-1 messages leave each rank and n-1 come to each, all on their share of the links."""
    return case.overhead + (case.n - 1) * nbytes / case.bandwidth + case.latency


@form("all-gather", "direct", "star", "o + (n-1)M/(nB) + L")
def direct_all_gather(case: Case) -> float:
    """Exact for any n and E: the n-1 copies of a largest chunk share their sender's link to the end."""
    return _at_once(case, case.piece(case.n))


@form("reduce-scatter", "direct", "star", "o + (n-1)(M/(nB) + M/(nR)) + L")
def direct_reduce_scatter(case: Case) -> float:
    """Exact for any n and E: the n-1 parts of a largest chunk share their receiver's link to the end, then are summed in turn."""
    return _at_once(case, case.piece(case.n)) + (case.n - 1) * case.g(case.piece(case.n))


@form("all-to-all", "direct", "star", "o + (n-1)M/(nB) + L", even_ranks)
def direct_all_to_all(case: Case) -> float:
    """Exact for any n that divides E."""
    return _at_once(case, case.piece(case.n))


@form("all-reduce", "one-shot", "star", "o + (n-1)(M/B + M/R) + L")
def one_shot(case: Case) -> float:
    """Exact for any n and E."""
    return _at_once(case, case.whole) + (case.n - 1) * case.g(case.whole)


@form("all-reduce", "two-shot", "star", "2(o + (n-1)M/(nB) + L) + (n-1)M/(nR)", even_ranks)
def two_shot(case: Case) -> float:
    """Exact for any n that divides E: all ranks have their sums at once."""
    return direct_reduce_scatter(case) + direct_all_gather(case)


@form("barrier", "dissemination", "star", "ceil(log2(n)/log2(k))(o + L)")
def dissemination(case: Case) -> float:
    """Exact for any n: signals of no bytes, a round waits for the one before."""
    rounds, reach = 0, 1
    while reach < case.n:
        rounds, reach = rounds + 1, reach * max(2, int(case.options.get("radix", 2)))
    return rounds * (case.overhead + case.latency)


@form("barrier", "recursive-doubling", "star", "log2(n)(o + L)")
def recursive_doubling_barrier(case: Case) -> float:
    """Exact for any n (shown for a power of two). Others fold ranks in first and out last, while the rest begin: a signal leaves when
    its sender has heard all that came before and, as it writes where its receiver has read, when that one's last signal has left."""
    survivors = 1 << (case.n.bit_length() - 1)
    hop, folded = case.overhead + case.latency, case.n - survivors
    heard, sent = [hop if r < folded else 0.0 for r in range(survivors)], [0.0] * survivors
    for bit in range(survivors.bit_length() - 1):
        start = [max(heard[r], sent[r], sent[r ^ 1 << bit]) for r in range(survivors)]
        sent = [at + case.overhead for at in start]
        heard = [max(heard[r], start[r ^ 1 << bit] + hop) for r in range(survivors)]
    return max([*heard, *(max(heard[r], sent[r]) + hop for r in range(folded))])


@form("barrier", "tree", "star", "(floor(log2 n) + ceil(log2 n))o + 2 floor(log2 n)L")
def tree_barrier(case: Case) -> float:
    """Exact for any n: up, a chain as long as most set bits of a rank; down, the binomial broadcast of no bytes."""
    up, down = case.n.bit_length() - 1, (case.n - 1).bit_length()
    return (up + down) * case.overhead + 2 * up * case.latency
