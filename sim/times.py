"""When each message of a plan did what: what event engines return."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Progress = Callable[[int, int], None]
"""Called with (messages done, messages in all) now and then; an exception raised in it cancels the run."""


@dataclass(frozen=True, slots=True, eq=False)
class Times:
    """Per message, in seconds: ``start`` left its queue, ``flow`` first byte, ``sent``, ``arrived``, ``reducing``, ``end``. ``cause``:
    the node that let a node start (-1: none), ``cause_sent``: by its last byte leaving; ``reduce_cause``: the message whose
    reduction it waited for; ``limit``: the resource that held the flow to its last rate."""

    start: Floats
    flow: Floats
    sent: Floats
    arrived: Floats
    reducing: Floats
    end: Floats
    cause: Ints
    cause_sent: NDArray[np.bool_]
    reduce_cause: Ints
    limit: Ints
    joined: Floats
    """Per join, when it was over."""
