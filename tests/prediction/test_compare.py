"""A measured log against a prediction: which machine, which algorithm, and what is left out and why."""

from __future__ import annotations

from math import fsum
from pathlib import Path

import pytest

from prediction.compare import compare
from prediction.fit import fitted
from prediction.readers import read_log, read_text
from sim.simulate import run_collective
from topologies import make
from topologies.errors import RingscopeError

LOGS = Path(__file__).parents[2].parent / "shared" / "inputs" / "logs"
COLUMNS = "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw #wrong\n"


def log(test: str, ranks: int, *rows: str, hosts: int = 1) -> str:
    """Text as nccl-tests prints it."""
    lines = [f"# Collective test starting: {test}_perf", "# nThread 1 nGpus 1 minBytes 8 maxBytes 8 step: 2(factor)"]
    where = [f"host{r * hosts // ranks} device  {r}" for r in range(ranks)]
    lines += [f"#  Rank {r:2} Group  0 Pid {100 + r} on {at} [0x07] NVIDIA A100-SXM4-80GB" for r, at in enumerate(where)]
    return "\n".join(lines) + "\n" + COLUMNS + "\n".join(rows) + "\n# Out of bounds values : 0 OK\n"


ONE = "  1048576   262144  float   sum  -1   50.00   20.97   36.70  0   40.00   26.21   45.88  0"
LARGE = "  67108864 16777216  float   sum  -1  500.00  134.22  234.88  0  500.00  134.22  234.88  0"
SMALL = "  8388608  2097152  float   sum  -1  500.00   16.78   29.36  0  500.00   16.78   29.36  0"
ALL_REDUCE = log("all_reduce", 8, ONE, LARGE)
TWO_HOSTS = log("all_reduce", 8, ONE, hosts=2)
BROADCAST = log("broadcast", 8, "  16777216  4194304  float  none   0  100.00  167.77  167.77  0  100.00  167.77  167.77  0")
HYPERCUBE = log("hypercube", 8, "  1048576    32768  float  none  -1   50.00   18.35   18.35  0   40.00   22.94   22.94  0")
SENDRECV = log("sendrecv", 8, "  1048576   262144  float   sum  -1   50.00   20.97   20.97  0   40.00   26.21   26.21  N/A")


def test_rows_and_the_mean_error() -> None:
    report = compare(read_text(ALL_REDUCE, "log"), "dgx-a100")
    assert [(r.collective, r.in_place, r.size_bytes, r.measured_s) for r in report.rows] == [
        ("all-reduce", False, 1 << 20, pytest.approx(50e-6)), ("all-reduce", True, 1 << 20, pytest.approx(40e-6)),
        ("all-reduce", False, 1 << 26, pytest.approx(500e-6)), ("all-reduce", True, 1 << 26, pytest.approx(500e-6)),
    ]  # fmt: skip
    for row in report.rows:
        alone = run_collective(make("dgx-a100"), "all-reduce", "ring", row.size_bytes)
        assert row.predicted_s == alone.time
        assert row.error == pytest.approx(alone.time / row.measured_s - 1)
    assert report.mape == pytest.approx(100 * fsum(abs(row.error) for row in report.rows) / 4)
    assert (report.algorithm, report.skipped) == ("ring", ())


def test_the_machine_takes_its_size_from_the_log_and_says_so() -> None:
    (part,) = compare(read_text(TWO_HOSTS, "log"), "dgx-a100").compared
    assert (part.topology, part.nranks) == ("dgx-a100-2x4", 8)
    assert part.notes[0] == "the log has 8 ranks on 2 servers: nodes=2, gpus=4"
    (one,) = compare(read_text(ALL_REDUCE, "log"), "ring").compared
    assert one.topology == "ring-8"


def test_what_the_user_gave_stays() -> None:
    (part,) = compare(read_text(TWO_HOSTS, "log"), "dgx-a100", {"nodes": "4"}).compared
    assert part.topology == "dgx-a100-4x2"
    with pytest.raises(RingscopeError, match="has 4 GPUs, but the log has 8 ranks"):
        compare(read_text(TWO_HOSTS, "log"), "dgx-a100", {"nodes": "1", "gpus": "4"})
    with pytest.raises(RingscopeError, match="3 servers cannot share evenly"):
        compare(read_text(TWO_HOSTS, "log"), "dgx-a100", {"nodes": "3"})
    with pytest.raises(RingscopeError, match="torus-4x4 has 16 GPUs, but the log has 8 ranks"):
        compare(read_text(TWO_HOSTS, "log"), "torus")


def test_servers_not_listed_are_as_few_as_hold_the_ranks() -> None:
    assert fitted("dgx-h100", {}, 32).topology.name == "dgx-h100-4x8"
    assert fitted("dgx-h100", {}, 4).topology.name == "dgx-h100-1x4"
    assert fitted("dgx-h100", {"gpus": "4"}, 32).topology.name == "dgx-h100-8x4"


def test_a_cluster_file_is_taken_as_it_is(tmp_path: Path) -> None:
    cluster = tmp_path / "mine.toml"
    cluster.write_text('topology = "dgx-a100"\n')
    assert compare(read_text(ALL_REDUCE, "log"), str(cluster)).compared[0].notes == ()
    cluster.write_text('topology = "dgx-a100"\nparams = { nodes = 2 }\n')
    with pytest.raises(RingscopeError, match="dgx-a100-2x8 has 16 GPUs, but the log has 8 ranks"):
        compare(read_text(ALL_REDUCE, "log"), str(cluster))


def test_broadcast_is_a_chain_in_slices() -> None:
    (part,) = compare(read_text(BROADCAST, "log"), "dgx-a100").compared
    assert part.algorithm == "chain"
    assert [row.slices for row in part.rows] == [16, 16]
    assert any("in slices of 512 KiB, at most 16" in note for note in part.notes)
    alone = run_collective(make("dgx-a100"), "broadcast", "chain", 16 << 20, slices=16)
    assert part.rows[0].predicted_s == alone.time


def test_the_algorithm_asked_for_is_used() -> None:
    assert compare(read_text(ALL_REDUCE, "log"), "dgx-a100", algorithm="halving-doubling").algorithm == "halving-doubling"
    with pytest.raises(RingscopeError, match="chain"):
        compare(read_text(ALL_REDUCE, "log"), "dgx-a100", algorithm="chain")


def test_a_table_that_cannot_be_simulated_is_named_and_hides_no_other() -> None:
    report = compare(read_text(HYPERCUBE + ALL_REDUCE, "log"), "dgx-a100")
    assert [part.collective for part in report.compared] == ["all-reduce"]
    assert len(report.skipped) == 1
    assert "hypercube is not a collective that is simulated" in report.skipped[0]
    with pytest.raises(RingscopeError, match="hypercube is not a collective"):
        compare(read_text(HYPERCUBE, "log"), "dgx-a100")


def test_sendrecv_is_a_shift_to_the_next_rank() -> None:
    (part,) = compare(read_text(SENDRECV, "log"), "dgx-a100").compared
    assert (part.collective, part.algorithm, part.nranks) == ("sendrecv", "shift", 8)
    alone = run_collective(make("dgx-a100"), "sendrecv", "shift", 1 << 20)
    assert [row.predicted_s for row in part.rows] == [alone.time] * 2
    assert [row.measured_s for row in part.rows] == pytest.approx([50e-6, 40e-6])


def test_a_log_of_one_table_a_size_is_one_part() -> None:
    report = compare(read_text(log("all_reduce", 8, SMALL) + log("all_reduce", 8, LARGE), "log"), "dgx-a100")
    assert len(report.compared) == 1
    assert [row.size_bytes for row in report.rows] == [8 << 20, 8 << 20, 64 << 20, 64 << 20]


def test_progress_reaches_the_end_and_can_cancel() -> None:
    seen: list[int] = []
    compare(read_text(ALL_REDUCE, "log"), "ring", progress=lambda done, total: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 3

    def stop(done: int, total: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        compare(read_text(ALL_REDUCE, "log"), "ring", progress=stop)


def shared_logs() -> list[Path]:
    return sorted(LOGS.glob("*")) if LOGS.is_dir() else []


@pytest.mark.skipif(not shared_logs(), reason="the shared logs are not here")
@pytest.mark.parametrize("machine", ["dgx-1v", "dgx-a100", "dgx-h100"])
def test_every_shared_log_is_compared_or_refused_in_one_line(machine: str) -> None:
    compared = 0
    for path in shared_logs():
        reason = ""
        try:
            report = compare(read_log(path), machine)
        except RingscopeError as error:
            reason = str(error)
        assert "\n" not in reason
        if reason:
            continue
        compared += 1
        assert report.rows
        assert all(row.predicted_s > 0 and row.measured_s > 0 for row in report.rows)
        assert report.mape == pytest.approx(100 * sum(abs(row.error) for row in report.rows) / len(report.rows))
    assert compared >= 5
