"""Measured logs against the prediction."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import (
    AsJson,
    Engine,
    Faults,
    Knobs,
    LaunchMode,
    Library,
    Machine,
    NcclVersion,
    Nodes,
    Params,
    Seed,
    Variables,
    asked_of,
    say,
)


def compare(
    log: Annotated[str, typer.Argument(help="text or JSON of nccl-tests, OSU, CSV")], topology: Machine, nodes: Nodes = None,
    param: Params = None, model: Knobs = None, engine: Engine = "auto",
    algorithm: Annotated[str | None, typer.Option("--algorithm", "-a", help="default: ring, else chain, direct, flat or shift")] = None,
    library: Library = None, nccl_version: NcclVersion = None, launch: LaunchMode = None, env: Variables = None,
    fault: Faults = None, seed: Seed = "0", as_json: AsJson = False,
) -> None:  # fmt: skip
    """A measured log against the prediction, row by row; with --library against the library's own choice."""
    from prediction.compare import compare as run
    from prediction.readers import read_log
    from views import arguments, records, terminal_rows
    from views.bar import bar

    params, knobs, lot = arguments.parameters(nodes, param), *arguments.model_and_seed(model, seed)
    asked = asked_of(library, nccl_version, launch, env, {"--algorithm": algorithm, "--model": model, "--engine": engine != "auto"})
    tables = read_log(log)
    if asked:
        from prediction.library.logs import hold
        from views.library_rows import held_lines, held_record

        with bar("sizes") as progress:
            held = hold(tables, topology, params, asked, launch, progress, fault or (), lot)
        say(records.dumps(held_record(held, lot)) if as_json else held_lines(held))
        return
    with bar("rows") as progress:
        report = run(
            tables, topology, params, algorithm=algorithm, model=knobs, engine=engine, progress=progress, faults=fault or (), seed=lot
        )
    say(records.dumps(records.comparison_record(report, lot)) if as_json else terminal_rows.comparison_lines(report))
