"""NCCL's graph XML: what the search found, and what must not be taken for one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from prediction.nccl_graph import Channel, read_nccl_graphs
from topologies.errors import RingscopeError, TopologyError

SHARED = Path(__file__).parents[3] / "shared" / "inputs" / "graph-xml" / "azure-ncv4.xml"

TWO_SERVERS = """<graphs version="1">
  <graph id="0" pattern="4" crossnic="2" nchannels="2" speedintra="20.5" speedinter="12" latencyinter="1.5" typeintra="NVL"
   typeinter="PXB" samechannels="1">
    <channel>
      <net dev="3"/>
      <gpu dev="2"/>
      <gpu dev="0"/>
      <gpu dev="1"/>
      <net dev="4"/>
    </channel>
    <channel><net dev="1"/><gpu dev="1"/><gpu dev="2"/><gpu dev="0"/><net dev="0"/></channel>
  </graph>
  <graph id="3" pattern="5" nchannels="1" speedintra="40" speedinter="20" typeintra="NVL" typeinter="PIX" samechannels="0">
    <channel><gpu rank="7"/></channel>
  </graph>
</graphs>
"""


@pytest.fixture
def read(tmp_path: Path):
    def read(text: str | bytes):
        path = tmp_path / "graph.xml"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        return read_nccl_graphs(path)

    return read


def test_rings_with_their_nics(read) -> None:
    graphs = read(TWO_SERVERS)
    assert list(graphs) == ["ring", "nvls"]
    ring = graphs["ring"]
    assert ring.channels == (Channel((2, 0, 1), (3, 4)), Channel((1, 2, 0), (1, 0)))
    assert (ring.pattern, ring.cross_nic, ring.same_channels, ring.type_intra, ring.type_inter) == ("ring", 2, True, "NVL", "PXB")
    assert (ring.bandwidth_intra, ring.bandwidth_inter, ring.latency_inter) == (20.5e9, 12e9, 1.5e-6)
    assert graphs["nvls"].channels == (Channel((7,)),)
    assert not graphs["nvls"].same_channels


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("<graphs", "<system", r"is not XML|begins with <system>; a graph file of NCCL begins with <graphs>"),
        ('id="3"', 'id="0"', r'line 13: <graph> id="0": stands twice; a file has one ring graph'),
        ('id="3"', 'id="5"', r'line 13: <graph> id="5": write a whole number from 0 to 4'),
        ('id="3" ', "", r"line 13: <graph> has no id"),
        ('pattern="4"', 'pattern="9"', r'line 2: <graph> pattern="9"'),
        ('nchannels="2"', 'nchannels="3"', r'line 2: <graph> nchannels="3": there are 2 <channel>'),
        ('speedintra="20.5"', 'speedintra="nan"', r'line 2: <graph> speedintra="nan": write a number from 0'),
        ('speedintra="20.5"', 'speedintra="-1"', r'speedintra="-1"'),
        ('speedintra="20.5"', 'speedintra="1e300"', r'speedintra="1e300"'),
        ('typeintra="NVL"', 'typeintra="NVLL"', r'line 2: <graph> typeintra="NVLL": not known; did you mean "NVL"'),
        ('<gpu dev="0"/>', '<gpu dev="2"/>', r"line 6: GPU 2 stands twice in a channel"),
        ('<gpu dev="0"/>', '<gpu dev="5"/>', r"line 2: ring 1 goes over other GPUs than ring 0"),
        ('<gpu dev="0"/>', '<gpu dev="-1"/>', r'line 7: <gpu> dev="-1"'),
        ('<gpu dev="0"/>', "<gpu/>", r"line 7: <gpu> has no rank"),
        ('<gpu rank="7"/>', "", r"line 14: 0 GPUs in a channel"),
        ('<gpu rank="7"/>', '<gpu rank="7"/>' + '<net dev="1"/>' * 3, r"line 14: 3 <net> in a channel"),
        ("<graphs", '<!DOCTYPE a [<!ENTITY b "c">]><graphs', r"line 1: declares a document type or an entity"),
    ],
)
def test_a_wrong_file_is_refused_with_its_line(read, old: str, new: str, message: str) -> None:
    assert old in TWO_SERVERS
    with pytest.raises(TopologyError, match=r"^graph\.xml: ") as caught:
        read(TWO_SERVERS.replace(old, new, 1))
    assert re.search(message, str(caught.value))


def test_a_file_without_graphs(read, tmp_path: Path) -> None:
    with pytest.raises(TopologyError, match="line 1: has no <graph>"):
        read('<graphs version="1"/>')
    with pytest.raises(TopologyError, match="no such file; name a graph file"):
        read_nccl_graphs(tmp_path / "gone.xml")


def test_the_real_file() -> None:
    if not SHARED.is_file():
        pytest.skip("the real files stand beside the project, in ../shared/inputs, and are not here")
    graphs = read_nccl_graphs(SHARED)
    assert [channel.gpus for channel in graphs["ring"].channels] == [(0, 1, 2, 3), (0, 3, 2, 1)]
    assert [channel.gpus[0] for channel in graphs["tree"].channels] == [0, 1, 3, 2]
    assert graphs["tree"].pattern == "balanced tree"
    assert graphs["collnet-chain"].bandwidth_inter == 12e9
    assert {graph.type_intra for graph in graphs.values()} == {"SYS"}


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_mutated_files(read, data: st.DataObject) -> None:
    text = TWO_SERVERS
    for _ in range(data.draw(st.integers(1, 3))):
        hits = list(re.finditer(r'"[^"]*"|<\w+|/>', text))
        hit = hits[data.draw(st.integers(0, len(hits) - 1))]
        text = (
            text[: hit.start()]
            + data.draw(st.sampled_from(['"-1"', '"nan"', '""', "<gpu", "<net", "/>", ""]) | st.text(max_size=5))
            + text[hit.end() :]
        )
        if not re.search(r'"[^"]*"|<\w+|/>', text):
            break
    message = None
    try:
        read(text.encode("utf-8", "surrogatepass"))
    except RingscopeError as error:
        message = str(error)
    assert message is None or (message.startswith("graph.xml: ") and message.isprintable())
