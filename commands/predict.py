"""All algorithms at all sizes."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import (
    AsJson,
    Dtype,
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
    What,
    asked_of,
    say,
    wrong,
)


def predict(
    topology: Machine, collective: What,
    sizes: Annotated[str, typer.Option(help="first:last:step, as 8B:8GiB:x2 or 1MiB:1GiB:+64MiB, or 1MiB,4MiB", show_default=False)],
    nodes: Nodes = None, param: Params = None, dtype: Dtype = "float32", model: Knobs = None, engine: Engine = "auto",
    algorithm: Annotated[list[str] | None, typer.Option("--algorithm", "-a", help="only this one (may be repeated)")] = None,
    library: Library = None, nccl_version: NcclVersion = None, launch: LaunchMode = None, env: Variables = None,
    fault: Faults = None, seed: Seed = "0", as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV only")] = False,
) -> None:  # fmt: skip
    """All algorithms at every size: which is best where; with --library what the library's own choice takes."""
    from prediction.limits import machine_of
    from prediction.predict import predict as run
    from topologies.units import parse_sizes
    from views import arguments, records, terminal
    from views.bar import bar

    if as_json and as_csv:
        raise wrong("--json and --csv: write one of them")
    wanted, knobs, lot = parse_sizes(sizes, "--sizes"), *arguments.model_and_seed(model, seed)
    others = {"--algorithm": algorithm, "--model": model, "--engine": engine != "auto"}
    asked = asked_of(library, nccl_version, launch, env, others, dtype)
    machine = machine_of(topology, arguments.parameters(nodes, param), fault or (), lot)
    if asked:
        from prediction.library.logs import check_calls
        from prediction.library.predict import predict_library
        from prediction.nccl.settings import settings
        from prediction.nccl.version import version
        from views.library_rows import library_csv, library_lines, library_record

        check_calls(collective, machine)
        with bar("sizes") as progress:
            rows = predict_library(machine, collective, wanted, asked, progress=progress)
        if as_csv:
            say(library_csv(rows))
        else:
            told = machine, collective, asked, rows
            idle = settings(asked.environment, version(asked.version)).elsewhere
            say(records.dumps(library_record(*told, lot)) if as_json else library_lines(*told, idle))
        return
    with bar("runs") as progress:
        found = run(machine, collective, wanted, model=knobs, dtype=dtype, algorithms=algorithm, engine=engine, progress=progress)
    if as_csv:
        say(records.prediction_csv(found))
    else:
        say(records.dumps(records.prediction_record(found, lot)) if as_json else terminal.prediction_lines(found))
