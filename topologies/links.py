"""One table of link types: what a cable of a given kind carries per lane and what a hop over it takes.

Rates are datasheet rates of one direction; what a protocol reaches of them is the business of a library profile. Latencies are
per hop, wire and switch only. Chosen so that the sums agree with what is measured:
NVLink 0.3 us: through an NVSwitch two hops, 0.6 us, NCCL's own figure for an NVLink hop with protocol LL;
PCIe 0.5 us: GPU to GPU through one switch 1 us, NCCL's figure for a PCIe hop with LL; inter-socket the same;
InfiniBand: the switch (EDR 90 ns, HDR 130 ns, NDR and XDR 330 ns) and 20 m of fibre (100 ns), so that GPU to GPU on one HDR
leaf takes 2.5 us, within the 2-4 us of a small GPUDirect RDMA message; RoCE: a 0.5 us cut-through switch and 100 ns;
EFA: half of what is left of the 20 us that AWS's own NCCL tuner assumes between GPUs, after two hops of PCIe at either end.
"""

from __future__ import annotations

from dataclasses import dataclass

from topologies.errors import TopologyError, nearest, quoted
from topologies.graph import Link


@dataclass(frozen=True, slots=True)
class LinkType:
    """``lane_bandwidth`` [B/s] of one lane in one direction, the usual number of ``lanes``, ``latency`` [s] of a hop, their source."""

    name: str
    lane_bandwidth: float
    lanes: int
    latency: float
    source: str

    @property
    def bandwidth(self) -> float:
        """One direction over the usual lanes [B/s]."""
        return self.lane_bandwidth * self.lanes


_TYPES = (
    LinkType("nvlink1", 20e9, 4, 0.3e-6, "NVIDIA P100: 4 links of 20 GB/s"),
    LinkType("nvlink2", 25e9, 6, 0.3e-6, "NVIDIA V100: 6 links of 25 GB/s"),
    LinkType("nvlink3", 25e9, 12, 0.3e-6, "NVIDIA A100: 12 links of 25 GB/s"),
    LinkType("nvlink4", 25e9, 18, 0.3e-6, "NVIDIA H100: 18 links of 25 GB/s"),
    LinkType("nvlink5", 50e9, 18, 0.3e-6, "NVIDIA B200: 18 links of 50 GB/s"),
    LinkType("nvlink-bridge", 14.0625e9, 4, 0.3e-6, "NVIDIA RTX A6000 bridge: 4 links of 14.06 GB/s, 56 GB/s"),
    LinkType("nvlink-c2c", 45e9, 10, 0.3e-6, "NVIDIA GH200: NVLink-C2C 450 GB/s (10 links, NCCL counts 44.7 each); latency as NVLink's"),
    LinkType("pcie3", 15.75e9 / 16, 16, 0.5e-6, "PCIe 3.0: 8 GT/s, 128b/130b; 15.75 GB/s x16"),
    LinkType("pcie4", 31.5e9 / 16, 16, 0.5e-6, "PCIe 4.0: 16 GT/s, 128b/130b; 31.5 GB/s x16"),
    LinkType("pcie5", 63e9 / 16, 16, 0.5e-6, "PCIe 5.0: 32 GT/s, 128b/130b; 63 GB/s x16"),
    LinkType("pcie6", 118e9 / 16, 16, 0.5e-6, "PCIe 6.0: 64 GT/s, flits; 118 GB/s x16"),
    LinkType("qpi", 19.2e9, 2, 0.5e-6, "Intel QPI 9.6 GT/s (Broadwell): 19.2 GB/s, 2 links between sockets"),
    LinkType("upi", 20.8e9, 3, 0.5e-6, "Intel UPI 10.4 GT/s (Skylake): 20.8 GB/s, 3 links between sockets"),
    LinkType("upi-ice", 22.4e9, 3, 0.5e-6, "Intel UPI 11.2 GT/s (Ice Lake): 22.4 GB/s, 3 links between sockets"),
    LinkType("upi2", 32e9, 4, 0.5e-6, "Intel UPI 2.0 16 GT/s (Sapphire Rapids): 32 GB/s, 4 links between sockets"),
    LinkType("upi2-20", 40e9, 4, 0.5e-6, "Intel UPI 2.0 20 GT/s (Emerald Rapids): 40 GB/s, 4 links between sockets"),
    LinkType("upi2-24", 48e9, 4, 0.5e-6, "Intel UPI 2.0 24 GT/s (Granite Rapids): 48 GB/s, 4 of its links between sockets"),
    LinkType("xgmi", 64e9, 1, 0.3e-6, "AMD MI300X: 64 GB/s a link, about 48 usable; latency as NVLink's"),
    LinkType("xgmi-mi250x", 50e9, 1, 0.3e-6, "AMD MI250X: 50 GB/s each way a link between packages; latency as NVLink's"),
    LinkType("xgmi-mi355x", 76.8e9, 1, 0.3e-6, "AMD MI350X, MI355X: 153.6 GB/s a link, 76.8 each way; latency as NVLink's"),
    LinkType("xgmi-cpu", 36e9, 4, 0.5e-6, "AMD EPYC Rome: 18 GT/s x16, 36 GB/s, 4 links between sockets"),
    LinkType("xgmi-cpu-genoa", 64e9, 4, 0.5e-6, "AMD EPYC Genoa: 32 GT/s x16, 64 GB/s, 4 links between sockets"),
    LinkType("grace-link", 100e9, 1, 0.5e-6, "NVIDIA Grace to Grace: 100 GB/s each way in a quad GH200 node"),
    LinkType("tpu-ici", 50e9, 1, 1e-6, "Google TPU v4: 6 links of 50 GB/s; latency assumed"),
    LinkType("ib-fdr", 6.8e9, 1, 0.27e-6, "InfiniBand FDR 56 Gb/s, 54.5 after encoding; switch 170 ns, 20 m"),
    LinkType("ib-edr", 12.5e9, 1, 0.19e-6, "InfiniBand EDR 100 Gb/s; switch 90 ns, 20 m"),
    LinkType("ib-hdr", 25e9, 1, 0.23e-6, "InfiniBand HDR 200 Gb/s; switch 130 ns, 20 m"),
    LinkType("ib-ndr", 50e9, 1, 0.43e-6, "InfiniBand NDR 400 Gb/s; switch 330 ns (secondary source), 20 m"),
    LinkType("ib-xdr", 100e9, 1, 0.43e-6, "InfiniBand XDR 800 Gb/s; latency assumed as NDR's"),
    LinkType("roce-25", 3.125e9, 1, 0.6e-6, "Ethernet 25 Gb/s; cut-through switch 0.3-0.8 us, 20 m"),
    LinkType("roce-50", 6.25e9, 1, 0.6e-6, "Ethernet 50 Gb/s; cut-through switch 0.3-0.8 us, 20 m"),
    LinkType("roce-100", 12.5e9, 1, 0.6e-6, "Ethernet 100 Gb/s; cut-through switch 0.3-0.8 us, 20 m"),
    LinkType("roce-200", 25e9, 1, 0.6e-6, "Ethernet 200 Gb/s; cut-through switch 0.3-0.8 us, 20 m"),
    LinkType("roce-400", 50e9, 1, 0.6e-6, "Ethernet 400 Gb/s; cut-through switch 0.3-0.8 us, 20 m"),
    LinkType("roce-800", 100e9, 1, 0.6e-6, "Ethernet 800 Gb/s; cut-through switch 0.3-0.8 us, 20 m"),
    LinkType("efa-100", 12.5e9, 1, 9e-6, "AWS EFA 100 Gb/s; half of 20 us between GPUs less PCIe"),
    LinkType("efa-200", 25e9, 1, 9e-6, "AWS EFA 200 Gb/s (P5en); latency assumed as EFA 100's"),
    LinkType("efa-400", 50e9, 1, 9e-6, "AWS EFA 400 Gb/s (P6-B200); latency assumed as EFA 100's"),
    LinkType("gvnic-100", 12.5e9, 1, 9e-6, "Google gVNIC 100 Gb/s; latency assumed as EFA's"),
    LinkType("gvnic-200", 25e9, 1, 9e-6, "Google gVNIC 200 Gb/s, GPUDirect-TCPX and -TCPXO; latency assumed as EFA's"),
    LinkType("slingshot-10", 12.5e9, 1, 0.45e-6, "HPE Slingshot 10 100 Gb/s; switch 350 ns, 20 m"),
    LinkType("slingshot-11", 25e9, 1, 0.45e-6, "HPE Slingshot 11 200 Gb/s; switch 350 ns, 20 m"),
    LinkType("slingshot-400", 50e9, 1, 0.45e-6, "HPE Slingshot 400 400 Gb/s; latency assumed as Slingshot 11's"),
)
LINK_TYPES: dict[str, LinkType] = {entry.name: entry for entry in _TYPES}


def link_type(name: str) -> LinkType:
    """The table entry; raises TopologyError naming the nearest for an unknown name."""
    if name not in LINK_TYPES:
        raise TopologyError(f"{quoted(name)} is not a link type{nearest(name, LINK_TYPES)}")
    return LINK_TYPES[name]


def link_of(kind: str, src: str, dst: str, lanes: int | None = None) -> Link:
    """One direction of a cable of a known type; ``lanes`` other than the usual number scale its bandwidth."""
    entry = link_type(kind)
    lanes = entry.lanes if lanes is None else lanes
    return Link(src, dst, kind, lanes, entry.lane_bandwidth * lanes, entry.latency, entry.source)
