"""JSON of nccl-tests, OSU text and CSV through the one reader: written here and read back, and recognised by content."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_writers import OSU_PER_RANK, OSU_TITLES, PER_RANK, csv_text, dumped, nccl_json, osu_text
from measured_log import all_reduce_log
from nccl_writer import SIZES, write

from algorithms.collectives import COLLECTIVES
from prediction.compare import compare
from prediction.readers import read_log, read_text
from prediction.tables import ITEMSIZE, Table
from topologies.errors import MeasurementError

NAMED = sorted(set(PER_RANK) | {"all-reduce", "broadcast", "reduce", "sendrecv"})


def factor(name: str, n: int) -> float:
    found = COLLECTIVES[name].busbw_factor(n)
    assert found is not None
    return found


def times(n: int, first: int = 12, rate: float = 60e9) -> dict[int, float]:
    """Microseconds by size: a different number for each, all sizes whole for n ranks of float."""
    return {4 * n * 2**k: 17.25 + 1e6 * 4 * n * 2**k / rate for k in range(first, first + 7)}


def checked(table: Table, name: str, n: int, wanted: dict[int, float], halves: int) -> None:
    assert (table.collective, table.nranks) == (name, n)
    assert [row.size_bytes for row in table.select(in_place=False)] == list(wanted)
    assert len(table.rows) == halves * len(wanted)
    for row in table.rows:
        assert row.time_s == pytest.approx(wanted[row.size_bytes] * 1e-6, rel=1e-6)
        assert row.algbw_Bps == pytest.approx(row.size_bytes / row.time_s, rel=1e-12)
        assert row.busbw_Bps == pytest.approx(row.algbw_Bps * factor(name, n), rel=1e-12)


@given(name=st.sampled_from(NAMED), n=st.integers(2, 40), per=st.sampled_from([1, 2, 4]))
@settings(max_examples=60, deadline=None)
def test_json_reads_back(name: str, n: int, per: int) -> None:
    n *= per  # a process lists its first GPU only
    (table,) = read_text(dumped(nccl_json(name, n, times(n), factor(name, n), per)), "x")
    checked(table, name, n, times(n), halves=2)
    assert (table.nservers, table.gpu, table.processes, table.notes) == (-(-n // 8), "ACME X9", n // per, ())
    assert all(row.count * 4 * (n if name in PER_RANK else 1) == row.size_bytes for row in table.rows)
    assert table.decided_by == f"the command line: {name.replace('-', '_')}_perf"


@given(name=st.sampled_from(sorted(OSU_TITLES)), nodes=st.integers(1, 9), full=st.booleans())
@settings(max_examples=60, deadline=None)
def test_osu_reads_back(name: str, nodes: int, full: bool) -> None:
    n = 2 if name == "sendrecv" else 4 * nodes
    (table,) = read_text(osu_text(name, n, times(n), full=full), "x")
    checked(table, name, n, times(n), halves=1)
    assert table.nservers == (None if n == 2 else nodes)
    assert [row.count for row in table.rows] == [size // ITEMSIZE[table.dtype] // (n if name in PER_RANK else 1) for size in times(n)]
    assert table.dtype == ("float" if name in ("all-reduce", "reduce-scatter", "reduce") else "char")
    assert any("is that of one rank" in note for note in table.notes) == (name in OSU_PER_RANK)


@pytest.mark.parametrize("separator", [",", ";", "\t"])
@pytest.mark.parametrize("name", NAMED)
def test_csv_reads_back(name: str, separator: str) -> None:
    rows = [(name.replace("-", "_"), size, us, 8, 2, "float") for size, us in times(8).items()]
    header = ["collective", "Size (bytes)", "time [µs]", "nranks", "nnodes", "dtype"]
    (table,) = read_text("\ufeff" + csv_text(header, rows, separator), "x")
    checked(table, name, 8, times(8), halves=1)
    assert (table.nservers, table.dtype, table.rows[0].line, table.notes) == (2, "float", 2, ())


@pytest.mark.parametrize(
    ("header", "row", "size", "seconds"),
    [
        ("size_KiB,time_ms", "1.5,0.25", 1536, 250e-6),
        ("Size [MB];Latency (us)", '1,5;"12,75"', 1_500_000, 12.75e-6),
        ("nbytes\ttime_s", "1e3\t2.5e-5", 1000, 25e-6),
        ("latency_ns,message_size_gib,other", "7,1,x", 2**30, 7e-9),
        ("sep=;\nsize_b;avg_latency_us", "96;1234567.25", 96, 1.23456725),
    ],
)
def test_csv_units(header: str, row: str, size: int, seconds: float) -> None:
    (table,) = read_text(f"# a comment\n\n{header}\n{row}\n", "all_reduce.csv")
    assert (table.rows[0].size_bytes, table.collective) == (size, "all-reduce")
    assert table.rows[0].time_s == pytest.approx(seconds, rel=1e-12)
    assert table.decided_by == "the file name: all-reduce"
    assert math.isnan(table.rows[0].busbw_Bps)


def test_csv_groups_and_what_a_row_may_leave_out() -> None:
    text = csv_text(
        ["run", "collective", "size_bytes", "time_us", "ranks", "in_place", "root", "redop"],
        [("a", "AllReduce", 1024, 11.5, 4, 0, -1, "sum"), ("a", "AllReduce", 1024, 12.5, 4, 1, -1, "sum"),
         ("a", "bcast", 1024, 7.5, 4, "", 3, ""), ("b", "AllReduce", 1024, 13.5, "", "", "", "sum")],
    )  # fmt: skip
    one, two, three = read_text(text, "x")
    assert [(t.collective, t.nranks, t.op, len(t.rows)) for t in (one, two, three)] == [
        ("all-reduce", 4, "sum", 2), ("broadcast", 4, None, 1), ("all-reduce", None, "sum", 1)
    ]  # fmt: skip
    assert [(row.in_place, row.root) for row in (*one.rows, *two.rows)] == [(False, None), (True, None), (False, 3)]
    assert one.notes == ('no column "dtype": float is taken',)


def test_osu_of_several_tests_tags_datatypes_and_bandwidth() -> None:
    text = (
        "# nranks 6\n# nnodes 3\n# OSU MPI Barrier Latency Test v7.3\n# Avg Latency(us)\n             3.41\n"
        "[1,0]<stdout>: # OSU MPI Broadcast Latency Test v7.3\n[1,0]<stdout>: # Datatype: MPI_INT.\n[1,0]<stdout>: 8   2.50\n"
        "[1,0]<stdout>: # Datatype: MPI_DOUBLE.\n[1,0]<stdout>: 0 1.0\n[1,0]<stdout>: 16   4.50\nsome prose of 3 words\n"
        "# OSU MPI Bandwidth Test v5.8\n# Size      Bandwidth (MB/s)\n4000  2000.00\n"
    )
    first, second, third = read_text(text, "x")
    assert [(t.collective, t.nranks, t.nservers, t.dtype) for t in (first, second, third)] == [
        ("broadcast", 6, 3, "int"), ("broadcast", 6, 3, "double"), ("sendrecv", 2, None, "char")
    ]  # fmt: skip
    assert first.rows[0].time_s == pytest.approx(2.5e-6, rel=1e-12)
    assert second.rows[0].line == 11
    assert third.rows[0].time_s == pytest.approx(2e-6, rel=1e-12)
    assert "line 3: the test 'Barrier Latency' is not read" in first.notes[0]
    assert second.notes == ("rows of size 0 left out (1): nothing was sent",)
    assert "window" in third.notes[0]


def test_osu_without_a_number_of_ranks() -> None:
    (table,) = read_text("# OSU MPI Allreduce Latency Test v7.3\n1024 9.5\n", "x")
    assert table.nranks is None
    assert math.isnan(table.rows[0].busbw_Bps)
    with pytest.raises(MeasurementError, match=r"x: .* line 1: Allgather Latency prints the bytes of one rank.*# nranks 8"):
        read_text("# OSU MPI Allgather Latency Test v7.3\n1024 9.5\n", "x")


@pytest.mark.parametrize(("launch", "ranks", "nodes"), [
    ("srun -N 2 -n16 ./osu_allreduce", 16, 2), ("mpiexec --np 3072 --ppn 96 osu_allreduce -f", 3072, 32),
    ("srun --nodes=4 --ntasks=32 osu_allreduce", 32, 4), ("mpirun -n 6 ./osu_allreduce -i 100", 6, None),
])  # fmt: skip
def test_osu_takes_ranks_from_the_command_line(launch: str, ranks: int, nodes: int | None) -> None:
    (table,) = read_text(f"+ {launch}\n# OSU MPI Allreduce Latency Test v7.3\n1024 9.5\n", "x")
    assert (table.nranks, table.nservers) == (ranks, nodes)


def test_the_kind_is_told_by_content(tmp_path_factory: pytest.TempPathFactory) -> None:
    text = all_reduce_log({2**k: 20.5 + k for k in range(12, 20)})
    kinds = {
        "nccl-tests": text,
        "JSON": "\n" + dumped(nccl_json("all-reduce", 8, times(8), factor("all-reduce", 8))),
        "OSU": "Loading modules\n" + osu_text("all-reduce", 8, times(8)),
        "CSV": csv_text(["size_bytes", "time_us", "nranks", "collective"], [(s, us, 8, "all_reduce") for s, us in times(8).items()]),
        "tagged": "".join(f"[1,0]<stdout>:{line}\n" for line in text.splitlines()),
        "braces": "{pod-7} starts\n" + text,
    }
    for kind, content in kinds.items():
        path = tmp_path_factory.mktemp("kinds") / "data.bin"
        path.write_text(content)
        for table in (*read_log(path), *read_text(content, str(path))):
            assert (table.collective, table.nranks) == ("all-reduce", 8), kind
    with pytest.raises(MeasurementError, match=r"^mixed:\d+: text of OSU, but line \d+ is of nccl-tests"):
        read_text(kinds["nccl-tests"] + kinds["OSU"], "mixed")


def test_rows_that_are_no_whole_number_of_elements_are_left_out_of_a_comparison() -> None:
    wanted = {1024: 21.5, 2050: 22.5, 4096: 23.5, 8195: 24.5}
    tables = read_text(all_reduce_log(wanted), "log.txt")
    report = compare(tables, "dgx-h100")
    assert {row.size_bytes for row in report.rows} == {1024, 4096}
    lines = {row.size_bytes: row.line for row in tables[0].rows}
    (note,) = [note for note in report.compared[0].notes if "whole number" in note]
    assert note.startswith("left out, not a whole number of float (4 bytes each): 4 rows: ")
    assert f"log.txt:{lines[2050]} (2050 bytes)" in note
    assert f"log.txt:{lines[8195]} (8195 bytes)" in note
    with pytest.raises(MeasurementError, match=r"2 rows: odd\.txt:\d+ \(7 bytes\)"):
        compare(read_text("# Collective test starting: all_reduce_perf\n" + all_reduce_log({7: 21.5}), "odd.txt"), "dgx-h100")
    data = nccl_json("all-reduce", 8, {1024: 21.5, 1030: 22.5}, factor("all-reduce", 8))
    (note,) = [n for n in compare(read_text(dumped(data), "j"), "dgx-h100").compared[0].notes if "whole number" in n]
    assert "j: results[1] (1030 bytes)" in note


def test_every_kind_gives_the_same_comparison() -> None:
    wanted = times(8)
    texts = [
        dumped(nccl_json("all-reduce", 8, wanted, factor("all-reduce", 8))),
        osu_text("all-reduce", 8, wanted).replace("ppr:4", "ppr:8"),
        csv_text(["collective", "size_bytes", "time_us", "nranks", "nnodes"], [("all_reduce", s, us, 8, 1) for s, us in wanted.items()]),
    ]
    found = [
        [(row.size_bytes, row.predicted_s) for row in compare(read_text(text, "x"), "dgx-h100").rows if not row.in_place] for text in texts
    ]
    assert found[0] == found[1] == found[2]
    assert len(found[0]) == len(wanted)


def test_full_width_digits_are_no_numbers() -> None:
    text = write("all-reduce", 8, SIZES)
    line = next(line for line in text.splitlines() if line.split()[:1] == ["8192"])
    for wide in (line.replace("8192", "８１９２", 1), line.replace(line.split()[5], "１２.0", 1)):
        (table,) = read_text(text.replace(line, wide), "x")
        assert len(table.rows) == 2 * len(SIZES) - 2
        assert any("broken rows left out (1)" in note for note in table.notes)
    assert read_text(text.replace("nThread 1 nGpus 1", "nThread １ nGpus １"), "x")[0].processes is None
    for other in (csv_text(["size_bytes", "time_us"], [("１２", 3.5)]), "# OSU MPI Allreduce Latency Test v7\n１２ 3.5\n"):
        with pytest.raises(MeasurementError, match=r"line 2: |'１２' is not a whole number"):
            read_text(other, "x")
