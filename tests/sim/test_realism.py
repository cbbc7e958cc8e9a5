"""Headers, hop latency and ceilings: times by hand; with incast, too: engines alike, nothing faster, bad values refused."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_schedules import schedules
from test_compiled import same, same_error
from test_maxplus import agrees

from algorithms.collectives import ALL_REDUCE
from algorithms.launch import Launch, Placement
from algorithms.schedule import Schedule, Send, reduce
from prediction.explain import explain
from sim.bounds import bounds
from sim.model import Model, ModelError
from sim.plan import make_plan
from sim.result import Result
from sim.simulate import make_launch, run_collective, simulate
from topologies import Topology, make
from topologies.errors import RingscopeError, ScheduleError
from topologies.graph import Link, Node, both_ways
from views.arguments import model as from_text
from views.records import model_record

ENGINES = ("event", "compiled", "maxplus")
STAR = make("star", {"gpus": 8})
C, L = 25e9, 2e-6
ALL_ON: dict[str, Any] = {"header": 26, "mtu": 128, "hop_latency": 3e-7, "pcie_ceiling": 0.8, "nic_ceiling": 0.9, "incast": 0.15}
EACH: list[dict[str, Any]] = [{"header": 26}, {"hop_latency": 3e-7}, {"pcie_ceiling": 0.7}, {"nic_ceiling": 0.9}, {"incast": 0.15}]


def play(topology: Topology, sends: list[Send], sizes: list[int], model: Model, engine: str) -> Result:
    """Chunk i has ``sizes[i]`` bytes."""
    s = Schedule.of("by hand", ALL_REDUCE, len(topology.gpus), sends, weights=np.maximum(sizes, 1))
    return simulate(topology, [Launch(s, sum(sizes), Placement.of(topology, s), "int8")], model, engine)


def server_pair() -> Topology:
    """Two GPUs, each behind a PCIe switch with a NIC, the NICs at one network switch: 31.5, 31.5, 25 GB/s; 0.5, 0.5, 0.23 us."""
    nodes = [Node("leaf", "switch")]
    links: list[Link] = []
    for i in range(2):
        nodes += [Node(f"gpu{i}", "gpu", i), Node(f"pcie{i}", "pcie", i), Node(f"nic{i}", "nic", i)]
        links += both_ways(Link(f"gpu{i}", f"pcie{i}", "pcie4", 16, 31.5e9, 0.5e-6))
        links += both_ways(Link(f"pcie{i}", f"nic{i}", "pcie4", 16, 31.5e9, 0.5e-6))
        links += both_ways(Link(f"nic{i}", "leaf", "ib-hdr", 1, 25e9, 0.23e-6))
    return Topology.build("server pair", nodes, links)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_header_a_packet(engine: str) -> None:
    model = Model(header=26, mtu=4096, reduce_rate=2e9)
    result = play(STAR, [reduce(0, 0, 1, 0)], [10_000], model, engine)
    assert result.time == 10_078 / C + L + 10_000 / 2e9  # three packets; what is reduced has no header
    assert result.trace.bytes.tolist() == [10_000]
    assert result.bytes_per_rank().tolist() == [10_000, *[0] * 7]
    assert [(load.bytes, load.busy_s) for load in result.link_loads()] == [(10_000, 10_078 / C)] * 2


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(("size", "packets"), [(0, 0), (1, 1), (4095, 1), (4096, 1), (4097, 2), (8192, 2), (8193, 3)])
def test_the_last_packet_may_be_short(engine: str, size: int, packets: int) -> None:
    result = play(STAR, [Send(0, 0, 1, 0)], [size], Model(header=82), engine)
    assert result.time == (size + 82 * packets) / C + L


@pytest.mark.parametrize("engine", ENGINES)
def test_the_sends_of_a_message_share_its_packets(engine: str) -> None:
    model, sizes = Model(header=26, mtu=4096), [5000, 6000]
    fused = play(STAR, [Send(0, 0, 1, 0, message=0), Send(0, 0, 1, 1, message=0)], sizes, model, engine)
    apart = play(STAR, [Send(0, 0, 1, 0), Send(0, 0, 1, 1)], sizes, model, engine)
    assert fused.time == (11_000 + 3 * 26) / C + L
    assert apart.time == pytest.approx((11_000 + 4 * 26) / C + L, rel=1e-12)
    assert fused.trace.bytes.tolist() == apart.trace.bytes.tolist() == sizes


@pytest.mark.parametrize("engine", ENGINES)
def test_traced_or_not_ranks_sent_payload(engine: str) -> None:
    launch, model = make_launch(STAR, "all-reduce", "ring", 8 * 4 * 1001), Model(header=26, mtu=256)
    runs = [simulate(STAR, [launch], model, engine, traced=traced) for traced in (True, False)]
    assert runs[0].bytes_per_rank().tolist() == runs[1].bytes_per_rank().tolist() == [14 * 4004] * 8
    assert runs[0].time == runs[1].time == pytest.approx(14 * ((4004 + 16 * 26) / C + L), rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
def test_each_switch_on_the_way_adds_its_hop(engine: str) -> None:
    assert play(STAR, [Send(0, 0, 1, 0)], [700], Model(hop_latency=3e-7), engine).time == pytest.approx(700 / C + L + 3e-7, rel=1e-12)
    far = play(server_pair(), [Send(0, 0, 1, 0)], [700], Model(hop_latency=3e-7), engine)  # two PCIe switches and the leaf
    assert far.time == pytest.approx(700 / 25e9 + 2 * (0.5e-6 + 0.5e-6 + 0.23e-6) + 3 * 3e-7, rel=1e-12)
    mesh = make("full-mesh", {"gpus": 3})
    assert play(mesh, [Send(0, 0, 1, 0)], [700], Model(hop_latency=3e-7), engine).time == 700 / C + 1e-6


def test_a_switch_that_reduces_adds_its_hop_once_as_it_sends() -> None:
    plain, slow = (run_collective(STAR, "all-reduce", "sharp", 8000, model=m) for m in (Model(), Model(hop_latency=3e-7)))
    assert slow.time - plain.time == pytest.approx(3e-7, rel=1e-9)


def test_hops_count_on_the_longest_of_several_ways() -> None:
    """Two ways of three links: over two switches, or over two hosts whose links are 0.1 us slower each."""
    nodes = [
        *(Node(f"gpu{i}", "gpu") for i in range(2)),
        *(Node(f"s{i}", "switch") for i in range(2)),
        *(Node(f"c{i}", "cpu") for i in range(2)),
    ]
    links = [
        way for middle, late in (("s", 0.0), ("c", 0.1e-6))
        for a, b in (("gpu0", f"{middle}0"), (f"{middle}0", f"{middle}1"), (f"{middle}1", "gpu1"))
        for way in both_ways(Link(a, b, "link", 1, 10e9, 1e-6 + late))
    ]  # fmt: skip
    both = Topology.build("two ways", nodes, links)
    for hop, latency in ((0.0, 3.3e-6), (0.1e-6, 3.3e-6), (0.4e-6, 3.8e-6)):
        result = play(both, [Send(0, 0, 1, 0)], [500], Model(routing="adaptive", hop_latency=hop), "event")
        assert result.time == pytest.approx(500 / 20e9 + latency, rel=1e-12)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize(
    ("pcie", "nic", "rate"),
    [(1.0, 1.0, 25e9), (0.85, 1.0, 25e9), (0.5, 1.0, 15.75e9), (1.0, 0.92, 23e9), (0.5, 0.92, 15.75e9), (0.75, 0.9, 22.5e9)],
)
def test_ceilings_of_pcie_and_of_nics(engine: str, pcie: float, nic: float, rate: float) -> None:
    model = Model(pcie_ceiling=pcie, nic_ceiling=nic)
    result = play(server_pair(), [Send(0, 0, 1, 0)], [100_000], model, engine)
    assert result.time == pytest.approx(100_000 / rate + 2.46e-6, rel=1e-12)
    busy = {load.src + load.dst: load.busy_s for load in result.link_loads()}
    assert busy["gpu0pcie0"] == pytest.approx(100_000 / (31.5e9 * pcie), rel=1e-12)
    assert busy["nic0leaf"] == busy["leafnic1"] == pytest.approx(100_000 / (25e9 * nic), rel=1e-12)


def test_ceilings_leave_other_links_and_the_ways_alone() -> None:
    model, server = Model(pcie_ceiling=0.5, nic_ceiling=0.5), make("dgx-h100", {"nodes": 1})
    plain, under = (run_collective(server, "all-reduce", "ring", 1 << 20, model=m) for m in (Model(), model))
    assert under.time == plain.time  # NVLink alone
    pair = make("dgx-h100", {"nodes": 2})
    routes = [
        [(r.resources, r.latency) for r in run_collective(pair, "all-to-all", "pairwise", 1 << 20, model=m).played.routes]
        for m in (Model(), model)
    ]
    assert routes[0] == routes[1]


@st.composite
def machines(draw: st.DrawFn, gpus: int) -> Topology:
    """GPUs behind a NIC, at an NVSwitch, or right at one of two switches; some with a limited port."""
    rate = st.sampled_from([1e9, 2e9, 3e9])
    wait = st.sampled_from([0.0, 1e-6, 3e-7])
    nodes, links = [Node("s0", "switch"), Node("s1", "nvswitch")], [Link("s0", "s1", "link", 1, draw(rate), draw(wait))]
    for i in range(gpus):
        nodes.append(
            Node(f"g{i}", "gpu", injection=draw(st.sampled_from([np.inf, 1.5e9])), ejection=draw(st.sampled_from([np.inf, 1.7e9])))
        )
        switch = f"s{draw(st.integers(0, 1))}"
        if draw(st.booleans()):
            nodes.append(Node(f"n{i}", "nic"))
            links += [
                Link(f"g{i}", f"n{i}", "pcie3", 1, draw(rate), draw(wait)),
                Link(f"n{i}", switch, "ib-hdr", 1, draw(rate), draw(wait)),
            ]
        else:
            links.append(Link(f"g{i}", switch, "link", 1, draw(rate), draw(wait)))
    return Topology.build("machine", nodes, [way for link in links for way in both_ways(link)])


@given(st.data(), schedules(), st.sampled_from(["fair", "fifo"]), st.sampled_from([0.0, 1e-6]), st.sampled_from([float("inf"), 3e9]))
@settings(max_examples=150, deadline=None)
def test_engines_are_alike_with_every_knob(
    data: st.DataObject, s: Schedule, sharing: Literal["fair", "fifo"], overhead: float, rate: float
) -> None:
    topology, model = data.draw(machines(s.nranks)), Model(overhead, rate, sharing, **ALL_ON)
    launch = Launch(s, 1201, Placement.of(topology, s), "int8")
    plan = make_plan(topology, [launch, Launch(s, 700, launch.placement, "int8", start=1e-6)], model)
    try:
        same(plan, model, exact=True)
    except ScheduleError:
        same_error(plan, model)
        return
    agrees(topology, [launch], model)


@pytest.mark.parametrize("algorithm", ["ring", "halving-doubling", "binomial-tree", "swing"])
def test_max_plus_agrees_with_every_knob(algorithm: str) -> None:
    for topology in (make("star", {"gpus": 8}), make("dgx-a100", {"nodes": 1})):
        assert agrees(topology, [make_launch(topology, "all-reduce", algorithm, 400_000)], Model(1e-6, 1e11, **ALL_ON))


@pytest.mark.parametrize("turned", [*EACH, ALL_ON], ids=lambda knobs: "+".join(knobs))
def test_no_knob_beats_a_bound_or_makes_anything_faster(turned: dict[str, Any]) -> None:
    model = Model(**turned)
    assert not model.nominal
    slower = exact = 0
    for topology, name in (
        (STAR, "ring"),
        (STAR, "one-shot"),
        (make("ring", {"gpus": 8}), "ring"),
        (make("dgx-h100", {"nodes": 2}), "ring"),
    ):
        launch = make_launch(topology, "all-reduce", name, 1 << 20)
        plain, told = explain(topology, launch, Model()), explain(topology, launch, model)
        assert told.result.time >= plain.result.time
        assert told.result.time >= bounds(topology, ALL_REDUCE, 1 << 20, itemsize=4).lower_bound_s
        assert told.closed_form is None
        slower += told.result.time > plain.result.time
        exact += plain.closed_form is not None
    assert slower
    assert exact


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"header": -1}, "header -1 B must be a whole number from 0 to the mtu, 4096"),
        ({"header": 4097}, "from 0 to the mtu, 4096"),
        ({"header": 2.5}, "header 2.5 B must be a whole number"),
        ({"mtu": 0}, "mtu 0 B must be a whole number from 1 to"),
        ({"mtu": float("nan")}, "mtu nan B"),
        ({"mtu": 2**31}, "whole number from 1 to 1073741824"),
        ({"hop_latency": -1e-9}, "hop-latency -1e-09 s must be zero or positive, and finite"),
        ({"hop_latency": float("nan")}, "hop-latency nan"),
        ({"hop_latency": float("inf")}, "hop-latency inf"),
        ({"pcie_ceiling": 0.0}, "pcie-ceiling 0.0 is a fraction"),
        ({"pcie_ceiling": 1.01}, "above 0 and at most 1"),
        ({"nic_ceiling": -0.5}, "nic-ceiling -0.5"),
        ({"nic_ceiling": float("nan")}, "nic-ceiling nan"),
        ({"incast": -0.1}, "incast -0.1 must be zero"),
        ({"incast": float("inf")}, "incast inf"),
        ({"incast": float("nan")}, "incast nan"),
    ],
)
def test_values_out_of_range_are_refused(values: dict[str, Any], rule: str) -> None:
    with pytest.raises(ModelError, match=rule):
        Model(**values)


def test_knobs_in_text_and_in_records() -> None:
    told = from_text(["header=26,mtu=4KiB", "hop-latency=130ns,pcie-ceiling=.85", "nic_ceiling=0.92,incast=2e-1"])
    assert told == Model(header=26, mtu=4096, hop_latency=1.3e-7, pcie_ceiling=0.85, nic_ceiling=0.92, incast=0.2)
    record = model_record(told)
    assert [record[key] for key in ("header_bytes", "mtu_bytes", "hop_latency_s", "pcie_ceiling", "nic_ceiling", "incast")] == [
        26, 4096, 1.3e-7, 0.85, 0.92, 0.2,
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text",
    [
        "header=26B",
        "header=-1",
        "header=5000",
        "mtu=0",
        "hop-latency=5",
        "pcie-ceiling=85%",
        "nic-ceiling=nan",
        "incast=-1",
        "incast=",
        "nic-ceilings=0.9",
    ],
)
def test_text_that_is_no_value_is_refused(text: str) -> None:
    with pytest.raises(RingscopeError, match=text.partition("=")[0]):
        from_text([text])
