"""Run by the Python that SimGrid was installed for, apart from this project: a platform and a program for each host -> when messages came.

Usage: python3 simgrid_side.py PLATFORM.xml --cfg=... < programs.json > ends.json. Programs are {host: [[sends, receives], ...]}, a pair
for each phase: sends [[peer, bytes], ...] and receives [peer, ...]. A phase is over when all of these are. Receives are posted at time 0,
so that no sender waits for its receiver. What comes out is {"source destination": [seconds, ...]} in the order of sending.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from typing import Any

from simgrid import Actor, Comm, Engine, Host, Mailbox

Phase = tuple[list[tuple[str, int]], list[str]]
ends: dict[str, list[float]] = {}


def host(me: str, phases: list[Phase]) -> None:
    posted: dict[str, list[tuple[Any, Any]]] = defaultdict(list)
    for peer in (peer for _, receives in phases for peer in receives):
        posted[peer].append(Mailbox.by_name(f"{peer} {me}").get_async())  # with where the message is put, which must stay
    waiting = {peer: iter([comm for comm, _ in pairs]) for peer, pairs in posted.items()}
    for sends, receives in phases:
        leaving = [Mailbox.by_name(f"{me} {peer}").put_async(me, size) for peer, size in sends]
        Comm.wait_all(leaving + [next(waiting[peer]) for peer in receives])
    ends.update({f"{peer} {me}": [comm.finish_time for comm, _ in pairs] for peer, pairs in posted.items()})


def main() -> None:
    engine = Engine([sys.argv[0], *sys.argv[2:]])
    engine.load_platform(sys.argv[1])
    for me, phases in json.load(sys.stdin).items():
        Actor.create("host", Host.by_name(me), host, me, phases)
    engine.run()
    json.dump(ends, sys.stdout)


if __name__ == "__main__":
    main()
