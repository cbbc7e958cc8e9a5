"""The time of a call in closed form: hops times their latencies, and bytes over the slowest rate, on the machine that the protocol sees.

For machines too large to simulate, and to hold the simulation against. It knows no fill, no drain, and no link that only some share.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf

from algorithms.collectives import ALL_REDUCE, Collective
from prediction.library.schedules import RING_STEPS, SLICE, Buffers, count
from prediction.library.sites import Site
from prediction.library.wire import Use
from prediction.nccl.version import Protocol
from topologies.graph import Topology
from topologies.routing import Router


@dataclass(frozen=True, slots=True)
class Rates:
    """Of the slowest: ``gpu`` out of a GPU inside its node, ``node`` out of a node's NICs, ``nic`` out of one [B/s]; latencies [s] of a hop
    inside (``near``) and to another node (``far``)."""

    gpu: float
    node: float
    nic: float
    near: float
    far: float


def rates(machine: Topology, sites: Sequence[Site]) -> Rates:
    """Read off a machine as a protocol sees it."""
    router, gpus = Router(machine), machine.gpus
    kinds = {node.name: node.kind for node in machine.nodes}

    def out(name: str, inside: bool) -> float:
        far = ("switch",) if not inside else ("gpu", "nvswitch")
        found: list[float] = [data["link"].bandwidth for peer, data in machine.graph[name].items() if kinds[peer] in far]
        return sum(found or [data["link"].bandwidth for data in machine.graph[name].values()])

    nics = [[out(nic, inside=False) for nic in site.nics] for site in sites if len(sites) > 1 and site.nics]
    several = next((site for site in sites if len(site.ranks) > 1), None)
    return Rates(
        min(min(out(gpu, inside=True), machine.node(gpu).injection) for gpu in gpus),
        min(map(sum, nics), default=inf), min(map(min, nics), default=inf),
        sum(link.latency for link in router.route(gpus[several.ranks[0]], gpus[several.ranks[1]])) if several else 0.0,
        sum(link.latency for link in router.route(gpus[sites[0].ranks[0]], gpus[sites[1].ranks[0]])) if len(sites) > 1 else 0.0,
    )  # fmt: skip


def message(
    algorithm: str, protocol: Protocol, collective: Collective, nbytes: int, channels: int, sites: Sequence[Site], buffers: Buffers
) -> float:
    """About how many bytes a message to the network has."""
    n, data = sum(len(site.ranks) for site in sites), nbytes / channels
    if algorithm == "ring" and not collective.rooted:
        return data / n
    if algorithm.startswith("nvls"):
        return min(data / len(sites[0].ranks), buffers.nvls)
    if algorithm in ("ring", "tree"):
        return min(data, buffers.step[protocol] if protocol == "simple" else SLICE[protocol])
    return nbytes if algorithm == "shift" else nbytes / n


def closed_form(
    use: Use, collective: Collective, nbytes: int, machine: Topology, sites: Sequence[Site], overhead: float, buffers: Buffers
) -> float:
    """Seconds beside the floor. ``overhead``: what a slice costs beside its bytes."""
    at, n, nodes = rates(machine, sites), sum(len(site.ranks) for site in sites), len(sites)
    each, levels = n / nodes, (nodes - 1).bit_length()
    far = at.far + (use.message / at.nic if nodes > 1 else 0.0)
    spread = {1: 0.0, 2: 1.0, 3: 1.5}.get(nodes, 2.0)  # of a double tree: what the busiest NIC carries, in data of the call
    if use.algorithm == "ring":
        crossing = nodes / n if nodes > 1 else 0.0
        if collective.rooted:
            return nbytes / min(at.gpu, at.node)
        steps = (2 if collective is ALL_REDUCE else 1) * (n - 1)
        chunk = RING_STEPS[use.protocol] * buffers.step[use.protocol]
        loops = count(nbytes / use.channels / n, chunk)
        pieces = 2 if use.protocol == "simple" else 1
        hop = (1 - crossing) * at.near + crossing * at.far
        return steps * (hop + loops * pieces * overhead + nbytes / n / min(at.gpu, at.node))
    if use.algorithm == "tree":
        hops = 2 * ((each - 1) * at.near + levels * far)
        return hops + (2 * levels + each) * overhead + nbytes / min(at.gpu / 2, at.node / spread if spread else inf)
    if use.algorithm.startswith("nvls"):
        bytes_s = max(nbytes * (1 + 1 / each) / at.gpu, spread * nbytes / at.node if nodes > 1 else 0.0)
        return 2 * at.near + 2 * levels * far + bytes_s
    if collective.personalised and use.algorithm == "direct":
        inside, beyond = nbytes * (each - 1) / n / at.gpu, nbytes * each * (n - each) / n / at.node if nodes > 1 else 0.0
        return max(at.near, at.far) + max(inside, beyond)
    wire = min(at.gpu, at.nic)  # one rank to another, or a root to all
    return max(at.near, at.far) + nbytes / wire
