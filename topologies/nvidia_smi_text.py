"""Text of ``nvidia-smi topo -m`` -> ``Matrix``: which word stands between two devices, and where that is not sure, row and column.

Rows and columns are GPUs and NICs (``GPU0``, ``NIC0`` or ``mlx5_0``); a cell is ``X`` (itself), ``NV4`` (4 NVLinks) or how far over PCIe:
``PIX`` one switch, ``PXB`` several, ``PHB`` through the CPU, ``NODE`` between PCIe roots of one NUMA node, ``SYS`` (once ``SOC``) between
CPUs. Affinity columns follow; a list ``NIC0: mlx5_0`` may come after. Read as pasted: tabs or blanks, underlining, lines that a terminal
broke between words, other text around. Rows that were cut are filled from the columns, which say the same.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from topologies.errors import TopologyError, nearest, quoted

MAX_FILE = 2**20
MAX_GPUS = 64
MAX_NICS = 64
LEVELS = {"PIX": 0, "PXB": 1, "PHB": 2, "NODE": 3, "SYS": 4}
"""Words for ways over PCIe, the nearest first."""

_ANSI = re.compile(r"(?:\x1b|\^\[)?\[[0-9;]{0,16}[mK]")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_GPU = re.compile(r"GPU[0-9]{1,4}")
_NIC = re.compile(r"[A-Za-z][A-Za-z0-9_.:-]{0,63}")
_WORD = re.compile(r"X|SYS|SOC|NODE|PHB|PXB|PIX|NV[1-9][0-9]?")
_GLUED_WORDS = re.compile(rf"(?:{_WORD.pattern}){{2,64}}")
_GLUED_NAMES = re.compile(r"(?:(?:GPU|NIC|mlx[0-9]_)[0-9]{1,4}){2,64}|.+(?:CPU|NUMA)")
_AFFINITY = re.compile(r"[0-9][0-9,-]*|N/A")
_LEGEND = re.compile(r"\s*(NIC[0-9]{1,4}):\s+(\S{1,64})\s*")
_AFTER = "CPU Affinity NUMA Affinity GPU NUMA ID"
_WHOLE = {"": 0, "CPU Affinity": 1, "CPU Affinity NUMA Affinity": 2, _AFTER: 3}


@dataclass(frozen=True, slots=True)
class Matrix:
    """Names of columns; ``words[a, b]`` for two devices, both orders, none where rows of NICs are missing; ``cpus`` and ``numa`` as they
    stand in the affinity columns, by GPU, empty where they say nothing; ``names`` of NICs; ``notes``: what the text left open."""

    gpus: tuple[str, ...]
    nics: tuple[str, ...]
    words: dict[tuple[str, str], str]
    cpus: dict[str, str]
    numa: dict[str, str]
    names: dict[str, str]
    notes: tuple[str, ...]

    @property
    def devices(self) -> tuple[str, ...]:
        return self.gpus + self.nics

    def level(self, a: str, b: str) -> int | None:
        """Place of their word in ``LEVELS``; None for NVLinks and for what is not known."""
        return LEVELS.get(self.words.get((a, b), ""))

    def nvlinks(self, a: str, b: str) -> int:
        word = self.words.get((a, b), "")
        return int(word[2:]) if word.startswith("NV") else 0


def is_matrix(text: str) -> bool:
    """Whether a line starts with ``GPU0`` or another GPU, as no line of TOML or XML does."""
    return re.search(r"^[ \t]*GPU[0-9]{1,4}(?:\s|GPU)", _ANSI.sub("", text), re.MULTILINE) is not None


def parse_matrix(text: str) -> Matrix:
    """Raises TopologyError with the row and the column, or the line, of what is not such a matrix, contradicts itself or is not sure."""
    lines = [_ANSI.sub("", line.rstrip("\r")) for line in text.removeprefix("\ufeff").split("\n")]
    for number, line in enumerate(lines, 1):
        bad = _CONTROL.search(line)
        if bad:
            raise TopologyError(f"line {number}: a control character ({quoted(bad[0])}); paste the text of nvidia-smi topo -m")
    first, names, extra = _header(lines)
    gpus = tuple(name for name in names if _GPU.fullmatch(name))
    rows, cpus, numa = {}, {}, {}
    for number, row, tokens in _rows(lines, first, names, extra):
        if row in rows:
            raise TopologyError(f"line {number}: row {row} stands twice")
        rows[row] = _cells(row, names, tokens[: len(names)])
        rest = tokens[len(names) :]
        if len(rest) > (extra if row in gpus else 0) or any(_WORD.fullmatch(token) for token in rest):
            raise TopologyError(f"row {row}: {len(tokens)} words; the header has {len(names)} columns of devices and {extra} after them")
        cpus[row], numa[row] = [*rest, "", ""][:2]
    words = _symmetric(rows, names)
    notes = tuple(_gaps(words, rows, names))
    names_of = {match[1]: match[2] for line in lines[first:] if (match := _LEGEND.fullmatch(line))}
    known = {"cpus": {gpu: cpus.get(gpu, "") for gpu in gpus}, "numa": {gpu: numa.get(gpu, "") for gpu in gpus}}
    return Matrix(gpus, tuple(n for n in names if n not in gpus), words, names=names_of, notes=notes, **known)


def _header(lines: Sequence[str]) -> tuple[int, tuple[str, ...], int]:
    """Index of the line after the header, devices by column, number of columns after them (as many as there can be in a cut header)."""
    first = next((i for i, line in enumerate(lines) if re.match(r"\s*GPU[0-9]", line)), None)
    if first is None:
        raise TopologyError("no line starts with GPU0, GPU1, ...; paste the whole text of nvidia-smi topo -m (rocm-smi's is not read)")
    if _starts_row(lines[first].split()):
        raise TopologyError(f"line {first + 1}: row {lines[first].split()[0]} stands before the header; paste the line of column names too")
    tokens, last = lines[first].split(), first + 1
    while last < len(lines) and lines[last].strip() and not _starts_row(lines[last].split()) and len(tokens) < MAX_GPUS + MAX_NICS + 10:
        tokens += lines[last].split()
        last += 1
    end = next((i for i, token in enumerate(tokens) if token in ("CPU", "NUMA", "Affinity")), len(tokens))
    names, after = tokens[:end], " ".join(tokens[end:])
    for column, name in enumerate(names, 1):
        if _GLUED_NAMES.fullmatch(name) or not _NIC.fullmatch(name) or (name.startswith("GPU") and not _GPU.fullmatch(name)):
            raise TopologyError(f"line {first + 1}, column {column}: {quoted(name)} is not one GPU or NIC; write GPU0, NIC0, mlx5_0, ...")
        if name in names[: column - 1]:
            raise TopologyError(f"line {first + 1}, column {column}: {name} stands twice")
    if not _AFTER.startswith(after):
        raise TopologyError(f"line {first + 1}: {quoted(after)} after the devices; known: {_AFTER}")
    gpus = sum(name.startswith("GPU") for name in names)
    if gpus < 2 or gpus > MAX_GPUS or len(names) - gpus > MAX_NICS:
        raise TopologyError(
            f"line {first + 1}: {gpus} GPU and {len(names) - gpus} NICs; 2 to {MAX_GPUS} GPUs and up to {MAX_NICS} NICs are read"
        )
    return last, tuple(names), _WHOLE.get(after, 3)


def _starts_row(tokens: Sequence[str]) -> bool:
    return len(tokens) > 1 and bool(_WORD.fullmatch(tokens[1]) or _GLUED_WORDS.fullmatch(tokens[1]))


def _rows(lines: Sequence[str], first: int, names: Sequence[str], extra: int) -> Iterator[tuple[int, str, list[str]]]:
    """Line number, name and words of each row, joined where a terminal broke it; other text is passed over."""
    known = set(names)
    number = first
    while number < len(lines):
        tokens = lines[number].split()
        number += 1
        if not tokens or tokens[0] not in known:
            if _starts_row(tokens):
                raise TopologyError(f"line {number}: row {quoted(tokens[0])} is not a column of the header{nearest(tokens[0], known)}")
            continue
        start, row, cells = number, tokens[0], tokens[1:]
        while number < len(lines) and len(cells) < len(names) + extra and _continues(lines[number].split(), known):
            cells += lines[number].split()
            number += 1
        yield start, row, cells


def _continues(tokens: Sequence[str], known: set[str]) -> bool:
    return bool(tokens) and tokens[0] not in known and all(_WORD.fullmatch(token) or _AFFINITY.fullmatch(token) for token in tokens)


def _cells(row: str, names: Sequence[str], tokens: Sequence[str]) -> dict[str, str]:
    """Word by column, of as many columns as the row has."""
    for place, (column, token) in enumerate(zip(names, tokens, strict=False)):
        where = f"row {row}, column {column}: {quoted(token)}"
        if _WORD.fullmatch(token):
            if (token == "X") != (row == column):
                raise TopologyError(f"{where}; X stands where a row meets its own column, and only there: words before it ran together?")
            if token.startswith("NV") and not (row.startswith("GPU") and column.startswith("GPU")):
                raise TopologyError(f"{where}; NVLinks join GPUs")
        elif _GLUED_WORDS.fullmatch(token):
            raise TopologyError(f"{where} is {' and '.join(_WORD.findall(token)[:4])} without a blank; columns after it would be guesses")
        elif _AFFINITY.fullmatch(token):
            raise TopologyError(f"{where} after {place} words; the header has {len(names)} columns of devices")
        else:
            raise TopologyError(f"{where} is not a word of nvidia-smi topo -m{nearest(token.upper(), [*LEVELS, 'X', 'NV1'])}")
    return {column: token.replace("SOC", "SYS") for column, token in zip(names, tokens, strict=False)}


def _symmetric(rows: dict[str, dict[str, str]], names: Sequence[str]) -> dict[tuple[str, str], str]:
    words: dict[tuple[str, str], str] = {}
    for row, cells in rows.items():
        for column, word in cells.items():
            other = words.setdefault((column, row), word)
            words[row, column] = word
            if other != word:
                raise TopologyError(f"row {row}, column {column}: {word}, but row {column}, column {row}: {other}")
    for a in names:
        for b in names:
            if (a, b) not in words and a != b and (a.startswith("GPU") or b.startswith("GPU")):
                raise TopologyError(f"row {a}, column {b}: missing, and row {b} does not tell; paste the whole matrix")
    return words


def _gaps(words: dict[tuple[str, str], str], rows: dict[str, dict[str, str]], names: Sequence[str]) -> Iterator[str]:
    cut = [name for name in names if len(rows.get(name, ())) < len(names)]
    if cut:
        yield f"rows {', '.join(cut)} are missing or cut; their words are taken from the columns"
    unknown = sum((a, b) not in words for i, a in enumerate(names) for b in names[:i])
    if unknown:
        yield f"pairs of NICs without a word: {unknown}; they are taken not to share a PCIe switch unless GPUs say so"
