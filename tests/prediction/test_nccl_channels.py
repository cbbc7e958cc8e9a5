"""How many channels and threads NCCL takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from prediction.nccl.channels import channels_and_threads, comm_channels, nvls_channels
from prediction.nccl.enabled import Call
from prediction.nccl.graphs import Graphs
from prediction.nccl.machines import graphs_of
from prediction.nccl.settings import Settings, settings
from prediction.nccl.version import version
from topologies import make


def graphs(name: str, nodes: int, release: str) -> Graphs:
    return graphs_of(make(name, {"nodes": nodes}), version(release))


def test_channels_and_threads_grow_with_size() -> None:
    found = graphs("dgx-a100", 1, "2.30")

    def taken(nbytes: int, algorithm: str, protocol: str) -> tuple[int, int]:
        return channels_and_threads(found, Settings(), Call("all-reduce", nbytes), algorithm, protocol)  # type: ignore[arg-type]

    assert taken(1 << 30, "ring", "simple") == (24, 544)
    assert taken(1 << 30, "tree", "simple") == (24, 640)
    assert taken(1 << 30, "ring", "ll128") == (24, 640)
    assert taken(512 * 8 * 8 * 5, "ring", "ll") == (5, 512)  # 8 B a thread, rank and channel
    assert taken(512 * 8 * 8 // 2, "ring", "ll") == (1, 256)
    assert taken(8, "ring", "simple") == (1, 96)
    counts = [taken(1 << power, "ring", "simple")[0] for power in range(3, 31)]
    assert counts == sorted(counts)


def test_channel_count_follows_variables() -> None:
    found = graphs("dgx-h100", 1, "2.30")
    assert comm_channels(found, settings({"NCCL_MAX_NCHANNELS": "7"}, found.version)) == 7
    assert comm_channels(found, settings({"NCCL_MIN_CTAS": "40"}, found.version)) == 40
    assert comm_channels(found, Settings(max_channels=9, min_channels=3)) == 9
    assert comm_channels(replace(found, version=version("2.21")), Settings(min_channels=64)) == 32
    assert [
        nvls_channels(graphs(name, nodes, "2.30"), Settings()) for name, nodes in (("dgx-h100", 1), ("dgx-b200", 1), ("dgx-b200", 4))
    ] == [16, 24, 24]
    assert nvls_channels(found, settings({"NCCL_NVLS_NCHANNELS": "20"}, found.version)) == 20


@pytest.mark.parametrize(
    ("release", "local", "nodes", "nic", "wanted"),
    [
        ("2.30", 8, 2, 96e9, 24), ("2.30", 9, 2, 96e9, 32), ("2.30", 9, 3, 96e9, 24), ("2.30", 8, 2, 95e9, 32), ("2.30", 8, 3, 48e9, 24),
        ("2.30", 8, 3, 47e9, 32), ("2.29", 8, 3, 96e9, 32),
    ],
)  # fmt: skip
def test_nvls_channels_of_blackwell_between_nodes(release: str, local: int, nodes: int, nic: float, wanted: int) -> None:
    found = graphs("dgx-b200", 2, "2.30")
    assert found.nvls is not None
    nvls = replace(found.nvls, bw_inter=nic)
    assert nvls_channels(replace(found, version=version(release), ranks=local * nodes, nodes=nodes, nvls=nvls), Settings()) == wanted


def test_a_small_call_meets_whole_cells() -> None:
    found = graphs("dgx-h100", 1, "2.30")
    nbytes = 5 * (32 << 10) // 2  # an all-reduce moves each byte twice
    assert channels_and_threads(found, Settings(), Call("all-reduce", nbytes), "nvls", "simple")[0] == 5
    assert channels_and_threads(found, Settings(), Call("all-reduce", nbytes + 1), "nvls", "simple")[0] == 6
    older = replace(found, version=version("2.21"))
    assert channels_and_threads(older, Settings(), Call("all-reduce", nbytes), "nvls", "simple")[0] == 16
