"""Libraries beside NCCL: every call gets a choice with a reason, and what cannot be answered is refused in one line."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algorithms.collectives import collective as named
from algorithms.registry import find
from prediction.rules import gloo, mpich, open_mpi, rccl
from prediction.rules.call import Call, Chosen
from prediction.rules.choose import VERSIONS, choose, nodes
from topologies import make
from topologies.errors import RingscopeError

TUNED = ("broadcast", "reduce", "all-gather", "reduce-scatter", "all-reduce")
ALL_MPI = (*TUNED, "all-to-all", "gather", "scatter", "barrier")
NOT_HERE = {
    "reduce-broadcast", "all-gather-reduce", "split-binary-tree", "binary-tree", "scatter-recursive-doubling", "two-chains",
    "in-order-binary-tree", "rabenseifner", "neighbour-exchange", "reduce-scatterv", "butterfly", "linear-sync", "linear", "pairwise",
    "bcube", "ring-whole",
}  # fmt: skip
"""Words of libraries for which there is no schedule; ``pairwise`` is one of an all-to-all only."""
OF_ROWS = {"slices", "segment_bytes", "base", "reduce", "broadcast"}
"""Options that say how a row runs, not arguments of an algorithm."""


@st.composite
def calls(draw: st.DrawFn, collectives: tuple[str, ...]) -> Call:
    ranks = draw(st.integers(2, 200) | st.integers(2, 100_000))
    per_node = draw(st.sampled_from([n for n in (1, 2, 8, ranks) if ranks % n == 0]))
    nbytes = draw(st.integers(1, 1 << 20) | st.integers(1, 1 << 42))
    dtype = draw(st.sampled_from(["int8", "float16", "float32", "float64"]))
    return Call(draw(st.sampled_from(collectives)), nbytes, ranks, ranks // per_node, dtype, draw(st.sampled_from(["sum", "user"])))


def answered(chosen: Chosen) -> None:
    """A choice, its reason, and the truth about whether it can be simulated here."""
    assert chosen.rule
    for row in chosen.ranking:
        missing = row.missing(chosen.call)
        if row.algorithm in NOT_HERE and (row.algorithm, chosen.call.collective) != ("pairwise", "all-to-all"):
            assert missing
            continue
        known = find(named(chosen.call.collective), row.schedule)
        assert missing is None or str(known.refusal(chosen.call.ranks)) in missing
        assert set(row.options) <= OF_ROWS | {option.name for option in known.options}


@given(calls(ALL_MPI))
def test_every_call_gets_a_choice_of_open_mpi(call: Call) -> None:
    answered(open_mpi.choose(call))


@given(calls(ALL_MPI), st.sampled_from(mpich.VERSIONS))
def test_every_call_gets_a_choice_of_mpich(call: Call, version: str) -> None:
    answered(mpich.choose(call, version))


@given(calls(("all-reduce",)), st.sampled_from([None, *gloo.PICKS]))
def test_every_call_gets_a_choice_of_gloo(call: Call, pick: str | None) -> None:
    answered(gloo.choose(call, pick=pick))
    count, size = gloo.segments(call)
    assert count % call.ranks == 0
    assert count >= 2 * call.ranks
    assert size <= gloo.SEGMENT
    assert count * size >= call.nbytes


@given(calls(TUNED), st.floats(1e9, 1e12), st.floats(1e9, 1e12), st.sampled_from(["intel", "amd"]))
def test_every_call_gets_a_choice_of_rccl(call: Call, intra: float, inter: float, cpu: str) -> None:
    chosen = rccl.choose(call, rccl.Bandwidths(intra, inter, cpu))
    answered(chosen)
    times = [row.time_s for row in chosen.ranking]
    assert all(time is not None and 0 < time < math.inf for time in times)
    assert times == sorted(times, key=lambda time: time or 0.0)
    assert chosen.choice.protocol in ("ll", "simple")
    assert len(chosen.ranking) + len(chosen.off) == 6


def test_by_name_over_a_topology() -> None:
    two = make("dgx-h100", {"nodes": "2"})
    assert nodes(two) == 2
    assert nodes(make("star", {"gpus": "5"})) == 1  # it names no servers
    for library in VERSIONS:
        machine = make("mi300x", {"nodes": "2"}) if library == "rccl" else two
        chosen = choose(library, machine, "all-reduce", 3 << 20)
        assert (chosen.library, chosen.version) == (library, VERSIONS[library][0])
        assert (chosen.call.ranks, chosen.call.nodes, chosen.call.nbytes) == (16, 2, 3 << 20)


@pytest.mark.parametrize(
    ("library", "collective", "more", "says"),
    [
        ("mvapich", "all-reduce", {}, 'did you mean "mpich"'),
        ("mpich", "all-reduce", {"version": "2"}, "4 and 3"),
        ("mpich", "all-reduced", {}, 'did you mean "all-reduce"'),
        ("mpich", "sendrecv", {}, "rule for sendrecv is not known here; known: all-reduce, broadcast"),
        ("open-mpi", "sendrecv", {}, "rule for sendrecv is not known"),
        ("gloo", "broadcast", {}, "known: all-reduce"),
        ("rccl", "all-reduce", {}, "MI300X only"),
        ("mpich", "all-reduce", {"pick": "ring"}, "only Gloo's caller"),
        ("gloo", "all-reduce", {"pick": "rong"}, 'did you mean "ring"'),
        ("gloo", "all-reduce", {"environment": {"GLOO_RING": "1"}}, "no variable"),
        ("open-mpi", "all-reduce", {"environment": {"OMPI_MCA_coll_tuned_use_dynamic_rules": "1"}}, "not modelled"),
        ("open-mpi", "all-reduce", {"environment": {"OMPI_MCA_coll_tuned_allreduce_algorithm": "4"}}, "not modelled"),
        ("open-mpi", "all-reduce", {"environment": {"NCCL_ALGO": "ring"}}, "not a variable of Open MPI"),
        ("mpich", "all-reduce", {"environment": {"ALLREDUCE": "1"}}, "not a variable of MPICH"),
        ("mpich", "all-reduce", {"version": "3", "environment": {"MPIR_CVAR_ALLREDUCE_SHORT_MSG_SIZE": "2K"}}, "write 2048"),
        ("mpich", "all-reduce", {"dtype": "float33"}, 'did you mean "float32"'),
    ],
)
def test_refusals(library: str, collective: str, more: dict[str, object], says: str) -> None:
    with pytest.raises(RingscopeError, match=says) as caught:
        choose(library, make("dgx-h100", {}), collective, 1 << 20, **more)  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(("nbytes", "ranks", "nodes"), [(0, 4, 1), (-3, 4, 1), (5, 1, 1), (5, 4, 5), (5, 4, 0)])
def test_calls_that_cannot_be(nbytes: int, ranks: int, nodes: int) -> None:
    with pytest.raises(RingscopeError, match="write 1 B or more"):
        Call("all-reduce", nbytes, ranks, nodes)
