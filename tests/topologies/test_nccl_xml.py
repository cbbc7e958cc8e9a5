"""NCCL's topology XML: what a file means, what it leaves out, and servers made of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from nccl_files import CARDS, PAIR, VM, cables, reader

from prediction.limits import machine_of, names_file
from topologies import LINK_TYPES, Topology, TopologyError, make, names
from topologies.nccl_xml import read_nccl_xml

SHARED = Path(__file__).parents[3] / "shared" / "inputs" / "topo-xml"


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Topology]:
    return reader(tmp_path)


def test_a_dump_means_what_it_says(read) -> None:
    topology = read(PAIR)
    assert [node.name for node in topology.nodes] == ["gpu0", "gpu1", "nvswitch", "pcie0", "pcie1", "pcie2", "nic0", "nic1", "cpu0", "cpu1"]
    assert topology.name == "box"
    assert topology.groups == {"servers": ((0, 1),)}
    assert {node.server for node in topology.nodes} == {0}
    assert topology.node("nvswitch").reduces
    assert cables(topology) == {
        ("gpu0", "nvswitch"): ("nvlink4", 12),
        ("gpu1", "nvswitch"): ("nvlink4", 12),  # 5 and 7 to two NVSwitches
        ("gpu0", "gpu1"): ("nvlink4", 6),
        ("gpu1", "pcie0"): ("pcie5", 16),
        ("nic1", "pcie0"): ("pcie5", 16),
        ("cpu0", "pcie0"): ("pcie4", 8),
        ("gpu0", "pcie2"): ("pcie3", 16),  # unknown, NCCL's default
        ("pcie1", "pcie2"): ("pcie5", 16),
        ("cpu1", "pcie1"): ("pcie2", 16),
        ("cpu1", "nic0"): ("pcie3", 16),
        ("cpu0", "cpu1"): ("upi2", 4),
    }
    assert topology.link("gpu0", "gpu1").bandwidth == 6 * 25e9
    assert topology.link("pcie1", "cpu1").bandwidth == 8e9
    assert "the file does not say" in topology.link("gpu0", "pcie2").source


def test_links_that_lead_nowhere(read) -> None:
    """To the GPU itself, as Azure NC A100 v4 declares them, to a GPU that was trimmed away, and none: as in NCCL, no link."""
    alone = read(re.sub(r'<nvlink target="0000:[12]1:00.0" count="6"', '<nvlink target="0000:77:00.0" count="6"', PAIR))
    swapped = {"11": "21", "21": "11"}
    itself = re.sub(r'(<nvlink target="0000:)(..)(:00.0" count="6")', lambda hit: hit[1] + swapped[hit[2]] + hit[3], PAIR)
    assert itself != PAIR
    assert read(itself) == alone
    assert not alone.graph.has_edge("gpu0", "gpu1")
    assert read(PAIR.replace('count="6"', 'count="0"')) == alone
    assert read(PAIR.replace('tclass="0x068000"', "")) == read(PAIR)


@pytest.mark.parametrize(
    ("vendor", "family", "model", "kind", "lanes"),
    [
        ("GenuineIntel", 6, 79, "qpi", 2),
        ("GenuineIntel", 6, 85, "upi", 3),
        ("GenuineIntel", 6, 106, "upi-ice", 3),
        ("GenuineIntel", 6, 143, "upi2", 4),
        ("GenuineIntel", 6, 173, "upi2-24", 4),
        ("GenuineIntel", 6, 174, "upi2-24", 4),
        ("GenuineIntel", 6, 207, "upi2-20", 4),
        ("AuthenticAMD", 23, 49, "xgmi-cpu", 4),
        ("AuthenticAMD", 175, 1, "xgmi-cpu", 4),  # Milan as NCCL prints it
        ("AuthenticAMD", 175, 17, "xgmi-cpu-genoa", 4),
        ("AuthenticAMD", 25, 17, "xgmi-cpu-genoa", 4),
        ("", -1, -1, "upi2", 4),  # what is usual with PCIe 5.0
    ],
)
def test_sockets_follow_from_the_cpu(read, vendor: str, family: int, model: int, kind: str, lanes: int) -> None:
    named = f'vendor="{vendor}" familyid="{family}" modelid="{model}"'
    assert cables(read(PAIR.replace('vendor="GenuineIntel" familyid="6" modelid="143"', named)))["cpu0", "cpu1"] == (kind, lanes)
    assert cables(read(PAIR.replace('arch="x86_64"', 'arch="arm64"')))["cpu0", "cpu1"] == ("grace-link", 1)


@pytest.mark.parametrize(("speed", "kind"), [("8.0", "upi"), ("16.0", "upi-ice"), ("64.0", "upi2-24")])
def test_an_unnamed_cpu_has_the_sockets_usual_with_the_fastest_pcie(read, speed: str, kind: str) -> None:
    slow = re.sub(r"[0-9.]+ GT/s", "8.0 GT/s", PAIR.replace('vendor="GenuineIntel" familyid="6" modelid="143"', ""))
    assert cables(read(slow.replace("8.0 GT/s", f"{speed} GT/s", 1)))["cpu0", "cpu1"][0] == kind


def test_numa_nodes_of_one_socket_are_joined_wider(read) -> None:
    """8 NUMA nodes of 2 sockets: 12 pairs within one have all links of the kind, 16 pairs across one each."""
    empty = """<cpu numaid="{}" arch="x86_64" vendor="GenuineIntel" familyid="6" modelid="143">
      <nic><net name="n{}" dev="{}" speed="10000" port="0"/></nic></cpu>"""
    text = PAIR.replace("</system>", "".join(empty.format(i, i, i + 10) for i in range(2, 8)) + "</system>")
    sockets = {ends: cable for ends, cable in cables(read(text)).items() if ends[1].startswith("cpu") and ends[0].startswith("cpu")}
    wide = {ends for ends, cable in sockets.items() if cable == ("upi2", 4)}
    assert wide == {(f"cpu{half + i}", f"cpu{half + j}") for half in (0, 4) for i in range(4) for j in range(i + 1, 4)}
    assert {cable for ends, cable in sockets.items() if ends not in wide} == {("upi2", 1)}
    assert len(sockets) == 28


def test_a_nic_of_unknown_speed_has_10_gigabits(read) -> None:
    alone = re.sub(r"<nic><net name=\"a\".*?</nic>", "", PAIR, flags=re.DOTALL).replace('class="0x020000"', 'class="0x010802"')
    for unknown in ("-1", "0"):
        two = read(alone.replace('speed="-1"', f'speed="{unknown}"'), nodes=2)
        assert two.link("s0.nic0", "leaf0").bandwidth == 10e9 / 8
    assert read(alone.replace('speed="-1"', 'speed="1"'), nodes=2).link("s0.nic0", "leaf0").bandwidth == 1e6 / 8


def test_what_is_missing_is_named_with_its_line_and_how_to_say_it(read) -> None:
    with pytest.raises(
        TopologyError, match=r"^box\.xml: gpu 0 \(line 4\): no gpu element, so no nvlink elements; give gpu=h100 or nvlinks=18"
    ):
        read(VM)
    with pytest.raises(TopologyError, match=r"^box\.xml: gpu 0 \(line 4\): no nvlink elements; give gpu=h100"):
        read(CARDS)
    one_lacks = re.sub(r'rank="1" gdr="1">.*?</gpu>', 'rank="1" gdr="1"/>', PAIR, flags=re.DOTALL).replace(
        'target="0000:11:00.0"', 'target=""'
    )
    with pytest.raises(TopologyError, match=r"gpu 1 \(line 4\): no nvlink elements"):
        read(one_lacks)
    assert cables(read(one_lacks, nvlinks="18"))["gpu1", "nvswitch"] == ("nvlink4", 18)


def test_parameters_complete_a_file(read) -> None:
    h100 = read(VM, gpu="h100")
    assert cables(h100)["gpu0", "nvswitch"] == ("nvlink4", 18)
    assert h100.node("nvswitch").reduces
    assert read(VM, nvlinks="18") == h100 == read(VM, gpu="H100", nvlinks=18)
    assert cables(read(VM, gpu="h100", nvlinks="7"))["gpu1", "nvswitch"] == ("nvlink4", 7)
    assert cables(read(VM, gpu="b200"))["gpu0", "nvswitch"] == ("nvlink5", 18)
    a100 = read(VM, gpu="a100")
    assert cables(a100)["gpu0", "nvswitch"] == ("nvlink3", 12) == cables(read(VM, nvlinks="12"))["gpu0", "nvswitch"]
    assert not a100.node("nvswitch").reduces
    assert cables(read(VM, gpu="mi300x"))["gpu0", "gpu1"] == ("xgmi", 1)
    cards = read(VM, nvlinks="0")
    assert {link.kind for link in cards.links} == {"pcie5"}
    assert read(VM, gpu="l40s") == cards
    assert cables(read(CARDS, nvlinks="6"))["gpu0", "nvswitch"] == ("nvlink2", 6)
    assert {link.kind for link in read(CARDS.replace('sm="70"', 'sm="89"')).links} == {"pcie5", "pcie3"}


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        (VM, {"gpu": "h10"}, r'gpu = "h10" is not a known model; did you mean "h100"'),
        (VM, {"gpu": "v100"}, r'gpu = "v100" is not a known model'),
        (VM, {"gpus": "2"}, r'there is no parameter "gpus"; did you mean "gpu"'),
        (VM, {"nvlinks": "-1"}, r'nvlinks: "-1" is not a count'),
        (VM, {"nvlinks": "nan"}, r'nvlinks: "nan" is not a count'),
        (VM, {"nvlinks": "5"}, r"nvlinks = 5 does not tell the NVLink generation; give the model too"),
        (VM, {"gpu": "h100", "nic": "ib-ndrr"}, r'nic = "ib-ndrr" is not a link type; did you mean "ib-ndr"'),
        (VM, {"gpu": "h100", "nodes": "0"}, r'nodes: "0" is not a count'),
        (VM, {"gpu": "h100", "nodes": "2"}, r"nic0 \(line 5\): no net element, so no speed; give its link type, as nic=ib-ndr"),
        (VM, {"gpu": "h100", "nodes": "100000000", "nic": "ib-ndr"}, r"nodes = 100000000 needs about .* the largest that fits"),
        (VM, {"gpu": "h100", "nodes": "2000", "nic": "ib-ndr"}, r"third tier of switches"),
        (PAIR, {"gpu": "a100"}, r"gpu = a100 has sm 80, but gpu 0 \(line 19\) has sm 90"),
        (PAIR, {"gpu": "mi300x"}, r"gpu = mi300x has sm 304, but gpu 0 \(line 19\) has sm 90"),
        (PAIR, {"nvlinks": "18"}, r"the file has the NVLinks of every GPU"),
    ],
)
def test_wrong_parameters(read, text: str, params: dict[str, str], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        read(text, **params)


def test_nics_have_the_speed_of_their_ports_and_gpus_the_nearest(read) -> None:
    two = read(PAIR, nodes=2)
    cable = two.link("s1.nic1", "leaf0")
    assert (cable.kind, cable.bandwidth, cable.lanes) == ("roce-400", 2 * 180e9 / 8, 1)
    assert cable.latency == pytest.approx(LINK_TYPES["roce-400"].latency + 1.5e-6)
    assert "rate from the topology file" in cable.source
    assert not two.node("leaf0").reduces
    assert not two.graph.has_edge("s0.nic0", "leaf0")  # eth0 is of another kind, slower
    assert two.groups == {"servers": ((0, 1), (2, 3)), "rails": ((0, 1, 2, 3),), "leaves": ((0, 1, 2, 3),)}
    assert read(VM, gpu="h100", nodes=3, nic="ib-ndr").groups["rails"] == ((0, 2, 4), (1, 3, 5))
    efa = read(VM.replace('class="0x020700"', 'class="0x020000" vendor="0x1d0f"'), gpu="h100", nodes=2, nic="efa-100")
    assert {link.dst for link in efa.links if link.src.endswith("nic0") and link.kind == "efa-100"} == {"fabric"}
    with pytest.raises(TopologyError, match="has no NIC"):
        read(re.sub(r".*0x020700.*\n", "", VM), gpu="h100", nodes=2)


def test_several_hosts_of_one_nvlink_domain(read) -> None:
    host = VM[VM.index("  <cpu") : VM.index("</system>")]
    hosts = "".join(host.replace("<cpu", f'<cpu host_hash="{name}"') for name in ("0xa", "0xb"))
    text = f'<system version="1">{hosts}</system>'
    topology = read(text, gpu="b200")
    assert topology.gpus == ("s0.gpu0", "s0.gpu1", "s1.gpu0", "s1.gpu1")
    assert topology.groups["servers"] == ((0, 1), (2, 3))
    assert topology.node("nvswitch").server is None
    assert topology.node("s1.cpu0").server == 1
    with pytest.raises(TopologyError, match="already has 2 servers"):
        read(text, gpu="b200", nodes=2)


def test_a_name_that_ends_in_xml_is_a_topology(tmp_path: Path) -> None:
    path = tmp_path / "box.xml"
    path.write_text(VM, encoding="utf-8")
    assert names_file("box.xml")
    assert len(machine_of(str(path), {"gpu": "h100", "nodes": "3", "nic": "ib-ndr"}).gpus) == 6
    with pytest.raises(TopologyError, match=r"^box\.xml: gpu 0"):
        machine_of(str(path), {})


@pytest.mark.parametrize(
    ("file", "params", "wanted"),
    [
        ("aws-p4d", {}, "gpu 0 .line 18.: no gpu element"),
        ("aws-p4d", {"gpu": "a100"}, {"nvlink3": 8, "pcie3": 16, "upi": 1}),
        ("azure-ndv4", {}, "gpu 0 .line 4.: no gpu element"),
        ("azure-ndv4", {"nvlinks": "12"}, {"nvlink3": 8, "pcie4": 20, "xgmi-cpu": 6}),
        ("azure-ndv5", {}, "gpu 0 .line 4.: no gpu element"),
        ("azure-ndv5", {"gpu": "h100"}, {"nvlink4": 8, "pcie5": 24, "upi2": 1}),
        ("azure-ncv4", {}, {"pcie3": 5, "xgmi-cpu": 6}),
        ("oci-h100", {}, {"nvlink4": 8, "pcie5": 32, "pcie2": 8, "upi2": 1}),
        ("mi300x-8p", {}, {"xgmi": 28, "pcie5": 40, "upi2": 1}),
        ("v100", {}, "1 GPU .*; a collective needs at least 2"),
    ],
)
def test_real_files(file: str, params: dict[str, str], wanted: dict[str, int] | str) -> None:
    path = SHARED / f"{file}.xml"
    if not path.is_file():
        pytest.skip("the real files stand beside the project, in ../shared/inputs, and are not here")
    if isinstance(wanted, str):
        with pytest.raises(TopologyError, match=f"^{file}.xml: {wanted}"):
            read_nccl_xml(path, params)
        return
    topology = read_nccl_xml(path, params)
    counts: dict[str, int] = {}
    for kind, _ in cables(topology).values():
        counts[kind] = counts.get(kind, 0) + 1
    assert counts == wanted


def test_every_real_file_is_in_the_list_above() -> None:
    if not SHARED.is_dir():
        pytest.skip("the real files stand beside the project, in ../shared/inputs, and are not here")
    (mark,) = [mark for mark in test_real_files.pytestmark if mark.name == "parametrize"]
    assert {path.stem for path in SHARED.glob("*.xml")} == {case[0] for case in mark.args[1]}


def test_azure_files_are_the_presets_made_after_them() -> None:
    if not SHARED.is_dir():
        pytest.skip("the real files stand beside the project, in ../shared/inputs, and are not here")
    preset = make("azure-ndv5", {"nodes": 2})
    assert replace(read_nccl_xml(SHARED / "azure-ndv5.xml", {"gpu": "h100", "nodes": 2, "nic": "ib-ndr"}), name=preset.name) == preset


def test_no_topology_generator_was_registered_by_the_reader() -> None:
    assert not [name for name in names() if "xml" in name]
