"""Words that a person writes -> arguments: ``key=value`` pairs, parameters of a topology, the model's knobs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from sim.model import Model, ModelError
from topologies.errors import RingscopeError, nearest, quoted
from topologies.units import parse_bandwidth, parse_bytes, parse_time


def pairs(texts: Iterable[str] | None, where: str) -> dict[str, str]:
    """``["root=3"]`` -> ``{"root": "3"}``. RingscopeError for text without ``=`` and for a key that stands twice."""
    found: dict[str, str] = {}
    for text in texts or ():
        key, equals, value = text.partition("=")
        key, value = key.strip(), value.strip()
        if not (equals and key and value):
            raise RingscopeError(f"{where} {quoted(text)} is not a key and a value; write {where} key=value")
        if key in found:
            raise RingscopeError(f"{where} {quoted(key)} stands twice; give it once")
        found[key] = value
    return found


def parameters(nodes: str | None, texts: Iterable[str] | None) -> dict[str, str]:
    """Parameters of a topology; ``nodes`` is one of them with an option of its own."""
    found = pairs(texts, "--param")
    if nodes is not None:
        if "nodes" in found:
            raise RingscopeError("--nodes and --param nodes=... say the same; give one of them")
        found["nodes"] = nodes
    return found


def model(texts: Iterable[str] | None, seed: int = 0) -> Model:
    """``["overhead=1us,sharing=fifo", "routing=ecmp"]`` -> Model; ``seed`` is that of its hash unless it names one. RingscopeError for an
    unknown knob or a value out of its range."""
    given: dict[str, Any] = {"routing_seed": seed % 2**32}
    for key, value in pairs([part for text in texts or () for part in text.split(",")], "--model").items():
        name, where = key.replace("_", "-"), f"--model {key}"
        if name not in KNOBS:
            raise ModelError(f"--model {quoted(key)} is not known{nearest(name, KNOBS)}")
        given[name.replace("-", "_")] = KNOBS[name](value, where)
    return Model(**given)


def model_and_seed(texts: Iterable[str] | None, seed: str) -> tuple[Model, int]:
    """The model, and ``--seed`` of everything random."""
    lot = whole(seed, "--seed", 0)
    return model(texts, lot), lot


def build(options: Iterable[str] | None, channels: str, slices: str) -> dict[str, Any]:
    """Keyword arguments of whatever builds a schedule: ``options`` of the algorithm, ``channels`` and ``slices``."""
    return {
        "options": pairs(options, "--option"), "channels": whole(channels, "--channels", 1, 1024),
        "slices": whole(slices, "--slices", 1, 1024),
    }  # fmt: skip


def whole(text: str, where: str, least: int, most: int = 2**63 - 1) -> int:
    """``"8"`` -> 8; RingscopeError for anything but a whole number from ``least`` to ``most``."""
    if not re.fullmatch(r"-?[0-9]{1,30}", text.strip()) or not least <= int(text) <= most:
        upto = f" to {most}" if most < 2**63 - 1 else " up"
        raise RingscopeError(f"{where} {quoted(text)} is not a whole number from {least}{upto}")
    return int(text)


def usage(error: Any) -> str:
    """A mistake in the options, with the nearest right word and where the others stand."""
    message = error.format_message().rstrip(".")
    if (context := error.ctx) is None:
        return str(message)
    known = [name for parameter in context.command.params for name in parameter.opts if name.startswith("--")]
    if hasattr(error, "option_name") and hasattr(error, "possibilities"):
        return f"there is no option {quoted(error.option_name)}{nearest(error.option_name, known)}"
    if message.startswith("No such command"):
        word = message.split("'")[1] if "'" in message else ""
        return f"there is no command {quoted(word)}{nearest(word, context.command.commands)}"
    return f"{message}; see {context.command_path} --help"


def _flag(value: str, where: str) -> bool:
    if value not in ("true", "false"):
        raise ModelError(f"{where}: {quoted(value)} is neither true nor false")
    return value == "true"


def _number(value: str, where: str) -> float:
    """Written without a unit."""
    if not re.fullmatch(r"-?[0-9]{0,15}\.?[0-9]{1,15}(e-?[0-9]{1,2})?", value):
        raise ModelError(f"{where}: {quoted(value)} is not a number; write one as 0.85")
    return float(value)


def _name(value: str, where: str) -> str:
    return value


KNOBS: dict[str, Callable[[str, str], Any]] = {
    "overhead": parse_time, "reduce-rate": parse_bandwidth, "sharing": _name, "barrier": _flag,
    "fifo-depth": lambda value, where: whole(value, where, 0), "routing": _name,
    "routing-seed": lambda value, where: whole(value, where, 0, 2**32 - 1),
    "header": lambda value, where: whole(value, where, 0), "mtu": parse_bytes, "hop-latency": parse_time,
    "pcie-ceiling": _number, "nic-ceiling": _number, "incast": _number,
}  # fmt: skip
"""What reads the value of each, given the text and where it stands."""
