"""Whatever stands in a file, the readers give tables or a RingscopeError."""

from __future__ import annotations

import random
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from log_writers import csv_text, dumped, nccl_json, osu_text
from measured_log import all_reduce_log

from prediction.nccl_info import read_info, read_info_text
from prediction.readers import read_log, read_text
from topologies.errors import RingscopeError

TIMES = {4096 * 8 * 2**k: 20.5 + 3 * 2**k for k in range(6)}
CSV = csv_text(["collective", "size_bytes", "time_us", "nranks", "dtype"], [("all_reduce", s, us, 8, "float") for s, us in TIMES.items()])
OSU = osu_text("all-gather", 8, TIMES, full=True)
INFO = (
    "h0:7:8 [0] NCCL INFO comm 0x5f rank 0 nRanks 2 nNodes 1 localRanks 2 localRank 0 MNNVL 0\nh0:7:8 [0] NCCL INFO Channel 00/02 : 0 1\n"
    "h0:7:8 [0] NCCL INFO Trees [0] 1/-1/-1->0->-1\nh0:7:8 [0] NCCL INFO Algorithm | Tree | Ring |\n"
    "h0:7:8 [0] NCCL INFO GPU/0-11000 :GPU/0-19000 (2/370.8/NVL)\n4096 Bytes -> Algo 1 proto 2 time 5.2\n"
)

VALID = {
    "json": dumped(nccl_json("all-reduce", 8, TIMES, 1.75)), "osu": OSU, "csv": CSV, "semicolons": CSV.replace(",", ";"), "info": INFO,
    "text": all_reduce_log(dict(list(TIMES.items())[:3]), 2),
}  # fmt: skip
PIECES = [
    "nan",
    "-",
    "１２",
    "\0",
    "\n",
    "9" * 40,
    "1e999",
    "[" * 50,
    '"',
    ";",
    ",",
    "\t",
    " ",
    "{",
    "}",
    "inf",
    "0",
    "\ufeff",
    "Channel 00/00 :",
    "->",
]


@given(
    kind=st.sampled_from(sorted(VALID)),
    edits=st.lists(st.tuples(st.integers(0, 4000), st.integers(0, 30), st.sampled_from(PIECES) | st.text(max_size=5)), max_size=6),
    name=st.text(max_size=12),
)
@settings(max_examples=300, deadline=None)
def test_mutated_files_give_tables_or_an_error(kind: str, edits: list[tuple[int, int, str]], name: str) -> None:
    text = VALID[kind]
    for at, length, piece in edits:
        at %= len(text) + 1
        text = text[:at] + piece + text[at + length :]
    with suppress(RingscopeError):
        tables = read_text(text, name)
        assert tables
        for table in tables:
            assert table.rows
            assert all(row.time_s > 0 and 0 < row.size_bytes < 2**83 and row.algbw_Bps > 0 for row in table.rows)
    with suppress(RingscopeError):
        read_info_text(text, name)


@given(st.binary(max_size=400), st.sampled_from(["", "{", "# OSU MPI Latency Test v7\n", "size_bytes,time_us\n", "NCCL INFO ", "\ufeff"]))
@settings(max_examples=150, deadline=None)
def test_any_bytes_give_tables_or_an_error(tmp_path_factory: pytest.TempPathFactory, data: bytes, start: str) -> None:
    path = tmp_path_factory.getbasetemp() / "bytes"
    path.write_bytes(start.encode() + data)
    for read in (read_log, read_info):
        with suppress(RingscopeError):
            assert read(path)


def test_random_words_under_every_header() -> None:
    words = [
        "8",
        "1024",
        "3.5",
        "nan",
        "all_reduce",
        "float",
        "-1",
        "x",
        ";",
        "",
        "1,5",
        "# nranks 0",
        "# nranks 4",
        "0",
        "1e9",
        "Datatype: MPI_INT.",
    ]
    chance = random.Random(11)
    for start in ("collective;size_bytes;time_us;dtype\n", "# OSU MPI Allgather Latency Test v7\n", "# OSU MPI Latency Test\n"):
        for _ in range(200):
            lines = [chance.choice([";", " "]).join(chance.choices(words, k=chance.randint(1, 5))) for _ in range(chance.randint(0, 9))]
            with suppress(RingscopeError):
                assert read_text(start + "\n".join(lines), "x")
