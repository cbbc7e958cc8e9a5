"""Closed forms of flat and k-nomial trees, of binomial scatter and gather, and of what is made of them; terms: ``base``.

On a star a sender with one queue never shares its link up, nor a receiver with one sender its link down."""

from __future__ import annotations

from sim.closed_forms.base import Case, even_ranks, form, power_of_two


def _levels(case: Case) -> int:
    return (case.n - 1).bit_length()


def _others(case: Case) -> int:
    """Bytes of all chunks but the root's: chunk c starts at element floor(cE/n)."""
    root = int(case.options.get("root") or 0)
    own = case.elements * (root + 1) // case.n - case.elements * root // case.n
    return (case.elements - own) * case.itemsize


@form("broadcast", "flat", "star", "(n-1)(So + M/B) + L", sliced=True)
def flat_broadcast(case: Case) -> float:
    """Exact for any n, S and E: one queue of n-1 times the data."""
    return (case.n - 1) * case.queued + case.latency


@form("reduce", "flat", "star", "o + (n-1)M/B + L + (n-1)M/R")
def flat_reduce(case: Case) -> float:
    """Exact for any n and E: all share the root's link fairly and arrive together; the root sums one after the other."""
    return case.overhead + (case.n - 1) * (case.whole / case.bandwidth + case.g(case.whole)) + case.latency


@form("scatter", "flat", "star", "(n-1)(o + M/(nB)) + L")
def flat_scatter(case: Case) -> float:
    """Exact for any n and E: one queue of all but the root's chunk (shown for n | E)."""
    return (case.n - 1) * case.overhead + _others(case) / case.bandwidth + case.latency


@form("gather", "flat", "star", "o + (n-1)M/(nB) + L")
def flat_gather(case: Case) -> float:
    """Exact for any n and E: the root's link is full from the first byte to the last, however it is shared (shown for n | E)."""
    return case.overhead + _others(case) / case.bandwidth + case.latency


@form("all-reduce", "data-parallel", "star", "2(o + (n-1)M/B + L) + (n-1)M/R")
def data_parallel(case: Case) -> float:
    """Exact for any n and E: the flat reduce, then n-1 copies that share the root's link and arrive together."""
    return flat_reduce(case) + case.overhead + (case.n - 1) * case.whole / case.bandwidth + case.latency


@form("scatter", "binomial-tree", "star", "log2(n)(o + L) + (n-1)M/(nB)", even_ranks)
def binomial_scatter(case: Case) -> float:
    """Exact for any n that divides E: ranks send in queues that never share a link. Shown for a power of two, where the last rank has
    all latencies; else the latest of all ranks is taken."""
    m, free = case.piece(case.n), [0.0] * case.n
    came = 0.0
    for level in range(_levels(case)):
        distance = 1 << (_levels(case) - 1 - level)
        for sender in range(0, case.n - distance, 2 * distance):
            child = sender + distance
            free[sender] += case.c(min(distance, case.n - child) * m)
            free[child] = free[sender] + case.latency
            came = max(came, free[child])
    return came


@form("gather", "binomial-tree", "star", "log2(n)(o + L) + (n-1)M/(nB)", power_of_two, even_ranks)
def binomial_gather(case: Case) -> float:
    """Exact for n a power of two that divides E: the child of step s is ready when s steps are over. (Else early children share the
    link of their parent.)"""
    return _levels(case) * (case.overhead + case.latency) + (case.whole - case.piece(case.n)) / case.bandwidth


@form("broadcast", "scatter-all-gather", "star", "(n-1+log2(n))(o + L) + 2(n-1)M/(nB)", power_of_two, even_ranks)
def scatter_all_gather(case: Case) -> float:
    """Exact for n a power of two that divides E. Every rank's queue is free of the scatter when log2 n sends and as many latencies
    as it has set bits are over; the ring of n-1 hops waits for its latest, the last rank."""
    return binomial_gather(case) + (case.n - 1) * (case.c(case.piece(case.n)) + case.latency)


@form("reduce", "reduce-scatter-gather", "star", "(n-1)(o + M/(nB) + L + M/(nR)) + log2(n)(o + L) + (n-1)M/(nB)", power_of_two, even_ranks)
def reduce_scatter_gather(case: Case) -> float:
    """Exact for n a power of two that divides E: all ranks of the ring finish at once, and then gather."""
    return scatter_all_gather(case) + (case.n - 1) * case.g(case.piece(case.n))


def _radix(case: Case) -> int:
    return int(case.options.get("radix", 4))


def _full(case: Case) -> str | None:
    if _radix(case) < 2:
        return "needs a radix of at least 2"
    if case.n % _radix(case) ** (_k_levels(case) - 1) == 0:
        return None
    return "exact for n a multiple, up to radix times, of a power of the radix: else subtrees are cut short, and levels share links"


def _k_levels(case: Case) -> int:
    levels, reach = 1, _radix(case)
    while reach < case.n:
        levels, reach = levels + 1, reach * _radix(case)
    return levels


@form("broadcast", "k-nomial-tree", "star", "log2(n)/log2(k)(o + (k-1)M/B + L)", _full)
def k_nomial_broadcast(case: Case) -> float:
    """Exact for n = j k^(levels-1), j <= k (shown for j = k), and any E: k-1 children share their parent's link and get it together;
    the root's queues that have none of its j-1 first children send to its next."""
    levels = _k_levels(case)
    children = (_radix(case) if levels > 1 else case.n) - 1
    return levels * (case.overhead + children * case.whole / case.bandwidth + case.latency)


@form("reduce", "k-nomial-tree", "star", "log2(n)/log2(k)(o + (k-1)(M/B + M/R) + L)", _full)
def k_nomial_reduce(case: Case) -> float:
    """Exact as the broadcast: k-1 children, on the last level j-1, share the link down, then the parent sums them one by one."""
    levels, k = _k_levels(case), _radix(case)
    children: int = (levels - 1) * (k - 1) + case.n // k ** (levels - 1) - 1
    return levels * (case.overhead + case.latency) + children * (case.whole / case.bandwidth + case.g(case.whole))


@form("all-reduce", "k-nomial-tree", "star", "log2(n)/log2(k)(2(o + (k-1)M/B + L) + (k-1)M/R)", _full)
def k_nomial_all_reduce(case: Case) -> float:
    """Exact as its halves: the broadcast starts when the root has its last sum."""
    return k_nomial_reduce(case) + k_nomial_broadcast(case)
