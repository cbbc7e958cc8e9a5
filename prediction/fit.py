"""A machine of a given number of GPUs: a topology whose size the user left open takes it from a log, or from ``--ranks``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from prediction.limits import machine_of, names_file
from topologies import Topology, get
from topologies.errors import TopologyError


@dataclass(frozen=True, slots=True)
class Fitted:
    """The topology, in words which of its parameters were taken from the number of ranks (empty: none), and all its parameters."""

    topology: Topology
    note: str
    params: Mapping[str, str]


def fitted(
    spec: str,
    params: Mapping[str, str],
    nranks: int,
    nservers: int | None = None,
    who: str = "the log",
    faults: Sequence[str] = (),
    seed: int = 0,
) -> Fitted:
    """``spec``, ``params`` and ``faults`` as for ``machine_of``; a generator that takes ``gpus`` (a server) and ``nodes`` gets those the
    user did not give such that there are ``nranks`` GPUs: on ``nservers`` servers, else on as few as hold them.

    Raises TopologyError, in one line with both numbers, when the GPUs cannot be as many as the ranks."""
    taken = {} if names_file(spec) else _taken(spec, params, nranks, nservers, who)
    topology = machine_of(spec, {**params, **taken}, faults, seed)
    gpus = len(topology.gpus)
    if gpus != nranks:
        raise TopologyError(f"{topology.name} has {gpus} GPUs, but {who} has {nranks} ranks; {_advice(spec, params)}")
    hosts = f" on {nservers} server{'s' * (nservers > 1)}" if nservers else ""
    values = ", ".join(f"{key}={value}" for key, value in taken.items())
    return Fitted(topology, f"{who} has {nranks} ranks{hosts}: {values}" if taken else "", {**params, **taken})


def _taken(spec: str, params: Mapping[str, str], nranks: int, nservers: int | None, who: str) -> dict[str, str]:
    known = {parameter.name: parameter.default for parameter in get(spec).parameters}
    free = [key for key in ("nodes", "gpus") if key in known and key not in params]
    if "nodes" not in known:
        return {"gpus": str(nranks)} if free else {}
    if not free:
        return {}
    given = {key: int(params[key]) for key in ("nodes", "gpus") if params.get(key, "").isdigit() and int(params[key]) > 0}
    full = known["gpus"] if isinstance(known.get("gpus"), int) else 1
    assert isinstance(full, int)
    if "nodes" in given:
        nodes = given["nodes"]
    elif "gpus" in given:
        nodes = -(-nranks // given["gpus"])
    else:
        nodes = nservers or -(-nranks // full)
    if nranks % nodes:
        raise TopologyError(f"{spec}: {who} has {nranks} ranks, which {nodes} servers cannot share evenly; give nodes and gpus (a server)")
    values = {"nodes": str(nodes), "gpus": str(nranks // nodes)}
    return {key: values[key] for key in free}


def _advice(spec: str, params: Mapping[str, str]) -> str:
    if names_file(spec):
        return "name the cluster that was measured"
    return f"leave {' and '.join(params)} out, or give those of the measured cluster" if params else "name the machine that was measured"
