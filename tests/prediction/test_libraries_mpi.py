"""Open MPI's and MPICH's rules, just below and at every threshold of their published rules."""

from __future__ import annotations

import pytest

from prediction.rules import mpich, open_mpi
from prediction.rules.call import Call
from prediction.rules.open_mpi_tables import OF_BLOCKS, ONE_RANK_A_NODE, TABLES
from prediction.rules.thresholds import thresholds

K, M = 1 << 10, 1 << 20
REST = 1 << 40

# (fewest ranks, most ranks, ((below so many bytes, number), ...)); written down apart from the tables of the code.
OPEN_MPI = {
    "all-reduce": [
        (2, 3, ((8, 4), (4 * K, 3), (8 * K, 4), (16 * K, 3), (64 * K, 4), (256 * K, 5), (REST, 6))),
        (4, 7, ((16, 4), (8 * K, 3), (REST, 6))),
        (8, 15, ((8 * K, 3), (REST, 6))),
        (16, 31, ((64, 5), (4 * K, 3), (REST, 6))),
        (32, 63, ((128, 5), (REST, 6))),
        (64, 127, ((256 * K, 3), (REST, 6))),
        (128, 255, ((128 * K, 2), (256 * K, 3), (REST, 6))),
        (256, 511, ((4 * K, 2), (REST, 6))),
        (512, 2047, ((2 * K, 2), (16 * K, 3), (REST, 6))),
        (2048, 4095, ((2 * K, 2), (4 * K, 5), (16 * K, 3), (REST, 6))),
        (4096, 99999, ((2 * K, 2), (16 * K, 5), (32 * K, 3), (REST, 6))),
    ],
    "broadcast": [
        (
            2,
            3,
            (
                (32, 3),
                (256, 5),
                (512, 3),
                (K, 7),
                (32 * K, 1),
                (128 * K, 5),
                (256 * K, 2),
                (512 * K, 1),
                (M, 6),
                (REST, 5),
            ),
        ),
        (4, 7, ((64, 5), (128, 6), (2 * K, 5), (8 * K, 6), (M, 1), (REST, 2))),
        (8, 15, ((8, 7), (64, 5), (4 * K, 7), (16 * K, 5), (32 * K, 6), (REST, 1))),
        (16, 31, ((4 * K, 7), (M, 6), (REST, 8))),
        (32, 63, ((2 * K, 6), (REST, 7))),
        (64, 127, ((REST, 7),)),
        (128, 255, ((2, 6), (16 * K, 5), (32 * K, 1), (64 * K, 5), (REST, 7))),
        (256, 1023, ((16 * K, 7), (32 * K, 4), (REST, 7))),
        (1024, 2047, ((512 * K, 7), (REST, 8))),
        (2048, 4095, ((256 * K, 7), (REST, 8))),
        (4096, 99999, ((8 * K, 7), (16 * K, 5), (256 * K, 7), (REST, 8))),
    ],
    "reduce": [
        (2, 3, ((8, 7), (16, 4), (32, 3), (256 * K, 1), (512 * K, 3), (M, 2), (REST, 3))),
        (4, 7, ((4 * K, 4), (64 * K, 2), (256 * K, 5), (512 * K, 1), (M, 5), (REST, 1))),
        (8, 15, ((8 * K, 4), (REST, 5))),
        (16, 31, ((4 * K, 4), (REST, 5))),
        (32, 255, ((REST, 5),)),
        (256, 511, ((8 * K, 5), (16 * K, 6), (REST, 5))),
        (512, 2047, ((REST, 5),)),
        (2048, 4095, ((512, 5), (K, 6), (8 * K, 5), (16 * K, 6), (REST, 5))),
        (4096, 99999, ((16, 5), (32, 6), (K, 5), (2 * K, 6), (8 * K, 5), (16 * K, 6), (REST, 5))),
    ],
    "all-gather": [
        (2, 2, ((REST, 6),)),
        (3, 31, ((REST, 3),)),
        (32, 63, ((K, 3), (64 * K, 5), (REST, 4))),
        (64, 127, ((512, 3), (64 * K, 5), (REST, 4))),
        (128, 255, ((512, 3), (128 * K, 5), (512 * K, 4), (M, 5), (REST, 4))),
        (256, 511, ((32, 3), (128, 2), (K, 3), (128 * K, 5), (512 * K, 4), (M, 5), (REST, 4))),
        (512, 1023, ((64, 3), (256, 2), (2 * K, 3), (REST, 5))),
        (1024, 2047, ((4, 3), (8, 2), (16, 3), (32, 2), (256, 3), (512, 2), (4 * K, 3), (REST, 5))),
        (2048, 4095, ((32, 2), (128, 3), (512, 2), (4 * K, 3), (REST, 5))),
        (4096, 99999, ((2, 3), (8, 2), (16, 3), (512, 2), (4 * K, 3), (REST, 5))),
    ],
    "reduce-scatter": [
        (2, 3, ((64 * K, 3), (128 * K, 4), (REST, 3))),
        (4, 7, ((8, 1), (256 * K, 2), (REST, 3))),
        (8, 31, ((256 * K, 2), (REST, 3))),
        (32, 63, ((64, 1), (2 * K, 2), (512 * K, 4), (REST, 3))),
        (64, 127, ((256, 1), (512, 2), (2 * K, 4), (4 * K, 2), (REST, 4))),
        (128, 255, ((256, 1), (512, 2), (REST, 4))),
        (256, 511, ((256, 1), (K, 2), (REST, 4))),
        (512, 1023, ((512, 1), (2 * K, 2), (8 * K, 4), (16 * K, 2), (REST, 4))),
        (1024, 2047, ((512, 1), (4 * K, 2), (16 * K, 4), (32 * K, 2), (REST, 4))),
        (2048, 4095, ((512, 1), (4 * K, 2), (REST, 4))),
        (4096, 99999, ((K, 1), (8 * K, 2), (REST, 4))),
    ],
    "all-to-all": [
        (2, 2, ((2, 2), (4, 5), (16, 2), (64, 5), (256, 2), (4 * K, 5), (32 * K, 2), (256 * K, 4), (M, 5), (REST, 2))),
        (3, 7, ((8 * K, 4), (16 * K, 1), (64 * K, 4), (512 * K, 1), (M, 2), (REST, 1))),
        (8, 15, ((256 * K, 4), (REST, 1))),
        (16, 31, ((4, 4), (512, 3), (8 * K, 4), (32 * K, 1), (256 * K, 4), (512 * K, 1), (REST, 4))),
        (32, 63, ((512, 3), (512 * K, 1), (REST, 4))),
        (64, 127, ((K, 3), (2 * K, 1), (4 * K, 4), (256 * K, 1), (REST, 2))),
        (128, 255, ((K, 3), (2 * K, 4), (256 * K, 1), (REST, 2))),
        (256, 511, ((K, 3), (8 * K, 4), (32 * K, 1), (REST, 2))),
        (512, 1023, ((512, 3), (8 * K, 4), (16 * K, 1), (128 * K, 4), (256 * K, 1), (REST, 2))),
        (1024, 2047, ((512, 3), (K, 4), (2 * K, 1), (16 * K, 4), (256 * K, 1), (REST, 4))),
        (2048, 4095, ((K, 3), (4 * K, 4), (8 * K, 1), (128 * K, 4), (REST, 1))),
        (4096, 99999, ((2 * K, 3), (8 * K, 4), (16 * K, 1), (32 * K, 4), (64 * K, 1), (REST, 4))),
    ],
    "gather": [
        (2, 3, ((2, 3), (4, 1), (32 * K, 2), (64 * K, 1), (128 * K, 2), (REST, 3))),
        (4, 7, ((K, 2), (8 * K, 1), (32 * K, 2), (256 * K, 1), (REST, 3))),
        (8, 255, ((REST, 2),)),
        (256, 511, ((2 * K, 2), (8 * K, 1), (REST, 2))),
        (512, 99999, ((REST, 2),)),
    ],
    "scatter": [
        (2, 3, ((2, 3), (128 * K, 1), (256 * K, 3), (REST, 1))),
        (4, 7, ((2 * K, 2), (4 * K, 1), (8 * K, 2), (32 * K, 1), (M, 3), (REST, 1))),
        (8, 15, ((16 * K, 2), (M, 3), (REST, 1))),
        (16, 31, ((16 * K, 2), (32 * K, 1), (REST, 3))),
        (32, 63, ((512, 2), (8 * K, 3), (16 * K, 2), (REST, 3))),
        (64, 99999, ((512, 2), (REST, 3))),
    ],
    "barrier": [
        (2, 3, ((REST, 3),)),
        (4, 7, ((REST, 1),)),
        (8, 63, ((REST, 3),)),
        (64, 255, ((REST, 4),)),
        (256, 511, ((REST, 6),)),
        (512, 1023, ((REST, 4),)),
        (1024, 4095, ((REST, 6),)),
        (4096, 99999, ((REST, 4),)),
    ],
}


@pytest.mark.parametrize("collective", OPEN_MPI)
def test_open_mpi_at_every_threshold(collective: str) -> None:
    scale = collective in OF_BLOCKS
    for low, high, sizes in OPEN_MPI[collective]:
        for ranks in (low, high):
            least = 1
            for most, number in sizes:
                for nbytes in (least, most - 1):
                    found = TABLES[collective].find(ranks, nbytes)
                    assert (found.low, min(found.high - 1, 99999), found.number) == (low, high, number), (ranks, nbytes)
                    told = open_mpi.choose(Call(collective, nbytes * ranks if scale else nbytes, ranks))
                    assert str(found) in told.rule
                least = most


def test_sizes_of_blocks_are_those_of_one_rank() -> None:
    rules = [open_mpi.choose(Call("all-gather", size, 33)).choice.algorithm for size in (33 * K - 1, 33 * K)]
    assert rules == ["bruck", "ring"]  # 3 and 5, which for 33 ranks hand over


@pytest.mark.parametrize(
    ("collective", "ranks", "nbytes", "algorithm", "called"),
    [
        ("all-reduce", 16, 48, "recursive-doubling", "5 segmented_ring"),  # 12 elements for 16 ranks
        ("all-reduce", 2, 4, "recursive-doubling", "4 ring"),
        ("all-reduce", 3, 60000, "ring", "4 ring"),
        ("all-reduce", 2, 200000, "ring", "5 segmented_ring"),
        ("all-reduce", 12, 8192, "halving-doubling", "6 rabenseifner"),
        ("all-gather", 16, 160, "recursive-doubling", "3 recursive_doubling"),
        ("all-gather", 12, 160, "bruck", "3 recursive_doubling"),
        ("all-gather", 34, 34 * K, "neighbour-exchange", "5 neighbor"),
        ("all-gather", 35, 35 * K, "ring", "5 neighbor"),
        ("broadcast", 16, 2 * M, "scatter-recursive-doubling", "8 scatter_allgather"),
        ("broadcast", 40, 3 * K, "k-nomial-tree", "7 knomial"),
        ("reduce", 20, 5000, "binomial-tree", "5 binomial"),
        ("scatter", 20, 20 * 40000, "flat", "3 linear_nb"),
        ("barrier", 100, 1, "dissemination", "4 bruck"),
    ],
)
def test_open_mpi_runs(collective: str, ranks: int, nbytes: int, algorithm: str, called: str) -> None:
    row = open_mpi.choose(Call(collective, nbytes, ranks)).choice
    assert (row.algorithm, row.called) == (algorithm, called)


def test_open_mpi_in_parts() -> None:
    row = open_mpi.choose(Call("all-reduce", 20 * K, 150)).choice
    assert row.options == {"reduce": "binomial-tree", "broadcast": "flat"}
    assert row.missing(Call("all-reduce", 20 * K, 150))


def test_one_rank_a_node_has_rules_of_its_own() -> None:
    for ranks, nbytes, number in [
        (2, 9 * M, 3), (3, 9 * M, 7), (7, M - 1, 7), (7, M, 3), (15, 256 * K - 1, 7), (15, 256 * K, 6), (15, M, 3), (31, 32 * K - 1, 7),
        (31, 32 * K, 2), (31, 128 * K, 6), (64, 32 * K - 1, 7), (64, 32 * K, 3), (64, 128 * K, 6), (65, 256 * K - 1, 3),
    ]:  # fmt: skip
        found = ONE_RANK_A_NODE["all-reduce"].find(ranks, nbytes)
        assert found.number == number, (ranks, nbytes)
        alone, shared = (open_mpi.choose(Call("all-reduce", nbytes, ranks, nodes)) for nodes in (ranks, 1))
        assert f"one rank a node: {found}" in alone.rule
        assert "one rank a node" not in shared.rule


def test_tables_name_algorithms_there_are() -> None:
    for collective, table in [*TABLES.items(), *ONE_RANK_A_NODE.items()]:
        assert table.numbers() <= set(open_mpi.ALGORITHMS[collective])


@pytest.mark.parametrize("text", ["<4: 1 <8, 2 <4, 3\nelse: 1", "<4: 1\n<3: 2\nelse: 1", "<4: 1", "else: 1 <8"])
def test_a_table_out_of_order_is_a_defect(text: str) -> None:
    with pytest.raises(AssertionError):
        thresholds(text)


def test_dynamic_rules_may_be_turned_off() -> None:
    given = {"OMPI_MCA_coll_tuned_use_dynamic_rules": "0", "OMPI_MCA_btl": "self,vader"}
    chosen = open_mpi.choose(Call("all-reduce", 5 * K, 8), environment=given)
    assert chosen.choice.algorithm == "recursive-doubling"
    assert chosen.elsewhere == tuple(given)


# (collective, ranks, bytes, algorithm), just below and at each limit
MPICH = [
    ("all-reduce", 8, 8, "recursive-doubling"), ("all-reduce", 8, 28, "recursive-doubling"), ("all-reduce", 8, 32, "halving-doubling"),
    ("all-reduce", 2, 8, "recursive-doubling"), ("all-reduce", 2, 12, "halving-doubling"), ("all-reduce", 15, 31, "recursive-doubling"),
    ("all-reduce", 15, 32, "halving-doubling"), ("broadcast", 7, 9 * M, "binomial-tree"), ("broadcast", 8, 12288, "binomial-tree"),
    ("broadcast", 8, 12289, "scatter-recursive-doubling"), ("broadcast", 8, 524288, "scatter-recursive-doubling"),
    ("broadcast", 8, 524289, "scatter-all-gather"), ("broadcast", 9, 12288, "binomial-tree"), ("broadcast", 9, 12289, "scatter-all-gather"),
    ("reduce", 6, 2048, "binomial-tree"), ("reduce", 6, 2049, "rabenseifner"), ("reduce", 1024, 4095, "binomial-tree"),
    ("reduce", 1024, 4096, "rabenseifner"), ("all-gather", 16, 524287, "recursive-doubling"), ("all-gather", 16, 524288, "ring"),
    ("all-gather", 12, 81919, "bruck"), ("all-gather", 12, 81920, "ring"), ("reduce-scatter", 6, 524287, "recursive-halving"),
    ("reduce-scatter", 6, 524288, "pairwise"), ("all-to-all", 8, 8 * 257 - 1, "bruck"), ("all-to-all", 8, 8 * 257, "direct"),
    ("all-to-all", 7, 7, "direct"), ("all-to-all", 7, 7 * 32769 - 1, "direct"), ("all-to-all", 7, 7 * 32769, "pairwise"),
    ("all-to-all", 9, 9 * 32769, "pairwise"), ("gather", 9, 77, "binomial-tree"), ("scatter", 9, 77, "binomial-tree"),
    ("barrier", 9, 1, "dissemination"),
]  # fmt: skip


@pytest.mark.parametrize(("collective", "ranks", "nbytes", "algorithm"), MPICH)
def test_mpich_at_every_threshold(collective: str, ranks: int, nbytes: int, algorithm: str) -> None:
    assert mpich.choose(Call(collective, nbytes, ranks)).choice.algorithm == algorithm


@pytest.mark.parametrize(
    ("collective", "ranks", "nbytes", "algorithm"),
    [
        ("all-reduce", 8, 2048, "recursive-doubling"),
        ("all-reduce", 8, 2049, "halving-doubling"),
        ("all-reduce", 1024, 4095, "recursive-doubling"),
        ("all-reduce", 1024, 4096, "halving-doubling"),
        ("broadcast", 8, 12287, "binomial-tree"),
        ("broadcast", 8, 12288, "scatter-recursive-doubling"),
        ("broadcast", 8, 524287, "scatter-recursive-doubling"),
        ("broadcast", 8, 524288, "scatter-all-gather"),
        ("broadcast", 9, 12288, "scatter-all-gather"),
    ],
)
def test_mpich_3_has_its_limits_in_code(collective: str, ranks: int, nbytes: int, algorithm: str) -> None:
    assert mpich.choose(Call(collective, nbytes, ranks), "3").choice.algorithm == algorithm


def test_mpich_keeps_operations_of_the_program_whole() -> None:
    for collective, whole in (("all-reduce", "recursive-doubling"), ("reduce", "binomial-tree")):
        chosen = mpich.choose(Call(collective, 9 * M, 8, op="user"))
        assert chosen.choice.algorithm == whole
        assert "program's own" in chosen.rule


def test_mpich_reads_its_variable() -> None:
    given = {"MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE": "65536", "MPIR_CVAR_ODD_EVEN": "1"}
    found = [mpich.choose(Call("all-reduce", size, 8), "3", given).choice.algorithm for size in (65536, 65540)]
    assert found == ["recursive-doubling", "halving-doubling"]
    in_file = mpich.choose(Call("all-reduce", 65536, 8), "4", given)
    assert in_file.choice.algorithm == "halving-doubling"  # the selection file does not read it
    assert in_file.elsewhere == tuple(given)
