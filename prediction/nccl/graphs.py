"""What NCCL's topology search hands to its tuner: one graph for each family of algorithms, and facts about the communicator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from prediction.nccl.version import Algorithm, Version
from topologies.errors import MeasurementError, nearest, quoted

Pattern = Literal["balanced-tree", "split-tree", "tree", "ring", "nvls", "collnet-direct"]
PATTERNS: tuple[Pattern, ...] = get_args(Pattern)
"""NCCL's patterns 1 to 6, in order."""
Path = Literal["LOC", "NVL", "NVB", "C2C", "PIX", "PXB", "P2C", "PXN", "PHB", "SYS", "NET", "DIS"]
PATHS: tuple[Path, ...] = get_args(Path)
"""Path types from near to far, in the order of 2.30; older versions have the same order without C2C and P2C."""
Cpu = Literal["intel", "amd", "mixed", "arm", "power", "other"]
CPUS: tuple[Cpu, ...] = get_args(Cpu)


@dataclass(frozen=True, slots=True)
class Graph:
    """One search result: ``channels`` of ``bw_intra`` inside a node and ``bw_inter`` between nodes [B/s, one direction], the
    farthest path of either, and ``latency_inter`` [s] of the NICs. ``same_channels``: every channel has the same order of GPUs.

    ``orders``: for each channel the GPUs of a node by local index, from where it enters to where it leaves; a tree's from the NIC on.
    ``nics``: by which NIC of the node it enters and by which it leaves; none in one node. Empty: not known (a graph from elsewhere).
    """

    channels: int
    bw_intra: float
    bw_inter: float
    pattern: Pattern
    type_intra: Path = "NVL"
    type_inter: Path = "PIX"
    same_channels: bool = True
    latency_inter: float = 0.0
    cross_nic: int = 0
    orders: tuple[tuple[int, ...], ...] = ()
    nics: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        if self.channels < 1 or not self.bw_intra > 0 or not self.bw_inter > 0 or self.latency_inter < 0:
            raise MeasurementError(f"NCCL graph {self.pattern}: channels and bandwidths are above 0, a latency not below; got {self}")
        for rows in (self.orders, self.nics):
            if rows and len(rows) != self.channels:
                raise MeasurementError(f"NCCL graph {self.pattern}: {len(rows)} rows for {self.channels} channels; write one a channel")
        for path in (self.type_intra, self.type_inter):
            if path not in PATHS:
                raise MeasurementError(f"NCCL graph {self.pattern}: {quoted(path)} is not a path type{nearest(str(path), PATHS)}")


@dataclass(frozen=True, slots=True)
class Graphs:
    """The tuner's input. A node is an NVLink domain or a server; ``nvls``, ``collnet_*`` are None where the search finds none.

    ``sm_min`` and ``sm_max``: the lowest and the highest compute capability of the ranks (80: A100, 90: H100, 100: B200). ``cpu``:
    the vendor of the hosts. ``collnet``: the network plugin reduces in switches (SHARP); ``collnet_gather``: it also gathers and
    scatters. ``host_net``: the host drives the NIC. ``cuda_11_8``: NCCL was built with CUDA 11.8.
    """

    version: Version
    ranks: int
    nodes: int
    ring: Graph
    tree: Graph
    nvls: Graph | None = None
    collnet_chain: Graph | None = None
    collnet_direct: Graph | None = None
    sm_min: int = 80
    sm_max: int = 80
    cpu: Cpu = "intel"
    nvswitch: bool = True
    collnet: bool = False
    collnet_gather: bool = False
    host_net: bool = True
    cuda_11_8: bool = False
    max_local_ranks: int = 0
    """The most ranks of any node; 0: as many on each."""

    def __post_init__(self) -> None:
        if self.ranks < 2 or not 1 <= self.nodes <= self.ranks:
            raise MeasurementError(
                f"NCCL graphs: ranks = {self.ranks}, nodes = {self.nodes}; write 2 ranks or more on at most so many nodes"
            )
        if not 0 < self.sm_min <= self.sm_max:
            raise MeasurementError(f"NCCL graphs: compute capability {self.sm_min} to {self.sm_max}; write the lowest first, as 80 and 90")
        if self.cpu not in CPUS:
            raise MeasurementError(f"NCCL graphs: {quoted(self.cpu)} is not a CPU vendor{nearest(str(self.cpu), CPUS)}")

    @property
    def local_ranks(self) -> float:
        """Ranks a node, on average."""
        return self.ranks / self.nodes

    @property
    def most_local_ranks(self) -> int:
        return self.max_local_ranks or -(-self.ranks // self.nodes)

    def of(self, algorithm: Algorithm) -> Graph | None:
        """The graph an algorithm runs on; 2.17 tunes NVLS with the ring's, until 2.22 both CollNet algorithms share the chain's."""
        if algorithm in ("tree", "pat"):
            return self.tree
        if algorithm in ("nvls", "nvls-tree"):
            return self.ring if self.nvls and self.version < (2, 18) else self.nvls
        if algorithm == "ring":
            return self.ring
        own = self.collnet_direct if algorithm == "collnet-direct" and self.version >= (2, 23) else None
        return own or self.collnet_chain
