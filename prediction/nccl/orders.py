"""Which GPUs the channels of machines behind NVSwitches visit, and by which NICs they come and go, by rule: what the search itself
finds there, without searching (a test compares). GPUs and NICs are local indices, counted as NCCL counts them.
"""

from __future__ import annotations

Orders = tuple[tuple[int, ...], ...]
Nics = tuple[tuple[int, int], ...]


def switch_orders(channels: int, gpus: int) -> Orders:
    """In one node every channel goes through the GPUs as they are numbered."""
    return (tuple(range(gpus)),) * channels


def ring_orders(channels: int, gpus: int, nics: int, *, exchange: bool, shared: bool) -> tuple[Orders, Nics]:
    """Rings between nodes enter at the GPU of their NIC and go down, or up where that ends beside the NIC they leave by: the NIC they
    came in by (``shared`` by two GPUs), or the neighbour's (``exchange``)."""
    orders, ways = [], []
    for channel in range(channels):
        nic = channel % nics
        entry = nic * gpus // nics
        up = bool(channel & 1) and (exchange or (shared and nics == gpus))
        orders.append(_around(entry, gpus, up=up))
        ways.append((nic, nic ^ 1 if exchange else nic))
    return tuple(orders), tuple(ways)


def tree_orders(channels: int, gpus: int, nics: int, *, balanced: bool) -> tuple[Orders, Nics]:
    """Chains start at the GPU of their NIC and go up; a balanced tree's second GPU is the other one beside the NIC, so odd ones go down."""
    orders, ways = [], []
    for channel in range(channels):
        nic = channel % nics
        down = balanced and nics == gpus and bool(channel & 1)
        orders.append(_around(nic * gpus // nics, gpus, up=not down))
        ways.append((nic, nic))
    return tuple(orders), tuple(ways)


def _around(first: int, gpus: int, *, up: bool) -> tuple[int, ...]:
    return tuple((first + (step if up else -step)) % gpus for step in range(gpus))
