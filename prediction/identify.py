"""Which collective, on how many ranks, printed these lines: names first, else what the numbers admit."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf
from pathlib import PurePath
from typing import Literal

from prediction.tables import ITEMSIZE, Line, Printed

Factor = Literal["2(n-1)/n", "(n-1)/n", "1"]
MAX_RANKS = 1 << 20
_TIGHTEST = 512  # halves that are enough to judge a factor: keeps a table of 100,000 rows cheap


@dataclass(frozen=True, slots=True)
class Signature:
    """How a test prints: busbw over size/time, whether count is per rank, and which columns are filled (nccl-tests
    ``*GetBw``, ``*GetCollByteCount``). ``in_place``: whether the in-place half can be validated, None where versions differ."""

    factor: Factor
    per_rank: bool = False
    reduces: bool = False
    rooted: bool = False
    in_place: bool | None = None


SIGNATURES: Mapping[str, Signature] = {
    "all-reduce": Signature("2(n-1)/n", reduces=True, in_place=True),
    "reduce-scatter": Signature("(n-1)/n", per_rank=True, reduces=True, in_place=True),
    "all-gather": Signature("(n-1)/n", per_rank=True, in_place=True),
    "all-to-all": Signature("(n-1)/n", per_rank=True, in_place=False),
    "gather": Signature("(n-1)/n", per_rank=True, rooted=True),
    "scatter": Signature("(n-1)/n", per_rank=True, rooted=True),
    "broadcast": Signature("1", rooted=True),
    "reduce": Signature("1", reduces=True, rooted=True),
    "sendrecv": Signature("1", reduces=True, in_place=False),  # prints a redop, though it reduces nothing
    "hypercube": Signature("(n-1)/n", per_rank=True),
}
_SQUASHED = {name.replace("-", ""): name for name in SIGNATURES}
_IN_FILE_NAME = re.compile(
    r"(?<![a-z])(all[-_ ]?reduce|reduce[-_ ]?scatter|all[-_ ]?gather|all[-_ ]?to[-_ ]?all"
    r"|broadcast|send[-_ ]?recv|hypercube|gather|scatter|reduce)(?![a-z])"
)


def canonical(test: str) -> str:
    """``all_reduce_perf_mpi`` or ``AllReduce`` -> ``all-reduce``; an unknown test keeps its own name, with dashes."""
    bare = re.sub(r"_perf.*$|_test$", "", test.lower())
    return _SQUASHED.get(re.sub(r"[-_ ]", "", bare), bare.replace("_", "-"))


def named_in(source: str) -> str | None:
    """The collective that a file name names; None where it names none, or several."""
    found = _in_file_name(source)
    return found.pop() if len(found) == 1 else None


def _in_file_name(source: str) -> set[str]:
    return {canonical(word) for word in _IN_FILE_NAME.findall(PurePath(source).name.lower())}


def factor(kind: Factor, nranks: int) -> float:
    """busbw over size/time."""
    return {"2(n-1)/n": 2 * (nranks - 1) / nranks, "(n-1)/n": (nranks - 1) / nranks, "1": 1.0}[kind]


def agrees(printed: Printed, expected: Printed, times: float = 1.0) -> bool:
    """``printed`` can be ``times * expected``, both within their rounding."""
    return printed.high >= times * expected.low * (1 - 1e-6) and printed.low <= times * expected.high * (1 + 1e-6)


@dataclass(frozen=True, slots=True)
class Evidence:
    """What lines of one data type and operation show. ``ratio``: size / (count * itemsize), None if it varies.
    ``bands``: ranges of busbw over size/time, tightest first; ``shares``: the same for the printed algbw."""

    ratio: int | None
    reduces: bool
    op_column: bool
    rooted: bool
    in_place: bool | None
    old: bool
    bands: tuple[tuple[float, float], ...]
    shares: tuple[tuple[float, float], ...]

    def __str__(self) -> str:
        size = "size against count varies" if self.ratio is None else f"size = {self.ratio} x count x itemsize"
        place = {True: "", False: ", in-place N/A", None: ""}[self.in_place]
        band = "" if not self.bands else f", busbw = {self.bands[0][0]:.4g}..{self.bands[0][1]:.4g} x size/time"
        return f"{size}, redop {'given' if self.reduces else 'none'}, {'a root' if self.rooted else 'no root'}{band}{place}"


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: ``nranks`` None if open; ``header_ok`` is False when the rows contradict the number of ranks listed."""

    collective: str | None
    decided_by: str
    nranks: int | None
    header_ok: bool
    notes: tuple[str, ...]


def gather_evidence(lines: Sequence[Line], unit: float, op_column: bool, old: bool, average: Printed | None) -> Evidence:
    """``unit``: seconds per unit of time; ``op_column``: the table has (or may have) a redop column; ``old``: it is (or may
    be) of the age before ``#wrong``; ``average``: the average busbw [GB/s] of the footer, used where it is that of one line."""
    ratios = Counter(_ratio(line) for line in lines)
    ratio, often = ratios.most_common(1)[0]
    places = [line.halves[1].checked for line in lines if len(line.halves) == 2 and line.halves[0].checked]
    halves = [(half, half.size_over_time(line.size, unit)) for line in lines for half in line.halves]
    pairs = [(half.busbw, base) for half, base in halves]
    if average is not None and len(lines) == 1:
        # The footer has six digits where a small row prints 0.00.
        mean = Printed(sum(base.value for _, base in halves) / len(halves), sum(base.error for _, base in halves) / len(halves))
        pairs = [(average, mean)]
    return Evidence(
        ratio=ratio if 4 * often >= 3 * len(lines) else None,
        reduces=lines[0].op is not None,
        op_column=op_column,
        rooted=any(line.root is not None for line in lines),
        in_place=None if 2 * sum(places) == len(places) else 2 * sum(places) > len(places),
        old=old,
        bands=_bands(pairs),
        shares=_bands((half.algbw, base) for half, base in halves),
    )


def _ratio(line: Line) -> int | None:
    """size / (count * itemsize) where that is a whole number."""
    unit = line.count * ITEMSIZE[line.dtype]
    return line.size // unit if unit and line.size % unit == 0 else None


def _bands(pairs: Iterable[tuple[Printed, Printed]]) -> tuple[tuple[float, float], ...]:
    """Ranges of printed/base: those narrow enough (20 %) to tell one factor from another, else whatever there is."""
    bands = sorted(((p.low / base.high, p.high / base.low) for p, base in pairs if p.low > 0), key=lambda band: band[1] / band[0])
    return tuple([band for band in bands if band[1] < 1.2 * band[0]] or bands)[:_TIGHTEST]


def _misfits(bands: Sequence[tuple[float, float]], value: float) -> int:
    return sum(not (low * (1 - 1e-6) <= value <= high * (1 + 1e-6)) for low, high in bands)


def _fits(bands: Sequence[tuple[float, float]], value: float) -> bool:
    """At most a quarter of the bands disagree: a few disturbed rows do not change what the table is."""
    return 4 * _misfits(bands, value) <= len(bands)


def _ranks_from(kind: Factor, bands: Sequence[tuple[float, float]]) -> tuple[int | None, bool]:
    """(n, possible): the one n >= 2 whose factor the bands leave, None when they leave several."""
    if kind == "1" or not bands:
        return None, _fits(bands, 1.0)
    top = 2.0 if kind == "2(n-1)/n" else 1.0
    candidates: set[int] = set()
    for low, high in bands[:5]:
        first = ceil(top / (top - low) * (1 - 1e-6)) if low < top else inf
        last = floor(top / (top - high) * (1 + 1e-6)) if high < top else inf
        if last > MAX_RANKS or last - first > 256:
            return None, _fits(bands, top) or first < MAX_RANKS
        candidates.update(range(max(2, int(first)), int(last) + 1))
    ranked = sorted((_misfits(bands, factor(kind, n)), n) for n in candidates if _fits(bands, factor(kind, n)))
    # Two more rows against every rival: one disturbed row must not decide.
    clear = len(ranked) == 1 or (len(ranked) > 1 and ranked[1][0] >= ranked[0][0] + 2)
    return (ranked[0][1] if clear else None), bool(ranked)


def admitted(seen: Evidence, nranks: int | None) -> dict[str, int | None]:
    """Collectives the evidence admits, each with its number of ranks; ``nranks`` is what the header claims."""
    found: dict[str, int | None] = {}
    for name, sig in SIGNATURES.items():
        if (sig.reduces, sig.rooted) != (seen.reduces, seen.rooted):
            continue
        if None not in (sig.in_place, seen.in_place) and sig.in_place != seen.in_place:
            continue
        # The tests of the age with a column set of their own: all-to-all had a (blank) redop column.
        if name == "all-to-all" and not seen.op_column:
            continue
        n, possible = nranks, True
        if n is None and sig.per_rank and seen.ratio != 1:
            n = seen.ratio
        if seen.ratio is not None and seen.ratio != (n if sig.per_rank else 1):
            continue
        if n is None:
            n, possible = _ranks_from(sig.factor, seen.bands)
        elif not 1 <= n <= MAX_RANKS or not _fits(seen.bands, factor(sig.factor, n)):
            continue
        if possible and _algbw_possible(name, seen, n):
            found[name] = n
    return found


def _algbw_possible(name: str, seen: Evidence, n: int | None) -> bool:
    """Hypercube, and before about 2019 the per-rank tests, print algbw = (n-1)/n of size/time."""
    if n is None or n == 1 or not seen.shares or name not in ("hypercube", "all-gather"):
        return True
    less = _fits(seen.shares, factor("(n-1)/n", n)) and not _fits(seen.shares, 1.0)
    if name == "hypercube":
        return less and n & (n - 1) == 0
    return not less or seen.old


def identify(seen: Evidence, listed: int | None, started: str | None, commands: Sequence[tuple[int, str]], source: str) -> Verdict:
    """Decide by, in this order: the line that names the running test (``started``), the command lines (line number or 0, test)
    since the last table, the file name, the numbers. A command or file name that the rows contradict is not used, and
    noted. ``listed``: ranks in the header."""
    found, header_ok = admitted(seen, listed), True
    if not found and listed is not None:
        longer: dict[str, int | None] = {name: n for name, n in admitted(seen, None).items() if n is not None and n > listed}
        if longer:  # A pasted header is cut short more often than a benchmark prints wrong numbers.
            found, header_ok = longer, False
    notes: list[str] = []

    def verdict(name: str | None, how: str) -> Verdict:
        same = set(found.values())
        n = found.get(name, listed) if name is not None else (same.pop() if len(same) == 1 else listed)
        return Verdict(name, how, n, header_ok, tuple(notes))

    if started is not None:
        name = canonical(started)
        if name in SIGNATURES and name not in found:
            notes.append(f"the rows do not look like {name} ({seen}): kept, because the log names the test")
        return verdict(name, f'the line "Collective test starting: {started}"')
    in_file = _in_file_name(source)
    clues = (
        ("the command line", {canonical(test): f"{test} (line {line})" if line else test for line, test in commands}),
        ("the file name", {name: name for name in in_file}),
    )
    for where, named in clues:
        fitting = [name for name in named if name in found or name not in SIGNATURES]
        if len(fitting) == 1:
            return verdict(fitting[0], f"{where}: {named[fitting[0]]}")
        if named and not fitting:
            notes.append(f"{where} names {' and '.join(named.values())}, but the rows are not of it ({seen}): not used")
    if set(found) == {"all-gather", "hypercube"}:
        del found["hypercube"]
        return verdict("all-gather", f"the numbers: {seen}; hypercube prints alike, and is taken only when named")
    if len(found) == 1:
        return verdict(next(iter(found)), f"the numbers: {seen}")
    if found:
        return verdict(None, f"undecided: {' or '.join(found)} print alike ({seen}); write the test into the file name")
    return verdict(None, f"undecided: no collective prints such rows ({seen})")
