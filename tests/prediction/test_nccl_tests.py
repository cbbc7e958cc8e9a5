"""Tables written here, in the layout of each age of nccl-tests, read back."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nccl_writer import GPU, HEADER, PER_RANK, SIZES, TESTS, busbw, one, write

from algorithms.collectives import COLLECTIVES
from prediction.identify import SIGNATURES, canonical, factor
from prediction.nccl_tests import read_text


@given(name=st.sampled_from(TESTS), n=st.integers(2, 64), rate=st.floats(1e9, 9e11), first=st.integers(12, 20), start=st.booleans())
@settings(max_examples=60, deadline=None)
def test_a_written_table_reads_back(name: str, n: int, rate: float, first: int, start: bool) -> None:
    table = one(write(name, n, [2**k * n for k in range(first, first + 10)], rate, start=start))
    if start or name not in ("gather", "scatter", "all-reduce", "sendrecv"):
        assert table.collective == name
    assert table.nranks == n
    assert table.nservers == -(-n // 8)
    assert (table.gpu, table.dtype, table.processes) == (GPU, "float", n)
    assert len(table.rows) == 20
    assert table.notes == ()
    for row in table.rows:
        assert row.algbw_Bps == pytest.approx(row.size_bytes / row.time_s, rel=1e-12)
        if table.collective is not None:
            assert row.busbw_Bps == pytest.approx(row.algbw_Bps * busbw(name, n), rel=1e-12)
        assert row.size_bytes == 4 * row.count * (n if name in PER_RANK else 1)
        exact = 20e-6 + row.size_bytes / rate
        assert exact * 0.999 - 1e-8 <= row.time_s <= exact * 1.0501 + 1e-8


@given(name=st.sampled_from(TESTS), n=st.integers(3, 48))
@settings(max_examples=60, deadline=None)
def test_rows_alone_tell_collective_and_ranks(name: str, n: int) -> None:
    table = one(write(name, n, [2**k * n for k in range(14, 26)], header=False))
    if name in ("gather", "scatter"):
        assert table.collective is None
        assert table.decided_by.startswith("undecided: gather or scatter")
    else:
        assert table.collective == name
        assert table.decided_by.startswith("the numbers: ")
    assert table.nranks == (None if name in ("broadcast", "reduce", "sendrecv") else n)


def test_factors_agree_with_the_algorithms() -> None:
    for name, signature in SIGNATURES.items():
        if name in COLLECTIVES:
            assert factor(signature.factor, 12) == pytest.approx(COLLECTIVES[name].busbw_factor(12), rel=1e-15)
    assert set(COLLECTIVES) - set(SIGNATURES) == {"barrier"}  # nccl-tests has no barrier


def test_two_ranks_leave_all_reduce_and_sendrecv_to_the_in_place_check() -> None:
    assert one(write("all-reduce", 2, SIZES)).collective == "all-reduce"
    assert one(write("sendrecv", 2, SIZES)).collective == "sendrecv"
    unchecked = one(write("all-reduce", 2, SIZES, wrong="N/A"))
    assert unchecked.collective is None
    assert "all-reduce or sendrecv" in unchecked.decided_by


def test_the_order_of_evidence_for_the_name() -> None:
    rows = write("gather", 4, SIZES, header=False)
    command = "+ mpirun -np 4 ./build/scatter_perf -b 8 -e 1G\n"
    assert one("# Collective test starting: gather_perf_mpi\n" + command + rows, "x.txt").collective == "gather"
    named = one(command + rows, "gather.log")
    assert (named.collective, named.decided_by) == ("scatter", "the command line: scatter_perf (line 1)")
    assert one(rows, "run/gather_perf-4.log").decided_by == "the file name: gather"
    contradicted = one("$ ./all_reduce_perf -b 8\n" + write("all-gather", 4, SIZES), "x.txt")
    assert contradicted.collective == "all-gather"
    assert any("all_reduce_perf (line 1)" in note and "not used" in note for note in contradicted.notes)
    kept = one(write("broadcast", 4, SIZES, start=True).replace("broadcast", "all_reduce"))
    assert kept.collective == "all-reduce"
    assert any("do not look like all-reduce" in note for note in kept.notes)


def hypercube(n: int) -> str:
    """Hypercube prints as all-gather does, but algbw is already (n-1)/n of size/time."""
    lines = write("all-gather", n, [2**k * n for k in range(14, 24)], header=False).splitlines()
    cells = [line.split() for line in lines if "float" in line]
    return "\n".join([HEADER, *(" ".join([*c[:6], c[7], *c[7:10], c[11], *c[11:]]) for c in cells)])


def test_hypercube_is_told_by_its_algbw_and_a_power_of_two() -> None:
    table = one(hypercube(8))
    assert (table.collective, table.nranks, table.notes) == ("hypercube", 8, ("no list of ranks: 8 ranks from the rows",))
    assert table.rows[0].busbw_Bps == pytest.approx(table.rows[0].algbw_Bps * 7 / 8)
    assert one(hypercube(6)).collective is None


@given(n=st.integers(20, 600), rate=st.floats(2e10, 4e11))
@settings(max_examples=60, deadline=None)
def test_a_disturbed_row_does_not_decide_the_number_of_ranks(n: int, rate: float) -> None:
    alien = write("all-reduce", n + 1, [2**24], rate, header=False).splitlines()[0]
    table = one(alien + "\n" + write("all-reduce", n, [2**k for k in range(14, 28)], rate, header=False))
    assert (table.collective, table.nranks in (n, None)) == ("all-reduce", True)


def test_a_header_is_not_overruled_by_rows_of_fewer_ranks() -> None:
    rows = write("all-reduce", 4, SIZES, header=False)
    head = write("all-reduce", 8, SIZES).partition(HEADER)[0]
    table = one(f"{head}{HEADER}\n{rows}")
    assert (table.collective, table.nranks) == (None, 8)
    assert table.decided_by.startswith("undecided: no collective prints such rows")


def test_the_average_of_the_footer_tells_a_tiny_row() -> None:
    tiny = "64 16 float sum 48.74 0.00 0.00 N/A\n"
    head = "#  size  count  type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n"
    ranks = "".join(f"#   Rank  {r} Pid  9 on h device  {r} [0x0b] V\n" for r in range(8))
    foot = "# Avg bus bandwidth    : 0.00229794\n"
    assert one(ranks + head + tiny + foot).collective == "all-reduce"
    for other in ("128 32 float sum 50.0\n", "0 0 float sum 0.10 0.00 0.00 N/A\n"):
        # The average is then one of other rows, too.
        assert one(ranks + head + tiny + other + foot).decided_by.startswith("undecided: all-reduce or sendrecv")


def test_a_test_of_an_unknown_name_keeps_it() -> None:
    table = one(write("all-reduce", 4, SIZES, start=True).replace("all_reduce_perf", "all_reduce_bias_perf"))
    assert (table.collective, table.nranks) == ("all-reduce-bias", 4)
    assert canonical("alltoall_perf") == canonical("AllToAll") == "all-to-all"


# Format of 2016-2018 ("bytes N type op", milliseconds, res), of a box with four GPUs.
MILLISECONDS = """\
# Using devices
#   Device  0 ->  0 [0x0a] GeForce OLD
#   Device  1 ->  1 [0x09] GeForce OLD
#                                                 out-of-place                    in-place
#      bytes             N    type      op     time  algbw  busbw      res     time  algbw  busbw      res
    10000000      10000000    char     sum    2.000   5.00   5.00    0e+00    2.500   4.00   4.00    0e+00
    10000000       2500000     int    prod    2.000   5.00   5.00    0e+00    2.500   4.00   4.00    0e+00
"""


def test_milliseconds_and_a_table_per_type_and_operation() -> None:
    first, second = read_text(MILLISECONDS, "old")
    assert [(t.dtype, t.op, t.line, t.nranks, t.gpu, t.nservers) for t in (first, second)] == [
        ("char", "sum", 2, 2, "GeForce OLD", 1),
        ("int", "prod", 7, 2, "GeForce OLD", 1),
    ]
    assert [row.time_s for row in first.rows] == [2e-3, 2.5e-3]
    assert first.rows[0].algbw_Bps == 5e9
    assert "times are in ms" in first.notes[0]


# Format of 2019: columns differ per test (no redop for all-gather), "error", algbw equal to busbw = size * 7/8 / time.
OLD_ALL_GATHER = (
    """\
# nThread 1 nGpus 8 minBytes 1048576 maxBytes 4194304 step: 2(factor) warmup iters: 5 iters: 20 validation: 1
#
# Using devices
"""
    + "".join(f"#   Rank  {r} Pid  77{r} on host-a device  {r} [0x{r}f] Tesla OLD\n" for r in range(8))
    + """\
#                                             out-of-place                       in-place
#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error
     1048576         32768   float    40.00   22.94   22.94  0e+00    50.00   18.35   18.35  0e+00
     4194304        131072   float    80.00   45.88   45.88  0e+00    80.00   45.88   45.88    N/A
"""
)


def test_algbw_of_2019_is_corrected() -> None:
    table = one(OLD_ALL_GATHER)
    assert (table.collective, table.nranks, table.op) == ("all-gather", 8, None)
    assert (table.threads, table.gpus_per_thread, table.processes) == (1, 8, 1)
    assert "hypercube" in table.decided_by
    assert table.rows[0].algbw_Bps == pytest.approx(1048576 / 40e-6)
    assert table.rows[0].busbw_Bps == pytest.approx(1048576 / 40e-6 * 7 / 8)
    assert any("4 rows print algbw = (n-1)/n" in note for note in table.notes)
    assert [row.wrong for row in table.rows] == [0, 0, 0, None]


# Format of 2020-2022: "redop" without a root column; all-to-all prints a blank redop; error is a relative size.
SPLIT = """\
#       size         count    type   redop     time   algbw   busbw  error     time   algbw   busbw  error
     1048576        262144   float     sum    135.3    7.75   15.02  7e-07    132.7    7.90   15.31  7e-07
"""
BLANK = """\
#       size         count    type   redop    root     time   algbw   busbw  error     time   algbw   busbw  error
     1048576         65536   float              -1    100.0   10.49    7.86  0e+00    100.0   10.49    7.86    N/A
"""


def test_columns_of_2020() -> None:
    split = one(SPLIT)
    assert (split.collective, split.nranks) == ("all-reduce", 32)
    assert [(row.wrong, row.root) for row in split.rows] == [(None, None)] * 2
    blank = one(BLANK)
    assert (blank.collective, blank.nranks, blank.op) == ("all-to-all", 4, None)


# Format of 2.19 with per-iteration statistics and time stamps, and one with a single half.
VALUES = "   {}   {}   {}   {}   1.00   2.00    3.00     4.00"
PER_HALF = "     time   algbw   busbw  #wrong    i_min    i_max    i_p99    i_cv%"
FIRST, SECOND = VALUES.format("100.00", 10.49, 15.73, 0), VALUES.format("50.00", 20.97, 31.46, 2)
STATISTICS = f"""\
#       size         count      type   redop    root{PER_HALF}{PER_HALF}            timestamp
     1048576        262144     float     sum      -1{FIRST}{SECOND}  2026-01-02 03:04:05
"""
ONE_HALF = """\
#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error
     1048576        262144     float     sum   100.00   10.49   15.73    N/A
"""


def test_extra_columns_and_a_missing_half() -> None:
    rows = one(STATISTICS).rows
    assert [row.time_s for row in rows] == pytest.approx([100e-6, 50e-6], rel=1e-12)
    assert [(row.in_place, row.wrong) for row in rows] == [(False, 0), (True, 2)]
    assert "wrong results" in one(STATISTICS).notes[-1]
    starred = one(STATISTICS.replace("31.46   2", "31.46   7*").replace("sum", "mulsum"))
    assert (starred.rows[1].wrong, starred.op) == (7, "mulsum")
    assert [(row.in_place, row.line) for row in one(ONE_HALF).rows] == [(False, 2)]


@pytest.mark.parametrize(
    "prefix", ["    ", "[1,0]<stdout>:", "2026-05-01T12:00:05.123Z ", "worker-0: ", "12:00:05 [INFO] ", "# ", "\ufeff", "nccl-0 | "]
)
def test_prefixes_and_noise_change_nothing(prefix: str) -> None:
    clean = write("reduce-scatter", 16, SIZES)
    noisy = [f"{prefix}{line}\r\nnode0:7:8 [0] NCCL INFO Channel 00/0 : 3[3] -> 4[0] via NET/IB/0" for line in clean.splitlines()]
    want, got = one(clean), one("Some prose about 8 GPUs and float sums.\n" + "\n".join(noisy))
    assert (got.collective, got.nranks, got.nservers, got.gpu) == ("reduce-scatter", 16, 2, GPU)
    assert [(r.size_bytes, r.time_s, r.in_place) for r in got.rows] == [(r.size_bytes, r.time_s, r.in_place) for r in want.rows]


def test_several_runs_in_one_text() -> None:
    texts = [write(name, n, SIZES) for name, n in (("all-reduce", 8), ("all-to-all", 8), ("all-reduce", 4))]
    tables = read_text("\n".join([*texts, write("reduce", 4, SIZES, header=False)]), "x")
    assert [(t.collective, t.nranks) for t in tables] == [("all-reduce", 8), ("all-to-all", 8), ("all-reduce", 4), ("reduce", None)]


def test_a_header_does_not_reach_over_a_footer() -> None:
    first, second = read_text(SPLIT + "# Avg bus bandwidth : 15.165\n" + write("reduce", 4, SIZES, header=False), "x")
    assert (first.collective, second.collective, len(second.rows)) == ("all-reduce", "reduce", 2 * len(SIZES))


def test_a_short_list_of_ranks_yields_to_the_rows() -> None:
    lines = write("all-reduce", 32, SIZES).splitlines()
    table = one("\n".join(line for line in lines if "Rank" not in line or int(line.split()[2]) < 5))
    assert (table.collective, table.nranks, table.nservers, table.processes) == ("all-reduce", 32, None, 32)
    assert any("lists 5 ranks but the rows are of 32" in note for note in table.notes)


def test_large_rank_counts_stay_open_unless_told() -> None:
    rows = write("all-reduce", 4096, SIZES, header=False)
    assert one(rows).nranks is None
    assert one(rows).rows[-1].busbw_Bps == float(rows.splitlines()[-4].split()[11]) * 1e9  # the printed one
    told = one(rows.replace("# Out", "h:1:2 [0] NCCL INFO comm 0x1 rank 0 nranks 4096 cudaDev 0\n# Out"))
    assert (told.collective, told.nranks) == ("all-reduce", 4096)
    assert "4096 ranks from NCCL INFO" in told.notes[0]
    assert one(write("all-gather", 4096, [2**k for k in range(20, 30)], header=False)).nranks == 4096  # size / count tells
