"""One row of a table of machines, as people write it -> the cluster it describes.

Columns: gpu, gpus_per_node, nodes, nvl_domain, intra, intra_links_per_gpu, nics_per_node, nic_gbps (Gb/s of a NIC), fabric,
rail_optimized (yes, no, unknown), host_cpu. Empty is unknown: what is usual for the GPU; other columns are not looked at.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from topologies.custom import custom
from topologies.custom_parts import FABRICS
from topologies.custom_words import CPUS, INTRA, usual
from topologies.errors import TopologyError
from topologies.gpus import GPUS
from topologies.graph import Topology
from topologies.registry import read_word
from topologies.units import parse_bandwidth, parse_count

_MAKER = re.compile(r"^((nvidia|amd|instinct|tesla|geforce)-)+|(-(sxm\d?|oam|hbm\d\w?|\d+gi?b))+$")
"""Of a GPU's name, beside the model."""
_COLUMN = {
    "links": "intra_links_per_gpu", "nics": "nics_per_node", "nic": "nic_gbps", "gpus": "gpus_per_node", "domain": "nvl_domain",
    "rails": "rail_optimized", "cpu": "host_cpu",
}  # fmt: skip
_SAME = {"infiniband": "ib", "ethernet": "roce", "tcpx": "tcpxo", "slingshot-11": "slingshot", "true": "yes", "false": "no"}
_MOST_NODES = 100_000


def described(row: Mapping[str, str], where: str = "") -> Topology:
    """The machine of a row. Raises TopologyError: ``where``, the column, the value and the nearest right word."""

    def word(column: str, choices: tuple[str, ...]) -> str | None:
        text = _text(row, column).lower().replace(" ", "-").replace("_", "-")
        if text in ("", "unknown"):
            return None
        text = _SAME.get(text, text)
        near = _MAKER.sub("", text).replace("-", "")
        return read_word(next((choice for choice in choices if choice.replace("-", "") == near), text), choices, _at(where, column))

    def count(column: str, most: int) -> int | None:
        text = _text(row, column)
        return parse_count(text.removesuffix(".0"), _at(where, column), most) if text not in ("", "0", "unknown") else None

    gpu = word("gpu", tuple(GPUS))
    if gpu is None:
        raise TopologyError(f"{_at(where, 'gpu')}: empty; write the GPU's model, as h100")
    nic = _text(row, "nic_gbps")
    intra, gpus, nodes = word("intra", INTRA), count("gpus_per_node", 64) or 8, count("nodes", _MOST_NODES) or 1
    rails = word("rail_optimized", ("yes", "no")) == "yes"
    try:
        return custom(
            nodes, gpus, gpu, intra, count("intra_links_per_gpu", 64), count("nics_per_node", 256),
            parse_bandwidth(f"{nic}Gb/s", _at(where, "nic_gbps")) if nic not in ("", "0", "unknown") else None,
            word("fabric", (*FABRICS, "none")), rails, word("host_cpu", CPUS),
            count("nvl_domain", 10**6) if (intra or usual(GPUS[gpu], gpus)) == "nvl72" else None,
        )  # fmt: skip
    except TopologyError as error:
        text = re.sub(rf"\b({'|'.join(_COLUMN)}) = ", lambda found: f"{_COLUMN[found[1]]} = ", str(error))
        raise TopologyError(text if not where or text.startswith(where) else f"{where}: {text}") from None


def _text(row: Mapping[str, str], column: str) -> str:
    return (row.get(column) or "").strip()


def _at(where: str, column: str) -> str:
    return f"{where}, {column}" if where else column
