"""NCCL's own tuner, 2.16 to 2.30: what each algorithm and protocol would cost by its cost model, and which one it takes."""
