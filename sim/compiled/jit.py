"""How functions of this package are compiled; ``native.py`` compiles what is called from outside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba import njit

from sim.compiled.native import OPTIONS

F = TypeVar("F", bound=Callable[..., Any])


def inlined(function: F) -> F:
    """Part of its caller: the state is many arrays, and a call that hands them on costs more than the work of an event."""
    return _njit(function, forceinline=True)


def called(function: F) -> F:
    """A function that is worth a call."""
    return _njit(function)


def _njit(function: F, **options: Any) -> F:
    make: Any = njit
    compiled: F = make(**OPTIONS, **options)(function)
    return compiled
