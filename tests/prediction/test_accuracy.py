"""Accuracy on a small folder of measurements with predictors whose errors are known exactly."""

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from accuracy_folder import FACTORS, SIZES, measured, write

from prediction.accuracy import COLD, LINE, LOG, MORE, OTHER, TEXTBOOK, TUNER, TWO, Report, judge
from prediction.accuracy_baselines import textbook
from prediction.accuracy_errors import Judged, counted, intervals, summary
from prediction.accuracy_intervals import left_one_out, ratios
from prediction.accuracy_predictors import library_calibration, library_predictor
from prediction.accuracy_tables import Curve, Folder, read_folder
from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.nccl.choose import choose
from topologies import Topology, make
from topologies.custom import custom
from topologies.errors import MeasurementError
from views.accuracy import accuracy_lines, accuracy_record
from views.accuracy_picture import accuracy_figure, save_accuracy
from views.records import dumps
from views.terminal import page

BENCH = Path(__file__).parents[2] / "bench" / "accuracy.py"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path)


@dataclass(frozen=True)
class Row:
    size_bytes: int
    time_s: float
    low_s: float
    high_s: float
    algorithm: str = "ring"
    protocol: str = "ll"


def fake(topology: Topology, collective: str, sizes: Sequence[int], asked: Asked, constants: Constants) -> list[Row]:
    """Off by ``FACTORS``; every constant of 1 s (what the fake calibration gives) makes it exact but for 2 %."""
    off = {size: 1.02 if constants.floor == 1.0 else FACTORS.get(size, 3.0) for size in sizes}
    return [Row(s, measured(s) * off[s], measured(s) * off[s] / 1.2, measured(s) * off[s] * 1.2) for s in sizes]


def calibrated(topology: Topology, told: Sequence[tuple[str, int, float]], asked: Asked, constants: Constants) -> Constants:
    assert all(time == pytest.approx(measured(size), rel=1e-12) for _, size, time in told)
    return constants.replaced(floor=1.0)


@pytest.fixture
def report(folder: Path) -> Report:
    return judge(read_folder(folder), fake, calibrated)


def test_cold_errors_are_those_put_in(report: Report) -> None:
    record = accuracy_record(report)
    cold = record["cold"]
    assert cold["rows"] == 5 * 5  # one twice, two, four, cards; loud is apart, wrong has no topology
    assert cold["mape"] == pytest.approx((50 + 20 + 25 + 10 + 1) / 5)
    assert cold["median"] == pytest.approx(20)
    assert cold["bias"] == pytest.approx(10)  # -20, -1, 10, 25, 50
    assert [cold["bands"][band]["median"] for band in "SML"] == pytest.approx([35, 17.5, 1])
    assert cold["classes"]["ib-roce"]["rows"] == 10
    assert cold["classes"]["pcie"]["bands"]["L"]["mape"] == pytest.approx(1)
    assert set(cold["clusters"]) == {"blue", "red"}
    assert cold["cluster_weighted"] == {"clusters": 2, "mape": pytest.approx(21.2), "median": pytest.approx(20)}


def test_intervals_cover_what_is_within_a_fifth(report: Report) -> None:
    record = accuracy_record(report)
    assert record["coverage80_table"] == pytest.approx(40)  # 1.1 and 0.99 of five factors; 0.8 * 1.2 = 0.96 and 1.25 / 1.2 = 1.04 miss
    assert record["interval_width_median_table"] == pytest.approx(100 * (1.2 - 1 / 1.2), abs=1e-3)
    assert record["intervals"][TWO]["table"]["coverage80"] == 100


def test_intervals_of_other_clusters_by_band_and_reach() -> None:
    def row(cluster: str, ratio: float, size: int = 1, reach: str = "node") -> Judged:
        return Judged("d", cluster, "k", "c", size, 2.0 * ratio, 2.0, 1.99, 2.01, reach=reach)

    rows = [row("a", 3.0), row("b", 1.5), row("b", 2.5), row("c", 0.5), row("d", 4.0, reach="ib"), row("a", 9.0, 1 << 30)]
    found = left_one_out(rows)
    assert [r.measured_s for r in found] == [r.measured_s for r in rows]
    ends = [(r.low_s / 2, r.high_s / 2) for r in found]
    # b and c: ratios 0.5, 1.5, 2.5 of weights 1, 1/2, 1/2, at 1/4, 5/8, 7/8 of all
    assert ends[0] == (pytest.approx(0.5), pytest.approx(2.5))
    assert ends[1] == ends[2] == (pytest.approx(0.5), pytest.approx(3.0))  # a and c
    assert ends[3] == (1.0, pytest.approx(3.0))  # a and b, none of which was faster than predicted
    assert ends[4] == (pytest.approx(0.5), pytest.approx(3.0))  # no other of its reach: a, b and c, each of weight one
    assert ends[5] == (pytest.approx(0.995), pytest.approx(1.005))  # nobody else has large calls
    assert ratios([]) is None


def test_intervals_of_the_folder_come_from_its_other_clusters(report: Report) -> None:
    record = accuracy_record(report)
    rows = counted(report.rows[COLD])
    assert {(row.cluster, row.reach) for row in rows} == {("blue", "node"), ("blue", "ib"), ("red", "node")}
    # the same factors everywhere: S and M hold two of them each, whose percentiles are themselves; L holds 0.99
    assert record["coverage80"] == pytest.approx(100)
    assert record["intervals"][COLD]["bands"]["L"]["interval_width_median"] == pytest.approx(100 * (1 / 0.99 - 1), abs=1e-3)


def test_outliers_and_noisy_data_sets_stand_apart(report: Report) -> None:
    apart = accuracy_record(report)["apart"]
    assert apart["noisy"][COLD]["rows"] == 5
    assert apart["outlier"][COLD]["rows"] == 1
    assert apart["outlier"][COLD]["mape"] == pytest.approx(100 * (1 - measured(2048) * 3 / 999e-6), abs=1e-3)
    assert {row.apart for row in counted(report.rows[COLD])} == {""}


def test_two_numbers_are_not_judged_on_what_was_told(report: Report) -> None:
    two = accuracy_record(report)["two_number"]
    assert two["rows"] == 5 * 3
    assert (two["median"], two["mape"]) == (pytest.approx(2), pytest.approx(2))
    assert two["with_told"]["rows"] == 5 * 5
    assert two["full_sweeps"]["rows"] == 5 * 3
    told = {row.size_bytes for row in report.rows[TWO] if row.told}
    assert told == {SIZES[0], SIZES[-1]}
    line = [row for row in report.rows[LINE] if not row.apart]
    assert max(abs(row.error) for row in line) < 1e-9  # what was measured is a straight line


def test_a_small_log_serves_other_collectives_and_more_nodes(report: Report) -> None:
    log = accuracy_record(report)["small_log"]
    others = {(row.dataset, row.collective) for row in report.rows[LOG] if row.part == OTHER}
    more = {(row.dataset, row.collective) for row in report.rows[LOG] if row.part == MORE}
    assert others == {("one", "all-gather")}
    assert more == {("four", "all-reduce")}
    assert (log[OTHER]["rows"], log[MORE]["rows"], log["mape"]) == (5, 5, pytest.approx(2))


def test_without_a_calibration_its_parts_are_missing_and_the_rest_is_there(folder: Path) -> None:
    record = accuracy_record(judge(read_folder(folder), fake, None))
    assert record["cold"]["rows"] == 25
    assert record["two_number"]["missing"] == record["small_log"]["missing"] == "prediction.library.calibrate is not there"
    assert record["two_number"]["mape"] is None
    assert record["kept"] == {TWO: 0, LOG: 0}
    assert record["baselines"][LINE]["mape"] == pytest.approx(0)


def test_the_calibration_moves_constants_and_keeps_them_where_it_refuses() -> None:
    found, topology, asked = library_calibration(), make("dgx-h100"), Asked()
    assert found is not None
    before = Constants.of(topology, asked).replaced(nvlink=0.8)
    rows = library_predictor()(topology, "all-reduce", [1024, 1 << 30], asked, before.replaced(floor=11e-6))
    moved = found(topology, [("all-reduce", row.size_bytes, row.time_s) for row in rows], asked, before)
    assert moved.floor == pytest.approx(11e-6, rel=0.02)
    assert found(topology, [("all-reduce", row.size_bytes, 1.0) for row in rows], asked, before) == before  # seconds: another machine


def test_calibrations_that_move_nothing_are_counted(folder: Path) -> None:
    record = accuracy_record(judge(read_folder(folder), fake, lambda topology, told, asked, constants: constants))
    assert record["kept"] == {TWO: 6, LOG: 2}  # loud with them; for the other collective of one, and from two for four
    assert any(line == "two numbers: 6 calibrations moved no constant" for line in accuracy_lines(record))


def test_failures_are_counted_by_reason_and_not_fatal(folder: Path) -> None:
    def brittle(topology: Topology, collective: str, sizes: Sequence[int], asked: Asked, constants: Constants) -> list[Row]:
        if collective == "all-gather":
            raise TimeoutError("over 7 s")
        if 64 << 10 in sizes:
            raise MeasurementError("64 KiB is beyond me")
        if asked.launch == "thread-per-gpu":
            return [Row(size, float("nan"), 0, 1) for size in sizes]
        if len(topology.gpus) == 32:
            raise KeyError("nic")
        return fake(topology, collective, sizes, asked, constants)

    def refusing(*_: Any) -> Constants:
        raise MeasurementError("a bad fit")

    report = judge(read_folder(folder), brittle, refusing)
    found = {(f.method, f.dataset, f.collective, f.rows, f.reason) for f in report.failures if f.method in (COLD, TWO)}
    assert (COLD, "one", "all-gather", 5, "over 7 s") in found
    assert (COLD, "one", "all-reduce", 1, "64 KiB is beyond me") in found
    assert (COLD, "four", "all-reduce", 5, "defect: KeyError: 'nic'") in found
    assert (TWO, "two", "all-reduce", 5, "calibration: a bad fit") in found
    assert any(f.dataset == "cards" and f.rows == 5 and "outside its interval" in f.reason for f in report.failures)
    assert any(f.dataset == "wrong" and f.rows == 5 and 'gpu: "h1000"' in f.reason for f in report.failures)
    assert accuracy_record(report)["cold"]["rows"] == 8  # of one and of two 4 each


def test_a_fit_never_sees_its_own_cluster(folder: Path) -> None:
    seen: dict[str, set[str]] = {}

    def fit(curves: Sequence[Curve]) -> Any:
        clusters = {curve.dataset.cluster for curve in curves}
        name = ({"blue", "green", "red"} - clusters).pop()
        assert name not in seen
        seen[name] = clusters
        return lambda topology, asked: Constants.of(topology, asked).replaced(floor=1.0 if name == "red" else 2.0)

    report = judge(read_folder(folder), fake, None, fit=fit)
    assert seen == {"blue": {"green", "red"}, "green": {"blue", "red"}, "red": {"blue", "green"}}
    errors = summary(counted(report.rows[COLD]))["clusters"]
    assert (errors["red"]["mape"], errors["blue"]["mape"]) == (pytest.approx(2), pytest.approx(21.2))


def test_baselines_and_ours_on_the_same_points(report: Report) -> None:
    record = accuracy_record(report)
    its = record["baselines"][TUNER]
    assert set(its["classes"]) >= {"nvlink-node", "ib-roce"}
    assert its["cold_same_rows"]["rows"] == its["rows"]
    row = next(row for row in report.rows[TUNER] if row.dataset == "two" and row.size_bytes == 16 << 20)
    assert row.predicted_s == choose(custom(2, 8), "all-reduce", 16 << 20, "2.20.5").tuning.choice.time_s
    assert record["baselines"][TEXTBOOK]["rows"] == 25


def test_textbook_by_hand() -> None:
    size = 64 << 20
    one, two = make("dgx-h100"), make("dgx-h100", {"nodes": 2})
    assert textbook(one, "all-reduce")(size) == pytest.approx(14 * 0.6e-6 + 2 * 7 / 8 * size / 450e9)
    hop = (7 * 0.6e-6 + (0.5 + 0.5 + 0.43) * 2e-6 + 0.6e-6) / 8  # at the seam by NVLink to the rail's GPU, as the leaf's rails do not meet
    assert textbook(two, "all-gather")(size) == pytest.approx(15 * hop + 15 / 16 * size / 400e9)
    assert textbook(two, "broadcast")(size) == pytest.approx(15 * hop + size / 400e9)
    assert textbook(two, "all-to-all")(size) == pytest.approx(15 * hop + size * 8 / 16 / 50e9)
    assert textbook(two, "sendrecv")(size) == pytest.approx(hop + size / 50e9)
    with pytest.raises(MeasurementError, match=r'"all-together" has no formula here; did you mean "all-gather"'):
        textbook(one, "all-together")


def test_weights_of_clusters_and_quantiles() -> None:
    def row(cluster: str, predicted: float, size: int = 1) -> Judged:
        return Judged("d", cluster, "k", "c", size, 1.0, predicted, predicted, predicted)

    rows = [row("a", 1.1), *(row("b", 1 + error / 100) for error in (20, 30, 40, 50))]
    found = summary(rows)
    assert found["cluster_weighted"] == {"clusters": 2, "mape": pytest.approx((10 + 35) / 2), "median": pytest.approx(10)}
    assert (found["median"], found["p90"]) == (pytest.approx(30), pytest.approx(46))
    assert [row("a", 1, size).band for size in (64 << 10, (64 << 10) + 1, 16 << 20, (16 << 20) + 1)] == ["S", "M", "M", "L"]
    assert summary([])["median"] is None
    assert intervals([])["coverage80"] is None


def test_ablation_is_a_part_of_the_predictor() -> None:
    with pytest.raises(MeasurementError, match=r'^ablate: "simulatoin" is not a part that can be left out'):
        library_predictor(["simulatoin"])


def test_tables_and_picture(report: Report, tmp_path: Path) -> None:
    record = accuracy_record(report)
    assert json.loads(dumps(record)) == record
    shown = [" ".join(line.split()) for line in page(accuracy_lines(record)).split("\n")]
    assert "cold 25 20.0 21.2 50.0 35.0 17.5 1.0 20.0 21.2" in shown
    assert any(line.startswith("two numbers 15 2.0 2.0") for line in shown)
    assert any(line.startswith("apart, noisy: median cold 20.0 of 5") for line in shown)
    assert any(line.startswith('cold 5 wrong machines.csv:7, gpu: "h1000"') for line in shown)
    assert [axes.get_title() for axes in accuracy_figure({COLD: report.rows[COLD], TWO: [], LINE: report.rows[LINE]}).axes] == [
        "cold",
        "straight line",
    ]
    for name in ("a.svg", "b.svg"):
        save_accuracy({COLD: report.rows[COLD]}, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()


def test_without_measurements_there_is_nothing(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError, match="not a folder"):
        read_folder(tmp_path / "nowhere")
    assert judge(Folder((), ()), fake, calibrated).rows == {}


def test_the_bench_runs_on_any_folder(folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(BENCH), "--measurements", str(folder), "--only", "one", "--json"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    record = json.loads(done.stdout)
    assert {"cold", "two_number", "small_log", "coverage80", "interval_width_median", "baselines"} <= set(record)
    assert {"coverage80_table", "interval_width_median_table"} <= set(record)
    assert {"mape", "median", "bands", "clusters"} <= set(record["cold"])
    assert record["cold"]["rows"] + sum(f["rows"] for f in record["failures"] if f["method"] == COLD) == 11 - len(record["apart"])
    words = [sys.executable, str(BENCH), "--measurements", str(folder), "--only", "one", "--only", "red", "--json", "--jobs"]
    alone, several = (subprocess.run([*words, jobs], capture_output=True, text=True, check=True).stdout for jobs in "12")
    assert alone == several
    refused = subprocess.run([sys.executable, str(BENCH), "--measurements", "/no/where"], capture_output=True, text=True, check=False)
    assert (refused.returncode, refused.stderr) == (
        2,
        "accuracy: /no/where: not a folder; give one with machines.csv and measurements.csv\n",
    )
