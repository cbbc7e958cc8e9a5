"""Is a measured result healthy?"""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import AsJson, Nodes, Params, say, wrong


def doctor(
    log: Annotated[str, typer.Argument(help="text or JSON of nccl-tests, OSU, CSV")],
    topology: Annotated[str | None, typer.Option("--topology", "-t", help="what was measured; else what the log's header says")] = None,
    nodes: Nodes = None, param: Params = None,
    library: Annotated[str | None, typer.Option(help="nccl or rccl; by the GPUs unless told")] = None,
    nccl_version: Annotated[str | None, typer.Option(help="2.16 to 2.30; the log's unless told")] = None,
    launch: Annotated[str | None, typer.Option(help="process-per-gpu, one-process, thread-per-gpu; the log's unless told")] = None,
    env: Annotated[list[str] | None, typer.Option(help="a variable of the library: NCCL_ALGO=^tree (may be repeated)")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Is a measured result healthy, and if not, which known causes look like this."""
    from prediction.doctor.doctor import doctor as run
    from views import arguments, records
    from views.bar import bar
    from views.doctor import doctor_lines, doctor_record

    params, variables = arguments.parameters(nodes, param), arguments.pairs(env, "--env")
    if topology is None and params:
        raise wrong(f"--param and --nodes are of a topology; add --topology custom, or leave {', '.join(params)} out")
    with bar("causes") as progress:
        found = run(
            log, topology, params, version=nccl_version, launch=launch, environment=variables, library=library, progress=progress
        )  # fmt: skip
    say(records.dumps(doctor_record(found)) if as_json else doctor_lines(found))
