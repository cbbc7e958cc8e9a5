"""One search at one setting: channel after channel and GPU after GPU, depth first, with a budget of tries (``src/graph/search.cc``).

Every hop of a channel takes its rate from all edges of its path, and gives it back when the search returns. Frames stand on a stack of
generators, since a search goes deeper than Python calls may: channels times GPUs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from prediction.nccl.bounds import Charges, most_channels
from prediction.nccl.graphs import Pattern
from prediction.nccl.paths import PHB, Paths
from prediction.nccl.promise import next_gpus

PCI_TRIES = 1 << 10
"""For the plain order of GPUs, which is tried first from each NIC."""
_DONE = -1
_FREE, _NUMBERED, _AGAIN = range(3)
"""Orders: any, GPUs as they are numbered, that of the last channel."""
_Step = Iterator["_Step"]


@dataclass(frozen=True, slots=True)
class Setting:
    """What is tried: rates [MB/s], the worst path types, NICs (0: out where it came in, 2: pairs of channels exchange them)."""

    pattern: Pattern
    intra: int
    inter: int
    type_intra: int
    type_inter: int
    same: bool
    cross: int
    least: int
    most: int


@dataclass(frozen=True, slots=True)
class Found:
    """The best so far: GPUs and NICs by place in their lists, one row a channel; hops in total, to prefer short ones."""

    setting: Setting
    orders: tuple[tuple[int, ...], ...] = ()
    nics: tuple[tuple[int, int], ...] = ()
    hops: int = 0

    @property
    def channels(self) -> int:
        return len(self.orders)

    def doubled(self, channels: int) -> Found:
        """The first channels once more; the setting's rates shared out."""
        share = -(-channels // self.channels)
        setting = replace(self.setting, intra=self.setting.intra // share, inter=self.setting.inter // share)
        return replace(self, setting=setting, orders=(self.orders * 2)[:channels], nics=(self.nics * 2)[:channels])


class Search:
    """``run`` returns the tries left (-1: as many channels as there may be) and the better of ``best`` and what it found."""

    def __init__(self, paths: Paths, setting: Setting, best: Found) -> None:
        self.paths, self.setting, self.best = paths, setting, best
        system = paths.system
        self.gpus, self.nets = system.gpus, system.nets
        self.room = [edge.rate for edge in system.edges]
        port = {edge.dst: edge.rate for edge in system.edges if edge.medium == "net"}
        self.ports = [port[net] for net in self.nets]
        self.port_rate = setting.inter // 1000 * 1000  # NCCL counts a port in whole GB/s
        self.count, self.hops, self.left = 0, 0, 0
        self.orders = [[0] * len(self.gpus) for _ in range(setting.most)]
        self.nics = [[0, 0] for _ in range(setting.most)]
        self._prepare()
        self._sorted: dict[tuple[int, int, int, int], list[int]] = {}

    def _prepare(self) -> None:
        """What each hop takes; None for those that the setting does not allow or that never fit."""
        table, s = self.paths.table, self.setting
        half = s.inter // 2 if s.pattern == "balanced-tree" else s.inter
        gpus, nets = self.gpus, self.nets
        self.hop = [[self._charges(a, b, s.intra, s.type_intra) if a != b else None for b in gpus] for a in gpus]
        self.enter = [[self._charges(net, gpu, s.inter, s.type_inter) for gpu in gpus] for net in nets]
        self.leave = [[self._charges(gpu, net, half, s.type_inter) for net in nets] for gpu in gpus]
        self.length = [[len(table[a][b].edges) for b in gpus] for a in gpus]
        ring = s.pattern == "ring"
        self.to_net = -1 if not nets else len(gpus) - 1 if ring else 1 if s.pattern == "split-tree" else 0
        self.to_first = len(gpus) - 1 if ring and not nets else -1
        every = self.paths.nets_for(gpus, s.type_inter) if nets else []
        self.starts = [nets.index(net) for net in every]
        self.exits = [[nets.index(net) for net in self.paths.nets_for([gpu], s.type_inter)] for gpu in gpus] if nets else []

    def _charges(self, a: int, b: int, rate: int, worst: int) -> Charges | None:
        system, way = self.paths.system, self.paths.table[a][b]
        tree = self.setting.pattern != "ring" and not system.xgmi  # RCCL knows its machines' trees without searching
        if not way.edges or way.type > worst or (tree and self.paths.table[b][a].type > worst):
            return None
        crossing = way.type == PHB and system.kinds[a] == "gpu" and system.cpu == "intel"
        crossing = crossing and any(system.kinds[system.edges[e].dst] == "cpu" for e in way.edges)
        taken: dict[int, int] = {}
        for number in way.edges:
            edge = system.edges[number]
            share = round(rate * 6 / 5) if crossing and edge.medium == "pcie" else rate  # small packets over Intel's root complex
            taken[number] = taken.get(number, 0) + share
            if system.kinds[edge.dst] == "gpu" and system.sm < 80 and system.kinds[a] != "gpu":
                back = system.back[number]  # what reads cost before Ampere
                taken[back] = taken.get(back, 0) + round(share / 8)
            if system.kinds[edge.dst] == "cpu" and system.cpu == "power" and edge.medium == "nvlink":
                back = system.back[number]
                taken[back] = taken.get(back, 0) + share
        fits = all(amount <= self.room[edge] for edge, amount in taken.items())
        return tuple(taken.items()) if fits else None

    def run(self, tries: int) -> tuple[int, Found]:
        if self._hopeless():
            return tries, self.best
        self.left = tries
        self._walk(self._channel())
        return self.left, self.best

    def _hopeless(self) -> bool:
        """Whether so few channels fit that none of them can be better: NCCL would search all the same, and find nothing."""
        s, best = self.setting, self.best
        at_nics = sum(port // max(self.port_rate, 1) for port in self.ports)
        count = min(s.most, most_channels(self.paths, self.hop, at_nics, closed=self.to_first >= 0))
        alike = best.setting.pattern == s.pattern and best.setting.cross == s.cross
        return count < max(s.least, 1) or count * s.intra < best.channels * best.setting.intra + (0 if alike else 1)

    def _walk(self, first: _Step) -> None:
        stack = [first]
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
            elif self.left <= 0:
                return
            else:
                stack.append(step)

    def _take(self, charges: Charges) -> bool:
        room = self.room
        for edge, amount in charges:
            if room[edge] < amount:
                return False
        for edge, amount in charges:
            room[edge] -= amount
        return True

    def _give(self, charges: Charges) -> None:
        for edge, amount in charges:
            self.room[edge] += amount

    def _channel(self) -> _Step:
        """Start the next channel, from a NIC or, in a single node, from any GPU."""
        if self.nets:
            yield from self._from_nets()
            return
        again = self.count > 0
        first = self.orders[self.count - 1][0] if again else 0
        yield self._visit(first, 0, 0, -1, self.to_first, _AGAIN if again else _NUMBERED)
        if not (again and self.setting.same):
            for gpu in range(len(self.gpus)):
                yield self._visit(gpu, 0, 0, -1, self.to_first, _FREE)

    def _from_nets(self) -> _Step:
        s, count = self.setting, self.count
        for i in range(len(self.starts)):
            net = self.starts[(count + i) % len(self.starts)]
            swapped = s.pattern == "ring" and s.cross == 2 and count & 1 and net != self.nics[count - 1][1]
            if self.ports[net] < self.port_rate or swapped:
                continue
            self.nics[count][0] = net
            self.ports[net] -= self.port_rate
            if count and s.same:
                yield from self._enter(net, self.orders[count - 1][0], _AGAIN)
            else:
                if not count and not self.paths.system.switched:
                    self._plain_order(net)
                near = self.paths.gpu_of[self.nets[net]]
                local = [] if near is None else [near]
                for gpu in dict.fromkeys([*local, *self.paths.gpus_near[self.nets[net]]]):
                    yield from self._enter(net, self.gpus.index(gpu), _FREE)
            self.ports[net] += self.port_rate

    def _plain_order(self, net: int) -> None:
        """GPUs as they are numbered, outside the budget."""
        saved = self.left, list(self.room), list(self.ports), self.hops
        self.left = PCI_TRIES
        self._walk(self._enter(net, 0, _NUMBERED))
        done = self.left == _DONE
        self.left, self.room, self.ports, self.hops = saved
        self.count = 0
        self.nics[0][0] = net
        if done:
            self.left = _DONE

    def _enter(self, net: int, gpu: int, forced: int) -> _Step:
        charges = self.enter[net][gpu]
        if charges and self._take(charges):
            self.hops += len(charges)
            yield self._visit(gpu, 0, 0, self.to_net, self.to_first, forced)
            self.hops -= len(charges)
            self._give(charges)

    def _visit(self, gpu: int, step: int, used: int, to_net: int, to_first: int, forced: int) -> _Step:
        """``step`` GPUs of this channel are behind, those of the bits of ``used``."""
        self.left -= 1
        last = len(self.gpus) - 1
        if step > last:
            self.count += 1
            self._compare()
            if self.count < self.setting.most:
                yield self._channel()
            self.count -= 1
            return
        order = self.orders[self.count]
        order[step] = gpu
        used |= 1 << gpu
        if step == to_net:
            yield from self._to_net(gpu, step, used, to_first, forced)
        elif step < last:
            for following in self._nexts(gpu, used, step, to_net, forced):
                charges = self.hop[gpu][following]
                if charges and self._take(charges):
                    self.hops += self.length[gpu][following]
                    yield self._visit(following, step + 1, used, to_net, to_first, forced)
                    self.hops -= self.length[gpu][following]
                    self._give(charges)
        elif step == to_first:
            charges = self.hop[gpu][order[0]]
            if charges and self._take(charges):
                self.hops += self.length[gpu][order[0]]
                yield self._visit(order[0], step + 1, used, to_net, -1, forced)
                self.hops -= self.length[gpu][order[0]]
                self._give(charges)
        else:
            yield self._visit(gpu, step + 1, used, -1, -1, forced)

    def _to_net(self, gpu: int, step: int, used: int, to_first: int, forced: int) -> _Step:
        """Out to a NIC; of a balanced tree the first two GPUs share the way out."""
        s, nic = self.setting, self.nics[self.count]
        for net in self.exits[gpu]:
            if s.pattern == "tree" and net != nic[0]:
                continue
            if s.pattern == "ring" and s.cross == 2:
                if self.count & 1 and net != self.nics[self.count - 1][0]:
                    continue
            elif not s.cross and net != nic[0]:
                continue
            balanced = s.pattern == "balanced-tree"
            if balanced and step and net != nic[1]:
                continue
            charges = self.leave[gpu][net]
            if charges and self._take(charges):
                self.hops += len(charges)
                nic[1] = net
                yield self._visit(gpu, step, used, 1 if balanced and not step else -1, to_first, forced)
                self.hops -= len(charges)
                self._give(charges)

    def _nexts(self, gpu: int, used: int, step: int, to_net: int, forced: int) -> Sequence[int]:
        """Where to go on: near the NIC, where the next GPU is to leave by it; else as far from that as it gets."""
        if forced == _NUMBERED:
            return (step + 1,)
        if forced == _AGAIN:
            return (self.orders[self.count - 1][step + 1],)
        sort = 0 if to_net == -1 else 1 if to_net == step + 1 else -1
        net = self.nets[self.nics[self.count][0]] if sort else -1
        key = (gpu, used, sort, net)
        if key not in self._sorted:
            self._sorted[key] = next_gpus(self.paths, self.setting.pattern, gpu, used, sort, net)
        return self._sorted[key]

    def _compare(self) -> None:
        s, best, count = self.setting, self.best, self.count
        if count < s.least:
            return
        ours, theirs = count * s.intra, best.channels * best.setting.intra
        alike = best.setting.pattern == s.pattern and best.setting.cross == s.cross
        if ours > theirs or (ours == theirs and alike and self.hops < best.hops):
            orders = tuple(tuple(order) for order in self.orders[:count])
            self.best = Found(s, orders, tuple((a, b) for a, b in self.nics[:count]) if self.nets else (), self.hops)
            if count == s.most:
                self.left = _DONE
