"""Lines of a measured log, from a file or a text: the limits that hold for all readers, encodings, and what is no text at all."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from topologies.errors import MeasurementError

MAX_BYTES = 256 << 20
MAX_LINE = 4096  # characters; a row has about 130
MAX_ROWS = 100_000


@dataclass(frozen=True, slots=True)
class Log:
    """A log that can be read twice: ``lines()`` from its start, each with at most MAX_LINE + 1 characters; ``whole(limit)`` as
    one text, refused above ``limit`` bytes. Both raise MeasurementError."""

    name: str
    lines: Callable[[], Iterator[str]]
    whole: Callable[[int], str]


# As text: a byte that is not UTF-8 has become U+FFFD.
_PACKED = {
    "\x1f\ufffd": "gzip", "PK\x03\x04": "zip", "BZh": "bzip2", "\ufffd7zXZ": "xz", "(\ufffd/\ufffd": "zstd", "7z\ufffd\ufffd'": "7z"
}  # fmt: skip


def file_log(path: Path) -> Log:
    """A file (UTF-8 or UTF-16). Raises MeasurementError for what is not a regular file, cannot be opened, is larger
    than 256 MiB, or is packed: nothing is ever unpacked."""
    try:
        if not path.is_file():
            raise MeasurementError(f"{path}: not a file; save what the benchmark printed and give that file")
        if path.stat().st_size > MAX_BYTES:
            raise MeasurementError(f"{path}: {path.stat().st_size} bytes, more than {MAX_BYTES}; cut it with: grep -v 'NCCL INFO'")
        with path.open("rb") as raw:
            head = raw.read(8)
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read: {error.strerror}") from None
    encoding = "utf-16" if head[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"
    if [byte == 0 for byte in head[:4]] in ([False, True] * 2, [True, False] * 2):
        encoding = "utf-16-be" if head[0] == 0 else "utf-16-le"  # PowerShell's > may leave out the byte order mark.
    _refuse_packed(head.decode("utf-8", errors="replace"), str(path))
    return Log(str(path), lambda: _cut(path, encoding), lambda limit: _whole(path, encoding, limit))


def text_log(text: str, name: str) -> Log:
    """A text. Raises MeasurementError beyond 256 Mi characters and for a packed file that was read as text."""
    if len(text) > MAX_BYTES:
        raise MeasurementError(f"{name}: {len(text)} characters, more than {MAX_BYTES}; cut it with: grep -v 'NCCL INFO'")
    text = text.removeprefix("\ufeff")
    _refuse_packed(text[:8], name)
    return Log(name, lambda: _split(text), lambda limit: _limited(text, len(text), limit, name))


def some(items: Sequence[str], between: str = "; ") -> str:
    """The first five items, and how many more there are: hostile logs hold 100,000 broken rows."""
    more = f"{between}and {len(items) - 5} more" if len(items) > 5 else ""
    return between.join(items[:5]) + more


def _refuse_packed(head: str, name: str) -> None:
    for magic, kind in _PACKED.items():
        if head.startswith(magic):
            raise MeasurementError(f"{name}: a file packed by {kind}; unpack it and give the text inside")


def _cut(path: Path, encoding: str) -> Iterator[str]:
    """Lines, at most MAX_LINE + 1 characters of each: the rest is read and dropped."""
    try:
        with path.open(encoding=encoding, errors="replace", newline="\n") as file:
            while text := file.readline(MAX_LINE + 1):
                rest = text
                while len(rest) > MAX_LINE and not rest.endswith("\n"):
                    rest = file.readline(MAX_LINE + 1)
                yield text
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read: {error.strerror}") from None


def _split(text: str) -> Iterator[str]:
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield text[start : min(end, start + MAX_LINE + 1)]
        start = end + 1
    yield text[start : start + MAX_LINE + 1]


def _whole(path: Path, encoding: str, limit: int) -> str:
    try:
        _limited("", path.stat().st_size, limit, str(path))
        return path.read_text(encoding=encoding, errors="replace")
    except OSError as error:
        raise MeasurementError(f"{path}: cannot be read: {error.strerror}") from None


def _limited(text: str, length: int, limit: int, name: str) -> str:
    if length > limit:
        raise MeasurementError(f"{name}: {length} bytes; a JSON file may have {limit}: run without the time of each iteration")
    return text
