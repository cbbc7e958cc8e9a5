"""What NCCL would choose: a record for JSON and lines for a terminal."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from topologies.units import format_bandwidth, format_bytes, format_time
from views.terminal import table

if TYPE_CHECKING:
    from prediction.nccl.choose import Choice
    from views.terminal import Part

RUNNERS_UP = 2


def choice_record(chosen: Choice) -> dict[str, Any]:
    """SI units; ``ranking`` starts with the choice, ``off`` says why other rows take no part, ``graphs`` what the search found."""
    tuning, graphs = chosen.tuning, chosen.graphs
    found = {
        "ring": graphs.ring,
        "tree": graphs.tree,
        "nvls": graphs.nvls,
        "collnet-chain": graphs.collnet_chain,
        "collnet-direct": graphs.collnet_direct,
    }
    return {
        "topology": chosen.topology, "nranks": graphs.ranks, "nodes": graphs.nodes, "library": "nccl", "version": str(graphs.version),
        "collective": tuning.call.collective, "size_bytes": tuning.call.nbytes, "op": tuning.call.op, "dtype": tuning.call.dtype,
        "choice": asdict(tuning.choice),
        "ranking": [asdict(row) for row in tuning.ranking],
        "fallback": tuning.fallback,
        "off": [{"algorithm": algorithm, "protocol": protocol, "reason": reason} for (algorithm, protocol), reason in tuning.off.items()],
        "comm_channels": chosen.comm_channels, "nvls_channels": chosen.nvls_channels,
        "graphs": {name: asdict(graph) for name, graph in found.items() if graph},
        "variables_elsewhere": list(chosen.settings.elsewhere),
    }  # fmt: skip


def choice_lines(chosen: Choice) -> list[Part]:
    """The choice, the runners-up, and one line for each algorithm that takes no part."""
    tuning, graphs, best = chosen.tuning, chosen.graphs, chosen.tuning.choice
    call = f"{tuning.call.collective} of {format_bytes(tuning.call.nbytes)} over {graphs.ranks} ranks on {chosen.topology}"
    head = f"NCCL {graphs.version} takes {best.algorithm}, protocol {best.protocol}, for {call}: {format_time(best.time_s)} by its model"
    made = table("", "algorithm", "protocol", ">time", ">latency", ">bandwidth", ">channels", ">threads", ">slower")
    for place, row in enumerate(tuning.ranking[: 1 + RUNNERS_UP]):
        behind = f"{row.time_s / best.time_s - 1:.1%}" if place else ""
        cells = (
            format_time(row.time_s),
            format_time(row.latency_s),
            format_bandwidth(row.bandwidth_Bps),
            str(row.channels),
            str(row.threads),
        )
        made.add_row("  runner-up" if place else "  choice", row.algorithm, row.protocol, *cells, behind)
    lines: list[Part] = [head, made]
    if tuning.fallback:
        lines.append("the variables leave nothing; this version falls back to the ring")
    absent = {name: None for name, _ in tuning.off if all(row.algorithm != name for row in tuning.ranking)}
    lines += [f"no {algorithm}: {tuning.off[algorithm, 'simple']}" for algorithm in absent]
    if chosen.settings.elsewhere:
        lines.append(f"not the tuner's: {', '.join(chosen.settings.elsewhere)}")
    return lines
