"""ringscope in a terminal: finds the command, runs it, and turns whatever goes wrong into one line and an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module

import typer

UsageError: type[Exception] = typer.BadParameter.__mro__[1]  # no public name; typer may carry its own copy of click

COMMANDS = {
    "topologies": ("lists", "list_topologies"),
    "algorithms": ("lists", "list_algorithms"),
    "simulate": ("simulate", "simulate"),
    "show": ("simulate", "show"),
    "predict": ("predict", "predict"),
    "compare": ("measured", "compare"),
    "doctor": ("doctor", "doctor"),
    "calibrate": ("calibrate", "calibrate"),
    "verify": ("verify", "verify"),
    "bounds": ("simulate", "bounds"),
    "explain": ("library", "explain"),
    "app": ("web", "start_app"),
}
"""In the order of --help: the module of commands/ and its function, whose docstring is the help."""


def app(words: Sequence[str]) -> typer.Typer:
    """The command that ``words`` begin with, or all of them for --help and for a mistake: each takes a while to import and set up."""
    made = typer.Typer(
        add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )  # fmt: skip
    made.callback()(ringscope)
    for name in words[:1] if words[0] in COMMANDS else COMMANDS:
        module, function = COMMANDS[name]
        made.command(name)(getattr(import_module(f"commands.{module}"), function))
    return made


def ringscope() -> None:
    """Simulate, see and predict GPU collectives: every chunk, every link, every microsecond."""


def _refuse(message: str, code: int = 2) -> int:
    """One printable line on stderr."""
    line = "".join(c if c.isprintable() else " " for c in message)
    print(f"ringscope: {line}", file=sys.stderr)
    return code


def main(args: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code: 0, 1 (verify found a wrong result, or calibrate refused a fit), 2 (bad input, one line on
    stderr), 130 (Ctrl-C)."""
    words = list(sys.argv[1:] if args is None else args) or ["--help"]
    gc.set_threshold(100_000, 20, 20)  # clusters and schedules are millions of objects that stay; to search them often doubles the time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")  # an ASCII terminal shows "?" for what it cannot
    try:
        command = typer.main.get_command(app(words))
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
