"""Policies of routing: which ways are equal, what each policy does with them, and that parts of ways are the ways of the whole."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from itertools import pairwise, permutations

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from topologies import Link, Node, Router, Topology, TopologyError, make, names
from topologies.faults import apply_faults
from topologies.graph import both_ways
from topologies.multipath import POLICIES, Flow, Paths, mix

KINDS = {name: make(name) for name in names()}
SERVERS = ("aws-p4d", "azure-ndv4", "dgx-1v", "dgx-2", "dgx-h100", "gcp-a3-mega", "mi300x")
MANY = {
    **KINDS,
    **{f"{name}-many": make(name, {"nodes": 5}) for name in SERVERS},
    "rails": make("rail-optimised", {"nodes": 6, "gpus": 4, "unit": 2, "spines": 3}),
    "racks": make("gb200-nvl72", {"racks": 2, "gpus": 8}),
    "dead-nic": apply_faults(make("azure-ndv4", {"nodes": 3}), ["dead-nic:s0.nic2", "slow-link:s1.nic1-leaf1:x2"]),
    "slow-plane": apply_faults(make("alibaba-hpn", {"hosts": 3}), ["slow-link:s0.nic0-seg0.rail0.tor0:x2"]),
}


def best_ways(topology: Topology, src: str, dst: str) -> list[list[str]]:
    """All equal-cost shortest ways, from the words of the docs."""
    ways = list(nx.all_shortest_paths(topology.graph, src, dst))

    def cost(way: list[str]) -> tuple[int, int]:
        prices = (int(2.0**100 / topology.link(a, b).bandwidth) for a, b in pairwise(way))
        return sum(topology.node(name).kind == "gpu" for name in way[1:-1]), sum(prices)

    least = min(map(cost, ways))
    return [way for way in ways if cost(way) == least]


def by_ports(topology: Topology, ways: list[list[str]]) -> list[str]:
    """The one of them that is taken by ports, back from the destination, as routing.py words it."""
    order, back = list(topology.graph), [ways[0][-1]]
    into: dict[str, set[str]] = defaultdict(set)
    for way in ways:
        for a, b in pairwise(way):
            into[b].add(a)
    while back[-1] in into:
        ports = list(topology.graph.successors(back[-1]))
        some = sorted(into[back[-1]], key=lambda name: (ports.index(name) if name in ports else len(ports), order.index(name)))
        spread = len(back) > 1 and topology.node(back[-1]).kind != "gpu"
        back.append(some[ports.index(back[-2]) % len(some) if spread and len(some) > 1 else 0])
    return back[::-1]


def nodes_of(flow: Flow) -> list[str]:
    links = flow[0]
    return [links[0].src, *(link.dst for link in links)] if links else []


def pairs_of(topology: Topology, count: int, seed: int) -> list[tuple[str, str]]:
    every = [(a, b) for a in topology.gpus for b in topology.gpus if a != b]
    return random.Random(seed).sample(every, min(count, len(every)))


@pytest.mark.parametrize("name", MANY)
def test_ways_are_the_equal_cost_ones_and_the_shortest_policy_is_told_apart_by_ports(name: str) -> None:
    topology = MANY[name]
    router = Router(topology)
    policies = {policy: Paths(topology, policy, seed=5) for policy in POLICIES}
    for src, dst in pairs_of(topology, 60, seed=11):
        ways = best_ways(topology, src, dst)
        assert nodes_of(policies["shortest"].flow(src, dst)) == by_ports(topology, ways), (src, dst)
        assert nodes_of(policies["ecmp"].flow(src, dst, 3)) in ways
        links, fractions, _ = policies["adaptive"].flow(src, dst)
        assert {(link.src, link.dst) for link in links} == {hop for way in ways for hop in pairwise(way)}
        assert len(links) == len(fractions) == len(set(links))
        rail = nodes_of(policies["rail"].flow(src, dst))
        assert (rail[0], rail[-1]) == (src, dst)
        assert len(set(rail)) == len(rail)
        assert all(topology.graph.has_edge(a, b) for a, b in pairwise(rail))
        assert [link.dst for link in router.route(src, dst)] == by_ports(topology, ways)[1:]


@st.composite
def networks(draw: st.DrawFn) -> Topology:
    """Small and tangled: kinds at random, cables of two rates, a few of them one way, GPUs connected."""
    n = draw(st.integers(4, 11))
    kinds = ["gpu", "gpu", *draw(st.lists(st.sampled_from(["gpu", "switch", "switch", "nic", "nvswitch"]), min_size=n - 2, max_size=n - 2))]
    nodes = [Node(f"n{i}", kind) for i, kind in enumerate(draw(st.permutations(kinds)))]
    ends = {(draw(st.integers(0, i - 1)), i) for i in range(1, n)}
    ends |= set(draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] < e[1]), max_size=16)))
    links: list[Link] = []
    for a, b in draw(st.permutations(sorted(ends))):
        rate = draw(st.sampled_from([1e9, 1e9, 2e9]))
        links += both_ways(Link(f"n{a}", f"n{b}", "link", 1, rate, draw(st.sampled_from([1e-6, 3e-6]))))
    for a, b in draw(st.lists(st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1]), max_size=3)):
        if not {(f"n{a}", f"n{b}")} & {(link.src, link.dst) for link in links}:
            links.append(Link(f"n{a}", f"n{b}", "link", 1, 1e9, 1e-6))
    return Topology.build("random", nodes, links)


@settings(max_examples=100, deadline=None)
@given(networks(), st.integers(0, 2**64 - 1), st.randoms(use_true_random=False))
def test_on_any_network_ways_are_right_and_what_comes_in_goes_out(topology: Topology, seed: int, order: random.Random) -> None:
    every = [(a, b) for a in topology.graph for b in topology.graph if a != b]
    order.shuffle(every)
    shortest, ecmp, adaptive = Paths(topology), Paths(topology, "ecmp", seed), Paths(topology, "adaptive")
    for src, dst in every:
        ways = best_ways(topology, src, dst)
        assert nodes_of(shortest.flow(src, dst)) == by_ports(topology, ways)
        assert nodes_of(ecmp.flow(src, dst)) in ways
        links, fractions, latency = adaptive.flow(src, dst)
        assert latency == max(sum(topology.link(a, b).latency for a, b in pairwise(way)) for way in ways)
        balance: dict[str, float] = defaultdict(float)
        depth = nx.single_source_shortest_path_length(topology.graph, src)
        cuts: dict[int, float] = defaultdict(float)
        for link, part in zip(links, fractions, strict=True):
            balance[link.src] -= part
            balance[link.dst] += part
            cuts[depth[link.src]] += part
            others = [other for other in links if other.src == link.src]
            assert all(fractions[links.index(other)] == part for other in others)  # evenly over the next hops
        assert (balance.pop(src), balance.pop(dst)) == pytest.approx((-1, 1), abs=1e-12)
        assert all(abs(rest) < 1e-12 for rest in balance.values())
        assert set(cuts) == set(range(len(ways[0]) - 1))
        assert list(cuts.values()) == pytest.approx([1.0] * len(cuts), abs=1e-12)


def test_a_gate_on_the_way_from_another_gate_of_the_same_server() -> None:
    """From a to b by a switch, or by a NIC, to the next switch: two ways of four hops, which meet where one is inside the server."""
    nodes = [Node("a", "gpu"), Node("nic", "nic"), *(Node(name, "switch") for name in ("p", "q", "h")), Node("b", "gpu")]
    ends = [("a", "p"), ("p", "q"), ("a", "nic"), ("nic", "q"), ("q", "h"), ("h", "b")]
    seconds = set()
    for order in permutations(ends):
        topology = Topology.build("x", nodes, [way for a, b in order for way in both_ways(Link(a, b, "link", 1, 1e9, 1e-6))])
        taken = nodes_of(Paths(topology).flow("a", "b"))
        assert taken == by_ports(topology, best_ways(topology, "a", "b"))
        seconds.add(taken[1])
    assert seconds == {"p", "nic"}


def test_ways_that_meet_again_carry_exactly_all_of_the_flow() -> None:
    topology = make("leaf-spine", {"leaves": 2, "spines": 49, "gpus_per_leaf": 2})
    links, fractions, _ = Paths(topology, "adaptive").flow("gpu1", "gpu3")
    told = dict(zip(((link.src, link.dst) for link in links), fractions, strict=True))
    assert told["gpu1", "leaf0"] == told["leaf1", "gpu3"] == 1.0
    assert told["leaf0", "spine17"] == told["spine17", "leaf1"] == 1 / 49


def test_mix_is_splitmix64() -> None:
    """The first outputs of the published generator for seed 0, whose state steps by the golden ratio."""
    step = 0x9E3779B97F4A7C15
    assert [mix(i * step % 2**64) for i in range(3)] == [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]


def test_ecmp_is_a_function_of_seed_ends_and_channel_alone() -> None:
    topology = make("fat-tree", {"k": 8})
    flows = [(a, b, c) for a, b in pairs_of(topology, 150, seed=2) for c in (0, 1)]
    one = Paths(topology, "ecmp", 9)
    first = {flow: nodes_of(one.flow(*flow)) for flow in flows}
    random.Random(4).shuffle(flows)
    two = Paths(topology, "ecmp", 9)
    assert {flow: nodes_of(two.flow(*flow)) for flow in flows} == first
    other = Paths(topology, "ecmp", 10)
    assert sum(nodes_of(other.flow(*flow)) != first[flow] for flow in flows) > 150
    assert sum(first[a, b, 0] != first[a, b, 1] for a, b, c in flows if c) > 75


def test_a_seed_is_no_source() -> None:
    """Seed 3 and the GPU of number 7 are not seed 7 and the GPU of number 3."""
    topology = make("fat-tree", {"k": 8})
    number = {name: i for i, name in enumerate(topology.graph)}
    leaf = topology.gpus[:4]
    assert [number[gpu] for gpu in leaf] == [0, 1, 2, 3]
    taken = {
        (seed, src): tuple(tuple(nodes_of(paths.flow(leaf[src], "gpu127", channel))[1:]) for channel in range(8))
        for seed in range(4)
        for paths in [Paths(topology, "ecmp", seed)]
        for src in range(4)
    }
    assert len(set(taken.values())) == 16


def test_ecmp_spreads_over_both_tiers_of_a_fat_tree_independently() -> None:
    """16 ways through a k = 8 tree: 4 aggregation switches, then 4 core switches each. 5 sigma of a fair die."""
    paths = Paths(make("fat-tree", {"k": 8}), "ecmp", 1)
    n = 4000
    seen = Counter(nodes_of(paths.flow("gpu0", "gpu127", channel))[2:4][1] for channel in range(n))
    assert len(seen) == 16
    assert all(abs(count - n / 16) < 5 * (n * 15 / 256) ** 0.5 for count in seen.values())


def test_both_planes_of_hpn_are_used() -> None:
    topology = make("alibaba-hpn", {"segments": 2, "hosts": 4})
    src, dst = "s0.gpu3", "s7.gpu3"
    planes = lambda flow: Counter(link.dst.split(".")[0] for link in flow[0] if link.dst.startswith("plane"))  # noqa: E731
    assert len(planes(Paths(topology).flow(src, dst))) == 1
    adaptive = Paths(topology, "adaptive").flow(src, dst)
    assert planes(adaptive).keys() == {"plane0", "plane1"}
    nic = {link.dst: part for link, part in zip(adaptive[0], adaptive[1], strict=True) if link.src == "s0.nic3"}
    assert nic == {"seg0.rail3.tor0": 0.5, "seg0.rail3.tor1": 0.5}
    ecmp = Paths(topology, "ecmp", 3)
    assert {plane for channel in range(12) for plane in planes(ecmp.flow(src, dst, channel))} == {"plane0", "plane1"}


def rail_way(topology: Topology, src: str, dst: str) -> list[str]:
    return nodes_of(Paths(topology, "rail").flow(src, dst))[1:-1]


def test_rail_goes_by_nvlink_to_the_rail_of_the_destination() -> None:
    rails = MANY["rails"]
    assert rail_way(rails, "s0.gpu0", "s1.gpu2") == ["s0.nvswitch", "s0.gpu2", "s0.nic2", "unit0.leaf2", "s1.nic2"]
    assert rail_way(rails, "s0.gpu2", "s1.gpu2") == ["s0.nic2", "unit0.leaf2", "s1.nic2"]
    far = rail_way(rails, "s0.gpu1", "s5.gpu3")
    assert far[:4] == ["s0.nvswitch", "s0.gpu3", "s0.nic3", "unit0.leaf3"]
    assert far[5:] == ["unit2.leaf3", "s5.nic3"]
    assert rail_way(rails, "s0.gpu1", "s0.gpu3") == ["s0.nvswitch"]
    assert rail_way(make("rail-only"), "s0.gpu1", "s3.gpu6") == ["s0.nvswitch", "s0.gpu6", "s0.nic6", "leaf6", "s3.nic6"]


def test_rail_takes_no_detour_without_need_or_without_nvlink() -> None:
    ndv4 = make("azure-ndv4", {"nodes": 2})  # GPUs 0 and 1 share a PCIe switch with NICs 0 and 1
    assert rail_way(ndv4, "s0.gpu0", "s1.gpu1") == ["s0.pcie0", "s0.nic1", "leaf1", "s1.nic1", "s1.pcie0"]
    assert rail_way(ndv4, "s0.gpu0", "s1.gpu2")[:2] == ["s0.nvswitch", "s0.gpu2"]
    p4d = make("aws-p4d", {"nodes": 2})  # two GPUs a rail: the relay is the one at the same place
    assert rail_way(p4d, "s0.gpu1", "s1.gpu4")[:4] == ["s0.nvswitch", "s0.gpu5", "s0.pcie2", "s0.nic2"]
    racks = MANY["racks"]
    assert rail_way(racks, "s0.gpu0", "s1.gpu3") == ["rack0.nvswitch"]
    assert rail_way(racks, "s0.gpu0", "s2.gpu3")[:4] == ["rack0.nvswitch", "s0.gpu3", "s0.cpu1", "s0.nic3"]
    nodes = [Node(f"s{s}.{part}{i}", kind, s) for s in (0, 1) for part, kind in (("gpu", "gpu"), ("nic", "nic")) for i in (0, 1)]
    nodes += [*(Node(f"s{s}.cpu", "cpu", s) for s in (0, 1)), Node("leaf0", "switch"), Node("leaf1", "switch"), Node("spine", "switch")]
    ends = [(f"s{s}.gpu{i}", other) for s in (0, 1) for i in (0, 1) for other in (f"s{s}.cpu", f"s{s}.nic{i}")]
    ends += [(f"s{s}.nic{i}", f"leaf{i}") for s in (0, 1) for i in (0, 1)] + [("leaf0", "spine"), ("leaf1", "spine")]
    cables = [way for a, b in ends for way in both_ways(Link(a, b, "link", 1, 1e9, 1e-6))]
    boxes = Topology.build("boxes", nodes, cables, {"rails": ((0, 2), (1, 3)), "servers": ((0, 1), (2, 3))})
    assert rail_way(boxes, "s0.gpu0", "s1.gpu1") == ["s0.nic0", "leaf0", "spine", "leaf1", "s1.nic1"]
    lame = MANY["dead-nic"]
    assert rail_way(lame, "s0.gpu0", "s1.gpu2") == nodes_of(Paths(lame).flow("s0.gpu0", "s1.gpu2"))[1:-1]


def test_overrides_go_over_every_policy() -> None:
    topology = make("leaf-spine", {"leaves": 2, "gpus_per_leaf": 2, "spines": 3})
    told = ("gpu0", "leaf0", "spine2", "leaf1", "gpu3")
    for policy in POLICIES:
        for way in (told, (*told[:2], "spine0", *told[3:])):
            paths = Paths(topology, policy, overrides={("gpu0", "gpu3"): way})
            links, fractions, latency = paths.flow("gpu0", "gpu3")
            assert (tuple(nodes_of((links, fractions, latency))), fractions, latency) == (way, (), 4e-6)
            assert paths.flow("gpu0", "gpu2") == Paths(topology, policy).flow("gpu0", "gpu2")


@pytest.mark.parametrize(
    ("way", "said"),
    [
        (("gpu0", "leaf0", "spine9", "leaf1", "gpu3"), 'override gpu0 -> gpu3: there is no node "spine9"; did you mean "spine'),
        (("gpu0", "leaf0", "leaf1", "gpu3"), "there is no link leaf0 -> leaf1; known: gpu0, gpu1, spine0"),
        (("gpu1", "leaf0", "spine0", "leaf1", "gpu3"), "leads from gpu1 to gpu3; write all its nodes, the first gpu0 and the last gpu3"),
        (("gpu0", "leaf0", "spine0", "leaf1", "gpu2"), "leads from gpu0 to gpu2"),
        (("gpu0", "leaf0", "spine0", "leaf0", "spine1", "leaf1", "gpu3"), "passes leaf0 twice"),
        ((), "leads nowhere"),
    ],
)
def test_an_override_that_is_no_way_is_refused(way: tuple[str, ...], said: str) -> None:
    topology = make("leaf-spine", {"leaves": 2, "gpus_per_leaf": 2, "spines": 3})
    with pytest.raises(TopologyError) as caught:
        Paths(topology, overrides={("gpu0", "gpu3"): way})
    assert said in str(caught.value)


def test_unknown_ends_are_refused_by_every_policy() -> None:
    for policy in POLICIES:
        with pytest.raises(TopologyError, match='no node "gpu99"'):
            Paths(make("ring"), policy).flow("gpu0", "gpu99")


def test_routes_of_2048_gpus_on_rails_take_a_few_seconds_at_most() -> None:
    import time

    topology = make("rail-optimised", {"nodes": 256, "spines": 32})
    router, started = Router(topology), time.perf_counter()
    hops = Counter(len(router.route(topology.gpus[r], topology.gpus[(r + shift) % 2048])) for r in range(2048) for shift in (1, 8, 64, 512))
    assert hops == {2: 7 * 256, 4: 2048 * 4 - 7 * 256 - hops[6], 6: hops[6]}
    assert time.perf_counter() - started < 20
