"""What a machine's numbers do to a prediction: every fault and every part of the model shows, more bandwidth is never slower."""

from __future__ import annotations

from itertools import pairwise

import pytest
from library_calls import asked, built, calls

from prediction.library.asked import LaunchMode
from prediction.library.constants import Constants
from prediction.library.predict import ABLATIONS, predict_library
from prediction.library.wire import Use, Wire
from topologies.faults import apply_faults
from topologies.graph import Link, Topology

MIB, GIB = 1 << 20, 1 << 30
SIZES = [3 << k for k in range(8, 31, 2)]


def _times(topology: Topology, collective: str, sizes: list[int], *left_out: str, launch: LaunchMode = "process-per-gpu") -> list[float]:
    rows = predict_library(topology, collective, sizes, asked(topology, launch=launch), ablate=frozenset(left_out))
    return [row.time_s for row in rows]


@pytest.mark.parametrize(
    ("name", "nodes", "collective", "fault"),
    [
        ("dgx-a100", 1, "all-reduce", "lanes:gpu3-nvswitch:6"), ("dgx-h100", 1, "all-reduce", "lanes:gpu3-nvswitch:9"),
        ("dgx-h100", 1, "all-to-all", "lanes:gpu3-nvswitch:9"), ("dgx-h100", 2, "all-reduce", "slow-link:s0.nic3-leaf3:x2"),
        ("dgx-a100", 2, "all-gather", "slow-link:s1.nic0-leaf0:x2"), ("hgx-pcie", 1, "all-reduce", "slow-gpu:2:x2"),
    ],
)  # fmt: skip
def test_a_slower_link_shows(name: str, nodes: int, collective: str, fault: str) -> None:
    topology = built(name, nodes)
    well, ill = (_times(each, collective, [GIB]) for each in (topology, apply_faults(topology, [fault])))
    assert ill[0] > 1.05 * well[0]


LEFT_OUT: dict[str, tuple[str, int, str, LaunchMode]] = {
    "simulation": ("dgx-a100", 1, "all-reduce", "process-per-gpu"), "choice": ("dgx-h100", 1, "all-reduce", "process-per-gpu"),
    "launch": ("dgx-a100", 1, "all-reduce", "thread-per-gpu"), "fabric": ("aws-p4d", 2, "all-reduce", "process-per-gpu"),
    "generation": ("dgx-a100", 1, "all-reduce", "process-per-gpu"), "message": ("dgx-h100", 2, "all-to-all", "process-per-gpu"),
    "local": ("dgx-a100", 1, "all-reduce", "process-per-gpu"), "period": ("dgx-a100", 1, "broadcast", "process-per-gpu"),
}  # fmt: skip


@pytest.mark.parametrize("part", ABLATIONS)
def test_each_part_of_the_model_shows_on_some_machine(part: str) -> None:
    name, nodes, collective, launch = LEFT_OUT[part]
    topology, sizes = built(name, nodes), [1 << 12, 1 << 20, 1 << 30]
    whole = _times(topology, collective, sizes, launch=launch)
    less = _times(topology, collective, sizes, part, launch=launch)
    assert any(abs(a / b - 1) > 0.01 for a, b in zip(whole, less, strict=True)), f"{part}: {whole} stay {less}"


def test_without_the_simulation_the_library_s_own_formula_stands() -> None:
    call = calls("dgx-a100", 2, "all-reduce")
    own = [next(call._choices(nbytes)).modelled_s for nbytes in (1 << 10, 1 << 20, 1 << 30)]
    assert _times(call.topology, "all-reduce", [1 << 10, 1 << 20, 1 << 30], "simulation") == own


@pytest.mark.parametrize(
    ("name", "nodes", "collective"),
    [("dgx-a100", 1, "all-reduce"), ("dgx-h100", 2, "all-reduce"), ("aws-p5", 2, "all-gather"), ("hgx-pcie", 1, "all-reduce")],
)
@pytest.mark.parametrize(
    ("constant", "factor"),
    [
        ("nvlink", 1.1), ("nvls", 1.2), ("nic", 1.02), ("bridge", 1.5), ("shared_memory", 1.5),
        ("nvlink_hop", 0.5), ("pcie_hop", 0.5), ("net_hop", 0.5), ("nvls_hop", 0.5), ("message", 0.5), ("slice", 0.5), ("floor", 0.5),
        ("channel", 0.5),
    ],
)  # fmt: skip
def test_a_better_machine_is_never_slower(name: str, nodes: int, collective: str, constant: str, factor: float) -> None:
    topology = built(name, nodes)
    known = asked(topology)
    before = Constants.of(topology, known)
    after = before.replaced(**{constant: getattr(before, constant) * factor})
    for nbytes in (1 << 12, 1 << 20, 1 << 28):
        slow, fast = (predict_library(topology, collective, [nbytes], known, each)[0] for each in (before, after))
        assert fast.time_s <= slow.time_s * (1 + 1e-3), f"{nbytes} B: {fast} after {slow}"


@pytest.mark.parametrize(
    ("name", "nodes", "collective", "algorithm", "protocol"),
    [
        *(("dgx-a100", 1, "all-reduce", algorithm, protocol) for algorithm in ("ring", "tree") for protocol in ("ll", "ll128", "simple")),
        ("dgx-a100", 2, "all-reduce", "ring", "ll"), ("dgx-a100", 2, "all-reduce", "ring", "simple"),
        ("dgx-a100", 2, "all-reduce", "tree", "simple"), ("dgx-h100", 1, "all-reduce", "nvls", "simple"),
        ("dgx-h100", 4, "all-reduce", "nvlstree", "simple"), ("dgx-h100", 1, "broadcast", "ring", "simple"),
        ("dgx-h100", 1, "all-gather", "ring", "ll128"),
    ],
)  # fmt: skip
def test_more_bytes_on_as_many_channels_are_never_faster(name: str, nodes: int, collective: str, algorithm: str, protocol: str) -> None:
    """A larger call may be faster where it is the first to get another channel."""
    call = calls(name, nodes, collective, {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol})
    rows = [call.row(nbytes) for nbytes in SIZES if protocol == "simple" or nbytes <= 1 << 26]
    assert len({row.channels for row in rows}) < len(rows) / 2, "there is something to compare"
    for small, large in pairwise(rows):
        if small.channels == large.channels:
            assert large.time_s >= small.time_s * (1 - 1e-9), f"{large} after {small}"
        assert large.time_s > 0.85 * small.time_s


def test_a_protocol_s_wire_keeps_the_graph() -> None:
    topology = built("dgx-h100", 2)
    wire = Wire(topology, Constants.of(topology, asked(topology)))
    for protocol, part in (("ll", 0.4), ("ll128", 0.92 * 120 / 128), ("simple", 1.0)):
        seen = wire.seen(Use("ring", protocol, 16, 1 << 20))  # type: ignore[arg-type]
        assert (seen.gpus, dict(seen.groups)) == (topology.gpus, dict(topology.groups))
        for before, after in zip(topology.links, seen.links, strict=True):
            assert (before.src, before.dst, before.kind, before.lanes) == (after.src, after.dst, after.kind, after.lanes)
            assert 0 < after.bandwidth <= before.bandwidth * part * (1 + 1e-12)


def test_small_messages_are_limited_by_the_proxy() -> None:
    """One CPU thread a NIC posts a message of 4 KiB a microsecond, not 50 GB/s."""
    topology = built("dgx-h100", 2)
    wire = Wire(topology, Constants.of(topology, asked(topology)))
    (nic,) = [link for link in wire.seen(Use("ring", "simple", 16, 4096)).links if (link.src, link.dst) == ("s0.nic0", "leaf0")]
    assert nic.bandwidth == pytest.approx(4096 / wire.constants.message)


def _nic(name: str, message: int) -> tuple[Link, Wire]:
    topology = built(name, 2)
    wire = Wire(topology, Constants.of(topology, asked(topology)))
    seen = wire.seen(Use("ring", "simple", 16, message)).links
    return next(link for link in seen if link.src == "s0.nic0" and wire.kinds[link.dst] == "switch"), wire


def test_gpus_that_share_a_nic_have_a_proxy_each() -> None:
    nic, wire = _nic("aws-p4d", 1024)
    assert nic.bandwidth == pytest.approx(2 * 1024 / wire.constants.message)


def test_larger_messages_over_slingshot_meet_first() -> None:
    (small, _), (large, _) = _nic("gh200-quad", 2048), _nic("gh200-quad", 2049)
    assert large.latency - small.latency == pytest.approx(3.5e-6), "half of 7 us at each end"
