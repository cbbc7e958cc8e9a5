"""What routing does to times and loads: collisions, spraying, rails, ways given by hand; on every engine."""

from __future__ import annotations

from collections import defaultdict

import pytest

from algorithms.collectives import ALL_REDUCE
from algorithms.launch import Launch, Placement
from algorithms.schedule import Schedule, Send, copy
from sim.model import Model, ModelError
from sim.result import Result
from sim.simulate import ENGINES, run_collective, simulate
from topologies import Link, Node, Topology, TopologyError, make
from topologies.errors import RingscopeError
from topologies.graph import both_ways
from views.arguments import model as model_of
from views.records import model_record

B, L, SIZE = 1e9, 1e-6, 8_000
TWO_SPINES = make("leaf-spine", {"leaves": 2, "gpus_per_leaf": 2, "spines": 2, "bandwidth": B, "latency": L})
SHARE_LINKS = [name for name in ENGINES if name not in ("auto", "maxplus")]
"""Engines that play flows which share a link."""
CROSSING = [copy(0, 0, 2, 0), copy(0, 1, 3, 1)]


def play(topology: Topology, sends: list[Send], nbytes: int, model: Model | None = None, engine: str = "event") -> Result:
    schedule = Schedule.of("hand", ALL_REDUCE, len(topology.gpus), sends)
    return simulate(topology, [Launch(schedule, nbytes, Placement.of(topology, schedule), "int8")], model, engine)


def loads(result: Result) -> dict[tuple[str, str], int]:
    return {(load.src, load.dst): load.bytes for load in result.link_loads()}


def flows(result: Result) -> dict[str, float]:
    """Bytes that leave a node minus those that enter it, from the routes."""
    net: dict[str, float] = defaultdict(float)
    for route, nbytes in zip(result.played.routes, result.played.route_bytes.tolist(), strict=True):
        for resource, weight in zip(route.resources, route.weights, strict=True):
            link = result.played.resources[resource]
            net[link.src] += weight * nbytes
            net[link.dst] -= weight * nbytes
    return net


@pytest.mark.parametrize("engine", SHARE_LINKS)
def test_two_flows_over_two_spines_collide_for_half_of_the_seeds_and_then_take_twice_as_long(engine: str) -> None:
    alone, both = SIZE / 2 / B + 4 * L, SIZE / B + 4 * L  # two chunks of half the size
    times = [play(TWO_SPINES, CROSSING, SIZE, Model(routing="ecmp", routing_seed=seed), engine).time for seed in range(100)]
    slow = sum(time == pytest.approx(both, rel=1e-12) for time in times)
    assert slow + sum(time == pytest.approx(alone, rel=1e-12) for time in times) == 100
    assert 35 <= slow <= 65  # 3 sigma of 100 tosses of a coin
    assert play(TWO_SPINES, CROSSING, SIZE, Model(routing="adaptive"), engine).time == pytest.approx(alone, rel=1e-12)


@pytest.mark.parametrize("engine", SHARE_LINKS)
@pytest.mark.parametrize("sharing", ["fair", "fifo"])
def test_a_sprayed_flow_has_the_bandwidth_of_all_its_ways(engine: str, sharing: str) -> None:
    """Uplinks of a quarter of a GPU's rate each: four of five spines' worth would do, one way would take four times as long."""
    thin = make("leaf-spine", {"leaves": 2, "gpus_per_leaf": 1, "spines": 4, "bandwidth": B, "latency": L})
    one, all_of_them = (
        play(thin, [copy(0, 0, 1, 0)], SIZE, Model(routing=routing, sharing=sharing), engine).time  # type: ignore[arg-type]
        for routing in ("shortest", "adaptive")
    )
    assert one == pytest.approx(4 * SIZE / B + 4 * L, rel=1e-12)
    assert all_of_them == pytest.approx(SIZE / B + 4 * L, rel=1e-12)


def test_bytes_of_a_split_flow_add_up_on_both_sides_and_in_the_critical_path() -> None:
    five = make("leaf-spine", {"leaves": 2, "gpus_per_leaf": 3, "spines": 5, "bandwidth": B, "latency": L})
    result = play(five, [copy(0, 0, 3, 0), copy(0, 1, 4, 1), copy(0, 2, 5, 1)], 10_000, Model(routing="adaptive", overhead=2e-6))
    carried = loads(result)
    assert sum(carried["leaf0", f"spine{i}"] for i in range(5)) == sum(carried[f"spine{i}", "leaf1"] for i in range(5)) == 15_000
    assert [carried["leaf0", f"spine{i}"] for i in range(5)] == [3_000] * 5
    net = flows(result)
    assert [net[f"gpu{i}"] for i in range(6)] == [5_000] * 3 + [-5_000] * 3
    assert max(abs(net[name]) for name in five.graph if not name.startswith("gpu")) < 1e-9
    path = result.critical_path()
    assert path.latency_s == pytest.approx(4 * L, rel=1e-9)
    assert path.overhead_s + path.latency_s + path.bandwidth_s + path.reduce_s + path.wait_s == pytest.approx(result.time, rel=1e-12)
    assert set(path.bandwidth_by) <= set(carried)


@pytest.mark.parametrize("name", [("all-to-all", "direct"), ("all-reduce", "ring"), ("all-reduce", "double-binary-tree")])
@pytest.mark.parametrize("routing", ["shortest", "ecmp", "adaptive", "rail"])
def test_flow_in_is_flow_out_for_collectives(name: tuple[str, str], routing: str) -> None:
    topology = make("rail-optimised", {"nodes": 4, "gpus": 2, "unit": 2, "spines": 3})
    result = run_collective(topology, *name, 4 * 8 * 105, model=Model(routing=routing, routing_seed=3))  # type: ignore[arg-type]
    net = flows(result)
    sent, got = result.trace.bytes_pairs(0, 8).sum(axis=1), result.trace.bytes_pairs(0, 8).sum(axis=0)
    for node in topology.graph:
        wanted = int((sent - got)[topology.gpus.index(node)]) if node in topology.gpus else 0
        assert net[node] == pytest.approx(wanted, abs=1e-6), node
    assert result.link_loads()


def test_ports_count_a_split_flow_once() -> None:
    nodes = [Node("gpu0", "gpu", injection=B / 5), Node("gpu1", "gpu"), Node("s0", "switch"), Node("s1", "switch")]
    cables = [way for g in (0, 1) for s in (0, 1) for way in both_ways(Link(f"gpu{g}", f"s{s}", "link", 1, B, L * (1 + 3 * s)))]
    split = Topology.build("split", nodes, cables)
    result = play(split, [copy(0, 0, 1, 0)], SIZE, Model(routing="adaptive"))
    assert result.time == pytest.approx(SIZE / (B / 5) + 8 * L, rel=1e-12)  # the longest way's latency
    assert result.critical_path().bandwidth_by.keys() == {("gpu0", "")}
    back = play(split, [copy(0, 1, 0, 0)], SIZE, Model(routing="adaptive"))
    assert back.time == pytest.approx(SIZE / (2 * B) + 8 * L, rel=1e-12)


def test_rail_aligned_traffic_leaves_the_spines_alone() -> None:
    topology = make("rail-optimised", {"nodes": 4, "gpus": 4, "unit": 4, "spines": 2})

    def spine_bytes(routing: str) -> int:
        result = run_collective(topology, "all-to-all", "direct", 4 * 16 * 16, model=Model(routing=routing))  # type: ignore[arg-type]
        return sum(nbytes for ends, nbytes in loads(result).items() if any(name.startswith("spine") for name in ends))

    assert spine_bytes("shortest") == 2 * 64 * 16 * 12 // 4 * 3  # 12 peers in other servers, 9 of them on other rails, up and down
    assert spine_bytes("rail") == 0


def test_overrides_reach_the_simulation_and_wrong_ones_are_refused_before_it() -> None:
    told = ("gpu1", "leaf0", "spine0", "leaf1", "gpu3")
    free = play(TWO_SPINES, CROSSING, SIZE)
    crowded = play(TWO_SPINES, CROSSING, SIZE, Model(overrides={("gpu0", "gpu2"): ("gpu0", *told[1:4], "gpu2"), ("gpu1", "gpu3"): told}))
    assert crowded.time - 4 * L == pytest.approx(2 * (free.time - 4 * L), rel=1e-9)
    assert loads(crowded)["leaf0", "spine0"] == SIZE
    with pytest.raises(TopologyError, match="override gpu1 -> gpu3: there is no link leaf0 -> leaf1"):
        play(TWO_SPINES, CROSSING, SIZE, Model(overrides={("gpu1", "gpu3"): ("gpu1", "leaf0", "leaf1", "gpu3")}))


def test_channels_are_flows_of_their_own() -> None:
    """Of 16 channels of a pair the eight ways get several each, and under other policies all take the same."""
    wide = make("leaf-spine", {"leaves": 2, "gpus_per_leaf": 2, "spines": 8, "bandwidth": B, "latency": L})
    sends = [copy(0, 0, 2, c, channel=c) for c in range(16)]
    used = {
        routing: sum(a == "leaf0" for a, _ in loads(play(wide, sends, 16_000, Model(routing=routing))))  # type: ignore[arg-type]
        for routing in ("shortest", "ecmp", "adaptive")
    }
    assert used["shortest"] == 1
    assert used["adaptive"] == 8
    assert 3 <= used["ecmp"] <= 8
    assert len(play(wide, sends, 16_000, Model(routing="shortest")).played.routes) == 1


def test_same_seed_same_times_other_seed_other_ways() -> None:
    topology = make("fat-tree", {"k": 4})
    times = [
        run_collective(topology, "all-to-all", "direct", 4 * 16 * 64, model=Model(routing="ecmp", routing_seed=seed)).trace.end.tolist()
        for seed in (1, 1, 2)
    ]
    assert times[0] == times[1] != times[2]


def test_words_and_records() -> None:
    model = model_of(["routing=ecmp,routing-seed=7", "overhead=1us"])
    assert model == Model(overhead=1e-6, routing="ecmp", routing_seed=7)
    assert hash(model) == hash(Model(overhead=1e-6, routing="ecmp", routing_seed=7))
    record = model_record(Model(routing="rail", overrides={("a", "b"): ("a", "s", "b")}))
    assert (record["routing"], record["routing_seed"]) == ("rail", 0)
    assert record["overrides"] == [{"src": "a", "dst": "b", "path": ["a", "s", "b"]}]
    for words, said in (
        (["routing=ecpm"], 'routing "ecpm" is not known; did you mean "ecmp"?'),
        (["routing-seed=-1"], 'routing-seed "-1" is not a whole number from 0 to 4294967295'),
        (["routing-seed=4294967296"], "is not a whole number"),
        (["routing=ecmp,,"], "is not a key and a value"),
        (["routing=ecmp", "routing=rail"], "stands twice"),
        (["routing_sed=1"], 'did you mean "routing-seed"'),
    ):
        with pytest.raises(RingscopeError) as caught:
            model_of(words)
        assert said in str(caught.value)
    for wrong in ({"routing": "fast"}, {"routing_seed": -1}, {"routing_seed": 2**32}):
        with pytest.raises(ModelError, match="routing"):
            Model(**wrong)  # type: ignore[arg-type]
