"""What waits are found in: columns of sends, a record for each cell, edges; ``hazards.py`` reads and writes them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]
NONE = 0
"""No node, or no list: memory that nobody has written yet. In cells messages are numbered 1, 2, ... and joins -1, -2, ...; in edges
messages from 0."""

CELL = np.dtype([
    ("base", "i4"), ("write", "i4"), ("writes", "i4"),  # what covers the writes up to some; the first since, and a list of the others
    ("copy", "i4"),  # the last COPY, unless something else covers it
    ("read", "i4"), ("reads", "i4"),  # the first read that a writer must wait for, and a list of the others
    ("write_step", "i4"),  # the step of the last write, from 1
    ("read_all", "i1"),  # a read waits for all these writes
    ("write_all", "i1"),  # the last write waits for all these reads
], align=True)  # fmt: skip
ENTRY = np.dtype([("node", "i4"), ("behind", "i4")], align=True)
EDGE = np.dtype([("code", "i4"), ("after", "i4")], align=True)  # code: 2 * node before, and 1 if it need only be sent
FORM = np.dtype([(name, "i8") for name in ("places", "chunks", "skewed")], align=True)
CURSOR = np.dtype([(name, "i8") for name in ("edges", "entries", "free", "live", "joins", "need", "need_entries")], align=True)
RECENT = 64  # waits of one message that are looked through for the same wait


class Sends(NamedTuple):
    """Columns of a block of whole steps; ``width`` is how many chunks, ``message`` numbers the messages of
    the launch."""

    step: Array
    src: Array
    dst: Array
    chunk: Array
    dst_chunk: Array
    width: Array
    op: Array
    message: Array


class Cells(NamedTuple):
    """``keys`` and ``first``: boundaries of chunk ranges, place by place (empty: every chunk of every place is a cell). ``skewed``: cell
    (place p, chunk c) is beside (p + 1, c + 1), not (p, c + 1)."""

    cells: Array
    keys: Array
    first: Array
    form: Array
    entries: Array
    edges: Array
    cursor: Array
