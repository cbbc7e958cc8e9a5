"""Measured logs against the prediction."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import AsJson, Engine, Faults, Knobs, Machine, Nodes, Params, Seed, say


def compare(
    log: Annotated[str, typer.Argument(help="text or JSON of nccl-tests, OSU, CSV")], topology: Machine, nodes: Nodes = None,
    param: Params = None, model: Knobs = None, engine: Engine = "auto",
    algorithm: Annotated[str | None, typer.Option("--algorithm", "-a", help="default: ring, else chain, direct, flat or shift")] = None,
    fault: Faults = None, seed: Seed = "0", as_json: AsJson = False,
) -> None:  # fmt: skip
    """A measured log against the prediction, row by row."""
    from prediction.compare import compare as run
    from prediction.readers import read_log
    from views import arguments, records, terminal_rows
    from views.bar import bar

    params, knobs, lot = arguments.parameters(nodes, param), *arguments.model_and_seed(model, seed)
    tables = read_log(log)
    with bar("rows") as progress:
        report = run(
            tables, topology, params, algorithm=algorithm, model=knobs, engine=engine, progress=progress, faults=fault or (), seed=lot
        )
    say(records.dumps(records.comparison_record(report, lot)) if as_json else terminal_rows.comparison_lines(report))
