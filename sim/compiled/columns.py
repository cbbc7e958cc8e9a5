"""What compiled functions look up in the columns of the plan and the state."""

from __future__ import annotations

from typing import Any

import numpy as np

from sim.compiled.jit import inlined


@inlined
def size(column: Any, message: int) -> int:
    """Bytes of a message."""
    low = column[message, 0]
    if column.shape[1] == 1:
        return int(low)
    return int((np.int64(column[message, 1]) << 32) | np.int64(np.uint32(low)))


@inlined
def slots_of(flow: Any) -> Any:
    return range(flow.slot, flow.slot + flow.width)
