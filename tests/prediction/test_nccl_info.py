"""Lines of NCCL_DEBUG=INFO written here, of several ages and ranks in any order, read back."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prediction.nccl_facts import Channels, Choice, Communicator, Tree
from prediction.nccl_facts import Path as PathTo
from prediction.nccl_info import read_info, read_info_text
from topologies.errors import MeasurementError

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "inputs" / "nccl-info"


def say(rank: int, *bodies: str, local: int = 8) -> list[str]:
    return [f"host{rank // local}:{100 + rank}:{900 + rank} [{rank % local}] NCCL INFO {body}" for body in bodies]


def one(lines: list[str]) -> Communicator:
    (found,) = read_info_text("\n".join(lines), "x").communicators
    return found


@given(n=st.integers(2, 24), channels=st.integers(1, 4), seed=st.integers(0, 999))
@settings(max_examples=50, deadline=None)
def test_rings_and_trees_of_all_ranks_in_any_order(n: int, channels: int, seed: int) -> None:
    chance = random.Random(seed)
    orders = [[0, *chance.sample(range(1, n), n - 1)] for _ in range(channels)]
    parents = [{rank: chance.randrange(rank) if rank else None for rank in range(n)} for _ in range(channels)]
    for c in range(channels):  # NCCL prints three places below
        while max(sum(parents[c][r] == p for r in range(n)) for p in range(n)) > 3:
            parents[c] = {rank: max(rank - chance.randint(1, 2), 0) if rank else None for rank in range(n)}
    lines = []
    for rank in range(n):
        trees = []
        for c in range(channels):
            below = [r for r in range(n) if parents[c][r] == rank]
            up = parents[c][rank]
            trees.append(f"[{c}] {'/'.join(map(str, (below + [-1] * 3)[:3]))}->{rank}->{-1 if up is None else up}")
        mine = say(rank, f"comm 0x5f{rank:x} rank {rank} nRanks {n} nNodes {-(-n // 8)} localRanks 8 localRank {rank % 8} MNNVL 0")
        mine += say(rank, "Trees " + " ".join(trees))
        for c, order in enumerate(orders):
            at = order.index(rank)
            mine += say(rank, f"Ring {c:02} : {order[at - 1]} -> {rank} -> {order[(at + 1) % n]}")
        lines.append(mine)
    mixed = []
    while any(lines):  # of each rank in its order
        mixed.append(chance.choice([mine for mine in lines if mine]).pop(0))
    found = one(mixed)
    assert (found.nranks, found.nnodes) == (n, -(-n // 8))
    assert found.rings == {c: tuple(order) for c, order in enumerate(orders)}
    assert found.ring_complete(0)
    for c in range(channels):
        for rank in range(n):
            below = tuple(r for r in range(n) if parents[c][r] == rank)
            assert found.trees[c, rank] == Tree(parents[c][rank], below)


def test_a_ring_that_was_cut_is_closed_by_its_neighbours_or_left_incomplete() -> None:
    head = say(0, "comm 0x1 rank 0 nranks 4 cudaDev 0 busId e000 - Init COMPLETE", "Channel 00/02 :    0   2", "Channel 01/02 :    0   3")
    order = [0, 2, 3, 1]
    rings = [line for i, rank in enumerate(order) for line in say(rank, f"Ring 00 : {order[i - 1]} -> {rank} -> {order[(i + 1) % 4]}")]
    found = one(head + rings)
    assert found.rings == {0: (0, 2, 3, 1), 1: (0, 3)}
    assert (found.ring_complete(0), found.ring_complete(1), found.ring_complete(2)) == (True, False, False)


NEW_TABLE = """NCCL version 2.21.5+cuda12.4
  Algorithm   |                            Tree                  |                            Ring                  |
  Protocol    |             LL |          LL128 |         Simple |             LL |          LL128 |         Simple |
 Max NThreads |            512 |            640 |            512 |            512 |            640 |            512 |
    AllReduce |    25.2/  16.6 |    48.5/ 124.8 |   448.0/ 140.8 |    43.4/  20.8 |    79.4/ 156.6 |   131.6/ 204.8 |
  Algorithm   |                            NVLS                  |
  Protocol    |             LL |          LL128 |         Simple |
    AllReduce |     0.0/   0.0 |     0.0/   0.0 |    25.0/ 266.7 |"""
OLD_TABLE = """Latency/AlgBw |    Tree/    LL |    Tree/ LL128 |    Tree/Simple |    Ring/    LL | CollNet/Simple |
 Max NThreads |            512 |            640 |            512 |            512 |            512 |
ReduceScatter |     0.0/   0.0 |     1.5/   2.5 |     3.5/   4.5 |     6.3/   0.8 |     7.5/   8.5 |"""


def test_tuning_tables_of_both_forms() -> None:
    found = one(say(0, *NEW_TABLE.split("\n"), *OLD_TABLE.split("\n")))
    assert len(found.tuning) == 6 + 3 + 5
    for key, microseconds, gigabytes in (
        (("all-reduce", "tree", "ll"), 25.2, 16.6),
        (("all-reduce", "ring", "ll128"), 79.4, 156.6),
        (("all-reduce", "nvls", "simple"), 25.0, 266.7),
        (("all-reduce", "nvls", "ll"), 0.0, 0.0),
        (("reduce-scatter", "tree", "ll128"), 1.5, 2.5),
        (("reduce-scatter", "collnet-direct", "simple"), 7.5, 8.5),
    ):
        assert found.tuning[key] == (pytest.approx(microseconds * 1e-6), pytest.approx(gigabytes * 1e9))


def test_choices_of_all_ages() -> None:
    found = one(say(
        0, "64 Bytes -> Algo 0 proto 0 time 25.207", "AllReduce: 1048576 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..15}",
        "AllGather: 4096 Bytes -> Algo NVLSTree proto LL128 channel{Lo..Hi}={2..7}", "7 Bytes -> Algo 6 proto 2 time 1.5",
    ))  # fmt: skip
    assert found.choices[:3] == (
        Choice(None, 64, "tree", "ll", pytest.approx(25.207e-6), None, 1),
        Choice("all-reduce", 1048576, "ring", "simple", None, (0, 15), 2),
        Choice("all-gather", 4096, "nvls-tree", "ll128", None, (2, 7), 3),
    )
    assert (found.choices[3].algorithm, found.choices[3].protocol) == ("pat", "simple")


def test_what_is_said_of_the_machine() -> None:
    lines = say(
        0, "NCCL_ALGO set by environment to Tree.", "NET/IB : Using [0]mlx5_0:1/RoCE [1]mlx5_2:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        "Using network IB", "NVLS multicast support is not available on dev 0",
        "comm 0x1 rank 0 nRanks 16 nNodes 2 localRanks 8 localRank 0 MNNVL 0",
        "Pattern 4, crossNic 1, nChannels 2, bw 40.000000/24.500000, type NVL/PIX, sameChannels 1",
        " 0 : NET/0-0 GPU/0-11000 GPU/0-12000 NET/0-0", " 1 : NET/0-1 GPU/0-12000 GPU/0-11000 NET/0-1",
        "Pattern 1, crossNic 0, nChannels 1, speed 20.0/12.0, type NVL/PXB, sameChannels 0", " 0 : NET/0 GPU/11000 GPU/12000",
        "GPU/0-11000 :GPU/0-11000 (0/5000.0/LOC) GPU/0-12000 (2/370.8/NVL) NET/0-0 (3/48.0/PIX)",
        "Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM/read", "Channel 00/0 : 9[1] -> 0[0] [receive] via NET/IB/0/GDRDMA",
        "Channel 01 : 0[e000] -> 1[13000] via SHM/direct/direct", "NVLS Head  0:  0  8",
        "16 coll channels, 4 collnet channels, 12 nvls channels, 32 p2p channels, 2 p2p channels per peer",
    )  # fmt: skip
    info = read_info_text("host0:100:900 [0] NCCL version 2.27.5+cuda12.9\n" + "\n".join(lines), "x")
    assert (info.version, info.cuda, info.environment) == ((2, 27, 5), "12.9", {"NCCL_ALGO": "Tree"})
    assert info.nets == ("mlx5_0:1/RoCE", "mlx5_2:1/IB", "IB")
    assert (info.nvls, info.collnet) == (True, True)  # NVLS channels are counted, whatever device 0 said
    (found,) = info.communicators
    assert found.channels == Channels(16, 4, 12, 32, 2)
    ring, tree = found.searches
    assert (ring.pattern, ring.cross_nic, ring.nchannels, ring.bw_intra_Bps, ring.bw_inter_Bps) == (4, 1, 2, 40e9, 24.5e9)
    assert ring.channels[1] == ("NET/0-1", "GPU/0-12000", "GPU/0-11000", "NET/0-1")
    assert (tree.type_intra, tree.type_inter, tree.same_channels, tree.channels) == (
        "NVL",
        "PXB",
        False,
        (("NET/0", "GPU/11000", "GPU/12000"),),
    )
    assert found.paths["host0", "GPU/0-11000", "GPU/0-12000"] == PathTo(2, pytest.approx(370.8e9), "NVL")
    assert len(found.paths) == 3
    assert found.connections == {
        (0, 0, 1, "both"): "P2P/CUMEM/read", (0, 9, 0, "receive"): "NET/IB/0/GDRDMA", (1, 0, 1, "both"): "SHM/direct/direct"
    }  # fmt: skip
    assert found.nvls_heads == {0: (0, 8)}
    assert info.notes == ()


def test_communicators_of_several_sizes_are_kept_apart() -> None:
    first = say(0, "comm 0x1 rank 0 nRanks 4 nNodes 1 localRanks 4", "Channel 00/01 : 0 1 2 3")
    second = say(0, "comm 0x2 rank 0 nRanks 2 nNodes 1 localRanks 2", "Channel 00/01 : 0 1", "Channel 00/01 : 1 0")
    info = read_info_text("\n".join(first + second), "x")
    assert [(c.nranks, c.rings) for c in info.communicators] == [(4, {0: (0, 1, 2, 3)}), (2, {0: (0, 1)})]
    assert info.notes == ("said again with another value, the first is kept (1): x:5: rings 0",)


def test_lines_of_two_communicators_may_alternate() -> None:
    first = say(0, "comm 0x1 rank 0 nRanks 4 nNodes 1 localRanks 4", "Channel 00/01 : 0 1 2 3")
    other = say(5, "comm 0x2 rank 0 nRanks 3 nNodes 1 localRanks 3", "Channel 00/01 : 0 2 1")
    proxy = [line.replace(":900 ", ":77 ") for line in say(0, "Ring 00 : 3 -> 0 -> 1")]  # another thread of the first process
    lines = [line for pair in zip(other, first, strict=True) for line in pair]
    large, small = read_info_text("\n".join(lines + proxy), "x").communicators
    assert (large.nranks, large.rings, large.neighbours) == (4, {0: (0, 1, 2, 3)}, {(0, 0): (3, 1)})
    assert (small.nranks, small.rings, small.neighbours) == (3, {0: (0, 2, 1)}, {})


def test_searches_are_those_of_one_process() -> None:
    """Each rank prints the graphs it found: lines of two that alternate belong to the one that said them, and the first counts."""
    comm = [line for rank in (0, 1) for line in say(rank, f"comm 0x{rank} rank {rank} nRanks 4 nNodes 1 localRanks 4")]
    first = say(0, "Pattern 4, crossNic 0, nChannels 2, bw 40.0/40.0, type NVL/PIX, sameChannels 1", " 0 : GPU/0 GPU/1", " 1 : GPU/1 GPU/0")
    second = say(1, "Pattern 1, crossNic 0, nChannels 1, bw 7.0/7.0, type NVL/PIX, sameChannels 0", " 0 : GPU/8 GPU/9", " 1 : GPU/9 GPU/8")
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    (search,) = one(comm + mixed).searches
    assert (search.pattern, search.bw_intra_Bps, search.channels) == (4, 40e9, (("GPU/0", "GPU/1"), ("GPU/1", "GPU/0")))
    unknown = [line.replace("host0:101:901", "host9:7:7") for line in mixed]  # of a process that has not said its communicator
    assert one(comm + unknown).searches == (search,)
    (other,) = one(comm + mixed[1::2]).searches
    assert (other.pattern, other.channels) == (1, (("GPU/8", "GPU/9"),))  # one channel was announced


def test_lines_glued_together_and_without_prefix() -> None:
    text = "NCCL INFO Channel 00/01 :  0  1\n" + "x:1:2 [3] NCCL INFO a x:1:2 [3] NCCL INFO Trees [0] 1/-1/-1->0->-1|0->1->-1/-1/-1\n"
    found = one(text.split("\n"))
    assert (found.rings, found.trees) == ({0: (0, 1)}, {(0, 0): Tree(None, (1,))})


def test_a_log_of_something_else_is_refused() -> None:
    with pytest.raises(MeasurementError, match=r"^x: no line of NCCL INFO; run with NCCL_DEBUG=INFO"):
        read_info_text("8 2 float sum -1 20.0 0.0 0.0 0\n", "x")
    assert read_info_text("NCCL version 2.18.3\n", "x").communicators == ()


def test_more_facts_than_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prediction.nccl_info.MAX_FACTS", 5)
    lines = say(0, *(f"Ring {c:02} : 1 -> 0 -> 1" for c in range(9)))
    with pytest.raises(MeasurementError, match=r"^x:6: more than 5 facts; keep the lines of fewer ranks"):
        read_info_text("\n".join(lines), "x")


def test_full_width_digits_are_no_ranks() -> None:
    assert one(say(0, "Channel 00/01 : ０ １", "Channel 01/02 : 0 1")).rings == {1: (0, 1)}


def real(name: str) -> Communicator:
    path = SHARED / name
    if not path.exists():
        pytest.skip(f"{name} is not beside the checkout")
    info = read_info(path)
    assert info.notes == ()
    (found,) = info.communicators
    return found


def test_lines_of_other_people() -> None:
    """Expected values were read by eye."""
    a100 = real("a100-8gpu-24ch.txt")
    assert a100.rings == {c: tuple(range(8)) for c in range(19, 24)}
    assert a100.trees == {(c, 0): Tree(None, (1,)) for c in range(6)}
    collnet = real("collnet-4nodes-trees.txt")
    assert (collnet.nranks, collnet.nnodes, len(collnet.trees)) == (8, 4, 15)
    assert (collnet.trees[1, 2], collnet.trees[0, 1], collnet.trees[1, 3]) == (Tree(6, (3, 0)), Tree(0, ()), Tree(2, (4,)))
    paths = real("h100-vm-paths.txt").paths
    assert len(paths) == 54
    assert paths["node0", "NET/6", "NET/0-7"] == PathTo(6, pytest.approx(24e9), "PHB")
