"""A topology and a call in words -> what NCCL would choose, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from prediction.nccl.channels import comm_channels, nvls_channels
from prediction.nccl.enabled import Call
from prediction.nccl.graphs import Cpu, Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.settings import Settings, settings
from prediction.nccl.tuner import Tuning, tune
from prediction.nccl.version import tuned, version
from topologies.graph import Topology


@dataclass(frozen=True, slots=True)
class Choice:
    """What was asked on which machine, the search's graphs the choice rests on, and the tuner's ranking."""

    topology: str
    graphs: Graphs
    settings: Settings
    tuning: Tuning

    @property
    def comm_channels(self) -> int:
        """Channels the communicator has set up."""
        return comm_channels(self.graphs, self.settings)

    @property
    def nvls_channels(self) -> int | None:
        return nvls_channels(self.graphs, self.settings) if self.graphs.nvls else None


def choose(
    topology: Topology,
    collective: str,
    nbytes: int,
    release: str,
    environment: Mapping[str, str] | None = None,
    *,
    op: str = "sum",
    dtype: str = "float32",
    cpu: Cpu | None = None,
) -> Choice:
    """``release``: NCCL's version as text; ``environment``: variables by NCCL's names; NCCL_COLLNET_ENABLE=1 also says that the
    network reduces. Raises MeasurementError: an unknown word, or a machine that NCCL's search does not take."""
    tuned(collective)
    given = settings(environment or {}, version(release))
    graphs = graphs_of(topology, version(release), collnet=given.collnet == 1, cpu=cpu, p2p=given.p2p)
    return Choice(topology.name, graphs, given, tune(graphs, Call(collective, nbytes, op, dtype), given))
