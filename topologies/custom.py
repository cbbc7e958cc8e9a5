"""A cluster of equal servers in words, as a table of machines describes it: GPU, what joins GPUs, NICs and the network."""

from __future__ import annotations

from typing import Annotated

from topologies.custom_parts import FABRICS, Plan, built
from topologies.custom_words import CPUS, INTRA, MOST_GPUS, check_joined, domain_of, links_of, network, usual
from topologies.errors import TopologyError
from topologies.gpus import GPUS
from topologies.graph import Topology
from topologies.registry import Bandwidth, Count, Flag, check_size, topology

GpuWord = Annotated[str, "word", tuple(GPUS)]
IntraWord = Annotated[str, "word", INTRA]
FabricWord = Annotated[str, "word", (*FABRICS, "none")]
CpuWord = Annotated[str, "word", CPUS]


@topology
def custom(
    nodes: Count = 1,
    gpus: Count = 8,
    gpu: GpuWord = "h100",
    intra: IntraWord | None = None,
    links: Count | None = None,
    nics: Count | None = None,
    nic: Bandwidth | None = None,
    fabric: FabricWord | None = None,
    rails: Flag = False,
    cpu: CpuWord | None = None,
    domain: Count | None = None,
) -> Topology:
    """Servers in words: GPU model, what joins GPUs, NICs, fabric; what is not given is usual for the GPU.

    ``intra`` joins the GPUs of a server. ``links``: NVLinks of a GPU, or PCIe lanes of its slot. More NICs than GPUs are one NIC of
    several lanes a GPU, fewer are shared.
    ``domain``: GPUs of an NVLink domain over several servers (``nvl72``). The network is non-blocking: with ``rails`` a leaf for each
    NIC of a server while two tiers suffice, else one switch; one server, or one domain, has neither
    NICs nor network.
    """
    model = GPUS[gpu]
    if gpus > MOST_GPUS:
        raise TopologyError(f"custom: gpus = {gpus} a server; write 1 to {MOST_GPUS}")
    check_size("custom", "nodes", nodes, lambda n: n * 10 * gpus)
    inside = intra or usual(model, gpus)
    check_joined(model, inside, gpus)
    width, together = links_of(model, inside, links), domain_of(inside, nodes, gpus, domain)
    wires = network(model, nodes * gpus > together, gpus, nics, nic, fabric, rails)
    return built(Plan(model, inside, nodes, gpus, width, together, cpu, wires))
