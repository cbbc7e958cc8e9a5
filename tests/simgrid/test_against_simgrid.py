"""The same flows on the same platform in SimGrid (CM02 with ideal factors): every message arrives when we say, to 1e-6.

SimGrid pays latency before a message flows, we pay it after: where flows share links, all routes of a case have one latency and flows
that share start together or latency is zero; then both mean the same. Run by `make simgrid`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from simgrid_platform import noted, played, version

from algorithms.collectives import ALL_REDUCE
from algorithms.launch import Launch, Placement
from algorithms.schedule import Schedule, copy
from sim.simulate import make_launch, simulate
from topologies import make
from topologies.graph import Link, Node, Topology, both_ways

pytestmark = pytest.mark.simgrid
GB, US = 1e9, 1e-6
Flow = tuple[int, int, int]
"""Source, destination, bytes."""


@dataclass(frozen=True)
class Case:
    """A launch, and the programs that hosts run in SimGrid, written apart from it: [sends, receives] for each phase."""

    topology: Topology
    launch: Launch
    programs: dict[str, Any]


def at_once(topology: Topology, flows: list[Flow]) -> Case:
    """Flows that all start at time 0, each with a chunk, and a channel (so a queue), of its own."""
    sends = [copy(0, src, dst, chunk, channel=chunk) for chunk, (src, dst, _) in enumerate(flows)]
    sizes = [size for _, _, size in flows]
    s = Schedule.of("flows", ALL_REDUCE, len(topology.gpus), sends, weights=sizes)
    programs: dict[str, Any] = {gpu: [[[], []]] for gpu in topology.gpus}
    for src, dst, size in flows:
        programs[topology.gpus[src]][0][0].append([topology.gpus[dst], size])
        programs[topology.gpus[dst]][0][1].append(topology.gpus[src])
    return Case(topology, Launch(s, sum(sizes), Placement.of(topology, s), "int8"), programs)


def wired(name: str, gpus: list[tuple[str, str]], trunks: list[tuple[str, str, float]], access: float, latency: float) -> Topology:
    """GPUs (name, switch) with cables of ``access`` B/s, and trunks (switch, switch, B/s) without latency: all routes take
    twice ``latency``."""
    nodes = [Node(gpu, "gpu") for gpu, _ in gpus]
    nodes += [Node(switch, "switch") for switch in sorted({end for trunk in trunks for end in trunk[:2]})]
    cables = [Link(gpu, switch, "link", 1, access, latency) for gpu, switch in gpus]
    cables += [Link(a, b, "link", 1, bandwidth, 0.0) for a, b, bandwidth in trunks]
    return Topology.build(name, nodes, [way for cable in cables for way in both_ways(cable)])


def incast() -> Case:
    """Seven senders of seven sizes into one port."""
    sizes = [1_300_000, 900_001, 2_500_000, 77_777, 1_000_000, 640_000, 3_141_592]
    star = make("star", {"gpus": 8, "bandwidth": 25 * GB, "latency": 1.5 * US})
    return at_once(star, [(rank, 0, size) for rank, size in enumerate(sizes, start=1)])


def parking_lot() -> Case:
    """One flow over all trunks in line, each trunk shared with others of its own; trunks and sizes all differ."""
    trunks = [(f"s{i}", f"s{i + 1}", bandwidth * GB) for i, bandwidth in enumerate([10, 7, 13, 8, 11])]
    ends = [("first", "s0"), ("last", "s5"), *((f"{side}{i}", f"s{i + (side == 'b')}") for i in range(5) for side in "ab")]
    short = [(2 + 2 * i, 3 + 2 * i, 1_000_000 + 370_001 * i) for i in range(5)]
    two = [(2, 5, 810_000), (6, 9, 1_234_567)]  # over two trunks each
    return at_once(wired("parking-lot", ends, trunks, 40 * GB, 2 * US), [(0, 1, 4_000_000), *short, *two])


def two_level(latency: float) -> Topology:
    """Four leaves of four GPUs, 25 GB/s each, under one spine: 2.5 to 4.8 times what the cables of a leaf carry up."""
    gpus = [(f"gpu{i}", f"leaf{i // 4}") for i in range(16)]
    return wired("two-level", gpus, [(f"leaf{i}", "spine", speed * GB) for i, speed in enumerate([40, 27, 33, 21])], 25 * GB, latency)


def oversubscribed_tree() -> Case:
    """Forty flows between random GPUs under two levels, of random sizes: rates change forty times."""
    random = np.random.default_rng(20)
    pairs = [random.choice(16, 2, replace=False).tolist() for _ in range(60)]
    flows = {(src, dst): int(random.integers(50_000, 4_000_000)) for src, dst in pairs}
    return at_once(two_level(1 * US), [(src, dst, size) for (src, dst), size in list(flows.items())[:40]])


def ring(topology: Topology) -> Case:
    """In each of 2(n-1) phases a rank sends to its right and receives from its left."""
    n, part = len(topology.gpus), 1_000_000
    g = topology.gpus
    programs = {g[r]: [[[[g[(r + 1) % n], part]], [g[r - 1]]]] * (2 * (n - 1)) for r in range(n)}
    return Case(topology, make_launch(topology, "all-reduce", "ring", n * part, dtype="int8"), programs)


def ring_on_star() -> Case:
    return ring(make("star", {"gpus": 8, "bandwidth": 25 * GB, "latency": 1 * US}))


def ring_on_uneven_cables() -> Case:
    """No latency, and cables of 8 bandwidths: ranks fall behind and wait for one another."""
    nodes = [*(Node(f"gpu{r}", "gpu") for r in range(8)), Node("switch", "switch")]
    speeds = [25, 11, 19, 23, 7, 29, 13, 17]
    cables = [Link(f"gpu{r}", "switch", "link", 1, speed * GB, 0.0) for r, speed in enumerate(speeds)]
    return ring(Topology.build("uneven", nodes, [way for cable in cables for way in both_ways(cable)]))


def pairwise() -> Case:
    """Without latency: n-1 phases in which rank r and r xor k swap, under an oversubscribed spine; ranks drift apart."""
    topology, part = two_level(0.0), 600_000
    g, n = topology.gpus, len(topology.gpus)
    # A sender waits for its own messages alone, as in our queues; receives are all waited for in the last phase.
    programs = {g[r]: [[[[g[r ^ k], part]], []] for k in range(1, n)] + [[[], [g[r ^ k] for k in range(1, n)]]] for r in range(n)}
    return Case(topology, make_launch(topology, "all-to-all", "pairwise", n * part, dtype="int8"), programs)


CASES: list[Callable[[], Case]] = [incast, parking_lot, oversubscribed_tree, ring_on_star, ring_on_uneven_cables, pairwise]


def arrivals(case: Case, engine: str) -> dict[str, list[float]]:
    """Ours, as SimGrid's: by "source destination", in the order of sending."""
    trace = simulate(case.topology, [case.launch], engine=engine).trace
    ends: dict[str, list[float]] = defaultdict(list)
    for src, dst, end in zip(trace.src.tolist(), trace.dst.tolist(), trace.end.tolist(), strict=True):
        ends[f"{case.topology.gpus[src]} {case.topology.gpus[dst]}"].append(end)
    return ends


@pytest.mark.parametrize("make_case", CASES, ids=lambda f: f.__name__)
def test_every_message_arrives_when_simgrid_says(make_case: Callable[[], Case], tmp_path: Path) -> None:
    found, case = version(), make_case()
    theirs = played(case.topology, case.programs, tmp_path)
    for engine in ("event", "compiled"):
        ours = arrivals(case, engine)
        assert ours.keys() == theirs.keys()
        for pair, ends in ours.items():
            assert theirs[pair] == pytest.approx(ends, rel=1e-6), (engine, pair)
        apart = max(abs(a / b - 1) for pair in ours for a, b in zip(ours[pair], theirs[pair], strict=True))
        last = max(max(ends) for ends in theirs.values())
        noted(found, make_case.__name__, engine, sum(map(len, ours.values())), last, max(map(max, ours.values())), apart)
