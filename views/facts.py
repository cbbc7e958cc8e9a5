"""A result in a few numbers with their explanation."""

from __future__ import annotations

from dataclasses import dataclass

from sim.result import Result
from topologies.units import format_bandwidth, format_bytes, format_time
from views.text import label, text


@dataclass(frozen=True, slots=True)
class Fact:
    """A number as shown: its name, its value with a unit, and where it comes from."""

    label: str
    value: str
    help: str


def setting(lang: str, topology: str, bandwidth: float, latency: float, nbytes: int) -> str:
    """One line: which links carry how much data."""
    return text(
        lang, "setting.where", topology=label(lang, "topology", topology), bandwidth=format_bandwidth(bandwidth),
        latency=format_time(latency), size=format_bytes(nbytes),
    )  # fmt: skip


def facts(result: Result, lang: str) -> list[Fact]:
    """Time, algbw, busbw and what the busiest GPU sent, of a result with one launch. On average a GPU must send
    busbw factor times the message, unless a switch reduces or multicasts."""
    launch = result.launches[0]
    assert launch.schedule is not None
    factor = launch.schedule.collective.busbw_factor(launch.schedule.nranks)
    busbw = result.busbw()
    fastest = max(link.bandwidth for link in result.topology.links)
    shown_factor = "–" if factor is None else f"{factor:.4g}"
    bound = "–" if factor is None else format_bytes(round(factor * launch.nbytes))
    rows = {
        "time": format_time(result.time),
        "algbw": format_bandwidth(result.algbw()),
        "busbw": text(lang, "fact.none") if busbw is None else format_bandwidth(busbw),
        "sent": format_bytes(int(result.bytes_per_rank().max())),
    }
    words = {"factor": shown_factor, "bound": bound, "bandwidth": format_bandwidth(fastest)}
    return [Fact(text(lang, f"fact.{key}"), value, text(lang, f"fact.{key}_help", **words)) for key, value in rows.items()]
