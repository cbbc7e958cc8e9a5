"""Algorithms that know servers, and those that use switches: volumes inside and between servers, defaults, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.checker import check
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, REDUCE_SCATTER
from algorithms.multi_ring import ring_orders
from algorithms.registry import Dims, catalogue, find
from algorithms.schedule import Schedule
from sim.bounds import bounds
from sim.simulate import make_launch, run_collective
from topologies import make
from topologies.errors import ScheduleError

GROUPED = [a for a in catalogue() if a.takes("groups") and a.name != "sharp"]
GRIDS = [(1, 4), (2, 1), (2, 4), (3, 2), (4, 8), (5, 3), (8, 2), (2, 8)]


def servers(count: int, size: int, seed: int | None = None) -> tuple[tuple[int, ...], ...]:
    """Groups of ranks, in order or shuffled."""
    ranks = np.arange(count * size) if seed is None else np.random.default_rng(seed).permutation(count * size)
    return tuple(map(tuple, ranks.reshape(count, size).tolist()))


def pairs(schedule: Schedule, elements: int) -> np.ndarray:
    """Shape [places, places]: elements from each place to each other."""
    moved = np.zeros((schedule.places, schedule.places))
    np.add.at(moved, (schedule.src, schedule.dst), schedule.send_elements(elements))
    return moved


def inside_and_out(schedule: Schedule, groups: tuple[tuple[int, ...], ...], elements: int) -> tuple[np.ndarray, np.ndarray]:
    """Elements that each rank sends to ranks of its own server, and to others."""
    home = np.empty(schedule.nranks, dtype=int)
    for k, group in enumerate(groups):
        home[list(group)] = k
    moved = pairs(schedule, elements)[: schedule.nranks, : schedule.nranks]
    same = home[:, None] == home[None, :]
    return (moved * same).sum(axis=1), (moved * ~same).sum(axis=1)


@pytest.mark.parametrize("algorithm", GROUPED, ids=lambda a: f"{a.collective.name}-{a.name}")
def test_any_equal_groups(algorithm) -> None:  # type: ignore[no-untyped-def]
    for count, size in GRIDS:
        check(algorithm.build(count * size, groups=servers(count, size, seed=count), slices=1 + count % 2))
    with pytest.raises(ScheduleError, match="needs groups of equal size"):
        algorithm.build(5, groups="0,1/2,3,4")
    with pytest.raises(ScheduleError, match=r"each rank 0\.\.5 once"):
        algorithm.build(6, groups="0,1,2/2,3,4")


@pytest.mark.parametrize(("count", "size"), GRIDS)
def test_two_levels_of_rings(count: int, size: int) -> None:
    groups, n = servers(count, size, seed=1), count * size
    m = 24 * n
    for collective, times in ((ALL_REDUCE, 2), (REDUCE_SCATTER, 1), (ALL_GATHER, 1)):
        schedule = find(collective, "hierarchical").build(n, groups=groups)
        assert schedule.steps == times * (size - 1 + count - 1)
        inside, out = inside_and_out(schedule, groups, m)
        assert (inside == times * (size - 1) * m / size).all()
        assert (out == times * (count - 1) * m / n).all()


def test_three_levels() -> None:
    groups = servers(6, 4, seed=2)
    schedule = find(ALL_REDUCE, "hierarchical-3").build(24, groups=groups, servers=3)
    assert schedule.steps == 2 * (3 + 2 + 1)
    inside, out = inside_and_out(schedule, groups, 2400)
    assert (inside == 2 * 3 * 2400 / 4).all()
    assert (out == 2 * (2 * 2400 / 12 + 2400 / 24)).all()
    racks = (sum(groups[:3], ()), sum(groups[3:], ()))
    assert (inside_and_out(schedule, racks, 2400)[1] == 2 * 2400 / 24).all()
    with pytest.raises(ScheduleError, match="needs a divisor of 6"):
        find(ALL_REDUCE, "hierarchical-3").build(24, groups=groups, servers=4)


@pytest.mark.parametrize(("count", "size"), GRIDS)
def test_two_level_all_to_all(count: int, size: int) -> None:
    """(g-1) M/g inside; (K-1) M/K outside, all of it between GPUs of equal number (one rail)."""
    groups, n = servers(count, size, seed=3), count * size
    schedule = find(ALL_TO_ALL, "hierarchical").build(n, groups=groups)
    m = 2 * n
    inside, out = inside_and_out(schedule, groups, m)
    assert schedule.steps == size - 1 + count - 1
    assert (inside == (size - 1) * m / size).all()
    assert (out == (count - 1) * m / count).all()
    rails = tuple(zip(*groups, strict=True))
    assert (inside_and_out(schedule, rails, m)[0] == out).all()


@pytest.mark.parametrize(("count", "size"), [(2, 4), (3, 4), (4, 8), (5, 2), (8, 8), (3, 5)])
def test_multi_ring_crosses_on_every_rail(count: int, size: int) -> None:
    orders = ring_orders(np.arange(count * size).reshape(count, size))
    assert len(orders) == size
    links, rail_in, rail_out, changes = [], np.zeros((count, size), int), np.zeros((count, size), int), 0
    for order in orders:
        assert sorted(order) == list(range(count * size))
        for a, b in zip(order, order[1:] + order[:1], strict=True):
            if a // size == b // size:
                links.append((a, b))
            else:
                rail_out[a // size, a % size] += 1
                rail_in[b // size, b % size] += 1
                changes += a % size != b % size
    assert (rail_in == 1).all()
    assert (rail_out == 1).all()
    assert changes == (size if count % 2 else 0)  # once a ring where servers are odd in number
    if size % 2 == 0:
        assert len(set(links)) == len(links)


def test_multi_ring_uses_the_rails_of_a_cluster() -> None:
    """C rings of M/C: eight NICs of a server share what one would carry alone."""
    two = make("dgx-h100", {"nodes": 2})
    one, all_rails = (run_collective(two, "all-reduce", "multi-ring", 1 << 28, options={"rings": rings}).time for rings in (1, 0))
    assert one / all_rails == pytest.approx(8, rel=0.05)
    with pytest.raises(ScheduleError, match="between 1 and 8"):
        run_collective(two, "all-reduce", "multi-ring", 1 << 20, options={"rings": 9})


@pytest.mark.parametrize("pattern", [1, 2, 3])
@pytest.mark.parametrize(("count", "busiest"), [(2, 1.0), (3, 1.5), (4, 2.0), (5, 2.0), (6, 2.0), (8, 2.0), (16, 2.0)])
def test_nccl_tree_traffic_of_a_server(count: int, busiest: float, pattern: int) -> None:
    """The busiest server sends S over the network at 2 servers, 1.5 S at 3, 2 S from 4 on (NCCL's tuner and trees)."""
    groups, m = servers(count, 4), 960
    schedule = find(ALL_REDUCE, "nccl-tree").build(4 * count, groups=groups, pattern=pattern)
    check(schedule)
    out = inside_and_out(schedule, groups, m)[1].reshape(count, 4)
    assert out.sum(axis=1).max() == busiest * m
    if pattern == 3:
        assert (out == out[:, :1]).all()  # every rail alike
    assert schedule.steps <= 2 * (3 * (1 + (count - 1).bit_length()) + (count - 1).bit_length())
    with pytest.raises(ScheduleError, match="pattern"):
        find(ALL_REDUCE, "nccl-tree").build(8, pattern=4)


def test_nccl_tree_attaches_as_the_patterns_say() -> None:
    """Four servers of three, rail 0, first tree: server 1 and 3 are children of 2, which is the child of 0."""
    for pattern, (first, second) in {1: (1, 0), 2: (1, 1), 3: (0, 0)}.items():
        schedule = find(ALL_REDUCE, "nccl-tree").build(12, groups=servers(4, 3), pattern=pattern)
        mine = (schedule.chunk == 0) & (schedule.op == 1) & (schedule.src // 3 != schedule.dst // 3)
        up = sorted(zip(schedule.src[mine].tolist(), schedule.dst[mine].tolist(), strict=True))
        assert up == [(3, 6 + first), (6, 0 + second), (9, 6 + second)]


@pytest.mark.parametrize("n", [2, 3, 4, 8, 16])
def test_nvls_volume(n: int) -> None:
    """M (1 + 1/n) out of and into every GPU, in four steps; the sum leaves the switch once, the result n times."""
    m = 12 * n
    schedule = find(ALL_REDUCE, "nvls").build(n)
    moved = pairs(schedule, m)
    assert schedule.steps == 4
    assert (moved[:n].sum(axis=1) == m + m / n).all()
    assert (moved[:, :n].sum(axis=0) == m + m / n).all()
    assert not moved[:n, :n].any()


@pytest.mark.parametrize(("count", "size"), [(2, 4), (3, 2), (4, 8)])
def test_nvls_over_servers(count: int, size: int) -> None:
    groups, n, m = servers(count, size), count * size, 48 * size
    sharp = pairs(find(ALL_REDUCE, "nvls").build(n, groups=groups), m)
    assert (sharp[:n, n + count :].sum(axis=1) == m / size).all()  # a slice up to the network and down
    assert (sharp[n + count :, :n].sum(axis=0) == m / size).all()
    tree = find(ALL_REDUCE, "nvls-tree").build(n, groups=groups)
    assert tree.steps == 4 + 2 * (count - 1).bit_length()
    assert tree.places == n + count
    out = inside_and_out(tree, groups, m)[1]
    assert out.reshape(count, size).sum(axis=1).max() == {2: 1.0, 3: 1.5, 4: 2.0}[count] * m
    assert inside_and_out(tree, groups, m)[0].sum() == 0


@pytest.mark.parametrize(("count", "size"), [(2, 4), (3, 2), (4, 8), (4, 1)])
def test_collnet_sends_one_share_a_rail(count: int, size: int) -> None:
    groups, n, m = servers(count, size), count * size, 48 * size
    for name, steps in (("collnet-chain", 2 * size), ("collnet-direct", 4 if size > 1 else 3)):
        schedule = find(ALL_REDUCE, name).build(n, groups=groups)
        moved = pairs(schedule, m)
        assert schedule.steps == steps
        assert schedule.places == n + size
        assert (moved[:n, n:].sum(axis=1) == m / size).all()
        assert (moved[n:, :n].sum(axis=0) == m / size).all()
        assert (moved[:n, :n].sum(axis=1) == 2 * (size - 1) * m / size).all()


@pytest.mark.parametrize("algorithm", GROUPED, ids=lambda a: f"{a.collective.name}-{a.name}")
def test_servers_of_the_topology_are_the_default(algorithm) -> None:  # type: ignore[no-untyped-def]
    """On two servers, told or not; on a star, which has none, the algorithm chooses; no time is below the bound."""
    two = make("dgx-h100", {"nodes": 2, "gpus": 4})
    launches = [
        make_launch(two, algorithm.collective.name, algorithm.name, 1 << 20, options=options)
        for options in ({}, {"groups": "servers"}, {"groups": "0,1,2,3/4,5,6,7"})
    ]
    made = [launch.schedule for launch in launches]
    for other in made[1:]:
        assert all(np.array_equal(a, b) for a, b in zip(made[0].columns().values(), other.columns().values(), strict=True))
    ran = run_collective(two, algorithm.collective.name, algorithm.name, 1 << 20)
    assert ran.time >= bounds(two, algorithm.collective, 1 << 20, in_network=made[0].in_network).lower_bound_s * (1 - 1e-12)
    check(make_launch(make("star", {"gpus": 6}), algorithm.collective.name, algorithm.name, 1 << 10).schedule)


def test_dims_are_read() -> None:
    option = next(o for o in find(ALL_REDUCE, "torus-bucket").options if o.name == "dims")
    assert option.type is Dims
    built = [find(ALL_REDUCE, "torus-bucket").build(6, dims=dims) for dims in ("2x3", (2, 3), [2, 3], Dims((2, 3)))]
    assert all(np.array_equal(built[0].dst, other.dst) for other in built)
    for bad in ("2x", "x", "2x-3", "", 6, None, "2.0x3"):
        if bad is not None:
            with pytest.raises(ScheduleError, match="write dims=4x4"):
                find(ALL_REDUCE, "torus-bucket").build(6, dims=bad)


def test_data_parallel_leaves_the_links_of_workers_idle() -> None:
    """One GPU's port carries n-1 times the data each way, the others one; the ring does the same in 2(n-1)/n."""
    star, m = make("star", {"gpus": 8, "latency": 0.0}), 8 << 20
    moved = pairs(find(ALL_REDUCE, "data-parallel").build(8, root=3), m)
    assert moved.sum(axis=1)[3] == moved.sum(axis=0)[3] == 7 * m
    assert sorted(moved.sum(axis=1))[:7] == [m] * 7
    slow, ring = (run_collective(star, "all-reduce", name, m).time for name in ("data-parallel", "ring"))
    assert slow / ring == pytest.approx(8, rel=1e-6)


def test_slices_pass_one_another_in_switches() -> None:
    """Many slices bring NVLS to M(1+1/n)/B, and sums on their way up never wait behind results on their way down."""
    star, m = make("star", {"gpus": 8, "latency": 0.0}), 64 << 20
    share = run_collective(star, "all-reduce", "nvls", m, slices=64).time / (m / star.links[0].bandwidth)
    assert 1 + 1 / 8 <= share < 1.14
    two, fabric = make("dgx-h100", {"nodes": 2}), make("leaf-spine")
    for name in ("nvls", "nvls-tree", "collnet-chain", "collnet-direct", "sharp"):
        machine = fabric if name == "sharp" else two
        whole, sliced = (run_collective(machine, "all-reduce", name, m, slices=slices).time for slices in (1, 32))
        assert sliced < 0.6 * whole, name


def test_switches_that_meet_only_through_gpus_are_refused() -> None:
    """The rails of a few DGX have no switch in common: sums would go down to a GPU and up another NIC."""
    with pytest.raises(ScheduleError, match=r"sharp: dgx-h100-2x8: needs switches joined by switches; .* pass a GPU, such as s0.gpu0"):
        run_collective(make("dgx-h100", {"nodes": 2}), "all-reduce", "sharp", 1 << 20)
