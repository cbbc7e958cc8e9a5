"""NCCL's topology search in closed form, for machines whose GPUs sit behind NVSwitches: trial speeds from fast to slow, as many
channels as the links carry, the largest product kept. Irregular machines need the search itself.

Every rule is of NCCL's ``src/graph/search.cc``; the counts are equal to what the library's own search finds on such machines.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prediction.nccl.constants import GB
from prediction.nccl.graphs import Cpu, Graph, Graphs, Path, Pattern
from prediction.nccl.orders import ring_orders, switch_orders, tree_orders
from prediction.nccl.version import Version
from topologies.errors import MeasurementError

_Lists = tuple[tuple[int, tuple[float, ...]], ...]
_INTRA: _Lists = (  # trial speeds inside one node [GB/s] by lowest compute capability
    (100, (90, 80, 70, 60, 50, 45, 40, 30, 24, 20, 19, 18)),
    (90, (60, 50, 40, 30, 24, 20, 15, 12, 11, 6, 3)),
    (0, (40, 30, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3)),
)
_INTER: _Lists = (
    (100, (96, 86, 80, 48, 45.1, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12)),
    (90, (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 6, 3, 2.4, 1.2, 0.24, 0.12)),
    (0, (48, 30, 28, 24, 20, 18, 15, 12, 10, 9, 7, 6, 5, 4, 3, 2.4, 1.2, 0.24, 0.12)),
)
_NEWER_INTRA: dict[float, tuple[int, int]] = {18: (2, 27), 45: (2, 29)}
_NEWER_INTER: dict[float, tuple[int, int]] = {96: (2, 27), 45.1: (2, 27), 80: (2, 29), 86: (2, 30)}
"""Speeds that Blackwell's lists had not from the start."""
SAME_TRIES = 1 << 8
"""For a search with one order for all channels; each takes one for every GPU and one more."""
WORTH = 0.49
"""A next speed below this part of the best is not tried."""
_NVLS_HEADS, _DIRECT_HEADS, _WIDE_DOMAIN = 32, 8, 32


def trial_speeds(nodes: int, sm: int, version: Version) -> list[float]:
    """Speeds of a channel that are tried [B/s], fast to slow."""
    lists, newer = (_INTRA, _NEWER_INTRA) if nodes == 1 else (_INTER, _NEWER_INTER)
    values = next(values for least, values in lists if sm >= least)
    if sm >= 100:
        values = tuple(value for value in values if version >= newer.get(value, ()))
    return [value * GB for value in values]


def worth_doubling(speed: float, channels: int, sm: int) -> bool:
    """Whether fast channels are split in two of half the speed [B/s]."""
    return speed >= 25 * GB and not (sm > 80 and speed < 50 * GB and channels > 4)


@dataclass(frozen=True, slots=True)
class Machine:
    """One NVLink domain: ``nvlink`` [B/s] of a GPU to its switches, ``nics`` of ``nic`` [B/s] as NCCL counts them, PCIe included.

    ``shared``: each NIC has two GPUs on its PCIe switch, so a ring may leave by another GPU than it came; ``grace``: GPUs reach NICs
    over the C2C links of their CPU, two of them the same. ``multicast``: the switches do NVLink SHARP."""

    gpus: int
    nvlink: float
    nics: int
    nic: float
    sm: int
    cpu: Cpu
    shared: bool = False
    grace: bool = False
    multicast: bool = False


def search(machine: Machine, nodes: int, version: Version, *, collnet: bool = False) -> Graphs:
    """What the search finds on ``nodes`` of a machine. Raises MeasurementError for a node with one GPU, where no NVLink is used."""
    if machine.gpus < 2 or nodes < 1 or (nodes > 1 and machine.nics < 1):
        raise MeasurementError(
            f"NCCL's search in closed form: nodes = {nodes}, GPUs a node = {machine.gpus}, NICs = {machine.nics}; "
            "write 2 GPUs or more and, for several nodes, a NIC"
        )
    look = _Search(machine, nodes, version)
    ring = look.ring()
    sharp = collnet and nodes > 1 and machine.gpus <= _DIRECT_HEADS
    return Graphs(
        version, machine.gpus * nodes, nodes, ring, look.tree(ring),
        nvls=look.nvls() if machine.multicast and machine.sm >= 90 and version >= (2, 17) else None,
        collnet_chain=look.chain(ring) if sharp else None,
        collnet_direct=look.direct() if sharp and version >= (2, 23) else None,
        sm_min=machine.sm, sm_max=machine.sm, cpu=machine.cpu, collnet=collnet,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Search:
    machine: Machine
    nodes: int
    version: Version

    @property
    def speeds(self) -> list[float]:
        return trial_speeds(self.nodes, self.machine.sm, self.version)

    @property
    def most(self) -> float:
        """The fastest a single channel could be."""
        return self.machine.nvlink if self.nodes == 1 else self.machine.nic

    def at_nics(self, speed: float) -> int:
        """Channels that the NICs of a node carry."""
        return self.machine.nics * int(self.machine.nic / speed)

    def links(self, speed: float) -> int:
        """Channels that a GPU's NVLinks carry."""
        return int(self.machine.nvlink / speed)

    def near(self) -> Path:
        return "P2C" if self.machine.grace and self.nodes > 1 else "PIX"

    def ring(self) -> Graph:
        most = 32 if self.version >= (2, 25) else 16
        channels, speed = self.best(lambda speed: min(self.ring_channels(speed)[0], most), most)
        cross = 0 if self.nodes == 1 else self.ring_channels(speed)[1]
        straight = self.nodes == 1 or self.machine.shared or self.machine.grace or cross > 0
        channels, speed = self.doubled(channels, speed, most)
        faster = [s for s in self.speeds if speed < s <= self.most]
        while faster and self.ring_channels(faster[-1])[0] >= channels:
            speed = faster.pop()
        same = self.nodes == 1 and self.machine.gpus < _WIDE_DOMAIN
        gpus, nics, beside = self.machine.gpus, self.machine.nics, self.machine.shared or self.machine.grace
        orders, ways = (
            (switch_orders(channels, gpus), ()) if self.nodes == 1 else ring_orders(channels, gpus, nics, exchange=cross > 0, shared=beside)
        )
        return Graph(
            channels, speed, speed, "ring", "NVL", self.near() if straight else "PXN", same, cross_nic=cross, orders=orders, nics=ways
        )

    def ring_channels(self, speed: float) -> tuple[int, int]:
        """How many rings fit at a speed, and whether they change NICs from node to node (2) or not (0). A ring that leaves by
        another GPU next to its NIC or its Grace, or by the NIC of another GPU, uses one NVLink less; over NVLink to the NIC it came
        from, all."""
        if self.nodes == 1:
            return self.links(speed), 0
        gpus = self.machine.gpus
        straight = min(self.at_nics(speed), gpus * self.links(speed) // (gpus - 1))
        if self.machine.shared or self.machine.grace:
            return straight, 0
        around, crossing = min(self.at_nics(speed), self.links(speed)), straight // 2 * 2
        return (crossing, 2) if crossing > around else (around, 0)

    def best(self, fits: Callable[[float], int], most: int) -> tuple[int, float]:
        """The first of the largest channels x speed, in the order of trial speeds."""
        channels, best = 0, 0.0
        for speed in self.speeds:
            if speed > self.most:
                continue
            if channels and speed / best <= WORTH:
                break
            found = min(fits(speed), most)
            if found * speed > channels * best * (1 + 1e-9):
                channels, best = found, speed
            if channels == most or channels * best >= self.machine.nvlink:
                break
        if not channels:
            raise MeasurementError(f"NCCL's search in closed form: no channel at any trial speed for {self.machine}")
        return channels, best

    def doubled(self, channels: int, speed: float, most: int) -> tuple[int, float]:
        """Fast channels are split in two of half the speed, as long as there may be so many."""
        count = min(2 * channels, most) if worth_doubling(speed, channels, self.machine.sm) else channels
        return count, speed * channels / count

    def tree(self, ring: Graph) -> Graph:
        """As many chains as rings."""
        first, speed = self.chain_speeds(ring)
        if self.nodes == 1:
            plain = speed > first and self.machine.sm >= 90  # found only after the balanced tree was given up
            pattern: Pattern = "tree" if plain else "balanced-tree"
            same = ring.same_channels and ring.channels * (self.machine.gpus + 1) <= SAME_TRIES
            return Graph(ring.channels, speed, speed, pattern, same_channels=same, orders=ring.orders)
        balanced = self.machine.shared or self.machine.grace or self.machine.sm < 90
        return self.chain_graph(ring.channels, speed, first, "balanced-tree" if balanced else "tree")

    def chain_speeds(self, ring: Graph) -> tuple[float, float]:
        """Between nodes and inside: a trial speed, which a ring's that was split in two need not be; NVLinks may go faster, up to twice
        as fast."""
        first = next((speed for speed in self.speeds if speed <= ring.bw_inter), ring.bw_inter)
        return first, self.raised(first, 2 * first, lambda speed: self.chains(ring.channels, speed))

    def chain_graph(self, channels: int, intra: float, inter: float, pattern: Pattern) -> Graph:
        balanced = pattern == "balanced-tree" and (self.machine.shared or self.machine.grace)
        orders, ways = tree_orders(channels, self.machine.gpus, self.machine.nics, balanced=balanced)
        return Graph(channels, intra, inter, pattern, "NVL", self.near(), False, orders=orders, nics=ways)

    def chain(self, ring: Graph) -> Graph:
        """CollNet's chain: a tree whose root alone meets the NIC."""
        first, speed = self.chain_speeds(ring)
        return self.chain_graph(ring.channels, speed, first, "tree")

    def chains(self, channels: int, speed: float) -> bool:
        """Every GPU but the last of a chain sends on. In one node chains start alike, so the last bit of room is not found."""
        needed = channels * (self.machine.gpus - 1) / self.machine.gpus
        return self.links(speed) > needed or (self.nodes > 1 and self.links(speed) == needed)

    def raised(self, speed: float, most: float, fits: Callable[[float], bool]) -> float:
        """The next faster trial speed as long as the present one is below ``most`` and the next fits."""
        for faster in reversed([s for s in self.speeds if s > speed]):
            if speed >= most or not fits(faster):
                break
            speed = faster
        return speed

    def nvls(self) -> Graph | None:
        """Heads, each of which sends its part to all over the multicast: a GPU carries one speed for each head and one more."""
        heads = min(self.machine.gpus, _NVLS_HEADS, self.machine.nics if self.nodes > 1 else _NVLS_HEADS)
        fitting = [s for s in self.speeds if s <= self.most and (heads + 1) * s <= self.machine.nvlink]
        if not fitting:
            return None
        speed = fitting[0]
        inter = self.raised(speed, 2 * speed, lambda faster: self.nodes == 1 or self.at_nics(faster) >= heads)
        return Graph(heads, speed, inter, "nvls", "NVL", self.near(), False)

    def direct(self) -> Graph:
        """CollNet's heads: a GPU's own part and those of the others use its NVLinks twice."""
        most = min(self.machine.gpus, _DIRECT_HEADS)
        channels, inter = self.best(lambda speed: min(self.at_nics(speed), most), most)
        single = channels
        channels, inter = self.doubled(channels, inter, most)
        speed = inter
        if channels == single:  # two channels of one head leave no room to go faster
            speed = self.raised(inter, 2 * inter, lambda faster: 2 * faster <= self.machine.nvlink)
        return Graph(channels, speed, inter, "collnet-direct", "NVL", self.near(), False)
