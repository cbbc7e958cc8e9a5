"""Steps, volumes and loads of the catalogue's point-to-point algorithms, as their papers and libraries state them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from collective_reference import matches

from algorithms.checker import check
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, COLLECTIVES, GATHER, REDUCE, REDUCE_SCATTER, SCATTER
from algorithms.launch import Launch, Placement
from algorithms.multi_ring import ring_orders
from algorithms.registry import find
from algorithms.schedule import Schedule
from algorithms.transforms import reverse
from algorithms.uneven import uneven
from kernels import numpy_executor
from sim.model import Model
from sim.simulate import simulate
from topologies import make
from topologies.errors import ScheduleError

MANY = [2, 3, 4, 5, 6, 7, 8, 11, 12, 16, 17, 24, 31, 32, 33]


def levels(n: int) -> int:
    return (n - 1).bit_length()


def sent(schedule: Schedule, elements: int) -> np.ndarray:
    return np.bincount(schedule.src, weights=schedule.send_elements(elements), minlength=schedule.places)


def sent_in_step(schedule: Schedule, elements: int) -> np.ndarray:
    """Shape [steps, places]."""
    each = np.zeros((schedule.steps, schedule.places))
    np.add.at(each, (schedule.step, schedule.src), schedule.send_elements(elements))
    return each


def messages(schedule: Schedule) -> int:
    alone = schedule.message < 0
    rows = np.stack([schedule.step, schedule.src, schedule.dst, schedule.channel, schedule.message])[:, ~alone]
    return int(alone.sum()) + len(np.unique(rows, axis=1).T)


def ring_load(schedule: Schedule, elements: int) -> float:
    """Elements over the busiest directed link of each step, summed, when every send takes the shorter way round a ring."""
    n = schedule.nranks
    load = np.zeros((schedule.steps, 2, n))
    for step, src, dst, size in zip(schedule.step, schedule.src, schedule.dst, schedule.send_elements(elements), strict=True):
        right = (dst - src) % n
        way = [(0, (src + k) % n) for k in range(right)] if right <= n - right else [(1, (src - k) % n) for k in range(n - right)]
        for at in way:
            load[(step, *at)] += size
    return float(load.max(axis=(1, 2)).sum())


@pytest.mark.parametrize("n", MANY)
def test_steps_and_bytes_of_gathers_and_scatters(n: int) -> None:
    m = 60 * n
    for name, steps in (("bruck", levels(n)), ("pat", levels(n)), ("direct", 1)):
        for collective in (ALL_GATHER, REDUCE_SCATTER):
            schedule = find(collective, name).build(n)
            assert schedule.steps == steps
            assert (sent(schedule, m) == m - m / n).all()
            assert messages(schedule) == n * (n - 1 if name == "direct" else steps)
    for collective, middle in ((SCATTER, sent), (GATHER, sent)):
        flat, tree = (find(collective, name).build(n, root=n // 2) for name in ("flat", "binomial-tree"))
        assert flat.steps == n - 1
        assert tree.steps == levels(n)
        assert messages(flat) == messages(tree) == n - 1
        assert middle(flat, m).sum() == m - m / n
    assert sent(find(SCATTER, "binomial-tree").build(n), m)[0] == m - m / n


@pytest.mark.parametrize("n", MANY)
def test_pat_rounds_for_every_aggregation(n: int) -> None:
    p = 1 << levels(n)
    for a in (1 << bit for bit in range(levels(n))):
        for collective in (ALL_GATHER, REDUCE_SCATTER):
            schedule = find(collective, "pat").build(n, aggregation=a)
            check(schedule)
            assert schedule.steps == (n - 1 if a == 1 else a.bit_length() - 1 + p // a - 1)
            back = (schedule.src - schedule.dst) * (1 if collective is ALL_GATHER else -1) % n
            assert set(np.log2(back).tolist()) <= set(range(levels(n)))
            assert sent_in_step(schedule, n).max() <= a
    for a in (3, p, -1):
        with pytest.raises(ScheduleError, match=r"needs a power of two"):
            find(ALL_GATHER, "pat").build(n, aggregation=a)


def test_pat_walks_as_nccl_does() -> None:
    """Distances of D = 8: 4 6 7 5 2 3 1."""
    schedule = find(ALL_GATHER, "pat").build(8, aggregation=1)
    first = [int(np.argmax(schedule.step == step)) for step in range(7)]
    assert ((schedule.chunk - schedule.dst)[first] % 8).tolist() == [4, 6, 7, 5, 2, 3, 1]


@pytest.mark.parametrize("n", MANY)
def test_trees_of_any_radix(n: int) -> None:
    for radix in (2, 3, 4, 7):
        tree = find(BROADCAST, "k-nomial-tree").build(n, radix=radix, root=n - 1)
        check(tree)
        assert tree.steps == next(k for k in range(n + 1) if radix**k >= n)
        assert np.bincount(tree.src).max() <= (radix - 1) * tree.steps
        assert len(tree) == n - 1
    two, binomial = find(BROADCAST, "k-nomial-tree").build(n, radix=2), find(BROADCAST, "binomial-tree").build(n)
    assert np.array_equal(two.src, binomial.src)
    assert np.array_equal(two.dst, binomial.dst)
    with pytest.raises(ScheduleError, match="radix"):
        find(REDUCE, "k-nomial-tree").build(n, radix=1)


@pytest.mark.parametrize("n", MANY)
def test_broadcasts_of_long_data(n: int) -> None:
    m = 60 * n
    long = find(BROADCAST, "scatter-all-gather").build(n, root=n - 1)
    assert long.steps == levels(n) + n - 1
    assert sent(long, m).max() <= 2 * (m - m / n)
    assert find(REDUCE, "reduce-scatter-gather").build(n).steps == levels(n) + n - 1
    for collective in (BROADCAST, REDUCE):
        double = find(collective, "double-binary-tree").build(n, root=1)
        assert double.steps == levels(n - 1) + 1
        assert sent(double, m).sum() == (n - 1) * m
        assert sent(double, m).max() <= m * (1 if n % 2 or collective is REDUCE else 1.5)
    star = make("star", {"gpus": n, "latency": 0.0})
    many = find(BROADCAST, "double-binary-tree").build(n, slices=64)
    one = simulate(star, [Launch(many, 64 << 20, Placement.of(star, many))]).time / ((64 << 20) / star.links[0].bandwidth)
    assert 1 - 1e-12 <= one < 1.65


@pytest.mark.parametrize("n", MANY)
def test_one_and_two_shots(n: int) -> None:
    m = 60 * n
    one, two = find(ALL_REDUCE, "one-shot").build(n), find(ALL_REDUCE, "two-shot").build(n)
    assert (one.steps, two.steps) == (1, 2)
    assert (sent(one, m) == (n - 1) * m).all()
    assert (sent(two, m) == 2 * (m - m / n)).all()


def test_binary_blocks_send_less_than_folding() -> None:
    """n = 12: 1.875 M against halving-doubling's 2.75 M and ring's 1.83 M."""
    m = 960
    assert sent(find(ALL_REDUCE, "binary-blocks").build(12), m).max() == 1.875 * m
    assert sent(find(ALL_REDUCE, "halving-doubling").build(12), m).max() == 2.75 * m
    for n in MANY:
        schedule, p = find(ALL_REDUCE, "binary-blocks").build(n), 1 << (n.bit_length() - 1)
        assert schedule.steps == 2 * (p.bit_length() - 1 + n.bit_count() - 1)
        assert sent(schedule, 64 * n).max() <= 3 * 64 * n
        if n == p:
            assert (sent(schedule, 64 * n) == 2 * 64 * (n - 1)).all()


@pytest.mark.parametrize(("p", "load", "doubling", "latency"), [(8, 1.0, 1.5, 4), (16, 1.1875, 2.0, 7), (32, 1.375, 2.5, 13)])
def test_swing_loads_a_ring_less(p: int, load: float, doubling: float, latency: int) -> None:
    m = 4 * p
    assert ring_load(find(REDUCE_SCATTER, "swing").build(p), m) == load * m
    assert ring_load(find(ALL_REDUCE, "swing-latency").build(p), m) == latency * m
    halving = find(ALL_REDUCE, "halving-doubling").build(p)
    first = {key: column[halving.step < halving.steps // 2] for key, column in halving.columns().items()}
    half = Schedule(**{f: getattr(halving, f) for f in ("name", "collective", "nranks", "places", "nchunks", "root", "weights")}, **first)
    assert ring_load(half, m) == doubling * m
    assert ring_load(find(ALL_REDUCE, "recursive-doubling").build(p), m) == (p - 1) * m


@pytest.mark.parametrize("n", [2, 4, 6, 8, 10, 12, 20, 22, 30, 32, 34])
def test_swing_takes_any_even_number(n: int) -> None:
    m = 60 * n
    schedule = find(ALL_REDUCE, "swing").build(n)
    assert schedule.steps == 2 * levels(n)
    assert (sent(schedule, m) == 2 * (m - m / n)).all()
    assert messages(schedule) == n * schedule.steps
    with pytest.raises(ScheduleError, match="needs an even number of ranks"):
        find(ALL_REDUCE, "swing").build(n + 1)


@pytest.mark.parametrize("dims", ["4x4", "2x3", "3x2x4", "2x2x2x2", "7", "1x5", "8x4"])
@pytest.mark.parametrize("bidirectional", [0, 1])
def test_bucket_steps_and_volumes(dims: str, bidirectional: int) -> None:
    sizes = [int(d) for d in dims.split("x")]
    n = math.prod(sizes)
    m = 120 * n * len(sizes)
    for collective, times in ((ALL_REDUCE, 2), (REDUCE_SCATTER, 1), (ALL_GATHER, 1)):
        schedule = find(collective, "torus-bucket").build(n, dims=dims, bidirectional=bidirectional)
        check(schedule)
        assert schedule.steps == times * sum(d - 1 for d in sizes)
        assert (sent(schedule, m) == times * (m - m / n)).all()
    stride = np.array([math.prod(sizes[i + 1 :]) for i in range(len(sizes))])
    moved = schedule.src[:, None] // stride % sizes - schedule.dst[:, None] // stride % sizes
    assert ((moved != 0).sum(axis=1) == 1).all()  # only neighbours on the torus
    assert (np.isin(moved % sizes, [[0], [1]]) | (moved % sizes == np.array(sizes) - 1)).all()
    with pytest.raises(ScheduleError, match="needs"):
        find(ALL_REDUCE, "torus-bucket").build(n + 1, dims=dims)
    with pytest.raises(ScheduleError, match="write dims=4x4"):
        find(ALL_REDUCE, "torus-bucket").build(n, dims="4x0")


def test_bucket_uses_all_links_of_a_torus() -> None:
    """Two rotated copies halve the time of one, both directions halve it again (without latency)."""
    torus = make("torus", {"dims": (4, 4), "latency": 0.0})
    rate, m = torus.links[0].bandwidth, 16 * 16 * 4096
    for bidirectional, share in ((0, 2), (1, 4)):
        schedule = find(ALL_REDUCE, "torus-bucket").build(16, bidirectional=bidirectional)
        ran = simulate(torus, [Launch(schedule, m, Placement.of(torus, schedule))])
        assert ran.time == pytest.approx(2 * (15 / 16) * m / rate / share, rel=1e-9)


@pytest.mark.parametrize("n", MANY)
def test_all_to_all_volumes(n: int) -> None:
    m = 4 * n
    pairwise, direct, bruck = (find(ALL_TO_ALL, name).build(n) for name in ("pairwise", "direct", "bruck"))
    assert (pairwise.steps, direct.steps, bruck.steps) == (n - 1, 1, levels(n))
    for schedule in (pairwise, direct):
        assert (sent(schedule, m) == m - 4).all()
    for step in range(n - 1):  # perfect matchings: everyone sends once and receives once
        now = pairwise.step == step
        assert sorted(pairwise.src[now]) == sorted(pairwise.dst[now]) == list(range(n))
    wanted = [4 * sum(1 for j in range(n) if j >> k & 1) for k in range(levels(n))]
    assert (sent_in_step(bruck, m) == np.array(wanted)[:, None]).all()
    assert messages(bruck) == n * levels(n)


def test_bruck_volumes_of_twelve() -> None:
    assert sent_in_step(find(ALL_TO_ALL, "bruck").build(12), 12)[:, 0].tolist() == [6, 6, 4, 4]


@pytest.mark.parametrize("name", ["pairwise", "direct", "bruck", "hierarchical"])
@pytest.mark.parametrize("slices", [1, 2])
def test_uneven_all_to_all(name: str, slices: int) -> None:
    n, rng = 6, np.random.default_rng(5)
    counts = rng.integers(1, 9, (n, n))
    schedule = uneven(find(ALL_TO_ALL, name).build(n, slices=slices), counts)
    check(schedule)
    rows = 12 * counts.sum(axis=1)
    inputs = [np.arange(rows[p]) + 10_000 * p for p in range(n)]
    total = 12 * int(counts.sum())
    assert matches(schedule, numpy_executor.run(schedule, inputs)[0], inputs)
    if name != "bruck":
        own = 12 * counts.trace()
        hops = sent(schedule, total // n).sum()
        assert hops == total - own if name != "hierarchical" else hops > total - own
    with pytest.raises(ScheduleError, match="36 whole numbers"):
        uneven(schedule, counts[:, 1:])


def test_uneven_all_gather_and_scatter() -> None:
    for collective, name in ((ALL_GATHER, "ring"), (ALL_GATHER, "bruck"), (REDUCE_SCATTER, "pat"), (SCATTER, "binomial-tree")):
        schedule = uneven(find(collective, name).build(5), [1, 7, 2, 5, 3])
        check(schedule)
        assert np.diff(schedule.chunk_bounds(36)).tolist() == [2, 14, 4, 10, 6]


@pytest.mark.parametrize("n", [3, 5, 8, 12])
@pytest.mark.parametrize(
    ("collective", "name", "dual"),
    [
        ("broadcast", "flat", "reduce"), ("broadcast", "binomial-tree", "reduce"), ("broadcast", "k-nomial-tree", "reduce"),
        ("broadcast", "chain", "reduce"), ("broadcast", "double-binary-tree", "reduce"),
        ("scatter", "binomial-tree", "gather"), ("scatter", "flat", "gather"),
        ("all-gather", "bruck", "reduce-scatter"), ("all-gather", "pat", "reduce-scatter"), ("all-gather", "direct", "reduce-scatter"),
        ("all-gather", "ring", "reduce-scatter"), ("all-gather", "recursive-doubling", "reduce-scatter"),
        ("all-gather", "swing", "reduce-scatter"), ("all-gather", "hierarchical", "reduce-scatter"),
        ("all-gather", "torus-bucket", "reduce-scatter"), ("all-gather", "multi-ring", "reduce-scatter"),
    ],
)  # fmt: skip
def test_reversed_time_takes_as_long(collective: str, name: str, dual: str, n: int) -> None:
    """On a star of equal links, step by step (else a queue orders what its reverse lets share a port), sums and overhead free."""
    algorithm = find(COLLECTIVES[collective], name)
    if algorithm.refusal(n):
        return
    star, forward = make("star", {"gpus": n}), algorithm.build(n)
    back = reverse("back", COLLECTIVES[dual], forward)
    check(back)
    times = [simulate(star, [Launch(s, 4 * 5040, Placement.of(star, s))], Model(barrier=True)).time for s in (forward, back)]
    assert times[0] == pytest.approx(times[1], rel=1e-9)


@pytest.mark.parametrize("n", range(2, 20))
def test_rings_of_one_server_share_no_link(n: int) -> None:
    orders = ring_orders(np.arange(n)[None])
    assert len(orders) == max(1, 2 * ((n - 1) // 2)) or n <= 2
    links = [(a, b) for order in orders for a, b in zip(order, order[1:] + order[:1], strict=True)]
    assert all(sorted(order) == list(range(n)) for order in orders)
    assert len(set(links)) == len(links)
