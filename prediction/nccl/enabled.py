"""Which algorithms and protocols NCCL may take at all: a reason for each that it may not."""

from __future__ import annotations

from dataclasses import dataclass

from prediction.nccl.bandwidth import GATHERING
from prediction.nccl.constants import OLD
from prediction.nccl.graphs import PATHS, Graph, Graphs
from prediction.nccl.settings import Settings
from prediction.nccl.version import Algorithm, Protocol

_MOST_NVLS_LOCAL, _MOST_COLLNET_LOCAL = 32, 8
_MULTICAST_SUMS = ("int32", "uint32", "int64", "uint64", "float16", "bfloat16", "float32", "float64")
_MULTICAST_EXTREMES = ("int32", "uint32", "int64", "uint64", "float16", "bfloat16")
"""Types that NVSwitches add, and of which they find the smallest or largest (general knowledge of ``multimem.red``)."""
FP8 = ("float8_e4m3", "float8_e5m2")


@dataclass(frozen=True, slots=True)
class Call:
    """One collective call: ``nbytes`` is nccl-tests' size, the larger of the send and the receive buffer; ``operations`` of a group
    are tuned as one."""

    collective: str
    nbytes: int
    op: str = "sum"
    dtype: str = "float32"
    operations: int = 1


def refusal(graphs: Graphs, graph: Graph | None, settings: Settings, call: Call, algorithm: Algorithm, protocol: Protocol) -> str | None:
    """Why NCCL does not consider the row, as a phrase; None: it does."""
    if not _exists(call.collective, algorithm):
        return f"NCCL has no {algorithm} {call.collective}"
    if algorithm not in ("ring", "tree") and protocol != "simple":
        return f"{algorithm} has protocol simple only"
    reason = _machine(graphs, graph, settings, call, algorithm)
    if reason or graph is None:
        return reason or "the search finds no graph"
    if algorithm not in settings.algorithms.get(call.collective, (algorithm,)):
        kept = algorithm == "ring" and call.collective != "all-reduce" and graphs.version < OLD
        if not kept:  # old versions never gave up the ring where it is the only one
            return "NCCL_ALGO leaves it out"
    if protocol not in settings.protocols.get(call.collective, (protocol,)):
        return "NCCL_PROTO leaves it out"
    return _ll128(graphs, graph, settings, call, algorithm) if protocol == "ll128" else None


def _exists(collective: str, algorithm: Algorithm) -> bool:
    if collective == "all-reduce":
        return algorithm != "pat"
    return algorithm == "ring" or (collective in GATHERING and algorithm in ("nvls", "collnet-direct", "pat"))


def _machine(graphs: Graphs, graph: Graph | None, settings: Settings, call: Call, algorithm: Algorithm) -> str | None:
    """Reasons of the machine, of the version and of switches that turn whole algorithms off."""
    if algorithm.startswith("collnet"):
        return _collnet(graphs, settings, algorithm, call)
    if algorithm.startswith("nvls"):
        return _nvls(graphs, graph, settings, call, algorithm)
    if algorithm == "pat":
        return _pat(graphs, settings, call)
    return None


def _uses_collnet(graphs: Graphs, settings: Settings) -> str | None:
    """Why the network's own reductions are not used."""
    if not graphs.collnet:
        return "the network plugin has no CollNet (SHARP)"
    if settings.collnet != 1:
        return "NCCL_COLLNET_ENABLE is not set"
    if graphs.nodes < max(2, settings.collnet_nodes):
        return f"CollNet needs {max(2, settings.collnet_nodes)} nodes (NCCL_COLLNET_NODE_THRESHOLD)"
    if graphs.most_local_ranks > _MOST_COLLNET_LOCAL:
        return f"CollNet takes {_MOST_COLLNET_LOCAL} ranks a node at most"
    return None


def _gathers(graphs: Graphs, settings: Settings, call: Call, heads: int) -> str | None:
    """Why switches do not gather or scatter between nodes."""
    if call.collective not in GATHERING or graphs.nodes == 1:
        return None
    if not graphs.collnet_gather:
        return "the network plugin does not gather or scatter in switches"
    return None if graphs.most_local_ranks <= heads else "more ranks a node than heads"


def _collnet(graphs: Graphs, settings: Settings, algorithm: Algorithm, call: Call) -> str | None:
    if algorithm == "collnet-direct" and not graphs.nvswitch:
        return "CollNetDirect needs an NVSwitch"
    heads = graphs.of(algorithm)
    return _uses_collnet(graphs, settings) or _gathers(graphs, settings, call, heads.channels if heads else 0)


def _nvls(graphs: Graphs, graph: Graph | None, settings: Settings, call: Call, algorithm: Algorithm) -> str | None:
    if graphs.version < (2, 17) or (algorithm == "nvls-tree" and graphs.version < OLD):
        return f"{algorithm} is newer than NCCL {graphs.version}"
    if graphs.sm_min < 90 or not graphs.nvswitch or graph is None:
        return "NVLS needs Hopper or newer behind NVSwitches that multicast"
    if settings.nvls == 0:
        return "NCCL_NVLS_ENABLE=0"
    if call.collective not in ("all-gather",) and not _multicasts(graphs, call):
        return f"NVSwitches do not reduce {call.op} of {call.dtype}"
    if call.collective in GATHERING and graphs.most_local_ranks > _MOST_NVLS_LOCAL:
        return f"NVLS gathers and scatters for {_MOST_NVLS_LOCAL} ranks a node at most"
    if algorithm == "nvls-tree":
        return "NVLSTree needs 2 nodes" if graphs.nodes == 1 else None
    if graphs.nodes == 1:
        return None
    return _uses_collnet(graphs, settings) or _gathers(graphs, settings, call, graph.channels)


def _multicasts(graphs: Graphs, call: Call) -> bool:
    if call.dtype in FP8:
        return graphs.sm_min >= 100 and call.op in ("sum", "min", "max")
    return call.dtype in {"sum": _MULTICAST_SUMS, "min": _MULTICAST_EXTREMES, "max": _MULTICAST_EXTREMES}.get(call.op, ())


def _pat(graphs: Graphs, settings: Settings, call: Call) -> str | None:
    if graphs.version < (2, 23):
        return f"pat is newer than NCCL {graphs.version}"
    if settings.pat == 0 or graphs.sm_min < 60:
        return "NCCL_PAT_ENABLE=0" if settings.pat == 0 else "PAT needs Pascal or newer"
    if settings.pat == 2 and (graphs.ranks != graphs.nodes or not graphs.host_net):
        return "PAT needs one rank a node and a NIC driven by the host"
    return f"PAT does not reduce with {call.op}" if call.collective == "reduce-scatter" and call.op == "avg" else None


def _ll128(graphs: Graphs, graph: Graph, settings: Settings, call: Call, algorithm: Algorithm) -> str | None:
    """LL128 relies on 128-byte stores staying whole; NCCL_PROTO takes it at the user's risk."""
    if call.collective in settings.protocols:
        return None
    far = "PXN" if graphs.sm_min >= 90 else "PXB"
    if PATHS.index(graph.type_inter) > PATHS.index(far) or (graph.type_inter == "P2C" and not settings.ll128_c2c):
        return f"LL128 needs NICs as near as {far}, found {graph.type_inter}"
    if PATHS.index(graph.type_intra) > PATHS.index("NVB" if graphs.version >= OLD else "NVL"):
        return f"LL128 needs NVLink inside a node, found {graph.type_intra}"
    low, high = graphs.sm_min, graphs.sm_max
    fit = low in (70, 80, 90) and low == high if graphs.version < (2, 25) else low >= 70 and (low == high or low >= 90)
    if not fit:
        return f"LL128 is not used on compute capability {low}" + (f" to {high}" if high != low else "")
    if low == 90 and graphs.cuda_11_8 and call.collective == "all-reduce" and algorithm == "ring" and graphs.ranks == 2:
        return "LL128 is off for 2 ranks with CUDA 11.8"
    return None
