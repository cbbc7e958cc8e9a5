"""Paths between the GPUs and NICs of a node, their types and rates, as NCCL finds them (``src/graph/paths.cc``): fewest links first,
then the wider; through host memory where GPUs cannot reach each other; over a GPU next to the NIC where that is better (PXN).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from prediction.nccl.graphs import PATHS, Path
from prediction.nccl.system import System
from prediction.nccl.version import Version

LOC, NVL, NVB, C2C, PIX, PXB, P2C, PXN, PHB, SYS, NET, DIS = range(len(PATHS))
_OF_MEDIUM = {"nvlink": NVL, "c2c": C2C, "pcie": PIX, "cpu": SYS, "net": LOC, "": DIS}
_HERE = 5_000_000
"""MB/s from a node to itself."""
_P2C_SINCE = (2, 27)
_MOST_CHANNELS = 64


@dataclass(frozen=True, slots=True)
class Way:
    """A path: edges by number, the slowest one's rate [MB/s], the worst type (place in ``PATHS``)."""

    edges: tuple[int, ...] = ()
    rate: int = 0
    type: int = DIS


@dataclass(frozen=True)
class Paths:
    """All paths of a system, by numbers of its nodes."""

    system: System
    version: Version

    @cached_property
    def _plain(self) -> list[list[Way]]:
        """``[a][b]``: from a to b; GPUs pass on for one hop of NVLink only."""
        count = len(self.system.kinds)
        table = [[Way()] * count for _ in range(count)]
        for base in range(count):
            self._reach(base, table)
        return table

    def _reach(self, base: int, table: list[list[Way]]) -> None:
        """Breadth first from ``base``; an equally short but wider path takes the place of one found before."""
        system = self.system
        table[base][base] = Way((), _HERE, LOC)
        frontier = [base]
        while frontier:
            following: list[int] = []
            for node in frontier:
                way = table[node][base]
                for number in system.out[node]:
                    edge = system.edges[number]
                    other, rate = edge.dst, min(way.rate, edge.rate)
                    through = edge.medium == "nvlink" and system.kinds[other] == "gpu" and len(way.edges) <= 1
                    if node != base and system.kinds[node] == "gpu" and not through:
                        continue
                    known = table[other][base]
                    if (known.rate == 0 or len(known.edges) > len(way.edges)) and known.rate < rate:
                        table[other][base] = Way((system.back[number], *way.edges), rate, self._type(node, number, way))
                        if other not in following:
                            following.append(other)
            frontier = following

    def _type(self, node: int, number: int, way: Way) -> int:
        """Of the path that lengthens ``way`` by an edge out of ``node``."""
        kinds, edge = self.system.kinds, self.system.edges[number]
        ends = (kinds[node], kinds[edge.dst])
        found = _OF_MEDIUM[edge.medium]
        if ends == ("pcie", "pcie"):
            found = PXB
        if edge.medium == "pcie" and "cpu" in ends:
            found = PHB
        if kinds[node] == "gpu" and way.type == NVL and found == NVL and way.edges:
            found = NVB
        return max(way.type, found)

    @cached_property
    def table(self) -> list[list[Way]]:
        """Paths as they are used: over the CPU where GPUs cannot reach each other, to NICs over another GPU."""
        system = self.system
        plain = self._plain
        table = [list(row) for row in plain]
        far = SYS if system.cpu == "amd" and len(system.gpus) <= 2 else PXB
        far = far if system.p2p is None else PATHS.index(system.p2p)
        for gpu in system.gpus:
            cpu = self.cpu_of(gpu)
            for peer in system.gpus:
                if peer != gpu and plain[peer][gpu].type > far and cpu is not None:
                    table[peer][gpu] = _joined(plain[peer][cpu], plain[cpu][gpu])
        self._grace(table)
        for net in system.nets:
            near = self._next_to(table, net)
            for gpu in system.gpus:
                if near is not None and near != gpu and self._relays(table, gpu, near, net):
                    relay = _joined(table[gpu][near], table[near][net])
                    table[gpu][net] = Way(relay.edges, relay.rate, PXN)
        return table

    def cpu_of(self, gpu: int) -> int | None:
        """The nearest CPU."""
        ways = [(len(self._plain[gpu][cpu].edges), cpu) for cpu in self.system.of("cpu") if self._plain[gpu][cpu].edges]
        return min(ways)[1] if ways else None

    def _grace(self, table: list[list[Way]]) -> None:
        """A GPU's nearest NICs at its own Grace are nearer than others over a host bridge."""
        if self.version < _P2C_SINCE:
            return
        for gpu in self.system.gpus:
            cpu = self.cpu_of(gpu)
            for net in _nearest(table[gpu], self.system.nets):
                if cpu is not None and {table[gpu][cpu].type, table[net][cpu].type} == {C2C, PHB}:
                    for a, b in ((gpu, net), (net, gpu)):
                        table[a][b] = Way(table[a][b].edges, table[a][b].rate, min(P2C, table[a][b].type))

    def _relays(self, table: list[list[Way]], gpu: int, near: int, net: int) -> bool:
        """Whether ``gpu`` sends to ``net`` over ``near``, which reads its memory over NVLink."""
        old = self.system.sm < 80 and not any(self._plain[near][other].type == NVL for other in self.system.gpus if other != near)
        mine, its = table[gpu][net], table[near][net]
        closest = P2C if self.version >= _P2C_SINCE else PXB
        return not old and its.type <= closest and table[near][gpu].type <= NVL and (its.rate > mine.rate or mine.type > PXN)

    def _next_to(self, table: list[list[Way]], net: int) -> int | None:
        """The GPU that a NIC belongs to: of the nearest, the first that would choose it itself."""
        near = _nearest(table[net], self.system.gpus)
        for channel in range(_MOST_CHANNELS):
            for gpu in near:
                if self._own_net(table, gpu, channel) == net:
                    return gpu
        return None

    def _own_net(self, table: list[list[Way]], gpu: int, channel: int) -> int:
        """The NIC of a GPU on a channel: one of its nearest, so that GPUs that share them spread out."""
        nets = _nearest(table[gpu], self.system.nets)
        sharing = len(_nearest(table[nets[0]], self.system.gpus))
        place = self.system.gpus.index(gpu)
        if len(nets) & (len(nets) - 1) == 0:
            place = _mirrored(place, len(nets))
        return nets[(place + channel % -(-len(nets) // sharing)) % len(nets)]

    @cached_property
    def gpu_of(self) -> dict[int, int | None]:
        """For each NIC, the GPU it belongs to."""
        return {net: self._next_to(self.table, net) for net in self.system.nets}

    @cached_property
    def gpus_near(self) -> dict[int, list[int]]:
        """For each NIC, its nearest GPUs."""
        return {net: _nearest(self.table[net], self.system.gpus) for net in self.system.nets}

    @cached_property
    def _own_nets(self) -> dict[int, list[int]]:
        """For each GPU its own NICs, channel by channel until they repeat."""
        found = {}
        for gpu in self.system.gpus:
            found[gpu] = list(dict.fromkeys(self._own_net(self.table, gpu, channel) for channel in range(_MOST_CHANNELS)))
        return found

    def nets_for(self, gpus: Sequence[int], farthest: int) -> list[int]:
        """NICs in the order in which the search tries them: each GPU's own, then all others as far as ``farthest``."""
        order = {net: None for gpu in gpus for net in self._own_nets[gpu]}
        for far in range(farthest + 1):
            for gpu in gpus:
                order |= dict.fromkeys(net for net in self.system.nets if self.table[gpu][net].type == far)
        return list(order)

    def extent(self, ends: Sequence[int]) -> tuple[int, int]:
        """The best and the worst type of a path from a GPU to these nodes."""
        types = [self.table[gpu][end].type for gpu in self.system.gpus for end in ends if gpu != end]
        return min([*types, SYS]), max([*types, LOC])

    def type_name(self, place: int) -> Path:
        return PATHS[place]


def _joined(first: Way, second: Way) -> Way:
    both = {first.type, second.type}
    worst = P2C if both == {C2C, PHB} else max(both)
    return Way(first.edges + second.edges, min(first.rate, second.rate), worst)


def _nearest(row: Sequence[Way], ends: Sequence[int]) -> list[int]:
    """Of the widest paths those of the best type."""
    best = min(((-row[end].rate, row[end].type) for end in ends), default=None)
    return [end for end in ends if (-row[end].rate, row[end].type) == best]


def _mirrored(value: int, power: int) -> int:
    """The bits of a value below a power of 2, in reverse."""
    bits = power.bit_length() - 1
    return sum(((value >> bit) & 1) << (bits - 1 - bit) for bit in range(bits))
