"""Generators: identities of each family, and one contract for all."""

import itertools
from collections import Counter

import networkx as nx
import numpy as np
import pytest

from topologies import Topology, TopologyError, get, make, names, read_cluster, write_cluster
from topologies.dgx import HYBRID_CUBE_MESH
from topologies.faults import apply_faults
from topologies.registry import check_size

CASES = [(name, params) for name in names() for params in ({}, {"nodes": 2}) if params.keys() <= {p.name for p in get(name).parameters}]


def degrees(topology: Topology) -> set[int]:
    return {topology.graph.out_degree(gpu) for gpu in topology.gpus}


@pytest.mark.parametrize(("name", "params"), CASES)
def test_contract(name: str, params: dict, tmp_path) -> None:
    topology = make(name, params)
    assert topology == make(name, params)
    assert nx.is_strongly_connected(topology.graph)
    assert topology.gpus == tuple(node.name for node in topology.nodes if node.kind == "gpu")
    assert topology.nodes[0].name == topology.gpus[0]
    for link in topology.links:
        assert topology.link(link.dst, link.src) == link.reversed()
        assert link.source
    for parts in topology.groups.values():
        ranks = [rank for part in parts for rank in part]
        assert sorted(ranks) == list(range(len(topology.gpus)))
        assert all(parts)
    for server, ranks in enumerate(topology.groups.get("servers", ())):
        assert {topology.node(topology.gpus[rank]).server for rank in ranks} == {server}
    write_cluster(topology, tmp_path / "cluster.toml")
    assert read_cluster(tmp_path / "cluster.toml") == topology
    entry = get(name)
    assert entry.summary.endswith(".")
    assert make(name, {p.name: p.text for p in entry.parameters if p.default is not None} | params) == topology


def test_the_families_asked_for_are_registered() -> None:
    families = ["ring", "line", "full-mesh", "star", "torus", "fat-tree", "leaf-spine", "rail-optimised", "dgx-1v", "dgx-a100", "dgx-h100"]
    assert set(families) <= set(names())


@pytest.mark.parametrize("n", [2, 3, 8, 17])
def test_small_families_count(n: int) -> None:
    params = {"gpus": n, "bandwidth": "200Gb/s"}
    ring, line, mesh, star = (make(name, params) for name in ("ring", "line", "full-mesh", "star"))
    assert (len(ring.links), degrees(ring)) == (2 * (n if n > 2 else 1), {min(2, n - 1)})
    assert len(line.links) == 2 * (n - 1)
    assert (len(mesh.links), degrees(mesh)) == (n * (n - 1), {n - 1})
    assert (len(star.links), degrees(star)) == (2 * n, {1})
    assert star.node("switch").reduces
    assert not make("star", {"reduces": "false"}).node("switch").reduces
    assert {link.bandwidth for t in (ring, line, mesh, star) for link in t.links} == {25e9}


@pytest.mark.parametrize("dims", [(4, 4), (6, 6), (4, 4, 4), (4, 4, 4, 4)])
def test_torus_degree_diameter_bisection(dims: tuple[int, ...]) -> None:
    k, d = dims[0], len(dims)
    torus = make("torus", {"dims": dims})
    assert degrees(torus) == {2 * d}
    assert nx.eccentricity(torus.graph, "gpu0") == d * (k // 2)
    lower = set(torus.gpus[: k**d // 2])
    assert sum(link.src in lower and link.dst not in lower for link in torus.links) == 2 * k ** (d - 1)


def test_torus_with_a_dimension_of_two_or_one_has_no_double_cable() -> None:
    assert degrees(make("torus", {"dims": "2x2x2"})) == {3}
    assert degrees(make("torus", {"dims": "1x5"})) == {2}
    assert len(make("torus", {"dims": "2"}).links) == 2


@pytest.mark.parametrize("name", ["torus", "tpu-v4"])
def test_ranks_fill_the_grid_of_a_torus_row_by_row(name: str) -> None:
    """A cable joins ranks whose places differ by one, all around, in one dimension; faults leave the grid."""
    grid = make(name, {"dims": (3, 4, 8)})
    assert grid.dims == apply_faults(grid, ["dead-link:gpu0-gpu1"]).dims == (3, 4, 8)
    for link in grid.links:
        places = zip(*(np.unravel_index(grid.gpus.index(end), grid.dims) for end in (link.src, link.dst)), grid.dims, strict=True)
        apart = [(a - b) % size for a, b, size in places]
        assert sorted(min(away, size - away) for away, size in zip(apart, grid.dims, strict=True)) == [0, 0, 1]
    assert make("star").dims == make("dgx-h100").dims == ()


@pytest.mark.parametrize("k", [2, 4, 6, 8])
def test_fat_tree_is_full(k: int) -> None:
    tree = make("fat-tree", {"k": k})
    assert len(tree.gpus) == k**3 // 4
    assert len(tree.nodes) - len(tree.gpus) == 5 * k * k // 4
    assert {tree.graph.out_degree(node.name) for node in tree.nodes if node.kind == "switch"} == {k}
    assert {len(part) for part in tree.groups["pods"]} == {k * k // 4}
    half = {g for pod in range(k // 2) for g in tree.graph if g.startswith(f"pod{pod}.")}
    assert sum(a in half and b.startswith("core") for a, b in tree.graph.edges) == k**3 // 8


def test_leaf_spine_oversubscription_is_the_ratio_of_down_to_up() -> None:
    for ratio in (1.0, 2.0, 3.5):
        built = make("leaf-spine", {"oversubscription": ratio})
        down = sum(link.bandwidth for link in built.links if link.src == "leaf1" and link.dst.startswith("gpu"))
        up = sum(link.bandwidth for link in built.links if link.src == "leaf1" and link.dst.startswith("spine"))
        assert down / up == pytest.approx(ratio, rel=1e-12)


def test_cube_mesh_uses_six_links_a_gpu_both_ways_alike() -> None:
    assert {sum(row) for row in HYBRID_CUBE_MESH} == {6}
    assert tuple(zip(*HYBRID_CUBE_MESH, strict=True)) == HYBRID_CUBE_MESH
    lanes = Counter()
    for link in make("dgx-1v").links:
        lanes[link.src] += link.lanes * (link.kind == "nvlink2")
    assert {lanes[f"gpu{g}"] for g in range(8)} == {6}


@pytest.mark.parametrize(
    ("name", "nvlink", "nics", "pcie", "reduces"),
    [("dgx-1v", 150e9, 4, 4, False), ("dgx-a100", 300e9, 8, 4, False), ("dgx-h100", 450e9, 8, 8, True)],
)
def test_dgx_parts(name: str, nvlink: float, nics: int, pcie: int, reduces: bool) -> None:
    server = make(name)
    kinds = Counter(node.kind for node in server.nodes)
    assert (kinds["gpu"], kinds["nic"], kinds["pcie"], kinds["cpu"]) == (8, nics, pcie, 2)
    assert server.graph.has_edge("cpu0", "cpu1")
    for gpu in server.gpus:
        assert sum(link.bandwidth for link in server.links if link.src == gpu and link.kind.startswith("nvlink")) == nvlink
    assert any(node.kind == "nvswitch" and node.reduces for node in server.nodes) == reduces


@pytest.mark.parametrize("name", ["dgx-1v", "dgx-a100", "dgx-h100"])
@pytest.mark.parametrize("gpus", range(2, 9))
def test_slice_is_the_full_server_without_the_other_gpus(name: str, gpus: int) -> None:
    part, whole = make(name, {"gpus": gpus}), make(name)
    assert part.gpus == whole.gpus[:gpus]
    assert set(part.nodes) <= set(whole.nodes)
    kept = set(part.graph)
    assert set(part.links) == {link for link in whole.links if link.src in kept and link.dst in kept}


@pytest.mark.parametrize(("nodes", "leaves", "spines"), [(32, 8, 0), (33, 16, 8), (64, 16, 8), (96, 24, 16), (128, 32, 16), (256, 64, 32)])
def test_h100_fabric_is_the_superpod(nodes: int, leaves: int, spines: int) -> None:
    built = make("dgx-h100", {"nodes": nodes})
    switches = Counter("spine" if node.name.startswith("spine") else "leaf" for node in built.nodes if node.kind == "switch")
    assert (switches["leaf"], switches["spine"]) == (leaves, spines)
    ports = Counter()
    for link in built.links:
        ports[link.src] += link.lanes
    assert all(ports[node.name] <= 64 for node in built.nodes if node.kind == "switch")
    assert all(node.reduces for node in built.nodes if node.kind == "switch")
    if spines:
        assert {sum(x.lanes for x in built.links if x.src == "unit0.leaf3" and x.dst.startswith("spine"))} == {32}


def test_rails_hold_one_nic_of_every_server() -> None:
    built = make("dgx-1v", {"nodes": 3})
    assert built.groups["rails"][1] == (2, 3, 10, 11, 18, 19)
    assert {link.dst for link in built.links if link.src == "leaf1"} == {"s0.nic1", "s1.nic1", "s2.nic1"}
    optimised = make("rail-optimised", {"nodes": 5, "gpus": 2, "unit": 2})
    assert optimised.groups["leaves"] == ((0, 2), (1, 3), (4, 6), (5, 7), (8,), (9,))


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("rin", {}, 'did you mean "ring"'),
        ("zzz", {}, "known: alibaba-hpn"),
        ("star", {"bandwith": "1GB/s"}, 'did you mean "bandwidth"'),
        ("star", {"bandwidth": "400Gig"}, 'star.bandwidth: "400Gig" is not a bandwidth'),
        ("star", {"latency": "-1us"}, "star.latency"),
        ("star", {"reduces": "yes"}, "neither true nor false"),
        ("star", {"reduces": 1}, "neither true nor false"),
        ("ring", {"gpus": "1"}, "at least 2"),
        ("ring", {"gpus": 0}, "ring.gpus: 0 is not a count"),
        ("ring", {"gpus": None}, "ring.gpus"),
        ("ring", {"gpus": 10**9}, "GiB.*the largest that fits is gpus = "),
        ("full-mesh", {"gpus": "1000000"}, "the largest that fits is gpus = "),
        ("torus", {"dims": "1000000x1000000"}, "the largest that fits"),
        ("torus", {"dims": "4x"}, "torus.dims"),
        ("torus", {"dims": []}, "torus.dims"),
        ("torus", {"dims": "1x1"}, "at least 2"),
        ("fat-tree", {"k": 3}, "write k = 4"),
        ("fat-tree", {"k": 4, "gpus": 100}, "write k = 8"),
        ("fat-tree", {"k": 10**6}, "the largest that fits is k"),
        ("leaf-spine", {"oversubscription": "0"}, "is not a ratio"),
        ("leaf-spine", {"oversubscription": "nan"}, "is not a ratio"),
        ("leaf-spine", {"gpus_per_leaf": 10**12}, "the largest that fits is gpus_per_leaf"),
        ("rail-optimised", {"spines": 10**12}, "the largest that fits is spines"),
        ("dgx-a100", {"gpus": 9}, "write 1 to 8"),
        ("dgx-a100", {"gpus": 1}, "at least 2"),
        ("dgx-a100", {"nodes": 101}, "nodes = 1 to 100"),
        ("dgx-h100", {"nodes": 10**9}, "nodes = 1 to 256"),
    ],
)
def test_refused(name: str, params: dict, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make(name, params)


def test_size_check_names_exactly_the_largest_that_fits() -> None:
    with pytest.raises(TopologyError, match="the largest that fits is n = ") as error:
        check_size("x", "n", 10**9, lambda n: 3 * n)
    largest = int(str(error.value).rsplit(" ", 1)[1])
    check_size("x", "n", largest, lambda n: 3 * n)
    with pytest.raises(TopologyError):
        check_size("x", "n", largest + 1, lambda n: 3 * n)


def test_no_two_generators_build_the_same_name() -> None:
    built = [make(name, params).name for name, params in CASES]
    assert all(a != b for a, b in itertools.combinations(built, 2))
