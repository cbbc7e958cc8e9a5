"""NCCL's cost model and choice against what the library itself gives on the same machines (figures of 2.21.5 and 2.30.7)."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from nccl_machines import GB, machine

from prediction.nccl.channels import comm_channels
from prediction.nccl.enabled import Call
from prediction.nccl.settings import Settings, settings
from prediction.nccl.tuner import costs, tune
from prediction.nccl.version import version
from topologies.errors import MeasurementError

MB = 1 << 20


# All-reduce, latency [us] / algorithm bandwidth [GB/s]: tree LL, LL128, Simple, ring LL, LL128, Simple.
TABLE_230 = """
dgx-1v      1  15.2/14.5 31.5/42.9  64.4/55.2   15.0/22.3  40.6/63.1   56.0/68.6
dgx-a100    1  15.2/29.1 31.5/85.9  64.4/110.4  15.0/50.1  40.6/126.2  56.0/137.1
dgx-a100    4  35.2/9.5  65.5/66.8  120.4/71.2  134.8/9.8  150.0/82.6  428.4/99.1
dgx-h100    1  15.2/43.6 31.5/128.8 64.4/165.6  15.0/80.6  40.6/189.3  56.0/205.7   nvls:25/272.0
dgx-h100    2  25.2/16.6 48.5/124.8 92.4/140.8  40.0/20.8  75.2/156.6  131.6/204.8  nvls-tree:66.8/246.2
dgx-h100    4  35.2/8.7  65.5/98.6  120.4/122.4 78.8/10.5  144.4/151.5 282.8/198.2  nvls-tree:108.6/187.9
dgx-h100    16 55.2/8.7  99.5/98.6  176.4/122.4 311.6/10.3 559.6/148.0 1190/193.5   nvls-tree:192.2/183.4
dgx-b200    1  15.2/87.2 31.5/257.6 64.4/331.2  15.0/161.1 40.6/365.7  56.0/411.4   nvls:25/411.4
dgx-b200    4  35.2/8.7  65.5/68.0  120.4/81.6  78.8/10.5  144.4/165.2 282.8/198.2  nvls-tree:108.6/198.2
gb200-nvl72 1  92.0/87.2 191.5/257.6 576.4/331.2 91.8/143.0 283.8/324.5 491.2/365.1 nvls:25/465.3
gb200-nvl72 4  112/10.2  225.5/160  632.4/192   590.8/10.2 1117/321.1  2024/362.1   nvls-tree:108.6/460.4
"""
COLUMNS = [("tree", "ll"), ("tree", "ll128"), ("tree", "simple"), ("ring", "ll"), ("ring", "ll128"), ("ring", "simple")]
GOLDEN = [
    (words[0], int(words[1]), *((cell.split(":")[0], "simple") if ":" in cell else column), *map(float, cell.rpartition(":")[2].split("/")))
    for words in map(str.split, TABLE_230.strip().splitlines())
    for cell, column in zip(words[2:], [*COLUMNS, ("", "")], strict=False)
]


@pytest.mark.parametrize(("name", "nodes", "algorithm", "protocol", "micros", "gigabytes"), GOLDEN)
def test_the_table_of_2_30(name: str, nodes: int, algorithm: str, protocol: str, micros: float, gigabytes: float) -> None:
    latency, speed = costs(machine(name, nodes, "2.30"), "all-reduce")[algorithm, protocol]  # type: ignore[index]
    assert latency * 1e6 == pytest.approx(micros, rel=0.01)
    assert speed / GB == pytest.approx(gigabytes, rel=0.01)


def test_no_row_of_the_table_is_missing_or_extra() -> None:
    for name, nodes in {(row[0], row[1]) for row in GOLDEN}:
        given = {(row[2], row[3]) for row in GOLDEN if row[:2] == (name, nodes)}
        assert set(costs(machine(name, nodes, "2.30"), "all-reduce")) == given


# Rows of 2.21 that differ; two logs of the library (2 and 3 nodes of H100) print the last ones. None: not printed.
DIFFERENT_221 = [
    (1, "tree", "simple", 392.0, 165.6), (4, "tree", "simple", 504.0, 122.4), (1, "nvls", "simple", 25.0, 266.7),
    (2, "nvls-tree", "simple", 53.0, 266.7), (4, "nvls-tree", "simple", 81.0, 160.0), (4, "ring", "ll", 82.2, None),
    (4, "ring", "ll128", 148.6, None), (4, "ring", "simple", 304.0, None), (2, "tree", "ll", 25.2, None),
    (2, "tree", "ll128", 48.5, None), (2, "tree", "simple", 448.0, None), (2, "ring", "ll", 43.4, None), (2, "ring", "ll128", 79.4, None),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "algorithm", "protocol", "micros", "gigabytes"), DIFFERENT_221)
def test_rows_that_differ_in_2_21(nodes: int, algorithm: str, protocol: str, micros: float, gigabytes: float | None) -> None:
    latency, speed = costs(machine("dgx-h100", nodes, "2.21"), "all-reduce")[algorithm, protocol]  # type: ignore[index]
    assert latency * 1e6 == pytest.approx(micros, rel=0.01)
    assert gigabytes is None or speed / GB == pytest.approx(gigabytes, rel=0.01)


def test_time_in_a_log_of_three_nodes() -> None:
    choice = tune(machine("dgx-h100", 3, "2.21"), Call("all-reduce", 64)).choice
    assert (choice.algorithm, choice.protocol) == ("tree", "ll")
    assert choice.time_s * 1e6 == pytest.approx(25.207, rel=1e-4)


# From which size (powers of two) which algorithm is chosen for all-reduce; nothing else in between.
_A100 = "ring/ll 4M:ring/ll128 32M:ring/simple"
_A100_4 = "tree/ll 256K:tree/ll128 32M:ring/ll128 256M:ring/simple"
_B200_4 = "tree/ll 256K:tree/ll128 4M:nvls-tree/simple 32M:ring/ll128 64M:nvls-tree/simple 512M:ring/simple 1G:nvls-tree/simple"
_H100_16 = "tree/ll 256K:tree/ll128 "
CHOICES = [
    ("dgx-a100", 1, "2.21", _A100), ("dgx-a100", 1, "2.30", _A100),
    ("dgx-a100", 4, "2.21", _A100_4), ("dgx-a100", 4, "2.30", _A100_4),
    ("dgx-h100", 1, "2.21", "ring/ll 2M:nvls/simple"), ("dgx-h100", 1, "2.30", "ring/ll 2M:nvls/simple"),
    ("dgx-h100", 2, "2.21", "tree/ll 256K:tree/ll128 512K:nvls-tree/simple"),
    ("dgx-h100", 2, "2.30", "tree/ll 256K:tree/ll128 2M:nvls-tree/simple"),
    ("dgx-h100", 4, "2.21", "tree/ll 256K:tree/ll128 2M:nvls-tree/simple 512M:ring/simple"),
    ("dgx-h100", 4, "2.30", "tree/ll 256K:tree/ll128 8M:nvls-tree/simple 1G:ring/simple"),
    ("dgx-h100", 16, "2.21", _H100_16 + "8M:nvls-tree/simple 2G:ring/simple"),
    ("dgx-h100", 16, "2.30", _H100_16 + "16M:nvls-tree/simple 8G:ring/simple"),
    ("dgx-b200", 1, "2.30", "ring/ll 4M:nvls/simple"),
    ("dgx-b200", 4, "2.30", _B200_4),
    ("gb200-nvl72", 1, "2.30", "nvls/simple"),
    ("gb200-nvl72", 2, "2.30", "nvls-tree/simple"), ("gb200-nvl72", 4, "2.30", "nvls-tree/simple"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "nodes", "release", "text"), CHOICES)
@pytest.mark.parametrize("power", range(3, 35))
def test_choice_by_size(name: str, nodes: int, release: str, text: str, power: int) -> None:
    units = {"K": 10, "M": 20, "G": 30}
    parts = [part.rpartition(":") for part in text.split()]
    starts = [(int(size[:-1]) << units[size[-1]] if size else 0, chosen) for size, _, chosen in parts]
    expected = [chosen for start, chosen in starts if start <= 1 << power][-1]
    choice = tune(machine(name, nodes, release), Call("all-reduce", 1 << power)).choice
    assert f"{choice.algorithm}/{choice.protocol}" == expected


def test_ranking_is_sorted_and_every_other_row_has_a_reason() -> None:
    tuning = tune(machine("dgx-h100", 4, "2.30"), Call("all-reduce", 8 * MB))
    times = [row.time_s for row in tuning.ranking]
    assert times == sorted(times)
    assert tuning.choice is tuning.ranking[0]
    assert not set(tuning.off) & {(row.algorithm, row.protocol) for row in tuning.ranking}
    assert len(tuning.off) + len(tuning.ranking) == 21
    assert tuning.off["nvls", "simple"] == "the network plugin has no CollNet (SHARP)"
    assert tuning.off["pat", "simple"] == "NCCL has no pat all-reduce"


def test_time_is_latency_and_size_over_corrected_bandwidth() -> None:
    row = next(
        r for r in tune(machine("dgx-h100", 4, "2.30"), Call("all-reduce", 3 * MB)).ranking if (r.algorithm, r.protocol) == ("tree", "ll")
    )
    # 3 MiB is 2^15 to 2^16 times 64 B, and entry 15 of LL is 0.6.
    assert row.time_s == pytest.approx(row.latency_s + 3 * MB / (0.6 * row.bandwidth_Bps), rel=1e-12)


def test_plateau_of_the_ring_between_nodes() -> None:
    graphs = machine("dgx-h100", 2, "2.30")
    limit = 64 * comm_channels(graphs, Settings()) * graphs.ranks

    def above_bandwidth(nbytes: int) -> float:
        row = next(r for r in tune(graphs, Call("all-reduce", nbytes)).ranking if (r.algorithm, r.protocol) == ("ring", "simple"))
        return (row.time_s - nbytes / row.bandwidth_Bps) / row.latency_s

    assert above_bandwidth(limit - 1) == pytest.approx(1)
    assert above_bandwidth(limit) == pytest.approx(1.4)


@pytest.mark.parametrize(("collective", "factor"), [("all-gather", 1), ("reduce-scatter", 1), ("broadcast", None), ("reduce", None)])
def test_other_collectives_of_a_ring(collective: str, factor: int | None) -> None:
    graphs = machine("dgx-a100", 4, "2.30")
    table = costs(graphs, collective)
    assert {algorithm for algorithm, _ in table} == {"ring"}
    _, speed = table["ring", "simple"]
    assert speed == pytest.approx(8 * 24 * GB * (32 / 31 if factor else 1))


def test_root_collectives_pay_one_hop_only_when_all_channels_are_alike() -> None:
    alike = machine("dgx-h100", 1, "2.30")
    unlike = replace(alike, ring=replace(alike.ring, same_channels=False))
    assert costs(alike, "broadcast")["ring", "simple"][0] * 1e6 == pytest.approx(8.4 + 3.4)
    assert costs(unlike, "broadcast")["ring", "simple"][0] * 1e6 == pytest.approx(8.4 + 8 * 4.0)  # the tree's hop
    assert costs(unlike, "broadcast")["ring", "ll"][0] * 1e6 == pytest.approx(6.6 + 8 * 0.6)


def test_host_overhead_slows_rings_between_nodes() -> None:
    graphs = machine("dgx-h100", 4, "2.30")
    slow = costs(graphs, "all-reduce", settings({"NCCL_NET_OVERHEAD": "5000"}, graphs.version))
    assert slow["ring", "ll"][0] * 1e6 == pytest.approx(6.6 + 56 * 5 + 6 * 2.7)
    assert slow["tree", "ll"] == costs(graphs, "all-reduce")["tree", "ll"]


def test_group_of_operations() -> None:
    graphs = machine("dgx-a100", 1, "2.30")
    for row in tune(graphs, Call("all-reduce", 64, operations=9)).ranking:
        waits = 9 if row.algorithm == "ring" else 2
        assert row.time_s == pytest.approx(waits * row.latency_s + 64 / row.bandwidth_Bps, rel=0.02)


@pytest.mark.parametrize("release", [f"2.{minor}" for minor in range(16, 31)])
@pytest.mark.parametrize("name", ["dgx-2", "dgx-a100", "dgx-h100", "dgx-b200", "gb200-nvl72"])
def test_every_version_answers_with_finite_times(release: str, name: str) -> None:
    for nodes in (1, 2, 3, 8):
        for collective in ("broadcast", "reduce", "all-gather", "reduce-scatter", "all-reduce"):
            for nbytes in (1, 4097, 1 << 26, 1 << 36):
                for row in tune(machine(name, nodes, release), Call(collective, nbytes)).ranking:
                    assert 0 < row.time_s < math.inf
                    assert row.channels >= 1
                    assert 96 <= row.threads <= 640


def test_the_drift_of_the_tree() -> None:
    found = {
        release: costs(machine("dgx-a100", 1, release), "all-reduce")["tree", "simple"][0] * 1e6
        for release in ("2.16", "2.18.1", "2.18.5", "2.22", "2.23")
    }
    assert found == {
        key: pytest.approx(value) for key, value in {"2.16": 392, "2.18.1": 392, "2.18.5": 56, "2.22": 392, "2.23": 64.4}.items()
    }


# The old model by hand, from its public source. H100: 12 channels of 30 on one node, 8 of 48 on several; link rates of 20 GB/s.
OLD_MODEL = [
    (1, "ring", "ll", 3.6 + 14 * 0.47, 87.7 * 8 / 14), (1, "ring", "simple", 8.4 + 14 * 3.4, 360 * 8 / 14),
    (1, "tree", "ll128", 4.4 + 14 * 1.25, 0.92 * 360 * 7 / 9 / 2), (1, "nvls", "simple", 40, 360 * 0.75),
    (4, "ring", "ll", 3.6 + 54 * 0.47 * 1.8 + 8 * 2.7, 20.4 * 32 / 62), (4, "tree", "simple", 2 * (7 * 28 + 2 * 28), 8 * 33 / 2),
]  # fmt: skip


@pytest.mark.parametrize(("nodes", "algorithm", "protocol", "micros", "gigabytes"), OLD_MODEL)
def test_the_old_model(nodes: int, algorithm: str, protocol: str, micros: float, gigabytes: float) -> None:
    graphs = replace(machine("dgx-h100", nodes, "2.30"), version=version("2.17"))
    latency, speed = costs(graphs, "all-reduce")[algorithm, protocol]  # type: ignore[index]
    assert latency * 1e6 == pytest.approx(micros)
    assert speed / GB == pytest.approx(gigabytes)


def test_bad_calls_are_refused() -> None:
    graphs = machine("dgx-a100", 1, "2.30")
    with pytest.raises(MeasurementError, match='"all-to-all" is not tuned'):
        tune(graphs, Call("all-to-all", 8))
    with pytest.raises(MeasurementError, match="size 0 B"):
        tune(graphs, Call("all-reduce", 0))
    with pytest.raises(MeasurementError, match=r"2\.16 to 2\.30 are modelled; nearest: 2\.30"):
        version("2.31")
    with pytest.raises(MeasurementError, match=r"write it as 2\.21"):
        version("two")
    assert str(version("v2.21.5-1")) == "2.21.5"
