"""What a person says of the library beside machine, collective and size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, get_args

from algorithms.launch import DTYPE_BYTES
from prediction.nccl.enabled import FP8
from prediction.nccl.graphs import Cpu
from topologies.errors import MeasurementError, nearest, quoted

Library = Literal["nccl", "rccl"]
LIBRARIES: tuple[Library, ...] = get_args(Library)
LaunchMode = Literal["process-per-gpu", "one-process", "thread-per-gpu"]
LAUNCH_MODES: tuple[LaunchMode, ...] = get_args(LaunchMode)


@dataclass(frozen=True, slots=True)
class Asked:
    """``version``: of NCCL, or the one that RCCL is made from; ``launch``: who launches the kernels; ``environment``: variables by the
    library's names; ``cpu``: the vendor of the hosts, where the topology does not tell. Raises MeasurementError for unknown words."""

    library: Library = "nccl"
    version: str = "2.30"
    launch: LaunchMode = "process-per-gpu"
    environment: Mapping[str, str] = field(default_factory=dict, hash=False)
    dtype: str = "float32"
    op: str = "sum"
    cpu: Cpu | None = None

    def __post_init__(self) -> None:
        for what, value, known in (("library", self.library, LIBRARIES), ("launch", self.launch, LAUNCH_MODES)):
            if value not in known:
                raise MeasurementError(f"{what} {quoted(value)} is not known{nearest(str(value), known)}")
        if self.dtype not in (*DTYPE_BYTES, *FP8):
            raise MeasurementError(f"dtype {quoted(self.dtype)} is not known{nearest(str(self.dtype), (*DTYPE_BYTES, *FP8))}")
