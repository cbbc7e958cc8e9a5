"""Text that is not, or not surely, a matrix of ``nvidia-smi topo -m``: one line with row and column, whatever the bytes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from smi_matrix import MIXED, PAIR, read

from topologies import TopologyError
from topologies.nvidia_smi import GPUS, topology_of
from topologies.nvidia_smi_text import MAX_FILE


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("GPU1\tNV2\t X \tSYS\tNV1", "GPU1\tNV2\t X \tSYSNV1", 'row GPU1, column GPU2: "SYSNV1" is SYS and NV1 without a blank'),
        (
            "GPU1\tNV2\t X \tSYS",
            "GPU1\tNV2\t X ",
            "row GPU2, column NIC2|row GPU1, column GPU2: NV1, but row GPU2, column GPU1: SYS|header has",
        ),
        ("GPU0\t X \tNV2", "GPU0\t X \tNV1", "row GPU1, column GPU0: NV2, but row GPU0, column GPU1: NV1"),
        ("GPU0\t X \tNV2", "GPU0\t X \tnv2", 'row GPU0, column GPU1: "nv2" is not a word of nvidia-smi topo -m; did you mean "NV1"'),
        ("GPU0\t X \tNV2", "GPU0\t X \tNaN", 'row GPU0, column GPU1: "NaN" is not a word'),
        ("GPU0\t X \tNV2", "GPU0\t X \tX", 'row GPU0, column GPU1: "X"; X stands where'),
        ("GPU0\t X ", "GPU0\tSYS", 'row GPU0, column GPU0: "SYS"; X stands where'),
        ("GPU0\t X \tNV2", "GPU0\t X \tNV0", 'row GPU0, column GPU1: "NV0"'),
        ("PIX\tPXB\tSYS\t0", "NV2\tPXB\tSYS\t0", 'row GPU0, column NIC0: "NV2"; NVLinks join GPUs'),
        ("PIX\tPXB\tSYS\t0", "PIX\tPXB\t0", 'row GPU0, column NIC2: "0-15,32-47" after 6 words; the header has 7 columns'),
        ("PIX\tPXB\tSYS\t0", "PIX\tPXB\tSYS\tSYS\t0", "row GPU0: 11 words; the header has 7 columns of devices and 3 after"),
        ("PXB\t X \tSYS\n", "PXB\t X \tSYS\t0-3\n", "row NIC1: 8 words"),
        ("NIC1\tPXB", "NIC9\tPXB", 'row "NIC9" is not a column of the header; did you mean'),
        ("NIC1\tPXB", "NIC0\tPXB", "row NIC0 stands twice"),
        ("\tGPU0\tGPU1", "\tGPU0GPU1", 'line 1, column 1: "GPU0GPU1" is not one GPU or NIC'),
        ("\tNIC2\tCPU", "\tNIC2CPU", 'line 1, column 7: "NIC2CPU" is not one GPU or NIC'),
        ("\tGPU1\tGPU2", "\tGPU1\tGPU1", "line 1, column 3: GPU1 stands twice"),
        ("CPU Affinity", "CPU Infinity", 'line 1: "CPU Infinity'),
        ("GPU0\t X ", "GPU0\t\x07X ", "line 2: a control character"),
        ("GPU0\t X ", "GPU0\t\0X ", "line 2: a control character"),
        ("\tGPU0\tGPU1", "\t", "3 words|row GPU0|is not a column"),
        (
            "NIC0\tPIX\tPXB\tSYS\tSYS\t X \tPXB",
            "NIC0\tPIX\tPXB\tSYS\tSYS\t X \tSYS",
            "row NIC1, column NIC0: PXB, but row NIC0, column NIC1: SYS",
        ),
        ("16-31,48-63\t1\t\tN/A\nGPU3", "16-31,48-63\t0\t\tN/A\nGPU3", ""),
    ],
)
def test_refused_with_row_and_column(old: str, new: str, message: str) -> None:
    assert old in MIXED
    if not message:  # an affinity of its own is no error
        assert read(MIXED.replace(old, new, 1), gpu="v100")
        return
    with pytest.raises(TopologyError, match=message.replace("(", r"\(") if "(" in message else message):
        read(MIXED.replace(old, new, 1), gpu="v100")


def test_words_of_three_devices_that_contradict_each_other() -> None:
    text = MIXED.replace("GPU1\tNV2\t X \tSYS\tNV1\tPXB", "GPU1\tNV2\t X \tSYS\tNV1\tPIX").replace("NIC0\tPIX\tPXB", "NIC0\tPIX\tPIX")
    with pytest.raises(TopologyError, match=r"row GPU0, column NIC1: PXB, but other devices are PIX or nearer to both"):
        read(text, gpu="v100")
    with pytest.raises(TopologyError, match=r"row GPU0, column GPU1: on one PCIe switch .* with other affinity"):
        read(
            MIXED.replace(
                "GPU1\tNV2\t X \tSYS\tNV1\tPXB\tPIX\tSYS\t0-15,32-47\t0", "GPU1\tNV2\t X \tSYS\tNV1\tPXB\tPIX\tSYS\t0-15,32-47\t1"
            ),
            gpu="v100",
        )


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({}, "does not tell the NVLink generation: give gpu= .*h100"),
        ({"pcie": "4"}, "does not tell the NVLink generation"),
        ({"gpu": "h1000"}, 'gpu: "h1000" is not a GPU .* did you mean "h100"'),
        ({"gpu": "t4"}, "gpu=t4 has none"),
        ({"gpu": "p100", "pcie": "7"}, "pcie: 7 is not a generation"),
        ({"gpu": "v100", "nodes": "2"}, "does not tell the speed of NICs"),
        ({"gpu": "v100", "nodes": "2", "nic": "400G"}, "nic"),
        ({"gpu": "v100", "nodes": "2", "nic": "25Gb/s"}, "no speed of InfiniBand; write 100, 200"),
        ({"gpu": "v100", "nodes": "2", "nic": "roce"}, 'nic: "roce" is not a type of NIC'),
        ({"gpu": "v100", "nic": "nan"}, "is not a type of NIC"),
        ({"gpu": "v100", "nodes": "217", "nic": "100Gb/s"}, "nodes = 1 to 216"),
        ({"gpu": "v100", "nodes": "0"}, "nodes"),
        ({"gpu": "v100", "gpus": "5"}, "gpus"),
        ({"gpu": "v100", "gpus": "1"}, "at least 2"),
        ({"gpu": "v100", "sockets": "upi9"}, '"upi9" is not a link type'),
        ({"gpu": "v100", "nvswitch": "yes"}, "neither true nor false"),
        ({"gpu": "v100", "speed": "1"}, 'there is no parameter "speed"'),
        ({"gpu": "v100", "nvswitch": "true"}, "row GPU0, column GPU2: NV1; behind an NVSwitch NV2|row GPU0, column GPU3: SYS"),
    ],
)
def test_parameters_that_cannot_be(params: dict[str, str], message: str) -> None:
    with pytest.raises(TopologyError, match=message):
        read(MIXED, **params)


def test_a_gpu_that_is_not_the_one_of_the_text() -> None:
    with pytest.raises(TopologyError, match="row GPU0, column GPU1: NV9, but gpu=v100 has 6 NVLinks"):
        read(MIXED.replace("NV2", "NV9"), gpu="v100")


def test_no_network_without_nics() -> None:
    with pytest.raises(TopologyError, match="the text has no NIC"):
        read("GPU0 GPU1\nGPU0 X SYS\nGPU1 SYS X\n", pcie="4", nodes="2", nic="100Gb/s")


def test_limits() -> None:
    def square(names: list[str]) -> str:
        return "\n".join([" ".join(names), *(f"{a} " + " ".join("X" if a == b else "SYS" for b in names) for a in names)])

    most = [f"GPU{i}" for i in range(64)] + [f"NIC{i}" for i in range(64)]
    assert len(read(square(most), gpu="t4").gpus) == 64
    for names in (["GPU64", *most], [*most, "NIC64"], ["GPU0"]):
        with pytest.raises(TopologyError, match="2 to 64 GPUs and up to 64 NICs"):
            read(square(names), gpu="t4")
    for text in ("\n" * MAX_FILE, "GPU0 " * (MAX_FILE // 5), " " * MAX_FILE, "GPU0 GPU1\n" * (MAX_FILE // 10), "NV1" * (MAX_FILE // 3)):
        with pytest.raises(TopologyError):
            read(text, gpu="v100")
    with pytest.raises(TopologyError, match="1 MiB"):
        read(MIXED + " " * MAX_FILE, gpu="v100")


edits = st.lists(
    st.tuples(
        st.integers(0, 700), st.integers(0, 12), st.text(st.sampled_from("GPUNICXSYSODEHBV0123456789 \t\n,-/\x1b[4m:\0é"), max_size=8)
    ),
    min_size=1,
    max_size=5,
)


@given(st.sampled_from([MIXED, PAIR]), edits, st.sampled_from(sorted(GPUS)), st.sampled_from(["1", "2"]))
def test_mutated_text_is_read_or_refused(text: str, changes: list[tuple[int, int, str]], gpu: str, nodes: str) -> None:
    for at, length, new in changes:
        at %= len(text) + 1
        text = text[:at] + new + text[at + length :]
    message = refusal(text, gpu=gpu, nodes=nodes, nic="100Gb/s")
    assert len(message) < 600
    assert "\n" not in message


def refusal(text: str, **params: str) -> str:
    """Empty where the text is read."""
    try:
        read(text, **params)
    except TopologyError as error:
        return str(error)
    return ""


@given(st.binary(max_size=200))
def test_bytes_are_refused(raw: bytes) -> None:
    with pytest.raises(TopologyError):
        topology_of(raw, "box", {"gpu": "h100"})
