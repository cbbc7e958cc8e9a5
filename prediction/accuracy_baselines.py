"""What a prediction must beat: the textbook's ring with datasheet numbers, NCCL's own cost model, a straight line through two points."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from prediction.accuracy_tables import Point
from prediction.library.asked import Asked
from prediction.nccl.enabled import Call
from prediction.nccl.machines import graphs_of
from prediction.nccl.settings import settings
from prediction.nccl.tuner import tune
from prediction.nccl.version import tuned, version
from topologies.errors import MeasurementError, nearest, quoted
from topologies.graph import Link, Topology
from topologies.routing import Router

Times = Callable[[int], float]
"""Size [B] -> time [s]."""
_ROUNDS = {"all-reduce": 2.0, "all-gather": 1.0, "reduce-scatter": 1.0, "all-to-all": 1.0}
"""Rounds of n-1 steps that each move 1/n of the vector."""
_CHAINS = ("broadcast", "reduce")


def textbook(topology: Topology, collective: str) -> Times:
    """The ring of Thakur et al. 2005: steps x latency + bytes / bandwidth. Latency: of the routes around the ring, in the mean.
    Bandwidth: a GPU's links or its server's NICs, the slower, by datasheet; all-to-all sends to other servers by a GPU's share of the
    NICs, sendrecv by one NIC. Raises MeasurementError for another collective."""
    n = len(topology.gpus)
    domains = topology.groups.get("domains") or topology.groups.get("servers") or (tuple(range(n)),)
    local, several = len(domains[0]), len(domains) > 1
    inside = _scale_up(topology)
    nics = _nics(topology, domains[0]) if several else []
    outside = sum(link.bandwidth for link in nics) or inside
    latency = _hop(topology, local, len(domains))
    slower = min(inside, outside)
    if collective == "all-to-all" and several:
        share = outside / local
        return lambda size: (n - 1) * latency + max(size * (local - 1) / n / inside, size * (n - local) / n / share)
    if collective in _ROUNDS:
        rounds = _ROUNDS[collective]
        return lambda size: rounds * (n - 1) * (latency + size / n / slower)
    if collective in _CHAINS:
        return lambda size: (n - 1) * latency + size / slower
    if collective == "sendrecv":
        one = min([inside, *(link.bandwidth for link in nics)])
        return lambda size: latency + size / one
    raise MeasurementError(f"textbook: {quoted(collective)} has no formula here{nearest(collective, [*_ROUNDS, *_CHAINS, 'sendrecv'])}")


def tuner(topology: Topology, collective: str, asked: Asked) -> Times:
    """The time of the row that NCCL's tuner chooses. Raises MeasurementError where NCCL tunes nothing or its search is not known."""
    tuned(collective)
    release = version(asked.version)
    given = settings(asked.environment, release)
    graphs = graphs_of(topology, release, collnet=given.collnet == 1, cpu=asked.cpu)
    return lambda size: tune(graphs, Call(collective, size, asked.op, asked.dtype), given).choice.time_s


def straight(told: Sequence[Point]) -> Times:
    """Through two points of different size."""
    first, last = told
    slope = (last.time_s - first.time_s) / (last.size_bytes - first.size_bytes)
    return lambda size: first.time_s + slope * (size - first.size_bytes)


def _scale_up(topology: Topology) -> float:
    """What a GPU sends to others by its own links, else by PCIe [B/s]; the least of all GPUs."""
    rates = []
    for gpu in topology.gpus:
        ways: list[Link] = [data["link"] for data in topology.graph[gpu].values()]
        own = [way.bandwidth for way in ways if topology.node(way.dst).kind in ("gpu", "nvswitch")]
        rates.append(sum(own) or max(way.bandwidth for way in ways))
    return min(rates)


def _nics(topology: Topology, ranks: Sequence[int]) -> list[Link]:
    """Cables from the NICs of some ranks' servers to switches."""
    servers = {topology.node(topology.gpus[rank]).server for rank in ranks}
    nics = [node.name for node in topology.nodes if node.kind == "nic" and node.server in servers]
    cables: list[Link] = [data["link"] for nic in nics for data in topology.graph[nic].values()]
    return [cable for cable in cables if topology.node(cable.dst).kind == "switch"]


def _hop(topology: Topology, local: int, domains: int) -> float:
    """Latency of a route to the next GPU [s]: inside a domain as between its first two, and once a domain as to the next domain."""
    router = Router(topology)

    def latency(a: int, b: int) -> float:
        return sum(link.latency for link in router.route(topology.gpus[a], topology.gpus[b]))

    inside = latency(0, 1) if local > 1 else 0.0
    return inside if domains == 1 else ((local - 1) * inside + latency(local - 1, local)) / local
