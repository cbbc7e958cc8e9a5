"""Refusals before anything is built: how many sends an algorithm will have, by extrapolation, against what a run can hold."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from algorithms.collectives import collective
from algorithms.launch import Launch
from algorithms.registry import Algorithm, find
from algorithms.steps import Stream
from sim.engines import SMALL
from sim.model import ModelError
from sim.simulate import make_launch
from topologies import get, make, names, read_cluster
from topologies.errors import RingscopeError, ScheduleError, TopologyError, nearest, quoted
from topologies.faults import apply_faults
from topologies.graph import Topology

MAX_SENDS = {"event": 4_000_000, "compiled": 40_000_000, "maxplus": 1_000_000_000, "auto": 1_000_000_000}
"""By engine; a run with more is refused: it would take more than a minute."""
MAX_WHOLE = 10_000_000
"""Sends of a schedule that has to be there as a whole: one in slices or channels, or made from others."""
BYTES_PER_SEND = {"event": 1000, "compiled": 85, "maxplus": 0, "auto": 0}
"""By engine, where steps are made when they are read; ``auto`` takes ``maxplus`` where there are many."""
BYTES_PER_WHOLE = 400
"""Of such a schedule, above those."""
MEMORY_SHARE = 0.8
"""Of the memory of the machine that a run may take."""
MAX_GPUS = 65_536
"""Of a topology that is run: servers on two tiers of switches take 6 seconds to build and 10 kB a GPU, their bounds as much again."""
BYTES_PER_GPU = 20_000
MAX_NAME = 300
PROBES = (64, 256)
"""Numbers of ranks from which larger schedules are extrapolated; every algorithm's rule admits powers of two."""


def expected_sends(
    algorithm: Algorithm, nranks: int, *, channels: int = 1, slices: int = 1, options: Mapping[str, Any] | None = None
) -> float:
    """Sends of a schedule without building it: a power law through the schedules of ``PROBES`` ranks. 0 where it is small
    (up to 128 ranks and 65,536 copies) or the algorithm refuses the probes: the schedule itself is then the judge."""
    if nranks <= PROBES[1] and channels * slices == 1:
        return 0.0
    fixed = ("root", "groups", "dims")  # may not exist among fewer ranks
    kept = {key: value for key, value in (options or {}).items() if key not in fixed}
    try:
        few, many = (_sends(algorithm, n, min(channels, 2), min(slices, 2), kept) for n in PROBES)
    except RingscopeError:
        return 0.0
    power = math.log(many / few, PROBES[1] / PROBES[0]) if many > few > 0 else 0.0
    copies = max(1, channels // 2) * max(1, slices // 2)
    return float(many * (nranks / PROBES[1]) ** power * copies)


def _sends(algorithm: Algorithm, nranks: int, channels: int, slices: int, options: Mapping[str, Any]) -> int:
    if channels == slices == 1:
        return len(algorithm.stream(nranks, **options))
    return len(algorithm.build(nranks, channels=channels, slices=slices, **options))


def check_sends(
    collective_name: str,
    algorithm_name: str,
    nranks: int,
    *,
    channels: int = 1,
    slices: int = 1,
    options: Mapping[str, Any] | None = None,
    engine: str = "event",
) -> float:
    """Expected sends (0: few). ScheduleError, with the number, for more than an engine runs, or than the memory of this machine holds."""
    algorithm = find(collective(collective_name), algorithm_name)
    sends = expected_sends(algorithm, nranks, channels=channels, slices=slices, options=options)
    if engine not in MAX_SENDS:
        raise ModelError(f"engine {quoted(engine)} is not known{nearest(engine, MAX_SENDS)}")
    most, per_send = MAX_SENDS[engine], BYTES_PER_SEND[engine]
    if sends > MAX_WHOLE and not (channels == slices == 1 and isinstance(algorithm.stream(PROBES[0]), Stream)):
        most, per_send = min(most, MAX_WHOLE), per_send + BYTES_PER_WHOLE
    memory = sends * per_send
    if sends > most:
        kept = _rounded(sends * max(per_send, BYTES_PER_WHOLE) / 1e9)
        larger = next(
            (f", or engine {other}" for other in ("compiled", "maxplus") if most == MAX_SENDS[engine] < sends <= MAX_SENDS[other]), ""
        )
        raise ScheduleError(
            f"{algorithm.name}: {nranks:,} ranks take about {_rounded(sends)} sends, {kept} GB of memory if all were kept; "
            f"at most {most:,} sends are run: take fewer GPUs, channels or slices{larger}"
        )
    if memory > MEMORY_SHARE * _memory():
        raise ScheduleError(
            f"{algorithm.name}: {nranks:,} ranks take about {_rounded(sends)} sends, {_rounded(memory / 1e9)} GB of memory with engine "
            f"{engine}; this machine has {_rounded(_memory() / 1e9)} GB: take fewer GPUs, channels or slices"
        )
    return sends


def _memory() -> float:
    """Bytes of memory of this machine; without limit where it does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, ValueError, OSError):
        return math.inf


def limited_launch(
    spec: str,
    params: Mapping[str, str],
    collective_name: str,
    algorithm_name: str,
    nbytes: int,
    *,
    dtype: str = "float32",
    options: Mapping[str, Any] | None = None,
    channels: int = 1,
    slices: int = 1,
    faults: Sequence[str] = (),
    seed: int = 0,
    engine: str = "event",
    traced: bool = True,
) -> tuple[Topology, Launch]:
    """The topology (see ``machine_of``) and one collective over all its GPUs; too large a schedule for the engine is refused before the
    topology is built. Without ``traced`` the steps of a large one are made when they are read. Raises RingscopeError."""
    asked = _asked_gpus(params)
    built: dict[str, Any] = {"channels": channels, "slices": slices, "options": options}
    sends = check_sends(collective_name, algorithm_name, asked, **built, engine=engine)
    topology = machine_of(spec, params, faults, seed)
    if len(topology.gpus) != asked:
        sends = check_sends(collective_name, algorithm_name, len(topology.gpus), **built, engine=engine)
    streamed = sends > SMALL and engine != "event" and not traced
    return topology, make_launch(topology, collective_name, algorithm_name, nbytes, **built, dtype=dtype, streamed=streamed)


def machine_of(spec: str, params: Mapping[str, str], faults: Sequence[str] = (), seed: int = 0) -> Topology:
    """A topology by the name of its generator, or from a cluster file (what has a slash or is a folder can only be meant as one),
    with ``faults`` (see ``topologies.faults``). Raises RingscopeError, above ``MAX_GPUS`` too."""
    is_file = names_file(spec)
    if not is_file:
        get(spec)  # a wrong name is reported before a wrong number
    _check_gpus(_asked_gpus(params))
    topology = read_cluster(spec, params) if is_file else make(spec, params)
    _check_gpus(len(topology.gpus))
    for name in (topology.name, *topology.graph):
        if not (name.isprintable() and 0 < len(name) <= MAX_NAME):  # names go to a terminal
            raise TopologyError(f"{spec}: {quoted(name)} is not a name; write 1 to {MAX_NAME} printable characters")
    return apply_faults(topology, faults, seed)


def names_file(spec: str) -> bool:
    """Whether a topology is meant as a cluster file, not as the name of a generator."""
    try:
        return spec.endswith(".toml") or os.sep in spec or (spec not in names() and Path(spec).exists())
    except (OSError, ValueError):  # longer than the file system allows, or with a null byte
        return False


def _check_gpus(count: int) -> None:
    if count > MAX_GPUS:
        memory = _rounded(count * BYTES_PER_GPU / 1e9)
        raise ScheduleError(f"{count:,} GPUs need about {memory} GB of memory; at most {MAX_GPUS:,} are run")


def _asked_gpus(params: Mapping[str, str]) -> int:
    """A first guess at the number of GPUs that parameters of a topology ask for (0: they do not say), to refuse before building:
    the product of what counts servers and GPUs."""
    counts = [params.get(key, "") for key in ("gpus", "nodes", "leaves", "gpus_per_leaf", "gpus-per-leaf")]
    counts += params.get("dims", "").split("x")
    numbers = [int(text) for text in counts if text.isascii() and text.isdigit() and len(text) <= 18]
    return math.prod(numbers) if numbers else 0


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value < 1e6 else f"{value:.2g}"
