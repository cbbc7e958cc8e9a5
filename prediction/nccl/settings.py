"""The ``NCCL_*`` variables that change what the tuner chooses, read from the text a user would export."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches

from prediction.nccl.graphs import Path
from prediction.nccl.version import ALGORITHMS, COLLECTIVES, PROTOCOLS, Version
from topologies.errors import MeasurementError, nearest, quoted

_FUNCTIONS = {name.replace("-", ""): name for name in COLLECTIVES}
_ALGORITHMS = {name.replace("-", ""): name for name in ALGORITHMS}
_PROTOCOLS: dict[str, str] = {name: name for name in PROTOCOLS}
_LISTS_BY_FUNCTION = (2, 24)

_INTEGERS = {  # NCCL's name: (field, lowest, highest)
    "NCCL_MIN_CTAS": ("min_channels", 1, 64),
    "NCCL_MIN_NCHANNELS": ("min_channels", 1, 64),
    "NCCL_MIN_NRINGS": ("min_channels", 1, 64),
    "NCCL_MAX_CTAS": ("max_channels", 1, 64),
    "NCCL_MAX_NCHANNELS": ("max_channels", 1, 64),
    "NCCL_MAX_NRINGS": ("max_channels", 1, 64),
    "NCCL_NTHREADS": ("threads", 1, 1024),
    "NCCL_LL128_NTHREADS": ("ll128_threads", 1, 1024),
    "NCCL_NVLS_NCHANNELS": ("nvls_channels", 1, 64),
    "NCCL_NVLS_ENABLE": ("nvls", 0, 2),
    "NCCL_COLLNET_ENABLE": ("collnet", 0, 1),
    "NCCL_COLLNET_NODE_THRESHOLD": ("collnet_nodes", 1, 1 << 20),
    "NCCL_PAT_ENABLE": ("pat", 0, 2),
    "NCCL_LL128_C2C": ("ll128_c2c", 0, 1),
    "NCCL_NET_OVERHEAD": ("net_overhead_ns", 0, 1_000_000_000),
    "NCCL_BUFFSIZE": ("buffer", 1 << 13, 1 << 30),
    "NCCL_LL_BUFFSIZE": ("ll_buffer", 1 << 13, 1 << 30),
    "NCCL_LL128_BUFFSIZE": ("ll128_buffer", 1 << 13, 1 << 30),
    "NCCL_NVLS_CHUNKSIZE": ("nvls_chunk", 1 << 10, 1 << 30),
}
_LEVELS: dict[str, Path] = {"LOC": "LOC", "NVL": "NVL", "PIX": "PIX", "PXB": "PXB", "PHB": "PHB", "SYS": "SYS"}
_LEVELS |= {"0": "LOC", "1": "PIX", "2": "PXB", "3": "PHB", "4": "SYS", "5": "SYS"}
"""NCCL_P2P_LEVEL by word and, as older versions have it, by number."""
_WORDS = ("NCCL_ALGO", "NCCL_PROTO", "NCCL_THREAD_THRESHOLDS", "NCCL_P2P_DISABLE", "NCCL_P2P_LEVEL")
SEARCH = (
    "NCCL_CROSS_NIC", "NCCL_NET_GDR_LEVEL", "NCCL_NET_GDR_READ", "NCCL_NET_GDR_C2C",
    "NCCL_NVB_DISABLE", "NCCL_SHM_DISABLE", "NCCL_PXN_DISABLE", "NCCL_P2P_PXN_LEVEL", "NCCL_PXN_C2C", "NCCL_MNNVL_ENABLE",
    "NCCL_IB_HCA", "NCCL_IB_MERGE_NICS", "NCCL_NETDEVS_POLICY", "NCCL_TOPO_FILE", "NCCL_GRAPH_FILE",
)  # fmt: skip
"""Variables that change the topology search, so the graphs, not the tuner."""
OTHERS = (
    "NCCL_IB_QPS_PER_CONNECTION", "NCCL_IB_SPLIT_DATA_ON_QPS", "NCCL_IB_SL", "NCCL_IB_TC", "NCCL_IB_AR_THRESHOLD", "NCCL_IB_DISABLE",
    "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT", "NCCL_IB_GID_INDEX", "NCCL_IB_ADAPTIVE_ROUTING", "NCCL_SOCKET_IFNAME", "NCCL_NET",
    "NCCL_NET_PLUGIN", "NCCL_TUNER_PLUGIN", "NCCL_CTA_POLICY", "NCCL_CGA_CLUSTER_SIZE", "NCCL_NVLSTREE_MAX_CHUNKSIZE",
    "NCCL_P2P_NET_CHUNKSIZE", "NCCL_WIN_ENABLE", "NCCL_GRAPH_REGISTER", "NCCL_LOCAL_REGISTER", "NCCL_RUNTIME_CONNECT", "NCCL_DEBUG",
    "NCCL_DEBUG_SUBSYS", "NCCL_DEBUG_FILE", "NCCL_TOPO_DUMP_FILE", "NCCL_GRAPH_DUMP_FILE", "NCCL_CUMEM_ENABLE", "NCCL_LAUNCH_MODE",
    "NCCL_TREE_THRESHOLD", "NCCL_LL_THRESHOLD", "NCCL_SINGLE_RING_THRESHOLD",
)  # fmt: skip
"""Others that are NCCL's, so that they are not taken for a misspelt one: none of them changes what is modelled here."""


@dataclass(frozen=True, slots=True)
class Settings:
    """What was exported; the defaults are NCCL's own. ``algorithms`` and ``protocols``: the words allowed for each collective, for
    those that a variable names."""

    algorithms: Mapping[str, frozenset[str]] = field(default_factory=dict)
    protocols: Mapping[str, frozenset[str]] = field(default_factory=dict)
    min_channels: int | None = None
    max_channels: int | None = None
    threads: int | None = None
    ll128_threads: int | None = None
    thresholds: tuple[int, ...] = ()
    """NCCL_THREAD_THRESHOLDS [B]: tree LL, LL128, Simple, then ring's; below 0 keeps the default."""
    nvls: int = 2
    nvls_channels: int | None = None
    collnet: int | None = None
    collnet_nodes: int = 2
    pat: int = 2
    ll128_c2c: int = 1
    net_overhead_ns: int | None = None
    p2p: Path | None = None
    """The farthest path over which GPUs reach each other's memory (NCCL_P2P_LEVEL); LOC: none do (NCCL_P2P_DISABLE=1)."""
    buffer: int = 4 << 20
    """Bytes of a channel's buffer with protocol Simple, for one peer; LL's and LL128's are on the wire, flags included."""
    ll_buffer: int = 512 << 10
    ll128_buffer: int = 4_915_200
    nvls_chunk: int = 128 << 10
    elsewhere: tuple[str, ...] = ()
    """Variables given that the tuner does not read: they act on the search (``SEARCH``) or on how data moves."""


def settings(environment: Mapping[str, str], version: Version) -> Settings:
    """Read variables by NCCL's names; of several names for one thing the newest counts. Raises MeasurementError: a name that is not
    NCCL's, a value out of range, a word that is no algorithm or protocol."""
    values: dict[str, object] = {}
    elsewhere = []
    for name in sorted(environment, key=lambda name: "CTAS" not in name):
        text = environment[name].strip()
        if name in _INTEGERS:
            key, low, high = _INTEGERS[name]
            values.setdefault(key, _integer(name, text, low, high))
        elif name == "NCCL_ALGO":
            values["algorithms"] = _by_function(name, text, _ALGORITHMS, version)
        elif name == "NCCL_PROTO":
            values["protocols"] = _by_function(name, text, _PROTOCOLS, version)
        elif name == "NCCL_P2P_DISABLE":
            if _integer(name, text, 0, 1):
                values["p2p"] = "LOC"
        elif name == "NCCL_P2P_LEVEL":
            if text.upper() not in _LEVELS:
                raise MeasurementError(f"environment: {name}: {quoted(text)} is not a level{nearest(text.upper(), _LEVELS)}")
            values.setdefault("p2p", _LEVELS[text.upper()])
        elif name == "NCCL_THREAD_THRESHOLDS":
            parts = text.split()
            if len(parts) > 6:
                raise MeasurementError(f"environment: {name}: {len(parts)} numbers; write at most 6")
            values["thresholds"] = tuple(_integer(name, part, -2, 1 << 40) for part in parts)
        else:
            known = [*_INTEGERS, *_WORDS, *SEARCH, *OTHERS]
            misspelt = name not in known and get_close_matches(name[:80], known, n=1, cutoff=0.88)
            if misspelt or not name.startswith("NCCL_"):
                raise MeasurementError(f"environment: {quoted(name)} is not a variable of NCCL{nearest(name, known)}")
            elsewhere.append(name)
    least, most = values.get("min_channels"), values.get("max_channels")
    if isinstance(least, int) and isinstance(most, int) and least > most:
        raise MeasurementError(f"environment: NCCL_MIN_CTAS = {least} is above NCCL_MAX_CTAS = {most}; write {most} or less")
    build: Callable[..., Settings] = Settings
    return build(**values, elsewhere=tuple(elsewhere))


def _integer(name: str, text: str, low: int, high: int) -> int:
    if not re.fullmatch(r"[+-]?[0-9]{1,18}", text):
        raise MeasurementError(f"environment: {name} = {quoted(text)} is not a whole number; write {low} to {high}")
    value = int(text)
    if not low <= value <= high:
        raise MeasurementError(f"environment: {name} = {value} is out of range; write {low} to {high}")
    return value


def _by_function(name: str, text: str, words: Mapping[str, str], version: Version) -> dict[str, frozenset[str]]:
    """``ring,tree``, ``^tree``; from 2.24 on also ``ring;allreduce:tree,nvls;broadcast:ring``, the list without a name first."""
    allowed: dict[str, frozenset[str]] = {}
    for place, part in enumerate(text[:1000].split(";")):
        function, colon, listed = part.rpartition(":")
        if colon and version < _LISTS_BY_FUNCTION:
            raise MeasurementError(f"environment: {name}: a list for one function needs NCCL 2.24; write it without {quoted(function)}")
        if place and not colon:
            raise MeasurementError(f"environment: {name}: list {place + 1} names no function; write allreduce:{part[:40]}")
        key = function.strip().lower()
        if colon and key not in _FUNCTIONS:
            raise MeasurementError(f"environment: {name}: {quoted(function)} is not a function{nearest(key, _FUNCTIONS)}")
        chosen = _list(name, listed, words)
        allowed |= {_FUNCTIONS[key]: chosen} if colon else dict.fromkeys(COLLECTIVES, chosen)
    return allowed


def _list(name: str, text: str, words: Mapping[str, str]) -> frozenset[str]:
    """The words of a list, or all others after ``^``."""
    text = text.strip()
    out = text.startswith("^")
    named = set()
    for word in text.removeprefix("^").split(","):
        key = word.strip().lower().replace("_", "").replace("-", "")
        if key not in words:
            raise MeasurementError(f"environment: {name}: {quoted(word)} is not one{nearest(key, words)}")
        named.add(words[key])
    return frozenset(words.values()) - named if out else frozenset(named)
