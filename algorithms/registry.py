"""The catalogue: one file an algorithm, found by importing every module of this package."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, cast, get_args, get_type_hints

import algorithms
from algorithms.collectives import Collective
from algorithms.schedule import Schedule, Send
from algorithms.steps import Stream
from algorithms.transforms import merge_channels, pipeline
from topologies.errors import ScheduleError, nearest, quoted

Groups = tuple[tuple[int, ...], ...]
"""A partition of ranks, such as those of each server or under each leaf switch."""

ByServer = Annotated[Groups | None, "servers"]
"""Groups that are the topology's servers unless told; None where it names none."""


ByDomain = Annotated[Groups | None, "domains"]
"""The same for groups on one NVSwitch fabric, where that is more than a server (NVL72); else as ``ByServer``."""

MAX_DIMS = 32


class Dims(tuple[int, ...]):
    """Sizes of a grid, written 4x4."""


Built = Schedule | Iterable[Send]


@dataclass(frozen=True, slots=True)
class Option:
    """An argument of an algorithm beyond the number of ranks: a whole number (``int``), ``Dims`` or groups (``tuple``, whose
    ``default`` may be the name of a partition that the topology has)."""

    name: str
    type: type
    default: Any


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A named way to do a collective for n ranks. ``pipelined``: made to run in several slices."""

    name: str
    collective: Collective
    summary: str
    options: tuple[Option, ...]
    pipelined: bool
    rule: Callable[[int], str | None]
    make: Callable[..., Built]

    def __str__(self) -> str:
        return f"{self.collective.name}-{self.name}"

    def refusal(self, nranks: int) -> str | None:
        """Why this algorithm does not take ``nranks``, or None."""
        if nranks < 2:
            return "needs at least 2 ranks"
        return self.rule(nranks)

    def build(self, nranks: int, *, channels: int = 1, slices: int = 1, **options: Any) -> Schedule:
        """The schedule, copied to ``channels`` and cut into ``slices``. ScheduleError for a refused n or a bad option."""
        given = self._checked(nranks, channels, slices, options)
        root = given.get("root", 0)
        built = self.make(nranks, **given)
        one = built if isinstance(built, Schedule) else Schedule.of(self.name, self.collective, nranks, built, root=root)
        many = merge_channels(self.name, [one] * channels) if channels > 1 else one
        return pipeline(many, slices)

    def stream(self, nranks: int, **options: Any) -> Schedule | Stream:
        """The schedule as steps that are made when they are read (``algorithms.steps``), where the algorithm yields them in order."""
        given = self._checked(nranks, 1, 1, options)
        root = given.get("root", 0)
        built = self.make(nranks, **given)
        if isinstance(built, Schedule):
            return built
        streamed = Stream.of(self.name, self.collective, nranks, lambda: cast("Iterable[Send]", self.make(nranks, **given)), root=root)
        return streamed or Schedule.of(self.name, self.collective, nranks, built, root=root)

    def _checked(self, nranks: int, channels: int, slices: int, options: Mapping[str, Any]) -> dict[str, Any]:
        reason = self.refusal(nranks)
        if reason:
            raise ScheduleError(f"{self.name}: {nranks} ranks: {reason}")
        for what, value in (("channels", channels), ("slices", slices)):
            if not 1 <= value <= 1024:
                raise ScheduleError(f"{self.name}: {what} {value} must be between 1 and 1024")
        return self._read(options, nranks)

    def takes(self, option: str) -> bool:
        """Whether the algorithm has an option of this name."""
        return any(o.name == option for o in self.options)

    def _read(self, options: Mapping[str, Any], nranks: int) -> dict[str, Any]:
        known = {o.name: o for o in self.options}
        for name in options:
            if name not in known:
                raise ScheduleError(f'{self.name}: option "{name}" is not known{nearest(name, known) or "; it takes none"}')
        given = {name: _value(self.name, known[name], value) for name, value in options.items()}
        for name in ("root",):
            if name in given and not 0 <= given[name] < nranks:
                raise ScheduleError(f"{self.name}: {name} {given[name]} is not a rank; ranks are 0..{nranks - 1}")
        return given


def _value(algorithm: str, option: Option, value: Any) -> Any:
    """Text from the command line as the option's type; values of the right type pass."""
    where = f"{algorithm}: option {option.name}"
    if option.type is int:
        if isinstance(value, int) and not isinstance(value, bool):
            return value
        if isinstance(value, str) and re.fullmatch(r"-?[0-9]{1,11}", value.strip()):
            return int(value)
        raise ScheduleError(f"{where}: {quoted(value)} is not a whole number of at most 11 digits; write {option.name}=1")
    if option.type is Dims:
        sizes = value.split("x") if isinstance(value, str) else value
        if isinstance(sizes, list | tuple) and len(sizes) > MAX_DIMS:
            raise ScheduleError(f"{where}: {len(sizes)} sizes; at most {MAX_DIMS}")
        if isinstance(sizes, list | tuple) and all(re.fullmatch(r"0*[1-9][0-9]{0,8}", str(size)) for size in sizes):
            return Dims(int(size) for size in sizes)
        raise ScheduleError(f'{where}: "{value}" is not a list of sizes; write {option.name}=4x4')
    if isinstance(value, str):
        if re.fullmatch(r"[0-9]{1,9}([,/][0-9]{1,9})*", value):
            return tuple(tuple(int(rank) for rank in group.split(",")) for group in value.split("/"))
        raise ScheduleError(f'{where}: "{value}" is not a list of groups; write ranks as {option.name}=0,1,2,3/4,5,6,7')
    return tuple(tuple(group) for group in value) if value else None


def _option(parameter: inspect.Parameter, hint: Any) -> Option:
    kind = next((known for known in (int, Dims) if hint is known or known in get_args(hint)), tuple)
    named = getattr(hint, "__metadata__", ())
    return Option(parameter.name, kind, named[0] if named else parameter.default)


_REGISTRY: dict[tuple[str, str], Algorithm] = {}


def any_number(nranks: int) -> str | None:
    """No rule: any number of ranks."""
    return None


def power_of_two(nranks: int) -> str | None:
    """The rule of algorithms that halve and double."""
    return None if nranks & (nranks - 1) == 0 else "needs a power of two"


F = TypeVar("F", bound=Callable[..., Built])


def algorithm(
    collective: Collective, *, name: str | None = None, rule: Callable[[int], str | None] = any_number, pipelined: bool = False
) -> Callable[[F], F]:
    """Register a function of n (and options) that yields sends or returns a Schedule. Its docstring's first line is the summary;
    the name is the function's in kebab-case unless given."""

    def register(make: F) -> F:
        known = name or make.__name__.replace("_", "-")
        hints = get_type_hints(make, include_extras=True)
        parameters = list(inspect.signature(make).parameters.values())[1:]
        options = tuple(_option(p, hints[p.name]) for p in parameters)
        summary = (make.__doc__ or "").strip().splitlines()[0]
        _REGISTRY[collective.name, known] = Algorithm(known, collective, summary, options, pipelined, rule, make)
        return make

    return register


def catalogue(collective: Collective | None = None) -> list[Algorithm]:
    """All registered algorithms (of one collective), sorted by collective and name."""
    _discover()
    return [a for _, a in sorted(_REGISTRY.items()) if collective is None or a.collective is collective]


def find(collective: Collective, name: str) -> Algorithm:
    """The algorithm of a collective by name; ScheduleError names the nearest, or the collectives that have it."""
    _discover()
    found = _REGISTRY.get((collective.name, name))
    if found:
        return found
    elsewhere = [c for c, a in _REGISTRY if a == name]
    here = [a.name for a in catalogue(collective)]
    hint = nearest(name, here)
    if elsewhere:
        hint = f"; it does {', '.join(sorted(elsewhere))}; {collective.name} has {', '.join(here) or 'none yet'}"
    raise ScheduleError(f'algorithm "{name}" is not known for {collective.name}{hint}')


def _discover() -> None:
    for module in pkgutil.iter_modules(algorithms.__path__):
        importlib.import_module(f"algorithms.{module.name}")
