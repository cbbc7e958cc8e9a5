"""What a calibration of a machine says of its constants (``Topology.constants``), checked before it is believed."""

from __future__ import annotations

from collections.abc import Collection

from topologies.errors import TopologyError, nearest
from topologies.graph import Topology

_RATES = ("bridge", "shared_memory")
_PARTS = ("nvlink", "nvls", "nic", "local")
_MAY_BE_0 = ("floor", "host", "channel", "slice")
_RULES = {
    "rate": (1e6, 1e15, 'a bandwidth from 1MB/s up; write it as "21.7GB/s"'),
    "part": (0.01, 1.0, "a part of a rate from 0.01 to 1; write it as 0.92"),
    "time": (1e-9, 0.01, 'a time of 1 ns to 10 ms; write it as "7.2us"'),
}


def measured(topology: Topology, names: Collection[str]) -> dict[str, float]:
    """Constants of the topology. Raises TopologyError for one that is not among ``names``, or cannot be what was meant."""
    for name, value in topology.constants.items():
        where = f"{topology.name}, constants: "
        if name not in names:
            raise TopologyError(f'{where}"{name}" is not a constant of a prediction{nearest(name, names)}')
        least, most, rule = _RULES["rate" if name in _RATES else "part" if name in _PARTS else "time"]
        if not least <= value <= most and not (value == 0 and name in _MAY_BE_0):
            raise TopologyError(f"{where}{name} = {value:g} is not {rule}")
    return dict(topology.constants)
