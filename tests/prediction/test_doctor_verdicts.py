"""The doctor: healthy logs are healthy, logs with a fault name it, and what cannot be known is not guessed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from prediction.doctor.alter import is_nvlink, nics_of, root_complex, with_nics, without_nvlink
from prediction.doctor.causes import CAUSES
from prediction.doctor.doctor import doctor
from prediction.doctor.header import guess, model_of, other_gpus, told, version_of
from prediction.doctor.scene import Scene
from prediction.doctor.shape import confidences, deviation, error_of, fits, likelihood
from prediction.library.asked import Asked
from prediction.library.constants import Constants
from prediction.log_file import file_log
from prediction.readers import read_text
from tests.helpers.measured_log import all_reduce_log
from topologies import make
from topologies.graph import Topology

SIZES = (1024, 64 << 10, 1 << 20, 16 << 20, 256 << 20, 2 << 30)
H100 = make("custom", {"gpu": "h100"})


def scene(topology: Topology = H100, collective: str = "all-reduce", sizes: tuple[int, ...] = SIZES, **environment: str) -> Scene:
    asked = Asked(version="2.21", environment=environment, launch="one-process")
    return Scene(topology, collective, asked, Constants.of(topology, asked), sizes)


def written(folder: Path, times_s: np.ndarray, nranks: int = 8, wiggle: float = 0.02) -> Path:
    """A log of 8 GPUs on one host, rows off by turns."""
    off = [1 + wiggle * (-1) ** k for k in range(len(times_s))]
    path = folder / "run.txt"
    path.write_text(all_reduce_log({s: t * 1e6 * o for s, t, o in zip(SIZES, times_s, off, strict=True)}, nranks))
    return path


def test_as_expected_is_healthy(tmp_path: Path) -> None:
    found = doctor(written(tmp_path, scene().times), version="2.21")
    assert (found.verdict, found.causes, found.band) == ("healthy", (), "L")
    assert found.ratio == pytest.approx(1, abs=0.03)
    assert [band.band for band in found.bands] == ["S", "M", "L"]
    assert found.launch == "one-process"


def test_a_link_that_lost_half_its_lanes_is_named_with_numbers(tmp_path: Path) -> None:
    slow = next(cause for cause in CAUSES if cause.id == "slow-link").alter(scene(), 2.2)
    assert isinstance(slow, Scene)
    found = doctor(written(tmp_path, slow.times), version="2.21")
    assert found.verdict == "low"
    first = found.causes[0]
    assert first.id == "slow-link"
    assert first.confidence > 0.5
    assert "L band at 0.4" in first.evidence
    assert "nvidia-smi nvlink" in first.check
    assert sum(cause.confidence for cause in found.causes) + (found.other or 0) <= 1 + 1e-9


def test_a_slow_host_is_launch_bound_and_nothing_else(tmp_path: Path) -> None:
    found = doctor(written(tmp_path, np.maximum(scene().times, 150e-6)), version="2.21")
    assert (found.verdict, found.band) == ("low", "S")
    assert found.causes[0].id == "launch-bound"
    assert found.causes[0].confidence > 0.8


def test_ten_times_too_fast_is_high_and_no_known_cause(tmp_path: Path) -> None:
    found = doctor(written(tmp_path, scene().times / 10), version="2.21")
    assert (found.verdict, found.causes) == ("high", ())


def test_nothing_fits_a_curve_that_no_cause_gives(tmp_path: Path) -> None:
    shape = np.array([1.0, 1.0, 9.0, 1.0, 40.0, 1.3])
    found = doctor(written(tmp_path, scene().times * shape), version="2.21")
    assert found.verdict == "low"
    assert found.other is not None
    assert found.other > 0.5


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [("NVIDIA H100 80GB HBM3", "ACME X9", "no topology has"), ("NVIDIA H100 80GB HBM3", "NVIDIA L40S", "what joins its GPUs")],
)
def test_what_the_header_leaves_open_is_unknown(tmp_path: Path, old: str, new: str, says: str) -> None:
    path = written(tmp_path, scene().times * 3)
    path.write_text(path.read_text().replace(old, new))
    found = doctor(path, version="2.21")
    assert (found.verdict, found.causes) == ("unknown", ())
    assert says in found.reason
    assert "--topology" in found.reason


def test_each_process_by_itself_was_built_without_mpi(tmp_path: Path) -> None:
    path = written(tmp_path, scene().times)
    found = doctor(path, "custom", {"gpu": "h100", "nodes": "2", "gpus": "8"})
    assert (found.verdict, found.causes[0].id) == ("low", "built-without-mpi")
    assert "2 servers" in found.causes[0].evidence
    path.write_text(all_reduce_log({1 << 20: 21.5, 1 << 22: 44.0}, 1) * 2)
    found = doctor(path)
    assert (found.verdict, found.causes[0].id) == ("low", "built-without-mpi")


def test_flags_of_the_log_itself(tmp_path: Path) -> None:
    path = written(tmp_path, scene().times * np.array([1, 1, 8, 1, 1, 1]))
    path.write_text(path.read_text().replace("      0\n", "      3\n", 1))
    flags = " ".join(doctor(path, version="2.21").flags)
    assert "#wrong above 0 in 1 rows" in flags
    assert "slower than both neighbours" in flags
    assert "time falls from 1 MiB to 16 MiB" in flags


def test_errors_of_the_model_go_together() -> None:
    rows = scene().rows
    covariance = error_of(rows)
    flat = np.full(len(rows), 0.15)
    zigzag = flat * np.array([1, -1, 1, -1, 1, -1])
    assert likelihood(flat, covariance) > likelihood(zigzag, covariance) + 1
    mean, off = deviation(flat, covariance, np.array([1, 1, 0, 0, 0, 0]))
    assert mean == pytest.approx(0.15)
    assert 0 < off < 2


def test_all_confidences_with_the_rest_are_one() -> None:
    here = scene(sizes=SIZES[2:])
    measured = here.times * 1.7
    covariance = error_of(here.rows)
    found = fits(here, measured, covariance, high=False)
    shares = confidences(found, np.log(measured / here.times), covariance)
    assert 0 < sum(share for _, share in shares) < 1
    assert [share for _, share in shares] == sorted((share for _, share in shares), reverse=True)


def test_machines_with_something_wrong() -> None:
    two = make("custom", {"gpu": "h100", "nodes": "2"})
    assert [len(names) for names in nics_of(with_nics(two, lambda place: place < 3)).values()] == [3, 3]
    assert not any(is_nvlink(link) for link in without_nvlink(two).links)
    bare = without_nvlink(two, {two.gpus[0]})
    assert {link.src for link in two.links if is_nvlink(link)} - {link.src for link in bare.links if is_nvlink(link)} == {two.gpus[0]}
    nic = nics_of(two)[0][0]
    switch = next(name for name in two.graph[nic] if two.node(name).kind == "switch")
    assert root_complex(two).link(nic, switch).bandwidth == pytest.approx(0.45 * two.link("s0.pcie0", "s0.cpu0").bandwidth)


def test_every_cause_has_a_name_a_prior_and_a_check() -> None:
    assert len({cause.id for cause in CAUSES}) == len(CAUSES)
    assert all(0 < cause.prior < 1 and cause.check and cause.severities for cause in CAUSES)


@pytest.mark.parametrize(
    ("gpu", "model"),
    [
        ("NVIDIA A100-SXM4-80GB", "a100"), ("NVIDIA A100-PCIE-40GB", "a100-pcie"), ("Tesla V100-SXM2-32GB", "v100"),
        ("NVIDIA GeForce RTX 4090", "rtx4090"), ("AMD Instinct MI300X", "mi300x"), ("NVIDIA GB200", "gb200"), ("NVIDIA L40S", "l40s"),
        ("NVIDIA H100 80GB HBM3 + NVIDIA A100-SXM4-80GB", None), ("ACME", None), (None, None),
    ],
)  # fmt: skip
def test_models_by_their_names(gpu: str | None, model: str | None) -> None:
    assert model_of(gpu) == model


def test_the_version_that_is_modelled() -> None:
    assert version_of("2.22.3", False) == ("2.22.3", "")
    assert version_of("2.9", False)[0] == "2.16"
    assert version_of(None, True)[0] == "2.27"


def test_a_guess_says_what_is_only_usual() -> None:
    text = all_reduce_log({1 << 20: 30.5, 1 << 25: 290.0}, 8)
    sure = guess(read_text(text, "all_reduce.txt")[0])
    assert not isinstance(sure, str)
    assert (sure.params, sure.open) == ({"gpu": "h100", "gpus": "8", "nodes": "1"}, "")
    several = guess(
        read_text(text.replace("Rank  7 Group  0 Pid   1000 on    made-up", "Rank  7 Group  0 Pid   1000 on    other"), "x.txt")[0]
    )
    assert not isinstance(several, str)
    assert "which NICs" in several.open


def test_version_and_variables_that_the_log_names(tmp_path: Path) -> None:
    path = tmp_path / "run.txt"
    path.write_text("mpirun -x NCCL_ALGO=Ring\nNCCL version 2.19.3+cuda12.2\n" + all_reduce_log({1 << 20: 30.5}, 8))
    said = told(file_log(path))
    assert (said.version, said.variables) == ("2.19.3", {"NCCL_ALGO": "Ring"})


def test_a_header_of_other_gpus_is_flagged() -> None:
    table = read_text(all_reduce_log({1 << 20: 30.5}, 8), "all_reduce.txt")[0]
    assert other_gpus(table, H100) == ()
    (flag,) = other_gpus(table, make("dgx-a100"))
    assert "nvlink4" in flag


def test_good_times_with_wrong_results_are_not_healthy(tmp_path: Path) -> None:
    path = written(tmp_path, scene().times)
    path.write_text(path.read_text().replace("      0\n", "      3\n", 1))
    found = doctor(path, version="2.21")
    assert found.verdict == "unknown"
    assert "results are wrong" in found.reason
