"""Predictions against measured curves: cold, told two numbers, told a small log, beside the baselines.

*Cold*: from the description of the machine alone. *Two numbers*: the time at the smallest and at the largest size of the curve; judged on
the sizes between. *Small log*: a few points of one collective; judged on other collectives of the same machine, and on more nodes of the
same cluster. A method that cannot predict a point fails it, with the reason, and goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from prediction.accuracy_asked import Setting, setting_of
from prediction.accuracy_baselines import Times, straight, textbook, tuner
from prediction.accuracy_errors import Judged
from prediction.accuracy_predictors import Calibrate, Plain, Predict, Predicted, by_size, reason
from prediction.accuracy_tables import APART, Curve, Dataset, Folder, Point
from prediction.accuracy_told import families, few_points, log_curve, two_points
from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.library.interval import reach
from prediction.library.sites import sites_of
from topologies.errors import RingscopeError
from topologies.graph import Topology

COLD, TWO, LOG = "cold", "two_number", "small_log"
TEXTBOOK, TUNER, LINE = "textbook", "nccl_tuner", "straight_line"
BASELINES = (TEXTBOOK, TUNER, LINE)
OTHER, MORE = "other_collective", "more_nodes"
"""What a small log is asked for."""
Priors = Callable[[Topology, Asked], Constants]
Fit = Callable[[Sequence[Curve]], Priors]


@dataclass(frozen=True, slots=True)
class Failure:
    """``rows`` points of a data set that a method could not predict."""

    method: str
    dataset: str
    collective: str
    rows: int
    reason: str


@dataclass(slots=True)
class Report:
    """``rows`` by method; ``missing`` says why a method was not run at all; ``notes`` by data set; ``kept``: calibrations by method that
    left all constants as they were, refused or told nothing."""

    rows: dict[str, list[Judged]] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    missing: dict[str, str] = field(default_factory=dict)
    notes: dict[str, tuple[str, ...]] = field(default_factory=dict)
    kept: Counter[str] = field(default_factory=Counter)
    left_out: tuple[str, ...] = ()


def judge(
    folder: Folder,
    predict: Predict,
    calibrate: Calibrate | None,
    *,
    version: str = "",
    fit: Fit | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> Report:
    """Every curve by every method. ``version``: of the library where the table does not say. ``fit`` makes constants of curves; it never
    sees those of the cluster it is judged on. Without ``calibrate`` what needs it is missing."""
    run = _Run(folder, predict, calibrate, fit, Report(left_out=folder.notes))
    if calibrate is None:
        run.report.missing |= dict.fromkeys((TWO, LOG), "prediction.library.calibrate is not there")
    settings: dict[str, Setting] = {}
    for done, curve in enumerate(folder.curves):
        if progress:
            progress(done, len(folder.curves))
        dataset = curve.dataset
        if dataset.name not in settings and dataset.name not in run.report.notes:
            try:
                settings[dataset.name] = setting_of(dataset, version)
            except RingscopeError as error:
                run.report.notes[dataset.name] = (str(error),)
            else:
                run.report.notes[dataset.name] = settings[dataset.name].notes
        if dataset.name in settings:
            run.curve(curve, settings[dataset.name])
        else:
            run.fail(COLD, curve, len(curve.points), run.report.notes[dataset.name][0])
    if calibrate:
        run.small_logs(settings)
    return run.report


@dataclass(slots=True)
class _Run:
    folder: Folder
    predict: Predict
    calibrate: Calibrate | None
    fit: Fit | None
    report: Report
    fitted: dict[str, Priors] = field(default_factory=dict)

    def curve(self, curve: Curve, setting: Setting) -> None:
        """Cold, baselines, and told two numbers."""
        constants = self.priors(curve.dataset, setting)
        self.add(COLD, curve, setting, self.library(COLD, curve, setting, constants))
        self.baseline(TEXTBOOK, curve, setting, lambda: textbook(setting.topology, curve.collective))
        self.baseline(TUNER, curve, setting, lambda: tuner(setting.topology, curve.collective, setting.asked))
        told = two_points(curve)
        if told:
            self.baseline(LINE, curve, setting, lambda: straight(told), told)
            if self.calibrate and (moved := self.calibrated(TWO, curve, told, setting, constants)):
                self.add(TWO, curve, setting, self.library(TWO, curve, setting, moved), told)

    def small_logs(self, settings: Mapping[str, Setting]) -> None:
        """One log a data set for its other collectives; one a cluster for more nodes."""
        by: dict[str, list[Curve]] = {}
        for curve in self.folder.curves:
            if curve.dataset.name in settings and curve.dataset.quality not in APART:
                by.setdefault(curve.dataset.name, []).append(curve)
        for curves in by.values():
            first = log_curve(curves)
            self.from_log(OTHER, first, [curve for curve in curves if curve is not first], settings)
        for family in families([(len(settings[name].topology.groups["servers"]), curves[0].dataset) for name, curves in by.items()]):
            targets = [curve for dataset in family[1:] for curve in by[dataset.name]]
            self.from_log(MORE, log_curve(by[family[0].name]), targets, settings)

    def from_log(self, part: str, log: Curve, targets: Sequence[Curve], settings: Mapping[str, Setting]) -> None:
        told = few_points(log)
        if not targets or not told:
            return
        base = settings[log.dataset.name]
        moved = self.calibrated(LOG, log, told, base, self.priors(log.dataset, base))
        if moved is None:
            return
        for curve in targets:
            setting = settings[curve.dataset.name]
            self.add(LOG, curve, setting, self.library(LOG, curve, setting, moved), part=part)

    def priors(self, dataset: Dataset, setting: Setting) -> Constants:
        """Constants before anything is told; those of a fit come from the other clusters."""
        if self.fit is None:
            return Constants.of(setting.topology, setting.asked)
        if dataset.cluster not in self.fitted:
            others = [curve for curve in self.folder.curves if curve.dataset.cluster != dataset.cluster]
            self.fitted[dataset.cluster] = self.fit(others)
        return self.fitted[dataset.cluster](setting.topology, setting.asked)

    def calibrated(self, method: str, curve: Curve, told: Sequence[Point], setting: Setting, constants: Constants) -> Constants | None:
        assert self.calibrate is not None
        measured = [(curve.collective, point.size_bytes, point.time_s) for point in told]
        try:
            moved = self.calibrate(setting.topology, measured, setting.asked, constants)
        except Exception as error:  # a refusal and a defect alike are this curve's, not the run's
            self.fail(method, curve, len(curve.points), f"calibration: {reason(error)}")
            return None
        self.report.kept[method] += moved == constants
        return moved

    def library(self, method: str, curve: Curve, setting: Setting, constants: Constants) -> dict[int, Predicted]:
        found, failed = by_size(
            lambda sizes: self.predict(setting.topology, curve.collective, sizes, setting.asked, constants), curve.points
        )
        for why, rows in failed.items():
            self.fail(method, curve, rows, why)
        return found

    def baseline(self, method: str, curve: Curve, setting: Setting, made: Callable[[], Times], told: Sequence[Point] = ()) -> None:
        try:
            times = made()
            found = {point.size_bytes: Plain(point.size_bytes, times(point.size_bytes)) for point in curve.points}
        except Exception as error:
            self.fail(method, curve, len(curve.points), reason(error))
        else:
            self.add(method, curve, setting, found, told)

    def add(
        self, method: str, curve: Curve, setting: Setting, found: Mapping[int, Predicted], told: Sequence[Point] = (), part: str = ""
    ) -> None:
        rows = self.report.rows.setdefault(method, [])
        dataset, used = curve.dataset, {point.size_bytes for point in told}
        quality = dataset.quality if dataset.quality in APART else ""
        far = reach(setting.topology, len(sites_of(setting.topology)))
        for point in curve.points:
            if (row := found.get(point.size_bytes)) is not None:
                rows.append(Judged(
                    dataset.name, dataset.cluster, setting.kind, curve.collective, point.size_bytes, point.time_s, row.time_s, row.low_s,
                    row.high_s, f"{row.algorithm} {row.protocol}".strip(), quality or ("outlier" if point.outlier else ""),
                    point.size_bytes in used, part, far,
                ))  # fmt: skip

    def fail(self, method: str, curve: Curve, rows: int, why: str) -> None:
        self.report.failures.append(Failure(method, curve.dataset.name, curve.collective, rows, why))
