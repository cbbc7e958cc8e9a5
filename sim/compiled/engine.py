"""Plays a plan with the compiled loop, slice by slice."""

from __future__ import annotations

from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sim.compiled.native import Native
from sim.compiled.state import FULL, OVER, given, out, state
from sim.model import Model
from sim.plan import Plan
from sim.times import Progress, Times
from topologies.errors import ScheduleError

REPORT_EVERY = 0.2
"""Seconds between calls of ``progress``."""
SLICE = 1 << 16
"""Events and new rates between two looks at the clock."""

loop = Native("loop", "play")


def play(plan: Plan, model: Model, progress: Progress | None = None) -> Times:
    """Play the plan. ScheduleError when messages wait for one another for ever."""
    p, t = given(plan), out(plan, model)
    s = state(plan, model, p)
    reported = monotonic()
    while (why := loop(p, s, t, SLICE)) != OVER:
        if why == FULL:
            s = s._replace(arrivals=_twice(s.arrivals))
        if progress and monotonic() - reported >= REPORT_EVERY:
            progress(int(s.clock["done"][0]), plan.messages)
            reported = monotonic()
    done = int(s.clock["done"][0])
    if done < plan.messages:
        stuck = int(np.argmax(s.waits > 0))
        raise ScheduleError(f"{plan.messages - done} messages wait for one another for ever (message {stuck} among them)")
    if len(t.reduce_cause) < plan.messages:  # nothing is reduced
        t = t._replace(reduce_cause=np.broadcast_to(np.int32(-1), plan.messages))
    return Times(**t._asdict())


def _twice(heap: NDArray[Any]) -> NDArray[Any]:
    return np.concatenate([heap, np.zeros_like(heap)])
