"""What is alike: bounds that look at one of many alike ranks are those that look at all, to the last bit and word."""

from __future__ import annotations

import pytest

import sim.bounds
from algorithms.collectives import ALL_GATHER, ALL_REDUCE, ALL_TO_ALL, BROADCAST, GATHER, REDUCE_SCATTER, Collective
from sim.bounds import bounds
from sim.cuts import Network
from sim.symmetry import Symmetry, symmetry
from topologies import make
from topologies.graph import Link, Node, Topology, both_ways

M = 840 * 4096
MACHINES = {
    "star": make("star", {"gpus": 7}),
    "slow-leg": Topology.build(
        "slow-leg",
        [*(Node(f"g{i}", "gpu") for i in range(5)), Node("s", "switch")],
        [way for i in range(5) for way in both_ways(Link(f"g{i}", "s", "link", 1, 1e9 if i == 3 else 2e9, 1e-6 * (1 + (i == 2))))],
    ),
    "leaf-spine": make("leaf-spine", {"leaves": 3, "gpus_per_leaf": 3, "spines": 2, "oversubscription": 2.0}),
    "rails": make("rail-optimised", {"nodes": 5, "gpus": 3, "unit": 2, "spines": 2}),
    "rail-only": make("rail-only", {"nodes": 3, "gpus": 2}),
    "ring": make("ring", {"gpus": 6}),
}


def test_what_is_alike() -> None:
    rails = MACHINES["rails"]  # servers 0, 1 | 2, 3 | 4 by unit; rank 0 stays where it is, and with it its server
    found = symmetry(rails, rails.gpus, frozenset({rails.gpus[0]}))
    assert found.first == (0, 1, 2, 3, 4, 5, 6, 7, 8, 6, 7, 8, 12, 13, 14)
    assert found.like((6, 7, 8)) == found.like((9, 10, 11)) != found.like((12, 13, 14))
    assert found.like((6, 9)) != found.like((9, 6))  # of two servers: not exchanged as a whole
    slow = MACHINES["slow-leg"]
    assert symmetry(slow, slow.gpus, frozenset({"g0"})).first == (0, 1, 2, 3, 1)
    ports = Topology.build(
        "ports",
        [*(Node(f"g{i}", "gpu", injection=9e9 - (i == 2), ejection=8e9 - (i == 4)) for i in range(6)), Node("s", "switch")],
        [Link(f"g{i}", "s", "link", 1, 2e9, 1e-6 + 1e-9 * (i == 3)) for i in range(6)]
        + [Link("s", f"g{i}", "link", 1, 2e9, 1e-6 + 1e-9 * (i == 1)) for i in range(6)],
    )
    assert symmetry(ports, ports.gpus, frozenset()).first == (0, 1, 2, 3, 4, 0)
    ring = MACHINES["ring"]
    assert symmetry(ring, ring.gpus, frozenset()).kinds == list(range(6))  # turned, but not exchanged in pairs


@pytest.mark.parametrize("collective", [ALL_REDUCE, ALL_GATHER, REDUCE_SCATTER, BROADCAST, GATHER, ALL_TO_ALL], ids=lambda c: c.name)
@pytest.mark.parametrize("name", MACHINES)
def test_bounds_are_those_of_all_ranks(name: str, collective: Collective, monkeypatch: pytest.MonkeyPatch) -> None:
    found = [bounds(MACHINES[name], collective, M, root=root, overhead=1e-6) for root in (0, 2)]
    monkeypatch.setattr(sim.bounds, "symmetry", lambda topology, ranks, fixed: Symmetry.none(len(ranks)))
    assert found == [bounds(MACHINES[name], collective, M, root=root, overhead=1e-6) for root in (0, 2)]


@pytest.mark.parametrize("collective", [ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL], ids=lambda c: c.name)
@pytest.mark.parametrize("name", MACHINES)
def test_cheap_bounds_are_bounds(name: str, collective: Collective, monkeypatch: pytest.MonkeyPatch) -> None:
    exact = bounds(MACHINES[name], collective, M, root=2)
    monkeypatch.setattr(sim.bounds, "EXACT_WORK", 0)
    cheap = bounds(MACHINES[name], collective, M, root=2)
    assert 0 < cheap.bandwidth_s <= exact.bandwidth_s
    if collective is ALL_REDUCE and name in ("star", "leaf-spine", "rails"):
        assert cheap == exact


def test_near_cuts_go_around_servers() -> None:
    machine = make("dgx-h100", {"nodes": 3})
    net, groups = Network.of(machine, range(24)), machine.groups["servers"]
    for number, cut in enumerate(net.near_cuts(groups, range(3))):
        least = net.least_cut(groups[number], [rank for rank in range(24) if rank not in groups[number]])
        assert (cut.ranks, cut.arcs, cut.rate) == (least.ranks, least.arcs, least.rate)


def test_a_star_of_very_many_ranks_has_the_bound_of_its_ports() -> None:
    n = 4096
    found = bounds(make("star", {"gpus": n, "bandwidth": 25e9, "latency": 0.0}), ALL_REDUCE, n << 12)
    assert found.bandwidth_s == pytest.approx(2 * (n - 1) * (n << 12) / (n * 25e9), rel=1e-12)
    assert found.limiting == "ports of all 4096 ranks together (102.4 TB/s in)"
