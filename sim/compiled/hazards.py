"""The waits of ``algorithms.dependencies`` in one pass over the sends, cell by cell: for schedules of millions of sends.

A cell knows what a reader must wait for (``base``: a message or join that covers all before it; ``writes`` since), and what a writer
must wait for (``reads``). A set that is waited for as a whole becomes a join, so that waits grow with the accesses."""

from __future__ import annotations

from typing import Any

from sim.compiled.cells import NONE, RECENT
from sim.compiled.jit import inlined


@inlined
def _edge(c: Any, before: int, after: int, sent: int) -> None:
    if before in (NONE, after):
        return
    before, after = _numbered(before), _numbered(after)
    cursor = c.cursor[0]
    edges = cursor.edges
    for i in range(edges - 1, max(0, edges - RECENT) - 1, -1):
        known = c.edges[i]
        if known.after != after:
            break
        if known.code == 2 * before + sent:
            return
    c.edges[edges].code, c.edges[edges].after = 2 * before + sent, after
    cursor.edges = edges + 1


@inlined
def _numbered(node: int) -> Any:
    return node - 1 if node > 0 else node


@inlined
def _listed(c: Any, head: int, node: int) -> Any:
    """The list with a node more."""
    cursor = c.cursor[0]
    at = cursor.free
    if at:
        cursor.free = c.entries[at].behind
    else:
        cursor.entries += 1
        at = cursor.entries
    cursor.live += 1
    c.entries[at].node, c.entries[at].behind = node, head
    return at


@inlined
def _emptied(c: Any, head: int, after: int, sent: int) -> None:
    """``after`` waits for all of a list, which is given back."""
    cursor = c.cursor[0]
    while head:
        _edge(c, c.entries[head].node, after, sent)
        behind = c.entries[head].behind
        c.entries[head].behind = cursor.free
        cursor.free = head
        cursor.live -= 1
        head = behind


@inlined
def _join(c: Any) -> Any:
    cursor = c.cursor[0]
    cursor.joins += 1
    return -cursor.joins


@inlined
def _wait_for_writes(c: Any, cell: Any, after: int) -> None:
    if cell.writes or (cell.base != NONE and cell.write != NONE):
        join = _join(c)
        _edge(c, cell.base, join, 0)
        _edge(c, cell.write, join, 0)
        _emptied(c, cell.writes, join, 0)
        cell.base, cell.write, cell.writes = join, NONE, NONE
    _edge(c, cell.base, after, 0)
    _edge(c, cell.write, after, 0)


@inlined
def _wait_for_reads(c: Any, cell: Any, after: int) -> None:
    if cell.reads:
        join = _join(c)
        _edge(c, cell.read, join, cell.read > 0)
        _emptied(c, cell.reads, join, 1)
        cell.read, cell.reads = join, NONE
    _edge(c, cell.read, after, cell.read > 0)


@inlined
def _write(c: Any, cell: Any, message: int, step: int, copies: bool) -> None:
    """Recorded reads are of earlier steps: those of this step see the value before."""
    _wait_for_reads(c, cell, message)
    if not cell.read_all:  # else those reads waited for the writes, which are one node since
        if copies:
            _edge(c, cell.base, message, 0)
            _edge(c, cell.write, message, 0)
            _emptied(c, cell.writes, message, 0)
        else:
            _edge(c, cell.copy, message, 0)
    if copies or cell.read_all:
        cell.base = cell.write = cell.writes = cell.copy = NONE
    cell.write_step, cell.read_all, cell.write_all = step + 1, 0, 1
    if copies:
        cell.base = cell.copy = message
        cell.read, cell.write_all = NONE, 0
    elif cell.write == NONE:
        cell.write = message
    elif cell.write != message:
        cell.writes = _listed(c, cell.writes, message)


@inlined
def _read(c: Any, cell: Any, message: int, step: int) -> None:
    if cell.write_step <= step:
        cell.read_all = 1
        if cell.write_all:  # and so this read, which waits for that write
            cell.read = NONE
    else:
        cell.read_all = 0
    cell.write_all = 0
    if cell.read == NONE:
        cell.read = message
    elif cell.read != message:
        cell.reads = _listed(c, cell.reads, message)


@inlined
def _range(c: Any, place: int, chunk: int, count: int) -> Any:
    """First key of a chunk range, and the one after the last: of chunks, or of runs of chunks."""
    if len(c.keys) == 0:
        return chunk, chunk + count
    lo = _found(c, c.first[place], c.first[place + 1], chunk)
    return lo, _found(c, lo, c.first[place + 1], chunk + count)


@inlined
def _cell(c: Any, place: int, key: int) -> Any:
    if len(c.keys):
        return c.cells[key]
    form = c.form[0]
    if form.skewed:
        return c.cells[(key - place + (form.chunks if key < place else 0)) * form.places + place]
    return c.cells[place * form.chunks + key]


@inlined
def _found(c: Any, lo: int, hi: int, chunk: int) -> int:
    while lo < hi:
        middle = (lo + hi) >> 1
        if c.keys[middle] < chunk:
            lo = middle + 1
        else:
            hi = middle
    return lo


def derive(b: Any, c: Any, first: int) -> int:
    """Add the waits of sends ``first`` and on. Returns the send whose step needs room (``need`` edges more, ``need_entries`` in all), or
    the number of sends."""
    cursor = c.cursor[0]
    sends = len(b.step)
    while first < sends:
        step, last, touched = b.step[first], first, 0
        while last < sends and b.step[last] == step:
            lo, hi = _range(c, b.src[last], b.chunk[last], b.width[last])
            touched += hi - lo
            lo, hi = _range(c, b.dst[last], b.dst_chunk[last], b.width[last])
            touched += hi - lo
            last += 1
        cursor.need, cursor.need_entries = 6 * touched + 2 * cursor.live, cursor.entries + touched + 1
        if cursor.edges + cursor.need > len(c.edges) or cursor.need_entries > len(c.entries):
            return first
        for i in range(first, last):
            lo, hi = _range(c, b.src[i], b.chunk[i], b.width[i])
            for key in range(lo, hi):
                _wait_for_writes(c, _cell(c, b.src[i], key), b.message[i] + 1)
        for i in range(first, last):
            lo, hi = _range(c, b.dst[i], b.dst_chunk[i], b.width[i])
            for key in range(lo, hi):
                _write(c, _cell(c, b.dst[i], key), b.message[i] + 1, step, b.op[i] == 0)
        for i in range(first, last):
            lo, hi = _range(c, b.src[i], b.chunk[i], b.width[i])
            for key in range(lo, hi):
                _read(c, _cell(c, b.src[i], key), b.message[i] + 1, step)
        first = last
    return first


def count(edges: Any, messages: int, waits: Any, start: Any) -> None:
    """First half of a counting sort of edges by the node before: ``waits`` of nodes, and how many wait for each (``start``, two
    further)."""
    for i in range(len(edges)):
        waits[_node(edges[i].after, messages)] += 1
        start[_node(edges[i].code >> 1, messages) + 2] += 1


def place(edges: Any, messages: int, start: Any, after: Any, on_sent: Any) -> None:
    """Second half, with sums of ``start``: the edges of a node go where its entry, one further, says, which ends where the next begin."""
    for i in range(len(edges)):
        entry = _node(edges[i].code >> 1, messages) + 1
        at = start[entry]
        after[at], on_sent[at] = _node(edges[i].after, messages), edges[i].code & 1
        start[entry] = at + 1


@inlined
def _node(number: int, messages: int) -> int:
    return number if number >= 0 else messages - 1 - number
