"""Launches -> when every message ends, step by step, for several sizes at once; refuses where flows would share a link or port.

Times are computed as if each flow were alone; a link or port whose users then overlap in time, or come in another order than
that of the schedule, is a refusal. Without overlap these are the event engine's times: max-min sharing had nothing to share."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from algorithms.launch import Launch, dtype_bytes
from algorithms.schedule import Schedule
from algorithms.steps import Block, Stream, in_steps
from sim.layout import wire_bytes
from sim.maxplus.hazards import TABLE_BYTES, Hazards, Recent, Table, UndecidedError
from sim.maxplus.outcome import TERMS, Outcome, Sends
from sim.maxplus.rounds import RefusedError, Round, Structure, structure
from sim.maxplus.rows import Floats, Ints, added, latest, latest_item
from sim.model import Model
from sim.routes import RouteTable
from sim.times import Progress
from topologies.errors import ScheduleError
from topologies.graph import Topology

SAME = 1 - 1e-12  # overlaps below this share of the time are rounding
REPORT_EVERY = 64  # steps


def evaluate(
    topology: Topology,
    launches: Sequence[Launch],
    model: Model,
    elements: Sequence[Sequence[int]] | None = None,
    *,
    traced: bool = False,
    terms: bool = True,
    progress: Progress | None = None,
) -> Outcome:
    """``elements``: per launch, its vector lengths (default: one, that of the launch). Without ``terms`` times alone, sooner.

    RefusedError where the evaluator does not apply; ScheduleError for a launch that waits for a later one."""
    wanted = elements or [[launch.elements] for launch in launches]
    run = _Run(topology, launches, model, np.asarray(wanted, dtype=np.int64), traced, terms, progress)
    return run.outcome()


class _Run:
    def __init__(
        self, topology: Topology, launches: Sequence[Launch], model: Model, elements: Ints, traced: bool, terms: bool,
        progress: Progress | None,
    ) -> None:  # fmt: skip
        if model.fifo_depth:
            raise RefusedError("fifo-depth is not a longest path over steps")
        self.launches, self.model, self.elements, self.progress = launches, model, elements, progress
        self.table = RouteTable(topology, model)
        self.sizes = elements.shape[1]
        waits = any(x.start or x.after or x.duration for x in launches)
        kinds = np.asarray((model.overhead > 0, True, model.reduce_rate < np.inf, waits)) & terms
        self.row = dict(zip(TERMS, np.where(kinds, np.cumsum(kinds), 0).tolist(), strict=True))
        self.rows = 1 + int(kinds.sum())
        self.busy = np.zeros((self.sizes, 1))  # per resource, from 1: when its last user was sent
        self.reducer_of: dict[str, int] = {}
        self.reducing = np.zeros((self.sizes, self.rows, 0))  # per node: when its reducer is free
        self.reached = np.zeros((self.sizes, 0))  # per node: when the last message for its reducer arrived
        self.total = sum(len(launch.schedule) for launch in launches if launch.schedule)
        self.done = 0
        self.sends = Sends(*(np.empty(self.total) for _ in range(4))) if traced else None
        self.carried = np.zeros((2, 0), dtype=np.int64)  # per route: bytes, without and with headers

    def outcome(self) -> Outcome:
        ends: list[Floats] = []
        sent: list[Ints] = []
        for number, launch in enumerate(self.launches):
            if any(not 0 <= other < number for other in launch.after):
                raise ScheduleError(f"launch {number}: may only wait for launches before it (0..{number - 1}), not {launch.after}")
            gate = self._still(launch.start)
            for other in launch.after:
                gate = latest(gate, ends[other])
            if launch.schedule is None:
                ends.append(added(gate, launch.duration, self.row["wait_s"] or None))
                sent.append(np.zeros(0, dtype=np.int64))
                continue
            busy = self.busy.copy(), self.reducing.copy(), self.reached.copy(), self.carried.copy()
            try:
                played = _Launch(self, number, gate, Recent(self.sizes)).play()
            except UndecidedError:
                self.busy, self.reducing, self.reached, self.carried = busy
                played = _Launch(self, number, gate, self._cells(launch.schedule)).play()
            ends.append(played.end)
            sent.append(played.rank_bytes)
            self.done += len(launch.schedule)
        columns = [self.row[term] for term in TERMS]
        every = np.stack([end[:, :, 0] for end in ends])
        terms = np.stack([every[:, :, c] if c else np.zeros(every.shape[:2]) for c in columns], axis=2)
        payload, wire = self.carried
        return Outcome(tuple(self.launches), every[:, :, 0], terms, self.table, payload, wire, tuple(sent), self.sends)

    def _still(self, seconds: float) -> Floats:
        return added(np.zeros((self.sizes, self.rows, 1)), seconds, self.row["wait_s"] or None)

    def _cells(self, schedule: Schedule | Stream) -> Hazards:
        need = Table.nbytes(self.sizes, self.rows, schedule.places, schedule.nchunks)
        if need > TABLE_BYTES:
            raise RefusedError(f"ranks are too far apart in time to follow {schedule.places} x {schedule.nchunks} cells")
        return Table(self.sizes, self.rows, schedule.places, schedule.nchunks)

    def grow(self) -> None:
        """Room for the resources and reducers that routes and placements have brought."""
        more = len(self.table.resources) + 1 - self.busy.shape[1]
        self.busy = np.pad(self.busy, ((0, 0), (0, max(0, more))))
        self.carried = np.pad(self.carried, ((0, 0), (0, len(self.table.routes) - self.carried.shape[1])))
        more = len(self.reducer_of) - self.reached.shape[1]
        self.reached = np.pad(self.reached, ((0, 0), (0, max(0, more))))
        self.reducing = np.pad(self.reducing, ((0, 0), (0, 0), (0, max(0, more))))


class _Launch:
    """One launch on the state of the run."""

    def __init__(self, run: _Run, number: int, gate: Floats, hazards: Hazards) -> None:
        self.run, self.model, self.hazards, self.gate = run, run.model, hazards, gate
        launch = run.launches[number]
        assert launch.schedule is not None
        if launch.placement is None or len(launch.placement.nodes) != launch.schedule.places:
            raise ScheduleError(f"launch {number}: a schedule needs a placement for each of its places")
        self.schedule, self.nodes = launch.schedule, launch.placement.nodes
        self.itemsize = dtype_bytes(launch.dtype)
        self.reducer = np.asarray([run.reducer_of.setdefault(node, len(run.reducer_of)) for node in self.nodes])
        run.grow()
        self.free = np.repeat(gate, self.schedule.places, axis=2)
        self.end = gate
        self.rank_bytes = np.zeros(self.schedule.places, dtype=np.int64)
        lengths = run.elements[number].tolist()
        self.moved = None
        if isinstance(self.schedule, Schedule) and not np.array_equal(self.schedule.chunk, self.schedule.dst_chunk):
            self.moved = np.stack([self.schedule.send_elements(length) for length in lengths]) * self.itemsize
        self.edges = np.stack([self.schedule.chunk_bounds(length) for length in lengths]) * self.itemsize
        self.chunk_bytes = np.diff(self.edges, axis=1)
        self.empties = bool((self.chunk_bytes == 0).any())
        self.known: Structure | None = None
        self.at = 0

    def play(self) -> _Launch:
        for count, step in enumerate(in_steps(self.schedule)):
            if self.known is None or not self.known.fits(step):
                self._leave()
                self.known = structure(step, self.reducer, self._routes, self.run.table)
                self.run.grow()
                self._more_queues()
            floor = self.end if self.model.barrier else None
            for round_ in self.known.rounds:
                self._play_round(step, round_, self.known.alone, floor)
            self.hazards.next_step()
            self.at += len(step)
            if self.run.progress and count % REPORT_EVERY == 0:
                self.run.progress(self.run.done + self.at, self.run.total)
        self._leave()
        return self

    def _routes(self, src: Ints, dst: Ints, channel: Ints) -> list[int]:
        nodes, table = self.nodes, self.run.table
        ends = zip(src.tolist(), dst.tolist(), channel.tolist(), strict=True)
        return [table.route(nodes[a], nodes[b], c) for a, b, c in ends]

    def _more_queues(self) -> None:
        assert self.known is not None
        last = max(q.stop if isinstance(q, slice) else int(q.max()) + 1 for q in (round_.queue for round_ in self.known.rounds))
        more = last - self.free.shape[2]
        if more > 0:
            self.free = np.concatenate([self.free, np.repeat(self.gate, more, axis=2)], axis=2)

    def _play_round(self, step: Block, round_: Round, alone: bool, floor: Floats | None) -> None:
        row, before = self.run.row, round_.sent
        sizes = self._bytes(step, round_)
        wire = wire_bytes(sizes, self.model)
        start = self.free[:, :, round_.queue]
        if floor is not None:
            start = latest(start, floor)
        start = self.hazards.ready(step, round_, start)
        flow = added(start, self.model.overhead, row["overhead_s"] or None) if self.model.overhead else start
        sent = added(flow, wire / round_.rate, None)
        if not (alone and round_.sent is not None):
            self._check(round_, flow[:, 0], sent[:, 0], sizes)
        arrived = added(sent, round_.latency, row["latency_s"] or None)
        done = self._reduce(step, round_, arrived, sizes)
        last: Floats = done[:, 0].max(axis=1)
        self.hazards.learn(step, round_, sent, done, last)
        if (last > self.end[:, 0, 0]).any():
            self.end = latest(self.end, latest_item(done))
        round_.sent = sent[:, 0]
        if self.empties:  # nothing is on the link for a message of no bytes
            round_.sent = np.where(sizes > 0, round_.sent, 0.0 if before is None else before)
        moved: Ints = sizes[:1] if wire is sizes else np.stack([sizes[0], wire[0]])
        round_.nbytes = moved if round_.nbytes is None else moved + round_.nbytes
        if not alone:
            self._book(round_)
        if self.run.sends is not None:
            rows = np.arange(len(step))[round_.index] + self.run.done + self.at
            columns = (self.run.sends.start, self.run.sends.sent, self.run.sends.arrived, self.run.sends.end)
            for column, times in zip(columns, (start, sent, arrived, done), strict=True):
                column[rows] = times[0, 0, round_.message]
        self.free[:, :, round_.queue] = sent  # last: ``start`` may be a view of it

    def _bytes(self, step: Block, round_: Round) -> Ints:
        """Shape [sizes, messages]."""
        chunk, count = round_.sends(step.chunk), round_.part(step.count)
        if self.moved is not None:
            each = self.moved[:, self.at : self.at + len(step)][:, round_.index]
        elif isinstance(count, int) and count == 1:
            each = self.chunk_bytes.take(chunk, axis=1)
        else:
            each = self.edges.take(chunk + count, axis=1) - self.edges.take(chunk, axis=1)
        return each if round_.starts is None else np.add.reduceat(each, round_.starts, axis=1)

    def _reduce(self, step: Block, round_: Round, arrived: Floats, sizes: Ints) -> Floats:
        """The reducer of a node serves in the order of arrival; rounds must bring messages in that order."""
        if not round_.reduces or self.model.reduce_rate == np.inf:
            return arrived
        run, at = self.run, self.reducer[round_.dst]
        work = sizes / self.model.reduce_rate
        if (arrived[:, 0] < run.reached[:, at]).any():
            raise RefusedError(f"step {step.step}: messages for one reducer arrive in another order than that of their steps")
        busy = np.where((work > 0)[:, None], run.reducing[:, :, at], 0.0)
        done = added(latest(arrived, busy), work, run.row["reduce_s"] or None)
        some = work > 0
        run.reached[:, at] = np.where(some, arrived[:, 0], run.reached[:, at])
        run.reducing[:, :, at] = np.where(some[:, None], done, run.reducing[:, :, at])
        return done

    def _check(self, round_: Round, flow: Floats, sent: Floats, sizes: Ints) -> None:
        """RefusedError where two flows would be on a link or port at once."""
        busy = self.run.busy
        for used in round_.resources:
            clash = (flow < busy[:, used] * SAME) & (used > 0) & (sizes > 0)
            if clash.any():
                self._refuse(int(used[int(np.argmax(clash.any(axis=0)))]))
        if not round_.apart:
            for size in range(len(flow)):
                self._check_within(round_, flow[size], sent[size], sizes[size])

    def _check_within(self, round_: Round, flow: Floats, sent: Floats, sizes: Ints) -> None:
        user = np.tile(np.arange(len(flow)), len(round_.resources))
        used = np.concatenate(round_.resources)
        some = (used > 0) & (sizes[user] > 0)
        user, used = user[some], used[some]
        order = np.lexsort((flow[user], used))
        user, used = user[order], used[order]
        clash = (used[1:] == used[:-1]) & (flow[user[1:]] < sent[user[:-1]] * SAME)
        if clash.any():
            self._refuse(int(used[int(np.argmax(clash))]))

    def _refuse(self, used: int) -> None:
        taken = self.run.table.resources[used - 1]
        what = f"link {taken.src} -> {taken.dst}" if taken.src and taken.dst else f"port of {taken.src or taken.dst}"
        raise RefusedError(f"flows share the {what}, or use it in another order than that of their steps")

    def _leave(self) -> None:
        """Book what the rounds of the structure used, before another comes."""
        for round_ in self.known.rounds if self.known else ():
            self._book(round_)

    def _book(self, round_: Round) -> None:
        if round_.sent is None or round_.nbytes is None:
            return
        for used in round_.resources:
            for size in range(self.run.sizes):
                np.maximum.at(self.run.busy[size], used, round_.sent[size])
        apart = round_.src != round_.dst
        np.add.at(self.rank_bytes, round_.src[apart], round_.nbytes[0, apart])
        for carried, nbytes in zip(self.run.carried, (round_.nbytes[0], round_.nbytes[-1]), strict=True):
            np.add.at(carried, round_.route, nbytes)
        round_.sent = round_.nbytes = None
