"""Runs with something wrong, for bench/doctor.py: each draws how bad it is, and where."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.library.predict import Calls
from prediction.library.wire import Wire
from topologies import make
from topologies.faults import apply_faults
from topologies.graph import Link, Topology

_HOPS, _RATES = 0.12, 0.02
"""By how much constants are off, in log."""


@dataclass(frozen=True)
class Case:
    """What the doctor is told (``topology``, ``asked``) and what happened: seconds by size."""

    topology: Topology
    asked: Asked
    collective: str
    times: np.ndarray
    detail: str


Random = np.random.Generator
Maker = Callable[[Random, Topology, Asked, str, Sequence[int]], Case | None]


def _case(
    random: Random, told: Topology, asked: Asked, collective: str, sizes: Sequence[int], detail: str = "", *, seen: Topology | None = None,
    machine: Topology | None = None, environment: Mapping[str, str] | None = None, net: Mapping[str, float] | None = None,
) -> Case:  # fmt: skip
    """``seen``: what the library takes the machine for; ``machine``: what it is; ``net``: factors of constants."""
    seen = seen or told
    really = replace(asked, environment=dict(environment or {}))
    constants = Constants.of(seen, really)
    drawn = {name: random.normal(0, _RATES if name in ("nvlink", "nvls", "nic") else _HOPS) for name in Constants.names()}
    values = {name: getattr(constants, name) * float(np.exp(off)) for name, off in drawn.items() if name != "local"}
    values = {name: min(value, 0.98) if name in ("nvlink", "nvls", "nic") else value for name, value in values.items()}
    for name, factor in (net or {}).items():
        values[name] = values[name] * factor
    calls = Calls(seen, collective, really, constants.replaced(**values))
    if machine is not None:
        calls.wire = Wire(machine, constants.replaced(**values))
    return Case(told, asked, collective, np.array([calls.row(size).time_s for size in sizes]), detail)


def healthy(random: Random, topology: Topology, asked: Asked, collective: str, sizes: Sequence[int]) -> Case:
    return _case(random, topology, asked, collective, sizes)


def _nics(topology: Topology, server: int) -> list[str]:
    return [node.name for node in topology.nodes if node.kind == "nic" and node.server == server]


def _servers(topology: Topology) -> int:
    return len(topology.groups["servers"])


def _rescaled(topology: Topology, change: Callable[[Link], float]) -> Topology:
    links = [replace(x, bandwidth=x.bandwidth * change(x)) for x in topology.links]
    return Topology.build(topology.name, topology.nodes, links, topology.groups, topology.dims)


def _cables(topology: Topology, nics: Sequence[str], factor: float) -> Topology:
    """NICs' cables to switches at 1/factor."""
    kinds = {node.name: node.kind for node in topology.nodes}

    def change(link: Link) -> float:
        mine = {link.src, link.dst} & set(nics) and "switch" in (kinds[link.src], kinds[link.dst])
        return 1 / factor if mine else 1.0

    return _rescaled(topology, change)


def _p2p(random: Random, topology: Topology, *call: object) -> Case | None:
    kinds = {link.kind for link in topology.links}
    if "nvlink4" not in kinds and "nvlink3" not in kinds:
        return None
    gpu = "h100" if "nvlink4" in kinds else "a100"
    bare = make("custom", {"gpu": gpu, "intra": "pcie-shm", "nodes": str(_servers(topology))})
    return _case(random, topology, *call, seen=bare)  # type: ignore[arg-type]


def _crossing(random: Random, topology: Topology, *call: object) -> Case | None:
    if not any(link.kind.startswith("nvlink") for link in topology.links):
        return None
    lost = topology.gpus[int(random.integers(len(topology.gpus)))]
    rate = float(random.uniform(14e9, 26e9))
    links = [
        replace(x, bandwidth=min(x.bandwidth, rate)) if lost in (x.src, x.dst) else x
        for x in topology.links
        if not (x.kind.startswith("nvlink") and lost in (x.src, x.dst))
    ]
    seen = Topology.build(topology.name, topology.nodes, links, topology.groups, topology.dims)
    return _case(random, topology, *call, f"{lost} {rate / 1e9:.0f}", seen=seen)  # type: ignore[arg-type]


def _through_host(low: float, high: float, hop: tuple[float, float], message: tuple[float, float]) -> Maker:
    def made(random: Random, topology: Topology, *call: object) -> Case | None:
        if _servers(topology) < 2:
            return None
        kinds = {node.name: node.kind for node in topology.nodes}
        nic = _nics(topology, 0)[0]
        hub = next(x for x in topology.graph[nic] if kinds[x] == "pcie")
        up = sum(topology.link(hub, x).bandwidth for x in topology.graph[hub] if kinds[x] == "cpu")
        own = sum(kinds[x] == "nic" for x in topology.graph[hub])
        cable = next(topology.link(nic, x).bandwidth for x in topology.graph[nic] if kinds[x] == "switch")
        part = float(random.uniform(low, high))
        every = [name for server in range(_servers(topology)) for name in _nics(topology, server)]
        slow = _cables(topology, every, max(1.0, cable / (part * up / own)))
        net = {"net_hop": 1 + float(random.uniform(*hop)) / 3.2, "message": float(random.uniform(*message))}
        return _case(random, topology, *call, f"{part:.2f}", machine=slow, net=net)  # type: ignore[arg-type]

    return made


def _one_nic(random: Random, topology: Topology, *call: object) -> Case | None:
    if _servers(topology) < 2:
        return None
    keep = int(random.integers(len(_nics(topology, 0))))
    dead = [f"dead-nic:{name}" for s in range(_servers(topology)) for i, name in enumerate(_nics(topology, s)) if i != keep]
    return _case(random, topology, *call, f"nic{keep}", seen=apply_faults(topology, dead))  # type: ignore[arg-type]


def _nic_down(random: Random, topology: Topology, *call: object) -> Case | None:
    if _servers(topology) < 2:
        return None
    down = int(random.integers(1, 4))
    nics = [str(name) for name in random.choice(_nics(topology, 0), down, replace=False)]
    return _case(random, topology, *call, f"{down} of s0", seen=apply_faults(topology, [f"dead-nic:{x}" for x in nics]))  # type: ignore[arg-type]


def _slow_link(random: Random, topology: Topology, *call: object) -> Case | None:
    if _servers(topology) > 1:
        factor = float(random.uniform(1.3, 6))
        server = int(random.integers(_servers(topology)))
        nic = str(random.choice(_nics(topology, server)))
        return _case(random, topology, *call, f"{nic} x{factor:.1f}", machine=_cables(topology, [nic], factor))  # type: ignore[arg-type]
    gpu = str(random.choice(topology.gpus))
    hub = next(iter(x for x in topology.graph[gpu] if topology.node(x).kind in ("nvswitch", "pcie")))
    lanes = topology.link(gpu, hub).lanes
    lost = int(random.integers(lanes // 4, lanes * 3 // 4 + 1))
    return _case(random, topology, *call, f"{lost}/{lanes} {gpu}", machine=apply_faults(topology, [f"lanes:{gpu}-{hub}:{lost}"]))  # type: ignore[arg-type]


def _narrow(low: float, high: float, hop: float) -> Maker:
    def made(random: Random, topology: Topology, *call: object) -> Case | None:
        if _servers(topology) < 2:
            return None
        factor = float(random.uniform(low, high))
        net = {"nic": 1 / factor, "net_hop": 1 + float(random.uniform(0, hop)) / 3.2}
        return _case(random, topology, *call, f"x{factor:.1f}", net=net)  # type: ignore[arg-type]

    return made


def _slow_node(random: Random, topology: Topology, *call: object) -> Case | None:
    if _servers(topology) < 2:
        return None
    server, factor = int(random.integers(_servers(topology))), float(random.uniform(1.4, 4))
    ranks = topology.groups["servers"][server]
    slow = apply_faults(_cables(topology, _nics(topology, server), factor), [f"slow-gpu:{rank}:x{factor:.3f}" for rank in ranks])
    return _case(random, topology, *call, f"s{server} x{factor:.1f}", machine=slow)  # type: ignore[arg-type]


def _pcie(random: Random, topology: Topology, *call: object) -> Case | None:
    server, factor = int(random.integers(_servers(topology))), int(random.choice([2, 4]))
    own = {node.name for node in topology.nodes if node.server == server}
    slow = _rescaled(topology, lambda x: 1 / factor if x.kind.startswith("pcie") and x.src in own else 1.0)
    return _case(random, topology, *call, f"s{server} /{factor}", machine=slow)  # type: ignore[arg-type]


def _nvls(random: Random, topology: Topology, *call: object) -> Case | None:
    if not any(node.kind == "nvswitch" and node.reduces for node in topology.nodes):
        return None
    return _case(random, topology, *call, environment={"NCCL_NVLS_ENABLE": "0"})  # type: ignore[arg-type]


def _channels(random: Random, topology: Topology, *call: object) -> Case | None:
    count, rate = int(random.integers(1, 6)), float(random.uniform(19e9, 25e9))
    nodes = [replace(x, injection=count * rate, ejection=count * rate) if x.kind == "gpu" else x for x in topology.nodes]
    slow = Topology.build(topology.name, nodes, topology.links, topology.groups, topology.dims)
    most = {"NCCL_MAX_CTAS": str(count), "NCCL_NVLS_NCHANNELS": str(count)}
    return _case(random, topology, *call, f"{count} channels", machine=slow, environment=most)  # type: ignore[arg-type]


def _protocol(random: Random, topology: Topology, *call: object) -> Case | None:
    word = str(random.choice(["LL", "Simple"]))
    return _case(random, topology, *call, word, environment={"NCCL_PROTO": word})  # type: ignore[arg-type]


def _launch(random: Random, topology: Topology, *call: object) -> Case | None:
    case, host = healthy(random, topology, *call), float(random.uniform(60e-6, 350e-6))  # type: ignore[arg-type]
    return replace(case, times=(case.times**6 + host**6) ** (1 / 6), detail=f"{host * 1e6:.0f} us")


def _tree(random: Random, topology: Topology, *call: object) -> Case | None:
    if _servers(topology) != 2 or call[1] != "all-reduce":
        return None
    return _case(random, topology, *call, environment={"NCCL_ALGO": "tree"})  # type: ignore[arg-type]


FAULTS: dict[str, Maker] = {
    "p2p-disabled": _p2p, "ring-crosses-pcie-hop": _crossing,
    "gpudirect-off": _through_host(0.35, 0.55, (4, 9), (1.5, 2.5)), "acs-on": _through_host(0.35, 0.55, (0, 2), (1, 1.2)),
    "one-nic-for-all": _one_nic, "nic-down": _nic_down, "slow-link": _slow_link, "single-qp": _narrow(1.3, 3.5, 0.01),
    "rail-mismatch": _narrow(1.8, 4.2, 3), "one-slow-node": _slow_node, "pcie-gen-downgraded": _pcie, "nvls-off": _nvls,
    "few-channels": _channels, "wrong-protocol-forced": _protocol, "launch-bound": _launch, "tree-flatters-two-nodes": _tree,
}  # fmt: skip
