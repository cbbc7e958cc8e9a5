"""What ``Topology.build`` freezes and what it refuses; the table of link types."""

import math
from dataclasses import replace

import networkx as nx
import pytest

from topologies import LINK_TYPES, Link, Node, Topology, TopologyError, link_of
from topologies.graph import both_ways

A, B = Node("a", "gpu"), Node("b", "gpu")
AB = Link("a", "b", "link", 1, 1e9, 1e-6)
BA = AB.reversed()


def test_ranks_are_the_order_of_gpus_and_the_graph_is_frozen() -> None:
    built = Topology.build("pair", [B, Node("s", "switch"), A], both_ways(AB))
    assert built.gpus == ("b", "a")
    assert built.link("b", "a") == AB.reversed()
    assert built.node("s").kind == "switch"
    with pytest.raises(nx.NetworkXError):
        built.graph.add_edge("a", "s")


def test_equality_sees_every_part() -> None:
    def build(name="x", nodes=(A, B), links=(AB, BA), groups=None, dims=()):
        return Topology.build(name, nodes, links, groups, dims)

    base = build()
    assert base == build()
    assert hash(base) == hash(build())
    for other in (
        build(name="y"), build(nodes=(B, A)), build(nodes=(A, replace(B, server=1))), build(groups={"servers": ((0, 1),)}),
        build(links=(AB, replace(AB.reversed(), lanes=2))), build(dims=(2,)), build(dims=(1, 2)),
    ):  # fmt: skip
        assert base != other


@pytest.mark.parametrize(
    ("nodes", "links", "message"),
    [
        ([A, A], [], "stands twice"),
        ([A, Node("b", "gpuu")], [], "is not one of"),
        ([A, replace(B, injection=0.0)], [], "injection 0.0"),
        ([A, replace(B, ejection=math.nan)], [], "ejection nan"),
        ([A], [], "at least 2"),
        ([A, B], [], "cannot send to"),
        ([A, B], [AB], "cannot receive from"),
        ([A, B], [replace(AB, dst="c")], 'no node "c"'),
        ([A, B], [replace(AB, dst="a")], "two different"),
        ([A, B], [AB, AB], "lanes of one link"),
        ([A, B], [replace(AB, bandwidth=0.0)], "positive and finite"),
        ([A, B], [replace(AB, bandwidth=math.inf)], "positive and finite"),
        ([A, B], [replace(AB, latency=-1e-9)], "zero or positive"),
        ([A, B], [replace(AB, latency=math.nan)], "zero or positive"),
        ([A, B], [replace(AB, lanes=0)], "lanes 0"),
    ],
)
def test_refused(nodes: list[Node], links: list[Link], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        Topology.build("bad", nodes, links)


@pytest.mark.parametrize(
    ("kind", "total"),
    [
        ("nvlink1", 80e9), ("nvlink2", 150e9), ("nvlink3", 300e9), ("nvlink4", 450e9), ("nvlink5", 900e9), ("nvlink-bridge", 56.25e9),
        ("pcie3", 15.75e9), ("pcie4", 31.5e9), ("pcie5", 63e9), ("pcie6", 118e9), ("xgmi", 64e9), ("ib-edr", 12.5e9), ("ib-hdr", 25e9),
        ("ib-ndr", 50e9), ("ib-xdr", 100e9), ("roce-400", 50e9), ("slingshot-11", 25e9),
    ],
)  # fmt: skip
def test_datasheet_rates(kind: str, total: float) -> None:
    assert LINK_TYPES[kind].bandwidth == total
    assert link_of(kind, "a", "b").bandwidth == total


def test_lanes_scale_bandwidth_and_nothing_else() -> None:
    one, six = link_of("nvlink2", "a", "b", 1), link_of("nvlink2", "a", "b")
    assert (six.lanes, six.bandwidth) == (6, 6 * one.bandwidth)
    assert six.latency == one.latency > 0
    assert all(entry.source for entry in LINK_TYPES.values())


def test_unknown_type_names_the_nearest() -> None:
    with pytest.raises(TopologyError, match='did you mean "nvlink3"'):
        link_of("nvlnk3", "a", "b")


@pytest.mark.parametrize("dims", [(3,), (2, 2), (0,), (-1, -2)])
def test_a_grid_has_one_place_a_gpu(dims: tuple[int, ...]) -> None:
    with pytest.raises(TopologyError, match=f"pair: dims {'x'.join(map(str, dims))} have .* places; needs 2, one a GPU"):
        Topology.build("pair", [A, B], [AB, BA], dims=dims)
    assert Topology.build("pair", [A, B], [AB, BA]).dims == ()
