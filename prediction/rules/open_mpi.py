"""Open MPI's component ``tuned``: the algorithm by ranks and size, and what its code then runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from prediction.rules.call import USER_OP, Call, Chosen, Row, unknown
from prediction.rules.open_mpi_tables import OF_BLOCKS, ONE_RANK_A_NODE, TABLES
from topologies.errors import MeasurementError, quoted

VERSIONS = ("6",)
ALGORITHMS: dict[str, dict[int, Row]] = {
    "all-reduce": {
        2: Row("reduce-broadcast", "2 nonoverlapping"),
        3: Row("recursive-doubling", "3 recursive_doubling"),
        4: Row("ring", "4 ring"),
        5: Row("ring", "5 segmented_ring"),
        6: Row("halving-doubling", "6 rabenseifner"),
        7: Row("all-gather-reduce", "7 allgather_reduce"),
    },
    "broadcast": {
        1: Row("flat", "1 basic_linear"),
        2: Row("chain", "2 chain"),
        3: Row("chain", "3 pipeline"),
        4: Row("split-binary-tree", "4 split_binary_tree"),
        5: Row("binary-tree", "5 binary_tree"),
        6: Row("binomial-tree", "6 binomial"),
        7: Row("k-nomial-tree", "7 knomial", options={"radix": 4}),
        8: Row("scatter-recursive-doubling", "8 scatter_allgather"),
    },
    "reduce": {
        1: Row("flat", "1 linear"),
        2: Row("two-chains", "2 chain"),
        3: Row("chain", "3 pipeline"),
        4: Row("binary-tree", "4 binary"),
        5: Row("binomial-tree", "5 binomial"),
        6: Row("in-order-binary-tree", "6 in-order_binary"),
        7: Row("rabenseifner", "7 rabenseifner"),
    },
    "all-gather": {
        2: Row("bruck", "2 bruck"),
        3: Row("recursive-doubling", "3 recursive_doubling"),
        4: Row("ring", "4 ring"),
        5: Row("neighbour-exchange", "5 neighbor"),
        6: Row("direct", "6 two_proc"),
    },
    "reduce-scatter": {
        1: Row("reduce-scatterv", "1 non-overlapping"),
        2: Row("recursive-halving", "2 recursive_halving"),
        3: Row("ring", "3 ring"),
        4: Row("butterfly", "4 butterfly"),
    },
    "all-to-all": {
        1: Row("direct", "1 linear"),
        2: Row("pairwise", "2 pairwise"),
        3: Row("bruck", "3 modified_bruck"),
        4: Row("linear-sync", "4 linear_sync"),
        5: Row("direct", "5 two_proc"),
    },
    "gather": {1: Row("flat", "1 basic_linear"), 2: Row("binomial-tree", "2 binomial"), 3: Row("linear-sync", "3 linear_sync")},
    "scatter": {1: Row("flat", "1 basic_linear"), 2: Row("binomial-tree", "2 binomial"), 3: Row("flat", "3 linear_nb")},
    "barrier": {
        1: Row("linear", "1 linear"),
        3: Row("recursive-doubling", "3 recursive_doubling"),
        4: Row("dissemination", "4 bruck"),
        6: Row("tree", "6 tree"),
    },
}
_DYNAMIC = "OMPI_MCA_coll_tuned_use_dynamic_rules"


def choose(call: Call, version: str = "6", environment: Mapping[str, str] | None = None) -> Chosen:
    """Raises MeasurementError: a collective without a rule here, or variables that force another rule."""
    if call.collective not in TABLES:
        raise unknown("Open MPI", call.collective, TABLES)
    elsewhere = _variables(environment or {})
    alone = call.nodes == call.ranks and call.collective in ONE_RANK_A_NODE
    table = (ONE_RANK_A_NODE if alone else TABLES)[call.collective]
    found = table.find(call.ranks, call.block if call.collective in OF_BLOCKS else call.nbytes)
    size = " a rank" if call.collective in OF_BLOCKS else ""
    rule = f"tuned's fixed decision{' for one rank a node' if alone else ''}: {found}{size}"
    row, why = _run(call, ALGORITHMS[call.collective][found.number])
    return Chosen("open-mpi", version, call, (row,), rule + why, _notes(call, row), elsewhere=elsewhere)


def _run(call: Call, row: Row) -> tuple[Row, str]:
    """What the code of the algorithm does with such a call: some hand over to another one."""
    rows = ALGORITHMS[call.collective]
    if call.collective == "all-reduce":
        if row.algorithm == "ring" and call.elements < call.ranks:
            return replace(rows[3], called=row.called), "; with fewer elements than ranks the ring hands over to recursive doubling"
        if row is rows[5]:
            return row, "; without a segment size it runs as the plain ring"
        if row is rows[2]:
            parts = {part: choose(replace(call, collective=part)).choice.algorithm for part in ("reduce", "broadcast")}
            return replace(row, options=parts), "; a reduce, then a broadcast, each by its own rule"
    if call.collective == "all-gather":
        if row is rows[3] and call.ranks != call.power:
            return replace(rows[2], called=row.called), "; ranks that are no power of two hand over to Bruck"
        if row is rows[5] and call.ranks % 2:
            return replace(rows[4], called=row.called), "; an odd number of ranks hands over to the ring"
    if call.collective == "broadcast" and row is rows[8] and call.elements < call.ranks:
        return replace(rows[1], called=row.called), "; fewer elements than ranks hand over to the linear broadcast"
    return row, ""


def _notes(call: Call, row: Row) -> tuple[str, ...]:
    notes = ["components other than tuned (han, ucc, hcoll), rule files and forced algorithms are not modelled"]
    if row.algorithm == "halving-doubling" and call.ranks != call.power:
        notes.append("off powers of two Open MPI's ranks first exchange halves; the schedule here folds whole vectors")
    if call.op == USER_OP:
        notes.append("the operation is taken as commutative; other operations have tables of their own")
    return tuple(notes)


def _variables(environment: Mapping[str, str]) -> tuple[str, ...]:
    for name, value in environment.items():
        if name == _DYNAMIC and value.lower() in ("0", "false", "no"):
            continue
        if name.startswith("OMPI_MCA_coll"):
            raise MeasurementError(
                f"environment: {quoted(name)}: rule files, forced algorithms and other components of Open MPI are not modelled; "
                "leave it out for the fixed decisions"
            )
        if not name.startswith("OMPI_"):
            raise MeasurementError(f"environment: {quoted(name)} is not a variable of Open MPI; they start with OMPI_MCA_")
    return tuple(environment)
