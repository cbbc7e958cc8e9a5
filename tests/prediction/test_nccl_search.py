"""The search in closed form against what the library's own search finds on the same machines (2.21.5 and 2.30.7 alike)."""

from __future__ import annotations

import pytest

from prediction.nccl.channels import comm_channels
from prediction.nccl.graphs import Graph
from prediction.nccl.machines import graphs_of, machine_of
from prediction.nccl.rates import nvlink_rate
from prediction.nccl.search import Machine, search
from prediction.nccl.settings import Settings
from prediction.nccl.version import version
from topologies import make
from topologies.errors import MeasurementError
from topologies.graph import Link, Node, Topology, both_ways

GB = 1e9
A100, H100, H800, B200 = 240 * GB, 370.8 * GB, 164.8 * GB, 721.8 * GB
"""NVLinks of a GPU as NCCL counts them."""


def _gb200(gpus: int) -> Machine:
    return Machine(gpus, B200, gpus, 48 * GB, 100, "arm", grace=True, multicast=True)


MACHINES = {
    "dgx-2": Machine(16, 120 * GB, 8, 12 * GB, 70, "intel", shared=True),
    "a100": Machine(8, A100, 8, 24 * GB, 80, "amd", shared=True),
    "a100-4x100": Machine(8, A100, 4, 12.5 * GB, 80, "amd", shared=True),
    "h100": Machine(8, H100, 8, 48 * GB, 90, "intel", multicast=True),
    "h100-8x200": Machine(8, H100, 8, 25 * GB, 90, "intel", multicast=True),
    "h100-4x400": Machine(8, H100, 4, 48 * GB, 90, "intel", shared=True, multicast=True),
    "h100-4gpus": Machine(4, H100, 4, 48 * GB, 90, "intel", multicast=True),
    "h800": Machine(8, H800, 8, 48 * GB, 90, "intel", multicast=True),
    "b200": Machine(8, B200, 8, 48 * GB, 100, "intel", multicast=True),
    "b300": Machine(8, B200, 8, 96 * GB, 103, "intel", multicast=True),
} | {f"gb200-{gpus}": _gb200(gpus) for gpus in (4, 8, 12, 16, 20, 24, 32, 72)}

# Channels x intra/inter [GB/s]: ring, tree with pattern, NVLS, CollNet chain, CollNet direct ("." not told, "-" none), run channels
# without and with CollNet.
FOUND = """
dgx-2      1 6x20        6x20:1       -         .        .       12 12
dgx-2      2 8x12        8x15/12:1    -         -        -       16 16
a100       1 12x20       12x20:1      -         .        .       24 24
a100       2 8x24:PIX:0  8x30/24:1    -         8x30/24  8x48/24 16 24
a100-4x100 2 4x12        4x24/12:1    -         4x24/12  4x24/12 8  12
h100       1 12x30       12x30:1      8x40/60   .        .       24 24
h100       2 8x48:PIX:2  8x48/48:3    8x40/48   8x48/48  8x48/48 16 16
h100-8x200 2 8x24:PXN:0  8x48/24:3    8x24/24   8x48/24  8x48/24 16 24
h100-4x400 2 8x24        8x48/24:1    4x48/48   8x48/24  8x24/24 16 24
h100-4gpus 1 12x30       12x30:1      4x60/60   .        .       24 24
h100-4gpus 2 8x24        8x48/24:3    4x48/48   .        4x48/48 16 .
h800       1 8x20        8x20:1       8x15/30   .        .       16 16
h800       2 8x22        8x22/22:3    8x17.5/40 8x22/22  8x48/48 16 16
b200       1 16x45       16x45:1      8x80/90   .        .       32 32
b200       2 8x48:PXN:0  8x96/48:3    8x48/48   8x96/48  8x96/48 16 24
b300       2 16x48:PIX:2 16x48/48:3   8x80/96   .        8x96/96 32 32
gb200-4    1 16x45       16x50:3      4x90/90   .        .       32 32
gb200-4    2 8x24:P2C:0  8x48/24:1    4x48/48   8x48/24  4x96/48 16 24
gb200-8    2 8x48:P2C:0  8x96/48:1    8x48/48   .        .       16 24
gb200-12   1 16x45       16x45:1      12x50/90  .        .       32 32
gb200-16   1 16x45       16x45:1      16x40/80  .        .       32 32
gb200-20   1 16x45       16x45:1      20x30/60  .        .       32 32
gb200-24   1 16x45       16x45:1      24x24/50  .        .       32 32
gb200-32   1 16x45       16x45:1      32x20/40  .        .       32 32
gb200-72   1 16x45       16x45:1      32x20/40  .        .       32 32
gb200-16   4 16x48       16x48/48:1   16x42/48  .        .       32 32
gb200-32   2 16x45.1     16x45.1:1    32x20/40  .        .       32 32
gb200-72   4 16x45.1     16x45.1:1    32x20/40  .        .       32 32
"""
ROWS = [line.split() for line in FOUND.strip().splitlines()]
OF_2_21 = [row[:6] for row in ROWS if row[0].startswith(("a100", "h", "dgx")) and row[:2] != ["h100-4gpus", "2"]]
"""Machines 2.21 knew, but for the one whose NVLS between nodes it halves in a way no closed form tells."""
PATTERNS = {"1": "balanced-tree", "3": "tree"}


def _same(graph: Graph | None, text: str) -> None:
    if text in (".", "-"):
        assert text == "." or graph is None
        return
    assert graph is not None
    counts, _, rest = text.partition(":")
    channels, _, speeds = counts.partition("x")
    intra, _, inter = speeds.partition("/")
    assert (graph.channels, graph.bw_intra / GB, graph.bw_inter / GB) == pytest.approx((int(channels), float(intra), float(inter or intra)))
    if rest in PATTERNS:
        assert graph.pattern == PATTERNS[rest]
    elif rest:
        assert f"{graph.type_inter}:{graph.cross_nic}" == rest


@pytest.mark.parametrize(
    ("name", "nodes", "ring", "tree", "nvls", "chain", "direct", "plain", "collnet"), ROWS, ids=lambda value: str(value)
)
def test_search_results(name: str, nodes: str, ring: str, tree: str, nvls: str, chain: str, direct: str, plain: str, collnet: str) -> None:
    graphs = search(MACHINES[name], int(nodes), version("2.30"), collnet=True)
    for graph, text in (
        (graphs.ring, ring),
        (graphs.tree, tree),
        (graphs.nvls, nvls),
        (graphs.collnet_chain, chain),
        (graphs.collnet_direct, direct),
    ):
        _same(graph, text)
    assert comm_channels(graphs, Settings()) == int(plain)
    assert collnet == "." or comm_channels(graphs, Settings(collnet=1)) == int(collnet)


@pytest.mark.parametrize(("name", "nodes", "ring", "tree", "nvls", "chain"), OF_2_21)
def test_search_results_of_2_21(name: str, nodes: str, ring: str, tree: str, nvls: str, chain: str) -> None:
    graphs = search(MACHINES[name], int(nodes), version("2.21"), collnet=True)
    for graph, text in ((graphs.ring, ring), (graphs.tree, tree), (graphs.nvls, nvls), (graphs.collnet_chain, chain)):
        _same(graph, text)
    assert graphs.collnet_direct is None
    assert graphs.of("collnet-direct") == graphs.collnet_chain


@pytest.mark.parametrize(
    ("preset", "params", "name"),
    [
        ("dgx-2", {}, "dgx-2"), ("dgx-a100", {}, "a100"), ("dgx-h100", {}, "h100"), ("dgx-h200", {}, "h100"), ("dgx-b200", {}, "b200"),
        ("gb200-nvl72", {}, "gb200-72"), ("gb200-nvl72", {"gpus": 16}, "gb200-16"), ("dgx-h100", {"gpus": 4}, "h100-4gpus"),
        ("azure-ndv4", {}, "a100"), ("azure-ndv5", {}, "h100"), ("superpod-h100", {}, "h100"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("nodes", [1, 4])
def test_topologies_are_these_machines(preset: str, params: dict[str, object], name: str, nodes: int) -> None:
    topology = make(preset, params | {"racks" if preset == "gb200-nvl72" else "nodes": nodes})
    assert graphs_of(topology, version("2.30"), collnet=True) == search(MACHINES[name], nodes, version("2.30"), collnet=True)


def test_the_closed_form_takes_nvswitches_only() -> None:
    for name in ("dgx-1v", "gh200-quad"):
        with pytest.raises(MeasurementError, match="there is no closed form"):
            machine_of(make(name), version("2.30"))
    with pytest.raises(MeasurementError, match="is in no server"):
        graphs_of(make("ring"), version("2.30"))


@pytest.mark.parametrize(
    ("sm", "release", "rate"),
    [
        (70, "2.16", 22.0), (80, "2.16.5", 22.0), (80, "2.17", 20.0), (90, "2.19", 20.0), (90, "2.20", 20.6), (80, "2.30", 20.0),
        (100, "2.27.3", 40.0), (100, "2.27.4", 40.1), (103, "2.19", 40.0),
    ],
)  # fmt: skip
def test_the_rate_of_an_nvlink(sm: int, release: str, rate: float) -> None:
    assert nvlink_rate(sm, version(release)) == rate * GB
    topology = make("dgx-h100")
    assert machine_of(topology, version("2.19"))[0].nvlink == 18 * 20 * GB
    assert machine_of(topology, version("2.20"))[0].nvlink == pytest.approx(H100)


def test_nics_are_shared_where_each_has_two_gpus_on_its_switch() -> None:
    pairs = make("azure-ndv4", {"nodes": 2})
    assert machine_of(pairs, version("2.30"))[0].shared
    extra = [node for s in (0, 1) for node in (Node(f"s{s}.far", "nic", s),)]  # one more NIC, next to a CPU and to no GPU
    links = [
        way
        for s in (0, 1)
        for a, b, like in ((f"s{s}.far", f"s{s}.cpu0", ("s0.nic0", "s0.pcie0")), (f"s{s}.far", "leaf0", ("s0.nic0", "leaf0")))
        for cable in (pairs.link(*like),)
        for way in both_ways(Link(a, b, cable.kind, cable.lanes, cable.bandwidth, cable.latency))
    ]
    more = Topology.build("more", [*pairs.nodes, *extra], [*pairs.links, *links])
    machine, nodes = machine_of(more, version("2.30"))
    assert (machine.nics, machine.shared, nodes) == (9, False, 2)


def test_domains_must_be_equal() -> None:
    topology = make("dgx-h100", {"nodes": 2})
    nodes = [node for node in topology.nodes if node.name != "s1.gpu7"]
    links = [link for link in topology.links if "s1.gpu7" not in (link.src, link.dst)]
    with pytest.raises(MeasurementError, match="not all alike behind NVSwitches"):
        machine_of(Topology.build("uneven", nodes, links), version("2.30"))


def test_slow_networks_still_get_a_graph() -> None:
    machine = Machine(8, H100, 1, 1.25 * GB, 90, "intel", multicast=True)
    graphs = search(machine, 2, version("2.30"))
    assert (graphs.ring.channels, graphs.ring.bw_inter) == (1, 1.2 * GB)


def test_what_the_closed_form_cannot_say_is_refused() -> None:
    with pytest.raises(MeasurementError, match="write 2 GPUs or more"):
        search(Machine(1, A100, 1, 24 * GB, 80, "amd"), 2, version("2.30"))
    with pytest.raises(MeasurementError, match="no channel at any trial speed"):
        search(Machine(8, A100, 1, 0.01 * GB, 80, "amd"), 2, version("2.30"))
