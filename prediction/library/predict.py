"""Rows of a prediction: at every size what the library chooses, simulated, with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from algorithms.collectives import ALL_REDUCE
from algorithms.collectives import collective as named
from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.library.run import period
from prediction.library.schedules import Loops, nvls, plain, ring, tree
from prediction.library.sites import Ways, sites_of
from prediction.library.wire import Use, Wire
from prediction.nccl.enabled import Call
from prediction.nccl.graphs import Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.settings import settings
from prediction.nccl.tuner import tune
from prediction.nccl.version import COLLECTIVES as TUNED
from prediction.nccl.version import Protocol, version
from sim.times import Progress
from topologies.graph import Topology

P2P_LL = 16 << 10
"""Up to so many bytes to a peer NCCL sends with LL."""
_P2P = {"all-to-all": "direct", "sendrecv": "shift", "gather": "flat", "scatter": "flat"}


@dataclass(frozen=True, slots=True)
class Row:
    """One size. ``low_s`` and ``high_s``: four of five measurements lie between; ``busbw_Bps``: None where it means nothing."""

    size_bytes: int
    time_s: float
    low_s: float
    high_s: float
    algbw_Bps: float
    busbw_Bps: float | None
    algorithm: str
    protocol: Protocol
    channels: int


def predict_library(
    topology: Topology,
    collective: str,
    sizes: Sequence[int],
    asked: Asked,
    constants: Constants | None = None,
    progress: Progress | None = None,
) -> tuple[Row, ...]:
    """What the calls of a library would take. Raises RingscopeError: an unknown word, a machine that the library's search does not take."""
    calls = Calls(topology, collective, asked, constants or Constants.of(topology, asked))
    rows = []
    for i, nbytes in enumerate(sizes):
        rows.append(calls.row(nbytes))
        if progress:
            progress(i + 1, len(sizes))
    return tuple(rows)


class Calls:
    """Calls of one collective on one machine."""

    def __init__(self, topology: Topology, collective: str, asked: Asked, constants: Constants) -> None:
        self.collective, self.asked, self.constants = named(collective), asked, constants
        self.settings = settings(asked.environment, version(asked.version))
        self.topology, self.sites, self.wire = topology, sites_of(topology), Wire(topology, constants)
        self.graphs: Graphs | None = None
        if collective in TUNED:
            self.graphs = graphs_of(topology, version(asked.version), collnet=self.settings.collnet == 1, cpu=asked.cpu)

    def row(self, nbytes: int) -> Row:
        algorithm, protocol, channels = self._choice(nbytes)
        ways = Ways(self.topology)
        loops = self._loops(algorithm, protocol, channels, nbytes, ways)
        n, constants = len(self.topology.gpus), self.constants
        use = Use(algorithm, protocol, channels, loops.message, self._sending(algorithm, n), self._meet_in_memory(n))
        simple = constants.slice / 8 if algorithm.startswith("nvls") else constants.slice
        overhead = {"ll": 0.0, "ll128": 0.3e-6, "simple": simple}[protocol]
        took = period(self.wire.seen(use), self.collective, loops, nbytes, overhead, ways) + constants.floor + constants.channel * channels
        time = constants.host + took if self.graphs is None else max(constants.host, took)
        factor = self.collective.busbw_factor(n)
        busbw = None if factor is None else nbytes / time * factor
        return Row(nbytes, time, time / 1.3, time * 1.3, nbytes / time, busbw, algorithm, protocol, channels)

    def _choice(self, nbytes: int) -> tuple[str, Protocol, int]:
        if self.graphs is None:
            protocol: Protocol = "ll" if nbytes / len(self.topology.gpus) <= P2P_LL else "simple"
            return _P2P[self.collective.name], protocol, 1
        choice = tune(self.graphs, Call(self.collective.name, nbytes, self.asked.op, self.asked.dtype), self.settings).choice
        return choice.algorithm, choice.protocol, choice.channels

    def _loops(self, algorithm: str, protocol: Protocol, channels: int, nbytes: int, ways: Ways) -> Loops:
        graph = self.graphs.of(algorithm) if self.graphs and algorithm in ("ring", "tree", "nvls", "nvls-tree") else None  # type: ignore[arg-type]
        if graph is None:
            return plain(algorithm, self.collective, nbytes, self.sites)
        if algorithm == "ring":
            return ring(self.collective, graph, channels, nbytes, protocol, self.sites, ways)
        if algorithm == "tree":
            return tree(graph, channels, nbytes, protocol, self.sites, ways)
        return nvls(algorithm, self.collective, graph.channels, channels, nbytes, self.sites)

    def _sending(self, algorithm: str, n: int) -> float:
        """A ring's thread block also copies what has arrived to where the user wants it, and an all-gather what it starts with."""
        if algorithm != "ring" or self.collective.rooted:
            return 1.0
        steps, copies = (2 * (n - 1), 1) if self.collective is ALL_REDUCE else (n - 1, 1 if self.collective.reduces else 2)
        return steps / (steps + copies * self.constants.local)

    def _meet_in_memory(self, n: int) -> bool:
        """NCCL lets GPUs write to each other over a CPU only if there are two of them."""
        return n > 2 and self.graphs is not None and self.graphs.ring.type_intra in ("PHB", "SYS")
