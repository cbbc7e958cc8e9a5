"""A topology as NCCL counts it -> what its search finds: in closed form where GPUs sit behind NVSwitches, else by the search itself.

A node is an NVLink domain behind NVSwitches, or a server. Equal nodes are searched once; of unequal ones the weakest counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import networkx as nx

from prediction.nccl.graphs import PATHS, PATTERNS, Cpu, Graph, Graphs, Path
from prediction.nccl.paths import Paths
from prediction.nccl.rates import C2C, PCIE_LANE, cpu_of, nvlink_sm, nvlinks_rate
from prediction.nccl.search import Machine, search
from prediction.nccl.system import System, system_of
from prediction.nccl.trials import depth_first
from prediction.nccl.version import Version
from topologies.errors import MeasurementError
from topologies.graph import Link, Node, Topology

_WHOLE = 8
"""GPUs behind NVSwitches from which on the closed form is exact; slices of a server have too few for its rules."""
_MOST_SEARCHED = 32
"""GPUs of a node without NVSwitches: none has more than 16."""


def graphs_of(
    topology: Topology, version: Version, *, collnet: bool = False, cpu: Cpu | None = None, sm: int | None = None, p2p: Path | None = None
) -> Graphs:
    """What NCCL's search finds. ``collnet``: the network reduces (SHARP). ``cpu``: of the hosts, where no link between sockets tells.
    ``sm``: compute capability of GPUs without NVLink, where PCIe tells only the generation. ``p2p``: NCCL_P2P_LEVEL, LOC for GPUs that
    do not reach each other at all; it does not count behind NVSwitches.

    Raises MeasurementError: GPUs outside servers, servers that no NIC joins, or GPUs that nothing NCCL uses joins."""
    places = _nodes(topology)
    found: dict[Machine | System, Graphs] = {}
    each = []
    for place in places:
        machine = _machine(topology, version, cpu, place, alone=len(places) == 1)
        whole = machine is not None and machine.gpus >= _WHOLE
        if machine is None or not whole:
            system = system_of(topology, place.gpus, place.inside, version, cpu, alone=len(places) == 1)
            system = replace(system, p2p=p2p, sm=system.sm if sm is None or system.has_nvlinks else sm)
        key = machine if machine is not None and whole else system
        if key not in found:
            closed = None if machine is None else search(machine, len(places), version, collnet=collnet)
            found[key] = closed if closed and whole else _searched(topology.name, system, closed, len(places), version, collnet=collnet)
        each.append(found[key])
    return _weakest(each, len(topology.gpus), [len(place.gpus) for place in places])


def machine_of(topology: Topology, version: Version, cpu: Cpu | None = None) -> tuple[Machine, int]:
    """The closed form's machine and how many there are. Raises MeasurementError: not alike behind NVSwitches."""
    places = _nodes(topology)
    machines = {_machine(topology, version, cpu, place, alone=len(places) == 1) for place in places}
    machine = machines.pop()
    if machines or machine is None:
        raise MeasurementError(f"{topology.name}: its nodes are not all alike behind NVSwitches; there is no closed form for it")
    return machine, len(places)


@dataclass(frozen=True, slots=True)
class _Place:
    """A node: its GPUs in the order of ranks, all that is in their servers."""

    gpus: tuple[str, ...]
    inside: tuple[Node, ...]
    switched: bool


def _nodes(topology: Topology) -> list[_Place]:
    """NVLink domains that reach over servers, else servers; in the order of their first ranks."""
    servers: dict[int, list[Node]] = {}
    for node in topology.nodes:
        if node.server is not None:
            servers.setdefault(node.server, []).append(node)
    loose = [gpu for gpu in topology.gpus if topology.node(gpu).server is None]
    if loose:
        raise MeasurementError(
            f"{topology.name}: {loose[0]} is in no server, and NCCL's search goes over servers; take a machine, as dgx-h100"
        )
    fabric: nx.Graph[str] = nx.Graph()
    kinds = {node.name: node.kind for node in topology.nodes}
    fabric.add_nodes_from(topology.gpus)
    fabric.add_edges_from((link.src, link.dst) for link in topology.links if _switched(link, kinds))
    domain = {gpu: part for part in map(frozenset, nx.connected_components(fabric)) for gpu in part if kinds[gpu] == "gpu"}
    rank = {gpu: number for number, gpu in enumerate(topology.gpus)}
    hosts: nx.Graph[int] = nx.Graph()
    hosts.add_nodes_from(servers)
    for part in set(domain.values()):
        own = sorted({topology.node(gpu).server or 0 for gpu in part if kinds[gpu] == "gpu"})
        hosts.add_edges_from(pairwise(own))
    places = []
    for joined in nx.connected_components(hosts):
        inside = [node for server in sorted(joined) for node in servers[server]]
        gpus = tuple(sorted((node.name for node in inside if node.kind == "gpu"), key=rank.__getitem__))
        if gpus:
            switches = sorted(name for name in domain[gpus[0]] if kinds[name] == "nvswitch")
            extra = [topology.node(name) for name in switches if topology.node(name).server is None]
            one = len({domain[gpu] for gpu in gpus}) == 1 and len(gpus) > 1
            places.append(_Place(gpus, (*inside, *extra), one))
    return sorted(places, key=lambda place: rank[place.gpus[0]])


def _switched(link: Link, kinds: Mapping[str, str]) -> bool:
    ends = (kinds[link.src], kinds[link.dst])
    return "nvswitch" in ends and nvlink_sm(link, ends) is not None


def _machine(topology: Topology, version: Version, cpu: Cpu | None, place: _Place, *, alone: bool) -> Machine | None:
    """The closed form's machine; None where not all GPUs and NICs of the node are alike behind NVSwitches."""

    def links(names: Iterable[str]) -> list[Link]:
        return [data["link"] for name in names for data in topology.graph[name].values()]

    def sm_of(link: Link) -> int | None:
        return nvlink_sm(link, (topology.node(link.src).kind, topology.node(link.dst).kind))

    nics = [node.name for node in place.inside if node.kind == "nic"]
    cables = links(place.gpus)
    ports = [[(link, sm) for link in links([gpu]) if (sm := sm_of(link))] for gpu in place.gpus]
    sms = {sm for port in ports for _, sm in port}
    nvlinks = {sum(nvlinks_rate(link, sm, version) for link, sm in port) for port in ports}
    rates = {_nic_rate(topology, links([nic])) for nic in nics}
    if not place.switched or len(sms) != 1 or len(nvlinks) != 1 or (len(rates) > 1 and not alone):
        return None
    sm = sms.pop()
    beside = Counter(link.dst for link in cables if link.kind in PCIE_LANE)
    near = [max((beside[link.dst] for link in links([nic]) if link.kind in PCIE_LANE), default=0) for nic in nics]
    grace = any(link.kind == C2C for link in cables)
    switches = {link.dst for port in ports for link, _ in port}
    sockets = [link.kind for link in links(node.name for node in place.inside if node.kind == "cpu")]
    return Machine(
        len(place.gpus), nvlinks.pop(), 0 if alone else len(nics), 0.0 if alone else rates.pop() if rates else 0.0,
        sm, cpu or ("arm" if grace else cpu_of(sockets)), shared=not alone and min(near, default=0) > 1, grace=grace,
        multicast=all(topology.node(switch).reduces for switch in switches),
    )  # fmt: skip


def _nic_rate(topology: Topology, links: list[Link]) -> float:
    """The slower of a NIC's ports and its PCIe slot, as NCCL counts them [B/s]."""
    slots = [PCIE_LANE[link.kind] * link.lanes for link in links if link.kind in PCIE_LANE]
    wires = [link.bandwidth for link in links if topology.node(link.dst).kind in ("switch", "nic")]
    return min([*slots, sum(wires)] if wires else slots, default=0.0)


def _searched(name: str, system: System, closed: Graphs | None, nodes: int, version: Version, *, collnet: bool) -> Graphs:
    """The search itself; what only NVSwitches have stays as the closed form has it."""
    if nodes > 1 and not system.nets:
        raise MeasurementError(f"{name}: {nodes} servers, and one without a NIC; NCCL's search joins nodes by NICs")
    if len(system.gpus) > _MOST_SEARCHED:
        raise MeasurementError(f"{name}: {len(system.gpus)} GPUs in one server without NVSwitches; at most {_MOST_SEARCHED} are searched")
    paths = Paths(system, version)
    if any(a != b and not paths.table[a][b].edges for a in system.gpus for b in (*system.gpus, *system.nets)):
        raise MeasurementError(f"{name}: nothing that NCCL uses joins all GPUs and NICs of a server (NVLink, xGMI, PCIe, sockets)")
    ring, tree, chain = depth_first(system, version, several=nodes > 1, collnet=collnet)
    if closed is not None:
        return replace(closed, ring=ring, tree=tree, collnet_chain=chain)
    return Graphs(
        version, max(2, nodes * len(system.gpus)), nodes, ring, tree, collnet_chain=chain, sm_min=system.sm, sm_max=system.sm,
        cpu=system.cpu, nvswitch=system.switched, collnet=collnet,
    )  # fmt: skip


def _weakest(each: list[Graphs], ranks: int, local: list[int]) -> Graphs:
    """What NCCL agrees on: of every figure the smallest over all nodes, of path types the farthest; orders are the first node's."""
    first = each[0]
    if all(other == first for other in each):
        return first

    def least(graphs: list[Graph | None]) -> Graph | None:
        return None if None in graphs else _least([graph for graph in graphs if graph])

    cpus = {graphs.cpu for graphs in each}
    return replace(
        first, ranks=ranks, ring=_least([graphs.ring for graphs in each]), tree=_least([graphs.tree for graphs in each]),
        nvls=least([graphs.nvls for graphs in each]), collnet_chain=least([graphs.collnet_chain for graphs in each]),
        collnet_direct=least([graphs.collnet_direct for graphs in each]), sm_min=min(graphs.sm_min for graphs in each),
        sm_max=max(graphs.sm_max for graphs in each), cpu=first.cpu if len(cpus) == 1 else "mixed",
        nvswitch=all(graphs.nvswitch for graphs in each), max_local_ranks=max(local),
    )  # fmt: skip


def _least(graphs: list[Graph]) -> Graph:
    first = graphs[0]
    channels = min(graph.channels for graph in graphs)
    return replace(
        first, channels=channels, bw_intra=min(graph.bw_intra for graph in graphs), bw_inter=min(graph.bw_inter for graph in graphs),
        pattern=max((graph.pattern for graph in graphs), key=PATTERNS.index),
        type_intra=max((graph.type_intra for graph in graphs), key=PATHS.index),
        type_inter=max((graph.type_inter for graph in graphs), key=PATHS.index),
        same_channels=all(graph.same_channels for graph in graphs), latency_inter=max(graph.latency_inter for graph in graphs),
        cross_nic=max(graph.cross_nic for graph in graphs), orders=first.orders[:channels], nics=first.nics[:channels],
    )  # fmt: skip
