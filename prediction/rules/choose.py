"""A library by name, a topology and a call in words -> what the library would choose, and why."""

from __future__ import annotations

from collections.abc import Mapping

from prediction.rules import gloo, mpich, open_mpi, rccl
from prediction.rules.call import Call, Chosen
from topologies.errors import MeasurementError, nearest, quoted
from topologies.graph import Topology

VERSIONS = {"rccl": rccl.VERSIONS, "gloo": gloo.VERSIONS, "open-mpi": open_mpi.VERSIONS, "mpich": mpich.VERSIONS}
"""Libraries, and their versions whose rules are known; the first is taken where none is told."""


def choose(
    library: str,
    topology: Topology,
    collective: str,
    nbytes: int,
    version: str | None = None,
    environment: Mapping[str, str] | None = None,
    *,
    op: str = "sum",
    dtype: str = "float32",
    pick: str | None = None,
) -> Chosen:
    """``environment``: variables by the library's names; ``op="user"``: an operation of the program's own; ``pick``: what the program
    asks Gloo for. Raises RingscopeError: an unknown word, or a case whose rule is not known here."""
    if library not in VERSIONS:
        raise MeasurementError(f"library {quoted(library)} is not known{nearest(library, [*VERSIONS, 'nccl'])}")
    known = VERSIONS[library]
    if version is not None and version not in known:
        raise MeasurementError(f"{library} {quoted(version)}: the rules of {' and '.join(known)} are known; write one of them")
    if pick is not None and library != "gloo":
        raise MeasurementError(f"{library} chooses by itself; only Gloo's caller picks the algorithm")
    call, release = Call(collective, nbytes, len(topology.gpus), nodes(topology), dtype, op), version or known[0]
    if library == "gloo":
        return gloo.choose(call, release, environment, pick)
    if library == "rccl":
        return rccl.choose(call, rccl.bandwidths(topology), release, environment)
    if library == "open-mpi":
        return open_mpi.choose(call, release, environment)
    return mpich.choose(call, release, environment)


def nodes(topology: Topology) -> int:
    """Servers with GPUs; one where the topology names none."""
    return len({topology.node(gpu).server for gpu in topology.gpus})
