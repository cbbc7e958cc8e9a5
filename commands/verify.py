"""Proof that an algorithm computes its collective."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import AsJson, Channels, Dtype, How, Nodes, Options, Params, Seed, Slices, What, say, wrong


def verify(
    collective: What, algorithm: How, ranks: Annotated[str, typer.Option("--ranks", "-n", help="how many ranks", show_default=False)],
    executor: Annotated[str, typer.Option(help="numpy")] = "numpy",
    topology: Annotated[str | None, typer.Option("--topology", "-t", help="with --size: also count the simulator's bytes there")] = None,
    size: Annotated[str | None, typer.Option("--size", "-s", help="with --topology: 1MiB")] = None,
    nodes: Nodes = None, param: Params = None, option: Options = None, channels: Channels = "1", slices: Slices = "1",
    dtype: Dtype = "float32", seed: Seed = "0", as_json: AsJson = False,
) -> None:  # fmt: skip
    """Prove that an algorithm computes its collective: symbolically, on real arrays, and by bytes. Exit code 1 if not."""
    from prediction.fit import fitted
    from prediction.limits import check_sends
    from prediction.verify import verify as run
    from topologies.units import parse_bytes
    from views import arguments, records, terminal

    count, params = arguments.whole(ranks, "--ranks", 2, 10**12), arguments.parameters(nodes, param)
    nbytes, lot = None if size is None else parse_bytes(size, "--size"), arguments.whole(seed, "--seed", 0)
    if (topology is None) != (nbytes is None) or (params and topology is None):
        raise wrong("--topology and --size go together: give both or none")
    given = arguments.build(option, channels, slices)
    check_sends(collective, algorithm, count, **given)  # before a topology of that size is built
    machine = None if topology is None else fitted(topology, params, count, who="--ranks").topology
    found = run(collective, algorithm, count, **given, dtype=dtype, executor=executor, topology=machine, nbytes=nbytes, seed=lot)
    say(records.dumps(records.verification_record(found)) if as_json else terminal.verification_lines(found))
    if not found.ok:
        raise typer.Exit(1)
