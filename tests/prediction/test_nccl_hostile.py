"""Broken rows are named and the rest is kept; what is no log is refused with one kind of error, and quickly."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nccl_writer import HEADER, SIZES, one, write

from prediction import nccl_tests
from prediction.log_file import MAX_BYTES
from prediction.readers import read_log, read_text
from topologies.errors import MeasurementError


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("2048 512 float sum -1 nan 1.0 1.0 0 10.0 1.0 1.0 0", "time 'nan' is not a number"),
        ("2048 512 float sum -1 inf 1.0 1.0 0 10.0 1.0 1.0 0", "time 'inf' is not a number"),
        ("2048 512 float sum -1 10.0 -1.0 1.0 0 10.0 1.0 1.0 0", "algbw '-1.0' is not a number"),
        ("2048 512 float sum -1 0.00 1.0 1.0 0 10.0 1.0 1.0 0", "time is 0"),
        ("-2048 512 float sum -1 10.0 1.0 1.0 0 10.0 1.0 1.0 0", "size '-2048' is not a whole number"),
        ("2048 5e2 float sum -1 10.0 1.0 1.0 0 10.0 1.0 1.0 0", "count '5e2' is not a whole number"),
        ("9999999999999999999 512 float sum -1 10.0 1.0 1.0 0 10.0 1.0 1.0 0", "2^63"),
        ("2048 512 flaot sum -1 10.0 1.0 1.0 0 10.0 1.0 1.0 0", 'did you mean "float"'),
        ("2048 512 float smu -1 10.0 1.0 1.0 0 10.0 1.0 1.0 0", 'did you mean "sum"'),
        ("2048 512 float sum -1 10.0 1.0", "2 fields from time on instead of 4 or 8"),
        ("2048 512 float sum -1 10.0 1.0 1.0 nan 10.0 1.0 1.0 0", "#wrong 'nan'"),
        ("2048 512 float sum -1 10.0 1.0 1.0 9e999 10.0 1.0 1.0 0", "#wrong '9e999'"),
        ("2048 512 float sum -1 10.0 1.0 1.0 . 10.0 1.0 1.0 0", "#wrong '.'"),
        ("2048 512 float sum -1node0:5:6 [0] NCCL INFO x", "root '-1node0:5:6' is not"),
        ("2048 512 float sum -1 10\x00.0 1.0 1.0 0 10.0 1.0 1.0 0", "time '10\\x00.0'"),
    ],
)
def test_a_broken_row_is_named_and_the_others_are_kept(broken: str, reason: str) -> None:
    lines = write("all-reduce", 8, SIZES).splitlines()
    at = lines.index(HEADER) + 3
    table = one("\n".join([*lines[:at], broken, *lines[at:]]))
    assert len(table.rows) == 2 * len(SIZES)
    assert (table.collective, table.nranks) == ("all-reduce", 8)
    assert any(f"line {at + 1}: " in note and reason in note for note in table.notes), table.notes
    with pytest.raises(MeasurementError, match=r"^bad\.txt: no measured row to read; looked for .*; found line 2: "):
        read_text(f"{HEADER}\n{broken}\n", "bad.txt")


def test_rows_that_disagree_with_themselves_are_noted() -> None:
    lines = write("all-reduce", 8, SIZES).splitlines()
    at = lines.index(HEADER) + 4
    fields = lines[at].split()
    fields[6], fields[7] = "777.0", "888.0"
    lines[at] = " ".join(fields)
    table = one("\n".join(lines))
    assert table.collective == "all-reduce"
    assert len(table.notes) == 2
    assert all(f"in 1 rows (line {at + 1})" in note for note in table.notes)
    row = next(row for row in table.rows if row.line == at + 1 and not row.in_place)
    assert row.algbw_Bps == pytest.approx(row.size_bytes / row.time_s)


def test_empty_rows_and_empty_runs_are_left_out_and_named() -> None:
    zero = "0 0 float none -1 0.00 0.00 0.00 0 0.37 0.00 0.00 0"
    text = write("all-gather", 4, SIZES).replace(HEADER, f"{HEADER}\n{zero}")
    table = one(text + write("all-gather", 4, []) + f"{HEADER}\n{zero}\n")
    assert len(table.rows) == 2 * len(SIZES)
    at = text.splitlines().index(zero) + 1
    assert f"rows of size 0 left out (1, line {at}): nothing was sent" in table.notes
    assert "the header of a run without rows" in table.notes[0]
    assert "a row of size 0" in table.notes[0]


def test_a_test_built_without_mpi_is_pointed_out() -> None:
    text = write("broadcast", 1, SIZES).replace(HEADER, "#  Rank  0 Group  0 Pid 7 on node0 device  1 [0000:01:00] ACME\n" + HEADER)
    assert any("built without MPI" in note for note in one(text).notes)


def test_a_billion_ranks_are_not_believed() -> None:
    rank = "#  Rank 999999999 Group 0 Pid 7 on node0 device  1 [0000:01:00] ACME\n"
    rows = "# \n" + "4000000000 1 float none -1 100.0 40000 40000 0 100.0 40000 40000 0\n"
    table = one(rank + rows)
    assert table.collective is None
    assert table.decided_by.startswith("undecided: no collective prints such rows")


WORDS = ["8", "2", "1024", "256", "float", "int8", "sum", "none", "-1", "0", "1.00", "22.1", "1e9", "nan", "N/A"]
LINES = [
    *("size count type redop root time algbw busbw #wrong", "8 2 float sum -1 1.00 0.01 0.01 0", "1 1 int8 1.0 1.0 1.0 N/A", "\n", "\x00"),
    *("Rank 999999999 Pid 1 on h device 0 X", "nThread 0 nGpus 0", "nThread 99 nGpus 9", "Collective test starting: x_perf", "a_perf -b"),
    *("Avg bus bandwidth : 1e9", "Avg bus bandwidth : nan", "NCCL INFO nranks 1000000000"),
]
SOUP = st.lists(st.sampled_from(WORDS + LINES))


@given(st.one_of(st.text(), SOUP.map(" ".join)), st.text(max_size=20))
@settings(max_examples=150, deadline=None)
def test_any_text_gives_tables_or_a_measurement_error(text: str, name: str) -> None:
    with suppress(MeasurementError):
        tables = read_text(text, name)
        assert tables
        assert all(table.rows for table in tables)
        assert all(row.time_s > 0 and row.size_bytes > 0 for table in tables for row in table.rows)


@given(st.lists(st.sampled_from(WORDS), max_size=16))
@settings(max_examples=150, deadline=None)
def test_any_row_under_a_header(fields: list[str]) -> None:
    text = write("all-reduce", 8, SIZES)
    table = read_text(text.replace(HEADER, f"{HEADER}\n{' '.join(fields)}"), "x")[-1]
    assert table.rows[-1].size_bytes == SIZES[-1]


@given(st.binary(max_size=300))
@settings(max_examples=100, deadline=None)
def test_any_bytes_give_tables_or_a_measurement_error(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes.log"
    path.write_bytes(data)
    with suppress(MeasurementError):
        assert read_log(path)


def test_files_that_are_no_logs(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path, tmp_path / "none", tmp_path / "pipe", "\0"):
        with pytest.raises(MeasurementError, match="not a file"):
            read_log(path)
    (tmp_path / "empty").touch()
    with pytest.raises(MeasurementError, match="found an empty text"):
        read_log(tmp_path / "empty")
    with (tmp_path / "big").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    with pytest.raises(MeasurementError, match=f"more than {MAX_BYTES}"):
        read_log(tmp_path / "big")
    (tmp_path / "zeros").write_bytes(bytes(3000))
    with pytest.raises(MeasurementError, match="null bytes"):
        read_log(tmp_path / "zeros")


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "log").write_bytes(write("all-reduce", 4, SIZES).replace("\n", "\r\n").encode(encoding))
    table = read_log(tmp_path / "log")[0]
    assert (table.collective, table.nranks, len(table.rows), table.line) == ("all-reduce", 4, 2 * len(SIZES), 1)


def test_limits_on_lines_and_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "long.log"
    path.write_text("x" * 10_000_000 + " 8 2 float sum -1 1.00 0.01 0.01 0\n" + write("all-reduce", 4, SIZES))
    table = read_log(path)[0]
    assert (table.line, len(table.rows)) == (2, 2 * len(SIZES))
    monkeypatch.setattr(nccl_tests, "MAX_ROWS", len(SIZES) - 1)
    with pytest.raises(MeasurementError, match=rf"^log:\d+: more than {len(SIZES) - 1} rows"):
        read_text(write("all-reduce", 4, SIZES), "log")


@pytest.mark.parametrize(
    "unit",
    ["1,", "1 ", "1", "-", "size count type ", "a_perf", "_perf   ", "Rank 1 on ", "NCCL INFO ", "nan inf ", "1\t\t\t", "[0", "-> ["],
)
def test_hostile_lines_cost_no_more_than_their_length(unit: str) -> None:
    text = "\n".join([f"{unit * (4000 // len(unit))} nranks algbw Device _perf x"] * 20)
    begin = time.perf_counter()
    with pytest.raises(MeasurementError):
        read_text(text, "x")
    assert time.perf_counter() - begin < 2.0  # a quadratic pattern takes minutes
