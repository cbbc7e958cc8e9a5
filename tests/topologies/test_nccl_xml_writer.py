"""A server written as NCCL's topology XML reads back equal, or is refused whole."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from nccl_files import PAIR, reader, refusal

from topologies import Topology, TopologyError, make, names
from topologies.faults import apply_faults
from topologies.nccl_xml import read_nccl_xml
from topologies.nccl_xml_writer import write_nccl_xml


@pytest.fixture
def read(tmp_path: Path) -> Callable[..., Topology]:
    return reader(tmp_path)


def test_a_dump_is_written_back(read, tmp_path: Path) -> None:
    topology = read(PAIR)
    write_nccl_xml(topology, tmp_path / "again.xml")
    assert read_nccl_xml(tmp_path / "again.xml") == topology


ONE_SERVER = [
    *((name, params) for name in ("dgx-1v", "dgx-a100", "dgx-h100", "dgx-h200", "dgx-b200", "mi300x", "hgx-pcie", "gh200-quad",
      "gcp-a3-mega", "aws-p4d", "aws-p5", "azure-ndv4", "azure-ndv5") for params in ({}, {"gpus": 2}, {"gpus": 3})),
    *(("hgx-pcie", {"generation": g}) for g in (3, 5, 6)),
    *((f"nvlink-bridge{kind}", {"gpus": g}) for kind in ("", "-a100", "-h100") for g in (2, 5, 8)),
]  # fmt: skip


@pytest.mark.parametrize(("name", "params"), ONE_SERVER)
def test_a_server_reads_back_equal(name: str, params: dict, tmp_path: Path) -> None:
    topology = make(name, params)
    write_nccl_xml(topology, tmp_path / "any.xml")
    assert read_nccl_xml(tmp_path / "any.xml") == topology
    assert [path.name for path in tmp_path.iterdir()] == ["any.xml"]
    first = (tmp_path / "any.xml").read_bytes()
    write_nccl_xml(topology, tmp_path / "any.xml")
    assert (tmp_path / "any.xml").read_bytes() == first


@pytest.mark.parametrize("name", names())
def test_every_other_topology_is_refused_and_nothing_is_left(name: str, tmp_path: Path) -> None:
    topology = make(name)
    message = refusal(write_nccl_xml, topology, tmp_path / "x.xml")
    if message is None:
        assert read_nccl_xml(tmp_path / "x.xml") == topology
    else:
        assert re.match(rf"x\.xml: {re.escape(topology.name)} cannot be written as NCCL's XML: .*; write a cluster file", message)
        assert not list(tmp_path.iterdir())


def test_a_server_with_a_fault_is_not_written_as_a_healthy_one(tmp_path: Path) -> None:
    slow = apply_faults(make("dgx-h100"), ["slow-link:gpu3-nvswitch:x2"])
    with pytest.raises(TopologyError, match=r"link gpu3 -> nvswitch .* would read back otherwise"):
        write_nccl_xml(slow, tmp_path / "slow.xml")
    with pytest.raises(TopologyError, match="cannot be written: No such file"):
        write_nccl_xml(make("dgx-h100"), tmp_path / "no" / "x.xml")


@pytest.mark.parametrize("name", ["dgx-1v", "dgx-a100", "dgx-h100", "mi300x", "hgx-pcie", "azure-ndv4"])
@pytest.mark.parametrize("nodes", [2, 40])
def test_repeated_servers_are_those_of_the_generator(name: str, nodes: int, tmp_path: Path) -> None:
    """A server of the preset, written and repeated: nodes, links, groups and with them every route are the preset's."""
    write_nccl_xml(make(name), tmp_path / "x.xml")
    topology, preset = read_nccl_xml(tmp_path / "x.xml", {"nodes": nodes}), make(name, {"nodes": nodes})
    assert replace(topology, name=preset.name) == preset
