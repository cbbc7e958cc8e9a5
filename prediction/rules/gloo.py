"""Gloo's all-reduces. Nothing in Gloo goes by size: its caller names the algorithm, and the ring cuts the vector by a rule.

Source: ``gloo/allreduce.cc`` (ring, bcube) and the classes ``gloo/allreduce_*.h`` of older programs.
"""

from __future__ import annotations

from collections.abc import Mapping

from algorithms.launch import dtype_bytes
from prediction.rules.call import Call, Chosen, Row, unknown
from topologies.errors import MeasurementError, nearest, quoted

VERSIONS = ("any",)
COLLECTIVES = ("all-reduce",)
SEGMENT = 1 << 20
"""Bytes of a segment at most."""
PICKS = ("ring", "bcube", "halving-doubling", "ring-chunked", "ring-whole")
"""The default, the other option of ``gloo::allreduce``, and the older classes; ``ring-whole`` is its ``allreduce_ring``."""


def choose(call: Call, version: str = "any", environment: Mapping[str, str] | None = None, pick: str | None = None) -> Chosen:
    """``pick``: the algorithm its caller asks for. Raises MeasurementError: another collective, a pick or a variable that Gloo has not."""
    if call.collective not in COLLECTIVES:
        raise unknown("Gloo", call.collective, COLLECTIVES)
    if environment:
        raise MeasurementError(f"environment: {quoted(next(iter(environment)))}: no variable changes what Gloo chooses; leave it out")
    if pick not in (None, *PICKS):
        raise MeasurementError(f"Gloo: {quoted(pick)} is not one of its all-reduces{nearest(pick or '', PICKS)}")
    asked = "its caller asks for it" if pick else "the default of gloo::allreduce"
    return Chosen("gloo", version, call, (_row(call, pick or "ring"),), f"{asked}; no size changes it")


def _row(call: Call, pick: str) -> Row:
    power = call.ranks == call.power
    if pick == "ring":
        count, size = segments(call)
        return Row("ring", "ring", options={"slices": count // call.ranks, "segment_bytes": size})
    if pick == "bcube":
        return Row("halving-doubling" if power else "bcube", "bcube", options={} if power else {"base": 2})
    if pick == "halving-doubling":
        return Row("halving-doubling" if power else "binary-blocks", "allreduce_halving_doubling")
    if pick == "ring-chunked":
        return Row("ring", "allreduce_ring_chunked", options={"slices": 2})
    return Row("ring-whole", "allreduce_ring")


def segments(call: Call) -> tuple[int, int]:
    """How many segments the ring cuts the vector into, and the bytes of one: two or more for each rank's chunk, so that one travels
    while another is summed, each up to ``SEGMENT`` and of whole elements."""
    element, ranks = dtype_bytes(call.dtype), call.ranks
    size = min(-(-call.nbytes // (2 * ranks)), SEGMENT // element * element)
    size = -(-size // element) * element
    count = max(-(-call.nbytes // size), 2 * ranks)
    return -(-count // ranks) * ranks, size
