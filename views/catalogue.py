"""The catalogue page: every algorithm with its rule, steps, traffic, closed form, source and picture; every topology.

``python -m views.catalogue`` writes ``docs/catalogue.md`` and its pictures; a test keeps them up to date."""

from __future__ import annotations

import inspect
from pathlib import Path

import numpy as np

from algorithms.collectives import COLLECTIVES
from algorithms.registry import Algorithm, catalogue
from algorithms.schedule import Op, Schedule
from sim.closed_forms import interval, lookup
from topologies import get, names

DOCS = Path(__file__).parents[1] / "docs"
RANKS = 8
ELEMENTS = 1 << 20
REDUCE, COPY, LINE = "#d55e00", "#0072b2", "#8894a6"  # readable on white and on black


def files() -> dict[Path, str]:
    """What the page and its pictures must be, by path below ``docs``."""
    pictures = {
        Path("images") / "catalogue" / f"{a.collective.name}_{a.name}.svg": picture(a.build(RANKS))
        for a in catalogue()
        if not a.refusal(RANKS)
    }
    return {Path("catalogue.md"): page(), **pictures}


def page() -> str:
    """The page as Markdown."""
    parts = [
        "# Catalogue\n",
        "Written by `python -m views.catalogue` from the registries; do not edit.\n",
        f"Steps and traffic are those of {RANKS} ranks in one slice; M is the whole vector of a rank ([model.md](model.md)). **Sent** is "
        "what the busiest rank sends. In the pictures time runs to the right, a step a column; rows are ranks (thick, below: switches "
        "that sum); what an orange line brings is added by the receiver, what a blue dashed line brings is copied.\n",
        "## Algorithms\n",
    ]
    for collective in COLLECTIVES.values():
        entries = catalogue(collective)
        if entries:
            parts.append(f"### {collective.name}\n")
            parts += [_entry(algorithm) for algorithm in entries]
    parts += ["## Topologies\n", "| name | parameters | what it is |\n|---|---|---|"]
    for name in names():
        entry = get(name)
        given = ", ".join(f"{p.name}={p.text}" if p.text else p.name for p in entry.parameters)
        parts.append(f"| `{name}` | {given} | {entry.summary} |")
    return "\n".join(parts) + "\n"


def _entry(algorithm: Algorithm) -> str:
    collective = algorithm.collective.name
    form = lookup(collective, algorithm.name)
    options = ", ".join(f"`{o.name}={o.default}`" for o in algorithm.options)
    rows = [f"**`{algorithm.name}`** {' '.join(inspect.cleandoc(algorithm.make.__doc__ or '').split())}\n"]
    if reason := next((r for n in range(2, 17) if (r := algorithm.refusal(n))), None):
        rows.append(f"- Ranks: {reason}")
    if not algorithm.refusal(RANKS):
        schedule = algorithm.build(RANKS)
        sent = np.bincount(schedule.src, weights=schedule.send_elements(ELEMENTS), minlength=schedule.places)[:RANKS].max() / ELEMENTS
        volume = "0" if algorithm.collective.idempotent else f"{sent:.4g} M"
        rows.append(f"- Steps: {schedule.steps}; messages: {_messages(schedule)}; sent: {volume}")
    if options:
        rows.append(f"- Options: {options.replace('=None', '')}")
    if form:
        rows.append(f"- Closed form on a {form.topology}: `{form.formula}`")
    elif ends := interval(collective, algorithm.name):
        rows.append(f"- On a {ends.least.topology} at least `{ends.least.formula}`, at most `{ends.most.formula}`")
    if not algorithm.refusal(RANKS):
        rows.append(f"\n![{algorithm.name}, {collective} over {RANKS} ranks](images/catalogue/{collective}_{algorithm.name}.svg)")
    return "\n".join(rows) + "\n"


def _messages(schedule: Schedule) -> int:
    keys = np.stack([schedule.step, schedule.src, schedule.dst, schedule.channel, schedule.message])
    alone = schedule.message < 0
    return int(alone.sum()) + len(np.unique(keys[:, ~alone], axis=1).T)


def picture(schedule: Schedule) -> str:
    """A message diagram: a row a place, a column a step, a line a send. SVG, the same bytes for the same schedule."""
    width, row, left, top = max(18, min(60, 560 // schedule.steps)), 18, 34, 12
    w, h = left + width * schedule.steps + 8, 2 * top + row * (schedule.places - 1)
    size = f'viewBox="0 0 {w} {h}" width="{w}" height="{h}"'
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">']
    for place in range(schedule.places):
        y = top + row * place
        name = str(place) if place < schedule.nranks else f"sw{place - schedule.nranks}"
        out.append(f'<text x="4" y="{y + 4}" fill="{LINE}">{name}</text>')
        out.append(f'<path d="M{left} {y}H{w - 6}" stroke="{LINE}" stroke-width="{1 if place < schedule.nranks else 3}" opacity=".35"/>')
    for op, colour, dash in ((Op.REDUCE, REDUCE, ""), (Op.COPY, COPY, ' stroke-dasharray="4 2"')):
        mine = schedule.op == op
        lines = sorted(set(zip(schedule.step[mine].tolist(), schedule.src[mine].tolist(), schedule.dst[mine].tolist(), strict=True)))
        if lines:
            path = "".join(f"M{left + width * s + 3} {top + row * a}L{left + width * (s + 1) - 3} {top + row * b}" for s, a, b in lines)
            out.append(f'<path d="{path}" stroke="{colour}" stroke-width="1.4"{dash} fill="none"/>')
    return "".join(out) + "</svg>\n"


def main() -> None:
    """Write the page and its pictures."""
    for path, text in files().items():
        (DOCS / path).parent.mkdir(parents=True, exist_ok=True)
        (DOCS / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
