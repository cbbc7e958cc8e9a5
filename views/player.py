"""Schedule and trace -> what the step player in the browser needs: moves and words, no states."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from algorithms.launch import Trace
from algorithms.schedule import Schedule
from topologies.errors import ScheduleError
from views.layout import Panel, Picture, picture
from views.phases import phases, step_slices
from views.text import label, templates, text

MOST_RANKS, MOST_SENDS = 64, 20_000
"""Beyond these nobody can follow single sends, and the browser would redraw too slowly."""

HTML = '<div id="player" tabindex="0" role="group"></div>'


def script() -> str:
    """The player's JavaScript, one module."""
    here = Path(__file__).parent
    return "\n".join((here / f"player{part}.js").read_text(encoding="utf-8") for part in ("_moves", "_draw", "_parts", "_controls", ""))


def style() -> str:
    """The player's style sheet."""
    return (Path(__file__).parent / "player.css").read_text(encoding="utf-8")


def payload(schedule: Schedule, trace: Trace, lang: str, *, launch: int = 0, note: str = "") -> dict[str, Any]:
    """JSON for the player. Per step: phase, sentence, its end, and rows [src, dst, chunk, count, dst_chunk, op, start, end],
    times in µs after the first start. Per rank, which chunks hold data at first and which must at the end, as "0110".

    ``note`` is a line below the picture. Raises ScheduleError for a schedule too large to follow step by step."""
    s = schedule
    if s.nranks > MOST_RANKS or len(s) > MOST_SENDS:
        raise ScheduleError(
            f"{s.name}: {s.nranks} ranks and {len(s)} sends are too many to step through; at most {MOST_RANKS} ranks and {MOST_SENDS} sends"
        )
    shown = picture(s)
    names = {"collective": label(lang, "collective", s.collective.name), "algorithm": label(lang, "algorithm", s.name)}
    values = {"root": s.root, "sum": s.nranks * (s.nranks + 1) // 2}
    steps = _steps(s, trace, lang, launch, shown)
    return {
        "id": f"{s.collective.name} {s.name} {s.nranks} {s.nchunks} {steps[-1]['end'] if steps else 0}",  # the same in every language
        "name": f"{s.collective.name}-{s.name}-{s.nranks}",
        "lang": lang,
        "text": templates(lang, "player."),
        "title": text(lang, "player.start", **names),
        "start": text(lang, f"start.{s.collective.name}", **values),
        "done": text(lang, f"done.{s.collective.name}", **values),
        "note": note,
        "ranks": s.nranks,
        "places": s.places,
        "chunks": s.nchunks,
        "reduces": s.collective.reduces,
        "holds": _flags(s, s.collective.initial(s.nranks, len(s.weights), s.root)),
        "wants": _flags(s, _wanted(s)),
        "picture": _picture(shown),
        "steps": steps,
    }


def _flags(s: Schedule, held: NDArray[np.bool_]) -> list[str]:
    full = np.zeros((s.nranks, s.nchunks), dtype=np.int8)
    full[:, : held.shape[1]] = held
    return ["".join(map(str, row)) for row in full.tolist()]


def _wanted(s: Schedule) -> NDArray[np.bool_]:
    expected = s.collective.expected(s.nranks, len(s.weights), s.root)
    wanted = np.zeros((s.nranks, s.nchunks), dtype=np.bool_)
    wanted[expected.rank, expected.chunk] = True
    return wanted


def _steps(s: Schedule, trace: Trace, lang: str, launch: int, shown: Picture) -> list[dict[str, Any]]:
    mine = np.flatnonzero(trace.launch == launch)
    if len(mine) != len(s) or not np.array_equal(np.sort(trace.send[mine]), np.arange(len(s))):
        raise ScheduleError(
            f"{s.name}: the trace has {len(mine)} sends of launch {launch}, the schedule {len(s)}; show a trace of this schedule"
        )
    row = mine[np.argsort(trace.send[mine])]
    began = float(trace.start[row].min(initial=np.inf))
    start, end = (np.round((times[row] - began) * 1e6, 3) for times in (trace.start, trace.end))
    columns = (s.src, s.dst, s.chunk, s.count, s.dst_chunk, s.op, start, end)
    rows = list(zip(*(column.tolist() for column in columns), strict=True))
    return [
        {"phase": text(lang, phase.name), "say": text(lang, phase.sentence), "end": max(r[-1] for r in rows[of]), "sends": rows[of]}
        for phase, of in zip(phases(s, shown.kind), step_slices(s), strict=True)
    ]


def _picture(shown: Picture) -> dict[str, Any]:
    card = shown.card
    return {
        "kind": shown.kind,
        "matrix": shown.matrix,
        "card": {"w": card.width, "h": card.height} | {key: getattr(card, key) for key in ("columns", "cell", "short", "inline", "scale")},
        "panels": [_panel(panel) for panel in shown.panels],
    }


def _panel(panel: Panel) -> dict[str, Any]:
    at = [[place, round(x, 4), round(y, 4)] for place, (x, y) in panel.at.items()]
    return {"chunks": list(panel.chunks), "at": at, "edges": [list(edge) for edge in panel.edges]}
