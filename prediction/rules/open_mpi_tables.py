"""Open MPI 6's fixed decisions (component ``tuned``) for commutative operations, found by its developers on their clusters.

Source: ``ompi/mca/coll/tuned/coll_tuned_decision_fixed.c``. Numbers are Open MPI's own (``ALGORITHMS`` in ``open_mpi.py``); form of
a table: ``thresholds.py``. Sizes are those of the whole vector, but of one rank's block where ``OF_BLOCKS`` says so.
"""

from __future__ import annotations

from prediction.rules.thresholds import thresholds

OF_BLOCKS = ("all-gather", "all-to-all", "gather", "scatter")

TABLES = {
    "all-reduce": thresholds("""
        <4:    4 <8, 3 <4K, 4 <8K, 3 <16K, 4 <64K, 5 <256K, 6
        <8:    4 <16, 3 <8K, 6
        <16:   3 <8K, 6
        <32:   5 <64, 3 <4K, 6
        <64:   5 <128, 6
        <128:  3 <256K, 6
        <256:  2 <128K, 3 <256K, 6
        <512:  2 <4K, 6
        <2048: 2 <2K, 3 <16K, 6
        <4096: 2 <2K, 5 <4K, 3 <16K, 6
        else:  2 <2K, 5 <16K, 3 <32K, 6
    """),
    "broadcast": thresholds("""
        <4:    3 <32, 5 <256, 3 <512, 7 <1K, 1 <32K, 5 <128K, 2 <256K, 1 <512K, 6 <1M, 5
        <8:    5 <64, 6 <128, 5 <2K, 6 <8K, 1 <1M, 2
        <16:   7 <8, 5 <64, 7 <4K, 5 <16K, 6 <32K, 1
        <32:   7 <4K, 6 <1M, 8
        <64:   6 <2K, 7
        <128:  7
        <256:  6 <2, 5 <16K, 1 <32K, 5 <64K, 7
        <1024: 7 <16K, 4 <32K, 7
        <2048: 7 <512K, 8
        <4096: 7 <256K, 8
        else:  7 <8K, 5 <16K, 7 <256K, 8
    """),
    "reduce": thresholds("""
        <4:    7 <8, 4 <16, 3 <32, 1 <256K, 3 <512K, 2 <1M, 3
        <8:    4 <4K, 2 <64K, 5 <256K, 1 <512K, 5 <1M, 1
        <16:   4 <8K, 5
        <32:   4 <4K, 5
        <256:  5
        <512:  5 <8K, 6 <16K, 5
        <2048: 5
        <4096: 5 <512, 6 <1K, 5 <8K, 6 <16K, 5
        else:  5 <16, 6 <32, 5 <1K, 6 <2K, 5 <8K, 6 <16K, 5
    """),
    "all-gather": thresholds("""
        <3:    6
        <32:   3
        <64:   3 <1K, 5 <64K, 4
        <128:  3 <512, 5 <64K, 4
        <256:  3 <512, 5 <128K, 4 <512K, 5 <1M, 4
        <512:  3 <32, 2 <128, 3 <1K, 5 <128K, 4 <512K, 5 <1M, 4
        <1024: 3 <64, 2 <256, 3 <2K, 5
        <2048: 3 <4, 2 <8, 3 <16, 2 <32, 3 <256, 2 <512, 3 <4K, 5
        <4096: 2 <32, 3 <128, 2 <512, 3 <4K, 5
        else:  3 <2, 2 <8, 3 <16, 2 <512, 3 <4K, 5
    """),
    "reduce-scatter": thresholds("""
        <4:    3 <64K, 4 <128K, 3
        <8:    1 <8, 2 <256K, 3
        <32:   2 <256K, 3
        <64:   1 <64, 2 <2K, 4 <512K, 3
        <128:  1 <256, 2 <512, 4 <2K, 2 <4K, 4
        <256:  1 <256, 2 <512, 4
        <512:  1 <256, 2 <1K, 4
        <1024: 1 <512, 2 <2K, 4 <8K, 2 <16K, 4
        <2048: 1 <512, 2 <4K, 4 <16K, 2 <32K, 4
        <4096: 1 <512, 2 <4K, 4
        else:  1 <1K, 2 <8K, 4
    """),
    "all-to-all": thresholds("""
        <3:    2 <2, 5 <4, 2 <16, 5 <64, 2 <256, 5 <4K, 2 <32K, 4 <256K, 5 <1M, 2
        <8:    4 <8K, 1 <16K, 4 <64K, 1 <512K, 2 <1M, 1
        <16:   4 <256K, 1
        <32:   4 <4, 3 <512, 4 <8K, 1 <32K, 4 <256K, 1 <512K, 4
        <64:   3 <512, 1 <512K, 4
        <128:  3 <1K, 1 <2K, 4 <4K, 1 <256K, 2
        <256:  3 <1K, 4 <2K, 1 <256K, 2
        <512:  3 <1K, 4 <8K, 1 <32K, 2
        <1024: 3 <512, 4 <8K, 1 <16K, 4 <128K, 1 <256K, 2
        <2048: 3 <512, 4 <1K, 1 <2K, 4 <16K, 1 <256K, 4
        <4096: 3 <1K, 4 <4K, 1 <8K, 4 <128K, 1
        else:  3 <2K, 4 <8K, 1 <16K, 4 <32K, 1 <64K, 4
    """),
    "gather": thresholds("""
        <4:   3 <2, 1 <4, 2 <32K, 1 <64K, 2 <128K, 3
        <8:   2 <1K, 1 <8K, 2 <32K, 1 <256K, 3
        <256: 2
        <512: 2 <2K, 1 <8K, 2
        else: 2
    """),
    "scatter": thresholds("""
        <4:   3 <2, 1 <128K, 3 <256K, 1
        <8:   2 <2K, 1 <4K, 2 <8K, 1 <32K, 3 <1M, 1
        <16:  2 <16K, 3 <1M, 1
        <32:  2 <16K, 1 <32K, 3
        <64:  2 <512, 3 <8K, 2 <16K, 3
        else: 2 <512, 3
    """),
    "barrier": thresholds("""
        <4:    3
        <8:    1
        <64:   3
        <256:  4
        <512:  6
        <1024: 4
        <4096: 6
        else:  4
    """),
}

ONE_RANK_A_NODE = {
    "all-reduce": thresholds("""
        <3:    3
        <4:    7
        <8:    7 <1M, 3
        <16:   7 <256K, 6 <1M, 3
        <32:   7 <32K, 2 <128K, 6
        <65:   7 <32K, 3 <128K, 6
        <128:  3 <256K, 6
        <256:  2 <128K, 3 <256K, 6
        <512:  2 <4K, 6
        <2048: 2 <2K, 3 <16K, 6
        <4096: 2 <2K, 5 <4K, 3 <16K, 6
        else:  2 <2K, 5 <16K, 3 <32K, 6
    """),
    "broadcast": thresholds("""
        <4:   1
        <16:  1 <1M, 5
        <32:  1 <256K, 7 <1M, 5
        else: 1 <64K, 7 <1M, 5
    """),
}
"""Instead of ``TABLES`` for a communicator that has one rank on each of its nodes."""
