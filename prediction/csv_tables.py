"""CSV of measurements (comma, semicolon or tab; columns found by name and unit) into measured tables."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from prediction.identify import MAX_RANKS, SIGNATURES, canonical, factor, named_in
from prediction.log_file import MAX_LINE, MAX_ROWS, Log, some
from prediction.nccl_lines import shown
from prediction.tables import ITEMSIZE, Row, Table
from topologies.errors import MeasurementError, nearest

_BYTES = {"b": 1, "byte": 1, "bytes": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "kib": 2**10, "mib": 2**20, "gib": 2**30}
_SECONDS = {
    **dict.fromkeys(("s", "sec", "seconds"), Decimal(1)), "ms": Decimal("1e-3"), "ns": Decimal("1e-9"),
    **dict.fromkeys(("us", "usec", "microseconds"), Decimal("1e-6")),
}  # fmt: skip
_SIZES = {f"{base}_{unit}": Decimal(factor) for base in ("size", "message_size", "msg_size") for unit, factor in _BYTES.items()}
_SIZES |= {"bytes": Decimal(1), "nbytes": Decimal(1)}
_TIMES = {f"{base}_{unit}": factor for base in ("time", "latency", "avg_time", "avg_latency") for unit, factor in _SECONDS.items()}
_BARE = {"size": "size_bytes", "message_size": "size_bytes", "msg_size": "size_bytes", "time": "time_us", "latency": "latency_us"}
_OTHERS = {
    **dict.fromkeys(("collective", "operation", "coll", "test"), "collective"),
    **dict.fromkeys(("nranks", "ranks", "n_ranks", "np", "ngpus", "gpus"), "nranks"),
    **dict.fromkeys(("nnodes", "nodes", "n_nodes", "nservers", "servers", "hosts"), "nnodes"),
    **dict.fromkeys(("dtype", "datatype", "data_type", "type"), "dtype"),
    **dict.fromkeys(("op", "redop"), "op"),
    **dict.fromkeys(("gpu", "gpu_model"), "gpu"),
    **dict.fromkeys(("dataset_id", "dataset", "run", "run_id"), "run"),
    "in_place": "in_place", "inplace": "in_place", "root": "root", "wrong": "wrong", "nwrong": "wrong",
}  # fmt: skip
_TRUTH = {
    **dict.fromkeys(("1", "true", "yes", "in_place", "in-place"), True),
    **dict.fromkeys(("0", "false", "no", "out_of_place", "out-of-place", ""), False),
}
_ALIASES = {"bcast": "broadcast", "all-to-all-personalized": "all-to-all"}
_NAME = re.compile(r"[^\W\d][\w .#%()\[\]/µμ-]{0,60}")
_BITS = re.compile(r"[KMG]i?b\W*$")  # Mb, as opposed to MB and to a name all in small letters
_NUMBER = re.compile(r"[0-9]{1,18}(?:\.[0-9]{0,18})?(?:[eE][+-]?[0-9]{1,2})?")
_GROUPED = re.compile(r"[0-9]{1,3}(?:[.,][0-9]{3})+")


class _Key(NamedTuple):
    """What all rows of one table have in common."""

    run: str
    collective: str | None
    nranks: int | None
    nnodes: int | None
    dtype: str
    op: str | None
    gpu: str | None


@dataclass(frozen=True, slots=True)
class _Columns:
    separator: str
    at: Mapping[str, int]
    """Index of each column that is used: size, time, and the values of ``_OTHERS``."""
    size: Decimal
    time: Decimal
    width: int
    unused: tuple[str, ...]


def is_header(text: str) -> bool:
    """The line names columns of a table of measurements, though perhaps not all that are needed."""
    return len(text) <= MAX_LINE and _split_header(text) is not None


def read_csv(log: Log) -> list[Table]:
    """One table for each run, collective, number of ranks and nodes, datatype, operation and GPU, in the order of the file. The
    size is the whole vector, as nccl-tests has it. Rows that cannot be read are left out and named. Raises MeasurementError, with
    the line, for a header without size, time or their units, beyond 100,000 rows, and when no row is left."""
    columns: _Columns | None = None
    separator = ""
    groups: dict[_Key, list[Row]] = {}
    broken: list[str] = []
    count = 0
    guess = named_in(log.name)
    for number, text in _lines(log):
        if text.startswith("sep=") and columns is None:
            separator = text[4:5]
            continue
        try:
            if columns is None:
                columns = _columns(text, separator)
                continue
            count += 1
            if count > MAX_ROWS:
                raise MeasurementError(f"{log.name}:{number}: more than {MAX_ROWS} rows; split the file")
            key, row = _row(text, number, columns, guess)
        except MeasurementError:
            raise
        except ValueError as error:
            if columns is None:
                raise MeasurementError(f"{log.name}:{number}: {error}") from None
            broken.append(f"line {number}: {error}")
        else:
            groups.setdefault(key, []).append(row)
    if columns is None or not groups:
        found = some(broken) or "a header and no rows"
        raise MeasurementError(f"{log.name}: no measured row to read; found {found}")
    notes = [f"broken rows left out ({len(broken)}): {some(broken)}"] if broken else []
    if columns.unused:
        notes.append(f"columns that are not used: {some(columns.unused, ', ')}")
    if "dtype" not in columns.at:
        notes.append('no column "dtype": float is taken')
    return [_table(log.name, key, rows, columns, tuple(notes) if i == 0 else ()) for i, (key, rows) in enumerate(groups.items())]


def _lines(log: Log) -> Iterator[tuple[int, str]]:
    for number, text in enumerate(log.lines(), 1):
        bare = text.strip(" \r\n")
        if bare.strip(" \t;,") and not bare.startswith("#"):
            yield number, bare


def _plain(name: str) -> str:
    """``Size (KiB)`` and ``time [µs]`` as ``size_kib`` and ``time_us``."""
    return re.sub(r"[\s()\[\]/._-]+", "_", name.strip().strip("#").lower().replace("µ", "u").replace("μ", "u")).strip("_")


def _fields(text: str, separator: str) -> list[str]:
    """Raises ValueError for a quotation that does not end on its line."""
    if len(text) > MAX_LINE:
        raise ValueError(f"a line of more than {MAX_LINE} characters")
    try:
        return [field.strip() for field in next(csv.reader([text], delimiter=separator, strict=True), [])]
    except csv.Error as error:
        raise ValueError(f"{shown(text)} is not CSV: {error}") from None


def _split_header(text: str, separator: str = "") -> tuple[str, list[str]] | None:
    """The separator under which most fields are known names, and the fields; None where no field is, or one is no name."""
    best: tuple[int, str, list[str]] | None = None
    for sep in (separator,) if separator in (";", ",", "\t") else (";", "\t", ","):
        try:
            names = _fields(text, sep)
        except ValueError:
            continue
        plain = [_plain(name) for name in names]
        known = sum(name in _SIZES or name in _TIMES or name in _OTHERS or name in _BARE for name in plain)
        if known and len(names) > 1 and all(not name or _NAME.fullmatch(name) for name in names) and (best is None or known > best[0]):
            best = known, sep, names
    return None if best is None else best[1:]


def _columns(text: str, separator: str) -> _Columns:
    """Raises ValueError for a header that names no size or time, the same thing twice, bits, or no unit."""
    split = _split_header(text, separator)
    if split is None:
        raise ValueError(f"{shown(text)} is no header; write such as collective,size_bytes,time_us,nranks")
    separator, names = split
    at: dict[str, int] = {}
    units: dict[str, Decimal] = {}
    unused = []
    for i, name in enumerate(names):
        plain = _plain(name)
        if plain in _BARE:
            raise ValueError(f"column {shown(name)} has no unit; write {_BARE[plain]}")
        what = "size" if plain in _SIZES else "time" if plain in _TIMES else _OTHERS.get(plain)
        if what is None:
            unused += [shown(name)] if name else []
            continue
        if what == "size" and _BITS.search(name):
            raise ValueError(f"column {shown(name)} counts bits; write bytes, such as size_MB")
        if what in at:
            raise ValueError(f"columns {shown(names[at[what]])} and {shown(name)} both give the {what}; leave one out")
        at[what] = i
        units |= {what: (_SIZES | _TIMES)[plain]} if what in ("size", "time") else {}
    for what, write in (("size", "size_bytes"), ("time", "time_us or time_s")):
        if what not in at:
            raise ValueError(f"no column gives the {what}; write {write}; there are {some([shown(name) for name in names], ', ')}")
    return _Columns(separator, at, units["size"], units["time"], len(names), tuple(unused))


def _row(text: str, number: int, columns: _Columns, guess: str | None) -> tuple[_Key, Row]:
    """Raises ValueError with the column and the rule."""
    fields = _fields(text, columns.separator)
    if len(fields) != columns.width and (len(fields) < columns.width or any(fields[columns.width :])):
        raise ValueError(f"{len(fields)} fields instead of {columns.width}: {shown(text)}")

    def cell(what: str) -> str:
        return fields[columns.at[what]] if what in columns.at else ""

    def whole(what: str, low: int, high: int) -> int | None:
        text = "" if what == "root" and cell(what) == "-1" else cell(what)  # nccl-tests: no root
        value = _maybe(text, lambda text: _number(what, text, columns.separator))
        if value is not None and (value != value.to_integral_value() or not low <= value <= high):
            raise ValueError(f"{what} {shown(cell(what))} is not a whole number from {low} to {high}")
        return None if value is None else int(value)

    size, time = (_number(what, cell(what), columns.separator) * unit for what, unit in (("size", columns.size), ("time", columns.time)))
    if size != size.to_integral_value() or not 0 < size < 2**63:
        raise ValueError(f"size {shown(cell('size'))} is not a whole number of bytes from 1 to 2^63")
    if not Decimal("1e-12") <= time <= Decimal("1e9"):
        raise ValueError(f"time {shown(cell('time'))} is not from 1e-12 s to 1e9 s")
    dtype = cell("dtype").lower().removeprefix("nccl") or "float"
    if dtype not in ITEMSIZE:
        raise ValueError(f"dtype {shown(dtype)} is not known{nearest(dtype, ITEMSIZE)}")
    place = cell("in_place").lower()
    if place not in _TRUTH:
        raise ValueError(f"in_place {shown(place)} is not 0 or 1")
    collective = _collective(cell("collective")) or guess
    nranks, nnodes = whole("nranks", 1, MAX_RANKS), whole("nnodes", 1, MAX_RANKS)
    if nranks is not None and nnodes is not None and nnodes > nranks:
        raise ValueError(f"{nnodes} nodes are more than {nranks} ranks")
    key = _Key(cell("run"), collective, nranks, nnodes, dtype, cell("op").lower() or None, cell("gpu") or None)
    return key, _measured(int(size), float(time), key, (_TRUTH[place], whole("root", 0, MAX_RANKS), whole("wrong", 0, 2**63), number))


def _measured(size: int, time: float, key: _Key, rest: tuple[bool, int | None, int | None, int]) -> Row:
    signature = SIGNATURES.get(key.collective or "")
    times = float("nan")
    if signature and (key.nranks is not None or signature.factor == "1"):
        times = factor(signature.factor, key.nranks or 1)
    count = size // ITEMSIZE[key.dtype] // (key.nranks or 1 if signature and signature.per_rank else 1)
    in_place, root, wrong, number = rest
    return Row(size, count, in_place, time, size / time, size / time * times, root, wrong, number)


def _collective(text: str) -> str | None:
    if len(text) > 60 or any(not (c.isalnum() or c in "_- ") for c in text):
        raise ValueError(f"collective {shown(text)} is not a name")
    name = canonical(text.removeprefix("nccl")) if text else ""
    return _ALIASES.get(name, name) or None


def _maybe(text: str, read: Callable[[str], Decimal]) -> Decimal | None:
    return None if text in ("", "-", "n/a", "N/A", "NA") else read(text)


def _number(what: str, text: str, separator: str) -> Decimal:
    """A decimal point, or, where commas do not separate, a decimal comma. Raises ValueError for anything else, and for digits in
    groups of three, which may mean either."""
    plain = text
    if "," in text:
        if _GROUPED.fullmatch(text) or separator == "," or "." in text:
            raise ValueError(f"{what} {shown(text)} may be thousands or a fraction; write it without the comma")
        plain = text.replace(",", ".")
    if _NUMBER.fullmatch(plain) is None:
        raise ValueError(f"{what} {shown(text)} is not a number from 0 up")
    return Decimal(plain)


def _table(name: str, key: _Key, rows: list[Row], columns: _Columns, notes: tuple[str, ...]) -> Table:
    if key.collective is None:
        decided = 'undecided: no column "collective"; write one, or the collective into the file name'
    else:
        decided = 'the column "collective"' if "collective" in columns.at else f"the file name: {key.collective}"
    return Table(
        source=name,
        line=rows[0].line,
        collective=key.collective,
        decided_by=decided,
        nranks=key.nranks,
        nservers=key.nnodes,
        gpu=key.gpu,
        dtype=key.dtype,
        op=key.op,
        threads=None,
        gpus_per_thread=None,
        processes=None,
        rows=tuple(rows),
        notes=notes,
    )
