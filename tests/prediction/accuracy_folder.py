"""A small folder of measurements: five machines and one that cannot be, all timed at 20 us + size / (100 GB/s)."""

from pathlib import Path

MACHINES = """\
dataset_id,cluster,gpu,gpus_per_node,nodes,intra,nics_per_node,nic_gbps,fabric,nccl_version,launch,algo_forced,nvls,dtype,quality,notes
one,blue,H100,8,1,nvswitch,,,none,2.20.5,one process,Ring,off,float,ok,"a note, with a comma"
two,blue,H100,8,2,nvswitch,8,400,ib,2.20.5,process per gpu (torch),,on,float,ok,
four,blue,H100,8,4,nvswitch,8,400,ib,2.20.5,process per gpu,,on,float,point,
loud,green,H100,8,1,nvswitch,,,none,,unknown,,,half,noisy,
cards,red,RTX4090,4,1,pcie-shm,,,none,2.4.8,one process (thread per gpu),,,,ok,
wrong,red,H1000,8,1,nvswitch,,,none,,,,,,ok,
"""
SIZES = (1 << 10, 64 << 10, 128 << 10, 16 << 20, 32 << 20)
FLOOR, RATE = 20e-6, 100e9
FACTORS = {1 << 10: 1.5, 64 << 10: 0.8, 128 << 10: 1.25, 16 << 20: 1.1, 32 << 20: 0.99}
"""Of the fake prediction to what was measured, by size."""


def measured(size: int) -> float:
    return FLOOR + size / RATE


def write(folder: Path) -> Path:
    """Both tables, and the folder again."""
    (folder / "machines.csv").write_text(MACHINES)
    rows = ["dataset_id,collective,size_bytes,time_us,outlier"]
    for name in ("one", "two", "four", "loud", "cards", "wrong"):
        collectives = ("all_reduce", "all_gather") if name == "one" else ("all_reduce",)
        rows += [f"{name},{what},{size},{measured(size) * 1e6!r},0" for what in collectives for size in SIZES]
    rows += ["one,all_reduce,2048,999,1"]
    (folder / "measurements.csv").write_text("\n".join(rows) + "\n")
    return folder
