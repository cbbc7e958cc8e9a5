"""The reader against logs of other people, where they stand beside the checkout. Expected values were read with awk and by eye."""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from prediction.readers import read_log
from prediction.tables import Table
from topologies.errors import MeasurementError

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


def read(log: str) -> list[Table]:
    path = SHARED / "inputs" / "logs" / f"{log}.txt"
    if not path.exists():
        pytest.skip(f"{path.name} is not beside the checkout")
    return read_log(path)


# log: (collective, nranks, nservers, gpu, lines with measurements) per table
EXPECTED: dict[str, list[tuple[str | None, int, int | None, str | None, int]]] = {
    "cw-a100-32r-sharp": [("all-reduce", 32, None, "NVIDIA A100-SXM4-80GB", 5)],
    "deepops-dgxa100-4n": [("all-reduce", 32, None, None, 13)],
    "gcp-a3mega-2n-ag": [("all-gather", 16, None, None, 26)],
    "h100-4g": [(name, 4, 1, "NVIDIA H100 80GB HBM3", n) for name, n in (("all-reduce", 31), ("all-gather", 28), ("reduce-scatter", 28))],
    "lambda-b200-2n": [("all-reduce", 16, None, None, 29)],
    "mi300x-1n": [("all-reduce", 8, 1, "AMD Instinct MI300X", 31)],
    "mi355x-2n": [("all-reduce", 16, 2, None, 31)],
    "oci-gb200-8r": [("all-reduce", 8, None, None, 33)],
    "p100-2g": [
        ("all-gather", 2, 1, "Tesla P100-PCIE-16GB", 127),
        ("broadcast", 2, 1, "Tesla P100-PCIE-16GB", 128),
        (None, 2, 1, "Tesla P100-PCIE-16GB", 128),
        ("sendrecv", 2, 1, "Tesla P100-PCIE-16GB", 128),
    ],
    "snellius-2n": [(name, 8, 2, "NVIDIA H100", n) for name, n in (("all-reduce", 30), ("all-gather", 27), ("reduce-scatter", 27))],
}

# log, table, size, in place: (time in us, printed busbw in GB/s or None where the collective is open)
SPOTS = [
    ("cw-a100-32r-sharp", 0, 8589934592, False, 104180, 159.75),
    ("deepops-dgxa100-4n", 0, 4294967296, True, 43440, 191.56),
    ("gcp-a3mega-2n-ag", 0, 67108864, True, 444.29, 141.61),
    ("h100-4g", 1, 16384, True, 35.15, 0.35),
    ("h100-4g", 2, 64, False, 21.70, 0.00),
    ("lambda-b200-2n", 0, 524288, False, 240.71, 4.08),
    ("mi300x-1n", 0, 8589934592, True, 47584, 315.91),
    ("mi355x-2n", 0, 268435456, True, 1604.5, 313.68),
    ("oci-gb200-8r", 0, 34359738368, False, 70981, 847.12),
    ("p100-2g", 0, 133169152, True, 11661, 5.71),
    ("p100-2g", 2, 4194312, False, 768.1, 2.73),
    ("p100-2g", 3, 4194312, False, 1134.1, 3.70),
    ("snellius-2n", 0, 8388608, True, 196.5, 74.71),
    ("snellius-2n", 2, 8388608, False, 112.0, 65.53),
]


@pytest.mark.parametrize("log", EXPECTED)
def test_tables_of_a_log(log: str) -> None:
    found = [(t.collective, t.nranks, t.nservers, t.gpu, len(t.rows)) for t in read(log)]
    assert found == [(name, n, servers, gpu, 2 * lines) for name, n, servers, gpu, lines in EXPECTED[log]]


@pytest.mark.parametrize(("log", "table", "size", "in_place", "us", "busbw"), SPOTS)
def test_spot_values(log: str, table: int, size: int, in_place: bool, us: float, busbw: float) -> None:
    rows = [row for row in read(log)[table].select(in_place) if row.size_bytes == size]
    assert len(rows) == 1
    assert rows[0].time_s == pytest.approx(us * 1e-6, rel=1e-12)
    assert rows[0].busbw_Bps == pytest.approx(busbw * 1e9, rel=2e-3, abs=5.1e6)


@pytest.mark.parametrize("log", EXPECTED)
def test_no_row_of_a_healthy_log_is_doubted(log: str) -> None:
    doubts = [note for table in read(log) for note in table.notes if "within rounding" in note or "printed busbw" in note]
    assert doubts == []


@pytest.mark.parametrize("log", ["aws-p4de-2n", "cw-a100-1n-3g", "cw-a100-1n-8g"])
def test_logs_without_rows_are_refused(log: str) -> None:
    with pytest.raises(MeasurementError, match=r"no measured row to read; looked for .*; found line 1: "):
        read(log)


ONE_RUN_PER_SIZE: list[tuple[str, int, tuple[int, ...], dict[str | None, int]]] = [
    # log, ranks, lines left out, tables per collective (None: all-reduce and sendrecv are alike on two ranks)
    ("oneflow-4090-2-r0", 2, (97, 376), {None: 8, "all-gather": 8, "broadcast": 8, "reduce": 7, "reduce-scatter": 8}),
    ("oneflow-4090-8", 8, (91, 178, 265, 338, 438), {"all-gather": 5, "all-reduce": 4, "broadcast": 4, "reduce": 4, "reduce-scatter": 4}),
    ("oneflow-v100-8-r0", 8, (91, 276, 363, 454), {"all-gather": 5, "all-reduce": 5, "broadcast": 5, "reduce": 4, "reduce-scatter": 5}),
]


@pytest.mark.parametrize(("log", "ranks", "left_out", "tables"), ONE_RUN_PER_SIZE)
def test_one_run_per_size(log: str, ranks: int, left_out: tuple[int, ...], tables: dict[str | None, int]) -> None:
    found = read(log)
    assert Counter(t.collective for t in found) == tables
    assert {(t.nranks, t.threads, t.gpus_per_thread, t.processes, len(t.rows)) for t in found} == {(ranks, ranks, 1, 1, 1)}
    assert all(f"line {line}: " in found[0].notes[0] for line in left_out)
    assert all(t.decided_by.startswith("undecided: all-reduce or sendrecv") for t in found if t.collective is None)


def test_what_the_notes_say() -> None:
    assert "lists 5 ranks but the rows are of 32" in " ".join(read("cw-a100-32r-sharp")[0].notes)
    assert "line 333: " in " ".join(read("snellius-2n")[0].notes)
    assert "5, line 6, 7, 8, 9, 10" in " ".join(read("gcp-a3mega-2n-ag")[0].notes)
    assert read("p100-2g")[2].decided_by.startswith("undecided: gather or scatter")
    assert read("oci-gb200-8r")[0].decided_by == "the command line: all_reduce_perf (line 8)"


@pytest.mark.parametrize(
    ("log", "dataset", "compared"),
    [
        ("deepops-dgxa100-4n", "deepops-a100-4n", 13),
        ("gcp-a3mega-2n-ag", "a3mega-2n-ag", 15),
        ("lambda-b200-2n", "lambda-b200-2n", 29),
        ("mi300x-1n", "hiso-mi300x-1n", 31),
        ("mi355x-2n", "hiso-mi355x-2n", 31),
        ("oci-gb200-8r", "oci-gb200-8r", 33),
        ("snellius-2n", "snellius-2n", 54),
    ],
)
def test_times_agree_with_the_tidy_table(log: str, dataset: str, compared: int) -> None:
    """Only sizes that the tidy table took from one run (n_rep 1): elsewhere it holds a median of several logs."""
    tables, path = read(log), SHARED / "measurements" / "measurements.csv"
    if not path.exists():
        pytest.skip("measurements.csv is not beside the checkout")
    times = {(t.collective, row.size_bytes): row.time_s for t in tables for row in t.select(in_place=False)}
    seen = 0
    with path.open() as file:
        for row in csv.DictReader(file):
            at = (row["collective"].replace("_", "-"), int(row["size_bytes"]))
            if row["dataset_id"] == dataset and row["n_rep"] == "1" and at in times:
                assert times[at] == pytest.approx(float(row["time_us"]) * 1e-6, rel=1e-9)
                seen += 1
    assert seen == compared
