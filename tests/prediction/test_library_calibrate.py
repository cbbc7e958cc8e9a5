"""Calibration: logs made by simulation with other constants give them back, what a log does not tell stays, bad logs are refused."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from prediction.accuracy_asked import setting_of
from prediction.accuracy_tables import read_folder
from prediction.library.asked import Asked
from prediction.library.calibrate import MOST_SIZES, Calibration, Measured, calibrated
from prediction.library.constants import Constants
from prediction.library.predict import predict_library
from topologies import Topology, TopologyError, load, make, read_cluster, write_cluster
from topologies.errors import MeasurementError
from topologies.faults import apply_faults

ONE, TWO = make("dgx-a100", {"nodes": "1"}), make("dgx-a100", {"nodes": "2"})
SIZES = [8 << 3 * i for i in range(10)]
SHARED = Path(__file__).resolve().parents[3] / "shared" / "measurements"


def constants(machine: Topology, asked: Asked | None = None, **factors: float) -> Constants:
    priors = Constants.of(machine, asked or Asked())
    return priors.replaced(**{name: getattr(priors, name) * factor for name, factor in factors.items()})


def made(machine: Topology, true: Constants, sizes: Sequence[int], noise: float = 0.0, collective: str = "all-reduce") -> list[Measured]:
    """A log of a machine with these constants."""
    draws = np.random.default_rng(11).uniform(-noise, noise, len(sizes))
    rows = predict_library(machine, collective, sizes, Asked(), true)
    return [Measured(collective, row.size_bytes, row.time_s * (1 + draw)) for row, draw in zip(rows, draws, strict=True)]


def test_constants_come_back_from_a_noisy_log() -> None:
    true = constants(ONE, nvlink_hop=1.7, nvls_hop=1.7, nvlink=0.85, nvls=0.85)
    found = calibrated(ONE, made(ONE, true, SIZES, noise=0.03), Asked())
    assert found.refused is None
    for name in ("nvlink", "nvls"):
        assert getattr(found.constants, name) == pytest.approx(getattr(true, name), rel=0.04)
        assert found.moved[name].low < getattr(true, name) < found.moved[name].high
    latency = true.floor + 14 * true.nvlink_hop  # floor and hops of a small call: the log tells their sum
    assert found.constants.floor + 14 * found.constants.nvlink_hop == pytest.approx(latency, rel=0.05)
    assert found.bands["all"].after < 4 < 10 < found.bands["all"].before
    assert {"net_hop", "nic"} <= set(found.undetermined)
    assert "one node" in found.undetermined["nic"]
    assert found.told.keys() == found.moved.keys()


def test_only_few_constants_move() -> None:
    found = calibrated(TWO, made(TWO, constants(TWO, nic=0.8, floor=1.8), SIZES), Asked())
    priors = Constants.of(TWO, Asked())
    may = {"floor", "host", "nvlink_hop", "nvls_hop", "net_hop", "nvlink", "nvls", "nic"}
    assert {name for name in Constants.names() if getattr(found.constants, name) != getattr(priors, name)} <= may
    assert found.constants.nic == pytest.approx(0.8 * priors.nic, rel=0.03)
    assert any("two nodes" in note for note in found.notes)
    assert not set(found.moved) & set(found.undetermined)


def test_large_sizes_tell_nothing_of_latency() -> None:
    priors = Constants.of(ONE, Asked())
    found = calibrated(ONE, made(ONE, constants(ONE, floor=1.5, nvlink=0.9), SIZES[-3:]), Asked())
    assert (found.constants.floor, found.constants.nvlink_hop) == (priors.floor, priors.nvlink_hop)
    assert "measure smaller" in found.undetermined["floor"]
    assert set(found.moved) == {"nvlink", "nvls"}
    small = calibrated(ONE, made(ONE, constants(ONE, floor=1.5, nvlink_hop=1.5), SIZES[:4]), Asked())
    assert small.constants.nvlink == priors.nvlink
    assert "measure larger" in small.undetermined["nvlink"]


def test_a_log_of_the_priors_moves_nothing() -> None:
    priors = Constants.of(ONE, Asked())
    found = calibrated(ONE, made(ONE, priors, SIZES[::2]), Asked())
    assert found.refused is None
    for name, moved in found.moved.items():
        assert moved.after == pytest.approx(getattr(priors, name), rel=1e-3)


@pytest.mark.parametrize("factor", [20.0, 0.05])
def test_a_log_that_no_machine_of_the_kind_makes_is_refused(factor: float) -> None:
    log = [Measured(name, size, time * factor) for name, size, time in made(ONE, constants(ONE), SIZES[::2])]
    found = calibrated(ONE, log, Asked())
    assert found.refused
    assert "median row would still be" in found.refused
    assert found.constants == Constants.of(ONE, Asked())
    assert found.told == {}


def test_a_log_without_sense_is_refused() -> None:
    log = [Measured("all-reduce", size, time * (4 if i % 2 else 0.2)) for i, (_, size, time) in enumerate(made(ONE, constants(ONE), SIZES))]
    assert calibrated(ONE, log, Asked()).refused


def test_the_same_log_gives_the_same_constants_in_any_order() -> None:
    log = made(ONE, constants(ONE, floor=1.4), SIZES[::2], noise=0.02)
    assert calibrated(ONE, log, Asked()) == calibrated(ONE, log[::-1], Asked())
    doubled = [Measured(name, size, time * factor) for name, size, time in log for factor in (0.9, 1.0, 1.2)]
    assert calibrated(ONE, doubled, Asked()).constants == calibrated(ONE, log, Asked()).constants  # the median of repeats


def test_long_logs_are_thinned() -> None:
    calls: list[tuple[int, int]] = []
    log = made(ONE, constants(ONE), [64 * i for i in range(1, 41)])
    found = calibrated(ONE, log, Asked(), progress=lambda done, of: calls.append((done, of)))
    assert found.bands["all"].rows == MOST_SIZES
    assert max(of for _, of in calls) == MOST_SIZES


@pytest.mark.parametrize("log", [[], [("all-reduce", 8, 0.0)], [("all-reduce", 0, 1e-5)], [("all-reduce", 8, math.nan)]])
def test_what_is_no_measurement(log: list[tuple[str, int, float]]) -> None:
    with pytest.raises(MeasurementError, match="measure"):
        calibrated(ONE, log, Asked())


@pytest.mark.parametrize(
    ("machine", "asked", "small", "large", "moves"),
    [
        (ONE, Asked(), 1.3, 1.1, {"floor", "nvlink", "nvls"}),
        (TWO, Asked(), 1.2, 1.15, {"floor", "nic"}),
        (TWO, Asked(), 0.5, 1.3, {"floor", "nvlink_hop", "nvls_hop", "net_hop", "nic"}),  # a floor below 0 would be needed
        (ONE, Asked(launch="one-process"), 1.5, 1.05, {"floor", "host", "nvlink", "nvls"}),
        (make("custom", {"gpu": "l40s", "gpus": "4", "nodes": "1"}), Asked(), 1.4, 1.2, {"floor", "bridge", "shared_memory"}),
    ],
)
def test_two_numbers_are_hit(machine: Topology, asked: Asked, small: float, large: float, moves: set[str]) -> None:
    ends = [8, 1 << 30]
    before = predict_library(machine, "all-reduce", ends, asked)
    wanted = [row.time_s * factor for row, factor in zip(before, (small, large), strict=True)]
    calls: list[int] = []
    log = [Measured("all-reduce", size, time) for size, time in zip(ends, wanted, strict=True)]
    found = calibrated(machine, log, asked, progress=lambda done, of: calls.append(done))
    assert found.refused is None
    after = predict_library(machine, "all-reduce", ends, asked, found.constants)
    assert [row.time_s for row in after] == pytest.approx(wanted, rel=0.01)
    assert set(found.moved) == moves
    assert len(calls) <= 12
    assert [row.algorithm for row in after] == [row.algorithm for row in before]  # the choice is NCCL's, not that of the constants


def test_two_numbers_that_cannot_be_are_refused() -> None:
    large = predict_library(ONE, "all-reduce", [1 << 30], Asked())[0].time_s
    found = calibrated(ONE, [Measured("all-reduce", 8, 2e-5), Measured("all-reduce", 1 << 30, large / 3)], Asked())
    assert found.refused
    assert "nvlink" in found.refused


def test_constants_of_a_machine_are_used_and_written(tmp_path: Path) -> None:
    told = {"floor": 9.1234567890123e-6, "nic": 0.8, "bridge": 20e9, "channel": 0.0}
    machine = replace(TWO, constants=told)
    assert machine != TWO
    used = Constants.of(machine, Asked())
    assert {name: getattr(used, name) for name in told} == told
    assert used.nvlink == Constants.of(TWO, Asked()).nvlink
    for named in (None, ("dgx-a100", {"nodes": "2"})):
        write_cluster(machine, tmp_path / "machine.toml", named)
        assert read_cluster(tmp_path / "machine.toml") == machine
    assert load(str(tmp_path / "machine.toml"), {"nodes": "4"}).constants == told
    assert apply_faults(machine, ["slow-gpu:3:x2"]).constants == told


def test_the_host_goes_with_the_floor_for_any_number_of_gpus() -> None:
    asked = Asked(launch="one-process")
    small = make("dgx-a100", {"nodes": "1", "gpus": "4"})
    priors = Constants.of(small, asked)
    used = Constants.of(replace(small, constants={"floor": 2 * priors.floor}), asked)
    assert used.host == 2 * priors.host
    assert Constants.of(replace(small, constants={"host": 5e-6}), asked).host == 5e-6


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ('florr = "7us"', 'constants: "florr" is not a constant of a prediction; did you mean "floor"'),
        ("floor = 0.5", "floor = 0.5 is not a time of 1 ns to 10 ms"),
        ('nvlink_hop = "0us"', "nvlink_hop = 0 is not a time of 1 ns"),
        ('nic = "7us"', "nic = 7e-06 is not a part of a rate"),
        ("bridge = 0.9", "bridge = 0.9 is not a bandwidth"),
    ],
)
def test_constants_that_cannot_be(table: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text(f'topology = "dgx-a100"\n[constants]\n{table}\n')
    with pytest.raises(TopologyError, match=says.replace("(", r"\(")):
        Constants.of(read_cluster(file), Asked())


@pytest.mark.parametrize(
    ("table", "says"),
    [
        ("floor = 7", "constants.floor: 7 is not a number above 0"),
        ("floor = true", "constants.floor: True is not a number above 0"),
        ('floor = "7"', "has no unit; write a part as 0.92"),
        ('nic = "fast"', "constants.nic"),
        ("nic = nan", "constants.nic"),
        ("nic = [1]", "constants.nic"),
    ],
)
def test_constants_that_are_none(table: str, says: str, tmp_path: Path) -> None:
    file = tmp_path / "m.toml"
    file.write_text(f'topology = "dgx-a100"\n[constants]\n{table}\n')
    with pytest.raises(TopologyError, match=says) as caught:
        read_cluster(file)
    assert str(caught.value).startswith("m.toml: ")


@pytest.mark.skipif(not SHARED.is_dir(), reason="the shared measurements are not here")
def test_one_calibration_at_eight_gpus_predicts_fewer() -> None:
    curves = {curve.dataset.name: curve for curve in read_folder(SHARED, ["coreweave-a100"]).curves if curve.collective == "all-reduce"}
    eight = curves["cw-a100-1n-8g"]
    setting = setting_of(eight.dataset)
    found: Calibration = calibrated(setting.topology, [("all-reduce", p.size_bytes, p.time_s) for p in eight.points], setting.asked)
    assert found.refused is None
    errors = []
    for gpus in range(2, 8):
        curve = curves[f"cw-a100-1n-{gpus}g"]
        fewer = setting_of(curve.dataset)
        large = [point for point in curve.points if point.size_bytes >= 1 << 20]
        machine = replace(fewer.topology, constants=found.told)
        rows = predict_library(machine, "all-reduce", [point.size_bytes for point in large], fewer.asked)
        errors += [abs(row.time_s / point.time_s - 1) for row, point in zip(rows, large, strict=True)]
    assert 100 * fmean(errors) < 6


def test_the_cluster_file_of_the_page_is_used(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "prediction.md").read_text(encoding="utf-8")
    file = tmp_path / "cluster.toml"
    file.write_text(page.split("```toml\n")[1].split("```")[0], encoding="utf-8")
    used = Constants.of(read_cluster(file), Asked())
    assert (used.floor, used.nvlink, used.bridge) == (7.2e-6, 0.75, 21.7e9)
