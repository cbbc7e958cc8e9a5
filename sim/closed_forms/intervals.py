"""Intervals for algorithms whose messages share links in ways that no formula follows; terms: ``base``.

At least: the longest chain of messages that wait for one another, each alone on its links. At most: the same chain, each with as
many on its ports at once as there are queues; a fair share is never less than a port over their number."""

from __future__ import annotations

from typing import Any

from sim.closed_forms.base import Case, grouped, no_sums, within


def _height(ranks: int) -> int:
    """Levels of NCCL's binary tree: rank 1 hangs below 2, 4, 8, ... and the root 0."""
    return (ranks - 1).bit_length()


@within("all-reduce", "double-binary-tree", "star", "2h(o + M/(2B) + L) + hM/(2R)", "2h(o + 2M/B + L) + 2hM/R")
def double_binary_tree(case: Case) -> tuple[float, float]:
    """h = ceil(log2 n) levels of M/2 up and as many down. In each of two trees a rank has at most two children or one parent
    sending to it at once, and sends to as many: 4 on a port, 4 sums before one's own is over; no queue has two messages."""
    h, m = _height(case.n), case.piece(2)
    least = 2 * h * (case.c(m) + case.latency) + h * case.g(m)
    return least, 2 * h * (case.c(4 * m) + case.latency) + 4 * h * case.g(m)


@within("broadcast", "double-binary-tree", "star", "h(o + M/(2B) + L)", "h(o + 2M/B + L)")
def double_tree_broadcast(case: Case) -> tuple[float, float]:
    """h = ceil(log2(n-1)) + 1 levels of M/2, at most 4 messages on a port."""
    h, m = _height(case.n - 1) + 1, case.piece(2)
    return h * (case.c(m) + case.latency), h * (case.c(4 * m) + case.latency)


@within("reduce", "double-binary-tree", "star", "h(o + M/(2B) + L + M/(2R))", "h(o + 2M/B + L + 2M/R)")
def double_tree_reduce(case: Case) -> tuple[float, float]:
    """As the broadcast; before a sum is over its place has added at most 4."""
    h, m = _height(case.n - 1) + 1, case.piece(2)
    return h * (case.c(m) + case.latency + case.g(m)), h * (case.c(4 * m) + case.latency + 4 * case.g(m))


def _sizes(case: Case) -> tuple[int, int]:
    groups: Any = case.options["groups"]
    return len(groups), len(groups[0])


@within(
    "all-reduce", "nccl-tree", "star", "2h(o + M/(2gB) + L) + hM/(2gR)", "2H(o + 3M/B + L) + 3HM/R", grouped
)  # fmt: skip
def nccl_tree(case: Case) -> tuple[float, float]:
    """The deepest rank is h = g-1 + ceil(log2 K) levels down, or, where children hang below the second GPU of a chain, one more for
    each level of servers, H = g-1 + 2 ceil(log2 K). In each of 2g trees a rank has at most 3 children (two servers and the next GPU):
    6g messages of M/(2g) on a port, and as many sums before one's own is over."""
    count, size = _sizes(case)
    low, m = size - 1 + _height(count), case.piece(2 * size)
    high = low + _height(count)
    least = 2 * low * (case.c(m) + case.latency) + low * case.g(m)
    return least, 2 * high * (case.c(6 * size * m) + case.latency) + high * 6 * size * case.g(m)


def _one_server(case: Case) -> str | None:
    return None if len(case.options.get("groups") or ()) < 2 else "this interval is for one server"


@within(
    "all-reduce", "nvls", "star", "(n+3)(o + M/(nB)) + 2L", "(2n+2)o + (3n+5)M/(nB) + 2L + nM/R", _one_server
)  # fmt: skip
def nvls(case: Case) -> tuple[float, float]:
    """At least: the last owner waits for all n slices of a rank, then its sum comes, it stores it, and all get it: 4 links, 2L. At most:
    each link is full while it has work, (n+1)M/n up and down. So slices are read when all that goes up has; the switch has n slices of
    n ranks to sum; the sum comes when all that goes down has; a store shares its link with one queue; then come all n stores."""
    n, m = case.n, case.piece(case.n)
    least = n * case.overhead + case.whole / case.bandwidth + 3 * case.c(m) + 2 * case.latency
    return least, (2 * n + 2) * case.overhead + (3 * n + 5) * m / case.bandwidth + 2 * case.latency + n * n * case.g(m)


@within("all-reduce", "nvls-tree", "star", "(g+3)(o + M/(gB)) + 2L + 2h(o + M/(2gB) + L)", "(2g+2+2h)(o + 6M/(gB) + L)", grouped, no_sums)
def nvls_tree(case: Case) -> tuple[float, float]:
    """As nvls, with h = ceil(log2 K) levels of half slices up and down in between. At most: g slices in a queue, a sum, h levels twice,
    a store, g stores in a queue; on a port at once one message of the slices, one of the stores, and two of each tree."""
    count, size = _sizes(case)
    h, part, half = _height(count), case.piece(size), case.piece(2 * size)
    least = size * case.overhead + case.whole / case.bandwidth + 3 * case.c(part) + 2 * case.latency
    least += 2 * h * (case.c(half) + case.latency)
    return least, (2 * size + 2 + 2 * h) * (case.c(6 * 2 * half) + case.latency)


def _dims(case: Case) -> tuple[int, ...]:
    return tuple(case.options.get("dims") or ())


def _told(case: Case) -> str | None:
    product = 1
    for size in _dims(case):
        product *= size
    return None if _dims(case) and product == case.n and min(_dims(case)) > 2 else "needs dims of 3 or more, told"


def _bucket(case: Case, phases: int) -> tuple[float, float]:
    """D copies (2D both ways) of rings along all dimensions in turn, each starting in another; the chain of one copy, alone, or with
    one of each of the D that go its way on every link. Alone is exact where all dimensions are equal: copies are never on one link."""
    dims = _dims(case)
    copies = len(dims) * (2 if case.options.get("bidirectional") else 1)
    whole, rest = divmod(case.elements, case.n * copies)
    ends = []
    for crowd, chunk in ((1, whole), (len(dims), whole + (rest > 0))):
        times = []
        for first in range(len(dims)):
            total, chunks = 0.0, case.n
            for size in dims[first:] + dims[:first]:
                chunks //= size
                total += phases * (size - 1) * (case.c(crowd * chunks * chunk * case.itemsize) + case.latency)
            times.append(total)
        ends.append(max(times))
    return ends[0], ends[1]


@within("reduce-scatter", "torus-bucket", "torus", "D(d-1)(o + L) + (n-1)M/(nCB)", "D(d-1)(o + L) + (n-1)DM/(nCB)", _told, no_sums)
def torus_bucket_reduce_scatter(case: Case) -> tuple[float, float]:
    """Shown for D equal dimensions d, of C = D copies or 2D, where the lower end is exact."""
    return _bucket(case, 1)


@within("all-gather", "torus-bucket", "torus", "D(d-1)(o + L) + (n-1)M/(nCB)", "D(d-1)(o + L) + (n-1)DM/(nCB)", _told)
def torus_bucket_all_gather(case: Case) -> tuple[float, float]:
    """As the reduce-scatter."""
    return _bucket(case, 1)


@within("all-reduce", "torus-bucket", "torus", "2D(d-1)(o + L) + 2(n-1)M/(nCB)", "2D(d-1)(o + L) + 2(n-1)DM/(nCB)", _told, no_sums)
def torus_bucket(case: Case) -> tuple[float, float]:
    """As its halves."""
    return _bucket(case, 2)
