"""The settings that the search goes through for one graph, from the strictest and fastest on (``src/graph/search.cc``).

At each speed: all channels in one order, then any orders; from Hopper on a plain tree in place of a balanced one; farther GPUs; farther
NICs; pairs of channels that exchange NICs. Then the next lower speed. What is found is doubled where channels are fast, and a second
pass raises its speed as far as it goes.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

from prediction.nccl.depth_first import Found, Search, Setting
from prediction.nccl.graphs import Graph, Pattern
from prediction.nccl.paths import DIS, LOC, NVL, PIX, PXN, SYS, Paths
from prediction.nccl.search import SAME_TRIES, WORTH, trial_speeds, worth_doubling
from prediction.nccl.system import MB, System
from prediction.nccl.version import Version

_ALL_TRIES, _TRIES = 1 << 19, 1 << 14
_MOST_COLLNET = 8
"""GPUs of a node."""
_FALLBACK = 100
"""MB/s that NCCL counts where it finds nothing."""


@lru_cache(maxsize=256)
def depth_first(system: System, version: Version, *, several: bool, collnet: bool) -> tuple[Graph, Graph, Graph | None]:
    """Ring, tree and CollNet's chain of a node, alone or one of ``several``; the tree and the chain have as many channels as the ring."""
    trials = Trials(Paths(system, version), 2 if several else 1)
    ring = trials.graph("ring", 1, 32 if version >= (2, 25) else 16) or trials.simple_order("ring")
    tree = trials.graph("balanced-tree", ring.channels, ring.channels) or trials.simple_order("balanced-tree")
    sharp = collnet and several and len(system.gpus) <= _MOST_COLLNET
    return ring, tree, trials.graph("tree", ring.channels, ring.channels) if sharp else None


@dataclass(frozen=True)
class Trials:
    """The search for graphs of one node out of ``nodes`` equal ones."""

    paths: Paths
    nodes: int

    def graph(self, pattern: Pattern, least: int, most: int) -> Graph | None:
        """The graph of ``least`` to ``most`` channels, None where there is none."""
        found = self._faster(self._doubled(self._first_pass(self._strictest(pattern, least, most)), most))
        return self._as_graph(found) if found.channels else None

    def simple_order(self, pattern: Pattern) -> Graph:
        """What NCCL falls back to: one slow channel as the GPUs are numbered."""
        setting = replace(self._strictest(pattern, 1, 1), intra=_FALLBACK, inter=_FALLBACK, type_intra=SYS, type_inter=SYS)
        return self._as_graph(Found(setting, (tuple(range(self.gpus)),), ((0, 0),) if self.paths.system.nets else ()))

    @property
    def gpus(self) -> int:
        return len(self.paths.system.gpus)

    @cached_property
    def speeds(self) -> list[int]:
        """Trial speeds [MB/s], fast to slow."""
        return [round(speed / MB) for speed in trial_speeds(self.nodes, self.paths.system.sm, self.paths.version)]

    @cached_property
    def _fastest(self) -> int:
        """The widest path: to a NIC, in one node to another GPU."""
        system = self.paths.system
        ends = system.nets or system.gpus
        return max(self.paths.table[gpu][end].rate for gpu in system.gpus for end in ends if gpu != end)

    @cached_property
    def _total(self) -> int:
        """What the best connected GPU could carry: all its NVLinks, or its PCIe link."""
        system = self.paths.system
        if not system.nets and self.gpus == 1:
            return self._fastest
        every = [[system.edges[e] for e in system.out[gpu]] for gpu in system.gpus]
        nvlink = [sum(edge.rate for edge in edges if edge.medium == "nvlink") for edges in every]
        return max([*nvlink, *(edge.rate for edges in every for edge in edges if edge.medium == "pcie")])

    def _place(self, fast: float, least: int = 1, total: float = float("inf")) -> int:
        """Of the first speed not above ``fast``, at which the fewest channels could fit; else the last."""
        return next((i for i, speed in enumerate(self.speeds) if speed <= fast and speed * least <= total), len(self.speeds) - 1)

    def _strictest(self, pattern: Pattern, least: int, most: int) -> Setting:
        """At the fastest speed, by the nearest paths only."""
        ring = pattern == "ring"
        if self.gpus == 1 and not ring:
            pattern = "tree"
        if ring and least == 1 and most >= 2 and self._split():
            least = 2
        total = self._total * (1 if ring or self.gpus == 1 else self.gpus / (self.gpus - 1))
        speed = self.speeds[self._place(self._fastest, least, total)]
        near, out = self._extents
        return Setting(pattern, speed, speed, near[0], out[0], True, 0, least, most)

    @cached_property
    def _extents(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Best and worst type of the paths between GPUs, and to NICs."""
        system = self.paths.system
        near = self.paths.extent(system.gpus) if self.gpus > 1 else (LOC, SYS)
        return near, self.paths.extent(system.nets) if system.nets else (PIX, SYS)

    @cached_property
    def _types(self) -> tuple[set[int], set[int]]:
        """Path types that occur between GPUs, and between GPUs and NICs in either direction."""
        table, gpus, nets = self.paths.table, self.paths.system.gpus, self.paths.system.nets
        near = {table[a][b].type for a in gpus for b in gpus if a != b}
        return near, {table[a][b].type for gpu in gpus for net in nets for a, b in ((gpu, net), (net, gpu))}

    def _split(self) -> bool:
        """Two groups of GPUs with NVLinks inside and none between: a tree will need 2 channels, so the ring gets as many."""
        gpus, table = self.paths.system.gpus, self.paths.table
        domain = list(range(len(gpus)))
        for a in range(len(gpus)):
            for b in range(a + 1, len(gpus)):
                if table[gpus[a]][gpus[b]].type == NVL:
                    domain[b] = domain[a]
        return sum(domain.count(name) > 1 for name in set(domain)) == 2

    def _first_pass(self, start: Setting) -> Found:
        trial, best = start, Found(replace(start, intra=0, inter=0))
        budget, place = _ALL_TRIES, self.speeds.index(start.inter)
        seen: dict[Setting, int] = {}
        while True:
            tries = SAME_TRIES if trial.same else _TRIES
            key = self._reachable(trial)
            if key in seen:
                left = seen[key]  # no path of that type: the same search again
            else:
                left, best = Search(self.paths, trial, best).run(tries)
                seen[key] = left
            budget -= tries
            if left == -1 or best.channels * best.setting.inter >= self._total:
                return best
            if trial.same and not (self.paths.system.cpu == "amd" and trial.type_intra == SYS):
                trial = replace(trial, same=False)
                continue
            budget += left
            if budget < 0 and best.channels:
                return best
            relaxed = self._relaxed(replace(trial, same=True), start, best)
            if relaxed is None:
                place += 1
                if place == len(self.speeds) or (best.channels and self.speeds[place] / best.setting.inter <= WORTH):
                    return best
                start = replace(start, intra=self.speeds[place], inter=self.speeds[place])
                relaxed = start
            trial = relaxed

    def _relaxed(self, trial: Setting, start: Setting, best: Found) -> Setting | None:
        """The next setting at the same speed."""
        (_, worst), (_, worst_out) = self._extents
        nets = bool(self.paths.system.nets)
        if self.paths.system.sm >= 90 and trial.pattern == "balanced-tree":
            return replace(trial, pattern="tree")
        trial = replace(trial, pattern=start.pattern)
        if trial.type_intra < (trial.type_inter if nets else worst) and (not best.channels or trial.type_intra < best.setting.type_intra):
            return replace(trial, type_intra=trial.type_intra + 1)
        trial = replace(trial, type_intra=start.type_intra)
        farther = not best.channels or trial.type_inter < best.setting.type_inter or trial.type_inter < PXN
        if nets and trial.type_inter < min(worst_out, DIS - 1) and farther:
            return replace(trial, type_inter=trial.type_inter + 1)
        trial = replace(trial, type_inter=start.type_inter)
        if len(self.paths.system.nets) > 1 and not trial.cross and start.pattern in ("ring", "balanced-tree"):
            return replace(trial, cross=2)
        return None

    def _reachable(self, trial: Setting) -> Setting:
        """The setting with its types as they occur: settings that are equal then find the same."""
        near, out = self._types
        return replace(
            trial,
            type_intra=max((t for t in near if t <= trial.type_intra), default=-1),
            type_inter=max((t for t in out if t <= trial.type_inter), default=-1),
        )

    def _doubled(self, found: Found, most: int) -> Found:
        if not found.channels or not worth_doubling(found.setting.intra * MB, found.channels, self.paths.system.sm):
            return found
        return found.doubled(min(2 * found.channels, most))

    def _faster(self, best: Found) -> Found:
        """The second pass: a ring's channels both ways, a tree's inside the node to at most twice the NICs' speed."""
        if not best.channels:
            return best
        place = self._place(best.setting.inter)
        trial = replace(best.setting, intra=self.speeds[place], inter=self.speeds[place], least=best.channels)
        ring = best.setting.pattern == "ring"
        left = -1
        while left and place and (ring or (trial.intra == best.setting.intra and trial.intra < 2 * trial.inter)):
            place -= 1
            speed = self.speeds[place]
            trial = replace(trial, intra=speed, inter=speed if ring else trial.inter)
            left, best = Search(self.paths, trial, best).run(SAME_TRIES if trial.same else _TRIES)
        return best

    def _as_graph(self, found: Found) -> Graph:
        s, paths = found.setting, self.paths
        return Graph(
            found.channels, s.intra * MB, s.inter * MB, s.pattern, paths.type_name(s.type_intra), paths.type_name(s.type_inter),
            s.same, cross_nic=s.cross, orders=found.orders, nics=found.nics,
        )  # fmt: skip
