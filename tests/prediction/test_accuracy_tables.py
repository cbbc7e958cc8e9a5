"""Reading a folder of measurements: what is said of each machine, what cannot be read, what a method is told."""

from pathlib import Path
from typing import Any

import pytest
from accuracy_folder import MACHINES, write

from prediction.accuracy_asked import CLASSES, class_of, setting_of
from prediction.accuracy_tables import Curve, Dataset, Point, read_folder
from prediction.accuracy_told import few_points, two_points
from prediction.library.asked import Asked
from topologies.custom import custom
from topologies.errors import MeasurementError, RingscopeError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write(tmp_path)


def test_words_of_the_table_become_what_is_asked(folder: Path) -> None:
    datasets = {curve.dataset.name: curve.dataset for curve in read_folder(folder).curves}
    one, two, loud, cards = (setting_of(datasets[name]) for name in ("one", "two", "loud", "cards"))
    assert one.asked == Asked("nccl", "2.20.5", "one-process", {"NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": "0"})
    assert one.asked.environment == {"NCCL_ALGO": "Ring", "NCCL_NVLS_ENABLE": "0"}
    assert (two.asked.launch, two.asked.environment, two.kind) == ("process-per-gpu", {}, "ib-roce")
    assert (loud.asked.version, loud.asked.dtype, loud.asked.launch) == ("2.21", "float16", "process-per-gpu")
    assert loud.notes == ("version unknown: 2.21 is taken", "launch unknown: process-per-gpu is taken")
    assert (cards.asked.launch, cards.asked.environment) == ("thread-per-gpu", {"NCCL_P2P_DISABLE": "1"})
    assert cards.notes == ("version 2.4.8 is not modelled: 2.16 is taken",)
    assert setting_of(datasets["loud"], "2.25").asked.version == "2.25"
    for text, launch in (("One-process", "one-process"), ("one process per GPU", "process-per-gpu"), ("MPI", "process-per-gpu")):
        assert setting_of(Dataset("b", "b", "ok", {"gpu": "A100", "launch": text}, "m.csv:2")).asked.launch == launch
    instinct = setting_of(Dataset("b", "b", "ok", {"gpu": "MI300X", "nccl_version": "rccl 2.26"}, "m.csv:2")).asked
    assert (instinct.library, instinct.version) == ("rccl", "2.26")
    assert setting_of(Dataset("b", "b", "ok", {"gpu": "B200"}, "m.csv:2")).asked.version == "2.27"


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ({}, "nvlink-node"), ({"nodes": 2}, "ib-roce"), ({"nodes": 2, "fabric": "roce"}, "ib-roce"),
        ({"nodes": 2, "fabric": "efa"}, "efa-tcpxo-slingshot"), ({"nodes": 2, "gpu": "mi300x"}, "amd"), ({"gpu": "mi355x"}, "amd"),
        ({"nodes": 4, "gpus": 4, "gpu": "gb200"}, "nvl72"), ({"gpu": "l40s"}, "pcie"), ({"gpus": 4, "gpu": "gh200"}, "nvlink-node"),
    ],
)  # fmt: skip
def test_classes(words: dict[str, Any], kind: str) -> None:
    assert kind in CLASSES
    assert class_of(custom(**words)) == kind


def test_rows_that_cannot_be_read_are_named(folder: Path) -> None:
    with (folder / "measurements.csv").open("a") as file:
        file.write("one,all_reduce,eight,1,0\none,all_reduce,8,-1,0\none,all_reduce,8,inf,0\none,all_reduce,8.5,1,0\n")
        file.write('three,all_reduce,8,1,0\none,"all_reduce,8,1,0\none,all_reduce,8\none,all\x07reduce,8,1,0\n')
        file.write(f"one,all_reduce,{'9' * 5000},1,0\n")
    with (folder / "machines.csv").open("a") as file:
        file.write(MACHINES.splitlines()[1] + "\n")
    found = read_folder(folder)
    assert len(found.curves) == 7
    assert [len(curve.points) for curve in found.curves][:2] == [6, 5]
    text = "\n".join(found.notes)
    for part in (
        'machines.csv:8, dataset_id: "one" stands twice', 'size_bytes: "eight" is not a number', 'time_us: "-1" is not', 'time_us: "inf"',
        'size_bytes: "8.5" is not a whole', '"three" is not in machines.csv', "not CSV", "3 fields under 5 columns", "is not a name",
        "a line of more than",
    ):  # fmt: skip
        assert part in text, part
    assert len(found.notes) == 10


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("machines.csv", "", "machines.csv: empty"),
        ("machines.csv", "dataset,gpu,gpus_per_node,nodes\n", 'one column "dataset_id"; did you mean "dataset"'),
        ("machines.csv", MACHINES.replace("notes", "gpu"), 'one column "gpu"'),
        ("measurements.csv", "dataset_id,collective,size_bytes\n", 'one column "time_us"'),
        ("measurements.csv", "dataset_id,collective,size_bytes,time_us\n", "no measurement of any data set"),
        ("measurements.csv", "PK\x03\x04" + "x" * 50, "packed by zip"),
        ("measurements.csv", "#\n" * 100_001, "more than 100000 lines"),
    ],
)
def test_refused(folder: Path, name: str, text: str, message: str) -> None:
    (folder / name).write_text(text)
    with pytest.raises(MeasurementError, match=message):
        read_folder(folder)


def test_only_some(folder: Path) -> None:
    assert {curve.dataset.name for curve in read_folder(folder, ["red", "two"]).curves} == {"cards", "wrong", "two"}
    with pytest.raises(MeasurementError, match=r'"blu" is neither a data set nor a cluster; did you mean "blue"'):
        read_folder(folder, ["blu"])
    (folder / "measurements.csv").unlink()
    with pytest.raises(RingscopeError, match=r"measurements.csv: not a file"):
        read_folder(folder)


def test_points_that_are_told() -> None:
    dataset = Dataset("d", "c", "ok", {}, "")
    points = tuple(Point(2**i, i + 1.0, outlier=i in (0, 19)) for i in range(20))
    curve = Curve(dataset, "all-reduce", points)
    assert two_points(curve) == (points[1], points[18])
    assert [point.size_bytes for point in few_points(curve)] == [2**i for i in (1, 4, 8, 11, 15, 18)]
    assert two_points(Curve(dataset, "all-reduce", points[:3])) == ()
