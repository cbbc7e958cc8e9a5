"""Known causes of a bad result: each alters the machine or the call, is simulated, and says what to look at.

Rates that no datasheet gives are round numbers of public reports; a cause is judged by the shape of its curve over sizes, and most are
simulated at several severities.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from prediction.doctor.alter import (
    capped,
    is_nvlink,
    nics_of,
    root_complex,
    scaled,
    slow_server,
    throttled,
    with_nics,
    without_nvlink,
)
from prediction.doctor.scene import Array, Scene
from topologies.graph import Topology

PER_CHANNEL = 22e9
"""What one thread block copies [B/s]."""
Altered = Scene | Array | None
"""A scene to simulate, times [s] by size, or None where the cause cannot be."""


@dataclass(frozen=True, slots=True)
class Cause:
    """``prior``: how often, beside the others; ``severities``: simulated ones, between which a ``smooth`` cause may lie. ``says`` and
    ``check``: ``{x}`` is the severity that fits best."""

    id: str
    prior: float
    alter: Callable[[Scene, float], Altered]
    says: str
    check: str
    severities: tuple[float, ...] = (1.0,)
    smooth: bool = False
    high: bool = False
    """It makes a result look better than it is."""


def _joined(scene: Scene) -> bool:
    return any(is_nvlink(link) for link in scene.topology.links)


def _networked(scene: Scene) -> bool:
    return scene.servers > 1 and bool(nics_of(scene.topology))


def _p2p_disabled(scene: Scene, part: float) -> Altered:
    if _joined(scene):
        bare = scene.told(without_nvlink(scene.topology))
        return bare.priced(shared_memory=part * bare.constants.shared_memory, bridge=part * bare.constants.bridge)
    return scene.hidden(throttled(scene.topology, part * 0.8 * scene.constants.shared_memory))


def _ring_crosses(scene: Scene, part: float) -> Altered:
    if not _joined(scene) or len(scene.topology.gpus) < 3:
        return None
    first = scene.topology.gpus[0]
    rate = part * scene.constants.bridge
    slow = capped(without_nvlink(scene.topology, {first}), rate, lambda x: first in (x.src, x.dst))
    return scene.known(slow)


def _acs_on(scene: Scene, part: float) -> Altered:
    if _networked(scene):
        return scene.hidden(root_complex(scene.topology, part)).priced(net_hop=scene.constants.net_hop + 1e-6)
    kinds = {node.name: node.kind for node in scene.topology.nodes}
    hubs = [x for x in kinds if kinds[x] == "pcie" and sum(kinds[y] == "gpu" for y in scene.topology.graph[x]) > 1]
    return scene.hidden(throttled(scene.topology, part * scene.constants.bridge / 2)) if hubs and not _joined(scene) else None


def _gpudirect_off(scene: Scene, part: float) -> Altered:
    if not _networked(scene):
        return None
    return scene.hidden(root_complex(scene.topology, part)).priced(
        net_hop=scene.constants.net_hop + 6e-6, message=2 * scene.constants.message
    )


def _one_nic(scene: Scene, _: float) -> Altered:
    if not _networked(scene) or max(map(len, nics_of(scene.topology).values())) < 2:
        return None
    return scene.known(with_nics(scene.topology, lambda place: place == 0))


def _nic_down(scene: Scene, down: float) -> Altered:
    if not _networked(scene) or max(map(len, nics_of(scene.topology).values())) <= down + 1:
        return None
    return scene.known(with_nics(scene.topology, lambda place: place >= down))


def _cable(topology: Topology, src: str, dst: str) -> bool:
    return {topology.node(src).kind, topology.node(dst).kind} == {"nic", "switch"}


def _slow_link(scene: Scene, factor: float) -> Altered:
    if _networked(scene):
        nic = nics_of(scene.topology)[0][0]
        return scene.hidden(scaled(scene.topology, 1 / factor, lambda x: nic in (x.src, x.dst) and _cable(scene.topology, x.src, x.dst)))
    first, nvlink = scene.topology.gpus[0], _joined(scene)
    return scene.hidden(scaled(scene.topology, 1 / factor, lambda x: first in (x.src, x.dst) and is_nvlink(x) == nvlink))


def _single_qp(scene: Scene, factor: float) -> Altered:
    return scene.priced(nic=scene.constants.nic / factor) if _networked(scene) else None


def _rail_mismatch(scene: Scene, factor: float) -> Altered:
    if not _networked(scene) or max(map(len, nics_of(scene.topology).values())) < 2:
        return None
    return scene.priced(nic=scene.constants.nic / factor, net_hop=scene.constants.net_hop + 1.5e-6)


def _slow_node(scene: Scene, factor: float) -> Altered:
    return scene.hidden(slow_server(scene.topology, 1 / factor)) if _networked(scene) else None


def _pcie_gen(scene: Scene, factor: float) -> Altered:
    return scene.hidden(scaled(scene.topology, 1 / factor, lambda x: x.kind.startswith("pcie")))


def _nvls_off(scene: Scene, _: float) -> Altered:
    if not any(row.algorithm.startswith("nvls") for row in scene.rows):
        return None
    return scene.tuned({"NCCL_NVLS_ENABLE": "0"})


def _few_channels(scene: Scene, count: float) -> Altered:
    most = {"NCCL_MAX_NCHANNELS": f"{count:.0f}", "NCCL_NVLS_NCHANNELS": f"{count:.0f}"}
    return scene.tuned(most).hidden(throttled(scene.topology, count * PER_CHANNEL))


def _protocol(scene: Scene, number: float) -> Altered:
    return scene.tuned({"NCCL_PROTO": PROTOCOLS[int(number)]})


def _launch_bound(scene: Scene, host: float) -> Altered:
    return np.maximum(scene.times, host)


def _tree(scene: Scene, _: float) -> Altered:
    if scene.servers != 2 or scene.collective != "all-reduce" or any(row.algorithm in ("tree", "nvls-tree") for row in scene.rows[-3:]):
        return None
    return scene.tuned({"NCCL_ALGO": "tree"})


PROTOCOLS = ("LL", "Simple")
_PARTS = (0.45, 0.7, 1.0, 1.4)
"""Of what the way through a CPU is expected to give: hosts differ."""
_FACTORS = (1.15, 2.0, 4.0, 8.0)

CAUSES: tuple[Cause, ...] = (
    Cause("p2p-disabled", 0.10, _p2p_disabled, "GPUs of a server meet in the host's memory, not over their own links",
          "NCCL_P2P_DISABLE and NCCL_P2P_LEVEL; 'via SHM' in NCCL_DEBUG=INFO; nvidia-smi nvlink -s; nvidia-smi topo -p2p r",
          _PARTS, smooth=True),
    Cause("ring-crosses-pcie-hop", 0.06, _ring_crosses, "one GPU is reached over PCIe, and every ring goes through it",
          "nvidia-smi topo -m: a pair that is not NV#; 'via P2P/CUMEM' against 'via SHM' by channel in NCCL_DEBUG=INFO",
          _PARTS, smooth=True),
    Cause("gpudirect-off", 0.10, _gpudirect_off, "NICs take their data through the host's memory",
          "'GDRDMA' missing after 'via NET/IB' in NCCL_DEBUG=INFO; lsmod | grep nvidia_peermem; NCCL_NET_GDR_LEVEL; NCCL_DMABUF_ENABLE",
          _PARTS, smooth=True),
    Cause("acs-on", 0.07, _acs_on, "PCIe sends peer traffic up to the root complex",
          "sudo lspci -vvv | grep ACSCtl: SrcValid+ on a PCIe switch; IOMMU on; a virtual machine needs ATS",
          _PARTS, smooth=True),
    Cause("one-nic-for-all", 0.10, _one_nic, "all GPUs of a server share one NIC",
          "NCCL_IB_HCA, and 'NET/IB : Using' in NCCL_DEBUG=INFO: every NIC should be listed; a topology file in a virtual machine"),
    Cause("nic-down", 0.10, _nic_down, "a server without {x:.0f} of its NICs",
          "ibstat or rdma link on every host: State Active; 'NET/IB : Using' lists the same NICs on all hosts", (1, 2, 3, 4)),
    Cause("slow-link", 0.13, _slow_link, "one link at 1/{x:.3g} of its rate, and every ring goes over it",
          "nvidia-smi nvlink -s and -e on every GPU; ibstat: Rate; lspci -vv: LnkSta against LnkCap", _FACTORS, smooth=True),
    Cause("single-qp", 0.09, _single_qp, "a flow gets 1/{x:.3g} of a NIC: one queue pair, or flows that meet on one path",
          "NCCL_IB_QPS_PER_CONNECTION=4 and NCCL_IB_SPLIT_DATA_ON_QPS; counters of the uplinks (ECMP); adaptive routing",
          _FACTORS[:3], smooth=True),
    Cause("rail-mismatch", 0.06, _rail_mismatch, "NICs of unequal rails talk over a spine with 1/{x:.3g} of the ports' rate",
          "NCCL_CROSS_NIC=0; the same NIC order on all hosts; which leaf each NIC is plugged into", (2, 4)),
    Cause("one-slow-node", 0.07, _slow_node, "one server at 1/{x:.3g} of the others",
          "the same test on halves of the hosts; clocks and throttling (nvidia-smi -q -d PERFORMANCE); PCIe and NIC errors in dmesg",
          _FACTORS, smooth=True),
    Cause("pcie-gen-downgraded", 0.07, _pcie_gen, "PCIe at 1/{x:.0f} of its rate",
          "lspci -vv: LnkSta Speed and Width against LnkCap, under load; BIOS settings; risers", (2, 4)),
    Cause("nvls-off", 0.08, _nvls_off, "NVLink SHARP is not used",
          "NCCL_NVLS_ENABLE; 'NVLS multicast support is available' in NCCL_DEBUG=INFO; the fabric manager; cuMem in containers"),
    Cause("few-channels", 0.10, _few_channels, "{x:.0f} channels do the work of all",
          "NCCL_MAX_CTAS, NCCL_MAX_NCHANNELS; 'coll channels' in NCCL_DEBUG=INFO; an application's own communicator config",
          (1, 2, 3, 4, 6), smooth=True),
    Cause("wrong-protocol-forced", 0.03, _protocol, "protocol {word} at all sizes",
          "NCCL_PROTO and /etc/nccl.conf; a tuner plugin (NCCL_TUNER_PLUGIN)", (0, 1)),
    Cause("launch-bound", 0.12, _launch_bound, "the host launches one call in {us:.0f} us",
          "more processes (one a GPU); CPU affinity and clocks; NCCL_DEBUG off; CUDA graphs (-G 1)",
          tuple(x * 1e-6 for x in (20, 26, 34, 44, 57, 74, 97, 126, 163, 212, 276, 358, 466, 606))),
    Cause("tree-flatters-two-nodes", 0.10, _tree, "a tree over exactly two servers: each NIC carries half of what a ring's does",
          "the same with NCCL_ALGO=Ring, or on more servers, before it is taken for their rate", high=True),
)  # fmt: skip
