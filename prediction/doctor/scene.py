"""One measured run as a question to the simulator: the same call on the same machine, or on one with something wrong."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.library.predict import Calls, Row
from prediction.library.wire import Wire
from topologies.graph import Topology

Array = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Scene:
    """``sizes`` [B], rising; ``machine``: what the data meets, where that is not what the library takes the machine for."""

    topology: Topology
    collective: str
    asked: Asked
    constants: Constants
    sizes: tuple[int, ...]
    machine: Topology | None = None

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """What the library's calls take. Raises RingscopeError."""
        calls = Calls(self.topology, self.collective, self.asked, self.constants)
        if self.machine is not None:
            calls.wire = Wire(self.machine, self.constants)
        return tuple(calls.row(size) for size in self.sizes)

    @cached_property
    def times(self) -> Array:
        """Seconds, by size."""
        return np.array([row.time_s for row in self.rows])

    @cached_property
    def servers(self) -> int:
        """NCCL's nodes: servers, or NVLink domains."""
        return len(self.topology.groups.get("domains") or self.topology.groups.get("servers") or ((),))

    def told(self, topology: Topology) -> Scene:
        """Another machine, as the library sees it too, with what is known of such machines."""
        return replace(self, topology=topology, constants=Constants.of(topology, self.asked), machine=None)

    def known(self, topology: Topology) -> Scene:
        """Another machine, as the library sees it too, with the constants of this one."""
        return replace(self, topology=topology, machine=None)

    def hidden(self, machine: Topology) -> Scene:
        """The library takes it for the machine it is not."""
        return replace(self, machine=machine)

    def tuned(self, environment: Mapping[str, str]) -> Scene:
        """With variables of the library."""
        return replace(self, asked=replace(self.asked, environment={**self.asked.environment, **environment}))

    def priced(self, **constants: float) -> Scene:
        """With other constants."""
        return replace(self, constants=self.constants.replaced(**constants))
