"""Units: exact, bits never taken for bytes, hostile text refused."""

import math
import re
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies import (
    TopologyError,
    format_bandwidth,
    format_bytes,
    format_time,
    parse_bandwidth,
    parse_bytes,
    parse_count,
    parse_sizes,
    parse_time,
)
from topologies.units import exact_bandwidth, exact_time

PARSERS = (parse_bytes, parse_bandwidth, parse_time, parse_count, parse_sizes)


@pytest.mark.parametrize("prefix", ["", "k", "K", "M", "G", "T"])
@pytest.mark.parametrize("unit", ["b/s", "bps", "bit/s"])
def test_eight_bits_are_one_byte(prefix: str, unit: str) -> None:
    assert parse_bandwidth(f"400{prefix}{unit}") * 8 == parse_bandwidth(f"400{prefix}B/s")


@pytest.mark.parametrize(
    ("text", "size"),
    [("64MiB", 2**26), ("64 MB", 64_000_000), ("0.1GB", 100_000_000), ("8", 8), ("1e3B", 1000), ("1.5KiB", 1536), ("1EiB", 2**60), (7, 7)],
)
def test_sizes_are_exact(text: str, size: int) -> None:
    assert parse_bytes(text) == size
    assert isinstance(parse_bytes(text), int)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1us", 1e-6), ("1.5 µs", 1.5e-6), ("1.5 \u03bcs", 1.5e-6), ("300ns", 3e-7), ("2ms", 2e-3), ("0", 0.0), ("0us", 0.0), ("1s", 1.0)],
)
def test_times(text: str, seconds: float) -> None:
    assert parse_time(text) == seconds


@pytest.mark.parametrize(
    ("parse", "text", "right"),
    [
        (parse_bandwidth, "400Gig", ["400Gb/s", "50GB/s"]),
        (parse_bandwidth, "400G", ["400Gb/s", "50GB/s"]),
        (parse_bandwidth, "400", ["400Gb/s", "50GB/s"]),
        (parse_bandwidth, "400GB", ["400GB/s", "400Gb/s"]),
        (parse_bandwidth, "400GBps", ["400GB/s", "400Gb/s"]),
        (parse_bandwidth, "400gb/s", ["400Gb/s", "50GB/s"]),
        (parse_bytes, "64M", ["64MiB", "64MB"]),
        (parse_bytes, "64mib", ["64MiB", "64MB"]),
        (parse_bytes, "64Mb", ["64MB", "8MB"]),
        (parse_bytes, "5X", ["5B", "5MiB"]),
        (parse_time, "5", ["5us", "5ns"]),
        (parse_time, "5 sec", ["5s"]),
    ],
)
def test_refusal_names_spellings_that_are_accepted(parse, text: str, right: list[str]) -> None:
    with pytest.raises(TopologyError) as error:
        parse(text, "links[2].x")
    assert str(error.value).startswith(f'links[2].x: "{text}" is not a')
    for spelling in right:
        assert f'"{spelling}"' in str(error.value)
        assert parse(spelling) > 0


@pytest.mark.parametrize("parse", PARSERS)
@pytest.mark.parametrize(
    "text",
    ["", " ", "-1", "-1us", "nan", "inf", "1e999", "٣", "８", "1_000", "0x10", "+1", "1" * 500, "\0", "1\n", None, True, [], 1e31],
)
def test_never_accepted(parse, text: object) -> None:
    with pytest.raises(TopologyError):
        parse(text)


@pytest.mark.parametrize(
    ("parse", "text"),
    [
        (parse_bytes, "0"), (parse_bytes, "1.5B"), (parse_bytes, "2EiB"), (parse_bytes, 1.5), (parse_bytes, 10**400),
        (parse_bandwidth, "0GB/s"), (parse_bandwidth, "1e30B/s"), (parse_bandwidth, math.nan), (parse_bandwidth, math.inf),
        (parse_bandwidth, -1.0),
        (parse_time, "1e7s"), (parse_time, -1e-9), (parse_count, "0"), (parse_count, "1.0"), (parse_count, 2.0),
        (parse_sizes, "8:1"), (parse_sizes, "1:8GiB:+1"), (parse_sizes, "8B,8B"), (parse_sizes, "1:8:x1"), (parse_sizes, "1:8:2"),
        (parse_sizes, "1:2:x2:x2"), (parse_sizes, "1,"),
    ],
)  # fmt: skip
def test_out_of_range(parse, text: object) -> None:
    with pytest.raises(TopologyError):
        parse(text)


@given(st.one_of(st.text(), st.from_regex(r"[0-9.eE+-]{0,8} ?[kKMGTPi]{0,2}[bB]?(ps|/s|s)?(:x?[0-9]*)?", fullmatch=True)))
def test_any_text_gives_a_value_or_the_one_error(text: str) -> None:
    for parse in PARSERS:
        try:
            value = parse(text)
            values = value if isinstance(value, list) else [value]
        except TopologyError as error:
            message = str(error)
            message.encode()
        else:
            message = ""
            assert values
            assert all(v >= 0 and math.isfinite(v) for v in values)
        assert "\n" not in message


def test_count_has_an_upper_rule() -> None:
    assert parse_count(" 8 ", most=8) == 8
    with pytest.raises(TopologyError, match="1 to 7"):
        parse_count("8", most=7)


def test_sweeps() -> None:
    assert parse_sizes("8B:8GiB:x2") == [2**i for i in range(3, 34)]
    assert parse_sizes("8B:1KiB") == parse_sizes("8B:1KiB:x2")
    assert parse_sizes("1MiB:200MiB:+64MiB") == [2**20 * m for m in (1, 65, 129, 193)]
    assert parse_sizes("3B:20B:x2, 1KiB") == [3, 6, 12, 1024]
    assert len(parse_sizes("1:10000:+1")) == 10_000


@given(st.integers(1, 2**60))
def test_format_bytes_reads_back_within_its_digits(size: int) -> None:
    text = format_bytes(size)
    number, unit = text.split()
    scale = Fraction(parse_bytes(f"1{unit}"))
    assert abs(Fraction(number) * scale - size) <= Fraction(6, 10**4) * size
    assert len(number.replace(".", "")) <= 6 or unit == "B"


@given(st.floats(1, 1e18))
def test_format_bandwidth_reads_back_within_its_digits(rate: float) -> None:
    assert parse_bandwidth(format_bandwidth(rate)) == pytest.approx(rate, rel=6e-4)
    assert parse_bandwidth(exact_bandwidth(rate)) == rate


@given(st.floats(1e-11, 1e6))
def test_format_time_reads_back_within_its_digits(seconds: float) -> None:
    text = format_time(seconds)
    assert parse_time(re.sub("µ", "u", text)) == pytest.approx(seconds, rel=6e-4)
    assert parse_time(exact_time(seconds)) == seconds


def test_formats() -> None:
    assert [format_bytes(n) for n in (8, 1000, 1024, 2**26, 1536, 10**9, 12345, 0)] == [
        "8 B", "1 KB", "1 KiB", "64 MiB", "1.5 KiB", "1 GB", "12.06 KiB", "0 B",
    ]  # fmt: skip
    assert [format_bandwidth(x) for x in (2.423e11, 9.9999e8, 0, math.inf)] == ["242.3 GB/s", "1 GB/s", "0 B/s", "inf B/s"]
    assert [format_time(x) for x in (3.08e-4, 9.99999e-4, 0, 2.5e-9)] == ["308 µs", "1 ms", "0 ns", "2.5 ns"]
