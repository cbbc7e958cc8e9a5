"""Tables of thresholds: a line for a range of ranks, in it numbers of algorithms, each up to a size.

    <4:   4 <8, 3 <4K, 6
    else: 2

reads: on 2 or 3 ranks algorithm 4 below 8 B, 3 below 4 KiB, 6 from there on; on 4 ranks and more algorithm 2.
"""

from __future__ import annotations

from dataclasses import dataclass

from topologies.units import format_bytes

_UNITS = {"K": 1 << 10, "M": 1 << 20}
END = 1 << 62
"""Above every number of ranks and every size."""


@dataclass(frozen=True, slots=True)
class Found:
    """``number`` holds from ``low`` to below ``high`` ranks, and from ``least`` to below ``most`` bytes."""

    number: int
    low: int
    high: int
    least: int
    most: int

    def __str__(self) -> str:
        ranks = f"{self.low} ranks or more" if self.high == END else f"{self.low} to {self.high - 1} ranks"
        if self.high == self.low + 1:
            ranks = f"{self.low} ranks"
        if self.most == END:
            return ranks + (f", {format_bytes(self.least)} or more" if self.least else ", any size")
        return f"{ranks}, {f'from {format_bytes(self.least)} ' if self.least else ''}below {format_bytes(self.most)}"


@dataclass(frozen=True, slots=True)
class Thresholds:
    """Lines in order: (below so many ranks, ((below so many bytes, number), ...)); the last of both is ``END``."""

    lines: tuple[tuple[int, tuple[tuple[int, int], ...]], ...]

    def find(self, ranks: int, nbytes: int) -> Found:
        low = 2
        for high, sizes in self.lines:
            if ranks < high:
                least = 0
                for most, number in sizes:
                    if nbytes < most:
                        return Found(number, low, high, least, most)
                    least = most
            low = high
        raise AssertionError(f"{ranks} ranks, {nbytes} B: the table has no last line")

    def numbers(self) -> set[int]:
        return {number for _, sizes in self.lines for _, number in sizes}


def thresholds(text: str) -> Thresholds:
    """The table of a text; AssertionError for one that is not in order."""
    lines = []
    for line in text.strip().splitlines():
        ranks, _, rest = line.partition(":")
        sizes = []
        for part in rest.split(","):
            number, _, most = part.strip().partition(" <")
            sizes.append((_size(most) if most else END, int(number)))
        lines.append((END if ranks.strip() == "else" else int(ranks.strip().removeprefix("<")), tuple(sizes)))
    for limits in ([high for high, _ in lines], *([most for most, _ in sizes] for _, sizes in lines)):
        assert limits == sorted(set(limits)), text
        assert limits[-1] == END, text
    return Thresholds(tuple(lines))


def _size(text: str) -> int:
    return int(text.rstrip("KM")) * _UNITS.get(text[-1], 1)
