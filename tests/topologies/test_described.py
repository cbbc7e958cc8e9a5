"""A machine in words: the presets said in words are the presets; every model builds; what cannot be is refused by column and value."""

from collections import Counter
from time import monotonic
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prediction.nccl.machines import graphs_of
from prediction.nccl.version import version
from topologies import Topology, TopologyError, make
from topologies.custom import custom
from topologies.custom_parts import FABRICS
from topologies.custom_words import CPUS, INTRA, usual
from topologies.described import described
from topologies.gpus import GPUS

ROW = {
    "gpu": "H100", "gpus_per_node": "8", "nodes": "2", "nvl_domain": "8", "intra": "nvswitch", "intra_links_per_gpu": "18",
    "nics_per_node": "8", "nic_gbps": "400", "fabric": "ib", "rail_optimized": "yes", "host_cpu": "", "notes": "not looked at",
}  # fmt: skip


SAME = [
    ("dgx-1v", {"nodes": 2}, {"gpu": "v100", "nics": 4, "fabric": "ib", "rails": True, "nodes": 2}),
    ("dgx-a100", {"nodes": 3}, {"gpu": "a100", "nodes": 3, "rails": True}),
    ("dgx-h100", {"nodes": 33}, {"gpu": "h100", "nodes": 33, "rails": True}),
    ("dgx-b200", {"nodes": 2}, {"gpu": "b200", "nodes": 2, "rails": True}),
    ("mi300x", {"nodes": 2}, {"gpu": "mi300x", "nodes": 2, "rails": True}),
    ("gcp-a3", {"nodes": 2}, {"gpu": "h100", "nics": 4, "nic": 25e9, "fabric": "tcpxo", "nodes": 2}),
    ("aws-p4d", {"nodes": 2}, {"gpu": "a100", "nics": 4, "nic": 12.5e9, "fabric": "efa", "nodes": 2}),
    ("aws-p5", {"nodes": 2}, {"gpu": "h100", "nics": 32, "nic": 12.5e9, "fabric": "efa", "nodes": 2}),
    ("gh200-quad", {"nodes": 3}, {"gpu": "gh200", "gpus": 4, "fabric": "slingshot", "nodes": 3}),
]


@pytest.mark.parametrize(("preset", "params", "words"), SAME)
def test_a_preset_in_words_has_its_links(preset: str, params: dict[str, Any], words: dict[str, Any]) -> None:
    """Up to host links that the preset knows better: PCIe and sockets of AWS servers, the dragonfly of GH200."""
    mine, theirs = custom(**words), make(preset, params)
    assert mine.gpus == theirs.gpus
    assert mine.groups["servers"] == theirs.groups["servers"]
    for kinds in (("nvlink", "xgmi"), ("ib-", "efa", "gvnic", "slingshot")):
        found = [
            Counter(
                (link.src, link.dst, link.bandwidth)
                for link in machine.links
                if link.kind.startswith(kinds) and "xgmi-cpu" not in link.kind and "switch0" not in link.src + link.dst
            )
            for machine in (mine, theirs)
        ]
        if preset == "gh200-quad":
            found = [
                Counter({key: n for key, n in part.items() if "switch" not in key[1] and "fabric" not in key[0] + key[1]}) for part in found
            ]
        assert found[0] == found[1]


@pytest.mark.parametrize("preset", ["dgx-a100", "dgx-h100", "dgx-b200", "dgx-2"])
@pytest.mark.parametrize("nodes", [1, 2, 5])
def test_nccl_finds_on_words_what_it_finds_on_the_preset(preset: str, nodes: int) -> None:
    release = version("2.27")
    gpus = {"dgx-2": 16}.get(preset, 8)
    gpu = {"dgx-2": "v100"}.get(preset, preset.removeprefix("dgx-"))
    words = custom(gpu=gpu, gpus=gpus, nodes=nodes, intra="nvswitch", nics=8, rails=True)
    assert graphs_of(words, release) == graphs_of(make(preset, {"nodes": nodes}), release)


@pytest.mark.parametrize("nodes", [1, 2])
@pytest.mark.parametrize("model", GPUS.values(), ids=GPUS)
def test_every_model_builds_with_its_links(model: Any, nodes: int) -> None:
    for gpus in (2, 4, 8) if model.name != "gh200" else (2, 4):
        built = custom(nodes=nodes, gpus=gpus, gpu=model.name)
        assert len(built.gpus) == nodes * gpus
        intra = usual(model, gpus)
        own = [link for link in built.links if link.src == built.gpus[0] and link.kind == model.link]
        lanes = sum(link.lanes for link in own)
        if intra in ("nvswitch", "nvl72"):
            assert lanes == model.links
        elif intra == "xgmi-mesh":
            assert lanes == gpus - 1
        elif intra == "nvlink-mesh":
            assert lanes == model.links // (gpus - 1) * (gpus - 1) or gpus == 8
        else:
            assert not own


def test_meshes() -> None:
    def lanes(built: Topology, a: int, b: int) -> int:
        return built.link(f"gpu{a}", f"gpu{b}").lanes if built.graph.has_edge(f"gpu{a}", f"gpu{b}") else 0

    quad = custom(gpus=4, gpu="a100", intra="nvlink-mesh")
    assert {lanes(quad, a, b) for a in range(4) for b in range(4) if a != b} == {4}
    assert lanes(custom(gpus=4, gpu="gh200"), 1, 3) == 6
    cube, older, few = custom(gpu="v100"), custom(gpu="p100"), custom(gpu="v100", gpus=6)
    assert [lanes(cube, 0, b) for b in range(1, 8)] == [2, 1, 1, 2, 0, 0, 0]
    assert [lanes(older, 0, b) for b in range(1, 8)] == [1, 1, 1, 1, 0, 0, 0]
    assert [lanes(few, 5, b) for b in range(5)] == [0, 1, 0, 0, 2]
    with pytest.raises(TopologyError, match=r"links = 6 of a GPU do not reach all 9 others.*gpus = 7"):
        custom(gpus=10, gpu="v100", intra="nvlink-mesh")


def test_nics_are_shared_or_of_several_lanes() -> None:
    shared = custom(nodes=2, gpus=8, nics=2, nic=25e9, gpu="a100", fabric="roce")
    assert shared.groups["rails"] == ((0, 1, 2, 3, 8, 9, 10, 11), (4, 5, 6, 7, 12, 13, 14, 15))
    assert shared.link("s1.nic1", "fabric").bandwidth == 25e9
    striped = custom(nodes=2, gpus=8, nics=16, nic=25e9, fabric="roce", rails=True)
    assert (striped.link("s1.nic3", "leaf3").lanes, striped.link("s1.nic3", "leaf3").bandwidth) == (2, 50e9)
    uneven = custom(nodes=2, gpus=6, nics=4, fabric="ib")
    assert {uneven.graph.out_degree(f"s0.pcie{i}") for i in range(2)} == {6}
    assert sorted(rank for rail in uneven.groups["rails"] for rank in rail) == list(range(12))
    assert all(uneven.groups["rails"])
    trays = custom(nodes=36, gpus=4, gpu="gb200", nics=2, nic=50e9)
    assert [trays.link(f"s1.nic{i}", f"s1.cpu{i}").kind for i in range(2)] == ["pcie5", "pcie5"]


def test_slots_and_memory_of_cards() -> None:
    half = custom(gpus=4, gpu="v100-pcie", intra="pcie-shm", links=8)
    assert {link.lanes for link in half.links if link.src.startswith("gpu")} == {8}
    assert half.link("gpu0", "pcie0").bandwidth == 15.75e9 / 2
    assert len({node.name for node in custom(gpus=8, gpu="rtx4090").nodes if node.kind == "cpu"}) == 2


def test_domains_of_trays() -> None:
    alone = custom(nodes=2, gpus=4, gpu="gb200", domain=8, fabric="none")
    assert {node.kind for node in alone.nodes} == {"gpu", "cpu", "nvswitch"}
    assert alone.groups["domains"] == (tuple(range(8)),)
    racks = custom(nodes=32, gpus=4, gpu="gb200", domain=64, fabric="roce")
    assert [len(domain) for domain in racks.groups["domains"]] == [64, 64]
    assert sum(node.kind == "nvswitch" for node in racks.nodes) == 2
    assert all(node.reduces for node in racks.nodes if node.kind == "nvswitch")
    assert [len(domain) for domain in custom(nodes=20, gpus=4, gpu="gb200").groups["domains"]] == [40, 40]
    with pytest.raises(TopologyError, match=r"domain = 24; 32 servers of 4 GPUs make equal domains: write domain = 16"):
        custom(nodes=32, gpus=4, gpu="gb200", domain=24)


def test_large_clusters_build_in_seconds() -> None:
    start = monotonic()
    for gpu, nics in (("gh200", 4), ("a100", 2)):
        assert len(custom(nodes=512, gpus=4, gpu=gpu, intra="nvlink-mesh", nics=nics, fabric="slingshot", nic=25e9).gpus) == 2048
    assert monotonic() - start < 10


def test_rails_end_where_two_tiers_do() -> None:
    assert any("leaf" in node.name for node in custom(nodes=96, gpus=16, gpu="v100", intra="nvswitch", nics=4, rails=True).nodes)
    switches = [
        node.name for node in custom(nodes=96, gpus=16, gpu="v100", intra="nvswitch", nics=8, rails=True).nodes if node.kind == "switch"
    ]
    assert switches == ["fabric"]


def test_a_row_is_the_function() -> None:
    assert described(ROW) == custom(2, 8, "h100", "nvswitch", 18, 8, 50e9, "ib", True)
    assert described(
        ROW | {"gpu": "NVIDIA H100-SXM5-80GB", "fabric": "InfiniBand", "rail_optimized": "unknown", "host_cpu": "AMD"}
    ) == custom(2, 8, "h100", "nvswitch", 18, 8, 50e9, "ib", False, "amd")
    assert described({"gpu": "RTX 4090", "nodes": "1", "gpus_per_node": "4"}) == custom(1, 4, "rtx4090", "pcie-shm")
    assert described({"gpu": "A100-PCIE", "gpus_per_node": "2"}) == custom(1, 2, "a100-pcie")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"gpu": "H10O"}, r'^m.csv:3, gpu: "h10o" is not one of its words; did you mean "h100"\?'),
        ({"gpu": ""}, r"^m.csv:3, gpu: empty"),
        ({"intra": "nvswich"}, r'^m.csv:3, intra: "nvswich".*did you mean "nvswitch"'),
        ({"nodes": "two"}, r'^m.csv:3, nodes: "two" is not a count'),
        ({"nodes": "-2"}, r'^m.csv:3, nodes: "-2" is not a count'),
        ({"nodes": "9" * 40}, r"^m.csv:3, nodes: .* is not a count"),
        ({"gpus_per_node": "17"}, r"^m.csv:3: custom: gpus_per_node = 17 a server; write 1 to 16"),
        ({"intra_links_per_gpu": "19"}, r"^m.csv:3: custom: intra_links_per_gpu = 19; .* at most 18"),
        ({"nics_per_node": "12"}, r"^m.csv:3: custom: nics_per_node = 12 on 8 GPUs; .*write 8"),
        ({"nic_gbps": "300"}, r"^m.csv:3: custom: nic_gbps = 300 Gb/s on fabric = ib; .*nearest: 200Gb/s|nearest: 400Gb/s"),
        ({"nic_gbps": "fast"}, r'^m.csv:3, nic_gbps: "fastGb/s" is not a bandwidth'),
        ({"fabric": "token ring"}, r'^m.csv:3, fabric: "token-ring"'),
        ({"fabric": "none"}, r"^m.csv:3: custom: fabric = none, but servers need one"),
        ({"rail_optimized": "maybe"}, r'^m.csv:3, rail_optimized: "maybe"'),
        ({"host_cpu": "sparc"}, r'^m.csv:3, host_cpu: "sparc"'),
        ({"gpu": "RTX4090"}, r"^m.csv:3: custom: 8 rtx4090 a server with intra = nvswitch cannot be; write intra = pcie-shm"),
        ({"intra": "xgmi-mesh"}, r"write intra = nvswitch"),
        ({"gpu": "MI300X"}, r"write intra = xgmi-mesh"),
        ({"intra": "none"}, r"intra = none cannot be; write intra = nvswitch"),
        ({"gpu": "GH200", "intra": "pcie-shm"}, r"write intra = nvlink-mesh"),
        ({"nodes": "100000"}, r"the largest that fits is nodes = "),
    ],
)
def test_a_bad_value_is_refused_by_its_column(changed: dict[str, str], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        described(ROW | changed, "m.csv:3")


def test_words_of_the_registry() -> None:
    assert make("custom", {"gpu": " B200 ", "nodes": 2}) == custom(2, gpu="b200")
    with pytest.raises(TopologyError, match=r'^custom.gpu: "H100" is not one of its words; did you mean "h100"\?'):
        custom(gpu="H100")
    with pytest.raises(TopologyError, match=r"^custom.fabric: 7 is not one of its words"):
        make("custom", {"fabric": 7})


_NUMBERS = ["", "0", "1", "2", "3", "4", "6", "8", "16", "18", "100", "200", "400", "1e9", "-1", "nan", "8.0"]
_VALUES = st.one_of(st.sampled_from([*_NUMBERS, "yes", "unknown", *GPUS, *INTRA, *FABRICS, *CPUS]), st.text(max_size=12))


def machine(row: dict[str, str]) -> Topology | str:
    """The machine, or what is said against it."""
    try:
        return described(row, "m.csv:9")
    except TopologyError as error:
        return str(error)


@settings(max_examples=300, deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(ROW, _VALUES)))
def test_any_text_is_a_machine_or_a_refusal_that_says_where(row: dict[str, str]) -> None:
    for start in ({}, ROW, {"gpu": "gb200", "gpus_per_node": "4", "nodes": "4"}):
        found = machine(start | row)
        if isinstance(found, str):
            assert found.startswith("m.csv:9")
        else:
            assert sorted(rank for server in found.groups["servers"] for rank in server) == list(range(len(found.gpus)))
            assert all(all(parts) for parts in found.groups.values())


def test_a_domain_counts_where_what_joins_the_gpus_is_only_usual() -> None:
    row = {"gpu": "GB200", "nodes": "18", "gpus_per_node": "4", "nvl_domain": "36"}
    assert described(row) == custom(18, 4, "gb200", "nvl72", domain=36)
