"""NCCL's variables as text: what is read, what is refused and how."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prediction.nccl.settings import Settings, settings
from prediction.nccl.version import ALGORITHMS, COLLECTIVES, version
from topologies.errors import MeasurementError

OLD, NEW = version("2.21"), version("2.30")


def test_defaults_are_nccls_own() -> None:
    assert settings({}, NEW) == Settings()


def test_lists_name_and_exclude() -> None:
    given_ = settings({"NCCL_ALGO": "Ring,CollnetDirect", "NCCL_PROTO": "^LL128"}, OLD)
    assert given_.algorithms == dict.fromkeys(COLLECTIVES, frozenset({"ring", "collnet-direct"}))
    assert given_.protocols["broadcast"] == {"ll", "simple"}


def test_lists_for_single_functions() -> None:
    found = settings({"NCCL_ALGO": "ring,collnetdirect;AllReduce:^tree;broadcast:RING"}, NEW).algorithms
    assert found["all-reduce"] == set(ALGORITHMS) - {"tree"}
    assert found["broadcast"] == {"ring"}
    assert found["reduce"] == {"ring", "collnet-direct"}
    only = settings({"NCCL_ALGO": "allreduce:tree,nvlstree"}, NEW).algorithms
    assert only == {"all-reduce": {"tree", "nvls-tree"}}


def test_the_newest_name_counts() -> None:
    assert settings({"NCCL_MAX_NCHANNELS": "4", "NCCL_MAX_CTAS": "9"}, NEW).max_channels == 9
    assert settings({"NCCL_MIN_NRINGS": "4"}, NEW).min_channels == 4


def test_variables_of_other_parts_are_listed() -> None:
    assert settings({"NCCL_IB_HCA": "mlx5", "NCCL_DEBUG": "INFO"}, NEW).elsewhere == ("NCCL_IB_HCA", "NCCL_DEBUG")


@pytest.mark.parametrize(
    ("env", "release", "message"),
    [
        ({"NCCL_ALGO": "rings"}, NEW, 'NCCL_ALGO: "rings" is not one; did you mean "ring"'),
        ({"NCCL_PROTO": "LL256"}, NEW, 'NCCL_PROTO: "LL256" is not one; did you mean "ll'),
        ({"NCCL_ALGO": "allreduce:tree"}, OLD, "a list for one function needs NCCL 2.24"),
        ({"NCCL_ALGO": "allreduces:tree"}, NEW, '"allreduces" is not a function; did you mean "allreduce"'),
        ({"NCCL_ALGO": "ring;tree"}, NEW, "list 2 names no function; write allreduce:tree"),
        ({"NCCL_ALGO": ""}, NEW, 'NCCL_ALGO: "" is not one'),
        ({"NCCL_MAX_CTAS": "65"}, NEW, "NCCL_MAX_CTAS = 65 is out of range; write 1 to 64"),
        ({"NCCL_MAX_CTAS": "many"}, NEW, 'NCCL_MAX_CTAS = "many" is not a whole number; write 1 to 64'),
        ({"NCCL_MIN_CTAS": "8", "NCCL_MAX_CTAS": "4"}, NEW, "NCCL_MIN_CTAS = 8 is above NCCL_MAX_CTAS = 4"),
        ({"NCLL_ALGO": "ring"}, NEW, '"NCLL_ALGO" is not a variable of NCCL; did you mean "NCCL_ALGO"'),
    ],
)
def test_refusals(env: dict[str, str], release: tuple[int, int, int], message: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        settings(env, release)  # type: ignore[arg-type]
    assert message in str(caught.value)


@given(
    st.dictionaries(
        st.sampled_from(["NCCL_ALGO", "NCCL_PROTO", "NCCL_MAX_CTAS", "NCCL_THREAD_THRESHOLDS", "NCCL_NTHREADS", "X"]), st.text()
    )
)
def test_any_text_is_read_or_refused(env: dict[str, str]) -> None:
    try:
        assert isinstance(settings(env, NEW), Settings)
    except MeasurementError as error:
        lines = str(error).splitlines()
    else:
        lines = ["read"]
    assert len(lines) == 1


@pytest.mark.parametrize(
    ("env", "path"),
    [
        ({"NCCL_P2P_LEVEL": "pxb"}, "PXB"), ({"NCCL_P2P_LEVEL": "3"}, "PHB"), ({"NCCL_P2P_DISABLE": "0"}, None),
        ({"NCCL_P2P_LEVEL": "SYS", "NCCL_P2P_DISABLE": "1"}, "LOC"), ({"NCCL_P2P_DISABLE": "1", "NCCL_P2P_LEVEL": "SYS"}, "LOC"),
    ],
)  # fmt: skip
def test_how_far_gpus_reach_each_other(env: dict[str, str], path: str | None) -> None:
    assert settings(env, NEW).p2p == path


def test_a_level_that_is_none_is_refused() -> None:
    with pytest.raises(MeasurementError, match='NCCL_P2P_LEVEL: "9" is not a level'):
        settings({"NCCL_P2P_LEVEL": "9"}, NEW)
