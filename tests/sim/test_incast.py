"""Incast by hand: flows that come together at an exit of the network get less of it. (Engines alike with it: test_realism.)"""

from __future__ import annotations

from typing import Any

import pytest
from test_realism import STAR, C, L, play

from algorithms.schedule import Send
from sim.model import Model
from topologies import Topology
from topologies.graph import Link, Node, both_ways

SHARED = ("event", "compiled")
"""Max-plus refuses flows that share a link."""


@pytest.mark.parametrize("engine", SHARED)
def test_seven_senders_to_one(engine: str) -> None:
    sends, sizes = [Send(0, r, 0, r - 1) for r in range(1, 8)], [3500] * 7
    assert play(STAR, sends, sizes, Model(), engine).time == pytest.approx(7 * 3500 / C + L, rel=1e-12)
    result = play(STAR, sends, sizes, Model(incast=0.1), engine)
    assert result.time == pytest.approx(7 * 3500 * 1.6 / C + L, rel=1e-12)  # 1 + 0.1 x 6
    fifo = [play(STAR, sends, sizes, Model(sharing="fifo", incast=p), engine).time for p in (0.0, 0.1)]
    assert fifo[0] == fifo[1] == pytest.approx(7 * 3500 / C + L, rel=1e-12)


@pytest.mark.parametrize("engine", SHARED)
def test_the_penalty_goes_with_the_flows(engine: str) -> None:
    """5000 and 20000 B: both at half of C / 1.2 until the first is there, then the rest, 15000 B, at C."""
    result = play(STAR, [Send(0, 1, 0, 0), Send(0, 2, 0, 1)], [5000, 20_000], Model(incast=0.2), engine)
    assert result.trace.sent == pytest.approx([10_000 * 1.2 / C, 10_000 * 1.2 / C + 15_000 / C], rel=1e-12)


@pytest.mark.parametrize("engine", SHARED)
def test_a_flow_that_is_held_up_elsewhere_counts(engine: str) -> None:
    """GPU 1 sends on two channels: 5 GB/s each to GPU 0 and GPU 3; GPU 2 gets what is left of 25 / 1.25 GB/s."""
    nodes = [*(Node(f"gpu{i}", "gpu") for i in range(4)), Node("switch", "switch")]
    rates = (25e9, 10e9, 25e9, 25e9)
    links = [way for i in range(4) for way in both_ways(Link(f"gpu{i}", "switch", "link", 1, rates[i], 0.0))]
    uneven = Topology.build("uneven", nodes, links)
    sends = [Send(0, 1, 0, 0), Send(0, 1, 3, 1, channel=1), Send(0, 2, 0, 2)]
    result = play(uneven, sends, [50_000, 50_000, 30_000], Model(incast=0.25), engine)
    assert result.trace.sent == pytest.approx([1e-5, 1e-5, 30_000 / 15e9], rel=1e-12)


@pytest.mark.parametrize("engine", SHARED)
@pytest.mark.parametrize(("hub", "penalty"), [("switch", 1.5), ("nvswitch", 1.5), ("pcie", 1.0), ("cpu", 1.0)])
@pytest.mark.parametrize("end", ["gpu", "nic"])
def test_exits_lead_from_a_switch_to_a_gpu_or_nic(engine: str, hub: Any, penalty: float, end: Any) -> None:
    """Two senders, one receiver; between the hub and the receiver there is a NIC, or nothing but a cable."""
    middle = [Node("nic", "nic")] if end == "nic" else []
    nodes = [*(Node(f"gpu{i}", "gpu") for i in range(3)), Node("hub", hub), *middle]
    ways = [("gpu1", "hub"), ("gpu2", "hub"), *([("hub", "nic"), ("nic", "gpu0")] if middle else [("hub", "gpu0")])]
    links = [way for a, b in ways for way in both_ways(Link(a, b, "link", 1, 10e9, 0.0))]
    result = play(Topology.build("hub", nodes, links), [Send(0, 1, 0, 0), Send(0, 2, 0, 1)], [5000, 5000], Model(incast=0.5), engine)
    assert result.time == pytest.approx(10_000 * penalty / 10e9, rel=1e-12)


@pytest.mark.parametrize("engine", SHARED)
def test_incast_is_at_exits_and_ejection_ports_only(engine: str) -> None:
    fan_out = [Send(0, 0, r, r - 1, channel=r - 1) for r in range(1, 8)]
    for p in (0.0, 0.5):
        assert play(STAR, fan_out, [3500] * 7, Model(incast=p), engine).time == pytest.approx(7 * 3500 / C + L, rel=1e-12)
    nodes = [Node("gpu0", "gpu", ejection=10e9), Node("gpu1", "gpu"), Node("gpu2", "gpu")]
    cables = [Link(f"gpu{a}", f"gpu{b}", "link", 1, 25e9, 0.0) for a in range(3) for b in range(3) if a != b]
    port = Topology.build("port", nodes, cables)
    result = play(port, [Send(0, 1, 0, 0), Send(0, 2, 0, 1)], [5000, 5000], Model(incast=0.5), engine)
    assert result.time == pytest.approx(10_000 * 1.5 / 10e9, rel=1e-12)
