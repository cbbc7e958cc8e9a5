"""ringscope in a terminal: wires topologies, simulator and predictions to words and JSON; computes nothing."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:  # heavy rooms are imported by the command that needs them: --help must not wait for numpy and networkx
    from views.terminal import Part

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # no public name; typer may carry its own copy of click
app = typer.Typer(
    add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False, context_settings={"help_option_names": ["-h", "--help"]}
)

Machine = Annotated[str, typer.Option("--topology", "-t", help="a name of `ringscope topologies`, or a cluster file", show_default=False)]
Nodes = Annotated[str | None, typer.Option(help="servers; the same as --param nodes=N")]
Params = Annotated[list[str] | None, typer.Option("--param", help="an argument of the topology: gpus=8, bandwidth=25GB/s, dims=4x4")]
What = Annotated[str, typer.Option("--collective", "-c", help="all-reduce, all-gather, broadcast, ...", show_default=False)]
How = Annotated[str, typer.Option("--algorithm", "-a", help="a name of `ringscope algorithms`", show_default=False)]
Size = Annotated[str, typer.Option("--size", "-s", help="64MiB, 1GB, 4096B: the full vector on a rank", show_default=False)]
Options = Annotated[list[str] | None, typer.Option("--option", help="an argument of the algorithm: root=3, servers=4, groups=leaves")]
Channels = Annotated[str, typer.Option(help="copies of the algorithm, each on its share of the data")]
Slices = Annotated[str, typer.Option(help="slices that follow one another through the algorithm")]
Dtype = Annotated[str, typer.Option(help="float32, float16, int8, ...")]
Knobs = Annotated[list[str] | None, typer.Option("--model", help="overhead=1us,reduce-rate=200GB/s,sharing=fifo,routing=ecmp, ...")]
Faults = Annotated[list[str] | None, typer.Option("--fault", help="slow-gpu:3:x1.6, dead-link:gpu0-gpu1, lanes:gpu0-nvswitch:2, ...")]
Seed = Annotated[str, typer.Option(help="of everything random; printed with the result")]
Engine = Annotated[str, typer.Option(help="event (SimPy, the reference), compiled, maxplus (nothing shared), or auto")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON only")]


@app.callback()
def ringscope() -> None:
    """Simulate, see and predict GPU collectives: every chunk, every link, every microsecond."""


@app.command("topologies")
def list_topologies(as_json: AsJson = False) -> None:
    """What clusters there are, and their parameters."""
    from topologies import get, names
    from views import records, terminal

    entries = [get(name) for name in names()]
    _say(records.dumps(records.topology_records(entries)) if as_json else terminal.topology_lines(entries))


@app.command("algorithms")
def list_algorithms(as_json: AsJson = False) -> None:
    """What algorithms there are for which collective, and their options."""
    from algorithms.registry import catalogue
    from views import records, terminal

    _say(records.dumps(records.algorithm_records(catalogue())) if as_json else terminal.algorithm_lines(catalogue()))


@app.command()
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
    _say(records.dumps(records.result_record(told, lot)) if as_json else terminal.result_lines(told))


@app.command()
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
    _say(records.dumps(records.show_record(result, wanted, lot)) if as_json else terminal_rows.show_lines(result, wanted))


@app.command()
def predict(
    topology: Machine, collective: What,
    sizes: Annotated[str, typer.Option(help="first:last:step, as 8B:8GiB:x2 or 1MiB:1GiB:+64MiB, or 1MiB,4MiB", show_default=False)],
    nodes: Nodes = None, param: Params = None, dtype: Dtype = "float32", model: Knobs = None, engine: Engine = "auto",
    algorithm: Annotated[list[str] | None, typer.Option("--algorithm", "-a", help="only this one (may be repeated)")] = None,
    fault: Faults = None, seed: Seed = "0", as_json: AsJson = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="CSV only")] = False,
) -> None:  # fmt: skip
    """All algorithms at every size: which is best where, and from which size on another is."""
    from prediction.limits import machine_of
    from prediction.predict import predict as run
    from topologies.units import parse_sizes
    from views import arguments, records, terminal
    from views.bar import bar

    if as_json and as_csv:
        raise _wrong("--json and --csv: write one of them")
    wanted, knobs, lot = parse_sizes(sizes, "--sizes"), *arguments.model_and_seed(model, seed)
    machine = machine_of(topology, arguments.parameters(nodes, param), fault or (), lot)
    with bar("runs") as progress:
        found = run(machine, collective, wanted, model=knobs, dtype=dtype, algorithms=algorithm, engine=engine, progress=progress)
    if as_csv:
        _say(records.prediction_csv(found))
    else:
        _say(records.dumps(records.prediction_record(found, lot)) if as_json else terminal.prediction_lines(found))


@app.command()
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
    _say(records.dumps(records.comparison_record(report, lot)) if as_json else terminal_rows.comparison_lines(report))


@app.command()
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
        raise _wrong("--topology and --size go together: give both or none")
    given = arguments.build(option, channels, slices)
    check_sends(collective, algorithm, count, **given)  # before a topology of that size is built
    machine = None if topology is None else fitted(topology, params, count, who="--ranks").topology
    found = run(collective, algorithm, count, **given, dtype=dtype, executor=executor, topology=machine, nbytes=nbytes, seed=lot)
    _say(records.dumps(records.verification_record(found)) if as_json else terminal.verification_lines(found))
    if not found.ok:
        raise typer.Exit(1)


@app.command()
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
    _say(records.dumps(records.bounds_record(*facts)) if as_json else terminal.bounds_lines(*facts))


@app.command()
def explain(
    topology: Machine, collective: What, size: Size, nodes: Nodes = None, param: Params = None, dtype: Dtype = "float32",
    library: Annotated[str, typer.Option(help="nccl")] = "nccl",
    nccl_version: Annotated[str, typer.Option(help="2.16 to 2.30")] = "2.30",
    env: Annotated[list[str] | None, typer.Option(help="a variable of the library: NCCL_ALGO=^tree (may be repeated)")] = None,
    as_json: AsJson = False,
) -> None:  # fmt: skip
    """Which algorithm, protocol and channels the library would choose, the runners-up, and why."""
    from prediction.limits import machine_of
    from prediction.nccl.choose import choose
    from topologies.units import parse_bytes
    from views import arguments, nccl_choice, records

    if library != "nccl":
        raise _wrong(f'--library "{library}" is not known; known: nccl')
    machine = machine_of(topology, arguments.parameters(nodes, param))
    chosen = choose(machine, collective, parse_bytes(size, "--size"), nccl_version, arguments.pairs(env, "--env"), dtype=dtype)
    _say(records.dumps(nccl_choice.choice_record(chosen)) if as_json else nccl_choice.choice_lines(chosen))


@app.command("app")
def start_app(port: Annotated[str, typer.Option(help="of 127.0.0.1")] = "8501") -> None:
    """The web app, in a browser on this machine."""
    from screens.serve import serve
    from views.arguments import whole

    serve(Path(__file__).with_name("app.py"), whole(port, "--port", 1, 65535), _say)


def _say(parts: str | Sequence[Part]) -> None:
    from views.terminal import page

    terminal = sys.stdout is not None and sys.stdout.isatty()
    print(page([parts] if isinstance(parts, str) else parts, terminal), flush=True)


def _wrong(message: str) -> Exception:
    from topologies.errors import RingscopeError

    return RingscopeError(message)


def _refuse(message: str, code: int = 2) -> int:
    """One printable line on stderr."""
    line = "".join(c if c.isprintable() else " " for c in message)
    print(f"ringscope: {line}", file=sys.stderr)
    return code


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 (verify found a wrong result), 2 (bad input, one line on stderr), 130 (Ctrl-C)."""
    words = list(sys.argv[1:] if args is None else args) or ["--help"]
    gc.set_threshold(100_000, 20, 20)  # clusters and schedules are millions of objects that stay; to search them often doubles the time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows "?" for what it cannot
    try:
        command = typer.main.get_command(app)
        with command.make_context("ringscope", words) as context:
            command.invoke(context)
    except typer.Exit as ended:
        return ended.exit_code
    except (KeyboardInterrupt, typer.Abort):
        return _refuse("interrupted", 130)
    except BrokenPipeError:  # the reader, such as head, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except UsageError as error:
        from views.arguments import usage

        return _refuse(usage(error))
    except OSError as error:
        return _refuse(f"{error.filename}: {error.strerror}" if error.filename else f"cannot write: {error.strerror}")
    except MemoryError:
        return _refuse("this needs more memory than there is; take fewer GPUs, channels, slices or sizes")
    except ValueError as error:
        if type(error).__module__ == "builtins":  # a defect of ours, not an error of the RingscopeError family
            raise
        return _refuse(str(error))
    return 0


if __name__ == "__main__":
    sys.exit(main())
