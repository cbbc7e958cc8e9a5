"""Sends as cells: one row for each (place, chunk) that a send reads or writes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from algorithms.schedule import Schedule

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Cells:
    """Columns of one length: ``send`` moves the content of cell ``read`` into cell ``write`` (place * nchunks + chunk)."""

    send: Ints
    read: Ints
    write: Ints


def cells(s: Schedule) -> Cells:
    """Expand chunk ranges; rows keep the order of the sends."""
    send = np.repeat(np.arange(len(s)), s.count)
    offset = np.arange(len(send)) - np.repeat(np.cumsum(s.count) - s.count, s.count)
    return Cells(send, s.src[send] * s.nchunks + s.chunk[send] + offset, s.dst[send] * s.nchunks + s.dst_chunk[send] + offset)
