"""One line of nccl-tests text: a measured row, or the reason why it is none; and the patterns of header lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from math import isfinite

from prediction.tables import ITEMSIZE, Half, Line, Printed
from topologies.errors import nearest

# No pattern may cost more than its line is long, however hostile: literals first, no repetition inside a repetition. A number
# is of ASCII digits; ROW alone takes any digit (\d), so that a row of full-width ones is named, not passed over.
_NUMERAL = r"[-+]?(?:\d[\w.,+-]*|nan|inf)"
ROW = re.compile(rf"(?<![\w.,+-])({_NUMERAL})\s+({_NUMERAL})\s+([a-z]\w*)(?=\s|$)(.*)", re.IGNORECASE | re.DOTALL)
COLUMNS = re.compile(r"\b(?:size\s+count|bytes\s+N)\s+type\b(.*)", re.DOTALL)
_RANK = r"\bRank\s+([0-9]{1,9})\s+(?:Group\s+([0-9]{1,9})\s+)?(?:Pid\s+[0-9]+\s+)?on\s+(\S+)\s+device\s+[0-9]+\s*(?:\[[^\]]*\])?(.*)"
RANK = re.compile(_RANK)
DEVICE = re.compile(r"\bDevice\s+([0-9]{1,9})()()\s+->\s+[0-9]+\s+\[[^\]]*\](.*)")  # 2016: one process, no host name
LAUNCH = re.compile(r"\bnThreads?\s+([0-9]{1,6})\s+nGpus\s+([0-9]{1,6})\b")
START = re.compile(r"Collective test starting:\s*(\w{1,80})")
HEADERS = (("starting:", START), ("nGpus", LAUNCH), ("Rank ", RANK), ("Device ", DEVICE), ("algbw", COLUMNS))
COMMAND = re.compile(r"(?:^|[\s/'\"=`])([a-z]\w*?_perf(?:_mpi)?)(?=\s+-|\s*\\?$|['\"`])")
_AVERAGE = re.compile(r"Avg bus bandwidth\s*:\s*(\S+)")
INFO_RANKS = re.compile(r"\bnranks ([0-9]{1,9})\b")

_TYPE_STEMS = ("float", "int", "half", "double", "char", "f8", "fp8")  # one is in every name of ITEMSIZE
_NUMBER = re.compile(r"[0-9]{1,15}(?:\.([0-9]{0,12}))?(?:e([+-]?[0-9]{1,2}))?", re.IGNORECASE)
OPS = frozenset({"sum", "prod", "max", "min", "avg", "mulsum", "all", "none"})


def shown(text: str) -> str:
    """A short, printable quotation."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


def header(text: str) -> re.Match[str] | None:
    """The match of a line that describes a run or the columns of its table."""
    for literal, pattern in HEADERS:
        if literal in text and (found := pattern.search(text)):
            return found
    return None


def row(number: int, text: str, columns: Sequence[str] | None) -> Line | str | None:
    """The measurement on a line, why the row on it is broken, or None if there is no row. ``columns``: the names after
    ``type`` in the last header; without them the number of fields tells. A Line of size 0 has no halves."""
    if "NCCL INFO" in text and not any(stem in text for stem in _TYPE_STEMS):
        return None  # Nearly all of a long log; a row may still be glued to such a line.
    found = ROW.search(text)
    if found is None:
        return None
    size, count, dtype, rest = found.groups()
    dtype, fields = dtype.lower(), rest.split()
    if columns is None and (dtype not in ITEMSIZE or not fields or not (fields[0].lower() in OPS or fields[0][0] in "-.0123456789")):
        return None  # Prose such as "with 2 16 half nodes"; under a header it would be a row.
    try:
        if dtype not in ITEMSIZE:
            raise ValueError(f"type {shown(dtype)} is not known{nearest(dtype, ITEMSIZE)}")
        op = fields.pop(0).lower() if fields and fields[0].isalpha() and fields[0].lower() != "nan" else "none"
        if op not in OPS:
            raise ValueError(f"redop {shown(op)} is not known{nearest(op, OPS)}")
        nbytes = _integer("size", size)
        elements, reduction = _integer("count", count), None if op == "none" else op
        if nbytes == 0:
            return Line(number, 0, elements, dtype, reduction, None, ())
        root, halves = _split(fields, columns)
        return Line(number, nbytes, elements, dtype, reduction, root, tuple(_half(half) for half in halves))
    except ValueError as error:
        return f"line {number}: {error}"


def _split(fields: list[str], columns: Sequence[str] | None) -> tuple[int | None, list[list[str]]]:
    """(root, the fields of one or two halves). Raises ValueError when their number fits no layout."""
    names = [name for name in columns or () if name not in ("redop", "op")]
    rooted = "root" in names if columns is not None else len(fields) % 4 == 1
    starts = [i for i, name in enumerate(names) if name in ("time", "cputime")]
    first = starts[0] if starts else int(rooted)
    width = starts[1] - first if len(starts) > 1 else len(names) - first if starts else 4
    body = fields[first:]
    extra = max(0, len(names) - first - 2 * width) if starts else 0  # #iters, timestamp (date and time)
    most = 2 * width + 2 * extra
    if len(body) != width and not 2 * width <= len(body) <= most:
        raise ValueError(f"{len(body)} fields from time on instead of {width} or {2 * width}: {shown(' '.join(fields))}")
    root = _integer("root", fields[0], low=-1) if rooted else -1
    return (None if root < 0 else root), [body[i : i + width] for i in range(0, min(len(body), 2 * width), width)]


def _integer(what: str, text: str, low: int = 0) -> int:
    """Raises ValueError for anything but a whole number from ``low`` to 2^63."""
    if re.fullmatch(r"-?[0-9]{1,19}", text) is None or not low <= int(text) < 1 << 63:
        raise ValueError(f"{what} {shown(text)} is not a whole number from {low} to 2^63")
    return int(text)


def _half(fields: Sequence[str]) -> Half:
    time, algbw, busbw = (_printed(what, text) for what, text in zip(("time", "algbw", "busbw"), fields, strict=False))
    if time.value == 0:
        raise ValueError("time is 0; a size above 0 takes time")
    wrong = fields[3].rstrip("*") if len(fields) > 3 else "N/A"
    if wrong.upper() == "N/A":
        return Half(time, algbw, busbw, None, checked=False)
    errors = float(wrong) if re.fullmatch(r"[0-9.]{1,19}(e[+-]?[0-9]{1,3})?", wrong) and wrong.count(".") < 2 and wrong != "." else -1.0
    if errors < 0 or not isfinite(errors):
        raise ValueError(f"#wrong {shown(fields[3])} is not a count or N/A")
    # 7e-07 is the largest relative error of the versions before 2.13, not a count.
    return Half(time, algbw, busbw, int(errors) if errors.is_integer() else None, checked=True)


def is_footer(text: str) -> bool:
    """The line ends a table."""
    return "Avg bus bandwidth" in text or "Out of bounds values" in text or "Collective test concluded" in text


def average(text: str) -> Printed | None:
    """The average busbw [GB/s] of a footer; None if it has none."""
    found = _AVERAGE.search(text)
    return _printed("average", found[1]) if found and _NUMBER.fullmatch(found[1]) else None


def _printed(what: str, text: str) -> Printed:
    """Raises ValueError for nan, inf, signs and anything else that is not a decimal number."""
    found = _NUMBER.fullmatch(text)
    if found is None:
        raise ValueError(f"{what} {shown(text)} is not a number from 0 up")
    decimals, power = len(found[1] or ""), int(found[2] or 0)
    return Printed(float(text), 0.5 * 10.0 ** (power - decimals))
