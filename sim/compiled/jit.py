"""How functions of this package are compiled: all into one entry, which numba keeps on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from numba import njit

F = TypeVar("F", bound=Callable[..., Any])

SOURCES = hashlib.sha256(b"".join(path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py")))).hexdigest()
"""Changes with any file of this package. Numba's cache looks at the file of the entry alone, so the entry closes over this."""
_OPTIONS = {"error_model": "numpy", "_nrt": False}
"""No array is made inside, so arrays need no reference counts: counting them took nine tenths of the time."""


def inlined(function: F) -> F:
    """Part of its caller: the state is many arrays, and a call that hands them on costs more than the work of an event."""
    return _njit(function, forceinline=True)


def called(function: F) -> F:
    """A function that is worth a call."""
    return _njit(function)


def entry(signature: Any, function: F) -> F:
    """Compiled for this signature, or read from the cache: ``NUMBA_CACHE_DIR``, else beside the source, else the user's cache
    directory. Where none of them can be written, it is compiled each time."""
    try:
        return _njit(function, signature, cache=True)
    except RuntimeError as error:
        if "cannot cache" not in str(error):
            raise
        return _njit(function, signature)


def _njit(function: F, *signature: Any, **options: Any) -> F:
    make: Any = njit
    compiled: F = make(*signature, **_OPTIONS, **options)(function)
    return compiled
