"""Text of ``nvidia-smi topo -m``: what a preset's own matrix says reads back as that preset; pastes of all kinds read alike."""

import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smi_matrix import MIXED, PAIR, links, notes, read, words, words_of, written

from prediction.limits import machine_of
from topologies import Router, TopologyError, load, make
from topologies.nvidia_smi import read_nvidia_smi
from topologies.nvidia_smi_text import parse_matrix

SHARED = Path(__file__).resolve().parents[2].parent / "shared" / "inputs" / "topo-matrix"
PRESETS = [
    ("dgx-1v", {"gpu": "v100", "sockets": "qpi", "nic": "100Gb/s"}),
    ("dgx-a100", {"gpu": "a100", "nic": "200Gb/s"}),
    ("dgx-h100", {"gpu": "H100", "nic": "400Gb/s"}),
    ("dgx-b200", {"gpu": "b200", "sockets": "upi2-20", "nic": "50GB/s"}),
    ("aws-p4d", {"gpu": "a100", "pcie": "3", "sockets": "upi", "nic": "efa-100"}),
    ("azure-ndv4", {"gpu": "a100", "nic": "ib-hdr"}),
    ("gcp-a3", {"gpu": "h100", "nic": "gvnic-200"}),
    ("gcp-a3-mega", {"gpu": "h100", "nic": "gvnic-200"}),
    ("hgx-pcie", {"pcie": "4", "sockets": "upi-ice", "nic": "200Gb/s"}),
]


@pytest.mark.parametrize(("name", "params"), PRESETS)
@pytest.mark.parametrize("nodes", [1, 3, 50])
@pytest.mark.parametrize("gpus", [8, 5])
def test_matrix_of_a_preset_reads_back_as_that_preset(name: str, params: dict[str, str], nodes: int, gpus: int) -> None:
    ours = read(written(make(name)), **params, nodes=str(nodes), gpus=str(gpus), nvswitch="true" if "1v" not in name else "false")
    theirs = make(name, {"nodes": nodes, "gpus": gpus})
    assert ours.gpus == theirs.gpus
    assert links(ours) == links(theirs)
    assert sorted(map(repr, ours.nodes)) == sorted(map(repr, theirs.nodes))
    if nodes > 1:
        assert ours.groups == theirs.groups


@pytest.mark.parametrize(("name", "gpu"), [("nvlink-bridge", "a6000"), ("nvlink-bridge-a100", "a100"), ("nvlink-bridge-h100", "h100-pcie")])
def test_bridged_cards_read_back(name: str, gpu: str) -> None:
    theirs = make(name, {"gpus": 6})
    ours = read(written(theirs), gpu=gpu, sockets="upi2" if "h100" in name else "upi-ice")
    assert links(ours) == links(theirs)


def test_two_boards_of_nvswitches_look_like_one() -> None:
    theirs = make("dgx-2")
    ours = read(written(theirs), gpu="v100")
    assert words(ours) == words(theirs)
    assert ours.link("gpu11", "nvswitch").lanes == theirs.link("gpu11", "nvswitch1").lanes == 6


def test_mixed_box() -> None:
    box = read(MIXED, gpu="v100")
    assert words(box) == words_of(MIXED)
    lanes = {(a, b): box.link(f"gpu{a}", f"gpu{b}").lanes for a, b in ((0, 1), (0, 2), (1, 3), (2, 3))}
    assert lanes == {(0, 1): 2, (0, 2): 1, (1, 3): 1, (2, 3): 2}
    parents = {
        link.src: link.dst for link in box.links if link.kind == "pcie3" and not link.src.startswith("cpu") and link.dst[:3] != link.src[:3]
    }
    assert [box.link(*pair).bandwidth for pair in (("gpu0", "pcie1"), ("pcie1", "pcie0"), ("nic2", "cpu1"))] == [15.75e9] * 3
    assert parents["gpu2"] == parents["gpu3"] == parents["nic2"] == "cpu1"
    assert box.link("cpu0", "cpu1").kind == "upi"
    assert not notes(MIXED, gpu="v100")
    assert parse_matrix(MIXED).names == {"NIC0": "mlx5_0", "NIC1": "mlx5_1", "NIC2": "mlx5_bond_0"}


def test_rails_of_an_uneven_box() -> None:
    """GPU 2 and 3 leave by the NIC of their CPU; a rail for each NIC, and every NIC has its leaf."""
    pair = read(MIXED, gpu="v100", nodes="2", nic="roce-100")
    assert pair.groups["rails"] == ((0, 4), (1, 5), (2, 3, 6, 7))
    assert pair.groups["leaves"] == pair.groups["rails"]
    assert pair.link("s1.nic2", "leaf2").kind == "roce-100"
    assert not pair.node("leaf2").reduces
    assert read(MIXED, gpu="v100", nodes="2", nic="100Gb/s").node("leaf0").reduces
    assert Router(pair).path(*(list(pair.graph).index(gpu) for gpu in ("s0.gpu2", "s1.gpu3")))
    nics = [node.name for node in pair.nodes if node.kind == "nic"]
    assert [sum("leaf" in other for other in pair.graph[nic]) for nic in nics] == [1] * 6


def test_nics_that_no_gpu_uses_stay_out_of_the_network() -> None:
    text = MIXED.replace("NODE", "PHB").replace("PXB", "PIX")
    text = text.replace("GPU0\t X \tNV2\tNV1\tSYS\tPIX\tPIX\tSYS", "GPU0\t X \tNV2\tNV1\tSYS\tPIX\tNODE\tSYS")
    text = text.replace("GPU1\tNV2\t X \tSYS\tNV1\tPIX\tPIX", "GPU1\tNV2\t X \tSYS\tNV1\tPIX\tNODE")
    text = text.replace("NIC1\tPIX\tPIX\tSYS\tSYS\tPIX", "NIC1\tNODE\tNODE\tSYS\tSYS\tNODE").replace(
        "NIC0\tPIX\tPIX\tSYS\tSYS\t X \tPIX", "NIC0\tPIX\tPIX\tSYS\tSYS\t X \tNODE"
    )
    assert "nic1" in read(text, gpu="v100").graph
    pair = read(text, gpu="v100", nodes="2", nic="100Gb/s")
    assert [name for name in pair.graph if "nic" in name] == ["s0.nic0", "s0.nic2", "s1.nic0", "s1.nic2"]
    assert pair.groups["rails"] == ((0, 1, 4, 5), (2, 3, 6, 7))
    assert "left out: NIC1" in notes(text, gpu="v100", nodes="2", nic="100Gb/s")


def test_the_gpu_with_fewer_choices_chooses_its_nic_first() -> None:
    text = "GPU0 GPU1 NIC0 NIC1\nGPU0 X PHB PHB PHB\nGPU1 PHB X PHB NODE\n"
    pair = read(text, pcie="4", nodes="2", nic="ib-hdr")
    nics = [name for name in pair.graph if name.startswith("s0.nic")]
    assert [nics[[0 in rail for rail in pair.groups["rails"]].index(True)], len(nics)] == ["s0.nic1", 2]


def test_a_nic_sits_at_the_cpu_of_the_nearest_gpu() -> None:
    assert read(MIXED.replace("PHB", "NODE"), gpu="v100").graph.has_edge("nic2", "cpu1")
    torn = MIXED.replace("NV1\tSYS\tPIX\tPXB\tSYS", "NV1\tSYS\tPIX\tPXB\tNODE").replace("NIC2\tSYS", "NIC2\tNODE")
    assert read(torn, gpu="v100").graph.has_edge("nic2", "cpu1")
    assert "row GPU0, column NIC2: NODE, but on two CPUs by affinity" in notes(torn, gpu="v100")
    lost = MIXED.replace("PHB", "SYS").replace("NODE", "SYS")
    assert read(lost, gpu="v100").graph.has_edge("nic2", "cpu0")
    assert "NIC2 (mlx5_bond_0): near no GPU, the CPU is not known; taken as cpu0" in notes(lost, gpu="v100")


def test_equal_counts_are_an_nvswitch_only_where_direct_links_would_be_too_many() -> None:
    def full(n: int, word: str) -> str:
        rows = [f"GPU{a} " + " ".join("X" if a == b else word for b in range(n)) + " 0-3 0" for a in range(n)]
        return "\n".join([" ".join(f"GPU{a}" for a in range(n)) + " CPU Affinity NUMA Affinity", *rows])

    assert "nvswitch" not in read(full(4, "NV4"), gpu="a100").graph
    assert read(full(4, "NV12"), gpu="a100").link("gpu3", "nvswitch").lanes == 12
    assert "nvswitch" not in read(full(2, "NV12"), gpu="a100").graph
    assert read(full(2, "NV12"), gpu="a100", nvswitch="true").link("gpu1", "nvswitch").lanes == 12
    assert read(full(4, "NV18"), gpu="h100").node("nvswitch").reduces
    assert not read(full(4, "NV12"), gpu="a100").node("nvswitch").reduces
    slower = full(4, "NV12").replace("GPU3 NV12 NV12 NV12", "GPU3 NV8 NV8 NV8")
    slower = slower.replace("NV12 0-3", "NV8 0-3")
    assert [read(slower, gpu="a100").link(f"gpu{g}", "nvswitch").lanes for g in range(4)] == [12, 12, 12, 8]
    with pytest.raises(TopologyError, match=r"row GPU0: 36 NVLinks, but gpu=a100 has 12"):
        read(full(4, "NV12"), gpu="a100", nvswitch="false")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("\t", "  "),
        lambda text: text.replace("\n", "\r\n"),
        lambda text: "\ufeff" + text,
        lambda text: "$ nvidia-smi topo -m\n" + text + "           8   2   float   sum    20.36    0.00\n",
        lambda text: text.replace("\tGPU0\tGPU1", "\t\x1b[4mGPU0\tGPU1", 1).replace("GPU NUMA ID", "GPU NUMA ID\x1b[0m"),
        lambda text: text.replace("\tGPU0\tGPU1", "\t[4mGPU0\tGPU1", 1).replace("GPU NUMA ID", "GPU NUMA ID[0m"),
        lambda text: text.replace("\tNIC1\tNIC2", "\nNIC1\tNIC2").replace("\tPXB\tSYS", "\nPXB\tSYS").replace("\tSYS\tPHB", "\nSYS PHB"),
        lambda text: text.replace("SYS\t", "SOC\t"),
        lambda text: "".join(line for line in text.splitlines(True) if not line.startswith("NIC1")),
        lambda text: text.replace("\tNV2\t X \tSYS\tNV1\tPXB\tPIX", "\tNV2\t X \tSYS\tNV1\tPXB\tPIX"),
        lambda text: text.partition("\nNIC2")[0],
        lambda text: text.replace("\t0\t\tN/A", "").replace("\t1\t\tN/A", "").replace("\tNUMA Affinity\tGPU NUMA ID", ""),
    ],
)
def test_pastes_read_alike(change) -> None:
    plain, pasted = read(MIXED, gpu="v100"), read(change(MIXED), gpu="v100")
    assert plain == pasted


def test_cut_rows_are_filled_from_columns_and_said() -> None:
    cut = "\n".join(MIXED.splitlines()[:6])  # GPUs and NIC0
    assert "rows NIC1, NIC2 are missing or cut" in notes(cut, gpu="v100")
    assert "pairs of NICs without a word: 1;" in notes(cut, gpu="v100")
    assert words(read(cut, gpu="v100")) == words_of(MIXED)
    without = "\n".join(line for line in MIXED.splitlines() if not line.startswith("GPU2"))
    assert "rows GPU2 are missing" in notes(without, gpu="v100")
    assert "affinity columns do not tell" in notes(without, gpu="v100")
    assert words(read(without, gpu="v100")) == words_of(MIXED)
    with pytest.raises(TopologyError, match="row GPU2, column GPU3: missing"):
        read("\n".join(MIXED.splitlines()[:3]), gpu="v100")


def test_affinity_against_words_is_said() -> None:
    text = MIXED.replace("16-31,48-63\t1", "0-15,32-47\t0")
    assert "row GPU0, column GPU3: SYS, but on one CPU by affinity, which is taken (10 such pairs)" in notes(text, gpu="v100")
    assert "cpu1" not in read(text, gpu="v100").graph
    lost = PAIR.replace("PIX    0-7", "SYS    0-7").replace("NODE   0-7", "SYS    0-7").replace("mlx5_0 PIX NODE", "mlx5_0 SYS SYS")
    assert "mlx5_0: near no GPU, the CPU is not known; taken as cpu1" in notes(lost, gpu="a100")


def test_files_are_known_by_what_they_hold(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    for name in ("box.txt", "box.topo", "box", "box.log"):
        path = tmp_path / name
        path.write_text(MIXED, encoding="utf-8")
        assert load(str(path), {"gpu": "v100"}) == machine_of(str(path), {"gpu": "v100"}) == read_nvidia_smi(path, {"gpu": "v100"})
        assert load(str(path), {"gpu": "v100"}).name == "box-1x4"
    path.with_suffix(".txt").write_text('topology = "ring"\n', encoding="utf-8")
    assert load(str(path.with_suffix(".txt"))) == make("ring")
    for content in (b"\xff\xfeG\0P\0U\0000", b"", b"\0" * 99, b"GPU0 X NV1\n"):
        path = tmp_path / "bad.topo"
        path.write_bytes(content)
        with pytest.raises(TopologyError, match=r"^bad\.topo: "):
            machine_of(str(path), {"gpu": "v100"})
    for missing in ("none.topo", "none.txt", str(tmp_path)):
        with pytest.raises(TopologyError, match=r"no such file|not a regular file"):
            machine_of(missing, {})
    caplog.clear()
    (tmp_path / "cut.txt").write_text("\n".join(MIXED.splitlines()[:6]), encoding="utf-8")
    with caplog.at_level(logging.WARNING):
        load(str(tmp_path / "cut.txt"), {"gpu": "v100"})
    assert "cut.txt: rows NIC1, NIC2 are missing" in caplog.text


def shared() -> list[Path]:
    return sorted(SHARED.glob("*.txt")) if SHARED.is_dir() else []


@pytest.mark.skipif(not shared(), reason="the shared inputs are not here")
def test_every_shared_matrix_is_read_or_refused_for_its_reason() -> None:
    expected: dict[str, int | str] = {
        "a100-malformed-paste.txt": 'row GPU0, column mlx5_4: "NODENODE" is NODE and NODE without a blank',
        "case320.txt": 3,
        "h100-8gpu-10nic.txt": 8,
        "t4.txt": 4,
    }
    model = {"case320.txt": "v100", "h100-8gpu-10nic.txt": "h100", "t4.txt": "t4"}
    for path in shared():
        found = expected[path.name]
        if isinstance(found, str):
            with pytest.raises(TopologyError, match=found):
                load(str(path), {"gpu": "a100"})
        else:
            assert len(load(str(path), {"gpu": model[path.name]}).gpus) == found
    box = load(str(SHARED / "h100-8gpu-10nic.txt"), {"gpu": "h100", "nodes": "2", "nic": "400Gb/s"})
    nics = [0, 1, 2, 5, 6, 7, 8, 9]
    assert [name for name in box.graph if name.startswith("s1.nic")] == [f"s1.nic{n}" for n in nics]
    assert box.groups["rails"] == tuple((g, g + 8) for g in range(8))
    t4 = load(str(SHARED / "t4.txt"), {"gpu": "t4"})
    assert [t4.graph.has_edge(f"gpu{g}", "cpu0") for g in range(4)] == [True, False, False, False]
    assert load(str(SHARED / "case320.txt"), {"gpu": "v100"}).link("gpu0", "gpu1").lanes == 4


@given(st.permutations(range(4)), st.data())
def test_order_of_rows_does_not_matter(order: list[int], data: st.DataObject) -> None:
    lines = MIXED.splitlines()
    body = [lines[1 + i] for i in order] + data.draw(st.permutations(lines[5:8]))
    assert read("\n".join([lines[0], *body]), gpu="v100") == read(MIXED, gpu="v100")


sizes = st.lists(st.lists(st.integers(2, 4), min_size=1, max_size=3), max_size=3)


@given(sizes, sizes, st.integers(0, 3), st.integers(1, 3), st.randoms(use_true_random=False))
def test_any_pcie_tree_reads_back(first, second, loose: int, loose_there: int, random) -> None:
    """Two CPUs, on each some cascades of switches and devices of its own; devices in any order, a third of them NICs."""
    spots = [
        (cpu, i, j) for cpu, tree in enumerate((first, second)) for i, sw in enumerate(tree) for j, n in enumerate(sw) for _ in range(n)
    ]
    spots += [(0, -1 - i, 0) for i in range(loose)] + [(1, -1 - i, 0) for i in range(loose_there)] + [(0, -9, 0), (1, -9, 0)]
    random.shuffle(spots)
    nics = [spot for i, spot in enumerate(spots) if i % 3 == 2]
    gpus = [spot for i, spot in enumerate(spots) if i % 3 != 2]
    names = {f"GPU{i}": spot for i, spot in enumerate(gpus)} | {f"NIC{i}": spot for i, spot in enumerate(nics)}

    def word(a: str, b: str) -> str:
        (cpu, wide, tight), (cpu_b, wide_b, tight_b) = names[a], names[b]
        if a == b or cpu != cpu_b:
            return "X" if a == b else "SYS"
        return "PHB" if wide != wide_b else "PIX" if tight == tight_b else "PXB"

    numa = {name: f" {spot[0]}-{spot[0]} {spot[0]}" if name in list(names)[: len(gpus)] else "" for name, spot in names.items()}
    rows = [" ".join([a, *(word(a, b) for b in names)]) + numa[a] for a in names]
    text = "\n".join([" ".join([*names, "CPU Affinity NUMA Affinity"]), *rows])
    said = words(read(text, pcie="5"))
    assert {(a, b): "PHB" if w == "NODE" else w for (a, b), w in said.items()} == words_of(text)
