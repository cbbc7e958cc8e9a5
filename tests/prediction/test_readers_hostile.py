"""What is no measurement is refused with one kind of error, place and reason; quickly, and in little memory."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import time
import tracemalloc
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from log_writers import dumped, nccl_json

from prediction.log_file import MAX_ROWS
from prediction.nccl_info import read_info, read_info_text
from prediction.nccl_json import MAX_JSON
from prediction.readers import read_log, read_text
from topologies.errors import MeasurementError

TIMES = {4096 * 8 * 2**k: 20.5 + 3 * 2**k for k in range(6)}


def made() -> dict[str, Any]:
    return nccl_json("all-reduce", 8, TIMES, 1.75)


def broken(*path: str | int, value: object) -> Callable[[], str]:
    def text() -> str:
        data: Any = made()
        at = data
        for key in path[:-1]:
            at = at[key]
        at[path[-1]] = value
        return dumped(data)

    return text


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ("nan", ("results", 2, "out_of_place", "time"), 'results[2].out_of_place.time: "nan" is not a number'),
        (-1.5, ("results", 2, "in_place", "bus_bw"), "results[2].in_place.bus_bw: -1.5 is not a number from 0"),
        (0, ("results", 2, "out_of_place", "time"), "results[2].out_of_place.time: 0 is not a number from 1e-06"),
        (True, ("results", 2, "size"), "results[2].size: True is not a whole number"),
        (2**63, ("results", 2, "size"), "results[2].size: 9223372036854775808 is not a whole number"),
        (10**400, ("results", 2, "out_of_place", "time"), "results[2].out_of_place.time: "),
        ("flaot", ("results", 2, "type"), 'results[2].type: "flaot" is not known; did you mean "float"?'),
        ([], ("results", 2, "type"), "results[2].type: [] is not known"),
        ("smu", ("results", 2, "redop"), 'results[2].redop: "smu" is not known; did you mean "sum"?'),
        ("１", ("results", 2, "root"), "results[2].root: "),
        ("--1", ("results", 2, "root"), "results[2].root: "),
        (None, ("results", 2, "out_of_place"), "results[2].out_of_place: there is none"),
        ([1], ("results", 2, "out_of_place"), "results[2].out_of_place: [1] is not an object"),
        (7, ("results", 2), "results[2]: 7 is not an object"),
    ],
)
def test_a_broken_result_is_named_by_its_path(value: object, path: tuple[str | int, ...], reason: str) -> None:
    (table,) = read_text(broken(*path, value=value)(), "x.json")
    assert len(table.rows) == 2 * (len(TIMES) - 1)
    assert any("broken rows left out (1)" in note and reason in note for note in table.notes), table.notes


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (lambda: "{}", r"x: results: no list of this name"),
        (lambda: '{"result": []}', r'x: results: .*did you mean "result"'),
        (lambda: '{"results": []}', r"x: results: no measured row to read; found an empty list"),
        (lambda: dumped(made())[:-200], r"x:1: column \d+: not JSON: .*cut short"),
        (lambda: json.dumps(made(), indent=1).replace('"size": ', '"size" ', 1), r"x:\d\d+: column \d+: not JSON"),
        (lambda: '{"a": ' * 100_000, r"x: lists or objects nested too deep"),
        (lambda: '{"a": ' + "[" * 500_000, r"x: 500001 lists and objects, more than"),
        (lambda: '{"a": NaN}', r"x: NaN is not a number"),
        (lambda: '{"a": 1, "b": 2, "a": 3}', r'x: the key "a" stands twice'),
        (lambda: '{"a": ' + "9" * 10_000 + "}", r"x: Exceeds the limit"),
        (lambda: '{"a": "' + "b" * MAX_JSON + '"}', r"x: \d+ bytes; a JSON file may have"),
        (broken("config", "devices", value={"rank": 0}), r"x: config\.devices: .* is not a list"),
        (broken("config", "devices", 3, "rank", value=-1), r"x: config\.devices\[3\]\.rank: -1 is not a whole number"),
        (broken("config", "ngpus", value=0), r"x: config\.ngpus: 0 is not a whole number from 1"),
        (broken("config", value={"nthreads": 8, "ngpus": 2**20, "devices": [{"rank": 0}]}), r"x: config: 1 processes of 8388608 GPUs"),
        (lambda: "size_bytes,time\n8,3.5\n", r"x:1: column 'time' has no unit; write time_us"),
        (lambda: "size,time_us\n8,3.5\n", r"x:1: column 'size' has no unit; write size_bytes"),
        (lambda: "size_Mb,time_us\n8,3.5\n", r"x:1: column 'size_Mb' counts bits"),
        (lambda: "size_bytes,time_us,time_s\n8,3.5,1\n", r"x:1: columns 'time_us' and 'time_s' both give the time"),
        (lambda: "\n# c\nnranks,nodes\n8,3\n", r"x:3: no column gives the size; write size_bytes"),
        (lambda: "collective,size_bytes\n8,3\n", r"x:1: no column gives the time; write time_us"),
        (lambda: "size_bytes,time_us\n", r"x: no measured row to read; found a header and no rows"),
    ],
)
def test_a_file_of_no_use_is_refused(text: Callable[[], str], reason: str) -> None:
    with pytest.raises(MeasurementError, match=rf"^{reason}"):
        read_text(text(), "x")


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ("all_reduce;nan;3;8", "size 'nan' is not a number"),
        ("all_reduce;-8;3;8", "size '-8' is not a number"),
        ("all_reduce;1024;0;8", "time '0' is not from 1e-12 s"),
        ("all_reduce;1024;1e99;8", "time '1e99' is not from"),
        ("all_reduce;1,5;3;8", "size '1,5' is not a whole number of bytes"),
        ("all_reduce;1024;1,234;8", "time '1,234' may be thousands or a fraction"),
        ("all_reduce;1024;3;2,5", "nranks '2,5' is not a whole number from 1"),
        ("all_reduce;1024;3;99999999", "nranks '99999999' is not a whole number from 1"),
        ("all_reduce;1024;3", "3 fields instead of 4"),
        ("all_reduce;1024;3;8;9", "5 fields instead of 4"),
        ('all_reduce;"1024;3;8', "is not CSV"),
        ("<b>;1024;3;8", "collective '<b>' is not a name"),
        ("all_reduce;" + "9" * 5000 + ";3;8", "a line of more than 4096 characters"),
    ],
)
def test_a_broken_row_of_csv_is_named(row: str, reason: str) -> None:
    (table,) = read_text(f"collective;size_bytes;time_us;nranks\nall_reduce;1024;3,25;8\n{row}\nall_reduce;2048;4,25;8\n", "x")
    assert [r.size_bytes for r in table.rows] == [1024, 2048]
    assert table.notes[0].startswith("broken rows left out (1): line 3: ")
    assert reason in table.notes[0]


def test_a_broken_row_of_osu_is_named() -> None:
    text = "# OSU MPI Allreduce Latency Test v7\n8 nan\n16 3.5\n-32 4.5\n64 -5.5\n128 0.00\n256 1e999\n9" + "9" * 30 + " 3\n"
    (table,) = read_text(text, "x")
    assert [row.size_bytes for row in table.rows] == [16]
    assert table.notes[0].startswith("broken rows left out (6): line 2: 'nan' is not a number above 0; line 4: size '-32'")


@pytest.mark.parametrize("kind", ["gzip", "bzip2", "xz", "zip"])
def test_packed_files_are_never_unpacked(tmp_path: Path, kind: str) -> None:
    bomb = b"0" * 5_000_000
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("log.txt", bomb)
    data = {"gzip": gzip.compress(bomb), "bzip2": bz2.compress(bomb), "xz": lzma.compress(bomb), "zip": held.getvalue()}[kind]
    (tmp_path / "log.txt").write_bytes(data)
    for read in (lambda: read_log(tmp_path / "log.txt"), lambda: read_text(data.decode(errors="replace"), "x")):
        with pytest.raises(MeasurementError, match=rf"packed by {kind}; unpack it"):
            read()
    with pytest.raises(MeasurementError, match="packed by"):
        read_info(tmp_path / "log.txt")


@pytest.mark.parametrize(
    "text",
    [
        "collective,size_bytes,time_us,nranks\n" + "all_reduce,1024,3.5,8\n" * (MAX_ROWS + 1),
        "# OSU MPI Allreduce Latency Test v7\n" + "1024 3.5\n" * (MAX_ROWS + 1),
        "# OSU MPI Allreduce Latency Test v7\n" * (MAX_ROWS + 3),
    ],
)
def test_more_rows_than_are_read(text: str) -> None:
    with pytest.raises(MeasurementError, match=rf"^x:10000[12]: more than {MAX_ROWS} rows"):
        read_text(text, "x")


@pytest.mark.parametrize(
    ("line", "count"),
    [
        ("nothing of interest\n", 300_000),
        ("h0:7:8 [0] NCCL INFO Channel 00/02 : 0 1\n", 300_000),
        ("# OSU MPI Allreduce Latency Test v7\n", 300_000),
        ("x,y\n", 100_000),
        ('{"a"\n', 100_000),
        ("\n", 100_000),
    ],
)
def test_very_many_lines_take_seconds_and_little_memory(tmp_path: Path, line: str, count: int) -> None:
    path = tmp_path / "long.log"
    path.write_text(line * count)
    begin = time.perf_counter()
    with suppress(MeasurementError):
        read_log(path)
    with suppress(MeasurementError):
        read_info(path)
    assert time.perf_counter() - begin < 20.0
    path.write_text(line * 20_000)
    tracemalloc.start()
    with suppress(MeasurementError):
        read_log(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 16e6


@pytest.mark.parametrize("start", ["", "# OSU MPI Allreduce Latency Test v7\n", "size_bytes;time_us\n"])
@pytest.mark.parametrize(
    "unit",
    ["1 ", "OSU MPI", "# OSU MPI x ", "srun -N ", "-np ", "ppr:", '"', ";", "1;", "a_", "Channel 00/00 : 1", " 1", "GPU/0 ",
     "GPU/0 :GPU/0 (1/1/X) ", "[0] 1/1/1->", "NET/IB : Using [0]", "Bytes -> Algo ", "|", "1 coll channels, ", "a:1:2 [0] NCCL INFO "],
)  # fmt: skip
def test_hostile_lines_cost_no_more_than_their_length(start: str, unit: str) -> None:
    line = f"NCCL INFO Channel Tree -> Pattern : Ring anks Datatype: osu_ {unit * (3900 // len(unit))} x\n"
    text = start + line * 40
    begin = time.perf_counter()
    with suppress(MeasurementError):
        read_text(text, "x")
    with suppress(MeasurementError):
        read_info_text(text, "x")
    assert time.perf_counter() - begin < 4.0  # a quadratic pattern takes minutes
