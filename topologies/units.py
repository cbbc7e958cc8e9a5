"""Text with units -> SI numbers and back: bytes, bytes per second, seconds, counts. Bits and bytes are never confused.

Sizes: ``B``, ``KB MB GB TB`` (powers of 1000), ``KiB MiB GiB TiB`` (powers of 1024); a bare number is bytes.
Bandwidths: ``Gb/s`` = ``Gbps`` (bits), ``GB/s`` (bytes), ``GiB/s``. Times: ``s ms us ns ps``. Parsed exactly, rounded once.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from fractions import Fraction

from topologies.errors import TopologyError, quoted

MAX_BYTES = 2**60
MAX_BANDWIDTH = 1e18
MAX_SECONDS = 1e6
MAX_COUNT = 10**12
MAX_SIZES = 10_000

_NUMBER = r"([0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]{1,3})?|\.[0-9]+(?:[eE][+-]?[0-9]{1,3})?)"
_QUANTITY = re.compile(_NUMBER + r"[ ]*([^0-9\s.+-][^0-9\s]*)?")  # the unit never starts like a number
_LONGEST = 48  # characters; no quantity needs more, and exponents of 3 digits keep the exact arithmetic small
_DECIMAL = {"": 1, "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_BINARY = {"Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40, "Pi": 2**50, "Ei": 2**60}
_SIZES = {f"{prefix}B": scale for prefix, scale in (_DECIMAL | _BINARY).items()}
_BITS = {f"{prefix}{unit}": Fraction(scale, 8) for prefix, scale in _DECIMAL.items() for unit in ("b/s", "bps", "bit/s")}
_RATES = {f"{unit}/s": Fraction(scale) for unit, scale in _SIZES.items()} | _BITS
_TIMES = {"s": Fraction(1), "ms": Fraction(1, 10**3), "ns": Fraction(1, 10**9), "ps": Fraction(1, 10**12)}
_TIMES |= dict.fromkeys(("us", "\u00b5s", "\u03bcs"), Fraction(1, 10**6))  # micro sign and Greek mu look the same


def parse_bytes(value: str | int, where: str = "") -> int:
    """``"64MiB"`` -> 67108864. Whole bytes from 1 to 2^60; raises TopologyError, prefixed by ``where``, for anything else."""
    number, unit = _split(value, "a size", '"64MiB" or "64MB"', where)
    if unit not in _SIZES and unit:
        raise _error(where, value, "a size", _size_spelling(number, unit))
    size = number * _SIZES.get(unit, 1)
    if size.denominator != 1:
        raise _error(where, value, "a whole number of bytes", f'write "{max(1, round(size))}B"')
    if not 1 <= size <= MAX_BYTES:
        raise _error(where, value, "a size", f"it must be from 1 B to {format_bytes(MAX_BYTES)}")
    return int(size)


def parse_bandwidth(value: str | float, where: str = "") -> float:
    """``"400Gb/s"`` -> 5e10 [B/s]; a number is B/s already. From 1 B/s to 1e18 B/s; raises TopologyError otherwise."""
    number, unit = _split(value, "a bandwidth", '"400Gb/s" or "50GB/s"', where)
    if isinstance(value, str) and unit not in _RATES:
        raise _error(where, value, "a bandwidth", _rate_spelling(number, unit))
    rate = number * _RATES.get(unit, 1)
    if not 1 <= rate <= MAX_BANDWIDTH:
        raise _error(where, value, "a bandwidth", "it must be from 1B/s to 1e18B/s")
    return float(rate)


def parse_time(value: str | float, where: str = "") -> float:
    """``"1.5us"`` -> 1.5e-6 [s]; a number is seconds already, text needs a unit unless it is 0. From 0 to 1e6 s."""
    number, unit = _split(value, "a time", '"1us" or "300ns"', where)
    if isinstance(value, str) and unit not in _TIMES and (unit or number):
        shown = _short(number)
        raise _error(where, value, "a time", f'write "{shown}us", "{shown}ns", "{shown}ms" or "{shown}s"')
    seconds = number * _TIMES.get(unit, 1)
    if seconds > MAX_SECONDS:
        raise _error(where, value, "a time", "it must be at most 1e6s")
    return float(seconds)


def parse_count(value: str | int, where: str = "", most: int = MAX_COUNT) -> int:
    """``"8"`` -> 8: a whole number from 1 to ``most``; raises TopologyError for anything else."""
    ok = isinstance(value, int) and not isinstance(value, bool)
    if isinstance(value, str):
        ok = re.fullmatch(r"[0-9]{1,18}", value.strip(" ")) is not None
    if not ok or not 1 <= int(value) <= most:
        raise _error(where, value, "a count", f"write a whole number from 1 to {most}")
    return int(value)


def parse_sizes(text: str, where: str = "") -> list[int]:
    """``"8B:8GiB:x2"`` -> sizes [B] from first to last, times 2; ``+64MiB`` adds; commas join. At most 10,000 sizes, none twice."""
    sizes: list[int] = []
    if not isinstance(text, str) or len(text) > 20 * MAX_SIZES:
        raise _error(where, text, "a list of sizes", 'write "8B:8GiB:x2", "1MiB:1GiB:+64MiB" or "8B,1MiB"')
    for part in text.split(","):
        sizes += _range(part, where, MAX_SIZES - len(sizes))
    if len(set(sizes)) < len(sizes):
        twice = Counter(sizes).most_common(1)[0][0]
        raise TopologyError(f"{_prefix(where)}{quoted(text)}: {format_bytes(twice)} stands twice; name every size once")
    return sizes


def _range(part: str, where: str, room: int) -> list[int]:
    ends = part.strip(" ").split(":")
    if len(ends) > 3:
        raise _error(where, part, "a range of sizes", 'write first:last:step, as "8B:8GiB:x2"')
    first, last = parse_bytes(ends[0], where), parse_bytes(ends[min(1, len(ends) - 1)], where)
    step = ends[2].strip(" ") if len(ends) == 3 else "x2"
    if last < first:
        raise _error(where, part, "a range of sizes", f'the last must not be below the first; write "{ends[1]}:{ends[0]}"')
    if step[:1] not in ("x", "+"):
        raise _error(where, part, "a range of sizes", 'the step is a factor as "x2" or an amount as "+64MiB"')
    factor = parse_count(step[1:], where, most=2**20) if step[0] == "x" else 1
    if step[0] == "x" and factor < 2:
        raise _error(where, part, "a range of sizes", 'the factor must be at least 2; write "x2"')
    more = parse_bytes(step[1:], where) if step[0] == "+" else 0
    sizes = []
    while first <= last:
        sizes.append(first)
        first = first * factor + more
        if len(sizes) > room:
            raise _error(where, part, "a range this program runs", f"at most {MAX_SIZES} sizes; take a larger step")
    return sizes


def format_bytes(size: float) -> str:
    """``67108864`` -> ``64 MiB``: exact in a binary or a decimal unit where two decimals suffice, else rounded to four digits."""
    if not math.isfinite(size) or abs(size) < 1000:
        return f"{_digits(size)} B"
    for family in (_BINARY, _DECIMAL):
        for prefix, scale in reversed(family.items()):
            share = Fraction(size) / scale
            if prefix and 1 <= abs(share) < 10_000 and (share * 100).denominator == 1:
                return f"{float(share):.2f}".rstrip("0").rstrip(".") + f" {prefix.upper() if len(prefix) == 1 else prefix}B"
    if abs(size) < 1024 and Fraction(size).denominator == 1:
        return f"{int(size)} B"
    return _scaled(size, [(f"{prefix}B", float(scale)) for prefix, scale in _BINARY.items()], 1024)


def format_bandwidth(rate: float) -> str:
    """``2.423e11`` [B/s] -> ``242.3 GB/s``, four digits."""
    return _scaled(rate, [("B/s", 1), ("KB/s", 1e3), ("MB/s", 1e6), ("GB/s", 1e9), ("TB/s", 1e12)], 1000)


def format_time(seconds: float) -> str:
    """``3.08e-4`` [s] -> ``308 µs``, four digits."""
    return _scaled(seconds, [("ns", 1e-9), ("\u00b5s", 1e-6), ("ms", 1e-3), ("s", 1)], 1000)


def exact_bandwidth(rate: float) -> str:
    """The shortest of ``"25GB/s"`` and ``"25000000001.5B/s"`` that reads back as exactly this rate [B/s]."""
    short = f"{rate / 1e9:.12g}GB/s"
    return short if 1 <= rate <= MAX_BANDWIDTH and parse_bandwidth(short) == rate else f"{rate!r}B/s"


def exact_time(seconds: float) -> str:
    """``"0.3us"``, or more digits, such that it reads back as exactly this time [s]."""
    short = f"{seconds * 1e6:.12g}us"
    return short if 0 <= seconds <= MAX_SECONDS and parse_time(short) == seconds else f"{seconds!r}s"


def _scaled(value: float, units: list[tuple[str, float]], step: int) -> str:
    if not math.isfinite(value) or value == 0:
        return f"{value:g} {units[0][0]}"
    shown = ((_digits(value / scale), unit) for unit, scale in units)
    # By the rounded text, so that 999.96 us become 1 ms.
    text, unit = next((pair for pair in shown if abs(float(pair[0])) < step), (_digits(value / units[-1][1]), units[-1][0]))
    return f"{text} {unit}"


def _digits(value: float) -> str:
    if not math.isfinite(value) or abs(value) < 1e-4 or abs(value) >= 1e15:
        return f"{value:.4g}"
    text = f"{value:.{max(0, 3 - math.floor(math.log10(abs(value))))}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _split(value: str | float, what: str, example: str, where: str) -> tuple[Fraction, str]:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise _error(where, value, what, f"write {example}")
    if not isinstance(value, str):
        if not 0 <= value <= 1e30:
            raise _error(where, value, what, f"it must be finite and not negative, as {example}")
        return Fraction(value), ""
    match = _QUANTITY.fullmatch(value.strip(" ")) if len(value) <= _LONGEST else None
    if not match:
        raise _error(where, value, what, f"write {example}")
    return Fraction(match[1]), match[2] or ""


def _short(number: Fraction) -> str:
    return f"{float(number):.6g}" if number < 10**300 else "1"


def _size_spelling(number: Fraction, unit: str) -> str:
    prefix, shown = unit[:1].upper(), _short(number)
    if prefix not in ("K", "M", "G", "T"):
        return f'write "{shown}B", "{shown}MiB" or "{shown}MB"'
    if unit.endswith(("b", "bit")) and not unit.endswith("ib"):
        return f'"b" is bits; write "{shown}{prefix}B" (bytes), or "{_short(number / 8)}{prefix}B" if bits were meant'
    return f'write "{shown}{prefix}iB" (powers of 1024, the "{prefix}" of nccl-tests) or "{shown}{prefix}B" (powers of 1000)'


def _rate_spelling(number: Fraction, unit: str) -> str:
    prefix, shown = unit[:1].upper(), _short(number)
    prefix = prefix if prefix in ("K", "M", "G", "T") else "G"
    if unit[1:2] == "B" or unit[1:3] == "iB":
        return f'write "{shown}{prefix}B/s" (bytes) or "{shown}{prefix}b/s" (bits)'
    return f'write "{shown}{prefix}b/s" or "{_short(number / 8)}{prefix}B/s"'


def _prefix(where: str) -> str:
    return f"{where}: " if where else ""


def _error(where: str, value: object, what: str, right: str) -> TopologyError:
    return TopologyError(f"{_prefix(where)}{quoted(value)} is not {what}; {right}")
