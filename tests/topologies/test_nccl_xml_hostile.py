"""NCCL's topology XML that is wrong or hostile: a line that says where, never a traceback, never for long."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nccl_files import CARDS, PAIR, VM, reader, refusal

from topologies import Topology, TopologyError
from topologies.nccl_xml import read_nccl_xml
from topologies.nccl_xml_elements import MAX_DEPTH, MAX_ELEMENTS


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Topology]:
    return reader(tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('count="12"', 'count="-12"', r'line 21: <nvlink> count="-12": write a whole number from 0 to 1024'),
        ('count="12"', 'count="nan"', r'line 21: <nvlink> count="nan"'),
        ('count="12"', 'count="1e3"', r'count="1e3"'),
        ('count="12" ', "", r"line 21: <nvlink> has no count"),
        ('count="6"', 'count="4"', r"gpu 0 has 6 links to gpu 1, which has 4 back|gpu 0 has 4 links to gpu 1, which has 6 back"),
        ('rank="0"', 'rank="1"', r'lines 4 and 19: rank="1" stands twice; every gpu has its own'),
        ('sm="90"', 'sm="banana"', r'line 5: <gpu> sm="banana"'),
        ('sm="90"', 'sm="30"', r'sm="30", but NVLinks'),
        ('numaid="1"', 'numaid="0"', r'lines 2 and 16: numaid="0" stands twice'),
        ('numaid="1"', 'numaid="-2"', r'line 16: <cpu> numaid="-2"'),
        ('link_width="8"', 'link_width="99"', r'line 3: <pci> link_width="99": write a whole number from 0 to 32'),
        ('"16.0 GT/s PCIe"', '"fast"', r'line 3: <pci> link_speed="fast": write one of 2\.5, 5, 8, 16, 32, 64 GT/s'),
        ('"16.0 GT/s PCIe"', '"NaN GT/s"', r'link_speed="NaN GT/s"'),
        ('"16.0 GT/s PCIe"', '"17 GT/s"', r'link_speed="17 GT/s"'),
        ('class="0x030200"', 'class="gpu"', r'line 4: <pci> class="gpu": write a PCI class'),
        ("0000:21:00.0\" class", "0000:11:00.0\" class", r'line 4: <pci> busid="0000:11:00.0": line 19 has it too'),
        ('version="1"', 'version="x"', r'line 1: <system> version="x"'),
        ("<system", "<sistem", r"not XML|begins with <sistem>; a topology file of NCCL begins with <system>"),
        ("</system>", "", r"is not XML: no element found|is not XML: .*"),
        ('dev="1" sm', "dev=1 sm", r"line 5: is not XML: not well-formed"),
        ('rank="0"', 'rank="0" rank="0"', r"is not XML: duplicate attribute"),
        ("<system", '<!DOCTYPE a [<!ENTITY b "c">]><system', r"line 1: declares a document type or an entity"),
        ("<system", "<!DOCTYPE system><system", r"line 1: declares a document type or an entity"),
        ("<system", '<?xml version="1.0" encoding="klingon"?><system', r"is not XML: unknown encoding"),
        ('sm="90"', f'sm="{"9" * 5000}"', r"has 5000 characters; at most 1000"),
        ("<system", '<system name="a&#10;b"', r'name="a.*is not a name'),
    ],
)  # fmt: skip
def test_a_wrong_file_is_refused_with_its_line(read, old: str, new: str, message: str) -> None:
    assert old in PAIR
    with pytest.raises(TopologyError, match=r"^box\.xml: ") as caught:
        read(PAIR.replace(old, new, 1))
    assert re.search(message, str(caught.value))
    assert len(str(caught.value)) < 400


def test_bombs_are_refused_quickly(read, tmp_path: Path) -> None:
    laughs = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 10))
    with pytest.raises(TopologyError, match="document type or an entity"):
        read(f'<!DOCTYPE x [<!ENTITY l0 "ha">{laughs}]><system>&l9;</system>')
    with pytest.raises(TopologyError, match="document type or an entity"):
        read('<!DOCTYPE x [<!ENTITY f SYSTEM "file:///etc/passwd">]><system>&f;</system>')
    with pytest.raises(TopologyError, match=f"nested more than {MAX_DEPTH} deep"):
        read("<system>" + "<pci>" * 200_000)
    with pytest.raises(TopologyError, match=f"more than {MAX_ELEMENTS:,} elements"):
        read("<system>" + "<pci/>" * (MAX_ELEMENTS + 1) + "</system>")
    with pytest.raises(TopologyError, match="2000 attributes"):
        read("<system " + " ".join(f'a{i}=""' for i in range(2000)) + "/>")
    with pytest.raises(TopologyError, match="at most 16777216"):
        read(b" " * (16 * 2**20 + 1))
    with pytest.raises(TopologyError, match="1,025 GPU elements; at most 1,024"):
        read("<system><cpu>" + '<pci class="0x030200"/>' * 1025 + "</cpu></system>")
    with pytest.raises(TopologyError, match="elements; at most 4,096"):
        read("<system><cpu>" + '<pci class="0x060400"><pci class="0x030200"/></pci>' + '<pci class="0x020700"/>' * 5000 + "</cpu></system>")
    with pytest.raises(TopologyError, match="is empty"):
        read(" \n")
    with pytest.raises(TopologyError, match="no such file"):
        read_nccl_xml(tmp_path / "gone.xml")
    with pytest.raises(TopologyError, match="not a regular file"):
        read_nccl_xml(tmp_path)


QUIET = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def never_a_traceback(read, raw: bytes) -> None:
    for params in ({}, {"gpu": "h100"}, {"nvlinks": "18", "nodes": "2"}):
        message = refusal(read, raw, **params)
        if message is not None:
            assert message.startswith("box.xml: ")
            assert message.isprintable()
            assert len(message) < 1000


@QUIET
@given(st.binary(max_size=300))
def test_any_bytes(read, raw: bytes) -> None:
    never_a_traceback(read, raw)
    never_a_traceback(read, b"<system>" + raw + b"</system>")


@QUIET
@given(st.data())
def test_mutated_files(read, data: st.DataObject) -> None:
    """Attributes changed, dropped, swapped; elements cut out and repeated: still XML, or nearly."""
    text = data.draw(st.sampled_from([PAIR, VM, CARDS]))
    for _ in range(data.draw(st.integers(1, 4))):
        lines = text.splitlines()
        i, j = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        match data.draw(st.sampled_from(["value", "value", "value", "attribute", "cut", "repeat", "byte", "tag"])):
            case "value":
                values = ["", "-1", "0", "nan", "inf", "1e308", "9" * 20, "0x068001", "0x120000", "fffffff:ffff:ff", "\x7f", "é\u2028"]
                hits = list(re.finditer(r'"[^"]*"', text))
                hit = hits[data.draw(st.integers(0, len(hits) - 1))] if hits else None
                value = data.draw(st.sampled_from(values) | st.text("0123456789abcdefx:.- ", max_size=12))
                text = f'{text[: hit.start()]}"{value}"{text[hit.end() :]}' if hit else text
            case "attribute":
                text = re.sub(r' \w+="[^"]*"', "", text, count=data.draw(st.integers(1, 3)))
            case "cut":
                text = "\n".join(lines[:i] + lines[j:])
            case "repeat":
                text = "\n".join(lines[:i] + lines[min(i, j) : j + 1] + lines[i:])
            case "byte":
                at = data.draw(st.integers(0, len(text)))
                text = text[:at] + data.draw(st.characters(codec="utf-8")) + text[at + 1 :]
            case "tag":
                old, new = data.draw(st.permutations(["gpu", "nic", "net", "nvlink", "xgmi", "pci", "cpu", "c2c", "pcilink"]))[:2]
                text = text.replace(f"<{old} ", f"<{new} ").replace(f"</{old}>", f"</{new}>")
        if not text:
            break
    never_a_traceback(read, text.encode("utf-8", "surrogatepass"))
