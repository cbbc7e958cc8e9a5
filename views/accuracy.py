"""How good predictions were: a record for JSON and tables for a terminal. Errors in percent of time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from prediction.accuracy import BASELINES, COLD, LOG, MORE, OTHER, TWO, Report
from prediction.accuracy_errors import BANDS, Judged, counted, intervals, same, summary
from prediction.accuracy_intervals import left_one_out
from prediction.library.interval import band
from views.terminal import table

if TYPE_CHECKING:
    from views.terminal import Part

WORST = 20
_NAMES = {
    COLD: "cold", TWO: "two numbers", LOG: "small log", OTHER: "  other collective", MORE: "  more nodes", "textbook": "textbook ring",
    "nccl_tuner": "NCCL's tuner", "straight_line": "line through two",
}  # fmt: skip


def accuracy_record(report: Report) -> dict[str, Any]:
    """Percent throughout; ``apart`` holds what is not counted, ``failures`` what could not be predicted."""
    rows = {method: report.rows.get(method, []) for method in (COLD, TWO, LOG, *BASELINES)}
    good = {method: counted(found) for method, found in rows.items()}
    inside, table_inside = intervals(left_one_out(good[COLD])), intervals(good[COLD])
    untold = {method: [row for row in found if not row.told] for method, found in rows.items()}
    reasons = sorted({row.apart for found in rows.values() for row in found if row.apart})
    two = summary(good[TWO]) | {
        "with_told": _short(summary([row for row in rows[TWO] if not row.apart])),
        "full_sweeps": summary(_sweeps(good[TWO], rows[TWO])),
    }
    log = summary(good[LOG]) | {part: summary([row for row in good[LOG] if row.part == part]) for part in (OTHER, MORE)}
    return {
        "cold": summary(good[COLD]),
        "two_number": two | ({"missing": report.missing[TWO]} if TWO in report.missing else {}),
        "small_log": log | ({"missing": report.missing[LOG]} if LOG in report.missing else {}),
        "coverage80": inside["coverage80"],
        "interval_width_median": inside["interval_width_median"],
        "coverage80_table": table_inside["coverage80"],
        "interval_width_median_table": table_inside["interval_width_median"],
        "intervals": {
            method: intervals(left_one_out(good[method])) | {"table": intervals(good[method])} for method in (COLD, TWO, LOG)
        },
        "kept": {method: report.kept[method] for method in (TWO, LOG)},
        "baselines": {name: _baseline(name, good) for name in BASELINES},
        "apart": {reason: _errors({m: [r for r in found if r.apart == reason] for m, found in untold.items()}) for reason in reasons},
        "worst": _worst(good[COLD]),
        "datasets": {
            name: {"notes": list(notes)} | _errors({m: [row for row in found if row.dataset == name] for m, found in good.items()})
            for name, notes in sorted(report.notes.items())
        },
        "failures": [asdict(failure) for failure in sorted(report.failures, key=lambda f: (f.dataset, f.collective, f.method, f.reason))],
        "left_out": list(report.left_out),
    }  # fmt: skip


def _short(errors: Mapping[str, Any]) -> dict[str, Any]:
    return {key: errors[key] for key in ("rows", "mape", "median", "p90", "bias")}


def _errors(methods: Mapping[str, Sequence[Judged]]) -> dict[str, Any]:
    return {method: _short(summary(rows)) for method, rows in methods.items()}


def _baseline(name: str, good: Mapping[str, list[Judged]]) -> dict[str, Any]:
    """A baseline, and the predictions of the points it covers: cold, or with two numbers for the line through two."""
    against = TWO if name == "straight_line" else COLD
    ours = same(good[against], [row.key for row in good[name]])
    return summary(good[name]) | {f"{against}_same_rows": summary(ours)}


def _sweeps(rows: Sequence[Judged], all_rows: Sequence[Judged]) -> list[Judged]:
    """Rows of curves that go from small to large sizes."""
    sizes: dict[tuple[str, str], list[int]] = {}
    for row in all_rows:
        sizes.setdefault(row.key[:2], []).append(row.size_bytes)
    return [row for row in rows if band(min(sizes[row.key[:2]])) == "S" and band(max(sizes[row.key[:2]])) == "L"]


def _worst(rows: Sequence[Judged]) -> list[dict[str, Any]]:
    """Parts of curves with the largest median error."""
    parts: dict[tuple[str, str, str], list[Judged]] = {}
    for row in rows:
        parts.setdefault((row.dataset, row.collective, row.band), []).append(row)
    found = [
        {"dataset": name, "collective": collective, "band": band, "choice": _common(part)} | _short(summary(part))
        for (name, collective, band), part in parts.items()
    ]
    return sorted(found, key=lambda part: (-part["median"], part["dataset"], part["collective"], part["band"]))[:WORST]


def _common(rows: Sequence[Judged]) -> str:
    """What was chosen most often."""
    choices = [row.choice for row in rows]
    return max(sorted(set(choices)), key=choices.count)


def accuracy_lines(record: Mapping[str, Any]) -> list[Part]:
    """Methods beside each other, then the cold prediction by class, band and cluster, the worst parts and what failed."""
    methods = {"cold": record["cold"], "two_number": record["two_number"], "small_log": record["small_log"]}
    methods |= {part: record["small_log"][part] for part in (OTHER, MORE)} | record["baselines"]
    made = table("error of time", ">points", ">median", ">MAPE", ">p90", ">S", ">M", ">L", ">median", ">MAPE")
    for name, found in methods.items():
        if found["rows"]:
            weighted = found["cluster_weighted"]
            cells = [_percent(found[key]) for key in ("median", "mape", "p90")] + [_percent(_band(found, band)) for band in BANDS]
            made.add_row(_NAMES[name], str(found["rows"]), *cells, _percent(weighted["median"]), _percent(weighted["mape"]))
    lines: list[Part] = ["median by band S <= 64 KiB, M <= 16 MiB, L; the last two columns weigh each cluster the same", made]
    lines += [f"{_NAMES[name]}: {methods[name]['missing']}" for name in (TWO, LOG) if "missing" in methods[name]]
    lines += [
        "",
        f"80 % intervals of the cold prediction, from the other clusters, cover {_percent(record['coverage80'])} of the points; "
        f"in the median they are {_percent(record['interval_width_median'])} wide",
        f"those of the shipped table cover {_percent(record['coverage80_table'])}; they are "
        f"{_percent(record['interval_width_median_table'])} wide",
        *_kept(record),
        "",
    ]
    lines += [_against(record["baselines"]), "", _cold("class", record["cold"]["classes"], BANDS), ""]
    lines += [_cold("collective", record["cold"]["collectives"]), "", _cold("cluster", record["cold"]["clusters"]), ""]
    worst = table("cold, worst parts", "", "", "", ">median", ">bias", ">points")
    for part in record["worst"]:
        numbers = _percent(part["median"]), _percent(part["bias"]), str(part["rows"])
        worst.add_row(part["dataset"], part["collective"], part["band"], part["choice"], *numbers)
    lines += [worst, ""]
    for reason, found in record["apart"].items():
        shown = ", ".join(
            f"{_NAMES[name]} {_percent(errors['median'])} of {errors['rows']}" for name, errors in found.items() if errors["rows"]
        )
        lines.append(f"apart, {reason}: median {shown}")
    return lines + _failed(record)


def _kept(record: Mapping[str, Any]) -> list[Part]:
    return [f"{_NAMES[method]}: {count} calibrations moved no constant" for method, count in record["kept"].items() if count]


def _against(baselines: Mapping[str, Any]) -> Part:
    """Median and mean error of a baseline beside ours on the same points, by band and class."""
    made = table("on the same points", "", ">points", ">its median", ">ours", ">its MAPE", ">ours")
    for name, its in baselines.items():
        ours = its.get("cold_same_rows") or its["two_number_same_rows"]
        pairs = [("all", its, ours)] + [(band, its["bands"][band], ours["bands"].get(band)) for band in its["bands"]]
        pairs += [(kind, its["classes"][kind], ours["classes"].get(kind)) for kind in its["classes"]]
        for what, theirs, mine in pairs:
            if theirs["rows"] and mine and mine["rows"]:
                cells = [_percent(errors[key]) for key in ("median", "mape") for errors in (theirs, mine)]
                made.add_row(_NAMES[name] if what == "all" else "", what, str(mine["rows"]), *cells)
    return made


def _cold(what: str, groups: Mapping[str, Any], bands: Sequence[str] = ()) -> Part:
    made = table(f"cold by {what}", ">points", ">median", ">MAPE", ">p90", ">bias", *(">" + band for band in bands))
    for name, found in groups.items():
        cells = [_percent(found[key]) for key in ("median", "mape", "p90", "bias")]
        made.add_row(f"  {name}", str(found["rows"]), *cells, *(_percent(_band(found, band)) for band in bands))
    return made


def _failed(record: Mapping[str, Any]) -> list[Part]:
    """Reasons, each with how many points it took from which methods, the most first."""
    reasons: dict[str, list[Mapping[str, Any]]] = {}
    for failure in record["failures"]:
        reasons.setdefault(failure["reason"], []).append(failure)
    made = table("could not be predicted", ">points", "", "reason")
    for reason, found in sorted(reasons.items(), key=lambda item: (-sum(f["rows"] for f in item[1]), item[0])):
        names = sorted({f["dataset"] for f in found})
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        made.add_row(
            ", ".join(sorted({_NAMES[f["method"]].strip() for f in found})), str(sum(f["rows"] for f in found)), names[0] + more, reason
        )
    return ["", made] if reasons else []


def _band(found: Mapping[str, Any], band: str) -> float | None:
    part = found["bands"].get(band)
    return part["median"] if part else None


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"
