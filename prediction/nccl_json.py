"""The JSON that nccl-tests writes with ``-J`` (file versions 1 and 2: one object with config and results) into measured tables."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any, NoReturn

from prediction.identify import MAX_RANKS
from prediction.log_file import MAX_ROWS, Log
from prediction.nccl_lines import COMMAND, OPS
from prediction.nccl_tests import Run, run_tables
from prediction.tables import ITEMSIZE, Half, Line, Printed, Table
from topologies.errors import MeasurementError, nearest, quoted

MAX_JSON = 16 << 20  # bytes; a sweep with the time of each iteration on 64 processes has about 1 MiB
MAX_NESTED = 4 * MAX_ROWS  # lists and objects in all: an empty one costs 60 bytes of memory for 3 of the file
_COLUMNS = ["redop", "root", "time", "algbw", "busbw", "#wrong"]


def read_json(log: Log) -> list[Table]:
    """Tables of one file, ``Row.line`` counting its results from 0. Results that cannot be read are left out and named by
    their path in ``Table.notes``. Raises MeasurementError, with line and column or with a path, for what is not JSON or not of
    nccl-tests, beyond 16 MiB, and when no result is left."""
    data = _parsed(log)
    if not isinstance(data, dict) or not isinstance(data.get("results"), list):
        there = data if isinstance(data, dict) else ()
        hint = nearest("results", there) if there else ""
        raise MeasurementError(f"{log.name}: results: no list of this name; nccl-tests -J writes config and results{hint}")
    if len(data["results"]) > MAX_ROWS:
        raise MeasurementError(f"{log.name}: results: {len(data['results'])}, more than {MAX_ROWS}; split the file")
    run = Run(columns=_COLUMNS, word="result")
    try:
        _header(run, data)
    except ValueError as error:
        raise MeasurementError(f"{log.name}: {error}") from None
    for i, result in enumerate(data["results"]):
        try:
            run.read_row(_line(i, result))
        except ValueError as error:
            run.broken.append(str(error))
    if not run.lines:
        why = run.broken[0] if run.broken else "only sizes of 0" if run.empty else "an empty list; was the run stopped?"
        raise MeasurementError(f"{log.name}: results: no measured row to read; found {why}")
    return run_tables(run, log.name)


def _parsed(log: Log) -> Any:
    text = log.whole(MAX_JSON)
    nested = text.count("{") + text.count("[")
    if nested > MAX_NESTED:
        raise MeasurementError(f"{log.name}: {nested} lists and objects, more than {MAX_NESTED}; this is no file of nccl-tests")
    try:
        return json.loads(text, object_pairs_hook=_unique, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        ended = error.pos >= len(text.rstrip())
        cut = "; the file is cut short: was the run stopped?" if ended or error.msg.startswith("Unterminated") else ""
        raise MeasurementError(f"{log.name}:{error.lineno}: column {error.colno}: not JSON: {error.msg}{cut}") from None
    except RecursionError:
        raise MeasurementError(f"{log.name}: lists or objects nested too deep; nccl-tests nests 5") from None
    except ValueError as error:  # a key that stands twice, NaN, an integer of thousands of digits
        reason = str(error).partition("; use sys.")[0]
        raise MeasurementError(f"{log.name}: {reason}") from None


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {quoted(next(name for name in found if names.count(name) > 1))} stands twice in one object")
    return found


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is not a number that JSON allows")


def _header(run: Run, data: Mapping[str, Any]) -> None:
    """Command, threads, GPUs and ranks. A process of several GPUs lists only its first one (``writeDeviceReport`` parses one line
    a process): the rest are filled in where the ranks listed leave room for them."""
    args, config = data.get("args"), data.get("config")
    if isinstance(args, list) and args and isinstance(args[0], str) and (found := COMMAND.search(PurePosixPath(args[0]).name)):
        run.commands.append((0, found[1]))
    if not isinstance(config, dict):
        return
    per = 1
    if "nthreads" in config and "ngpus" in config:
        run.launch = (_whole(config, "nthreads", "config.", 1, MAX_RANKS), _whole(config, "ngpus", "config.", 1, MAX_RANKS))
        per = run.launch[0] * run.launch[1]
    devices = config.get("devices", [])
    if not isinstance(devices, list):
        raise ValueError(f"config.devices: {quoted(devices)} is not a list")
    for i, device in enumerate(devices):
        path = f"config.devices[{i}]"
        if not isinstance(device, dict):
            raise ValueError(f"{path}: {quoted(device)} is not an object")
        rank = _whole(device, "rank", f"{path}.", 0, MAX_RANKS)
        members = run.ranks.setdefault(str(device.get("group", "")), set())
        run.again += rank in members
        members.add(rank)
        if isinstance(device.get("hostname"), str):
            run.hosts.add(device["hostname"])
        if isinstance(device.get("device_info"), str) and device["device_info"].strip():
            run.models.add(device["device_info"].strip())
    for members in run.ranks.values():
        if per > 1 and all(rank % per == 0 for rank in members):
            if len(members) * per > MAX_RANKS:
                raise ValueError(f"config: {len(members)} processes of {per} GPUs are more than {MAX_RANKS} ranks")
            members.update([rank + i for rank in members for i in range(per)])


def _line(i: int, result: Any) -> Line:
    """Raises ValueError, starting with the path, for anything but a result as nccl-tests writes it."""
    path = f"results[{i}]"
    if not isinstance(result, dict):
        raise ValueError(f"{path}: {quoted(result)} is not an object")
    path += "."
    size, count = _whole(result, "size", path, 0, 2**63 - 1), _whole(result, "count", path, 0, 2**63 - 1)
    dtype, op = result.get("type"), result.get("redop")
    if not isinstance(dtype, str) or dtype not in ITEMSIZE:
        raise ValueError(f"{path}type: {quoted(dtype)} is not known{nearest(str(dtype)[:80], ITEMSIZE)}")
    if not isinstance(op, str) or op not in OPS:
        raise ValueError(f"{path}redop: {quoted(op)} is not known{nearest(str(op)[:80], OPS)}")
    reduction = None if op == "none" else op
    if size == 0:
        return Line(i, 0, count, dtype, reduction, None, ())
    root = result.get("root", -1)
    if isinstance(root, str) and root.isascii() and root.strip().lstrip("-").isdigit() and len(root) < 20:
        root = int(root) if root.strip().count("-") < 2 else None  # printed with spaces before it: "    -1"
    if isinstance(root, bool) or not isinstance(root, int) or not -1 <= root < MAX_RANKS:
        raise ValueError(f"{path}root: {quoted(result.get('root'))} is not a whole number from -1")
    halves = [_half(result[key], f"{path}{key}") for key in ("out_of_place", "in_place") if result.get(key) is not None]
    if result.get("out_of_place") is None:
        raise ValueError(f"{path}out_of_place: there is none")
    return Line(i, size, count, dtype, reduction, None if root < 0 else root, tuple(halves))


def _half(half: Any, path: str) -> Half:
    """Numbers have 6 decimals: they stand for anything within half a unit of the last."""
    if not isinstance(half, dict):
        raise ValueError(f"{path}: {quoted(half)} is not an object")
    time = _number(half, "cpu_time" if "cpu_time" in half else "time", path, 1e-6)
    algbw, busbw = _number(half, "alg_bw", path, 0), _number(half, "bus_bw", path, 0)
    wrong = None if half.get("nwrong") is None else _number(half, "nwrong", path, 0)
    count = int(wrong) if wrong is not None and wrong.is_integer() else None
    return Half(_printed(time), _printed(algbw), _printed(busbw), count, checked=wrong is not None)


def _printed(value: float) -> Printed:
    return Printed(value, min(0.5e-6, value / 2) if value else 0.5e-6)


def _whole(where: Mapping[str, Any], key: str, path: str, low: int, high: int) -> int:
    value = where.get(key)
    if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
        raise ValueError(f"{path}{key}: {quoted(value)} is not a whole number from {low} to {high}")
    return value


def _number(where: Mapping[str, Any], key: str, path: str, low: float) -> float:
    value = where.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float) or not low <= value <= 1e15:
        raise ValueError(f"{path}.{key}: {quoted(value)} is not a number from {low:g} to 1e15")
    return float(value)
