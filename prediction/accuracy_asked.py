"""A data set in the words of its table -> the machine, its class, and what was asked of the library."""

from __future__ import annotations

import re
from typing import NamedTuple

from prediction.accuracy_tables import Dataset
from prediction.library.asked import Asked, LaunchMode
from prediction.nccl.graphs import CPUS
from prediction.nccl.version import FIRST, LAST
from topologies.described import described
from topologies.graph import Topology

DEFAULT_VERSION, DEFAULT_BLACKWELL = "2.21", "2.27"
"""NCCL where the table does not say; the second where the GPUs are Blackwell's, which older versions do not know."""
CLASSES = ("nvlink-node", "ib-roce", "efa-tcpxo-slingshot", "nvl72", "pcie", "amd")
_DTYPES = {"": "float32", "float": "float32", "half": "float16", "double": "float64"}
_FORCED = {"algo_forced": "NCCL_ALGO", "proto_forced": "NCCL_PROTO"}


class Setting(NamedTuple):
    """A machine, its class, what was asked, and what of it the table does not say or a model does not know."""

    topology: Topology
    kind: str
    asked: Asked
    notes: tuple[str, ...]


def setting_of(dataset: Dataset, version: str = "") -> Setting:
    """``version`` takes the place of an unknown one. Raises TopologyError and MeasurementError, with file and line."""
    topology = described(dataset.row, dataset.where)
    kinds = {link.kind for link in topology.links}
    release, notes = _version(dataset.text("nccl_version"), version or (DEFAULT_BLACKWELL if "nvlink5" in kinds else DEFAULT_VERSION))
    cpu = next((vendor for vendor in CPUS if vendor == dataset.text("host_cpu").lower()), None)
    dtype = dataset.text("dtype").lower()
    kind = class_of(topology)
    asked = Asked(
        library="rccl" if kind == "amd" else "nccl",
        version=release,
        launch=_launch(dataset.text("launch").lower()),
        environment=_environment(dataset),
        dtype=_DTYPES.get(dtype, dtype),
        cpu=cpu,
    )
    if dataset.text("launch").lower() in ("", "unknown"):
        notes = (*notes, f"launch unknown: {asked.launch} is taken")
    return Setting(topology, kind, asked, notes)


def class_of(topology: Topology) -> str:
    """One of ``CLASSES``: by what joins the GPUs, and between servers by the network."""
    kinds = {link.kind for link in topology.links}
    if any(kind.startswith("xgmi") and not kind.startswith("xgmi-cpu") for kind in kinds):
        return "amd"
    if "domains" in topology.groups:
        return "nvl72"
    if len(topology.groups.get("servers", ())) > 1:
        return "ib-roce" if any(kind.startswith(("ib-", "roce-")) for kind in kinds) else "efa-tcpxo-slingshot"
    return "nvlink-node" if any(kind.startswith("nvlink") and kind != "nvlink-c2c" for kind in kinds) else "pcie"


def _launch(text: str) -> LaunchMode:
    words = text.replace("-", " ")
    if "thread" in words:
        return "thread-per-gpu"
    return "one-process" if words.startswith(("one process", "single process")) and "per gpu" not in words else "process-per-gpu"


def _environment(dataset: Dataset) -> dict[str, str]:
    found = {name: dataset.text(column) for column, name in _FORCED.items() if dataset.text(column)}
    if dataset.text("nvls").lower() in ("off", "0", "no"):
        found["NCCL_NVLS_ENABLE"] = "0"
    if dataset.text("intra").lower() == "pcie-shm":
        found["NCCL_P2P_DISABLE"] = "1"
    if dataset.text("tuner_plugin"):
        found["NCCL_TUNER_PLUGIN"] = dataset.text("tuner_plugin")
    return found


def _version(text: str, default: str) -> tuple[str, tuple[str, ...]]:
    """The version to model: RCCL counts as NCCL does; outside of what is modelled the nearest."""
    match = re.search(r"(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?", text[:80])
    if not match:
        return default, (f"version unknown: {default} is taken",)
    number = (int(match[1]), int(match[2]))
    if FIRST <= number <= LAST:
        return match[0], ()
    near = FIRST if number < FIRST else LAST
    taken = f"{near[0]}.{near[1]}"
    return taken, (f"version {match[0]} is not modelled: {taken} is taken",)
