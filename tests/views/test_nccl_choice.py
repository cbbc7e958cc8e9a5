"""NCCL's choice as JSON and as text."""

from __future__ import annotations

import json

import pytest

from prediction.nccl.choose import choose
from topologies import make
from topologies.errors import MeasurementError
from views.nccl_choice import choice_lines, choice_record
from views.records import dumps
from views.terminal import page


def test_record_has_the_choice_and_its_rivals() -> None:
    chosen = choose(make("dgx-h100", {"nodes": 4}), "all-reduce", 64 << 20, "2.21")
    record = json.loads(dumps(choice_record(chosen)))
    assert {"algorithm", "protocol", "channels", "time_s"} <= set(record["choice"])
    assert record["choice"] == record["ranking"][0]
    assert (record["choice"]["algorithm"], record["choice"]["protocol"], record["choice"]["channels"]) == ("nvls-tree", "simple", 16)
    assert record["choice"]["time_s"] == pytest.approx(81e-6 + (64 << 20) / 160e9)
    assert [row["time_s"] for row in record["ranking"]] == sorted(row["time_s"] for row in record["ranking"])
    assert {"algorithm": "pat", "protocol": "simple", "reason": "NCCL has no pat all-reduce"} in record["off"]
    assert record["graphs"]["ring"]["channels"] == 8
    assert (record["nranks"], record["nodes"], record["version"], record["comm_channels"]) == (32, 4, "2.21", 16)


def test_lines_name_choice_runners_up_and_reasons() -> None:
    chosen = choose(make("dgx-a100"), "all-reduce", 1 << 30, "2.30", {"NCCL_ALGO": "ring,tree", "NCCL_IB_HCA": "mlx5"})
    text = page(choice_lines(chosen))
    assert text.startswith("NCCL 2.30 takes ring, protocol simple, for all-reduce of 1 GiB over 8 ranks on dgx-a100-1x8: 7.8")
    assert text.count("runner-up") == 2
    assert "no nvls: NVLS needs Hopper or newer behind NVSwitches that multicast" in text
    assert "not the tuner's: NCCL_IB_HCA" in text


def test_collnet_variable_says_that_the_network_reduces() -> None:
    chosen = choose(make("dgx-h100", {"nodes": 4}), "all-reduce", 64 << 20, "2.30", {"NCCL_COLLNET_ENABLE": "1"})
    assert {"collnet-direct", "nvls"} <= {row.algorithm for row in chosen.tuning.ranking}
    assert choose(make("dgx-a100"), "all-reduce", 8, "2.23", {"NCCL_ALGO": "nvls"}).tuning.fallback


def test_what_the_search_or_the_tuner_does_not_take_is_refused() -> None:
    with pytest.raises(MeasurementError, match="is in no server"):
        choose(make("torus"), "all-reduce", 8, "2.30")
    with pytest.raises(MeasurementError, match='"all-to-all" is not tuned'):
        choose(make("dgx-h100"), "all-to-all", 8, "2.30")


def test_the_fallback_keeps_the_other_variables() -> None:
    chosen = choose(make("dgx-a100"), "all-reduce", 64 << 20, "2.23", {"NCCL_ALGO": "nvls", "NCCL_MAX_CTAS": "4"})
    assert chosen.tuning.fallback
    assert chosen.tuning.choice.channels == 4


def test_an_unknown_dtype_is_refused() -> None:
    with pytest.raises(MeasurementError, match='dtype "foo" is not known'):
        choose(make("dgx-a100"), "all-reduce", 64, "2.23", dtype="foo")
