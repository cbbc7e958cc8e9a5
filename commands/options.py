"""Options that several commands share, what they print with, and the error they raise."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

if TYPE_CHECKING:
    from prediction.library.asked import Asked
    from views.terminal import Part

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
Library = Annotated[str | None, typer.Option(help="as this library would do it: nccl, rccl")]
NcclVersion = Annotated[str | None, typer.Option(help="with --library: 2.16 to 2.30 (of RCCL: the NCCL it is made from); 2.30 unless told")]
LaunchMode = Annotated[str | None, typer.Option(help="with --library: process-per-gpu (unless told), one-process, thread-per-gpu")]
Variables = Annotated[list[str] | None, typer.Option("--env", help="with --library: a variable of it: NCCL_ALGO=^tree (may be repeated)")]
AsJson = Annotated[bool, typer.Option("--json", help="JSON only")]


def say(parts: str | Sequence[Part]) -> None:
    from views.terminal import page

    terminal = sys.stdout is not None and sys.stdout.isatty()
    print(page([parts] if isinstance(parts, str) else parts, terminal), flush=True)


def asked_of(
    library: str | None,
    version: str | None,
    launch: str | None,
    env: Sequence[str] | None,
    others: Mapping[str, object],
    dtype: str = "float32",
) -> Asked | None:
    """What is asked of a library, None where none is named; ``others``: options that do not go with it, by name, with what was given."""
    from prediction.library.asked import Asked
    from prediction.nccl.settings import settings
    from prediction.nccl.version import version as release
    from views.arguments import pairs

    if library is None:
        given = {"--nccl-version": version, "--launch": launch, "--env": env}
        if any(given.values()):
            raise wrong(f"{next(name for name, value in given.items() if value)} is of a library; write --library nccl with it")
        return None
    for name, value in others.items():
        if value:
            advice = "; write --env NCCL_ALGO=... for its choice" if name == "--algorithm" else ""
            raise wrong(f"{name} does not go with --library, which chooses by itself{advice}")
    asked = Asked(cast("Any", library), version or "2.30", cast("Any", launch or "process-per-gpu"), pairs(env, "--env"), dtype)
    settings(asked.environment, release(asked.version))
    return asked


def wrong(message: str) -> Exception:
    from topologies.errors import RingscopeError

    return RingscopeError(message)
