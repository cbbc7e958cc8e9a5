"""Topology x (source, destination) -> the links a message takes: one deterministic shortest path.

Fewest hops; then fewest GPUs passed through (a GPU is no switch if there is another way as short); then the smallest sum of
1/bandwidth. Ways still equal are told apart walking back from the destination, by ports (a node's ports are its outgoing links
in the order listed): a switch, PCIe switch or NIC takes the way in numbered by its port on the way out, modulo the equal
ways; a GPU takes the lowest port. The first is destination-modulo routing of fat trees: GPUs of one leaf spread over all
spines, the two GPUs of a PCIe switch over its two NICs. The second is dimension order on tori.
"""

from __future__ import annotations

from itertools import pairwise

from topologies.errors import TopologyError, nearest, quoted
from topologies.gates import NONE, Gates, Joints
from topologies.graph import Link, Topology
from topologies.ways import Graph, Ways


class Router:
    """Routes over one topology, searched when asked for and cached; the answer does not depend on earlier queries.

    Between servers a way is put together from three parts, each found once: out of a server to a switch, between two switches, and
    from a switch into a server. Where the parts may not be all there is (``Gates``), the whole topology is searched.
    """

    def __init__(self, topology: Topology) -> None:
        self.topology = topology
        self.graph = Graph(topology)
        self._gates = Gates(self.graph)
        self.hops: list[dict[int, Link]] = [{} for _ in self.graph.names]
        for link in topology.links:
            self.hops[self.graph.index[link.src]][self.graph.index[link.dst]] = link
        self._tails: dict[tuple[int, tuple[int, ...]], tuple[int, ...]] = {}
        self._heads: dict[tuple[int, int], tuple[int, ...] | Ways] = {}

    def route(self, src: str, dst: str) -> tuple[Link, ...]:
        """The links from ``src`` to ``dst`` in order; none if they are the same. Raises TopologyError for an unknown node or no way."""
        return self.links(self.path(self.node(src), self.node(dst)))

    def node(self, name: str) -> int:
        """The number of a node. Raises TopologyError for one that is not there."""
        number = self.graph.index.get(name)
        if number is None:
            raise TopologyError(f"{self.topology.name}: there is no node {quoted(name)}{nearest(name, self.graph.names)}")
        return number

    def links(self, path: list[int]) -> tuple[Link, ...]:
        """The links along a path of node numbers."""
        hops = self.hops
        return tuple([hops[a][b] for a, b in pairwise(path)])

    def path(self, src: int, dst: int) -> list[int]:
        """As ``route``, as numbers of nodes from ``src`` to ``dst``."""
        joints = self._gates.joints(src, dst)
        back = self._split(src, dst, joints) if joints is not NONE else self._walk(self.graph.between(src, dst)[1], [dst])
        back.reverse()
        return back

    def _split(self, src: int, dst: int, joints: Joints) -> list[int]:
        """The path, last node first: into the server, between the switches, out of the server."""
        tail = self._tails.get((dst, joints.inward))
        if tail is None:
            tail = self._tails[dst, joints.inward] = tuple(self._walk(self._gates.inward(dst, joints.inward), [dst]))
        back = list(tail)
        firsts = joints.outward[back[-1]]
        if firsts != (back[-1],):
            self._walk(self._gates.across(firsts, back[-1]), back)
        first = back[-1]
        head = self._heads.get((src, first))
        if head is None:
            ways = self._gates.outward(src, first)
            # With one way in at the gate, where the message goes on to does not matter.
            head = ways if len(ways.before.get(first, ())) > 1 else tuple(self._walk(ways, [first])[1:])
            self._heads[src, first] = head
        if isinstance(head, Ways):
            return self._walk(head, back)
        back += head
        return back

    def _walk(self, ways: Ways, back: list[int]) -> list[int]:
        """Go on from the last node of ``back``, a path in reverse, to where the ways begin."""
        graph, before = self.graph, ways.before
        while others := before.get(back[-1]):
            node, choice = back[-1], 0
            if len(others) > 1 and len(back) > 1 and not graph.is_gpu[node]:
                choice = graph.ports(node)[back[-2]] % len(others)
            back.append(others[choice])
        return back
