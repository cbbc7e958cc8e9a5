"""Generators by name: a plain function from parameters to ``Topology``, registered by ``@topology`` and found by discovery.

A new topology is one new file in this package. The unit of a parameter is its annotation: ``Bandwidth`` reads "25GB/s",
``Seconds`` "1us", ``Dims`` "4x4"; numbers are SI already. ``Annotated[str, "word", choices]`` takes one of the words.
"""

from __future__ import annotations

import functools
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_type_hints

import topologies
from topologies.errors import TopologyError, nearest, quoted
from topologies.graph import Topology
from topologies.units import exact_bandwidth, exact_time, parse_bandwidth, parse_count, parse_time

Unit = Literal["count", "bandwidth", "time", "dims", "flag", "ratio", "word"]
Count = Annotated[int, "count"]
Bandwidth = Annotated[float, "bandwidth"]
Seconds = Annotated[float, "time"]
Dims = Annotated[tuple[int, ...], "dims"]
Flag = Annotated[bool, "flag"]
Ratio = Annotated[float, "ratio"]
Value = str | int | float | bool | tuple[int, ...] | list[int] | None
Generator = TypeVar("Generator", bound=Callable[..., Topology])

MEMORY_LIMIT = 2**29
"""Bytes a generated topology may take."""
BYTES_PER_PART = 700
"""Of a node or a directed link, with its share of the graph; measured with tracemalloc on CPython 3.11, rounded up."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """One argument of a generator: its unit and its default in SI; ``default`` None means: chosen by the generator."""

    name: str
    unit: Unit
    default: Value
    choices: tuple[str, ...] = ()
    """The words allowed, in lower case; empty for every other unit."""

    @property
    def text(self) -> str:
        """The default as a person writes it; empty if chosen by the generator."""
        if self.default is None:
            return ""
        if self.unit == "bandwidth":
            return exact_bandwidth(float(self.default))  # type: ignore[arg-type]
        if self.unit == "time":
            return exact_time(float(self.default))  # type: ignore[arg-type]
        if isinstance(self.default, tuple):
            return "x".join(map(str, self.default))
        return str(self.default).lower()


@dataclass(frozen=True, slots=True)
class Entry:
    """A registered generator: ``summary`` is the first line of its docstring."""

    name: str
    function: Callable[..., Topology]
    summary: str
    parameters: tuple[Parameter, ...]


_ENTRIES: dict[str, Entry] = {}


def topology(function: Generator) -> Generator:
    """Register a generator under its name in kebab-case (``fat_tree`` -> ``fat-tree``).

    Called directly it behaves as it is written, but that counts and dimensions below 1 and ratios not above 0 are a TopologyError.
    """
    name = function.__name__.replace("_", "-")
    if name in _ENTRIES:
        raise TopologyError(f'topology "{name}" is registered twice; give one of the functions another name')
    hints = get_type_hints(function, include_extras=True)
    signature = inspect.signature(function)
    known = {p.name: Parameter(p.name, *_unit(hints[p.name], p.default)) for p in signature.parameters.values()}

    @functools.wraps(function)
    def checked(*args: Any, **kwargs: Any) -> Topology:
        for key, value in signature.bind(*args, **kwargs).arguments.items():
            if value is not None:
                _check_positive(known[key], value, f"{name}.{key}")
        return function(*args, **kwargs)

    _ENTRIES[name] = Entry(name, checked, (inspect.getdoc(function) or "").partition("\n")[0], tuple(known.values()))
    return cast("Generator", checked)


def _check_positive(parameter: Parameter, value: Any, where: str) -> None:
    if parameter.unit == "count" and not value >= 1:
        parse_count(value, where)
    elif parameter.unit == "dims":
        _read_dims(value, where)
    elif parameter.unit == "word":
        read_word(value, parameter.choices, where)
    elif parameter.unit == "ratio" and not 0 < value < math.inf:
        raise TopologyError(f'{where}: {quoted(value)} is not a ratio; write a positive number as "2" or "1.5"')


def _unit(hint: object, default: Value) -> tuple[Unit, Value, tuple[str, ...]]:
    while not hasattr(hint, "__metadata__"):
        hint = get_args(hint)[0]
    unit, choices = (*hint.__metadata__, ())[:2]
    return unit, default, choices


def _discover() -> dict[str, Entry]:
    for module in pkgutil.iter_modules(topologies.__path__):
        importlib.import_module(f"topologies.{module.name}")
    return _ENTRIES


def names() -> list[str]:
    """All registered topologies, sorted."""
    return sorted(_discover())


def get(name: str) -> Entry:
    """The generator of that name; raises TopologyError with the nearest name for an unknown one."""
    entries = _discover()
    if name not in entries:
        raise TopologyError(f"{quoted(name)} is not a topology{nearest(name, entries)}")
    return entries[name]


def make(name: str, params: Mapping[str, Value] | None = None, where: str = "") -> Topology:
    """Build a registered topology; text is read by the parameter's unit, numbers are SI.

    Raises TopologyError for an unknown name or parameter (with the nearest), for a value its unit refuses, and for a
    size that would not fit in memory (before building).
    """
    entry = get(name)
    known = {parameter.name: parameter for parameter in entry.parameters}
    values: dict[str, object] = {}
    for key, value in (params or {}).items():
        parameter = known.get(key.replace("-", "_"))
        if parameter is None:
            raise TopologyError(f"{where or name}: there is no parameter {quoted(key)}{nearest(key, known)}")
        values[parameter.name] = _read(parameter, value, f"{where or name}.{key}")
    return entry.function(**values)


def _read(parameter: Parameter, value: Value, where: str) -> object:
    if value is None and parameter.default is None:
        return None
    if isinstance(value, str):
        value = value.strip(" ")
    match parameter.unit:
        case "bandwidth":
            return parse_bandwidth(value, where)  # type: ignore[arg-type]
        case "time":
            return parse_time(value, where)  # type: ignore[arg-type]
        case "count":
            return parse_count(value, where)  # type: ignore[arg-type]
        case "dims":
            return _read_dims(value, where)
        case "flag":
            if isinstance(value, bool) or value in ("true", "false"):
                return value in ("true", True)
            raise TopologyError(f"{where}: {quoted(value)} is neither true nor false")
        case "ratio":
            return _read_ratio(value, where)
        case "word":
            return read_word(value.lower() if isinstance(value, str) else value, parameter.choices, where)


def read_word(value: object, choices: Collection[str], where: str) -> str:
    """``value``, if it is one of the words; raises TopologyError with the nearest."""
    if not isinstance(value, str) or value not in choices:
        raise TopologyError(f"{where}: {quoted(value)} is not one of its words{nearest(str(value)[:80].lower(), choices)}")
    return value


def _read_dims(value: Value, where: str) -> tuple[int, ...]:
    parts: object = value.split("x") if isinstance(value, str) and len(value) <= 200 else value
    if not isinstance(parts, list | tuple) or not parts:
        raise TopologyError(f'{where}: {quoted(value)} is not a list of dimensions; write "4x4" or "8x8x8"')
    return tuple(parse_count(part, where) for part in parts)


def _read_ratio(value: Value, where: str) -> float:
    text = str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,6}(\.[0-9]{1,6})?", text) or not float(text) > 0:
        raise TopologyError(f'{where}: {quoted(value)} is not a ratio; write a positive number as "2" or "1.5"')
    return float(text)


def check_size(name: str, what: str, count: int, parts: Callable[[int], int]) -> None:
    """Refuse, before building, ``count`` of ``what`` if ``parts(count)`` nodes and directed links do not fit in 512 MiB.

    ``parts`` must not decrease; the TopologyError says what would be needed and the largest count that fits.
    """
    room = MEMORY_LIMIT // BYTES_PER_PART
    if parts(count) <= room:
        return
    fits, too_many = 0, count
    while too_many - fits > 1:
        middle = (fits + too_many) // 2
        fits, too_many = (middle, too_many) if parts(middle) <= room else (fits, middle)
    advice = f"the largest that fits is {what} = {fits}" if fits else f"not even {what} = 1 fits: lower the other sizes"
    need = parts(count) * BYTES_PER_PART / 2**30
    raise TopologyError(f"{name}: {what} = {count} needs about {need:.3g} GiB, more than the {MEMORY_LIMIT / 2**30:.3g} GiB allowed; "
                        f"{advice}")  # fmt: skip
