"""Results -> plain records for JSON: numbers in SI units, never infinite; the keys are stable, scripts use them."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from algorithms.schedule import Op
from views.holdings import holdings, words

if TYPE_CHECKING:  # each command has imported what its record is made of
    from algorithms.registry import Algorithm
    from prediction.compare import Report
    from prediction.explain import Explained
    from prediction.predict import Prediction
    from prediction.verify import Verification
    from sim.bounds import Bounds
    from sim.model import Model
    from sim.result import Result
    from topologies.registry import Entry

Record = dict[str, Any]

MOST_LINKS, MOST_RANKS, BUSIEST = 1000, 1000, 20
"""Of one result: above these numbers links and ranks are summed up, and only the busiest links listed."""


def dumps(record: Any) -> str:
    """JSON text, floats in full; what is not finite becomes null."""
    return json.dumps(_finite(record), allow_nan=False, indent=2)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(part) for key, part in value.items()}
    return [_finite(part) for part in value] if isinstance(value, list | tuple) else value


def topology_records(entries: Sequence[Entry]) -> list[Record]:
    """``params`` maps each argument to its unit and default, as text that the argument reads."""
    return [
        {"name": e.name, "summary": e.summary, "params": {p.name: {"unit": p.unit, "default": p.text} for p in e.parameters}}
        for e in entries
    ]


def algorithm_records(algorithms: Sequence[Algorithm]) -> list[Record]:
    """``options`` maps each option to its default."""
    return [
        {
            "collective": a.collective.name, "name": a.name, "summary": a.summary, "options": {o.name: o.default for o in a.options},
            "pipelined": a.pipelined,
        }
        for a in algorithms
    ]  # fmt: skip


def model_record(model: Model) -> Record:
    """A reduce rate without limit is null. ``overrides``: routes given node by node."""
    return {
        "overhead_s": model.overhead, "reduce_rate_Bps": model.reduce_rate, "sharing": model.sharing, "barrier": model.barrier,
        "fifo_depth": model.fifo_depth, "routing": model.routing, "routing_seed": model.routing_seed,
        "header_bytes": model.header, "mtu_bytes": model.mtu, "hop_latency_s": model.hop_latency, "pcie_ceiling": model.pcie_ceiling,
        "nic_ceiling": model.nic_ceiling, "incast": model.incast,
        "overrides": [{"src": src, "dst": dst, "path": list(path)} for (src, dst), path in model.overrides.items()],
    }  # fmt: skip


def result_record(told: Explained, seed: int) -> Record:
    """One simulated collective; ``closed_form_s`` is null where no formula is exact."""
    result, bound = told.result, told.bound
    launch, path = result.launches[0], result.critical_path()
    schedule = launch.schedule
    assert schedule is not None
    return {
        "time_s": result.time, "algbw_Bps": result.algbw(), "busbw_Bps": result.busbw(), "lower_bound_s": bound.lower_bound_s,
        "limiting": bound.limiting, "closed_form_s": told.closed_form.time_s if told.closed_form else None,
        "nranks": schedule.nranks, "collective": schedule.collective.name,
        "algorithm": schedule.name, "topology": result.topology.name, "engine": result.engine, "size_bytes": launch.nbytes,
        "dtype": launch.dtype, "sends": len(schedule), "steps": schedule.steps, "seed": seed, "model": model_record(result.model),
        **_sent_record(result), **_links_record(result),
        "critical_path": {
            "overhead_s": path.overhead_s, "latency_s": path.latency_s, "bandwidth_s": path.bandwidth_s, "reduce_s": path.reduce_s,
            "wait_s": path.wait_s, "bandwidth_by": [{"src": a, "dst": b, "seconds": s} for (a, b), s in _most(path.bandwidth_by)],
        },
    }  # fmt: skip


def _most(seconds: Mapping[tuple[str, str], float]) -> list[tuple[tuple[str, str], float]]:
    """All in their order; above ``MOST_LINKS`` the ``BUSIEST``."""
    pairs = list(seconds.items())
    return pairs if len(pairs) <= MOST_LINKS else sorted(pairs, key=lambda pair: -pair[1])[:BUSIEST]


def _sent_record(result: Result) -> Record:
    """Bytes that each rank sent, in a list; above ``MOST_RANKS`` ranks their least, most and sum."""
    sent = result.bytes_per_rank()
    if len(sent) <= MOST_RANKS:
        return {"bytes_per_rank": sent.tolist()}
    return {"bytes_per_rank": {"min": int(sent.min()), "max": int(sent.max()), "sum": int(sent.sum())}}


def _links_record(result: Result) -> Record:
    """Links that carried bytes, most busy first; above ``MOST_LINKS`` the ``BUSIEST``, with a summary of all."""
    loads = result.link_loads()
    shown = loads if len(loads) <= MOST_LINKS else loads[:BUSIEST]
    record: Record = {"links": [{"src": x.src, "dst": x.dst, "bytes": x.bytes, "busy_s": x.busy_s} for x in shown]}
    if len(loads) > MOST_LINKS:
        kinds: dict[str, list[int]] = {}
        for load in loads:
            kinds.setdefault(result.topology.link(load.src, load.dst).kind, []).append(load.bytes)
        record["links_summary"] = {
            "count": len(loads), "bytes_total": sum(load.bytes for load in loads), "busy_s_max": loads[0].busy_s,
            "busy_s_median": median(load.busy_s for load in loads),
            "by_kind": {kind: {"count": len(kinds[kind]), "bytes_total": sum(kinds[kind])} for kind in sorted(kinds)},
        }  # fmt: skip
    return record


def show_record(result: Result, steps: Sequence[int], seed: int) -> Record:
    """The sends of some steps, and who holds what after the last of them."""
    s, trace = result.launches[0].whole, result.trace
    last = max(steps)
    held = [[words(cell, chunk, s.nranks) for chunk, cell in enumerate(row)] for row in holdings(s, last)]
    sends = [
        {
            "step": int(s.step[i]), "src": int(s.src[i]), "dst": int(s.dst[i]), "chunk": int(s.chunk[i]), "count": int(s.count[i]),
            "dst_chunk": int(s.dst_chunk[i]), "op": Op(int(s.op[i])).name.lower(), "bytes": int(trace.bytes[i]),
            "start_s": float(trace.start[i]), "end_s": float(trace.end[i]),
        }
        for i in range(len(s)) if int(s.step[i]) in steps
    ]  # fmt: skip
    return {
        "collective": s.collective.name, "algorithm": s.name, "topology": result.topology.name, "nranks": s.nranks, "nchunks": s.nchunks,
        "steps": s.steps, "time_s": result.time, "seed": seed, "sends": sends, "after_step": last, "holds": held,
    }  # fmt: skip


def prediction_record(p: Prediction, seed: int) -> Record:
    """One row a size, candidates fastest first."""
    rows = [
        {
            "size_bytes": row.size_bytes, "time_s": row.best.time_s, "algbw_Bps": row.best.algbw_Bps, "busbw_Bps": row.best.busbw_Bps,
            "algorithm": row.best.algorithm,
            "candidates": [
                {"algorithm": c.algorithm, "time_s": c.time_s, "algbw_Bps": c.algbw_Bps, "busbw_Bps": c.busbw_Bps, "slices": c.slices}
                for c in row.candidates
            ],
        }
        for row in p.rows
    ]  # fmt: skip
    crossovers = [
        {
            "from": c.was, "to": c.to, "size_bytes": c.size_bytes, "within_bytes": c.within_bytes, "after_bytes": c.after,
            "before_bytes": c.before,
        }
        for c in p.crossovers
    ]  # fmt: skip
    return {
        "collective": p.collective.name, "topology": p.topology.name, "nranks": p.nranks, "dtype": p.dtype, "engine": p.engine,
        "model": model_record(p.model), "seed": seed, "rows": rows, "crossovers": crossovers, "skipped": dict(p.skipped),
    }  # fmt: skip


def prediction_csv(p: Prediction) -> str:
    """One line a size and algorithm; ``best`` is 1 for the fastest."""
    out = io.StringIO()
    table = csv.writer(out, lineterminator="\n")
    table.writerow(("size_bytes", "algorithm", "slices", "time_s", "algbw_Bps", "busbw_Bps", "best"))
    for row in p.rows:
        for c in row.candidates:
            table.writerow((row.size_bytes, c.algorithm, c.slices, c.time_s, c.algbw_Bps, c.busbw_Bps, int(c is row.best)))
    return out.getvalue().rstrip("\n")


def comparison_record(report: Report, seed: int) -> Record:
    """All rows of a log, then the same in parts."""
    rows = [
        {
            "collective": r.collective, "in_place": r.in_place, "size_bytes": r.size_bytes, "measured_s": r.measured_s,
            "predicted_s": r.predicted_s, "error": r.error,
        }
        for r in report.rows
    ]  # fmt: skip
    parts = [
        {
            "collective": c.collective, "algorithm": c.algorithm, "nranks": c.nranks, "topology": c.topology, "dtype": c.dtype,
            "gpu": c.gpu, "mape": c.mape, "rows": len(c.rows), "notes": list(c.notes),
        }
        for c in report.compared
    ]  # fmt: skip
    return {
        "mape": report.mape, "algorithm": report.algorithm, "rows": rows, "tables": parts, "skipped": list(report.skipped),
        "notes": list(report.notes), "seed": seed,
    }  # fmt: skip


def verification_record(v: Verification) -> Record:
    """``max_abs_error`` is that on whole numbers, ``float_error`` that of float32."""
    return {
        "ok": v.ok, "max_abs_error": v.max_abs_error, "sends": v.sends, "bytes_per_rank": list(v.bytes_per_rank),
        "collective": v.schedule.collective.name, "algorithm": v.schedule.name, "nranks": v.schedule.nranks, "executor": v.executor,
        "elements": v.elements, "dtype": v.dtype, "seed": v.seed, "float_error": v.float_error, "float_bound": v.float_bound,
        "checks": [{"name": c.name, "ok": c.ok, "found": c.found} for c in v.checks],
    }  # fmt: skip


def bounds_record(topology: str, nranks: int, collective: str, nbytes: int, plain: Bounds, in_network: Bounds) -> Record:
    """Point to point, and what switches that reduce and multicast could reach. ``headroom``: times faster until ``next_limit``
    binds, once what limits (with ``ties`` other cuts) has more bandwidth; null: nothing else is known to."""
    relief = plain.relief
    return {
        "latency_s": plain.latency_s, "bandwidth_s": plain.bandwidth_s, "lower_bound_s": plain.lower_bound_s, "limiting": plain.limiting,
        "in_network": {
            "latency_s": in_network.latency_s, "bandwidth_s": in_network.bandwidth_s, "lower_bound_s": in_network.lower_bound_s,
            "limiting": in_network.limiting,
        },
        "headroom": relief and relief.headroom, "next_limit": relief and relief.next_limit, "ties": relief and relief.ties,
        "topology": topology, "nranks": nranks, "collective": collective, "size_bytes": nbytes,
    }  # fmt: skip
