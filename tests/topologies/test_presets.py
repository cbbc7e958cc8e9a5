"""Presets against their datasheets: links and bandwidth of a GPU, NICs and rails, switches, bisection."""

from collections import Counter
from pathlib import Path

import pytest

import topologies
from topologies import Router, Topology, TopologyError, get, make, names

SCALE_UP = ("nvlink", "xgmi", "tpu-ici")


def scale_up(topology: Topology, gpu: str) -> tuple[int, float]:
    """Links and bandwidth of a GPU to other GPUs and NVSwitches."""
    mine = [link for link in topology.links if link.src == gpu and link.kind.startswith(SCALE_UP) and link.kind != "nvlink-c2c"]
    return sum(link.lanes for link in mine), sum(link.bandwidth for link in mine)


def rate(topology: Topology, lower: set[str]) -> float:
    """Bandwidth [B/s] that leaves a set of nodes."""
    return sum(link.bandwidth for link in topology.links if link.src in lower and link.dst not in lower)


def via(topology: Topology, src: str, dst: str) -> list[str]:
    return [link.dst for link in Router(topology).route(src, dst)][:-1]


# name, GPUs, links and GB/s of a GPU, NICs a server, Gb/s of a server, PCIe switches, CPUs, switch reduces
SERVERS = [
    ("dgx-1v", 8, 6, 150, 4, 400, 4, 2, False),
    ("dgx-2", 16, 6, 150, 8, 800, 8, 2, False),
    ("dgx-a100", 8, 12, 300, 8, 1600, 4, 2, False),
    ("dgx-h100", 8, 18, 450, 8, 3200, 8, 2, True),
    ("dgx-h200", 8, 18, 450, 8, 3200, 8, 2, True),
    ("dgx-b200", 8, 18, 900, 8, 3200, 8, 2, True),
    ("gb200-nvl72", 72, 18, 900, 72, 28800, 0, 36, True),
    ("gh200-quad", 4, 18, 450, 4, 800, 0, 4, False),
    ("hgx-pcie", 8, 0, 0, 4, 800, 4, 2, False),
    ("nvlink-bridge", 2, 4, 56.25, 0, 0, 0, 1, False),
    ("nvlink-bridge-a100", 2, 12, 300, 0, 0, 0, 1, False),
    ("nvlink-bridge-h100", 2, 12, 300, 0, 0, 0, 1, False),
    ("mi300x", 8, 7, 448, 8, 3200, 8, 2, False),
    ("aws-p4d", 8, 12, 300, 4, 400, 4, 2, False),
    ("aws-p5", 8, 18, 450, 32, 3200, 8, 2, True),
    ("azure-ndv4", 8, 12, 300, 8, 1600, 4, 4, False),
    ("azure-ndv5", 8, 18, 450, 8, 3200, 8, 2, True),
    ("gcp-a3", 8, 18, 450, 4, 800, 4, 2, True),
    ("gcp-a3-mega", 8, 18, 450, 8, 1600, 4, 2, True),
    ("tpu-v4", 64, 6, 300, 0, 0, 0, 0, False),
]


@pytest.mark.parametrize(("name", "gpus", "links", "gbytes", "nics", "gbits", "pcie", "cpus", "reduces"), SERVERS)
def test_server(name: str, gpus: int, links: int, gbytes: float, nics: int, gbits: int, pcie: int, cpus: int, reduces: bool) -> None:
    one = make(name)
    assert len(one.gpus) == gpus
    assert {scale_up(one, gpu) for gpu in one.gpus} == {(links, gbytes * 1e9)}
    kinds = Counter(node.kind for node in one.nodes)
    assert (kinds["pcie"], kinds["cpu"]) == (pcie, cpus)
    assert any(node.reduces for node in one.nodes) == reduces
    known = {p.name for p in get(name).parameters} & {"nodes", "racks"}
    assert bool(known) == (nics > 0)
    if known:
        two = make(name, dict.fromkeys(known, 2))
        cables = [link for link in two.links if two.node(link.src).kind == "nic" and two.node(link.dst).kind == "switch"]
        assert sum(link.lanes for link in cables) == 2 * nics
        assert sum(link.bandwidth for link in cables) == 2 * gbits * 1e9 / 8
        assert len(two.gpus) == 2 * gpus
        per_server = Counter(node.server for node in two.nodes if node.kind == "nic")
        assert set(per_server.values()) == {len(two.groups["rails"])}
        for link in cables:
            assert "leaf" not in link.dst or link.dst.rpartition("leaf")[2] == link.src.rpartition("nic")[2]


# How many GPUs share a NIC; the GPU to NIC map of a server is g // share.
@pytest.mark.parametrize(
    ("name", "share"),
    [("dgx-1v", 2), ("dgx-2", 2), ("dgx-a100", 1), ("dgx-b200", 1), ("mi300x", 1), ("aws-p4d", 2), ("aws-p5", 1), ("azure-ndv4", 1),
     ("azure-ndv5", 1), ("gcp-a3", 2), ("gcp-a3-mega", 1), ("gh200-quad", 1), ("hgx-pcie", 2)],
)  # fmt: skip
def test_each_gpu_leaves_and_enters_by_its_own_nic(name: str, share: int) -> None:
    two = make(name, {"nodes": 2})
    router, size = Router(two), len(two.gpus) // 2
    for g in range(size):
        way = [link.dst for link in router.route(f"s0.gpu{g}", f"s1.gpu{g}")]
        assert [name for name in way if "nic" in name] == [f"s0.nic{g // share}", f"s1.nic{g // share}"]
        assert not any("cpu" in name for name in way) or name == "gh200-quad"
        assert g in two.groups["rails"][g // share]
        assert size + g in two.groups["rails"][g // share]


@pytest.mark.parametrize("name", ["dgx-2", "dgx-b200", "mi300x", "aws-p4d", "aws-p5", "azure-ndv4", "gcp-a3", "hgx-pcie", "gh200-quad"])
def test_slice_is_the_full_server_without_the_other_gpus(name: str) -> None:
    whole = make(name)
    for gpus in range(2, len(whole.gpus)):
        part = make(name, {"gpus": gpus})
        assert part.gpus == whole.gpus[:gpus]
        assert set(part.nodes) <= set(whole.nodes)
        kept = set(part.graph)
        assert set(part.links) == {link for link in whole.links if link.src in kept and link.dst in kept}


def test_dgx_2_boards_are_joined_by_as_much_as_their_gpus_have() -> None:
    machine = make("dgx-2")
    assert machine.link("nvswitch0", "nvswitch1").lanes == 48
    lower = {f"gpu{g}" for g in range(8)} | {"nvswitch0"}
    assert sum(link.bandwidth for link in machine.links if link.src in lower and link.dst == "nvswitch1") == 1.2e12
    assert via(machine, "gpu3", "gpu12") == ["nvswitch0", "nvswitch1"]
    assert via(machine, "gpu3", "gpu4") == ["nvswitch0"]
    assert "nvswitch1" not in make("dgx-2", {"gpus": 8}).graph


def test_h200_is_h100_by_another_name() -> None:
    old, new = make("dgx-h100", {"nodes": 3}), make("dgx-h200", {"nodes": 3})
    assert (old.nodes, old.links, old.groups) == (new.nodes, new.links, new.groups)


def test_azure_numa_nodes_are_those_of_its_topology_files() -> None:
    four = make("azure-ndv4")
    numa = {g: next(cpu for cpu in four.graph[f"pcie{g // 2}"] if cpu.startswith("cpu")) for g in range(8)}
    assert numa == {0: "cpu1", 1: "cpu1", 2: "cpu0", 3: "cpu0", 4: "cpu3", 5: "cpu3", 6: "cpu2", 7: "cpu2"}
    between = sum(four.link(a, b).lanes for a in ("cpu0", "cpu1") for b in ("cpu2", "cpu3"))
    assert between == 4
    five = make("azure-ndv5")
    assert [next(cpu for cpu in five.graph[f"pcie{g}"] if cpu.startswith("cpu")) for g in range(8)] == ["cpu0"] * 4 + ["cpu1"] * 4


def test_p5_nics_are_four_on_pcie_4_below_a_gpu_on_pcie_5() -> None:
    machine = make("aws-p5", {"nodes": 2})
    assert machine.link("s0.gpu0", "s0.pcie0").bandwidth == 63e9
    assert (machine.link("s0.nic0", "s0.pcie0").bandwidth, machine.link("s0.nic0", "s0.pcie0").lanes) == (63e9, 4 * 8)
    assert (machine.link("s0.nic0", "fabric").bandwidth, machine.link("s0.nic0", "fabric").lanes) == (50e9, 4)
    assert machine.link("s0.pcie0", "s0.cpu0").bandwidth == 31.5e9


def test_nvl72() -> None:
    rack = make("gb200-nvl72")
    assert len(rack.groups["servers"]) == 18
    assert rate(rack, {"nvswitch"}) == 64.8e12  # NVIDIA's 130 TB/s counts both directions
    assert via(rack, "s0.gpu0", "s17.gpu3") == ["nvswitch"]
    pair = make("gb200-nvl72", {"racks": 2})
    assert [len(part) for part in pair.groups["racks"]] == [72, 72]
    assert [link.dst for link in Router(pair).route("s0.gpu1", "s18.gpu1")] == [
        "s0.cpu0", "s0.nic1", "unit0.leaf1", "spine0", "unit1.leaf1", "s18.nic1", "s18.cpu0", "s18.gpu1",
    ]  # fmt: skip
    leaves = [name for name in pair.graph if "leaf" in name]
    assert len(leaves) == 8
    for leaf in leaves:
        assert sum(link.bandwidth for link in pair.links if link.src == leaf and link.dst.startswith("spine")) == 18 * 50e9
    assert len(make("gb200-nvl72", {"gpus": 8}).groups["servers"]) == 2


def test_gh200_mesh_and_dragonfly_group() -> None:
    machine = make("gh200-quad", {"nodes": 9})
    assert {machine.link(f"s0.gpu{a}", f"s0.gpu{b}").lanes for a in range(4) for b in range(4) if a != b} == {6}
    assert via(machine, "s0.gpu2", "s8.gpu2") == ["s0.cpu2", "s0.nic2", "switch0", "switch2", "s8.nic2", "s8.cpu2"]
    full = make("gh200-quad", {"nodes": 128})
    assert max(full.graph.out_degree(f"switch{i}") for i in range(32)) == 31 + 16


@pytest.mark.parametrize(("generation", "pcie"), [(3, 15.75e9), (4, 31.5e9), (5, 63e9), (6, 118e9)])
def test_pcie_box_has_three_distances(generation: int, pcie: float) -> None:
    box = make("hgx-pcie", {"generation": generation})
    assert via(box, "gpu0", "gpu1") == ["pcie0"]
    assert via(box, "gpu0", "gpu2") == ["pcie0", "cpu0", "pcie1"]
    assert via(box, "gpu0", "gpu7") == ["pcie0", "cpu0", "cpu1", "pcie3"]
    assert box.link("gpu0", "pcie0").bandwidth == box.link("pcie0", "cpu0").bandwidth == pcie


def test_bridges_join_pairs_and_the_rest_goes_through_the_cpu() -> None:
    box = make("nvlink-bridge", {"gpus": 8})
    assert sorted({tuple(sorted((a, b))) for a, b in box.graph.edges if a.startswith("gpu") and b.startswith("gpu")}) == [
        ("gpu0", "gpu1"), ("gpu2", "gpu3"), ("gpu4", "gpu5"), ("gpu6", "gpu7"),
    ]  # fmt: skip
    assert via(box, "gpu0", "gpu1") == []
    assert via(box, "gpu1", "gpu2") == ["cpu0"]
    assert via(box, "gpu1", "gpu6") == ["cpu0", "cpu1"]


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("dgx-2", {"gpus": 17}, "write 1 to 16"),
        ("gb200-nvl72", {"gpus": 10}, "a multiple of 4 up to 72"),
        ("gb200-nvl72", {"gpus": 76}, "a multiple of 4 up to 72"),
        ("gb200-nvl72", {"racks": 17}, "racks = 1 to 16"),
        ("gh200-quad", {"nodes": 129}, "nodes = 1 to 128"),
        ("gh200-quad", {"gpus": 5}, "gpus = 1 to 4"),
        ("hgx-pcie", {"generation": 7}, "write 3, 4, 5 or 6"),
        ("nvlink-bridge", {"gpus": 9}, "2 to 8"),
        ("tpu-v4", {"dims": "4x4"}, "three dimensions"),
        ("tpu-v4", {"dims": "16x16x32"}, "at most 4096 chips"),
        ("aws-p5", {"nodes": 10**9}, "the largest that fits is nodes = "),
        ("superpod-h100", {"units": 9}, "units = 1 to 8"),
        ("superpod-h100", {"units": 1, "nodes": 32}, "at most nodes = 31"),
        ("superpod-h100", {"nodes": 10**9}, "units = 1 to 8"),
        ("superpod-h100", {"gpus": 9}, "write 1 to 8"),
        ("meta-roce", {"racks": 10**9}, "the largest that fits is racks = "),
        ("meta-roce", {"pods": 10**9}, "the largest that fits is pods = "),
        ("alibaba-hpn", {"hosts": 129}, "hosts = 1 to 128"),
        ("alibaba-hpn", {"segments": 16}, "segments = 1 to 15"),
        ("dragonfly", {"groups": 10}, "groups = 9 at most"),
        ("dragonfly", {"a": 10**9}, "the largest that fits is a = "),
        ("dragonfly", {"h": 10**12}, "lower the other sizes|the largest that fits"),
        ("rail-only", {"gpus": 10**9}, "the largest that fits is gpus = "),
    ],
)
def test_refused(name: str, params: dict, message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        make(name, params)


@pytest.mark.parametrize("name", names())
def test_zero_called_directly_is_refused_by_name(name: str) -> None:
    entry = get(name)
    zero = {"count": 0, "ratio": 0.0, "dims": (0,)}
    for parameter in entry.parameters:
        if parameter.unit in zero:
            with pytest.raises(TopologyError, match=f"^{name}.{parameter.name}: "):
                entry.function(**{parameter.name: zero[parameter.unit]})


def test_generators_called_directly_are_those_of_the_registry() -> None:
    from topologies.leaf_spine import leaf_spine

    assert leaf_spine(oversubscription=1 / 3, spines=2) == leaf_spine(8, 4, 2, 1 / 3)
    with pytest.raises(TopologyError, match=r"leaf-spine.spines: 0"):
        leaf_spine(spines=0)
    with pytest.raises(TopologyError, match=r"leaf-spine.oversubscription: nan"):
        leaf_spine(oversubscription=float("nan"))


def test_defaults_are_small_and_files_short() -> None:
    assert all(2 <= len(make(name).gpus) <= 128 for name in names())
    for file in Path(topologies.__file__).parent.glob("*.py"):
        lines = file.read_text(encoding="utf-8").splitlines()
        assert "@topology" not in lines or len(lines) < 80, file.name
