"""One call, several engines: the same answer by any, whatever the ranks are called, on any machine with any fault."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algorithms.launch import Launch, Placement
from algorithms.transforms import relabel
from sim import engines
from sim.engines import ENGINES
from sim.model import Model, ModelError
from sim.simulate import make_launch, run_collective, simulate
from topologies import make
from topologies.errors import ScheduleError
from topologies.faults import apply_faults

FAULTS = ("slow-gpu:s0.gpu3:x1.7", "slow-link:s1.gpu2-s1.nvswitch:x3", "lanes:s0.gpu0-s0.nvswitch:5", "jitter:0.4", "dead-nic:s1.nic4")


@pytest.mark.parametrize("routing", ["shortest", "ecmp", "adaptive", "rail"])
@pytest.mark.parametrize("fault", FAULTS)
def test_faults_and_routes_on_two_servers(fault: str, routing: str) -> None:
    machine = apply_faults(make("dgx-h100", {"nodes": "2"}), [fault], 3)
    model = Model(overhead=4e-7, reduce_rate=2e11, routing=routing, routing_seed=5)  # type: ignore[arg-type]
    for collective, algorithm in (("all-reduce", "ring"), ("all-to-all", "direct"), ("all-reduce", "nccl-tree")):
        launch = make_launch(machine, collective, algorithm, 1 << 20)
        event = simulate(machine, [launch], model, "event")
        compiled = simulate(machine, [launch], model, "compiled")
        for name in ("start", "sent", "arrived", "end"):
            np.testing.assert_allclose(getattr(compiled.trace, name), getattr(event.trace, name), rtol=1e-9)
        assert compiled.link_loads() == event.link_loads()
        np.testing.assert_array_equal(compiled.bytes_per_rank(), event.bytes_per_rank())
        lean = simulate(machine, [launch], model, "compiled", traced=False)
        assert (lean.time, lean.link_loads(), lean.critical_path()) == (compiled.time, compiled.link_loads(), compiled.critical_path())
        np.testing.assert_array_equal(lean.bytes_per_rank(), event.bytes_per_rank())


@given(st.permutations(range(9)), st.sampled_from(["ring", "double-binary-tree", "one-shot", "swing", "sharded-parameter-server"]))
@settings(max_examples=60, deadline=None)
def test_names_of_ranks_change_neither_time_nor_cost(order: list[int], algorithm: str) -> None:
    """Ranks play other parts, on the GPUs of those whose part they play: the same run under other names."""
    ranks = 8 if algorithm == "swing" else 9
    order = [new for new in order if new < ranks]
    machine = apply_faults(make("star", {"gpus": str(ranks)}), ["slow-gpu:gpu2:x2"], 0)
    launch = make_launch(machine, "all-reduce", algorithm, ranks * 4000)
    renamed = relabel(launch.whole, order)
    there = Launch(renamed, launch.nbytes, Placement.of(machine, renamed, np.argsort(order).tolist()))
    for engine in ("event", "compiled"):
        here, other = (simulate(machine, [one], Model(), engine) for one in (launch, there))
        assert other.time == pytest.approx(here.time, rel=1e-9)
        assert {(x.src, x.dst): x.bytes for x in other.link_loads()} == {(x.src, x.dst): x.bytes for x in here.link_loads()}
        assert other.bytes_per_rank()[order].tolist() == here.bytes_per_rank().tolist()


def test_auto_takes_the_engine_that_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = make("star", {"gpus": "8"})
    assert run_collective(machine, "all-reduce", "ring", 4096).engine == "event"
    monkeypatch.setattr(engines, "SMALL", 50)
    assert run_collective(machine, "all-reduce", "ring", 4096).engine == "compiled"
    monkeypatch.setattr(engines, "LARGE", 100)
    launch, shared = (make_launch(machine, "all-reduce", name, 4096, streamed=True) for name in ("ring", "one-shot"))
    assert simulate(machine, [launch], traced=False).engine == "maxplus"
    assert simulate(machine, [launch]).engine == "compiled"  # a trace is asked for
    monkeypatch.setattr(engines, "LARGE", 20)
    assert simulate(machine, [shared], traced=False).engine == "compiled"
    monkeypatch.setattr(engines, "LARGEST", 30)
    with pytest.raises(ScheduleError, match=r"flows share the link .*; and 56 sends are more than engine compiled plays \(30\)"):
        simulate(machine, [shared], traced=False)


def test_a_trace_that_was_not_kept_is_refused_by_name() -> None:
    machine = make("star", {"gpus": "4"})
    for engine in ("event", "compiled", "maxplus"):
        launch = make_launch(machine, "all-reduce", "ring", 4096)
        kept, result = (simulate(machine, [launch], engine=engine, traced=traced) for traced in (True, False))
        assert result.bytes_per_rank().tolist() == [6144] * 4
        with pytest.raises(ScheduleError, match="the 24 sends of this run were summed up, not kept"):
            _ = result.trace
        streamed = make_launch(machine, "all-reduce", "ring", 4096, streamed=True)
        assert simulate(machine, [streamed], engine=engine).trace.end.tolist() == kept.trace.end.tolist()
    with pytest.raises(ModelError, match=r'engine "compield" is not known; .*compiled'):
        simulate(machine, [make_launch(machine, "all-reduce", "ring", 4096)], engine="compield")
    assert set(ENGINES) == {"event", "compiled", "maxplus", "auto"}


@pytest.mark.parametrize(("engine", "absent"), [("event", "numba"), ("maxplus", "numba"), ("maxplus", "simpy"), ("compiled", "simpy")])
def test_an_engine_brings_only_its_own_library(engine: str, absent: str) -> None:
    code = (
        "import sys; from sim.simulate import run_collective; from topologies import make; "
        f"run_collective(make('star', {{'gpus': '4'}}), 'all-reduce', 'ring', 4096, engine='{engine}'); sys.exit('{absent}' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
