"""Cluster files: both forms, exact round trips, and every bad file a one-line error."""

import math
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topologies import Link, Node, Topology, TopologyError, load, make, read_cluster, write_cluster
from topologies.cluster_file import MAX_FILE
from topologies.graph import both_ways

NODES = 'nodes = [{ name = "a", kind = "gpu" }, { name = "b", kind = "gpu" }]\n'
LINK = 'links = [{ between = ["a", "b"], kind = "nvlink3" }]\n'


@pytest.fixture
def file(tmp_path: Path):
    def write(content: str | bytes) -> Path:
        path = tmp_path / "cluster.toml"
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


def test_preset(file) -> None:
    path = file('topology = "dgx-a100"\n[params]\nnodes = 4\n')
    assert read_cluster(path) == make("dgx-a100", {"nodes": 4})
    assert load(str(path), {"nodes": "2"}) == make("dgx-a100", {"nodes": 2})
    assert load("ring", {"gpus": "4"}) == make("ring", {"gpus": 4})
    assert read_cluster(file('topology = "torus"\nparams = { dims = [3, 3], bandwidth = "50GB/s" }')) == make(
        "torus", {"dims": "3x3", "bandwidth": 50e9}
    )


def test_explicit_takes_the_table_unless_stated(file) -> None:
    text = """
        [[nodes]]
        name = "a"
        kind = "gpu"
        server = 0
        injection = "100GB/s"
        [[nodes]]
        name = "b"
        kind = "gpu"
        [[links]]
        from = "a"
        to = "b"
        kind = "nvlink3"
        lanes = 4
        [[links]]
        from = "b"
        to = "a"
        bandwidth = "400Gb/s"
        latency = "2us"
        [groups]
        servers = [[0, 1]]
    """
    built = read_cluster(file(text))
    assert built.name == "cluster"
    assert built.node("a") == Node("a", "gpu", 0, injection=100e9)
    there, back = built.link("a", "b"), built.link("b", "a")
    assert (there.lanes, there.bandwidth, there.source) == (4, 100e9, "NVIDIA A100: 12 links of 25 GB/s")
    assert (back.kind, back.lanes, back.bandwidth, back.latency, back.source) == ("link", 1, 50e9, 2e-6, "user")
    assert built.groups == {"servers": ((0, 1),)}
    assert built.dims == ()
    assert read_cluster(file("dims = [1, 2]\n" + text)).dims == (1, 2)


rates = st.floats(1, 1e18)
texts = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


kinds = st.sampled_from(["nvlink4", "own"])


@given(texts, rates, st.floats(0, 1e6), st.integers(1, 2**20), kinds, texts, rates | st.just(math.inf), st.booleans())
def test_any_topology_reads_back_equal(tmp_path_factory, name, rate, latency, lanes, kind, source, injection, alike) -> None:
    link = Link(name, name + "2", kind, lanes, rate, latency, source)
    back = link.reversed() if alike else replace(link.reversed(), bandwidth=1.0)
    nodes = [Node(name + "2", "gpu", 3, injection), Node(name, "gpu", ejection=injection), Node(name + "3", "switch", reduces=alike)]
    topology = Topology.build(name, nodes, [link, back], {name: ((1,), (0,))}, (1, 2) if alike else ())
    path = tmp_path_factory.mktemp("round") / "c.toml"
    write_cluster(topology, path)
    assert read_cluster(path) == topology


def test_order_of_ports_survives_where_pairs_would_lose_it(tmp_path: Path) -> None:
    ring = make("ring", {"gpus": 5})
    write_cluster(ring, tmp_path / "r.toml")
    assert list(read_cluster(tmp_path / "r.toml").graph["gpu4"]) == list(ring.graph["gpu4"]) == ["gpu0", "gpu3"]
    assert "between" not in (tmp_path / "r.toml").read_text()
    write_cluster(make("dgx-1v"), tmp_path / "d.toml")
    assert "from" not in (tmp_path / "d.toml").read_text()


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("old")
    nodes = [Node("a", "gpu"), Node("b", "gpu")]
    tooth = Topology.build("x", nodes, both_ways(Link("a", "b", "link", 1, 1e300, 0.0)))
    with pytest.raises(TopologyError, match=r"^c\.toml: links\[0\]\.bandwidth"):
        write_cluster(tooth, path)
    with pytest.raises(TopologyError, match="there is no folder"):
        write_cluster(make("ring"), tmp_path / "missing" / "c.toml")
    with pytest.raises(TopologyError, match="not the name of a cluster file"):
        write_cluster(make("ring"), "")
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        (b"\xff\xfeabc", "byte 0 is not UTF-8"),
        (b"a\0b", "binary"),
        (b"\x00" * 100, "binary"),
        ("x = 1\ny =\n", "line 2"),
        ("x = 1\nx = 2\n", "is not TOML"),
        ('topologi = "star"', 'did you mean "topology"'),
        ('topology = "sta"', 'did you mean "star"'),
        ("topology = 3", "topology: 3 is not a name"),
        ('topology = "star"\nparams = 3', "params: 3 is not a table"),
        ('topology = "star"\nnodes = []', 'no key "nodes"'),
        ('topology = "star"\n[params]\ngpu = 4', 'no parameter "gpu"; did you mean "gpus"'),
        ('topology = "star"\n[params]\ngpus = 4.5', "params.gpus: 4.5 is not a count"),
        ('topology = "star"\n[params]\ngpus = 1000000000', "largest that fits"),
        ("name = 'x'", 'key "nodes" is missing'),
        (NODES, 'key "links" is missing'),
        (NODES + "links = 3", "links: 3 is not a list"),
        (NODES + "links = [3]", r"links\[0\]: 3 is not a table"),
        ("links = []\nnodes = [{ name = 'a' }]", r'nodes\[0\]: the key "kind" is missing'),
        ("links = []\nnodes = [{ name = 'a', kind = 'gup' }]", r'nodes\[0\].kind: "gup".*did you mean "gpu"'),
        ("links = []\nnodes = [{ name = 'a', kind = ['gpu'] }]", r"nodes\[0\].kind"),
        ("links = []\nnodes = [{ name = 3, kind = 'gpu' }]", r"nodes\[0\].name: 3 is not a name"),
        ("links = []\nnodes = [{ name = 'a', kind = 'gpu', server = -1 }]", r"nodes\[0\].server"),
        ("links = []\nnodes = [{ name = 'a', kind = 'gpu', reduces = 1 }]", r"nodes\[0\].reduces"),
        ("links = []\nnodes = [{ name = 'a', kind = 'gpu', injection = 5 }]", r"nodes\[0\].injection"),
        ("links = []\nnodes = [{ name = 'a', kind = 'gpu' }, { name = 'a', kind = 'gpu' }]", 'node "a" stands twice'),
        (NODES + LINK.replace("between", "betwen"), 'did you mean "between"'),
        (NODES + LINK.replace('["a", "b"]', '["a"]'), r"links\[0\].between"),
        (NODES + LINK.replace('between = ["a", "b"]', 'from = "a"'), "an end is missing"),
        (NODES + LINK.replace('"b"', '"c"'), 'no node "c"'),
        (NODES + LINK.replace('"b"', "7"), r"links\[0\]: 7 is not a name"),
        (NODES + LINK.replace("nvlink3", "nvlnk3"), 'did you mean "nvlink3"'),
        (NODES + LINK.replace(" }", ', bandwidth = "400Gig" }'), r'links\[0\].bandwidth: "400Gig" is not a bandwidth; write "400Gb/s"'),
        (NODES + LINK.replace(" }", ", bandwidth = 400 }"), r"links\[0\].bandwidth"),
        (NODES + LINK.replace(" }", ", latency = inf }"), r"links\[0\].latency"),
        (NODES + LINK.replace(" }", ', lanes = "2" }'), r"links\[0\].lanes"),
        (NODES + LINK.replace(" }", ", lanes = 0 }"), r"links\[0\].lanes"),
        (NODES + LINK.replace(" }", ", lanes = 99999999999999999999 }"), r"links\[0\].lanes"),
        (NODES + LINK.replace(" }", ", source = 1 }"), r"links\[0\].source"),
        (NODES + LINK + "groups = { servers = [[0, 2]] }", "groups.servers: 2 is not a rank"),
        (NODES + LINK + "groups = { servers = [[0, 0]] }", "rank 0 stands twice"),
        (NODES + LINK + "groups = { servers = [0, 1] }", "list of lists"),
        (NODES + LINK + "dims = 2", "dims: 2 is not a list of sizes"),
        (NODES + LINK + 'dims = ["2"]', 'dims: "2" is not a size'),
        (NODES + LINK + "dims = [true, 2]", "dims: True is not a count"),
        (NODES + LINK + "dims = [1, 0]", "dims: 0 is not a count"),
        (NODES + LINK + "dims = [3]", "dims: 3 is not a count; write a whole number from 1 to 2"),
        (NODES + LINK + "dims = [2, 2]", "dims 2x2 have 4 places; needs 2, one a GPU"),
        (NODES + LINK + f"dims = {[1] * 33}", "33 sizes; a grid has at most 32"),
        ('topology = "torus"\ndims = [2, 2]', 'no key "dims"'),
    ],
)
def test_refused(file, content: str | bytes, message: str) -> None:
    with pytest.raises(TopologyError, match=message) as error:
        read_cluster(file(content))
    assert str(error.value).startswith("cluster.toml: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "content",
    [
        "a = " + "[" * 100_000,
        "a = " + "{a = " * 100_000,
        "a = " + "9" * 100_000,
        ".".join("a" * 1_000_000) + " = 1",
        "[" + ".".join(["'a'"] * 1_000_000) + "]",
        "a" * 4_000_000,
        "a " * 2_000_000,
        '"' * 4_000_000,
        "x" * (MAX_FILE + 1),
    ],
    ids=["arrays", "tables", "digits", "dotted", "header", "word", "words", "quotes", "too-big"],
)
def test_hostile_files_are_refused_soon(file, content: str) -> None:
    started = time.perf_counter()
    with pytest.raises(TopologyError) as error:
        read_cluster(file(content))
    assert len(str(error.value)) < 400
    assert time.perf_counter() - started < 20


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.toml")
    for spec, message in [
        (str(tmp_path / "none.toml"), "no such file"),
        (str(tmp_path / "pipe.toml"), "not a regular file"),
        ("/dev/zero", "is not a topology"),
        ("x" * 100_000, "is not a topology"),
        ("\0", "is not a topology"),
        ("\0.toml", "none|no such file|cannot be read"),
        ("x" * 100_000 + ".toml", "cannot be read"),
    ]:
        with pytest.raises(TopologyError, match=message):
            load(spec)


def test_a_file_with_its_own_links_takes_no_parameters(file) -> None:
    with pytest.raises(TopologyError, match='no parameter "nodes"'):
        read_cluster(file(NODES + LINK), {"nodes": 2})


def test_writing_follows_links_and_spares_what_is_no_plain_file(tmp_path: Path) -> None:
    ring, real, link = make("ring", {"gpus": "3"}), tmp_path / "real.toml", tmp_path / "link.toml"
    real.write_text("old")
    link.symlink_to(real)
    write_cluster(ring, link)
    assert link.is_symlink()
    assert read_cluster(real) == ring
    (tmp_path / "folder.toml").mkdir()
    for name in ("folder.toml", "cluster.xml", "", "."):
        with pytest.raises(TopologyError, match=r"plain file|name of a cluster file"):
            write_cluster(ring, tmp_path / name)
    circle = tmp_path / "circle.toml"
    circle.symlink_to(circle)
    with pytest.raises(TopologyError, match="circle"):
        write_cluster(ring, circle)


@pytest.mark.parametrize("value", ['"0.9"', '"21G"', "1.5", "0", "inf", "nan", "true", "[]"])
def test_a_constant_without_its_unit_is_told_which_there_are(tmp_path: Path, value: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(f'topology = "ring"\nconstants = {{ nic = {value} }}\n')
    with pytest.raises(TopologyError, match=r'^c\.toml: constants\.nic: .*write a part as 0\.92, a time as "7\.2us"'):
        read_cluster(path)
