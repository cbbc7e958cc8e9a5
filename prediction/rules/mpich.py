"""MPICH's selection on one communicator level.

Version 4 reads its built-in selection file (``src/mpi/coll/coll_selection.json``); version 3 has the thresholds in code, with variables.
Both cut a vector only for built-in operations and where every rank of the largest power of two gets an element.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from prediction.rules.call import USER_OP, Call, Chosen, Row, unknown
from topologies.errors import MeasurementError, nearest, quoted
from topologies.units import format_bytes

VERSIONS = ("4", "3")
COLLECTIVES = ("all-reduce", "broadcast", "reduce", "all-gather", "reduce-scatter", "all-to-all", "gather", "scatter", "barrier")
_FILE_SHORT = 8
_SHORT = "MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE"
_REDUCE_SHORT = 2048
_BROADCAST_SHORT, _BROADCAST_LONG, _BROADCAST_RANKS = 12288, 524288, 8
_GATHER_SHORT, _GATHER_LONG = 81920, 524288
_SCATTER_LONG = 524288
_EXCHANGE_SHORT, _EXCHANGE_MEDIUM, _EXCHANGE_RANKS = 256, 32768, 8

_BINOMIAL = Row("binomial-tree", "binomial")


def choose(call: Call, version: str = "4", environment: Mapping[str, str] | None = None) -> Chosen:
    """Raises MeasurementError: a collective without a rule here, or a variable that is not MPICH's."""
    short, elsewhere = _variables(environment or {}, version)
    row, rule = _select(call, version, short)
    note = "forms in two levels (inside a node, then between nodes) and those of the device below are not modelled"
    return Chosen("mpich", version, call, (row,), rule, (note,), elsewhere=elsewhere)


def _select(call: Call, version: str, short: int) -> tuple[Row, str]:
    match call.collective:
        case "all-reduce":
            return _all_reduce(call, short)
        case "broadcast":
            return _broadcast(call, inclusive=version == "4")
        case "reduce":
            return _reduce(call)
        case "all-gather":
            return _all_gather(call)
        case "reduce-scatter":
            return _reduce_scatter(call)
        case "all-to-all":
            return _all_to_all(call)
        case "gather" | "scatter":
            return _BINOMIAL, "always"
        case "barrier":
            return Row("dissemination", "k_dissemination", options={"radix": 2}), "always"
    raise unknown("MPICH", call.collective, COLLECTIVES)


def _whole(call: Call) -> str | None:
    """Why the vector is not cut."""
    if call.op == USER_OP:
        return "the operation is the program's own"
    return f"fewer elements than the {call.power} ranks of the largest power of two" if call.elements < call.power else None


def _all_reduce(call: Call, short: int) -> tuple[Row, str]:
    doubling = Row("recursive-doubling", "recursive_doubling")
    if call.nbytes <= short:
        return doubling, f"up to {format_bytes(short)}"
    if reason := _whole(call):
        return doubling, reason
    return Row("halving-doubling", "reduce_scatter_allgather"), f"above {format_bytes(short)}, a built-in operation, enough elements"


def _broadcast(call: Call, *, inclusive: bool) -> tuple[Row, str]:
    """``inclusive``: the file says "up to" where the code says "below"."""
    if call.ranks < _BROADCAST_RANKS:
        return _BINOMIAL, f"fewer than {_BROADCAST_RANKS} ranks"
    if call.nbytes < _BROADCAST_SHORT + inclusive:
        return _BINOMIAL, f"{'up to' if inclusive else 'below'} {format_bytes(_BROADCAST_SHORT)}"
    if call.ranks == call.power and call.nbytes < _BROADCAST_LONG + inclusive:
        row = Row("scatter-recursive-doubling", "scatter_recursive_doubling_allgather")
        return row, f"a power of two of ranks, {'up to' if inclusive else 'below'} {format_bytes(_BROADCAST_LONG)}"
    limit = _BROADCAST_LONG if call.ranks == call.power else _BROADCAST_SHORT
    return Row("scatter-all-gather", "scatter_ring_allgather"), f"beyond {format_bytes(limit)}"


def _reduce(call: Call) -> tuple[Row, str]:
    if call.nbytes <= _REDUCE_SHORT:
        return _BINOMIAL, f"up to {format_bytes(_REDUCE_SHORT)}"
    if reason := _whole(call):
        return _BINOMIAL, reason
    return Row("rabenseifner", "reduce_scatter_gather"), f"above {format_bytes(_REDUCE_SHORT)}, a built-in operation, enough elements"


def _all_gather(call: Call) -> tuple[Row, str]:
    power = call.ranks == call.power
    limit = _GATHER_LONG if power else _GATHER_SHORT
    ranks = "a power of two of ranks" if power else "ranks that are no power of two"
    if call.nbytes >= limit:
        return Row("ring", "ring"), f"{ranks}, {format_bytes(limit)} in all or more"
    row = Row("recursive-doubling", "recursive_doubling") if power else Row("bruck", "brucks")
    return row, f"{ranks}, below {format_bytes(limit)} in all"


def _reduce_scatter(call: Call) -> tuple[Row, str]:
    if call.nbytes < _SCATTER_LONG:
        return Row("recursive-halving", "recursive_halving"), f"below {format_bytes(_SCATTER_LONG)} in all"
    return Row("pairwise", "pairwise"), f"{format_bytes(_SCATTER_LONG)} in all or more"


def _all_to_all(call: Call) -> tuple[Row, str]:
    if call.ranks >= _EXCHANGE_RANKS and call.block <= _EXCHANGE_SHORT:
        return Row("bruck", "brucks"), f"{_EXCHANGE_RANKS} ranks or more, blocks up to {format_bytes(_EXCHANGE_SHORT)}"
    if call.block <= _EXCHANGE_MEDIUM:
        return Row("direct", "scattered"), f"blocks up to {format_bytes(_EXCHANGE_MEDIUM)}"
    return Row("pairwise", "pairwise"), f"blocks above {format_bytes(_EXCHANGE_MEDIUM)}"


def _variables(environment: Mapping[str, str], version: str) -> tuple[int, tuple[str, ...]]:
    """Bytes up to which an all-reduce counts as short, and the variables that change nothing here."""
    short, elsewhere = (_FILE_SHORT if version == "4" else 2048), []
    for name, value in environment.items():
        if not name.startswith("MPIR_CVAR_"):
            raise MeasurementError(f"environment: {quoted(name)} is not a variable of MPICH{nearest(name, [_SHORT])}")
        if name != _SHORT or version == "4":
            elsewhere.append(name)
        elif not re.fullmatch(r"[0-9]{1,18}", value):
            raise MeasurementError(f"environment: {name} = {quoted(value)} is not a number of bytes; write 2048")
        else:
            short = int(value)
    return short, tuple(elsewhere)
