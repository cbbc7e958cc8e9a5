"""Faults: what they change and nothing else, what they cut off, and what is refused."""

import math
from dataclasses import replace

import networkx as nx
import pytest

from topologies import Link, Node, Router, Topology, TopologyError, make, names, read_cluster, write_cluster
from topologies.faults import FAULTS, Fault, apply_faults, parse_fault
from topologies.graph import both_ways

PAIR = make("dgx-h100", {"nodes": 2})
HYPHENS = Topology.build(
    "hyphens",
    [Node("a-b", "gpu"), Node("c", "gpu"), Node("b-c", "switch"), Node("a", "switch")],
    [way for x, y in (("a-b", "c"), ("a-b", "a"), ("a", "b-c"), ("b-c", "c")) for way in both_ways(Link(x, y, "link", 2, 8e9, 1e-6))],
)


def changed(before: Topology, after: Topology) -> set[tuple[str, str]]:
    """Ends of the links that are other or gone."""
    left = {(link.src, link.dst): link for link in after.links}
    return {(link.src, link.dst) for link in before.links if left.get((link.src, link.dst)) != link}


def both(*pairs: tuple[str, str]) -> set[tuple[str, str]]:
    return {ends for a, b in pairs for ends in ((a, b), (b, a))}


def test_no_fault_is_the_same_topology() -> None:
    assert apply_faults(PAIR, []) is PAIR


def test_slow_gpu_has_slow_links_and_ports() -> None:
    star = make("star")
    limited = Topology.build("x", [replace(node, injection=80e9, ejection=40e9) for node in star.nodes], star.links)
    for spelt in ("slow-gpu:3:x1.6", "slow-gpu:gpu3:x1.6"):
        slow = apply_faults(limited, [spelt])
        assert changed(limited, slow) == both(("gpu3", "switch"))
        assert slow.link("gpu3", "switch").bandwidth == 25e9 / 1.6
        assert (slow.node("gpu3").injection, slow.node("gpu3").ejection) == (80e9 / 1.6, 40e9 / 1.6)
        assert [node for node in slow.nodes if node not in limited.nodes] == [slow.node("gpu3")]
    assert math.isinf(apply_faults(PAIR, ["slow-gpu:3:x2"]).node("s0.gpu3").injection)
    assert changed(PAIR, apply_faults(PAIR, ["slow-gpu:12:x2"])) == both(("s1.gpu4", "s1.nvswitch"), ("s1.gpu4", "s1.pcie4"))


def test_slow_link_both_ways_or_one() -> None:
    assert changed(PAIR, apply_faults(PAIR, ["slow-link:s0.gpu3-s0.nvswitch:x2"])) == both(("s0.gpu3", "s0.nvswitch"))
    one = apply_faults(PAIR, ["slow-link:s0.gpu3>s0.nvswitch:x2", "slow-link:s0.gpu3>s0.nvswitch:x2"])
    assert changed(PAIR, one) == {("s0.gpu3", "s0.nvswitch")}
    assert one.link("s0.gpu3", "s0.nvswitch").bandwidth == 450e9 / 4


def test_lanes_go_with_their_bandwidth() -> None:
    for lanes in (1, 17):
        fewer = apply_faults(PAIR, [f"lanes:s1.gpu7-s1.nvswitch:{lanes}"])
        assert changed(PAIR, fewer) == both(("s1.gpu7", "s1.nvswitch"))
        back = fewer.link("s1.nvswitch", "s1.gpu7")
        assert (back.lanes, back.bandwidth) == (18 - lanes, (18 - lanes) * 25e9)
    twice = apply_faults(PAIR, ["lanes:s1.gpu7-s1.nvswitch:9", "lanes:s1.gpu7-s1.nvswitch:8"])
    assert twice.link("s1.gpu7", "s1.nvswitch").bandwidth == 25e9
    with pytest.raises(TopologyError, match="has 9 lanes; write 1 to 8"):
        apply_faults(PAIR, ["lanes:s1.gpu7-s1.nvswitch:9", "lanes:s1.gpu7-s1.nvswitch:9"])


def test_background_traffic_takes_its_share_of_both_ways_or_one() -> None:
    busy = apply_faults(PAIR, ["background:s0.nic3-leaf3:0.3"])
    assert changed(PAIR, busy) == both(("s0.nic3", "leaf3"))
    cable = PAIR.link("leaf3", "s0.nic3")
    assert busy.link("leaf3", "s0.nic3") == replace(cable, bandwidth=cable.bandwidth * (1 - 0.3))  # latency and lanes stay
    one = apply_faults(PAIR, ["background:s0.nic3>leaf3:0.5", "background:s0.nic3>leaf3:.5"])
    assert changed(PAIR, one) == {("s0.nic3", "leaf3")}
    assert one.link("s0.nic3", "leaf3").bandwidth == cable.bandwidth / 4  # each a share of what the other leaves
    assert changed(HYPHENS, apply_faults(HYPHENS, ["background:a-b-a:0.9"])) == both(("a-b", "a"))


RAILS = ["dgx-h100", "dgx-a100", "dgx-1v", "aws-p4d", "aws-p5", "gh200-quad", "mi300x", "superpod-h100", "rail-only"]


@pytest.mark.parametrize("name", RAILS)
def test_degraded_rail_is_the_cables_of_its_nics(name: str) -> None:
    cluster = make(name, {"nodes": 2})
    slow = apply_faults(cluster, ["degraded-rail:2:x2"])
    ends = [(f"s{s}.nic2", next(n for n in cluster.graph[f"s{s}.nic2"] if cluster.node(n).kind == "switch")) for s in range(2)]
    assert changed(cluster, slow) == both(*ends)
    assert slow.link(*ends[0]).bandwidth == cluster.link(*ends[0]).bandwidth / 2


def test_dead_link_nic_node_and_uplink_are_gone_and_order_stays() -> None:
    big = make("dgx-h100", {"nodes": 33})
    for fault, gone in (
        ("dead-link:s0.gpu3-s0.nvswitch", both(("s0.gpu3", "s0.nvswitch"))),
        ("dead-link:s0.gpu3>s0.nvswitch", {("s0.gpu3", "s0.nvswitch")}),
        ("dead-uplink:unit0.leaf0-spine1", both(("unit0.leaf0", "spine1"))),
        ("dead-nic:s4.nic2", both(("s4.nic2", "s4.pcie2"), ("s4.nic2", "unit0.leaf2"))),
        ("dead-node:spine7", both(*((leaf, "spine7") for leaf in big.graph["spine7"]))),
    ):
        less = apply_faults(big, [fault])
        assert less.links == [link for link in big.links if (link.src, link.dst) not in gone]
        assert less.nodes == [node for node in big.nodes if node.name != fault.partition(":")[2]]
        assert (less.gpus, less.groups, less.dims) == (big.gpus, big.groups, big.dims)
        assert less.name == f"{big.name} + {fault}"


def test_jitter_is_drawn_by_the_seed_and_bounded() -> None:
    ways = [apply_faults(PAIR, ["jitter:0.1"], seed=seed) for seed in (1, 1, 2)]
    assert ways[0] == ways[1]
    assert ways[0] != ways[2]
    factors = [after.latency / before.latency for before, after in zip(PAIR.links, ways[0].links, strict=True)]
    assert 0.9 <= min(factors) < 0.93 < 1.07 < max(factors) <= 1.1
    assert [replace(link, latency=0) for link in ways[0].links] == [replace(link, latency=0) for link in PAIR.links]
    other = apply_faults(PAIR, ["dead-nic:s0.nic0", "jitter:0.1"], seed=1)
    assert set(other.links) <= set(ways[0].links)


# Every link, NIC and uplink of two servers: something is left, by another way, or the ranks that are cut off are named.
@pytest.mark.parametrize(
    ("name", "params"), [("dgx-h100", {"nodes": 2}), ("dgx-h100", {"nodes": 2, "gpus": 2}), ("hgx-pcie", {"nodes": 2})]
)
def test_any_one_thing_may_die(name: str, params: dict) -> None:
    cluster = make(name, params)
    cables = sorted({tuple(sorted((link.src, link.dst))) for link in cluster.links})
    faults = [f"dead-link:{a}-{b}" for a, b in cables] + [f"dead-node:{node.name}" for node in cluster.nodes if node.kind != "gpu"]
    for fault in faults:
        graph = nx.Graph(cluster.graph.edges)
        graph.add_nodes_from(cluster.graph)
        graph.remove_nodes_from([fault[10:]] if fault.startswith("dead-node") else [])
        graph.remove_edges_from([tuple(fault[10:].split("-"))] if fault.startswith("dead-link") else [])
        if all(nx.has_path(graph, cluster.gpus[0], gpu) for gpu in cluster.gpus):
            less = apply_faults(cluster, [fault])
            router = Router(less)
            for rank, gpu in enumerate(cluster.gpus):
                assert router.route(gpu, cluster.gpus[(rank + 1) % len(cluster.gpus)])
        else:
            with pytest.raises(TopologyError, match="cuts off"):
                apply_faults(cluster, [fault])


def test_the_rank_that_is_cut_off_is_named() -> None:
    with pytest.raises(TopologyError, match=r'^fault "dead-link:gpu3-switch": cuts off rank 3 \(gpu3\): '):
        apply_faults(make("star"), ["dead-link:gpu3-switch"])
    with pytest.raises(TopologyError, match=r"cuts off 3 ranks: 0 \(gpu0\), 1 \(gpu1\), 2 \(gpu2\):"):
        apply_faults(make("line"), ["dead-link:gpu2-gpu3"])
    with pytest.raises(TopologyError, match=r"cuts off 4 ranks: 4 \(gpu4\)"):
        apply_faults(make("line"), ["dead-link:gpu3-gpu4"])
    with pytest.raises(TopologyError, match=r"cuts off rank 2 \(gpu2\)"):  # still hears, cannot answer
        apply_faults(make("star"), ["dead-link:gpu2>switch"])
    with pytest.raises(TopologyError, match="cuts off 7 ranks: 1 "):
        apply_faults(make("star"), ["dead-node:switch"])
    around = apply_faults(make("ring"), ["dead-link:gpu3-gpu4"])
    assert len(Router(around).route("gpu3", "gpu4")) == 7
    with pytest.raises(TopologyError, match=r"cuts off 2 ranks: 2 .*3 "):
        apply_faults(make("ring"), ["dead-link:gpu3-gpu4", "dead-link:gpu1-gpu2"])


def test_a_dead_nic_sends_its_gpu_to_another() -> None:
    def nics(topology: Topology) -> list[str]:
        return [link.dst for link in Router(topology).route("s0.gpu2", "s1.gpu2") if "nic" in link.dst]

    assert nics(PAIR) == ["s0.nic2", "s1.nic2"]
    other = nics(apply_faults(PAIR, ["dead-nic:s0.nic2"]))
    assert len(other) == 2
    assert "s0.nic2" not in other
    hpn = make("alibaba-hpn")
    assert Router(apply_faults(hpn, ["dead-node:seg0.rail0.tor0"])).route("s0.gpu0", "s15.gpu0")


def test_names_with_hyphens_are_found() -> None:
    assert changed(HYPHENS, apply_faults(HYPHENS, ["lanes:a-b-a:1"])) == both(("a-b", "a"))
    assert changed(HYPHENS, apply_faults(HYPHENS, ["lanes:a>b-c:1"])) == {("a", "b-c")}
    assert changed(HYPHENS, apply_faults(HYPHENS, ["lanes:a-b>c:1"])) == {("a-b", "c")}
    with pytest.raises(TopologyError, match="names more than one link"):
        apply_faults(HYPHENS, ["lanes:a-b-c:1"])


@pytest.mark.parametrize("name", names())
def test_every_machine_takes_faults_and_reads_back(name: str, tmp_path) -> None:
    machine = make(name)
    link = machine.links[0]
    worse = apply_faults(machine, ["slow-gpu:1:x1.5", f"slow-link:{link.src}>{link.dst}:x3", "jitter:0.25"], seed=7)
    assert worse.gpus == machine.gpus
    write_cluster(worse, tmp_path / "worse.toml")
    assert read_cluster(tmp_path / "worse.toml") == worse


def test_text_and_value_are_two_forms_of_one() -> None:
    for text, meaning in FAULTS.values():
        assert str(parse_fault(text)) == text
        assert meaning
    assert parse_fault("slow-gpu:3:x1.6") == Fault("slow-gpu", "3", 1.6)
    assert parse_fault("background:a>b:.5") == Fault("background", "a>b", 0.5)
    assert parse_fault(" jitter:.25 ") == Fault("jitter", "", 0.25)
    assert str(Fault("jitter", "", 1e-6)) == "jitter:0.000001"
    assert apply_faults(PAIR, [Fault("dead-nic", "s0.nic1")]) == apply_faults(PAIR, ["dead-nic:s0.nic1"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", 'is not a kind of fault; known: background'),
        ("slow-gpus:3:x2", 'did you mean "slow-gpu"'),
        ("slow-gpu", 'something is missing; write it as "slow-gpu:3:x1.6"'),
        ("slow-gpu:3", "something is missing"),
        ("slow-gpu::x2", "something is missing"),
        ("slow-gpu:3:2", '"2" is not a factor above 1'),
        ("slow-gpu:3:x1", "is not a factor above 1"),
        ("slow-gpu:3:x0.5", "is not a factor above 1"),
        ("slow-gpu:3:x-2", "is not a factor above 1"),
        ("slow-gpu:3:xnan", "is not a factor above 1"),
        ("slow-gpu:3:xinf", "is not a factor above 1"),
        ("slow-gpu:3:x1e300", "is not a factor above 1"),
        ("slow-gpu:16:x2", 'fault "slow-gpu:16:x2": "16" is not a rank of dgx-h100-2x8, 0 to 15'),
        ("slow-gpu:-1:x2", "is not a rank"),
        ("slow-gpu:s0.gpu33:x2", 'is not a rank.*did you mean "s0.gpu3"'),
        ("slow-link:s0.gpu3-s0.nvswich:x2", 'there is no node "s0.nvswich"; did you mean "s0.nvswitch"'),
        ("slow-link:s0.gpu3-s0.gpu4:x2", "there is no link s0.gpu3 -> s0.gpu4"),
        ("slow-link:s0.gpu3:x2", "names no link"),
        ("slow-link:s0.gpu3-s0.nvswitch:x0", "is not a factor"),
        ("lanes:s0.gpu3-s0.nvswitch:0", "is not a number of lanes"),
        ("lanes:s0.gpu3-s0.nvswitch:1.5", "is not a number of lanes"),
        ("lanes:s0.gpu3-s0.nvswitch:18", 'has 18 lanes; write 1 to 17, or for all of it "dead-link:s0.gpu3-s0.nvswitch"'),
        ("lanes:s0.gpu3-s0.nvswitch:99", "has 18 lanes"),
        ("lanes:s0.nic3-leaf3:1", 'has 1 lanes; for all of it "dead-link'),
        ("background", 'something is missing; write it as "background:gpu3-nvswitch:0.3"'),
        ("background:s0.gpu3-s0.nvswitch", "something is missing"),
        ("background::0.3", "something is missing"),
        ("background:s0.gpu3-s0.nvswitch:", '"" is not a share above 0 and below 1'),
        ("background:s0.gpu3-s0.nvswitch:0", "is not a share above 0 and below 1"),
        ("background:s0.gpu3-s0.nvswitch:1", "is not a share"),
        ("background:s0.gpu3-s0.nvswitch:1.5", "is not a share"),
        ("background:s0.gpu3-s0.nvswitch:-0.3", "is not a share"),
        ("background:s0.gpu3-s0.nvswitch:30%", "is not a share"),
        ("background:s0.gpu3-s0.nvswitch:x2", "is not a share"),
        ("background:s0.gpu3-s0.nvswitch:nan", "is not a share"),
        ("background:s0.gpu3:0.3", "names no link"),
        ("background:s0.gpu3-s0.gpu4:0.3", "there is no link s0.gpu3 -> s0.gpu4"),
        ("background:s0.gpu3-s0.nvswich:0.3", 'did you mean "s0.nvswitch"'),
        ("backgrund:s0.gpu3-s0.nvswitch:0.3", 'did you mean "background"'),
        ("dead-link:s0.gpu3-", 'there is no node ""'),
        ("dead-nic:s0.nic9", 'did you mean "s0.nic'),
        ("dead-nic:s0.nvswitch", 's0.nvswitch is a nvswitch, not a NIC; write "dead-node:s0.nvswitch"'),
        ("dead-nic:s0.gpu3", 'a rank cannot be taken away: write "slow-gpu:3:x2"'),
        ("dead-node:s1.gpu0", 'a rank cannot be taken away: write "slow-gpu:8:x2"'),
        ("dead-node:", "something is missing"),
        ("dead-uplink:s0.gpu3-s0.nvswitch", 'an uplink joins two switches; for other links write "dead-link:s0.gpu3-s0.nvswitch"'),
        ("degraded-rail:8:x2", "is not a rail of dgx-h100-2x8; there are 0 to 7"),
        ("degraded-rail:two:x2", "is not a rail"),
        ("jitter:0", "is not a share above 0 and below 1"),
        ("jitter:1", "is not a share"),
        ("jitter:nan", "is not a share"),
        ("jitter", "something is missing"),
        ("dead-link:" + "x" * 600, "something is missing"),
    ],
)  # fmt: skip
def test_refused(text: str, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        apply_faults(PAIR, [text])


def test_refused_on_other_machines() -> None:
    with pytest.raises(TopologyError, match="star-8 has no rails"):
        apply_faults(make("star"), ["degraded-rail:0:x2"])
    with pytest.raises(TopologyError, match="there is no link gpu3 -> gpu4 in star-8; known: switch"):
        apply_faults(make("star"), ["slow-link:gpu3-gpu4:x2"])
    with pytest.raises(TopologyError, match="there is no link gpu3 -> gpu4"):
        apply_faults(make("ring"), ["dead-link:gpu3-gpu4", "slow-link:gpu3-gpu4:x2"])
    with pytest.raises(TopologyError, match="less than 1 B/s"):
        apply_faults(make("ring", {"bandwidth": 2.0}), ["slow-gpu:0:x3"])
    with pytest.raises(TopologyError, match="less than 1 B/s"):
        apply_faults(make("ring", {"bandwidth": 2.0}), ["background:gpu0-gpu1:0.9"])
    with pytest.raises(TopologyError, match="no node"):
        apply_faults(PAIR, ["dead-nic:s0.nic1", "dead-nic:s0.nic1"])
    with pytest.raises(TopologyError, match="is not a kind of fault"):
        apply_faults(PAIR, [Fault("sleepy-gpu", "3", 2.0)])
