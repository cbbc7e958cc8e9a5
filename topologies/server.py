"""A server as a list of its parts -> nodes and links; several servers -> a cluster.

NVSwitches of a server are one node, as in NCCL's own graph: every GPU spreads evenly over all of them. ``gpus`` below the full
number takes the first GPUs of each server with what they need of the PCIe tree, as a job on a slice of the server sees it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

from topologies.errors import TopologyError
from topologies.fabric import infiniband, most_servers, one_switch, rail_groups
from topologies.graph import Link, Node, Topology, both_ways
from topologies.links import link_of
from topologies.registry import check_size


@dataclass(frozen=True, slots=True)
class Server:
    """Link types and counts. GPUs in groups of ``gpus_per_pcie`` share a PCIe switch with ``nics_per_pcie`` NICs."""

    name: str
    nvlink: str
    pcie: str
    sockets: str
    nic: str
    ports: int
    """Of the switches between servers; 0: one switch stands for the whole network."""
    gpus_per_pcie: int = 1
    nics_per_pcie: int = 1
    gpus: int = 8
    boards: int = 1
    """NVSwitch nodes; GPUs fill them in order. 0: none."""
    trunk: int = 0
    """NVLinks between two boards."""
    mesh: tuple[tuple[int, ...], ...] = ()
    """NVLinks between GPUs, where there is no NVSwitch."""
    multicast: bool = False
    """The NVSwitches can reduce (NVLink SHARP)."""
    numa: tuple[int, ...] = (0, 1)
    """CPU of each equal run of PCIe switches."""
    nic_lanes: int = 1
    """Equal NICs a NIC node stands for, because the transport stripes every message over them."""
    nic_pcie: tuple[str, int | None] = ("", None)
    """Link type and lanes of a NIC node on its PCIe switch, where they are not ``pcie``'s."""
    uplink: str = ""
    """Link type of a PCIe switch to its CPU, where it is not ``pcie``."""
    sharp: bool = True
    lanes: int | None = None
    """NVLinks of a GPU to its board, where they are not ``nvlink``'s."""
    slot: int | None = None
    """PCIe lanes of a GPU, where they are not ``pcie``'s."""

    def nics(self, gpus: int) -> int:
        """NIC nodes of a server of which ``gpus`` are used."""
        return -(-gpus * self.nics_per_pcie // self.gpus_per_pcie)


def cluster(server: Server, nodes: int, gpus: int) -> Topology:
    """``nodes`` servers with ``gpus`` GPUs each and, for more than one, their network. TopologyError beyond what that takes."""
    if not 1 <= gpus <= server.gpus:
        raise TopologyError(f"{server.name}: gpus = {gpus} per server; it has {server.gpus}: write 1 to {server.gpus}")
    rails = server.nics(gpus)
    most = most_servers(rails, server.ports) if server.ports else nodes
    if not 1 <= nodes <= most:
        rule = f"with {rails} rails two tiers of {server.ports}-port switches take nodes = 1 to {most}"
        raise TopologyError(f"{server.name}: nodes = {nodes}; {rule}")
    check_size(server.name, "nodes", nodes, lambda n: n * 10 * server.gpus)
    parts, links, nics = servers(server, nodes, gpus)
    name = f"{server.name}-{nodes}x{gpus}"
    if nodes == 1:
        return Topology.build(name, parts, links, {"servers": (tuple(range(gpus)),)})
    if server.ports:
        switches, cables = infiniband(server.name, nics, server.nic, server.ports, sharp=server.sharp)
        groups = rail_groups(nodes, gpus, rails, server.ports // 2)
    else:
        switches, cables = one_switch(nics, server.nic, server.nic_lanes)
        groups = rail_groups(nodes, gpus, rails, nodes) | {"leaves": (tuple(range(nodes * gpus)),)}
    return Topology.build(name, parts + switches, links + cables, groups)


def servers(server: Server, nodes: int, gpus: int) -> tuple[list[Node], list[Link], list[list[str]]]:
    """Nodes and links of ``nodes`` servers, and the names of their NICs by server; ``s0.gpu0``, or ``gpu0`` where there is one."""
    parts: list[Node] = []
    links: list[Link] = []
    nics = []
    for s in range(nodes):
        prefix = f"s{s}." if nodes > 1 else ""
        parts += _nodes(server, s, prefix, gpus)
        links += [way for kind, a, b, lanes in _cables(server, gpus) for way in both_ways(link_of(kind, prefix + a, prefix + b, lanes))]
        nics.append([f"{prefix}nic{n}" for n in range(server.nics(gpus))])
    return parts, links, nics


def _cpus(server: Server, gpus: int) -> list[int]:
    """The CPU of each PCIe switch in use."""
    run = server.gpus // server.gpus_per_pcie // len(server.numa)
    return [server.numa[i // run] for i in range(-(-gpus // server.gpus_per_pcie))]


def _nodes(server: Server, s: int, prefix: str, gpus: int) -> Iterator[Node]:
    """GPUs first, so that their order is the order of ranks."""
    cpus = _cpus(server, gpus)
    boards = -(-gpus * server.boards // server.gpus)
    yield from (Node(f"{prefix}gpu{g}", "gpu", s) for g in range(gpus))
    yield from (Node(prefix + _board(server, i), "nvswitch", s, reduces=server.multicast) for i in range(boards))
    yield from (Node(f"{prefix}pcie{i}", "pcie", s) for i in range(len(cpus)))
    yield from (Node(f"{prefix}nic{i}", "nic", s) for i in range(server.nics(gpus)))
    yield from (Node(f"{prefix}cpu{i}", "cpu", s) for i in sorted(set(cpus)))


def _board(server: Server, board: int) -> str:
    return "nvswitch" if server.boards == 1 else f"nvswitch{board}"


def _cables(server: Server, gpus: int) -> Iterator[tuple[str, str, str, int | None]]:
    """Link type, ends, lanes (None: as many as the type has)."""
    cpus = _cpus(server, gpus)
    per_board = server.gpus // server.boards if server.boards else 0
    if server.boards:
        yield from ((server.nvlink, f"gpu{g}", _board(server, g // per_board), server.lanes) for g in range(gpus))
    if server.trunk and gpus > per_board:
        yield server.nvlink, _board(server, 0), _board(server, 1), server.trunk
    if server.mesh:
        pairs = combinations(range(gpus), 2)
        yield from ((server.nvlink, f"gpu{a}", f"gpu{b}", server.mesh[a][b]) for a, b in pairs if server.mesh[a][b])
    yield from ((server.pcie, f"gpu{g}", f"pcie{g // server.gpus_per_pcie}", server.slot) for g in range(gpus))
    kind, lanes = server.nic_pcie
    yield from ((kind or server.pcie, f"nic{i}", f"pcie{i // server.nics_per_pcie}", lanes) for i in range(server.nics(gpus)))
    yield from ((server.uplink or server.pcie, f"pcie{i}", f"cpu{cpu}", None) for i, cpu in enumerate(cpus))
    for a, b in combinations(sorted(set(cpus)), 2):
        # Two CPUs are two sockets. Four are two sockets of two: between those the socket links are shared out.
        yield server.sockets, f"cpu{a}", f"cpu{b}", None if near(a, b, len(server.numa)) else 1


def near(a: int, b: int, cpus: int) -> bool:
    """Whether CPUs a and b of a server have all socket links between them: two are two sockets; of more, each half is a socket."""
    return cpus == 2 or a * 2 // cpus == b * 2 // cpus
