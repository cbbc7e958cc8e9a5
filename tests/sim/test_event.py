"""The meaning of docs/model.md, rule by rule, on topologies small enough to reckon by hand."""

from __future__ import annotations

import numpy as np
import pytest

from algorithms.collectives import ALL_REDUCE, BROADCAST
from algorithms.launch import Launch, Placement
from algorithms.registry import find
from algorithms.schedule import Schedule, Send, copy, reduce
from sim.model import Model, ModelError
from sim.result import Result
from sim.simulate import run_collective, simulate
from topologies import make
from topologies.errors import ScheduleError
from topologies.graph import Link, Node, Topology

B, L = 1e9, 1e-6


def star(gpus: int, latency: float = L) -> Topology:
    return make("star", {"gpus": gpus, "bandwidth": B, "latency": latency})


def play(topology: Topology, sends: list[Send], nbytes: int, model: Model | None = None, nranks: int | None = None) -> Result:
    """Any list of sends, one chunk of ``nbytes`` int8 elements unless they name more."""
    schedule = Schedule.of("hand", ALL_REDUCE, nranks or len(topology.gpus), sends)
    return simulate(topology, [Launch(schedule, nbytes, Placement.of(topology, schedule), "int8")], model)


def test_one_message_pays_overhead_bandwidth_latency_in_this_order() -> None:
    r = play(star(2), [copy(0, 0, 1, 0)], 1000, Model(overhead=3e-6))
    assert r.trace.sent[0] == (0.0 + 3e-6) + 1000 / B
    assert r.trace.end[0] == ((0.0 + 3e-6) + 1000 / B) + 2 * L
    assert r.time == r.trace.end[0]


def test_queue_lets_one_message_go_at_a_time_and_channels_share() -> None:
    one = play(star(3), [copy(0, 0, 1, 0), copy(0, 0, 2, 0)], 1000)
    assert one.trace.start.tolist() == [0.0, 1000 / B]
    two = play(star(3), [copy(0, 0, 1, 0), copy(0, 0, 2, 0, channel=1)], 1000)
    assert two.trace.start.tolist() == [0.0, 0.0]
    assert two.trace.sent == pytest.approx([2000 / B] * 2, rel=1e-15)


def test_blocked_head_blocks_those_behind_it() -> None:
    """Rank 1 may not send step 1 before it has received; its send to rank 2, ready from the start, stands behind it."""
    sends = [copy(0, 0, 1, 0), copy(1, 1, 2, 0), copy(2, 1, 0, 1)]
    r = play(star(3), sends, 2000)
    assert r.trace.start[1] == r.trace.end[0]
    assert r.trace.start[2] == r.trace.sent[1]


def test_chain_of_slices_takes_one_and_three_quarters() -> None:
    """n = 8, 8 slices, L = 0: (n + S - 2)/S = 1.75 M/B; without the queue rule it would be 7."""
    r = run_collective(star(8, latency=0), "broadcast", "chain", 8_000_000, slices=8)
    assert r.time == pytest.approx(1.75 * 8e6 / B, rel=1e-12)


def test_pipelined_chain_in_both_conventions() -> None:
    n, slices, m = 6, 5, 1_000_000
    part = m / slices / B
    occupying = run_collective(star(n, latency=0), "broadcast", "chain", m, slices=slices, model=Model(overhead=1e-5))
    assert occupying.time == pytest.approx((n + slices - 2) * (1e-5 + part), rel=1e-12)
    latency = run_collective(star(n), "broadcast", "chain", m, slices=slices)
    assert latency.time == pytest.approx((n - 1) * (2 * L + part) + (slices - 1) * part, rel=1e-12)


def test_two_groups_at_once_share_nothing_on_one_star() -> None:
    topology = star(8)
    ring = find(ALL_REDUCE, "ring").build(4)
    halves = [Launch(ring, 1 << 20, Placement.of(topology, ring, ranks)) for ranks in ((0, 1, 2, 3), (4, 5, 6, 7))]
    both, alone = simulate(topology, halves), simulate(topology, halves[:1])
    assert both.time == alone.time
    assert both.launch_end(0) == both.launch_end(1)
    assert both.algbw(1) == (1 << 20) / both.time


def test_two_launches_on_the_same_gpus_share_their_links() -> None:
    topology = star(4, latency=0)
    ring = find(ALL_REDUCE, "ring").build(4)
    launch = Launch(ring, 1 << 20, Placement.of(topology, ring))
    assert simulate(topology, [launch, launch]).time == pytest.approx(2 * simulate(topology, [launch]).time, rel=1e-12)


def test_launches_wait_for_start_times_compute_and_each_other() -> None:
    topology = star(4)
    ring = find(ALL_REDUCE, "ring").build(4)
    place = Placement.of(topology, ring)
    alone = simulate(topology, [Launch(ring, 4000, place)]).time
    chain = [
        Launch(None, duration=1e-3),
        Launch(ring, 4000, place, after=(0,), start=2e-4),
        Launch(None, duration=5e-4, after=(1,)),
        Launch(ring, 4000, place, after=(2,)),
    ]
    r = simulate(topology, chain)
    assert r.trace.start.min() == 1e-3
    assert r.time == pytest.approx(1e-3 + 5e-4 + 2 * alone, rel=1e-12)
    assert r.algbw(3) == pytest.approx(4000 / alone, rel=1e-9)  # not counting what it waited for
    path = r.critical_path()
    assert path.wait_s == pytest.approx(1.5e-3, rel=1e-12)
    assert simulate(topology, [Launch(ring, 4000, place, start=7e-3)]).trace.start.min() == 7e-3
    with pytest.raises(ScheduleError, match="before it"):
        simulate(topology, [Launch(ring, 4000, place, after=(0,))])


def test_max_min_gives_the_free_flow_what_is_left() -> None:
    """0->2 and 1->2 share port 2; 0->3 shares port 0 with the first: rates 1/2, 1/2, 1/2, then the rest speeds up."""
    sends = [copy(0, 0, 2, 0), copy(0, 1, 2, 1), copy(0, 0, 3, 2, channel=1)]
    r = play(star(4, latency=0), sends, 3000)
    assert r.trace.sent == pytest.approx([2000 / B] * 3, rel=1e-12)
    slow = [Node(f"g{i}", "gpu") for i in range(4)] + [Node("s", "switch")]
    links = [Link(f"g{i}", "s", "link", 1, B, 0.0) for i in range(4)]
    links += [Link("s", f"g{i}", "link", 1, B / 4 if i == 2 else B, 0.0) for i in range(4)]
    r = play(Topology.build("slow", slow, links), sends, 3000)
    assert r.trace.sent[2] == pytest.approx(1000 / (B * 7 / 8), rel=1e-12)  # 0->2 gets B/8, 0->3 the other 7/8
    assert r.trace.sent[:2] == pytest.approx([8000 / B] * 2, rel=1e-12)


def test_ports_limit_the_node_apart_from_its_links() -> None:
    """Direct all-reduce of 4 MB over 8 GPUs, 1 GB/s a link: 1 ms by links alone, 7 ms through one-port nodes."""
    n, m = 8, 4_000_000

    def direct() -> list[Send]:
        rank = np.arange(n)
        push = [reduce(0, rank, (rank + k) % n, (rank + k) % n, channel=k) for k in range(1, n)]
        return push + [copy(1, rank, (rank + k) % n, rank, channel=k) for k in range(1, n)]

    def mesh(port: float) -> Topology:
        nodes = [Node(f"g{i}", "gpu", injection=port, ejection=port) for i in range(n)]
        return Topology.build("mesh", nodes, [Link(f"g{i}", f"g{j}", "link", 1, B, 0.0) for i in range(n) for j in range(n) if i != j])

    assert play(mesh(float("inf")), direct(), m).time == pytest.approx(1e-3, rel=1e-12)
    assert play(mesh(B), direct(), m).time == pytest.approx(7e-3, rel=1e-12)


def test_fifo_serves_in_order_and_says_who_waited() -> None:
    sends = [copy(0, 0, 2, 0), copy(0, 1, 2, 1)]
    fair = play(star(3, latency=0), sends, 2000)
    fifo = play(star(3, latency=0), sends, 2000, Model(sharing="fifo"))
    assert fair.trace.sent == pytest.approx([2000 / B, 2000 / B], rel=1e-12)
    assert fifo.trace.sent.tolist() == [1000 / B, 1000 / B + 1000 / B]
    assert fifo.critical_path().wait_s == pytest.approx(1000 / B)


def test_fifo_and_fair_agree_where_nothing_is_shared() -> None:
    for name in ("ring", "halving-doubling", "recursive-doubling"):
        fair, fifo = (run_collective(star(8), "all-reduce", name, 1 << 20, model=Model(sharing=s)) for s in ("fair", "fifo"))  # type: ignore[arg-type]
        assert np.array_equal(fair.trace.end, fifo.trace.end)


def test_reducer_serves_one_at_a_time_while_receiving_goes_on() -> None:
    sends = [reduce(0, 0, 2, 0), reduce(0, 1, 2, 0), copy(1, 2, 0, 0)]
    r = play(star(3, latency=0), sends, 1000, Model(reduce_rate=B / 4))
    assert r.trace.arrived[:2] == pytest.approx([2e-6, 2e-6], rel=1e-12)
    assert r.trace.end[:2] == pytest.approx([2e-6 + 4e-6, 2e-6 + 8e-6], rel=1e-12)
    assert r.trace.start[2] == r.trace.end[1]
    assert r.critical_path().reduce_s == pytest.approx(8e-6, rel=1e-12)


def test_a_reduction_that_waited_takes_its_work_to_the_last_bit() -> None:
    """Times that no sum of others rounds to: 30 arrivals in one reducer, of 30 sizes."""
    sends = [reduce(0, i, 30, 0) for i in range(30)]
    r = play(star(31, latency=3e-7), sends, 12_347, Model(reduce_rate=7e8))
    order = np.lexsort((np.arange(30), r.played.times.arrived))
    assert np.array_equal(r.played.times.end, r.played.times.reducing + r.played.plan.reduced / 7e8)
    assert np.array_equal(r.played.times.reducing[order[1:]], r.played.times.end[order[:-1]])
    assert r.played.times.reduce_cause[order].tolist() == [-1, *order[:-1].tolist()]


def test_barrier_waits_for_the_whole_step() -> None:
    """A slow and a fast pair: without the barrier the fast pair runs ahead."""
    sends = [copy(0, 0, 1, 0, count=3), copy(0, 2, 3, 3), copy(1, 3, 2, 3)]
    free, locked = (play(star(4), sends, 4000, Model(barrier=b)) for b in (False, True))
    assert free.trace.start[2] == free.trace.end[1] < free.trace.end[0]
    assert locked.trace.start[2] == locked.trace.end[0]


def test_fifo_depth_keeps_a_sender_from_running_ahead() -> None:
    sends = [copy(k, 0, 1, k) for k in range(4)]
    free, deep, shallow = (play(star(2), sends, 4000, Model(fifo_depth=d)) for d in (0, 2, 1))
    assert free.time == pytest.approx(4e-6 + 2 * L)
    assert shallow.time == pytest.approx(4 * (1e-6 + 2 * L))
    assert free.time < deep.time < shallow.time
    assert deep.trace.start[2] == deep.trace.end[0]


def test_one_message_pays_once_for_several_ranges() -> None:
    apart = [Send(0, 0, 1, 0), Send(0, 0, 1, 2)]
    together = [Send(0, 0, 1, 0, message=0), Send(0, 0, 1, 2, message=0)]
    a, t = (play(star(2), sends, 3000, Model(overhead=5e-6)) for sends in (apart, together))
    assert a.time == pytest.approx(2 * (5e-6 + 1e-6) + 2 * L)
    assert t.time == pytest.approx(5e-6 + 2e-6 + 2 * L)
    assert t.trace.bytes.tolist() == [1000, 1000]


def test_signals_and_local_sends_take_no_bandwidth() -> None:
    empty = play(star(2), [copy(0, 0, 1, 0)], 0, Model(overhead=2e-6))
    assert empty.time == 2e-6 + 2 * L
    local = play(star(2), [Send(0, 0, 0, 0, dst_chunk=1), Send(1, 0, 1, 1)], 2000, Model(overhead=2e-6))
    assert local.trace.end[0] == 2e-6
    assert local.bytes_per_rank().tolist() == [1000, 0]


def test_cut_through_switch_pays_bandwidth_once() -> None:
    """Ring on a switch, N = 8: a store-and-forward switch would take twice the bandwidth time."""
    r = run_collective(star(8), "all-reduce", "ring", 8_000_000)
    assert r.time == pytest.approx(14 * (2 * L + 1_000_000 / B), rel=1e-12)


def test_incast_is_as_slow_as_the_one_port() -> None:
    """8 senders of 400 kB into one 1 GB/s port: 3.2 ms, not one message's time."""
    r = play(star(9, latency=0), [reduce(0, np.arange(1, 9), 0, 0)], 400_000)
    assert r.time == pytest.approx(3.2e-3, rel=1e-12)


def test_messages_that_wait_for_each_other_are_an_error() -> None:
    """Two messages of one step, each with a write ordered before one of the other."""
    sends = [Send(0, 0, 1, 0, message=0), Send(0, 2, 1, 0, message=1), Send(0, 2, 1, 1, message=1), Send(0, 0, 1, 1, message=0)]
    with pytest.raises(ScheduleError, match="for ever"):
        play(star(3), sends, 2000)


@pytest.mark.parametrize(
    ("parameters", "rule"),
    [
        ({"overhead": -1.0}, "overhead"), ({"overhead": float("nan")}, "overhead"), ({"overhead": float("inf")}, "overhead"),
        ({"reduce_rate": 0.0}, "reduce-rate"), ({"reduce_rate": float("nan")}, "reduce-rate"), ({"fifo_depth": -1}, "fifo-depth"),
        ({"sharing": "lottery"}, "sharing"),
    ],
)  # fmt: skip
def test_bad_models_are_refused(parameters: dict[str, float], rule: str) -> None:
    with pytest.raises(ModelError, match=rule):
        Model(**parameters)  # type: ignore[arg-type]


def test_bad_launches_are_refused() -> None:
    topology = star(4)
    ring = find(BROADCAST, "chain").build(4)
    with pytest.raises(ScheduleError, match="whole number of float32"):
        run_collective(topology, "broadcast", "chain", 1001)
    for ranks, rule in (((0, 1, 2), "3 GPUs given"), ((0, 1, 2, 2), "share a GPU"), ((0, 1, 2, 9), "no GPU 9")):
        with pytest.raises(ScheduleError, match=rule):
            Placement.of(topology, ring, ranks)
    with pytest.raises(ScheduleError, match="switch that reduces"):
        run_collective(make("ring", {"gpus": 4}), "all-reduce", "sharp", 1 << 20)
    with pytest.raises(ModelError, match="did you mean"):
        run_collective(topology, "broadcast", "chain", 1000, engine="evnt")


def test_nonsense_launches_are_refused() -> None:
    for times in ({"start": -1.0}, {"start": float("nan")}, {"duration": float("inf")}):
        with pytest.raises(ScheduleError, match="zero or positive"):
            Launch(None, **times)
    with pytest.raises(ScheduleError, match="nothing to simulate"):
        simulate(star(4), [])
