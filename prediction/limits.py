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
from sim.simulate import make_launch
from topologies import get, make, names, read_cluster
from topologies.errors import RingscopeError, ScheduleError, TopologyError, quoted
from topologies.faults import apply_faults
from topologies.graph import Topology

MAX_SENDS = 4_000_000
"""A run with more is refused: the event engine needs about 1 kB and 15 microseconds a send, so this is 4 GB and a minute."""
BYTES_PER_SEND = 1000
MAX_GPUS = 8192
"""Of a topology that is run: finding the routes through one switch takes minutes beyond, and 100 kB a GPU."""
BYTES_PER_GPU = 100_000
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
    kept = {key: value for key, value in (options or {}).items() if key not in ("root", "groups")}  # may not exist among fewer ranks
    try:
        few, many = (len(algorithm.build(n, channels=min(channels, 2), slices=min(slices, 2), **kept)) for n in PROBES)
    except RingscopeError:
        return 0.0
    power = math.log(many / few, PROBES[1] / PROBES[0]) if many > few > 0 else 0.0
    copies = max(1, channels // 2) * max(1, slices // 2)
    return float(many * (nranks / PROBES[1]) ** power * copies)


def check_sends(
    collective_name: str,
    algorithm_name: str,
    nranks: int,
    *,
    channels: int = 1,
    slices: int = 1,
    options: Mapping[str, Any] | None = None,
) -> None:
    """ScheduleError, with the number, for a schedule that would have more than ``MAX_SENDS`` sends."""
    algorithm = find(collective(collective_name), algorithm_name)
    sends = expected_sends(algorithm, nranks, channels=channels, slices=slices, options=options)
    if sends > MAX_SENDS:
        memory = _rounded(sends * BYTES_PER_SEND / 1e9)
        raise ScheduleError(
            f"{algorithm.name}: {nranks:,} ranks take about {_rounded(sends)} sends, {memory} GB of memory; at most {MAX_SENDS:,} sends "
            "are run: take fewer GPUs, channels or slices"
        )


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
) -> tuple[Topology, Launch]:
    """The topology (see ``machine_of``) and one collective over all its GPUs; too large a schedule is refused before the topology is
    built. Raises RingscopeError."""
    check_sends(collective_name, algorithm_name, _asked_gpus(params), channels=channels, slices=slices, options=options)
    topology = machine_of(spec, params, faults, seed)
    check_sends(collective_name, algorithm_name, len(topology.gpus), channels=channels, slices=slices, options=options)
    launch = make_launch(
        topology, collective_name, algorithm_name, nbytes, options=options, channels=channels, slices=slices, dtype=dtype
    )
    return topology, launch


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
