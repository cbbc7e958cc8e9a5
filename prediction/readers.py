"""One reader for every kind of measured log; the kind is told by the content, never by the name of the file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from prediction.csv_tables import is_header, read_csv
from prediction.log_file import MAX_LINE, Log, file_log, text_log
from prediction.nccl_json import read_json
from prediction.nccl_lines import COLUMNS
from prediction.nccl_tests import read_lines
from prediction.osu import HEADER, read_osu
from prediction.tables import Table
from topologies.errors import MeasurementError


def read_log(path: str | Path) -> list[Table]:
    """Tables of a file (UTF-8 or UTF-16, at most 256 MiB) in its order: text or JSON of nccl-tests and rccl-tests, text of the OSU
    micro-benchmarks, or CSV. Raises MeasurementError, with file and line or JSON path, for anything else."""
    return _read(file_log(Path(path)))


def read_text(text: str, name: str) -> list[Table]:
    """The same for a text; ``name`` stands in the messages and may name the collective (``all_reduce.txt``)."""
    return _read(text_log(text, name))


def _read(log: Log) -> list[Table]:
    return _reader(log.lines(), log.name)(log)


def _reader(lines: Iterable[str], name: str) -> Callable[[Log], list[Table]]:
    osu = nccl = 0
    begun = False
    for number, text in enumerate(lines, 1):
        if not begun and (start := text.strip()) and not start.startswith(("#", "sep=")):
            begun = True
            # A tag of mpirun, "[1,0]<stdout>:", or of a container log, "{pod}", is no JSON.
            if start[0] == "{" and start[1:].lstrip()[:1] in ("", '"', "}"):
                return read_json
            if is_header(start):
                return read_csv
        if not osu and "OSU " in text and len(text) <= MAX_LINE and HEADER.search(text):
            osu = number
        if not nccl and "algbw" in text and len(text) <= MAX_LINE and COLUMNS.search(text):
            nccl = number
        if osu and nccl:
            raise MeasurementError(f"{name}:{osu}: text of OSU, but line {nccl} is of nccl-tests; give them as two files")
    return read_osu if osu else lambda log: read_lines(log.lines(), log.name)
