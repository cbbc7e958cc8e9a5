"""A progress bar on stderr for what takes a while; nothing where stderr is not a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

PATIENCE = 0.5
"""Seconds before a bar appears, so that quick commands do not flicker."""


@contextmanager
def bar(what: str) -> Iterator[Callable[[int, int], None] | None]:
    """Yields a callback (done, all), or None; the bar is gone afterwards."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    progress = Progress(*columns, console=Console(stderr=True), transient=True)
    task = progress.add_task(what, total=None)
    begun = time.monotonic()

    def update(done: int, total: int) -> None:
        if not progress.live.is_started and time.monotonic() - begun > PATIENCE:
            progress.start()
        progress.update(task, completed=done, total=total)

    try:
        yield update
    finally:
        progress.stop()
