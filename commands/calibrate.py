"""A machine's constants from a log of it."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import AsJson, LaunchMode, Library, Machine, NcclVersion, Nodes, Params, Variables, asked_of, say, wrong


def calibrate(
    topology: Machine,
    log: Annotated[list[str] | None, typer.Argument(help="text or JSON of nccl-tests, OSU, CSV; all of one machine")] = None,
    output: Annotated[str | None, typer.Option("--output", "-o", help="the machine with its constants: machine.toml")] = None,
    quick: Annotated[
        tuple[str, str] | None, typer.Option(metavar="SMALL LARGE", help="no log: the time of a small and of a large call, as 21us 9.3ms")
    ] = None,
    sizes: Annotated[str, typer.Option(help="with --quick: of which sizes")] = "8B,1GiB",
    collective: Annotated[str | None, typer.Option("--collective", "-c", help="with --quick: all-reduce unless told")] = None,
    nodes: Nodes = None, param: Params = None, library: Library = "nccl", nccl_version: NcclVersion = None, launch: LaunchMode = None,
    env: Variables = None, as_json: AsJson = False,
) -> None:  # fmt: skip
    """Move the few constants that a log tells, say how sure they are, and write a cluster file with them."""
    from dataclasses import replace

    from prediction.library.calibrate import calibrated
    from prediction.library.logs import points, told_two
    from prediction.limits import names_file
    from prediction.readers import read_log
    from topologies.cluster_writer import check_target, write_cluster
    from topologies.units import parse_sizes, parse_time
    from views import arguments, records
    from views.bar import bar
    from views.library_rows import calibration_lines, calibration_record

    asked = asked_of(library or "nccl", nccl_version, launch, env, {})
    assert asked is not None
    params = arguments.parameters(nodes, param)
    if output is not None:
        check_target(output)
    if bool(log) == bool(quick):
        raise wrong("give a log, or two times with --quick, and not both")
    if quick:
        times = [parse_time(text, "--quick") for text in quick]
        told = told_two(topology, params, asked, collective or "all-reduce", parse_sizes(sizes, "--sizes"), times)
    else:
        if collective or sizes != "8B,1GiB":
            raise wrong("--collective and --sizes go with --quick; a log says what it measured")
        told = points([table for path in log or () for table in read_log(path)], topology, params, asked, launch)
    with bar("calls") as progress:
        found = calibrated(told.fit.topology, told.measured, told.asked, progress=progress)
    file = None
    if output and not found.refused:
        machine = replace(told.fit.topology, constants={**told.fit.topology.constants, **found.told})
        write_cluster(machine, output, None if names_file(topology) else (topology, told.fit.params))
        file = output
    facts = told.fit.topology, told.asked, found, told.notes, file
    say(records.dumps(calibration_record(*facts)) if as_json else calibration_lines(*facts))
    if found.refused:
        raise typer.Exit(1)
