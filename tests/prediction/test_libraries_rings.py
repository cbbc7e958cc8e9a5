"""Gloo's segments and RCCL's tuner, against values worked out by hand."""

from __future__ import annotations

import pytest

from prediction.rules import gloo, rccl
from prediction.rules.call import Call
from prediction.rules.rccl import Bandwidths
from topologies import make

M = 1 << 20
SPEEDS = Bandwidths(336e9, 250e9)


@pytest.mark.parametrize(
    ("ranks", "nbytes", "count", "size"),
    [
        (4, 8 * M - 4, 8, M),  # 8 segments at least, 1 MiB at most
        (4, 8 * M, 8, M),
        (4, 8 * M + 4, 12, M),  # one more, rounded up to a multiple of the ranks
        (4, 12 * M, 12, M),
        (4, 12 * M + 4, 16, M),
        (3, 100, 6, 20),  # a sixth of 100 B is 17 B: 5 elements of 4 B
        (12, 65536, 24, 2732),
        (5, 4, 10, 4),  # most segments are empty
    ],
)
def test_gloo_cuts_its_ring(ranks: int, nbytes: int, count: int, size: int) -> None:
    call = Call("all-reduce", nbytes, ranks)
    assert gloo.segments(call) == (count, size)
    assert gloo.choose(call).choice.options == {"slices": count // ranks, "segment_bytes": size}


def test_gloo_segments_hold_whole_elements() -> None:
    assert gloo.segments(Call("all-reduce", 90, 2, dtype="float64")) == (4, 24)
    assert gloo.segments(Call("all-reduce", 90, 2, dtype="int8")) == (4, 23)


@pytest.mark.parametrize(
    ("pick", "ranks", "algorithm"),
    [
        (None, 6, "ring"),
        ("bcube", 8, "halving-doubling"),
        ("bcube", 6, "bcube"),
        ("halving-doubling", 8, "halving-doubling"),
        ("halving-doubling", 6, "binary-blocks"),
        ("ring-chunked", 6, "ring"),
        ("ring-whole", 6, "ring-whole"),
    ],
)
def test_gloo_takes_what_its_caller_asks_for(pick: str | None, ranks: int, algorithm: str) -> None:
    rows = [gloo.choose(Call("all-reduce", size, ranks), pick=pick).choice for size in (8, 3 * M, 5 << 30)]
    assert {row.algorithm for row in rows} == {algorithm}  # no size changes it


# (nodes, bytes, algorithm, protocol, latency [us], bandwidth [GB/s]), 8 ranks a node, worked out from the table by hand
RCCL = [
    (1, 1024, "ring", "ll", 12 + 14 * 0.8, 336 * 0.08 * 8 / 14),  # no correction of the ring on one node
    (1, 1024, "ring", "simple", 17 + 14 * 2.1, 336 * 8 / 14),
    (1, 1024, "tree", "ll", 12 + 2 * 7 * 0.9, 336 * 0.06 * 0.1 / 2),
    (1, 4096, "tree", "ll", 12 + 2 * 7 * 0.9, 336 * 0.06 * 1.0 / 2),
    (2, 63, "tree", "ll", 12 + 2 * (7 * 0.9 + 10.5), 336 * 0.06 * 0.1 / 2),
    (2, 4095, "tree", "ll", 12 + 2 * (7 * 0.9 + 10.5), 336 * 0.06 * 0.1 / 2),
    (2, 4096, "tree", "ll", 12 + 2 * (7 * 0.9 + 10.5), 336 * 0.06 * 1.0 / 2),
    (2, 2 * M - 1, "tree", "ll", 12 + 2 * (7 * 0.9 + 10.5), 336 * 0.06 * 1.0 / 2),
    (2, 4 * M, "tree", "ll", 12 + 2 * (7 * 0.9 + 10.5), 336 * 0.06 * 0.1 / 2),
    (2, 2 * M, "tree", "simple", 17 + 2 * (7 * 2.3 + 25), 336 * 0.11 * 0.7 / 2),
    (2, 4 * M, "tree", "simple", 17 + 2 * (7 * 2.3 + 25), 336 * 0.11 * 1.0 / 2),
    (2, 256 * M - 1, "ring", "simple", 17 + 26 * 3 + 4 * 320, 336 * 0.1 * 16 / 30),
    (2, 256 * M, "ring", "simple", 17 + 26 * 3 + 4 * 320, 336 * 1.0 * 16 / 30),
    (2, 512 * M, "ring", "simple", 17 + 26 * 3 + 4 * 320, 336 * 0.8 * 16 / 30),
    (2, 1 << 40, "ring", "simple", 17 + 26 * 3 + 4 * 320, 336 * 1.0 * 16 / 30),
    (3, 1 << 30, "tree", "simple", 17 + 2 * (7 * 2.3 + 25), 250 * 0.59 * 0.6 / 2),  # beyond 2 nodes through the NICs
    (4, 128 << 10, "ring", "ll", 12 + (62 - 8) * 1 + 8 * 9.5, 250 * 0.08 * 1.0 * 32 / 62),
]


@pytest.mark.parametrize(("nodes", "nbytes", "algorithm", "protocol", "latency", "bandwidth"), RCCL)
def test_rccl_by_hand(nodes: int, nbytes: int, algorithm: str, protocol: str, latency: float, bandwidth: float) -> None:
    chosen = rccl.choose(Call("all-reduce", nbytes, 8 * nodes, nodes), SPEEDS)
    (row,) = (row for row in chosen.ranking if (row.algorithm, row.protocol) == (algorithm, protocol))
    assert row.latency_s == pytest.approx(latency * 1e-6, rel=1e-12)
    assert row.bandwidth_Bps == pytest.approx(bandwidth * 1e9, rel=1e-12)
    assert row.time_s == pytest.approx(latency * 1e-6 + nbytes / (bandwidth * 1e9), rel=1e-12)


# tenths of the bandwidth at 64 B, 128 B, ... 4 GiB
TENTHS = {
    ("tree", "ll"): "1 1 1 1 1 1 10 10 10 10 10 6 10 9 10 10 1 1 1 1 1 1 1 1 1 1 1",
    ("tree", "simple"): "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 7 10 10 10 10 10 7 7 5 6 6 6",
    ("ring", "ll"): "1 1 1 1 1 1 1 1 1 1 1 10 2 10 4 4 1 2 2 1 1 1 1 1 1 1 1",
    ("ring", "simple"): "1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 10 8 10 10 10",
}


@pytest.mark.parametrize(("nodes", "ratios"), [(2, (0.06, 0.11, 0.08, 1.0)), (3, (0.06, 0.59, 0.08, 1.0))])
def test_rccl_corrections_at_every_size(nodes: int, ratios: tuple[float, ...]) -> None:
    ranks, base = 8 * nodes, 336e9 if nodes == 2 else 250e9
    for (row, tenths), ratio in zip(TENTHS.items(), ratios, strict=True):
        factor = ranks / (2 * (ranks - 1)) if row[0] == "ring" else 0.5
        for place, tenth in enumerate(tenths.split()):
            for nbytes in (64 << place, (128 << place) - 1):
                ranking = rccl.choose(Call("all-reduce", nbytes, ranks, nodes), SPEEDS).ranking
                (speed,) = (r.bandwidth_Bps for r in ranking if (r.algorithm, r.protocol) == row)
                assert speed == pytest.approx(base * ratio * factor * int(tenth) / 10, rel=1e-12), (row, nbytes)


def test_rccl_choices_by_size() -> None:
    """The choice changes where the lines of two rows cross, or at a step of the corrections."""

    def choice(nodes: int, nbytes: int) -> tuple[str, str | None]:
        best = rccl.choose(Call("all-reduce", nbytes, 8 * nodes, nodes), SPEEDS).choice
        return best.algorithm, best.protocol

    crossing = int((17 + 14 * 2.1 - 12 - 14 * 0.8) * 1e-6 / (14 / 8 / 336e9 * (1 / 0.08 - 1)))
    assert choice(1, crossing) == ("ring", "ll")
    assert choice(1, crossing + 1) == ("ring", "simple")
    crossing = int((17 + 2 * 7 * 2.3 + 50 - 12 - 2 * 7 * 0.9 - 21) * 1e-6 / (2 / 336e9 * (1 / 0.06 - 1 / 0.077)))
    assert 2 * M < crossing < 4 * M
    assert [choice(2, size) for size in (8, crossing, crossing + 1, 128 * M - 1, 128 * M)] == [
        ("tree", "ll"), ("tree", "ll"), ("tree", "simple"), ("tree", "simple"), ("ring", "simple"),
    ]  # fmt: skip


def test_rccl_tree_simple_and_ll128_are_off() -> None:
    one, two = (rccl.choose(Call("all-reduce", M, 8 * nodes, nodes), SPEEDS).off for nodes in (1, 2))
    assert set(one) == {("tree", "simple"), ("tree", "ll128"), ("ring", "ll128")}
    assert set(two) == {("tree", "ll128"), ("ring", "ll128")}


def test_rccl_other_collectives_take_the_ring() -> None:
    for collective, steps, hop, factor in [("all-gather", 7, 0.8, 8 / 7), ("reduce-scatter", 7, 0.8, 8 / 7), ("broadcast", 8, 0.8, 1.0)]:
        row = rccl.choose(Call(collective, 1024, 8), SPEEDS).choice
        assert (row.algorithm, row.protocol) == ("ring", "ll")
        assert row.schedule == ("chain" if collective == "broadcast" else "ring")
        assert row.latency_s == pytest.approx((12 + steps * hop) * 1e-6)
        assert row.bandwidth_Bps == pytest.approx(336e9 * 0.08 * factor)


def test_rccl_one_rank_a_node_crosses_as_the_tree_does() -> None:
    rows = {(r.algorithm, r.protocol): r for r in rccl.choose(Call("all-gather", M, 5, 5), SPEEDS).ranking}
    assert rows["ring", "simple"].latency_s == pytest.approx((17 + 4 * 25) * 1e-6)


def test_rccl_reads_its_variables() -> None:
    call = Call("all-reduce", 1024, 16, 2)
    assert rccl.choose(call, SPEEDS, environment={"NCCL_PROTO": "Simple", "NCCL_ALGO": "^tree"}).choice.protocol == "simple"
    alone = rccl.choose(call, SPEEDS, environment={"NCCL_ALGO": "ring", "RCCL_MSCCL_ENABLE": "0", "NCCL_NTHREADS": "256"})
    assert {row.algorithm for row in alone.ranking} == {"ring"}
    assert alone.off["tree", "ll"] == "NCCL_ALGO leaves it out"
    assert alone.elsewhere == ("RCCL_MSCCL_ENABLE", "NCCL_NTHREADS")
    nothing = rccl.choose(call, SPEEDS, environment={"NCCL_PROTO": "LL128"})
    assert nothing.fallback
    assert [(row.algorithm, row.protocol) for row in nothing.ranking] == [("ring", "simple")]


def test_rccl_takes_bandwidths_from_the_machine() -> None:
    one = rccl.bandwidths(make("mi300x", {}))
    assert one.intra == 7 * 48e9
    four = rccl.bandwidths(make("mi300x", {"nodes": "4"}))
    assert four.intra == 7 * 48e9
    assert four.inter == min(7 * 48e9, 8 * 50e9)
    assert rccl.choose(Call("all-reduce", M, 16, 2), Bandwidths(336e9, 336e9, "amd")).ranking[-1].latency_s == pytest.approx(
        (17 + 26 * 6 + 4 * 320) * 1e-6
    )
