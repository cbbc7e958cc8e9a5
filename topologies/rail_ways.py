"""Ways that keep to a rail: out of the source's server by the NIC on the destination's rail, and along that rail.

A source that is not among the nearest GPUs to that NIC goes there by the GPU of its server on the destination's rail (NCCL's PXN: NVLink
to a peer, out by the peer's NIC), if GPUs and NVSwitches alone lie between. Every part is the shortest way of ``routing.py``. Where
there is no rail to keep to, all of it is: inside a server or an NVLink domain, without NVLink, in a topology without rails, or for a
server that lacks a NIC for each of them.
"""

from __future__ import annotations

from topologies.routing import Router


class RailWays:
    """Ways of one router, whose topology names its ``rails``; a server's NICs are in the order of rails."""

    def __init__(self, router: Router) -> None:
        self.router = router
        topology = router.topology
        self._kind = [node.kind for node in topology.nodes]
        rails = topology.groups.get("rails", ())
        self._place = {
            router.node(topology.gpus[rank]): (topology.node(topology.gpus[rank]).server, rail)
            for rail, part in enumerate(rails)
            for rank in part
        }
        self._gpus: dict[tuple[int | None, int], list[int]] = {}
        for gpu, place in self._place.items():
            self._gpus.setdefault(place, []).append(gpu)
        nics: dict[int | None, list[int]] = {}
        for node in topology.nodes:
            if node.kind == "nic":
                nics.setdefault(node.server, []).append(router.node(node.name))
        self._nics = {server: row for server, row in nics.items() if server is not None and len(row) == len(rails)}
        self._out: dict[tuple[int, int], list[int]] = {}
        self._along: dict[tuple[int, int], list[int]] = {}
        self._into: dict[int, list[int]] = {}

    def path(self, src: int, dst: int) -> list[int]:
        """Node numbers from ``src`` to ``dst``. Raises TopologyError where there is no way."""
        (here, _), (there, rail) = self._place.get(src, (None, 0)), self._place.get(dst, (None, 0))
        shortest = self.router.path(src, dst)
        if here == there or here not in self._nics or there not in self._nics or not any(self._kind[node] == "nic" for node in shortest):
            return shortest
        leaving, entering = self._nics[here][rail], self._nics[there][rail]
        if (src, rail) not in self._out:
            self._out[src, rail] = self._to_nic(src, rail, leaving)
        if (leaving, entering) not in self._along:
            self._along[leaving, entering] = self.router.path(leaving, entering)[1:]
        if dst not in self._into:
            self._into[dst] = self.router.path(entering, dst)[1:]
        out = self._out[src, rail]
        return out + self._along[leaving, entering] + self._into[dst] if out else shortest

    def _to_nic(self, src: int, rail: int, nic: int) -> list[int]:
        """From a GPU to its server's NIC on a rail; empty where only PCIe leads there."""
        server, own = self._place[src]
        peers = self._gpus.get((server, rail), [])
        if not peers:
            return []
        direct, mates = self.router.path(src, nic), self._gpus[server, own]
        relay = peers[mates.index(src) % len(peers)]
        last = self.router.path(relay, nic)
        if len(direct) <= len(last):
            return direct
        first = self.router.path(src, relay)
        return first + last[1:] if all(self._kind[node] in ("gpu", "nvswitch") for node in first) else []
