"""Measured tables of collectives, as they stand in a log: what was printed (``Line``) and what it means (``Table``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

ITEMSIZE = {
    **dict.fromkeys(("int8", "uint8", "char", "f8e4m3", "f8e5m2", "fp8_e4m3", "fp8_e5m2"), 1),
    **dict.fromkeys(("half", "float16", "bfloat16"), 2),
    **dict.fromkeys(("int32", "uint32", "int", "float", "float32"), 4),
    **dict.fromkeys(("int64", "uint64", "double", "float64"), 8),
}
"""Bytes of one element, by the names nccl-tests and rccl-tests print."""


@dataclass(frozen=True, slots=True)
class Printed:
    """A number as printed: it stands for anything in ``value`` +- ``error`` (half a unit of its last digit)."""

    value: float
    error: float

    @property
    def low(self) -> float:
        return self.value - self.error

    @property
    def high(self) -> float:
        return self.value + self.error


@dataclass(frozen=True, slots=True)
class Half:
    """The out-of-place or the in-place half of a line: ``time`` (above 0) in the unit of the log, bandwidths in GB/s."""

    time: Printed
    algbw: Printed
    busbw: Printed
    wrong: int | None
    checked: bool
    """The result was validated (the last column is a number, not N/A)."""

    def size_over_time(self, size: int, unit: float) -> Printed:
        """What algbw [GB/s] should be for ``size`` bytes when ``time`` counts ``unit`` seconds."""
        fast, slow = size / (self.time.low * unit) / 1e9, size / (self.time.high * unit) / 1e9
        return Printed((fast + slow) / 2, (fast - slow) / 2)


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a log: sizes in bytes, ``halves`` = (out-of-place,) or (out-of-place, in-place)."""

    number: int
    size: int
    count: int
    dtype: str
    op: str | None
    root: int | None
    halves: tuple[Half, ...]


@dataclass(frozen=True, slots=True)
class Row:
    """One measurement. ``algbw_Bps`` [B/s] is always size/time; ``busbw_Bps`` [B/s] is algbw times the factor of the
    collective; while the collective or the number of ranks is unknown, the printed (rounded) number, or NaN where none is
    printed. ``count`` is the argument of the call (per rank for all-gather, reduce-scatter, all-to-all, gather, scatter).
    ``wrong`` is None where the log has no count of wrong elements."""

    size_bytes: int
    count: int
    in_place: bool
    time_s: float
    algbw_Bps: float
    busbw_Bps: float
    root: int | None
    wrong: int | None
    line: int


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one run, data type and operation. None means that the log does not say and the numbers do not tell;
    ``decided_by`` says where ``collective`` comes from, or why it is None; ``notes`` name everything that was corrected,
    doubted or left out, with its line."""

    source: str
    line: int
    collective: str | None
    decided_by: str
    nranks: int | None
    nservers: int | None
    gpu: str | None
    dtype: str
    op: str | None
    threads: int | None
    gpus_per_thread: int | None
    processes: int | None
    rows: tuple[Row, ...]
    notes: tuple[str, ...]
    word: Literal["line", "result"] = "line"
    """What ``line`` counts: lines of a text from 1, or results of a JSON file from 0."""

    def at(self, line: int) -> str:
        """Where a row stands, as errors write it: file:line, or file and JSON path."""
        return f"{self.source}:{line}" if self.word == "line" else f"{self.source}: results[{line}]"

    def select(self, in_place: bool) -> tuple[Row, ...]:
        """The rows of one half, in the order of the log."""
        return tuple(row for row in self.rows if row.in_place == in_place)
