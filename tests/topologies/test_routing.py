"""Routes: shortest, through switches rather than GPUs, wide rather than narrow, spread, and independent of earlier queries."""

import random
import time
from collections import Counter
from dataclasses import replace

import networkx as nx
import pytest

from topologies import Link, Node, Router, Topology, TopologyError, make, names
from topologies.graph import both_ways


def cables(*ends: tuple[str, str, float]) -> list[Link]:
    return [way for a, b, rate in ends for way in both_ways(Link(a, b, "link", 1, rate, 1e-6))]


def via(topology: Topology, src: str, dst: str) -> list[str]:
    return [link.dst for link in Router(topology).route(src, dst)][:-1]


@pytest.mark.parametrize("name", names())
def test_routes_are_shortest_and_joined(name: str) -> None:
    topology = make(name)
    router, lengths = Router(topology), dict(nx.all_pairs_shortest_path_length(topology.graph))
    for src in topology.gpus:
        for dst in topology.gpus:
            route = router.route(src, dst)
            assert len(route) == lengths[src][dst]
            ends = [src, *(link.dst for link in route)]
            assert [link.src for link in route] == ends[:-1]
            assert ends[-1] == dst


@pytest.mark.parametrize("name", ["dgx-a100", "fat-tree", "torus", "dgx-1v"])
def test_answer_does_not_depend_on_the_order_of_queries(name: str) -> None:
    topology = make(name)
    pairs = [(a, b) for a in topology.graph for b in topology.graph]
    first = Router(topology)
    routes = {pair: first.route(*pair) for pair in pairs}
    random.Random(1).shuffle(pairs)
    second = Router(topology)
    assert {pair: second.route(*pair) for pair in pairs} == routes


def test_same_node_needs_no_link() -> None:
    assert Router(make("ring")).route("gpu3", "gpu3") == ()


def test_a_switch_is_preferred_to_a_wider_gpu() -> None:
    nodes = [Node("a", "gpu"), Node("g", "gpu"), Node("s", "switch"), Node("b", "gpu")]
    ends = [("a", "g", 9e9), ("g", "b", 9e9), ("a", "s", 1e9), ("s", "b", 1e9)]
    for order in (ends, ends[::-1]):
        assert via(Topology.build("x", nodes, cables(*order)), "a", "b") == ["s"]


def test_fewer_hops_beat_wider_ones_and_wider_beat_order() -> None:
    nodes = [Node("a", "gpu"), Node("b", "gpu"), Node("s", "switch"), Node("t", "switch")]
    ends = [("a", "s", 1e9), ("s", "b", 1e9), ("a", "t", 2e9), ("t", "b", 2e9)]
    for order in (ends, ends[::-1]):
        assert via(Topology.build("x", nodes, cables(*order)), "a", "b") == ["t"]
    assert via(Topology.build("x", nodes, cables(*ends, ("a", "b", 1e6))), "a", "b") == []


def test_dgx_1v_passes_through_the_gpu_with_the_wider_links() -> None:
    assert via(make("dgx-1v"), "gpu0", "gpu5") == ["gpu4"]


def test_each_gpu_of_a_pcie_pair_uses_its_own_nic() -> None:
    router = Router(make("dgx-a100", {"nodes": 2}))
    for g in range(8):
        names_of = [link.dst for link in router.route(f"s0.gpu{g}", f"s1.gpu{g}")]
        assert names_of == [f"s0.pcie{g // 2}", f"s0.nic{g}", f"leaf{g}", f"s1.nic{g}", f"s1.pcie{g // 2}", f"s1.gpu{g}"]


def test_a_shift_by_one_pod_loads_every_link_of_a_fat_tree_at_most_once() -> None:
    """Destination-modulo routing is free of contention for shifts (Zahavi 2012)."""
    topology = make("fat-tree", {"k": 8})
    router, n, load = Router(topology), 128, Counter()
    for rank in range(n):
        load.update((link.src, link.dst) for link in router.route(topology.gpus[rank], topology.gpus[(rank + 16) % n]))
    assert max(load.values()) == 1


def test_torus_routes_are_dimension_ordered() -> None:
    topology = make("torus", {"dims": "5x5"})
    place = {gpu: divmod(rank, 5) for rank, gpu in enumerate(topology.gpus)}
    router = Router(topology)
    for src in topology.gpus:
        for dst in topology.gpus:
            axes = [0 if place[link.src][0] != place[link.dst][0] else 1 for link in router.route(src, dst)]
            assert axes == sorted(axes, reverse=True)


def test_unknown_node_and_missing_way_are_refused() -> None:
    topology = make("ring")
    with pytest.raises(TopologyError, match='no node "gpu99"; did you mean "gpu'):
        Router(topology).route("gpu0", "gpu99")
    lonely = Topology.build("x", [*topology.nodes, Node("s", "switch")], topology.links)
    with pytest.raises(TopologyError, match="no way from gpu0 to s"):
        Router(lonely).route("gpu0", "s")


def test_extreme_rates_still_route() -> None:
    topology = make("ring", {"gpus": 4})
    slow = Topology.build("x", topology.nodes, [replace(link, bandwidth=1e-300) for link in topology.links])
    assert len(Router(slow).route("gpu0", "gpu2")) == 2


def test_neighbours_on_1024_gpus_take_a_few_seconds_at_most() -> None:
    topology = make("dgx-h100", {"nodes": 128})
    router, started = Router(topology), time.perf_counter()
    hops = [len(router.route(topology.gpus[r], topology.gpus[(r + 1) % 1024])) for r in range(1024)]
    assert Counter(hops)[2] == 896
    assert time.perf_counter() - started < 20
