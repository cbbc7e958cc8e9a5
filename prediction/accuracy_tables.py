"""A folder of measurements: ``machines.csv`` (a row a data set) and ``measurements.csv`` (a row a size) -> curves.

Columns are found by name, others are not looked at, empty is unknown. A row that cannot be read is left out and named; a header without
the columns that are needed, or a file that is none, is a MeasurementError.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from prediction.identify import canonical
from prediction.log_file import MAX_LINE, MAX_ROWS, file_log
from topologies.errors import MeasurementError, nearest, quoted

MACHINES, MEASUREMENTS = "machines.csv", "measurements.csv"
APART = ("noisy", "uncertain")
"""Qualities that are reported beside the others, as are points marked as outliers."""
_MACHINE_COLUMNS = ("dataset_id", "gpu", "gpus_per_node", "nodes")
_POINT_COLUMNS = ("dataset_id", "collective", "size_bytes", "time_us")
_MOST_SECONDS, _MOST_BYTES, _MOST_NAME = 1e6, 2**60, 100


class Point(NamedTuple):
    """One measurement: the whole vector [B], as nccl-tests counts it, and the time of a call [s]."""

    size_bytes: int
    time_s: float
    outlier: bool = False


@dataclass(frozen=True, slots=True)
class Dataset:
    """One machine and how the library ran on it, in the words of the table; ``where`` is its file and line."""

    name: str
    cluster: str
    quality: str
    row: Mapping[str, str]
    where: str

    def text(self, column: str) -> str:
        """The value of a column, without blanks around it; empty where unknown."""
        return (self.row.get(column) or "").strip()


@dataclass(frozen=True, slots=True)
class Curve:
    """One collective of a data set, points by ascending size."""

    dataset: Dataset
    collective: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Folder:
    """All curves in the order of the tables, and what was left out."""

    curves: tuple[Curve, ...]
    notes: tuple[str, ...]


def read_folder(folder: Path, only: Sequence[str] = ()) -> Folder:
    """The two tables; with ``only`` the data sets or clusters of these names. Raises MeasurementError."""
    if not folder.is_dir():
        raise MeasurementError(f"{folder}: not a folder; give one with {MACHINES} and {MEASUREMENTS}")
    notes: list[str] = []
    datasets = _datasets(folder / MACHINES, notes)
    known = {*datasets, *(dataset.cluster for dataset in datasets.values())}
    for name in only:
        if name not in known:
            raise MeasurementError(f"{folder / MACHINES}: {quoted(name)} is neither a data set nor a cluster{nearest(name, known)}")
    points = _points(folder / MEASUREMENTS, datasets, notes)
    wanted = {name for name, dataset in datasets.items() if not only or name in only or dataset.cluster in only}
    curves = [Curve(datasets[name], collective, tuple(sorted(found))) for (name, collective), found in points.items() if name in wanted]
    if not curves:
        raise MeasurementError(f"{folder / MEASUREMENTS}: no measurement of any data set of {MACHINES}")
    return Folder(tuple(curves), tuple(notes))


def _datasets(path: Path, notes: list[str]) -> dict[str, Dataset]:
    found: dict[str, Dataset] = {}
    for number, row in _rows(path, _MACHINE_COLUMNS, notes):
        name = row["dataset_id"].strip()
        where = f"{path.name}:{number}"
        if not _is_name(name) or name in found:
            notes.append(f"{where}, dataset_id: {quoted(name)} {'stands twice' if name in found else 'is not a name'}; left out")
            continue
        cluster = (row.get("cluster") or "").strip() or name
        quality = (row.get("quality") or "").strip().lower() or "ok"
        found[name] = Dataset(name, cluster if _is_name(cluster) else name, quality, row, where)
    return found


def _is_name(text: str) -> bool:
    return 0 < len(text) <= _MOST_NAME and text.isprintable()


def _points(path: Path, datasets: Mapping[str, Dataset], notes: list[str]) -> dict[tuple[str, str], list[Point]]:
    found: dict[tuple[str, str], list[Point]] = {}
    for number, row in _rows(path, _POINT_COLUMNS, notes):
        try:
            name = row["dataset_id"].strip()
            if name not in datasets:
                raise ValueError(f"dataset_id: {quoted(name)} is not in {MACHINES}{nearest(name, datasets)}")
            collective = canonical(row["collective"].strip()[:_MOST_NAME])
            if not _is_name(collective):
                raise ValueError(f"collective: {quoted(collective)} is not a name")
            size = _number("size_bytes", row["size_bytes"], _MOST_BYTES)
            if size != int(size):
                raise ValueError(f"size_bytes: {quoted(row['size_bytes'])} is not a whole number")
            seconds = _number("time_us", row["time_us"], _MOST_SECONDS * 1e6) / 1e6
        except ValueError as error:
            notes.append(f"{path.name}:{number}, {error}; left out")
            continue
        outlier = (row.get("outlier") or "").strip().lower() not in ("", "0", "no", "false")
        found.setdefault((name, collective), []).append(Point(int(size), seconds, outlier))
    return found


def _number(column: str, text: str, most: float) -> float:
    """Above 0 and at most ``most``; raises ValueError."""
    try:
        value = float(text) if len(text) <= _MOST_NAME else math.nan
    except ValueError:
        value = math.nan
    if not 0 < value <= most:
        raise ValueError(f"{column}: {quoted(text)} is not a number above 0, at most {most:g}")
    return value


def _rows(path: Path, needed: Sequence[str], notes: list[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """Line number and the fields of each row by column."""
    header: list[str] = []
    for number, line in enumerate(file_log(path).lines(), 1):
        if number > MAX_ROWS:
            raise MeasurementError(f"{path}:{number}: more than {MAX_ROWS} lines; split the file")
        text = line.rstrip("\r\n")
        if not text.strip() or text.startswith("#"):
            continue
        try:
            if len(text) > MAX_LINE:
                raise csv.Error(f"a line of more than {MAX_LINE} characters")
            fields = next(csv.reader([text], strict=True))
        except csv.Error as error:
            notes.append(f"{path.name}:{number}: not CSV: {error}; left out")
            continue
        if header and len(fields) == len(header):
            yield number, dict(zip(header, fields, strict=True))
        elif header:
            notes.append(f"{path.name}:{number}: {len(fields)} fields under {len(header)} columns; left out")
        else:
            header = [name.strip() for name in fields]
            for column in needed:
                if header.count(column) != 1:
                    raise MeasurementError(f"{path}:{number}: the header needs one column {quoted(column)}{nearest(column, header)}")
    if not header:
        raise MeasurementError(f"{path}: empty; write a header with {', '.join(needed)} and a row for each")
