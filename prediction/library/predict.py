"""Rows of a prediction: at every size what the library chooses, simulated, with an interval."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from algorithms.collectives import ALL_REDUCE
from algorithms.collectives import collective as named
from prediction.library.asked import Asked
from prediction.library.closed import closed_form, message
from prediction.library.constants import US, Constants
from prediction.library.interval import interval, reach
from prediction.library.run import period
from prediction.library.schedules import Buffers, Loops, TooManyError, nvls, plain, ring, tree
from prediction.library.sites import Ways, sites_of
from prediction.library.wire import Use, Wire
from prediction.nccl.enabled import Call
from prediction.nccl.graphs import Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.settings import settings
from prediction.nccl.tuner import tune
from prediction.nccl.version import COLLECTIVES as TUNED
from prediction.nccl.version import Algorithm, Protocol, version
from sim.times import Progress
from topologies.errors import MeasurementError, nearest, quoted
from topologies.graph import Topology

MOST_BYTES = 1 << 50
"""Of a call: with all of its ranks together still a number that 64 bits hold."""
P2P_LL = 16 << 10
"""Up to so many bytes to a peer NCCL sends with LL."""
LL128_TURN = 0.3 * US
"""What LL128 spends on a slice beside its bytes [s]: it has no fence."""
_P2P = {"all-to-all": "direct", "sendrecv": "shift", "gather": "flat", "scatter": "flat"}
_NEAR, _DIRECT, _DIRECT_CHANNELS = 2.5, 16 << 20, 32
"""Rows that a tuner calls so much slower than its choice are not tried; direct kernels are for small calls, on as many blocks."""
_UNSEEN = 1.4
"""The closed form knows no fill and no link that some share: it is up to so much faster than the simulation."""
ABLATIONS = ("simulation", "choice", "launch", "fabric", "generation", "message", "local", "period")
"""What can be left out of a prediction to see what it is worth: the simulation (NCCL's own closed form stands in), the library's choice
(always ring, Simple), who launches, what tells a fabric or a generation of GPUs from another, the cost of a message to the network, copies
inside the GPU, and that rooted calls overlap."""


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
    simulated: bool = True
    """False: by the closed form, for a call of more sends than are simulated."""


def predict_library(
    topology: Topology,
    collective: str,
    sizes: Sequence[int],
    asked: Asked,
    constants: Constants | None = None,
    progress: Progress | None = None,
    *,
    ablate: frozenset[str] = frozenset(),
) -> tuple[Row, ...]:
    """What the calls of a library would take, at every size of ``sizes`` [B]. Raises RingscopeError: an unknown word, a size below 1 byte,
    a machine that the library's search does not take."""
    calls = Calls(topology, collective, asked, constants, ablate)
    rows = []
    for i, nbytes in enumerate(sizes):
        rows.append(calls.row(nbytes))
        if progress:
            progress(i + 1, len(sizes))
    return tuple(rows)


@dataclass(frozen=True, slots=True)
class Choice:
    """What runs; ``modelled_s``: its time by the library's own model, where it has one."""

    algorithm: str
    protocol: Protocol
    channels: int
    modelled_s: float | None = None


class Calls:
    """Calls of one collective on one machine."""

    def __init__(
        self, topology: Topology, collective: str, asked: Asked, constants: Constants | None = None, ablate: frozenset[str] = frozenset()
    ) -> None:
        for word in ablate:
            if word not in ABLATIONS:
                raise MeasurementError(f"ablate: {quoted(word)} is not a part that can be left out{nearest(word, ABLATIONS)}")
        if "launch" in ablate:
            asked = replace(asked, launch="process-per-gpu")
        if "choice" in ablate:
            asked = replace(asked, environment={**asked.environment, "NCCL_ALGO": "ring", "NCCL_PROTO": "simple"})
        self.collective, self.asked, self.ablate = named(collective), asked, ablate
        if collective not in TUNED and collective not in _P2P:
            raise MeasurementError(f"{asked.library}: {collective} is none of its collectives; it has {', '.join([*TUNED, *_P2P])}")
        usual = Constants.of(topology, asked)
        constants = constants or usual
        if "launch" in ablate:
            constants = constants.replaced(floor=usual.floor, host=usual.host)
        self.constants = _without(constants, ablate)
        self.settings = settings(asked.environment, version(asked.version))
        self.buffers = Buffers.of(self.settings)
        self.topology, self.sites, self.wire = topology, sites_of(topology), Wire(topology, self.constants)
        self.reach, self.graphs = reach(topology, len(self.sites)), self._graphs()

    def row(self, nbytes: int) -> Row:
        """Raises MeasurementError for a size below 1 byte or above 1 PiB."""
        if not 1 <= nbytes <= MOST_BYTES:
            right = "1 or more" if nbytes < 1 else f"at most {MOST_BYTES} (1 PiB)"
            raise MeasurementError(f"{self.asked.library}: size {nbytes} B; write {right}")
        choices = list(self._choices(nbytes))
        if not choices:
            raise MeasurementError(
                f"{self.asked.library}: nothing is left for {self.collective.name}; NCCL_ALGO or NCCL_PROTO leave out all"
            )
        times = [self._time(choice, nbytes) for choice in choices]
        time, simulated = min(times, key=lambda found: found[0])
        choice = choices[times.index((time, simulated))]
        factor = self.collective.busbw_factor(len(self.topology.gpus))
        busbw = None if factor is None else nbytes / time * factor
        low, high = interval(nbytes, time, self.reach)
        high *= 1.0 if simulated else _UNSEEN
        return Row(nbytes, time, low, high, nbytes / time, busbw, choice.algorithm, choice.protocol, choice.channels, simulated)

    def _graphs(self) -> Graphs | None:
        """What the library's search finds; None for what is made of sends and receives."""
        if self.collective.name not in TUNED:
            return None
        given = self.settings
        return graphs_of(self.topology, version(self.asked.version), collnet=given.collnet == 1, cpu=self.asked.cpu, p2p=given.p2p)

    def _choices(self, nbytes: int) -> Iterator[Choice]:
        """NCCL's choice; RCCL, whose tables are not known for every machine, takes the fastest, on one node also direct kernels."""
        n, name = len(self.topology.gpus), self.collective.name
        if self.graphs is None:
            peer = nbytes if name == "sendrecv" else nbytes / n
            yield Choice(_P2P[name], "ll" if peer <= P2P_LL else "simple", 1)
            return
        tuning = tune(self.graphs, Call(name, nbytes, self.asked.op, self.asked.dtype), self.settings)
        if self.asked.library == "nccl":
            yield Choice(tuning.choice.algorithm, tuning.choice.protocol, tuning.choice.channels, tuning.choice.time_s)
            return
        for row in tuning.ranking:
            near = row.time_s < _NEAR * tuning.choice.time_s
            if near and row.algorithm in ("ring", "tree") and row.protocol != "ll128":
                yield Choice(row.algorithm, row.protocol, row.channels, row.time_s)
        if self.collective is ALL_REDUCE and len(self.sites) == 1 and nbytes <= _DIRECT:
            yield Choice("two-shot", "ll", _DIRECT_CHANNELS)

    def _time(self, choice: Choice, nbytes: int) -> tuple[float, bool]:
        """From one call to the next [s], and whether it was simulated."""
        constants = self.constants
        if "simulation" in self.ablate and choice.modelled_s is not None:
            return choice.modelled_s, False
        heads = len(self.sites[0].ranks) if choice.algorithm.startswith("nvls") else 1  # its slices are as many messages, a head each
        overhead = {"ll": 0.0, "ll128": LL128_TURN, "simple": constants.slice / heads}[choice.protocol]
        try:
            took, simulated = self._simulated(choice, nbytes, overhead), True
        except TooManyError:
            use = self._use(
                choice, message(choice.algorithm, choice.protocol, self.collective, nbytes, choice.channels, self.sites, self.buffers)
            )
            took, simulated = closed_form(use, self.collective, nbytes, self.wire.seen(use), self.sites, overhead, self.buffers), False
        took += constants.floor + constants.channel * choice.channels
        return constants.host + took if self.graphs is None else max(constants.host, took), simulated

    def _simulated(self, choice: Choice, nbytes: int, overhead: float) -> float:
        """Raises TooManyError."""
        ways = Ways(self.topology)
        loops = self._loops(choice, nbytes, ways)
        machine = self.wire.seen(self._use(choice, loops.message))
        rooted = self.collective.rooted and "period" not in self.ablate
        return period(machine, loops, nbytes, overhead, ways, overlapping=rooted)

    def _use(self, choice: Choice, message: float) -> Use:
        sending, in_memory = self._sending(choice.algorithm), self._meet_in_memory()
        return Use(choice.algorithm, choice.protocol, choice.channels, math.ceil(message), sending, in_memory)

    def _loops(self, choice: Choice, nbytes: int, ways: Ways) -> Loops:
        names: dict[str, Algorithm] = {"ring": "ring", "tree": "tree", "nvls": "nvls", "nvls-tree": "nvls-tree"}
        graph = self.graphs.of(names[choice.algorithm]) if self.graphs and choice.algorithm in names else None
        if graph is None:
            return plain(choice.algorithm, self.collective, nbytes, self.sites)
        if choice.algorithm == "ring":
            return ring(self.collective, graph, choice.channels, nbytes, choice.protocol, self.sites, ways, self.buffers)
        if choice.algorithm == "tree":
            return tree(graph, choice.channels, nbytes, choice.protocol, self.sites, ways, self.buffers)
        return nvls(choice.algorithm, self.collective, graph.channels, choice.channels, nbytes, self.sites, self.buffers)

    def _sending(self, algorithm: str) -> float:
        """A thread block also copies: in a ring what has arrived, to where the user wants it, in an all-gather what it starts with, in an
        all-to-all what stays."""
        n, local = len(self.topology.gpus), self.constants.local
        if algorithm == "direct":
            return (n - 1) / (n - 1 + local)
        if algorithm != "ring" or self.collective.rooted:
            return 1.0
        steps, copies = (2 * (n - 1), 1) if self.collective is ALL_REDUCE else (n - 1, 1 if self.collective.reduces else 2)
        return steps / (steps + copies * local)

    def _meet_in_memory(self) -> bool:
        """NCCL lets GPUs write to each other over a CPU only if there are two of them."""
        far = self.graphs is not None and self.graphs.ring.type_intra in ("PHB", "SYS") and len(self.topology.gpus) > 2
        return far or self.settings.p2p == "LOC"


def _without(constants: Constants, ablate: frozenset[str]) -> Constants:
    """The constants with one number for all fabrics, or for all generations (about an H100's on InfiniBand), or none for a part."""
    if "fabric" in ablate:
        constants = constants.replaced(net_hop=3.2 * US, nic=0.97)
    if "generation" in ablate:
        constants = constants.replaced(nvlink_hop=0.62 * US, nvls_hop=10 * US, nvlink=0.8, nvls=0.65, channel=0.0)
    if "message" in ablate:
        constants = constants.replaced(message=1e-12)
    return constants.replaced(local=0.0) if "local" in ablate else constants
