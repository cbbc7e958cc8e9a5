"""RCCL's tuning table of MI300X (gfx942), one of a table for each family of GPUs. Source: ``src/graph/tuning.cc`` of RCCL 2.21.5.

Columns of protocols: LL, Simple; LL128 is off on MI300X.
"""

from __future__ import annotations

from prediction.nccl.constants import US

BASE = (12 * US, 17 * US)
"""The start of a call [s], whatever the algorithm."""

HOP = {
    ("xgmi", "tree"): (0.9 * US, 2.3 * US),
    ("xgmi", "ring"): (0.8 * US, 2.1 * US),
    ("net", "tree"): (10.5 * US, 25 * US),
    ("net", "ring"): (9.5 * US, 320 * US),
}
"""One hop [s]."""

RATIO = {
    ("tree", False): (0.06, 0.11),
    ("tree", True): (0.06, 0.59),
    ("ring", False): (0.08, 1.0),
    ("ring", True): (0.08, 1.0),
}
"""Parts of the base bandwidth; the second word says whether there are more than 2 nodes."""

_LL_TREE = (*[0.1] * 6, *[1.0] * 5, 0.6, 1.0, 0.9, 1.0, 1.0, *[0.1] * 11)
_SIMPLE_TREE = (*[0.1] * 15, 0.7, *[1.0] * 5, 0.7, 0.7, 0.5, 0.6, 0.6, 0.6)
_LL_RING = (*[0.1] * 11, 1.0, 0.2, 1.0, 0.4, 0.4, 0.1, 0.2, 0.2, *[0.1] * 8)
_SIMPLE_RING = (*[0.1] * 22, 1.0, 0.8, 1.0, 1.0, 1.0)
CORRECTION = {"tree": (_LL_TREE, _SIMPLE_TREE), "ring": (_LL_RING, _SIMPLE_RING)}
"""Parts of the bandwidth by size: 64 to 127 B, then twice as much each, the last from 4 GiB on. Ring's count between nodes only."""

OVERHEAD = {"intel": 1 * US, "amd": 2 * US}
"""What a message costs a host between nodes [s]; three times as much with Simple."""
