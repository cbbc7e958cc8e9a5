"""The one family of errors: every message says where, the value, the rule and the nearest right answer."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterable


class RingscopeError(ValueError):
    """Base of all errors a user can cause; the terminal prints the message and exits 2, the app shows it at the input."""


class TopologyError(RingscopeError):
    """A topology, a unit or a cluster file that cannot be what the user meant."""


class ScheduleError(RingscopeError):
    """A schedule that is malformed, computes the wrong result, or does not fit where it is placed."""


class MeasurementError(RingscopeError):
    """A measured table or log that cannot be read."""


def nearest(word: str, known: Iterable[str]) -> str:
    """``; did you mean "x"?`` for a misspelt word, or the list of what is known; starts with ``; ``."""
    names = sorted(known)
    close = difflib.get_close_matches(word[:80], names, n=1, cutoff=0.5)  # matching is quadratic in the length
    if close:
        return f'; did you mean "{close[0]}"?'
    return f"; known: {', '.join(names[:30])}{', ...' if len(names) > 30 else ''}" if names else ""


def quoted(value: object, limit: int = 60) -> str:
    """The value as an error shows it: in double quotes if text, on one line, printable, and cut after ``limit`` characters."""
    if not isinstance(value, str):
        try:
            text = repr(value)
        except (ValueError, RecursionError):  # an integer of more digits than Python prints
            return f"this {type(value).__name__}"
        return text if len(text) <= limit else text[:limit] + "..."
    shown = value if len(value) <= limit else value[:limit] + "..."
    safe = "".join(c if c.isprintable() or c in "\n\t\r" else f"\\u{ord(c):04x}" for c in shown)
    return json.dumps(safe, ensure_ascii=False).replace("\\\\u", "\\u")
