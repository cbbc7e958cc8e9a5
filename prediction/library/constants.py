"""The physical constants of a prediction: what datasheets do not say, by the generation of the GPUs and of the network.

Set by hand from NCCL's own cost model and public nccl-tests tables, all of which were looked at, so a cluster that nobody has seen may do
worse (``docs/accuracy.md``); nothing fits them, and none belongs to one machine. Where a docstring names no other source, it is these
tables: what hops, launches, slices and messages must take for the times that they show.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Self

from prediction.library.asked import Asked
from prediction.library.measured import measured
from topologies.graph import Topology

US = 1e-6


@dataclass(frozen=True, slots=True)
class Constants:
    """Seconds, bytes a second, or parts of a rate. Hops are those of protocol LL; ``wire.py`` has the ratios of the others."""

    floor: float
    """From one call to the next, beside what is sent [s]: start and end of the kernel. A small call on two GPUs, less its hops."""
    host: float
    """What one process spends to launch the kernels of all its GPUs [s], while the call before still runs."""
    nvlink_hop: float
    """From GPU to GPU over NVLink or xGMI [s]: 0.62 us on H100 (NCCL: 0.6)."""
    pcie_hop: float
    """From GPU to GPU over PCIe [s]; NCCL counts 1.0, small calls on PCIe boxes take 2 or more."""
    net_hop: float
    """From GPU to GPU of another server in a tree [s], beside what switches add: the proxy on the CPU, the NIC, the wire."""
    nvls_hop: float
    """One of the two ways of NVLS, to the switch and back [s] (NCCL counts 25 us for all)."""
    message: float
    """What the proxy on the CPU spends on a message to the network [s] (NCCL: 1 us, on AMD's CPUs 2): the pace of a ring of small ones."""
    slice: float
    """What a thread block spends on a slice of protocol Simple beside copying it: barrier, fence, flag [s]."""
    channel: float
    """What each channel adds to a call [s]: 2.1 us on V100, 1.2 on A100, hardly anything later."""
    nvlink: float
    """Part of the links' rate that large copies between GPUs reach (V100 0.92, A100 0.79, H100 0.84, B200 0.77)."""
    nvls: float
    """Part of the links' rate at which NVSwitches add and multicast (H100 0.69, B200 0.60)."""
    nic: float
    """Part of the NICs' rate that large messages reach: 0.97, on Slingshot 0.91, on EFA 0.8 before Hopper."""
    bridge: float
    """What GPUs without NVLink get through a CPU's root complex [B/s]: two A100 on PCIe 4.0."""
    shared_memory: float
    """The same where they may not write to each other and meet in the host's memory [B/s]: eight consumer cards on PCIe 4.0."""
    local: float
    """Time of a copy inside the GPU, of the time that NVLink takes for the same bytes."""

    @classmethod
    def of(cls, topology: Topology, asked: Asked) -> Self:
        """What holds for a machine before anybody measured it, with what a calibration of it says (``Topology.constants``)."""
        kinds = {link.kind for link in topology.links}
        generation = next((g for g in (5, 4, 3, 2) if f"nvlink{g}" in kinds), 0)
        amd = any(kind.startswith("xgmi") and not kind.startswith("xgmi-cpu") for kind in kinds)
        gpus = max((len(group) for group in topology.groups.get("servers", ())), default=len(topology.gpus))
        slower = {2: 1.8, 3: 1.3, 4: 1.0, 5: 1.5}.get(generation, 1.3)
        priors = cls(
            floor=_floor(kinds, generation, amd, asked, gpus), host=(2 + 3.2 * gpus) * US if asked.launch == "one-process" else 0.0,
            nvlink_hop=0.62 * slower * US, pcie_hop=2.2 * US, net_hop=_network(kinds, generation)[0] * US,
            nvls_hop=10 * US * max(1.0, slower), message=_network(kinds, generation)[1] * US, slice=(2 if generation or amd else 4) * US,
            channel={2: 2.1, 3: 1.2}.get(generation, 0.15 if generation else 0.0) * US,
            nvlink={2: 0.92, 3: 0.785, 4: 0.835, 5: 0.77}.get(generation, 0.8), nvls=0.6 if generation >= 5 else 0.69,
            nic=_network(kinds, generation)[2], bridge=21.7e9, shared_memory=16e9, local=0.25 if generation < 4 else 0.15,
        )  # fmt: skip
        told = measured(topology, cls.names())
        host = priors.host * told.get("floor", priors.floor) / priors.floor
        return priors.replaced(**{"host": host, **told})

    def replaced(self, **values: float) -> Self:
        """The same with some values changed."""
        return replace(self, **values)

    @classmethod
    def names(cls) -> tuple[str, ...]:
        return tuple(f.name for f in fields(cls))


def _floor(kinds: set[str], generation: int, amd: bool, asked: Asked, gpus: int) -> float:
    """Seconds: 7 us on x86, 4 on Grace; RCCL counts 12 us where NCCL counts 6.6."""
    if asked.launch == "thread-per-gpu":  # threads of one process wait for each other to launch
        return (5.2 + 2.2 * gpus) * US
    if "nvlink-c2c" in kinds:
        return 4 * US
    return (12 if amd else 7 if generation else 9) * US


def _network(kinds: set[str], generation: int) -> tuple[float, float, float]:
    """Hop [us], message [us] and the part of the NICs' rate, by fabric; EFA by its own generation, which came with the GPUs'."""
    if "slingshot-11" in kinds:
        return 4.0, 2.0, 0.91
    if any(kind.startswith("efa") for kind in kinds):
        return (20.0, 2.5, 0.96) if generation >= 4 else (60.0, 3.0, 0.8)
    return (47.0, 3.0, 0.97) if any(kind.startswith("gvnic") for kind in kinds) else (3.0, 1.5, 0.97)
