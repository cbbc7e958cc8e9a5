"""Which algorithms and protocols NCCL may take: machine, version, call and variables."""

from __future__ import annotations

from dataclasses import replace

import pytest
from nccl_machines import GB, built, machine

from prediction.nccl.enabled import Call
from prediction.nccl.graphs import Graph, Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.settings import Settings, settings
from prediction.nccl.tuner import costs, tune
from prediction.nccl.version import version
from topologies.errors import MeasurementError

MB = 1 << 20


def test_pat_needs_one_rank_a_node() -> None:
    ring = Graph(2, 24 * GB, 24 * GB, "ring")
    graphs = Graphs(version("2.30"), 16, 16, ring, replace(ring, pattern="tree"), sm_min=90, sm_max=90, nvswitch=False)
    latency, speed = costs(graphs, "all-gather")["pat", "simple"]
    assert latency * 1e6 == pytest.approx(8 + 4 * 14 / 3.5 + 2.8 * 16)
    assert speed == pytest.approx(0.75 * 2 * 24 * GB)
    assert costs(replace(graphs, version=version("2.23")), "all-gather")["pat", "simple"][1] == pytest.approx(0.85 * 2 * 24 * GB)
    assert ("pat", "simple") not in costs(replace(graphs, version=version("2.22")), "all-gather")
    assert ("pat", "simple") not in costs(graphs, "all-reduce")
    off = tune(graphs, Call("reduce-scatter", MB, op="avg")).off
    assert off["pat", "simple"] == "PAT does not reduce with avg"
    # With one rank a node the ring's hops are fully seen: the tree's.
    assert costs(graphs, "all-gather")["ring", "ll"][0] * 1e6 == pytest.approx(6.6 + 15 * 5.0)


def test_collnet_and_sharp_need_plugin_variable_and_nodes() -> None:
    graphs = graphs_of(built("dgx-h100", 4), version("2.30"), collnet=True)
    on = Settings(collnet=1)
    assert not {"collnet-direct", "collnet-chain", "nvls"} & {a for a, _ in costs(graphs, "all-reduce")}
    table = costs(graphs, "all-reduce", on)
    assert {"collnet-direct", "collnet-chain", "nvls"} < {a for a, _ in table}
    assert table["collnet-direct", "simple"][0] * 1e6 == pytest.approx(2 * (3.7 + 7 * 0.4) + 31)
    assert table["collnet-chain", "simple"][0] * 1e6 == pytest.approx(2 * 7 * 2.8 + 30)
    assert table["nvls", "simple"][0] * 1e6 == pytest.approx(25 + 18)
    assert table["collnet-direct", "simple"][1] == pytest.approx(8 * 48 * GB * 0.85 * 0.5)  # ppn/C = 1
    assert "collnet-chain" not in {a for a, _ in costs(graphs, "all-reduce", replace(on, collnet_nodes=5))}
    assert {a for a, _ in costs(graphs, "all-gather", on)} == {"ring"}
    gathering = costs(replace(graphs, collnet_gather=True), "all-gather", on)
    assert gathering["collnet-direct", "simple"][1] == pytest.approx(8 * 0.9 * 48 * GB)
    assert "nvls" in {a for a, _ in gathering}


def test_ll128_only_where_stores_stay_whole() -> None:
    graphs = machine("dgx-a100", 4, "2.30")
    far = replace(graphs, ring=replace(graphs.ring, type_inter="PXN"))
    assert ("ring", "ll128") in costs(graphs, "all-reduce")
    assert ("ring", "ll128") not in costs(far, "all-reduce")
    assert ("ring", "ll128") in costs(replace(far, sm_min=90, sm_max=90), "all-reduce")
    assert ("ring", "ll128") in costs(far, "all-reduce", settings({"NCCL_PROTO": "LL128,Simple"}, far.version))  # the user insists
    assert ("ring", "ll128") not in costs(replace(graphs, sm_max=90), "all-reduce")
    assert ("ring", "ll128") not in costs(replace(graphs, version=version("2.21"), sm_min=86, sm_max=86), "all-reduce")
    assert ("ring", "ll128") in costs(replace(graphs, sm_min=86, sm_max=86), "all-reduce")
    pci = replace(graphs, ring=replace(graphs.ring, type_intra="PHB"))
    assert ("ring", "ll128") not in costs(pci, "all-reduce")


def test_nvls_reduces_what_switches_can_add() -> None:
    graphs = machine("dgx-h100", 1, "2.30")
    for op, dtype, can in [("sum", "bfloat16", True), ("sum", "float32", True), ("prod", "float32", False), ("sum", "float8_e4m3", False)]:
        ranked = {row.algorithm for row in tune(graphs, Call("all-reduce", MB, op, dtype)).ranking}
        assert ("nvls" in ranked) is can
    assert "nvls" in {row.algorithm for row in tune(machine("dgx-b200", 1, "2.30"), Call("all-reduce", MB, "sum", "float8_e4m3")).ranking}


def test_ring_is_the_last_resort_of_fp8_on_many_ranks() -> None:
    def ring(nodes: int, dtype: str) -> float:
        ranking = tune(machine("dgx-h100", nodes, "2.30"), Call("all-reduce", MB, "sum", dtype)).ranking
        return next(row.time_s for row in ranking if (row.algorithm, row.protocol) == ("ring", "simple"))

    assert ring(2, "float8_e5m2") == pytest.approx(1024 * ring(2, "float16"))
    assert ring(1, "float8_e5m2") == ring(1, "float16")


def test_variables_move_the_choice() -> None:
    graphs = machine("dgx-h100", 4, "2.30")

    def choice(release: str = "2.30", **env: str) -> tuple[str, str]:
        given = settings({f"NCCL_{key}": value for key, value in env.items()}, version(release))
        row = tune(replace(graphs, version=version(release)), Call("all-reduce", 64 * MB), given).choice
        return row.algorithm, row.protocol

    assert choice() == ("nvls-tree", "simple")
    assert choice(ALGO="^NVLSTree") == ("ring", "ll128")
    assert choice(ALGO="Tree", PROTO="Simple") == ("tree", "simple")
    assert choice(ALGO="ring;allreduce:tree", PROTO="^Simple") == ("tree", "ll128")
    assert choice(NVLS_ENABLE="0") == ("ring", "ll128")
    assert choice(ALGO="ring", PROTO="^LL128") == ("ring", "simple")
    with pytest.raises(MeasurementError, match="no algorithm and protocol left for all-reduce; ring: NCCL_ALGO leaves it out"):
        choice(ALGO="pat")
    assert choice("2.23", ALGO="pat") == ("ring", "simple")  # older versions fall back silently
