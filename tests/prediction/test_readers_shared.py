"""The readers against files of other people, where they stand beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from prediction.nccl_info import read_info
from prediction.readers import read_log
from topologies.errors import MeasurementError

SHARED = Path(__file__).resolve().parents[2].parent / "shared"


@pytest.mark.parametrize("path", sorted((SHARED / "inputs").rglob("*.*")) + sorted((SHARED / "measurements").glob("*")) or [None], ids=str)
def test_files_of_other_people(path: Path | None) -> None:
    """Logs and tables are read; what is no measurement, or has no row, is refused and says what was found."""
    if path is None:
        pytest.skip("no files stand beside the checkout")
    without_rows = {"aws-p4de-2n.txt", "cw-a100-1n-3g.txt", "cw-a100-1n-8g.txt", "machines.csv"}
    one_row = {"t4.txt"}  # a matrix, and below it a row of nccl-tests
    if path.name in without_rows or (path.parent.name not in ("logs", "measurements") and path.name not in one_row):
        with pytest.raises(MeasurementError, match=r"found line \d: |machines\.csv:1: no column gives the size"):
            read_log(path)
    else:
        assert all(table.rows for table in read_log(path))
    if path.parent.name == "nccl-info":
        assert read_info(path).communicators


def test_the_tidy_table_beside_the_checkout() -> None:
    path = SHARED / "measurements" / "measurements.csv"
    if not path.exists():
        pytest.skip("measurements.csv is not beside the checkout")
    tables = read_log(path)
    lines = path.read_text(encoding="utf-8").splitlines()
    assert sum(len(table.rows) for table in tables) == len(lines) - 1
    row = tables[0].rows[1]
    assert (row.size_bytes, row.time_s) == (int(lines[2].split(",")[2]), pytest.approx(float(lines[2].split(",")[3]) * 1e-6))
