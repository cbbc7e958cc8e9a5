"""Rules of NCCL's cost model that the printed tables do not reach, each by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nccl_machines import GB, machine

from prediction.nccl.channels import channels_and_threads, comm_channels, nvls_channels
from prediction.nccl.enabled import Call
from prediction.nccl.graphs import Graph, Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.search import Machine, search
from prediction.nccl.settings import Settings
from prediction.nccl.tuner import costs, tune
from prediction.nccl.version import version
from topologies import make
from topologies.errors import MeasurementError

NEW, ON = version("2.30"), Settings(collnet=1)
H100 = 370.8 * GB
B300 = Machine(8, 721.8 * GB, 8, 96 * GB, 103, "intel", multicast=True)


def test_a_ring_of_single_gpus_lost_ll128_bandwidth_until_2_22() -> None:
    ring = Graph(2, 24 * GB, 24 * GB, "ring")
    graphs = Graphs(NEW, 16, 16, ring, replace(ring, pattern="tree"), sm_min=90, sm_max=90)
    for release, part in (("2.22", 0.7), ("2.23", 0.92)):
        speed = costs(replace(graphs, version=version(release)), "all-reduce")["ring", "ll128"][1]
        assert speed == pytest.approx(part * 2 * 24 * GB * 16 / 30)


def test_collnet_direct() -> None:
    few = search(Machine(8, 240 * GB, 4, 12.5 * GB, 80, "amd", shared=True), 2, NEW, collnet=True)
    assert costs(few, "all-reduce", ON)["collnet-direct", "simple"][1] == pytest.approx(4 * 24 * GB / 1.5 / 2)  # 2 GPUs a NIC
    four = graphs_of(make("dgx-h100", {"nodes": 4, "gpus": 4}), version("2.21"), collnet=True)
    speed = costs(replace(four, collnet_gather=True), "reduce-scatter", ON)["collnet-direct", "simple"][1]
    assert speed == pytest.approx(4 * 48 * GB * (0.85 * 3 / 7 + 0.95 * 4 / 7))


def test_collnet_direct_gives_up_channels_by_levels() -> None:
    graphs = graphs_of(make("dgx-h100", {"nodes": 4}), NEW, collnet=True)
    whole = 640 * 8 * 512  # threads x heads x bytes a thread
    # From 16 down to 12 at this threshold, then half of it: 11 and 10 are still too many.
    taken = channels_and_threads(graphs, ON, Call("all-reduce", whole * 9 // 2), "collnet-direct", "simple")
    assert taken == (9, 640)


def test_nvls_between_two_nodes_adds_the_network() -> None:
    graphs = graphs_of(make("dgx-h100", {"nodes": 2}), NEW, collnet=True)
    assert costs(graphs, "all-reduce", ON)["nvls", "simple"][0] * 1e6 == pytest.approx(25 + 18)


def test_latency_of_nics() -> None:
    graphs = machine("dgx-h100", 2, "2.30")
    slow = replace(graphs, tree=replace(graphs.tree, latency_inter=1e-6))
    new, old = costs(slow, "all-reduce"), costs(replace(slow, version=version("2.22")), "all-reduce")
    assert new["tree", "ll"][0] * 1e6 == pytest.approx(6.8 + 2 * (7 * 0.6 + 5 + 1))
    assert new["tree", "simple"][0] * 1e6 == pytest.approx(8.4 + 2 * (7 * 4 + 14 + 2))  # the flush asks again
    assert old["tree", "ll"][0] * 1e6 == pytest.approx(6.8 + 2 * (7 * 0.6 + 1))  # it stood for the hop
    assert old["tree", "simple"][0] * 1e6 == pytest.approx(2 * (7 * 28 + 2))


@pytest.mark.parametrize(("cpu", "hop"), [("power", 5.7), ("intel", 4.0)])
def test_pcie_hops_of_a_tree(cpu: str, hop: float) -> None:
    ring = Graph(2, 12 * GB, 12 * GB, "ring", "PHB")
    graphs = Graphs(NEW, 8, 1, ring, replace(ring, pattern="balanced-tree"), cpu=cpu, nvswitch=False)  # type: ignore[arg-type]
    assert costs(graphs, "all-reduce")["tree", "simple"][0] * 1e6 == pytest.approx(8.4 + 2 * 7 * hop)


def test_blackwell_had_twice_hoppers_caps_at_first() -> None:
    first, now = (costs(machine("gb200-nvl72", 4, release), "all-reduce")["tree", "simple"][1] for release in ("2.27", "2.30"))
    assert first == pytest.approx(0.92 * 16 * 45.1 * GB / 2)  # below 16 x 72
    assert now == pytest.approx(16 * 24 * GB / 2)


@pytest.mark.parametrize(("name", "factor"), [("dgx-2", 1.9), ("dgx-a100", 1.4)])
def test_plateau_by_architecture(name: str, factor: float) -> None:
    ranking = tune(machine(name, 2, "2.30"), Call("all-reduce", 1 << 30)).ranking
    row = next(row for row in ranking if (row.algorithm, row.protocol) == ("ring", "simple"))
    assert (row.time_s - (1 << 30) / row.bandwidth_Bps) / row.latency_s == pytest.approx(factor)


def test_few_fast_rings_run_with_twice_the_channels() -> None:
    graphs = search(Machine(8, H100, 5, 48 * GB, 90, "intel"), 2, NEW)
    assert (graphs.ring.channels, graphs.ring.bw_intra) == (5, 48 * GB)
    assert comm_channels(graphs, Settings()) == 20


def test_crossing_rings_come_in_pairs() -> None:
    ring = search(Machine(4, 200 * GB, 8, 48 * GB, 90, "intel"), 2, NEW).ring
    assert (ring.channels, ring.bw_intra, ring.cross_nic) == (6, 40 * GB, 2)  # not 5 of 48


def test_nvls_channels_of_blackwell_follow_the_nics() -> None:
    assert nvls_channels(search(B300, 2, NEW), Settings()) == 24
    assert nvls_channels(search(B300, 2, version("2.29")), Settings()) == 32
    assert nvls_channels(machine("dgx-b200", 2, "2.30"), Settings()) == 32


def test_nvls_gathers_for_few_ranks_only() -> None:
    for gpus, there in ((32, True), (36, False)):
        graphs = graphs_of(make("gb200-nvl72", {"gpus": gpus}), NEW)
        assert (("nvls", "simple") in costs(graphs, "all-gather")) is there


def test_nvls_gathers_with_less_than_it_reduces() -> None:
    graphs = machine("dgx-h100", 1, "2.30")
    assert costs(graphs, "all-gather")["nvls", "simple"][1] == pytest.approx(8 * 40 * GB * 0.85 * 7 / 8 * 7 / 8)
    middle = costs(replace(graphs, version=version("2.25")), "all-gather")["nvls", "simple"][1]
    assert middle == pytest.approx(8 * 40 * GB * 7 / 8)  # below 0.9 of 60


def test_graphs_that_cannot_be_are_refused() -> None:
    ring = Graph(2, 24 * GB, 24 * GB, "ring")
    with pytest.raises(MeasurementError, match="channels and bandwidths are above 0"):
        replace(ring, channels=0)
    with pytest.raises(MeasurementError, match='"PIXX" is not a path type; did you mean "PIX"'):
        replace(ring, type_inter="PIXX")  # type: ignore[arg-type]
    with pytest.raises(MeasurementError, match="ranks = 8, nodes = 9"):
        Graphs(NEW, 8, 9, ring, ring)
    with pytest.raises(MeasurementError, match="compute capability 90 to 80"):
        Graphs(NEW, 8, 1, ring, ring, sm_min=90)
    with pytest.raises(MeasurementError, match='"amdd" is not a CPU vendor; did you mean "amd"'):
        Graphs(NEW, 8, 1, ring, ring, cpu="amdd")  # type: ignore[arg-type]
