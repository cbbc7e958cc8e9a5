"""One fault at a time on two DGX H100: a ring all-reduce takes no less than before and no less than the faulty machine's bound, or
the rank that is cut off is named."""

from __future__ import annotations

from functools import cache

import pytest

from algorithms.collectives import ALL_REDUCE
from sim.bounds import bounds
from sim.simulate import run_collective
from topologies import Topology, TopologyError, make
from topologies.faults import apply_faults

NBYTES = 16 << 20
ULPS = 1 - 1e-9
PAIR = make("dgx-h100", {"nodes": 2})
UPLINKS = make("rail-optimised", {"nodes": 2, "gpus": 2, "unit": 1, "spines": 2})  # a leaf of each rail and server, two spines


def ring(topology: Topology) -> float:
    return run_collective(topology, "all-reduce", "ring", NBYTES).time


@cache
def healthy(pair: bool) -> float:
    return ring(PAIR if pair else UPLINKS)


def slower(topology: Topology, fault: str) -> float:
    """How many times as long as without the fault."""
    faulty = apply_faults(topology, [fault])
    before, took = healthy(topology is PAIR), ring(faulty)
    assert took >= before * ULPS
    assert took >= bounds(faulty, ALL_REDUCE, NBYTES, itemsize=4).lower_bound_s * ULPS
    return took / before


@pytest.mark.parametrize("nic", [f"s{server}.nic{nic}" for server in range(2) for nic in range(8)])
def test_a_dead_nic_is_routed_around(nic: str) -> None:
    slower(PAIR, f"dead-nic:{nic}")


LINKS = sorted({tuple(sorted((link.src, link.dst))) for link in PAIR.links})


@pytest.mark.parametrize("ends", LINKS[:: len(LINKS) // 10], ids="-".join)
def test_a_dead_link_is_routed_around_or_names_the_rank(ends: tuple[str, str]) -> None:
    try:
        slower(PAIR, f"dead-link:{ends[0]}-{ends[1]}")
    except TopologyError as error:
        assert "cuts off rank " in str(error)  # noqa: PT017  either is right


def test_a_dead_uplink_is_routed_around_until_none_is_left() -> None:
    uplinks = [(k.src, k.dst) for k in UPLINKS.links if {UPLINKS.node(k.src).kind, UPLINKS.node(k.dst).kind} == {"switch"}]
    assert uplinks
    for leaf, spine in uplinks[:6]:
        slower(UPLINKS, f"dead-uplink:{leaf}-{spine}")
    star = make("leaf-spine", {"gpus_per_leaf": 1, "leaves": 2, "spines": 1})
    one = next(k for k in star.links if "spine" in k.dst)
    with pytest.raises(TopologyError, match="cuts off rank "):
        apply_faults(star, [f"dead-uplink:{one.src}-{one.dst}"])


@pytest.mark.parametrize(
    ("fault", "least"),
    [
        ("lanes:s0.gpu3-s0.nvswitch:1", 1.0),
        ("lanes:s1.gpu0-s1.nvswitch:17", 1.5),
        ("background:s0.gpu3-s0.nvswitch:0.3", 1.0),
        ("background:s0.nic7-leaf7:0.5", 1.0),
        ("background:s0.gpu3>s0.nvswitch:0.97", 1.5),
        ("slow-gpu:3:x20", 1.5),
        ("slow-link:s0.gpu3-s0.nvswitch:x20", 1.5),
        ("degraded-rail:0:x4", 1.0),
    ],
)
def test_less_bandwidth_takes_longer(fault: str, least: float) -> None:
    assert slower(PAIR, fault) >= least * ULPS


def test_background_costs_what_it_takes_of_the_link_that_limits() -> None:
    """Half of a ring's slowest link: twice the time, latency apart."""
    plain = make("ring", {"gpus": 4, "bandwidth": 1e9, "latency": 0.0})
    assert ring(apply_faults(plain, ["background:gpu0>gpu1:0.5"])) == pytest.approx(2 * ring(plain), rel=1e-9)
