"""Kernels on symmetric memory: their model's limits and the choice among them."""

from __future__ import annotations

import math

import pytest

from prediction.nccl.symmetric import symmetric
from topologies.errors import MeasurementError

GIB = 2**30


def by_name(collective: str, nbytes: int, ranks: int, sm: int, multicast: bool = True) -> dict[str, float]:
    return {one.kernel: one.time_s for one in symmetric(collective, nbytes, ranks, sm, multicast=multicast)}


def test_small_calls_cost_their_latency() -> None:
    extra = math.log1p(math.exp(-1))  # of the soft start
    found = by_name("all-reduce", 8, 8, 90)
    assert found["ll"] * 1e6 == pytest.approx(4.5 + extra, rel=1e-3)
    assert found["multimem"] * 1e6 == pytest.approx(7.8 + extra, rel=1e-3)
    assert by_name("all-gather", 8, 8, 100)["ll"] * 1e6 == pytest.approx(8.5 + extra, rel=1e-3)
    assert by_name("reduce-scatter", 8, 8, 100)["load"] * 1e6 == pytest.approx(13 + extra, rel=1e-3)


def test_large_calls_reach_the_peak() -> None:
    nbytes = 8 * GIB
    assert by_name("all-reduce", nbytes, 8, 90)["load-reduce-store"] == pytest.approx(2 * nbytes * 7 / 8 / (320 * GIB), rel=0.03)
    assert by_name("all-gather", nbytes, 8, 100)["store"] == pytest.approx(nbytes * 7 / 8 / (600 * GIB), rel=0.03)
    # 2 blocks of 65 x 8 GiB/s for the multicast: more than the peak of 480, softly
    assert by_name("all-reduce", nbytes, 8, 90)["multimem"] == pytest.approx(nbytes * 9 / 8 / (480 * GIB), rel=0.03)


def test_choice_goes_from_ll_to_multicast() -> None:
    first = [symmetric("all-reduce", 1 << power, 8, 90, multicast=True)[0].kernel for power in range(3, 33)]
    assert first[0].startswith("ll")
    assert first[-1] == "multimem"
    assert "multimem" not in first[: first.index("multimem")]
    assert symmetric("all-reduce", GIB, 8, 90, multicast=False)[0].kernel == "load-reduce-store"


def test_blocks_are_few_for_small_calls() -> None:
    assert {one.blocks for one in symmetric("all-reduce", 8, 8, 90, multicast=True)} == {1}
    large = {one.kernel: one.blocks for one in symmetric("all-reduce", GIB, 8, 90, multicast=True)}
    assert large["multimem"] <= 2
    assert 1 < large["load-reduce-store"] <= 64


def test_bad_calls_are_refused() -> None:
    with pytest.raises(MeasurementError, match='"broadcast" has none'):
        symmetric("broadcast", 8, 8, 90, multicast=True)
    with pytest.raises(MeasurementError, match="size 0 B on 8 ranks"):
        symmetric("all-reduce", 0, 8, 90, multicast=True)
