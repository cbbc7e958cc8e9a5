"""Logs of NCCL_DEBUG=INFO, with the lines of many ranks in any order, into ``NcclInfo``."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from prediction import nccl_facts
from prediction import nccl_info_lines as lines
from prediction.log_file import MAX_LINE, Log, file_log, some, text_log
from prediction.nccl_facts import Channels, Choice, Communicator, NcclInfo, Searched, Tree
from topologies.errors import MeasurementError

MAX_FACTS = 1_000_000
"""So much is kept of one log: all paths of 1,000 hosts of 8 GPUs and 8 NICs, or the trees of 2,000 ranks."""
_MARK = "NCCL INFO "


@dataclass(slots=True)
class _Found:
    """What has been said of one communicator; filled line by line, hence not frozen. ``facts``: kind -> key -> value."""

    nnodes: int | None = None
    channels: Channels | None = None
    facts: dict[str, dict[Any, Any]] = field(default_factory=dict)
    searches: dict[Hashable, list[Searched]] = field(default_factory=dict)
    choices: list[Choice] = field(default_factory=list)

    def merge(self, other: _Found) -> None:
        self.nnodes, self.channels = self.nnodes or other.nnodes, self.channels or other.channels
        for kind, facts in other.facts.items():
            self.facts[kind] = facts | self.facts.get(kind, {})
        self.searches |= other.searches
        self.choices += other.choices


def read_info(path: str | Path) -> NcclInfo:
    """Read a file (UTF-8 or UTF-16, at most 256 MiB). Raises MeasurementError for one without NCCL INFO lines."""
    return _Reader(file_log(Path(path))).read()


def read_info_text(text: str, name: str) -> NcclInfo:
    """The same for a text; ``name`` stands in the messages."""
    return _Reader(text_log(text, name)).read()


class _Reader:
    """One walk over a log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.version: tuple[int, int, int] | None = None
        self.cuda: str | None = None
        self.environment: dict[str, str] = {}
        self.nets: dict[str, None] = {}
        self.nvls: bool | None = None
        self.collnet: bool | None = None
        self.nranks: dict[Hashable, int] = {}
        self.algorithms: dict[Hashable, list[str]] = {}
        self.columns: dict[Hashable, tuple[tuple[str, str], ...]] = {}
        self.found: dict[int | None, _Found] = {}
        self.notes: list[str] = []
        self.kept = self.number = 0

    def read(self) -> NcclInfo:
        said = False
        for number, text in enumerate(self.log.lines(), 1):
            self.number = number
            if len(text) > MAX_LINE or ("NCCL" not in text):
                continue
            if "NCCL version" in text and (version := lines.VERSION.search(text)) and self.version is None:
                self.version = int(version[1]), int(version[2]), int(version[3] or 0)
                self.cuda, said = version[4], True
            before, *bodies = text.rstrip().split(_MARK)
            for body in bodies:
                said = True
                self._line(_speaker(before), body)
                before = body
        if not said:
            raise MeasurementError(f"{self.log.name}: no line of NCCL INFO; run with NCCL_DEBUG=INFO and save what it prints")
        known = [nranks for nranks in self.found if nranks is not None]
        if len(known) == 1 and None in self.found:
            self.found[known[0]].merge(self.found.pop(None))  # other processes of the same job
        order = sorted(self.found.items(), key=lambda item: -(item[0] or 0))
        return NcclInfo(
            self.log.name, self.version, self.cuda, self.environment, tuple(self.nets), self.nvls, self.collnet,
            tuple(_communicator(nranks, found) for nranks, found in order),
            (f"said again with another value, the first is kept ({len(self.notes)}): {some(self.notes)}",) if self.notes else (),
        )  # fmt: skip

    def _line(self, who: tuple[str, ...], text: str) -> None:
        """Words that a line must have come first: nearly all lines of a long log have none of them."""
        if "anks " in text and (found := lines.COMM.search(text)):
            nranks = int(found[2])
            self.nranks[who] = self.nranks[who[:2]] = nranks
            here = self.found.setdefault(nranks, _Found())
            here.nnodes = here.nnodes or (int(found[3]) if found[3] else None)
        elif "Bytes -> Algo" in text:
            self._choice(who, text)
        elif "Channel " in text:
            self._channel(who, text)
        elif "Tree" in text and "->" in text:
            for c, down, rank, up in lines.TREE.findall(text):
                self._keep(who, "trees", (int(c), int(rank)), _tree(up, down))
            for c, up, rank, down in lines.ONE_TREE.findall(text):
                self._keep(who, "trees", (int(c), int(rank)), _tree(up, down))
        elif "Ring " in text and (found := lines.RING.search(text)):
            self._keep(who, "neighbours", (int(found[1]), int(found[3])), (int(found[2]), int(found[4])))
        elif "Pattern " in text and (search := lines.searched(text)):
            self._count()
            self._of(who).searches.setdefault(who, []).append(search)
        elif " :" in text and (found := lines.SEARCHED.match(text)):
            self._searched(who, tuple(found[2].split()))
        elif " :" in text and (found := lines.FROM.match(text)):
            for to, hops, bw, kind in lines.PATH.findall(text):
                self._keep(who, "paths", (who[0], found[1], to), nccl_facts.Path(int(hops), float(bw) * 1e9, kind))
        elif "|" in text:
            self._table(who, text)
        else:
            self._rest(who, text)

    def _choice(self, who: tuple[str, ...], text: str) -> None:
        if found := lines.CHOSEN.search(text):
            name, size, algorithm, protocol, time, low, high = found.groups()
            self._count()
            self._of(who).choices.append(Choice(
                lines.COLLECTIVES.get(name or "", (name or "").lower() or None), int(size), lines.algorithm(algorithm),
                lines.protocol(protocol), float(time) * 1e-6 if time else None, (int(low), int(high)) if low else None, self.number,
            ))  # fmt: skip

    def _channel(self, who: tuple[str, ...], text: str) -> None:
        if found := lines.RING_ORDER.search(text):
            self._keep(who, "rings", int(found[1]), tuple(map(int, found[2].split())))
        elif found := lines.VIA.search(text):
            self._keep(who, "connections", (int(found[1]), int(found[2]), int(found[3]), found[4] or "both"), found[5])

    def _searched(self, who: tuple[str, ...], channel: tuple[str, ...]) -> None:
        """One channel of the search that the same process printed last."""
        if of := self._of(who).searches.get(who):
            self._count()
            of[-1] = of[-1]._replace(channels=(*of[-1].channels, channel)) if len(of[-1].channels) < of[-1].nchannels else of[-1]

    def _table(self, who: tuple[str, ...], text: str) -> None:
        """Two forms: one row of "Tree/ LL128" heads the columns, or a row of algorithms and below it one of protocols."""
        first, *cells = (cell.strip() for cell in text.split("|"))
        cells = cells[:-1] if cells and not cells[-1] else cells
        if first == "Latency/AlgBw":
            self.columns[who] = lines.headings(text)
        elif first == "Algorithm":
            self.algorithms[who] = [lines.algorithm(cell) for cell in cells]
        elif first == "Protocol" and (names := self.algorithms.get(who)) and len(cells) % len(names) == 0:
            each = len(cells) // len(names)
            self.columns[who] = tuple((names[i // each], lines.protocol(cell)) for i, cell in enumerate(cells))
        elif first in lines.COLLECTIVES and len(columns := self.columns.get(who, ())) == len(cells):
            for (algorithm, protocol), cell in zip(columns, cells, strict=True):
                if found := lines.CELL.fullmatch(cell):
                    key = lines.COLLECTIVES[first], algorithm, protocol
                    self._keep(who, "tuning", key, (float(found[1]) * 1e-6, float(found[2]) * 1e9))

    def _rest(self, who: tuple[str, ...], text: str) -> None:
        if "coll channels" in text and (found := lines.CHANNELS.search(text)):
            counts = [None if value is None else int(value) for value in found.groups()]
            here = self._of(who)
            here.channels = here.channels or Channels(counts[0] or 0, counts[1], counts[2], counts[3] or 0, counts[4] or 0)
            self.collnet = self.collnet or (counts[1] > 0 if counts[1] is not None else self.collnet)
            self.nvls = self.nvls or (counts[2] > 0 if counts[2] is not None else self.nvls)
        elif "NVLS Head" in text and (found := lines.HEAD.search(text)):
            self._keep(who, "heads", int(found[1]), tuple(map(int, found[2].split())))
        elif "NVLS multicast" in text and (found := lines.MULTICAST.search(text)):
            self.nvls = self.nvls or not found[1]
        elif "set by environment" in text and (found := lines.ENVIRONMENT.search(text)):
            self._count(found[1] not in self.environment)
            self.environment.setdefault(found[1], found[2])
        elif found := lines.USING.search(text):
            self._net(found[1])
        elif text.startswith("NET/") and " : Using " in text:
            for nic in lines.NIC.findall(text.partition(" : Using ")[2]):
                self._net(nic)

    def _net(self, name: str) -> None:
        self._count(name not in self.nets)
        self.nets.setdefault(name)

    def _of(self, who: tuple[str, ...]) -> _Found:
        """The communicator whose number of ranks this thread, else this process, said last."""
        return self.found.setdefault(self.nranks.get(who, self.nranks.get(who[:2])), _Found())

    def _keep(self, who: tuple[str, ...], kind: str, key: Hashable, value: object) -> None:
        facts = self._of(who).facts.setdefault(kind, {})
        if key not in facts:
            self._count()
            facts[key] = value
        elif facts[key] != value:
            self._count()
            self.notes.append(f"{self.log.name}:{self.number}: {kind} {key}")

    def _count(self, new: bool = True) -> None:
        self.kept += new
        if self.kept > MAX_FACTS:
            raise MeasurementError(f"{self.log.name}:{self.number}: more than {MAX_FACTS} facts; keep the lines of fewer ranks")


def _speaker(before: str) -> tuple[str, ...]:
    """(host, pid, thread and device) from ``host:pid:tid [dev] ``; nothing where there is no such prefix."""
    *_, name, device = ("", "", *before[-400:].split())
    if not device.startswith("["):
        name, device = device, ""
    host, _, threads = name.rpartition(":")
    host, _, pid = host.rpartition(":")
    return host, pid, threads + device


def _tree(up: str, down: str) -> Tree:
    return Tree(None if int(up) < 0 else int(up), lines.downs(down))


def _communicator(nranks: int | None, found: _Found) -> Communicator:
    facts = found.facts
    neighbours = facts.get("neighbours", {})
    rings = _closed(facts.get("rings", {}), neighbours, nranks)
    searches = next(iter(found.searches.values()), [])
    return Communicator(
        nranks, found.nnodes, rings, neighbours, facts.get("trees", {}), tuple(searches), facts.get("paths", {}),
        facts.get("connections", {}), found.channels, facts.get("tuning", {}), facts.get("heads", {}), tuple(found.choices),
    )  # fmt: skip


def _closed(
    rings: dict[int, tuple[int, ...]], neighbours: dict[tuple[int, int], tuple[int, int]], nranks: int | None
) -> dict[int, tuple[int, ...]]:
    """The rings printed, and those that the neighbours of all ranks close where none is printed whole."""
    whole = {channel: ring for channel, ring in rings.items() if len(ring) == nranks}
    for channel in sorted({channel for channel, _ in neighbours} - set(whole)):
        ring, at = [0], neighbours.get((channel, 0), (0, 0))[1]
        while at != 0 and len(ring) < (nranks or 0) and (channel, at) in neighbours:
            ring.append(at)
            at = neighbours[channel, at][1]
        if at == 0 and len(ring) == nranks:
            whole[channel] = tuple(ring)
    return dict(sorted((rings | whole).items()))
