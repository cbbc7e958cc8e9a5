"""Refusals before anything is built: how many sends an algorithm will have, by extrapolation, against what a run can hold."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from algorithms.collectives import collective
from algorithms.launch import Launch
from algorithms.registry import find
from prediction.expected import expected
from sim.engines import SMALL
from sim.model import ModelError
from sim.simulate import make_launch
from topologies import get, make, names, read_cluster
from topologies.errors import ScheduleError, TopologyError, nearest, quoted
from topologies.faults import apply_faults
from topologies.graph import Topology

MAX_SENDS = {"event": 4_000_000, "compiled": 40_000_000, "maxplus": 1_000_000_000, "auto": 1_000_000_000}
"""By engine; a run with more is refused: it would take more than a minute."""
MAX_WIDE = 10_000_000
"""Sends that have to be there at once: all of a schedule in slices or channels, or made from others; else those of its largest step."""
MAX_PAIRS = 2_500_000
"""Of GPUs that send to each other: finding so many routes takes a minute or two."""
BYTES_PER_SEND = {"event": 1000, "compiled": 85, "maxplus": 0, "auto": 0}
"""By engine; ``auto`` takes ``maxplus`` where there are many."""
BYTES_PER_CHUNK = 300
"""Of all that sends move, with engine event, which looks at the cells of a range one by one."""
BYTES_PER_WIDE = 400
"""Above those."""
MEMORY_SHARE = 0.8
"""Of the memory of the machine that a run may take."""
MAX_GPUS = 65_536
"""Of a topology that is run: servers on two tiers of switches take 6 seconds to build and 10 kB a GPU, their bounds as much again."""
BYTES_PER_GPU = 20_000
MAX_NAME = 300


def check_sends(
    collective_name: str,
    algorithm_name: str,
    nranks: int,
    *,
    channels: int = 1,
    slices: int = 1,
    options: Mapping[str, Any] | None = None,
    engine: str = "event",
    streamed: bool = False,
) -> float:
    """Expected sends (0: few). ScheduleError, with the number, for more than an engine runs, or than the memory of this machine holds;
    unless ``streamed`` all sends are to be there at once."""
    algorithm = find(collective(collective_name), algorithm_name)
    if engine not in MAX_SENDS:
        raise ModelError(f"engine {quoted(engine)} is not known{nearest(engine, MAX_SENDS)}")
    size = expected(algorithm, nranks, channels=channels, slices=slices, options=options)
    if not streamed:
        size = replace(size, widest=size.sends)
    memory = size.sends * BYTES_PER_SEND[engine] + size.widest * BYTES_PER_WIDE
    if engine == "event":
        memory += size.chunks * BYTES_PER_CHUNK
    what, right = f"{algorithm.name}: {nranks:,} ranks take about {_rounded(size.sends)} sends", "take fewer GPUs, channels or slices"
    if size.sends > MAX_SENDS[engine]:
        kept = _rounded(size.sends * BYTES_PER_WIDE / 1e9)
        larger = next((f", or engine {other}" for other, most in MAX_SENDS.items() if size.sends <= most and other != "auto"), "")
        raise ScheduleError(
            f"{what}, {kept} GB of memory if all were kept; engine {engine} runs at most {MAX_SENDS[engine]:,}: {right}{larger}"
        )
    if size.widest > MAX_WIDE:
        raise ScheduleError(f"{what}, {_rounded(size.widest)} of them at once; at most {MAX_WIDE:,} are: {right}")
    if size.pairs > MAX_PAIRS:
        raise ScheduleError(f"{what} between {_rounded(size.pairs)} pairs; at most {MAX_PAIRS:,} routes are looked for: {right}")
    if memory > MEMORY_SHARE * _memory():
        raise ScheduleError(f"{what}, {_rounded(memory / 1e9)} GB of memory; this machine has {_rounded(_memory() / 1e9)} GB: {right}")
    return size.sends


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
    topology is built. ``seed`` is that of faults, and of an algorithm that takes one. Without ``traced`` the steps of a large one are
    made when they are read. Raises RingscopeError."""
    asked = _asked_gpus(params)
    if find(collective(collective_name), algorithm_name).takes("seed"):
        options = {"seed": seed} | dict(options or {})
    built: dict[str, Any] = {"channels": channels, "slices": slices, "options": options}
    sends = check_sends(collective_name, algorithm_name, asked, **built, engine=engine, streamed=not traced)
    topology = machine_of(spec, params, faults, seed)
    if len(topology.gpus) != asked:
        sends = check_sends(collective_name, algorithm_name, len(topology.gpus), **built, engine=engine, streamed=not traced)
    streamed = sends > SMALL and engine != "event" and not traced
    return topology, make_launch(topology, collective_name, algorithm_name, nbytes, **built, dtype=dtype, streamed=streamed)


def machine_of(spec: str, params: Mapping[str, str], faults: Sequence[str] = (), seed: int = 0) -> Topology:
    """A topology by the name of its generator, or from a cluster file (what has a slash or is a folder can only be meant as one; NCCL's
    topology file if it ends in .xml), with ``faults`` (see ``topologies.faults``). Raises RingscopeError, above ``MAX_GPUS`` too."""
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
        return spec.endswith((".toml", ".xml", ".topo", ".txt")) or os.sep in spec or (spec not in names() and Path(spec).exists())
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
