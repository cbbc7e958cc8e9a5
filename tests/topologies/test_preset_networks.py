"""Presets of whole clusters against what was published of them: units, switches, cables between tiers, who is near to whom."""

from collections import Counter

import networkx as nx
import pytest
from test_presets import rate, via

from topologies import Router, make


def test_tpu_wraps_only_in_multiples_of_four() -> None:
    def degrees(dims: str) -> Counter[int]:
        slice_ = make("tpu-v4", {"dims": dims})
        return Counter(slice_.graph.out_degree(gpu) for gpu in slice_.gpus)

    assert degrees("4x4x8") == {6: 128}
    assert degrees("2x2x4") == {4: 16}
    assert degrees("2x2x2") == {3: 8}
    assert degrees("3x3x3") == {3: 8, 4: 12, 5: 6, 6: 1}
    assert degrees("4x4x6") == {6: 64, 5: 32}
    assert [len(host) for host in make("tpu-v4", {"dims": "4x4x4"}).groups["servers"]] == [4] * 16


def test_tpu_bisection_of_the_full_machine() -> None:
    full = make("tpu-v4", {"dims": "16x16x16"})
    lower = set(full.gpus[:2048])
    assert sum(link.src in lower and link.dst not in lower for link in full.links) == 512
    assert rate(full, lower) == pytest.approx(24e12, rel=0.07)  # as given; 512 links at 50 GB/s are 25.6


# Reference architecture: units, servers, leaves, spines, cables from leaves to spines.
SUPERPODS = [(1, 31, 8, 4, 256), (2, 63, 16, 8, 512), (3, 95, 24, 16, 768), (4, 127, 32, 16, 1024)]


@pytest.mark.parametrize(("units", "nodes", "leaves", "spines", "cables"), SUPERPODS)
def test_superpod_table(units: int, nodes: int, leaves: int, spines: int, cables: int) -> None:
    pod = make("superpod-h100", {"units": units})
    switches = Counter("spine" if node.name.startswith("spine") else "leaf" for node in pod.nodes if node.kind == "switch")
    assert (len(pod.gpus), switches["leaf"], switches["spine"]) == (8 * nodes, leaves, spines)
    up = [link for link in pod.links if "leaf" in link.src and link.dst.startswith("spine")]
    assert sum(link.lanes for link in up) == cables
    assert sum("nic" in link.src and "leaf" in link.dst for link in pod.links) == 8 * nodes
    assert {sum(link.lanes for link in up if link.src == leaf) for leaf in {link.src for link in up}} == {32}
    assert len(pod.groups["units"]) == units


def test_superpod_of_eight_units_has_32_spines_and_unfilled_units_keep_their_switches() -> None:
    big = make("superpod-h100", {"units": 8, "nodes": 2})
    switches = Counter(node.name[:5] for node in big.nodes if node.kind == "switch")
    assert switches == {"spine": 32} | {f"unit{u}": 8 for u in range(8)}
    assert make("superpod-h100", {"nodes": 32}).name == "superpod-h100-2su-32x8"


def test_meta_ratios() -> None:
    cluster = make("meta-roce", {"pods": 2, "racks": 3})
    tor = "pod1.tor2"
    below = {name for name in cluster.graph[tor] if "nic" in name}
    assert len(below) == 16
    assert {name.split(".")[0] for name in below} == {"s10", "s11"}
    down = sum(link.bandwidth for link in cluster.links if link.src == tor and link.dst in below)
    up = sum(link.bandwidth for link in cluster.links if link.src == tor and "spine" in link.dst)
    assert (down, up) == (16 * 50e9, 32 * 50e9)
    across = sum(link.bandwidth for link in cluster.links if link.dst == "aggregation" and link.src.startswith("pod0"))
    assert 3 * down / across == pytest.approx(7, rel=1e-12)
    assert "aggregation" not in make("meta-roce", {"pods": 1}).graph


def test_hpn_segment_at_full_size() -> None:
    segment = make("alibaba-hpn", {"segments": 1, "hosts": 128})
    tors = [name for name in segment.graph if ".tor" in name]
    assert (len(segment.gpus), len(tors), sum("agg" in name for name in segment.graph)) == (1024, 16, 120)
    for tor in tors:
        plane = tor[-1]
        out = [link for link in segment.links if link.src == tor]
        down, up = [link for link in out if "nic" in link.dst], [link for link in out if "agg" in link.dst]
        assert (len(down), {link.bandwidth for link in down}) == (128, {25e9})
        assert (len(up), {link.bandwidth for link in up}) == (60, {50e9})
        assert {link.dst.split(".")[0] for link in up} == {f"plane{plane}"}
        assert sum(link.bandwidth for link in down) / sum(link.bandwidth for link in up) == pytest.approx(1.067, abs=1e-3)


def test_hpn_messages_use_both_planes_alike() -> None:
    pod = make("alibaba-hpn")
    router = Router(pod)
    ways = [way for r in range(128) for way in router.route(pod.gpus[r], pod.gpus[(r + 8) % 128])]
    planes = Counter(way.dst[-1] for way in ways if ".tor" in way.dst and "nic" in way.src)
    assert planes["0"] == planes["1"] == 64


SHAPES = [(4, 2, 2, 9), (4, 2, 2, 3), (2, 1, 1, 3), (6, 3, 3, 19), (4, 2, 2, 2), (4, 2, 2, 1), (3, 2, 2, 5)]


@pytest.mark.parametrize(("a", "p", "h", "groups"), SHAPES)
def test_dragonfly_groups_are_all_joined_alike(a: int, p: int, h: int, groups: int) -> None:
    fly = make("dragonfly", {"a": a, "p": p, "h": h, "groups": groups})
    assert len(fly.gpus) == a * p * groups
    cables: Counter[tuple[str, str]] = Counter()
    ports: Counter[str] = Counter()
    for link in fly.links:
        ports[link.src] += link.lanes
        ends = link.src.split(".")[0], link.dst.split(".")[0]
        if ends[0] != ends[1] and not link.src.startswith("gpu") and not link.dst.startswith("gpu"):
            cables[ends] += link.lanes
    if groups > 1:
        assert set(cables.values()) == {a * h // (groups - 1)}
        assert len(cables) == groups * (groups - 1)
    assert max(ports[name] for name in fly.graph if "router" in name) <= a - 1 + p + h
    assert max(nx.single_source_shortest_path_length(fly.graph, "gpu0").values()) <= 5


def test_rail_only_changes_rail_inside_servers_only() -> None:
    cluster = make("rail-only")
    assert not any("spine" in name for name in cluster.graph)
    assert Counter(node.kind for node in cluster.nodes)["switch"] == 8
    way = via(cluster, "s0.gpu0", "s1.gpu3")
    assert [name for name in way if "leaf" in name][1:] == []
    assert any("nvswitch" in name for name in way)
    assert via(cluster, "s0.gpu3", "s3.gpu3") == ["s0.nic3", "leaf3", "s3.nic3"]
    optimised = make("rail-optimised")
    kept = [link for link in optimised.links if "spine" not in link.src + link.dst]
    assert set(kept) == set(cluster.links)
