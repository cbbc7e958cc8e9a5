"""What calls take: loops that are not simulated, calls that overlap, and simple cases whose time a formula gives."""

from __future__ import annotations

import pytest
from library_calls import asked, built, calls, loops

from prediction.library.predict import Row, predict_library
from prediction.library.schedules import Loops
from topologies.graph import Link, Topology

MIB, GIB = 1 << 20, 1 << 30


def _row(name: str, nodes: int, collective: str, nbytes: int, algorithm: str, protocol: str) -> Row:
    return calls(name, nodes, collective, {"NCCL_ALGO": algorithm, "NCCL_PROTO": protocol}).row(nbytes)


@pytest.mark.parametrize(
    ("name", "nodes", "collective", "nbytes", "algorithm", "protocol"),
    [
        ("dgx-a100", 1, "all-reduce", 6 * GIB, "ring", "simple"), ("dgx-a100", 1, "all-reduce", 8 * GIB, "ring", "simple"),
        ("dgx-a100", 1, "reduce-scatter", 9 * GIB, "ring", "simple"), ("dgx-a100", 1, "all-reduce", 144 * MIB, "ring", "ll"),
        ("dgx-a100", 1, "all-gather", 4 * GIB, "ring", "ll128"), ("dgx-a100", 2, "all-reduce", 10 * GIB, "ring", "simple"),
        ("dgx-a100", 1, "all-reduce", GIB, "tree", "simple"), ("dgx-a100", 3, "all-reduce", GIB, "tree", "simple"),
        ("dgx-a100", 2, "all-reduce", 48 * MIB, "tree", "ll128"), ("dgx-a100", 2, "all-reduce", 16 * MIB, "tree", "ll"),
        ("dgx-h100", 1, "all-reduce", 384 * MIB, "nvls", "simple"), ("dgx-h100", 1, "all-reduce", 4 * GIB, "nvls", "simple"),
        ("dgx-h100", 1, "all-gather", 300 * MIB, "nvls", "simple"), ("dgx-h100", 2, "all-reduce", GIB, "nvlstree", "simple"),
        ("dgx-h100", 4, "all-reduce", 700 * MIB, "nvlstree", "simple"), ("dgx-a100", 1, "broadcast", 200 * MIB, "ring", "simple"),
        ("dgx-a100", 1, "reduce", 900 * MIB, "ring", "simple"), ("dgx-a100", 2, "broadcast", 300 * MIB, "ring", "simple"),
    ],
)  # fmt: skip
def test_loops_that_are_not_simulated_take_as_long_as_those_that_are(
    monkeypatch: pytest.MonkeyPatch, name: str, nodes: int, collective: str, nbytes: int, algorithm: str, protocol: str
) -> None:
    few, many = [], []
    steady = Loops.steady.fget  # type: ignore[attr-defined]

    def noted(made: Loops) -> int:
        few.append(steady(made))
        many.append(made.many)
        return int(steady(made))

    monkeypatch.setattr(Loops, "steady", property(noted))
    short = _row(name, nodes, collective, nbytes, algorithm, protocol)
    assert many[0] > (1 if collective in ("broadcast", "reduce") else 2) * few[0] * 0.99, "some loops are left out"
    monkeypatch.setattr(Loops, "steady", property(lambda made: made.many))
    whole = _row(name, nodes, collective, nbytes, algorithm, protocol)
    assert (short.algorithm, short.protocol, short.channels) == (whole.algorithm, whole.protocol, whole.channels)
    assert short.time_s == pytest.approx(whole.time_s, rel=0.01)


@pytest.mark.parametrize("collective", ["broadcast", "reduce"])
@pytest.mark.parametrize(("nodes", "protocol"), [(1, "ll"), (1, "simple"), (2, "simple")])
def test_overlapping_calls_do_not_wait_for_the_last_rank(collective: str, nodes: int, protocol: str) -> None:
    """One call passes all ranks; of many in a row each adds what the slowest link takes."""
    topology = built("dgx-a100", nodes)
    known = asked(topology, {"NCCL_PROTO": protocol})
    for nbytes in (64 << 10, 4 * MIB, 64 * MIB):
        row = predict_library(topology, collective, [nbytes], known)[0]
        alone = predict_library(topology, collective, [nbytes], known, ablate=frozenset({"period"}))[0]
        assert row.time_s < alone.time_s
    assert alone.time_s < 2 * row.time_s, "a long call is hardly longer alone"


def test_a_long_broadcast_takes_what_the_bottleneck_takes() -> None:
    """Every GPU passes all data on over NVLink, 24 channels side by side."""
    call = calls("dgx-a100", 1, "broadcast", {"NCCL_PROTO": "simple"})
    row = call.row(4 * GIB)
    fixed = call.constants.floor + row.channels * call.constants.channel
    slices = row.time_s - fixed - 4 * GIB / (_up(call.topology).bandwidth * call.constants.nvlink)
    assert 0 <= slices < 0.05 * row.time_s, "beside the link's time only what a slice costs"


def _up(topology: Topology) -> Link:
    """From the first GPU to the NVSwitches."""
    gpu = topology.gpus[0]
    return next(topology.link(gpu, other) for other in topology.graph[gpu] if topology.node(other).kind == "nvswitch")


@pytest.mark.parametrize(("name", "factor"), [("all-reduce", 2), ("all-gather", 1), ("reduce-scatter", 1)])
@pytest.mark.parametrize("nbytes", [256 * MIB, GIB, 8 * GIB])
@pytest.mark.parametrize("machine", ["dgx-a100", "dgx-h100"])
def test_a_large_ring_takes_what_its_formula_says(machine: str, name: str, factor: int, nbytes: int) -> None:
    """On one NVSwitch node: the floor, and factor (n-1)/n S at what the links give of their rate while they send."""
    call = calls(machine, 1, name, {"NCCL_ALGO": "ring", "NCCL_PROTO": "simple"})
    row = call.row(nbytes)
    n, rate = len(call.topology.gpus), _up(call.topology).bandwidth * call.constants.nvlink * call._sending("ring")
    wanted = call.constants.floor + row.channels * call.constants.channel + factor * (n - 1) / n * nbytes / rate
    assert wanted < row.time_s < 1.1 * wanted


@pytest.mark.parametrize("nbytes", [GIB, 2 * GIB, 16 * GIB])
def test_a_large_nvls_call_takes_what_its_formula_says(nbytes: int) -> None:
    """Each GPU sends all data for the switch to add, and its own n-th part of the sum for all."""
    call = calls("dgx-h100", 1, "all-reduce", {"NCCL_ALGO": "nvls"})
    row = call.row(nbytes)
    n, rate = len(call.topology.gpus), _up(call.topology).bandwidth * call.constants.nvls
    wanted = call.constants.floor + row.channels * call.constants.channel + (n + 1) / n * nbytes / rate
    assert wanted < row.time_s < 1.1 * wanted


def test_nvls_gathers_as_fast_as_it_scatters() -> None:
    """A gather brings to each GPU what a scatter takes from it; all ports of the switch are busy at once."""
    up, down = (calls("dgx-h100", 1, name, {"NCCL_ALGO": "nvls"}).row(GIB).time_s for name in ("reduce-scatter", "all-gather"))
    assert down == pytest.approx(up, rel=1e-6)
    assert up < calls("dgx-h100", 1, "all-reduce", {"NCCL_ALGO": "nvls"}).row(GIB).time_s


def test_a_peer_gets_a_whole_message_and_a_part_of_it() -> None:
    """sendrecv: nccl-tests' size goes to one peer; all-to-all: the n-th part of it. LL up to 16 KiB a peer."""
    for name, parts in (("sendrecv", 1), ("all-to-all", 8), ("gather", 8), ("scatter", 8)):
        call = calls("dgx-a100", 1, name)
        assert call.row(parts * (16 << 10)).protocol == "ll"
        assert call.row(parts * (16 << 10) + parts).protocol == "simple"


@pytest.mark.parametrize(("collective", "parts"), [("sendrecv", 1), ("all-to-all", 16), ("gather", 16), ("scatter", 16)])
def test_a_message_is_what_goes_to_one_peer(collective: str, parts: int) -> None:
    call = calls("dgx-h100", 2, collective)
    assert loops(call, next(call._choices(48 << 10)), 48 << 10)[0].message == (48 << 10) / parts


@pytest.mark.parametrize("collective", ["all-gather", "all-to-all", "sendrecv", "gather", "scatter"])
def test_a_few_bytes_take_no_longer_than_some(collective: str) -> None:
    """What the proxy spends is a time a message, however the bytes of a call fall on its ranks."""
    call = calls("dgx-h100", 2, collective)
    times = [call.row(nbytes).time_s for nbytes in (1, 7, 15, 16, 17, 33)]
    assert max(times) <= call.row(64).time_s * (1 + 1e-4)
