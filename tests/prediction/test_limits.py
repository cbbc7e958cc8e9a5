"""What is expected of a schedule before it is built, and each refusal that follows from it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from algorithms.collectives import collective
from algorithms.registry import Algorithm, catalogue, find
from algorithms.steps import Stream, in_blocks
from prediction import expected as module
from prediction.expected import Expected, expected
from prediction.limits import check_sends, limited_launch
from sim.model import ModelError
from topologies.errors import RingscopeError, ScheduleError

UNEVEN = ("multi-ring", "collnet-chain", "collnet-direct", "nccl-tree", "nvls-tree", "hierarchical", "hierarchical-doubling")
"""Their sends are no power law of the ranks: servers and rings change in number by steps."""


def counted(algorithm: Algorithm, n: int, **built: Any) -> Expected:
    schedule = algorithm.build(n, **built) if built else algorithm.stream(n)
    blocks = list(in_blocks(schedule))
    pairs = {pair for block in blocks for pair in zip(block.src.tolist(), block.dst.tolist(), strict=True)}
    widest = max(np.bincount(block.step).max() if np.ndim(block.step) else len(block) for block in blocks)
    whole = len(schedule)
    return Expected(whole, widest if isinstance(schedule, Stream) else whole, len(pairs), sum(block.chunks for block in blocks))


@pytest.mark.parametrize("chosen", catalogue(), ids=str)
def test_what_is_expected_is_what_is_built(chosen: Algorithm, monkeypatch: pytest.MonkeyPatch) -> None:
    """From 16 and 64 ranks to 128; in channels and slices, of which no more than two are probed."""
    monkeypatch.setattr(module, "PROBES", (16, 64))
    for built in ({}, {"channels": 3, "slices": 5}):
        try:
            wanted = counted(chosen, 128, **built)
        except RingscopeError:  # a number of channels that is its own, or ranks that it does not take
            continue
        found = expected(chosen, 128, **built)
        least, most = (0.5, 2) if chosen.name in UNEVEN else (0.8, 1.25)
        for name in ("sends", "widest", "pairs", "chunks"):
            assert least <= getattr(found, name) / getattr(wanted, name) <= most, (built, name)


def test_nothing_is_expected_of_few_ranks_or_of_what_refuses() -> None:
    ring = find(collective("all-reduce"), "ring")
    assert expected(ring, 256) == Expected()
    assert expected(ring, 257).sends == pytest.approx(2 * 257 * 256, rel=0.01)
    assert expected(ring, 256, channels=2).sends == 2 * 2 * 256 * 255
    with pytest.raises(ScheduleError):  # the schedule itself is the judge
        ring.build(1000, order=5)
    assert expected(ring, 1000, options={"order": 5}) == Expected()
    tree = find(collective("broadcast"), "binomial-tree")
    assert expected(tree, 1000, options={"root": 700}).sends == pytest.approx(999, rel=0.01)  # a rank that smaller probes have not


@pytest.mark.parametrize(
    ("collective_name", "algorithm", "ranks", "built", "says"),
    [
        (
            "all-reduce",
            "ring",
            65_536,
            {"engine": "auto"},
            r"9e\+09 sends, 3,588 GB .* auto runs at most 1,000,000,000: take fewer GPUs, channels or slices$",
        ),
        ("all-reduce", "ring", 1500, {"engine": "event"}, "event runs at most 4,000,000: .*, or engine compiled$"),
        ("all-reduce", "ring", 8192, {"engine": "event"}, ", or engine maxplus$"),
        ("all-to-all", "direct", 8192, {"engine": "auto", "streamed": True}, r"6\.9e\+07 of them at once; at most 10,000,000"),
        ("all-reduce", "ring", 8192, {"engine": "auto"}, r"1\.4e\+08 of them at once"),
        ("all-reduce", "ring", 1024, {"engine": "auto", "channels": 16, "streamed": True}, r"3\.4e\+07 of them at once"),
        ("all-reduce", "ring", 512, {"engine": "auto", "slices": 64, "streamed": True}, r"3\.4e\+07 of them at once"),
        ("all-to-all", "pairwise", 8192, {"engine": "auto", "streamed": True}, r"between 6\.9e\+07 pairs; at most 2,500,000 routes"),
        ("all-gather", "recursive-doubling", 65_536, {"engine": "event", "streamed": True}, "1,347 GB of memory; this machine has 16 GB"),
        ("all-gather", "recursive-doubling", 2**16, {"engine": "event"}, "1,348 GB of memory; this machine has 16 GB"),
    ],
)
def test_each_refusal(
    collective_name: str, algorithm: str, ranks: int, built: dict[str, Any], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("prediction.limits._memory", lambda: 16e9)
    with pytest.raises(ScheduleError, match=f"^{algorithm}: {ranks:,} ranks take about .*{says}"):
        check_sends(collective_name, algorithm, ranks, **built)


def test_what_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("prediction.limits._memory", lambda: 16e9)
    assert check_sends("all-reduce", "ring", 8192, engine="auto", streamed=True) == pytest.approx(2 * 8192 * 8191, rel=0.05)
    assert 2**20 <= check_sends("all-gather", "recursive-doubling", 2**16, engine="auto", streamed=True) < 2**21
    with pytest.raises(ModelError, match='engine "even" is not known; did you mean "event"'):
        check_sends("all-reduce", "ring", 8192, engine="even")


def test_memory_is_that_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = {"engine": "compiled", "streamed": True}  # 4.2e6 sends of 85 B and 400 B of each of the widest step
    monkeypatch.setattr("prediction.limits._memory", lambda: 1e9)
    assert check_sends("all-reduce", "ring", 1449, **asked) > 4e6
    monkeypatch.setattr("prediction.limits._memory", lambda: 0.4e9)
    with pytest.raises(ScheduleError, match="this machine has 0 GB"):
        check_sends("all-reduce", "ring", 1449, **asked)


def test_the_seed_reaches_a_pattern_that_draws() -> None:
    def ends(**kwargs: Any) -> list[int]:
        return limited_launch("star", {"gpus": "16"}, "sendrecv", "random-permutation", 4096, **kwargs)[1].whole.dst.tolist()

    assert ends(seed=5) != ends(seed=0)
    assert ends(seed=5) == ends(options={"seed": "5"}, seed=0) == ends(options={"seed": 5}, seed=9)
