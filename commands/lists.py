"""What there is: topologies and algorithms."""

from __future__ import annotations

from commands.options import AsJson, say


def list_topologies(as_json: AsJson = False) -> None:
    """What clusters there are, and their parameters."""
    from topologies import get, names
    from views import records, terminal

    entries = [get(name) for name in names()]
    say(records.dumps(records.topology_records(entries)) if as_json else terminal.topology_lines(entries))


def list_algorithms(as_json: AsJson = False) -> None:
    """What algorithms there are for which collective, and their options."""
    from algorithms.registry import catalogue
    from views import records, terminal

    say(records.dumps(records.algorithm_records(catalogue())) if as_json else terminal.algorithm_lines(catalogue()))
