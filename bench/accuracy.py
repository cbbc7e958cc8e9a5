"""How far predictions are from measured tables: cold, told two numbers, told a small log, beside the textbook, NCCL's tuner and a
straight line, all of this run. Needs machines.csv and measurements.csv of one folder and nothing else. Errors are of time, in percent.

Usage: python bench/accuracy.py [--measurements DIR] [--only NAME]... [--ablate PART]... [--jobs N] [--json] [--picture FILE]
"""

from __future__ import annotations

import argparse
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from prediction.accuracy import BASELINES, COLD, TWO, Report, judge  # noqa: E402  the path comes first
from prediction.accuracy_errors import counted  # noqa: E402
from prediction.accuracy_predictors import library_calibration, library_predictor  # noqa: E402
from prediction.accuracy_tables import Curve, Folder, read_folder  # noqa: E402
from topologies.errors import MeasurementError, RingscopeError, quoted  # noqa: E402
from views import records  # noqa: E402
from views.accuracy import accuracy_lines, accuracy_record  # noqa: E402
from views.bar import bar  # noqa: E402
from views.terminal import page  # noqa: E402

Progress = Callable[[int, int], None]
Found = TypeVar("Found")
GIVEN = HERE.parent.parent / "shared" / "measurements"


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """TimeoutError inside after so long; 0: never."""

    def ring(*_: object) -> None:
        raise TimeoutError(f"over {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def limited(call: Callable[..., Found], seconds: float) -> Callable[..., Found]:
    """The same, given up after ``seconds`` of one call."""

    def run(*args: Any) -> Found:
        with at_most(seconds):
            return call(*args)

    return run


def part(folder: Folder, ablate: Sequence[str], version: str, limit: float, progress: Progress | None = None) -> Report:
    """The report of some curves."""
    seconds, calibrate = max(0.0, limit), library_calibration()
    calibrate = limited(calibrate, seconds) if calibrate else None
    return judge(folder, limited(library_predictor(ablate), seconds), calibrate, version=version, progress=progress)


def whole(folder: Folder, args: argparse.Namespace, progress: Progress | None) -> Report:
    """The report of all curves; of several jobs each takes a cluster, since a small log serves one cluster at most."""
    given = args.ablate, args.version, args.limit
    if args.jobs <= 1:
        return part(folder, *given, progress)
    clusters: dict[str, list[Curve]] = {}
    for curve in folder.curves:
        clusters.setdefault(curve.dataset.cluster, []).append(curve)
    report = Report(left_out=folder.notes)
    with ProcessPoolExecutor(args.jobs) as pool:
        waiting = [pool.submit(part, Folder(tuple(curves), ()), *given) for curves in clusters.values()]
        for done, one in enumerate(waiting):
            if progress:
                progress(done, len(waiting))
            found = one.result()
            for method, rows in found.rows.items():
                report.rows.setdefault(method, []).extend(rows)
            report.failures += found.failures
            report.missing |= found.missing
            report.kept += found.kept
            report.notes |= found.notes
    return report


def asked() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measurements", type=Path, default=GIVEN, help="folder with machines.csv and measurements.csv [%(default)s]")
    parser.add_argument("--only", action="append", default=[], metavar="NAME", help="a data set or a cluster; may be repeated")
    parser.add_argument("--ablate", action="append", default=[], metavar="PART", help="leave a part of the prediction out, as simulation")
    parser.add_argument("--version", default="", help="NCCL's, where the table does not say [2.21; 2.27 for Blackwell]")
    parser.add_argument("--limit", type=float, default=120.0, help="seconds of one curve by one method; 0: none [%(default)g]")
    parser.add_argument("--jobs", type=int, default=1, help="clusters judged at once, each in a process of its own [%(default)s]")
    parser.add_argument("--json", action="store_true", help="JSON only")
    parser.add_argument("--picture", type=Path, help="predicted against measured, as PNG, SVG or PDF")
    return parser.parse_args()


def main() -> int:
    args = asked()
    try:
        if args.picture and args.picture.suffix not in (".png", ".svg", ".pdf"):
            raise MeasurementError(f"--picture: {quoted(args.picture.name)} has an ending that is no format here; write .png, .svg or .pdf")
        folder = read_folder(args.measurements, args.only)
        library_predictor(args.ablate)  # refuses an unknown part before the first curve
        with bar("curves" if args.jobs <= 1 else "clusters") as progress:
            report = whole(folder, args, progress)
        record = accuracy_record(report)
        print(records.dumps(record) if args.json else page(accuracy_lines(record), sys.stdout.isatty()))
        if args.picture:
            from views.accuracy_picture import save_accuracy

            save_accuracy({method: counted(report.rows.get(method, [])) for method in (COLD, TWO, *BASELINES)}, args.picture)
    except (RingscopeError, OSError) as error:
        print(f"accuracy: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
