"""What a library of collectives would do."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import AsJson, Dtype, Machine, Nodes, Params, Size, What, say, wrong


def explain(
    topology: Machine, collective: What, size: Size, nodes: Nodes = None, param: Params = None, dtype: Dtype = "float32",
    library: Annotated[str, typer.Option(help="nccl, rccl, gloo, open-mpi, mpich")] = "nccl",
    nccl_version: Annotated[str | None, typer.Option(help="2.16 to 2.30; 2.30 unless told")] = None,
    library_version: Annotated[str | None, typer.Option(help="of another library: mpich 3 or 4")] = None,
    algorithm: Annotated[str | None, typer.Option("--algorithm", "-a", help="gloo: what its caller asks for: ring, bcube, ...")] = None,
    env: Annotated[list[str] | None, typer.Option(help="a variable of the library: NCCL_ALGO=^tree (may be repeated)")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Which algorithm, protocol and channels the library would choose, the runners-up, and why."""
    from prediction.limits import machine_of
    from topologies.units import parse_bytes
    from views import arguments, records

    if library == "nccl" and (library_version or algorithm):
        raise wrong(
            f"{'--library-version' if library_version else '--algorithm'} is of other libraries; NCCL takes --nccl-version and --env"
        )
    if library != "nccl" and nccl_version:
        raise wrong(f"--nccl-version is NCCL's; {library} takes --library-version")
    nbytes, variables = parse_bytes(size, "--size"), arguments.pairs(env, "--env")
    machine = machine_of(topology, arguments.parameters(nodes, param))
    if library == "nccl":
        from prediction.nccl.choose import choose
        from views.nccl_choice import choice_lines, choice_record

        tuned = choose(machine, collective, nbytes, nccl_version or "2.30", variables, dtype=dtype)
        say(records.dumps(choice_record(tuned)) if as_json else choice_lines(tuned))
    else:
        from prediction.rules.choose import choose as by_rule
        from views.rule_choice import rule_lines, rule_record

        ruled = by_rule(library, machine, collective, nbytes, library_version, variables, dtype=dtype, pick=algorithm)
        say(records.dumps(rule_record(ruled, machine.name)) if as_json else rule_lines(ruled, machine.name))
