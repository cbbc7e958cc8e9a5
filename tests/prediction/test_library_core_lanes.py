"""Channels as lanes, and the ways of calls between nodes: what is put together is the same, and NICs are those of the search."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from math import gcd

import pytest
from library_calls import CASES, built, calls

from prediction.library import schedules
from prediction.library.lanes import Lane, lanes
from prediction.library.predict import Calls, Choice
from prediction.library.sites import Ways
from prediction.nccl.graphs import Graph
from topologies.graph import Link, Node, NodeKind, Topology, both_ways

SEVERAL = [(name, nodes) for name, nodes in CASES if nodes > 1]
Asked = tuple[int, str, str, int]


class Noted(Ways):
    """Ways that remember what they were asked for."""

    def __init__(self, call: Calls) -> None:
        super().__init__(call.topology)
        self.asked: list[Asked] = []

    def over(self, src: int, out: str, into: str, dst: int) -> None:
        self.asked.append((src, out, into, dst))
        super().over(src, out, into, dst)


def _key(graph: Graph, channel: int) -> tuple[tuple[int, ...], tuple[int, int], int]:
    c = channel % graph.channels
    return graph.orders[c], graph.nics[c] if graph.nics else (0, 0), 0 if graph.pattern == "ring" else channel // graph.channels % 2


@pytest.mark.parametrize(("name", "nodes"), CASES)
@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_lanes_stand_for_equal_channels_in_equal_numbers(name: str, nodes: int, algorithm: str) -> None:
    graphs = calls(name, nodes, "all-reduce").graphs
    assert graphs is not None
    graph = graphs.ring if algorithm == "ring" else graphs.tree
    for channels in (1, 2, 3, graph.channels, 2 * graph.channels, 2 * graph.channels - 1, 64):
        wanted = Counter(_key(graph, channel) for channel in range(channels))
        found = Counter((lane.order, (lane.nic_in, lane.nic_out), lane.tree) for lane in lanes(graph, channels))
        unit = channels // sum(found.values())
        assert {key: unit * count for key, count in found.items()} == wanted
        assert gcd(*found.values()) == 1, "no fewer lanes would do"
        for lane in lanes(graph, channels):
            assert _key(graph, lane.channel)[:2] == (lane.order, (lane.nic_in, lane.nic_out))


def _one_by_one(graph: Graph, channels: int) -> list[Lane]:
    found = []
    for channel in range(channels):
        order, (nic_in, nic_out), tree = _key(graph, channel)
        found.append(Lane(channel % graph.channels, order, nic_in, nic_out, tree))
    return found


@pytest.mark.parametrize(
    ("nodes", "algorithm", "protocol", "channels", "pieces"),
    [
        (1, "ring", "simple", 24, 2), (1, "ring", "ll", 24, 8), (1, "tree", "simple", 24, 1), (1, "tree", "ll128", 24, 1),
        (2, "ring", "simple", 16, 2), (2, "tree", "simple", 16, 1), (2, "tree", "ll", 16, 1),
    ],
)  # fmt: skip
def test_a_lane_takes_as_long_as_its_channels(
    monkeypatch: pytest.MonkeyPatch, nodes: int, algorithm: str, protocol: str, channels: int, pieces: int
) -> None:
    call = calls("dgx-a100", nodes, "all-reduce")
    whole = channels * len(call.topology.gpus) * pieces * 4096
    choice = Choice(algorithm, protocol, channels)  # type: ignore[arg-type]
    together = call._time(choice, whole)
    monkeypatch.setattr(schedules, "lanes", _one_by_one)
    assert call._time(choice, whole) == pytest.approx(together, rel=1e-9)


def _ways(name: str, nodes: int, algorithm: str, channels: int | None = None) -> tuple[Calls, Noted]:
    call = calls(name, nodes, "all-reduce")
    assert call.graphs is not None
    graph = call.graphs.ring if algorithm == "ring" else call.graphs.tree
    noted = Noted(call)
    call._loops(Choice(algorithm, "simple", channels or 2 * graph.channels), 1 << 30, noted)
    return call, noted


@pytest.mark.parametrize(("name", "nodes"), SEVERAL)
@pytest.mark.parametrize("algorithm", ["ring", "tree"])
def test_ways_pass_the_nics_of_the_search(name: str, nodes: int, algorithm: str) -> None:
    call, noted = _ways(name, nodes, algorithm)
    assert noted.asked
    wanted: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for src, out, into, dst in noted.asked:
        wanted.setdefault((call.topology.gpus[src], call.topology.gpus[dst]), set()).add((out, into))
    off_rail = _crossing(noted.asked)
    for ends, nics in wanted.items():
        if ends not in noted.found:  # rails that nothing joins
            assert nodes % 2
            assert off_rail >= nics
            continue
        way = noted.found[ends]
        assert (way[0], way[-1]) == ends
        assert len(set(way)) == len(way), f"{way} passes a node twice"
        assert all(call.topology.graph.has_edge(a, b) for a, b in pairwise(way))
        passed = [node for node in way if noted.kinds[node] == "nic"]
        assert tuple(passed) in nics, f"{way} passes {passed}, asked for {nics}"
        _takes_pxn_only_to_far_nics(call, noted, way, passed)


def _crossing(asked: Sequence[Asked]) -> set[tuple[str, str]]:
    """Pairs of NICs of different numbers."""
    return {(out, into) for _, out, into, _ in asked if out.rpartition("nic")[2] != into.rpartition("nic")[2]}


def _takes_pxn_only_to_far_nics(call: Calls, noted: Noted, way: Sequence[str], passed: Sequence[str]) -> None:
    """A way goes through another GPU only where that GPU sits beside the NIC and the end does not."""
    for end, nic, part in ((way[0], passed[0], way[1:]), (way[-1], passed[1], way[-2::-1])):
        hops = part[: part.index(nic)]
        through = [node for node in hops if noted.kinds[node] == "gpu"]
        near = end in noted.near[nic]
        assert not (near and through), f"{way} goes through {through}, though {end} is beside {nic}"
        assert all(gpu in noted.near[nic] for gpu in through)
        linked = any(noted.kinds[node] == "nvswitch" for node in call.topology.graph[end])
        if linked and noted.near[nic] and not near:
            assert through, f"{way}: {end} reaches {nic} over PCIe, though NVLink leads beside it"


@pytest.mark.parametrize("nodes", [2, 4])
@pytest.mark.parametrize("channels", [1, 2, 3, 16])
def test_a_crossing_ring_stays_on_the_rail(nodes: int, channels: int) -> None:
    """H100: it leaves by another NIC than it came by, and arrives at the NIC of the number that it left by, even where the call does not
    use the channel that gives odd nodes their order."""
    call, noted = _ways("dgx-h100", nodes, "ring", channels)
    assert call.graphs is not None
    assert call.graphs.ring.cross_nic == 2
    assert all(nic_in != nic_out for nic_in, nic_out in call.graphs.ring.nics)
    assert len(noted.asked) == nodes * len(lanes(call.graphs.ring, channels))
    assert not _crossing(noted.asked)
    assert len(noted.found) == len(noted.asked), "there is a way along the rail"


def test_an_odd_ring_crosses_once_a_channel() -> None:
    """Three nodes: the last and the first are both even, so the ring must change rails; rails that nothing joins have no such way."""
    _, noted = _ways("dgx-h100", 3, "ring")
    assert len(_crossing(noted.asked)) == len(noted.asked) / 3
    assert len(noted.found) == len(noted.asked) * 2 / 3


@pytest.mark.parametrize(("name", "nodes"), [("dgx-a100", 4), ("dgx-b200", 2)])
def test_a_ring_that_does_not_cross_comes_and_leaves_by_one_nic(name: str, nodes: int) -> None:
    call, noted = _ways(name, nodes, "ring")
    assert call.graphs is not None
    assert call.graphs.ring.cross_nic == 0
    assert not _crossing(noted.asked)
    pxn = {ends for ends, way in noted.found.items() if noted.kinds[way[1]] == "nvswitch"}
    assert len(pxn) == (len(noted.found) if name == "dgx-b200" else 0), "B200 leaves over the GPU beside the NIC, A100 shares its switch"


def test_pxn_goes_over_nvlink_where_the_cpu_would_be_nearer() -> None:
    """The GPU on the CPU's own port reaches the NIC through the GPU beside it, with as many hops more as that takes."""
    nodes, cables = [Node("leaf", "switch")], []
    for s in range(2):
        kinds: dict[str, NodeKind] = {"gpu0": "gpu", "gpu1": "gpu", "sw": "nvswitch", "cpu": "cpu", "pcie": "pcie", "nic": "nic"}
        nodes += [Node(f"s{s}.{name}", kind, s) for name, kind in kinds.items()]
        inside = [("gpu0", "cpu"), ("gpu1", "pcie"), ("pcie", "cpu"), ("nic", "pcie"), ("gpu0", "sw"), ("gpu1", "sw")]
        ends = [(f"s{s}.{a}", f"s{s}.{b}", "nvlink4" if b == "sw" else "pcie5") for a, b in inside] + [(f"s{s}.nic", "leaf", "ib-ndr")]
        cables += [cable for a, b, kind in ends for cable in both_ways(Link(a, b, kind, 1, 5e10, 1e-6))]
    ways = Ways(Topology.build("two", nodes, cables, {"servers": ((0, 1), (2, 3))}))
    ways.over(0, "s0.nic", "s1.nic", 3)
    ways.over(1, "s0.nic", "s1.nic", 2)
    found = {ends: " ".join(way) for ends, way in ways.found.items()}
    assert found == {
        ("s0.gpu0", "s1.gpu1"): "s0.gpu0 s0.sw s0.gpu1 s0.pcie s0.nic leaf s1.nic s1.pcie s1.gpu1",
        ("s0.gpu1", "s1.gpu0"): "s0.gpu1 s0.pcie s0.nic leaf s1.nic s1.pcie s1.gpu1 s1.sw s1.gpu0",
    }


def test_the_first_way_of_two_gpus_counts() -> None:
    """A100, 4 nodes: two channels of a tree join the same GPUs over different NICs; the simulation knows one way of a pair."""
    call, noted = _ways("dgx-a100", 4, "tree")
    pairs: dict[tuple[int, int], list[tuple[str, str]]] = {}
    for src, out, into, dst in noted.asked:
        pairs.setdefault((src, dst), []).append((out, into))
    several = {pair: nics for pair, nics in pairs.items() if len(set(nics)) > 1}
    assert several
    gpus = call.topology.gpus
    for (src, dst), nics in several.items():
        assert tuple(node for node in noted.found[gpus[src], gpus[dst]] if noted.kinds[node] == "nic") == nics[0]


def test_every_machine_has_equal_nodes_with_their_nics() -> None:
    for name, nodes in CASES:
        call = calls(name, nodes, "all-reduce")
        assert len(call.sites) == nodes
        assert sorted(rank for site in call.sites for rank in site.ranks) == list(range(len(built(name, nodes).gpus)))
        nics = [nic for site in call.sites for nic in site.nics]
        assert len(set(nics)) == len(nics)
