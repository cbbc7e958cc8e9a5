"""What a log says of the machine and the call: GPU model, servers, who launches, version -> the usual machine of that description."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import islice

from prediction.library.asked import LaunchMode
from prediction.log_file import MAX_LINE, Log
from prediction.nccl.version import FIRST, LAST
from prediction.tables import Table
from topologies.gpus import GPUS
from topologies.graph import Topology

_SQUASHED = {name.replace("-", ""): name for name in GPUS}
_VERSION = (
    re.compile(r"nccl-library=(?P<number>\d{5})\b"),
    re.compile(r"\bNCCL version (?P<text>\d{1,2}\.\d{1,2}(\.\d{1,2})?)"),
    re.compile(r"\bnccl(?:_version)?[-:= \"]{1,3}v?(?P<text>2\.\d{1,2}(\.\d{1,2})?)", re.I),
)
_VARIABLE = re.compile(r"(?:^|\s)(?:-x\s+|export\s+)?(NCCL_(?:ALGO|PROTO|NVLS_ENABLE|MAX_NCHANNELS|MAX_CTAS))=([\w^,;:]{1,60})")
_MOST_LINES = 200_000
_CONSUMER = ("rtx3090", "rtx4090", "rtx5090")


@dataclass(frozen=True, slots=True)
class Told:
    """``version`` and ``variables`` of the library as the text has them."""

    version: str | None = None
    variables: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Guess:
    """Arguments of topology ``custom``; ``open``: what the log does not say and is usual here (empty: nothing)."""

    params: Mapping[str, str]
    open: str


def told(log: Log) -> Told:
    """From lines around the tables."""
    version: str | None = None
    variables: dict[str, str] = {}
    for line in islice(log.lines(), _MOST_LINES):
        if len(line) > MAX_LINE or ("nccl" not in line and "NCCL" not in line):
            continue
        for pattern in _VERSION if version is None else ():
            if found := pattern.search(line):
                parts = found.groupdict()
                number = int(parts["number"]) if parts.get("number") else 0
                version = f"{number // 10000}.{number // 100 % 100}.{number % 100}" if number else parts.get("text")
                break
        for name, value in _VARIABLE.findall(line):
            variables.setdefault(name, value)
    return Told(version, variables)


def version_of(text: str | None, blackwell: bool) -> tuple[str, str]:
    """The version to model, and a note where it is not the log's."""
    usual = "2.27" if blackwell else "2.21"
    found = re.fullmatch(r"(\d{1,2})\.(\d{1,2})(?:\.\d{1,2})?", text or "")
    if not found:
        return usual, f"the log names no version of the library: {usual} is taken"
    number = (int(found[1]), int(found[2]))
    if FIRST <= number <= LAST:
        return found[0], ""
    near = FIRST if number < FIRST else LAST
    return f"{near[0]}.{near[1]}", f"version {found[0]} is not modelled: {near[0]}.{near[1]} is taken"


def model_of(gpu: str | None) -> str | None:
    """``NVIDIA A100-SXM4-80GB`` -> ``a100``; None for a name not known, or several."""
    text = re.sub(r"nvidia|amd|instinct|tesla|geforce|graphics", "", (gpu or "").lower())
    squashed = re.sub(r"[^a-z0-9+]", "", text)
    fits = [name for name in _SQUASHED if squashed.startswith(name)]
    return _SQUASHED[max(fits, key=len)] if fits and "+" not in squashed else None


def other_gpus(table: Table, machine: Topology) -> tuple[str, ...]:
    """What to say where the header names GPUs whose links the machine has none of."""
    model, kinds = model_of(table.gpu), {link.kind for link in machine.links}
    if model is None or GPUS[model].link in kinds or not GPUS[model].link or not any(kind.startswith(("nvlink", "xgmi")) for kind in kinds):
        return ()
    return (f"the log is of {table.gpu}, whose links are {GPUS[model].link}; {machine.name} has none of them: another machine?",)


def launch_of(table: Table) -> LaunchMode | None:
    """Who launches the kernels, where the header says it."""
    if table.threads is None or table.gpus_per_thread is None:
        return None
    if table.threads > 1:
        return "thread-per-gpu"
    return "one-process" if table.gpus_per_thread > 1 else "process-per-gpu"


def guess(table: Table) -> Guess | str:
    """The usual machine of what a header says, or in words what is missing."""
    model = model_of(table.gpu)
    if model is None:
        known = "names no GPU" if table.gpu is None else f"names GPUs {table.gpu}, which no topology has"
        return f"the log {known}; give --topology, as --topology custom --param gpu=h100 --param gpus=8"
    if table.nranks is None or table.nranks < 2:
        return "the log does not say how many ranks ran; give --topology with nodes and gpus"
    servers = table.nservers or -(-table.nranks // 8)
    if table.nranks % servers:
        return f"{table.nranks} ranks on {servers} servers are no equal servers; give --topology with a cluster file"
    params = {"gpu": model, "gpus": str(table.nranks // servers), "nodes": str(servers)}
    missing = []
    if table.nservers is None:
        missing.append("how many servers there are")
    if servers > 1 and not GPUS[model].per_grace:
        missing.append("which NICs and network join them (nics=, nic=, fabric=)")
    if not GPUS[model].switched and not GPUS[model].amd and model not in (*_CONSUMER, "v100") and table.nranks > 1:
        missing.append("what joins its GPUs (intra=, cpu=)")
    return Guess(params, " and ".join(missing))
