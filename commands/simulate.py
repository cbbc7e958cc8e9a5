"""One collective on one cluster: simulated, shown step by step, and what no algorithm can beat."""

from __future__ import annotations

from typing import Annotated

import typer

from commands.options import (
    AsJson,
    Channels,
    Dtype,
    Engine,
    Faults,
    How,
    Knobs,
    Machine,
    Nodes,
    Options,
    Params,
    Seed,
    Size,
    Slices,
    What,
    say,
)


def simulate(
    topology: Machine, collective: What, algorithm: How, size: Size, nodes: Nodes = None, param: Params = None, option: Options = None,
    channels: Channels = "1", slices: Slices = "1", dtype: Dtype = "float32", model: Knobs = None, fault: Faults = None, seed: Seed = "0",
    engine: Engine = "auto", as_json: AsJson = False,
) -> None:  # fmt: skip
    """One collective on one cluster: its time, and what limits it."""
    from prediction.explain import explain
    from prediction.limits import limited_launch
    from topologies.units import parse_bytes
    from views import arguments, records, terminal
    from views.bar import bar

    knobs, lot = arguments.model_and_seed(model, seed)
    given = arguments.build(option, channels, slices)
    machine, launch = limited_launch(
        topology, arguments.parameters(nodes, param), collective, algorithm, parse_bytes(size, "--size"), dtype=dtype, faults=fault or (),
        seed=lot, engine=engine, traced=False, **given
    )  # fmt: skip
    with bar("messages") as progress:
        told = explain(machine, launch, knobs, engine, progress, **given)
    say(records.dumps(records.result_record(told, lot)) if as_json else terminal.result_lines(told))


def show(
    topology: Machine, collective: What, algorithm: How, size: Size, nodes: Nodes = None, param: Params = None, option: Options = None,
    channels: Channels = "1", slices: Slices = "1", dtype: Dtype = "float32", model: Knobs = None, fault: Faults = None, seed: Seed = "0",
    engine: Engine = "auto", as_json: AsJson = False,
    step: Annotated[str | None, typer.Option(help="only this step, from 0", show_default=False)] = None,
) -> None:  # fmt: skip
    """The steps of an algorithm in words, and who holds what after them."""
    from prediction.limits import limited_launch
    from sim.simulate import simulate as play
    from topologies.units import parse_bytes
    from views import arguments, records, terminal_rows
    from views.bar import bar

    knobs, lot = arguments.model_and_seed(model, seed)
    given = arguments.build(option, channels, slices)
    machine, launch = limited_launch(
        topology, arguments.parameters(nodes, param), collective, algorithm, parse_bytes(size, "--size"), dtype=dtype, faults=fault or (),
        seed=lot, engine=engine, **given
    )  # fmt: skip
    steps = launch.schedule.steps if launch.schedule else 0
    wanted = range(steps) if step is None else [arguments.whole(step, "--step", 0, steps - 1)]
    with bar("messages") as progress:
        result = play(machine, [launch], knobs, engine, progress)
    say(records.dumps(records.show_record(result, wanted, lot)) if as_json else terminal_rows.show_lines(result, wanted))


def bounds(
    topology: Machine, collective: What, size: Size, nodes: Nodes = None, param: Params = None, dtype: Dtype = "float32",
    root: Annotated[str, typer.Option(help="of a rooted collective")] = "0", fault: Faults = None, seed: Seed = "0",
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """What no algorithm can beat: latency, and the bandwidth of ports and cuts."""
    from algorithms.collectives import collective as named
    from prediction.explain import both_bounds
    from prediction.limits import machine_of
    from topologies.units import parse_bytes
    from views import arguments, records, terminal

    what, nbytes = named(collective), parse_bytes(size, "--size")
    machine = machine_of(topology, arguments.parameters(nodes, param), fault or (), arguments.whole(seed, "--seed", 0))
    sender = arguments.whole(root, "--root", 0, len(machine.gpus) - 1)
    plain, in_network = both_bounds(machine, what, nbytes, root=sender, dtype=dtype)
    facts = machine.name, len(machine.gpus), what.name, nbytes, plain, in_network
    say(records.dumps(records.bounds_record(*facts)) if as_json else terminal.bounds_lines(*facts))
