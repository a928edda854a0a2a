"""Rounds in compiled code that several threads share (see `machine.shares`).

Small rounds are run by one thread, many in a call. A large one is shared out: a call a thread extends indexes, another
runs shares as long as there are any. Threads leave off when a relation needs room (see `meeting`), and where the
machine does.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from ctypes import addressof, memmove, sizeof
from functools import partial
from typing import Final

import numpy as np

from elastalog.backends.kernel.bootstrap.bodies import Body
from elastalog.backends.kernel.bootstrap.machine_rounds import MachineRounds
from elastalog.backends.kernel.compile.addresses import address_of
from elastalog.backends.kernel.compile.records import Table
from elastalog.backends.kernel.machine import growth, layout, run
from elastalog.backends.kernel.machine.layout import VariantCode
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.shares import APART, Sharing
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.store.inserting import TURN_STATE_SIZE
from elastalog.backends.kernel.store.memory import Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.crew import Crew, Stopped
from elastalog.backends.kernel.threads.meeting import Meeting
from elastalog.backends.kernel.threads.shareable import is_shareable
from elastalog.backends.kernel.threads.shared_head import SharedHead
from elastalog.backends.watch import Watch
from elastalog.relations.words import Dictionary

LEAST_WORK = 12_000
"""A round that is expected to look at, or make, fewer rows is left to one thread."""

LEAST_ROWS = 4_000
"""The same for rows to add to indexes."""

SHARES: Final = 16
"""Of a round for each thread, about: the last are small, so that no thread has to wait long for another at the end."""

LEAST_WORK_OF_SHARE = 1 << 12
"""What a share is expected to look at and make, at least."""

LEAST_SHARE = 16
"""Start rows of a share, at least."""

_SHARES, _INDEXES = 0, APART
"""Where it is noted what has been taken: see `Sharing.next`."""

_NOW: Final = -1
"""Work that is allowed to a machine which is to leave off."""


class SharedGrowth(MachineRounds):
    """The bodies of a stratum, laid out for a machine in each of so many threads, which have the relations and indexes
    of one plan in common. Each has a copy of the code of variants, where it notes what it has done."""

    def __init__(
        self,
        threads: int,
        stratum: int,
        own: Sequence[str],
        bodies: Sequence[Body],
        relations: Mapping[str, KernelRelation],
        dictionary: Dictionary,
        watch: Watch,
    ) -> None:
        super().__init__(stratum, own, bodies, relations, dictionary, watch)
        self._threads = threads
        self._is_shared = np.array([is_shareable(body.variant) for body in bodies])
        self._lock = threading.Lock()
        self._crew: Crew | None = None
        plan, number = self._plan, len(self._plan.names)
        self._next: Vector = np.zeros(2 * APART, np.int64)
        self._given: Vector = np.zeros(number * APART, np.int64)
        self._turns: Vector = np.zeros((threads, number, APART), np.int64)
        self._shares: Vector = np.zeros((0, 3), np.int64)
        self._growing: Vector = np.array([i for i, (name, _) in enumerate(plan.keys) if name in self._rows], np.int64)
        self._sharing = Sharing(
            relations=number, next=address_of(self._next), given=address_of(self._given),
            turns=address_of(self._turns), indexes=address_of(self._growing), indexes_number=len(self._growing),
        )  # fmt: skip
        self._runs = [self._run]
        self._tables: list[Table[VariantCode]] = [plan.code.variants]
        self._tasks = [self._task]
        for thread in range(1, threads):
            self._add_machine(thread)
        # The same memory, for arithmetic on all of it.
        self._records = [table.as_array() for table in self._tables]
        self._relation_records = plan.relations.as_array()
        self._index_records = plan.indexes.as_array()
        self._starts = self._records[0]["start"].copy()
        self._head_numbers = np.array([len(body.members) for body in bodies])
        self._heads: dict[str, SharedHead] = {}

    def _add_machine(self, thread: int) -> None:
        plan, workspace = self._plan, Workspace()
        task = growth.GrowthTask(thread=thread, sharing=addressof(self._sharing))
        table = Table(VariantCode, len(self.bodies))
        memmove(table.address, plan.code.variants.address, sizeof(VariantCode) * len(self.bodies))
        workspace.attach(plan, task)
        workspace.machine.variants = table.address
        self._runs.append(MachineRun(plan, workspace, self._relations, self._own, self._watch))
        self._tasks.append(task)
        self._tables.append(table)

    def _codes(self) -> Sequence[Sequence[VariantCode]]:
        return [list(table) for table in self._tables]

    def _go_on(self) -> int:
        task = self._task
        members = [body.members[0] for body in self.bodies]
        self._done_before = np.array([(m.start_rows, m.derivations, m.rows) for m in members]).T
        self._ready: set[bytes] = set()
        try:
            while True:
                works = self._expected_works()
                if works.sum() < LEAST_WORK:
                    task.most_work = LEAST_WORK
                    reason = self._alone()
                    if reason == layout.DONE:
                        return reason
                elif not self._share(works):
                    return layout.DONE
                if task.most_found < 0:
                    return layout.LARGE
        finally:
            if self._crew is not None:
                self._crew.__exit__(None, None, None)
                self._crew = None

    def _expected_works(self) -> Vector:
        """What bodies are expected to look at and make in the next round, judged by what they have done."""
        sizes = self._sizes()
        started, made, looked = (
            sum(records[field] for records in self._records) + before
            for field, before in zip(("started", "made", "looked"), self._done_before, strict=True)
        )
        works: Vector = sizes + (looked + made * self._head_numbers) * sizes // np.maximum(started, 1)
        return works

    def _sizes(self) -> Vector:
        """How many rows bodies start at in the next round."""
        relations = self._relation_records
        sizes: Vector = (relations["delta_end"] - relations["delta"])[self._starts]
        return sizes

    # --- a shared round --------------------------------------------------------------------------------------------

    def _share(self, works: Vector) -> bool:
        """Runs a round in all threads; whether it has found anything."""
        self._make_indexes(works)
        self._task.sharing = addressof(self._sharing)
        try:
            self._extend_indexes()
            alone = works * ~self._is_shared
            if alone.any():
                # Texts get their ids in the order in which one thread finds them.
                self._run_shares(alone, 1)
            self._run_shares(works * self._is_shared, self._threads)
        finally:
            self._task.sharing = 0
        return self._settle()

    def _settle(self) -> bool:
        """What a round has found gets its level and is the next delta; whether there is any."""
        task, found = self._task, 0
        for name, row in self._rows.items():
            relation = self._relations[name]
            self._plan.refresh_relation(self._plan.number[name], relation)
            row.delta, row.delta_end = row.delta_end, relation.used
            found += row.delta_end - row.delta
            if relation.is_annotated:
                relation.level[row.delta : row.delta_end] = task.iteration
        task.iteration += 1
        task.most_found -= found
        self._watch.step()
        self._tell()
        return found > 0

    def _together(self, work: Callable[[int], None], abort: Callable[[], None], threads: int) -> None:
        """Does some work in the first threads."""
        if threads == 1:
            work(0)
            return
        if self._crew is None:
            self._crew = Crew(self._threads).__enter__()
        self._crew.do(work, abort)

    def _make_indexes(self, works: Vector) -> None:
        """Indexes that this round needs for the first time: two threads that miss one would both make it."""
        plan = self._plan
        active = (works > 0).tobytes()
        if active in self._ready:
            return
        self._ready.add(active)
        probes = (
            plan.code.probes[probe]
            for code, work in zip(plan.code.variants, works, strict=True)
            if work
            for probe in range(code.first_probe, code.first_probe + code.probes)
        )
        needed = {probe.index for probe in probes if probe.kind == layout.INDEXED}
        left = [place for place in sorted(needed) if plan.indexes[place].is_missing]

        def work(thread: int) -> None:
            while left:
                try:
                    place = left.pop()
                except IndexError:  # another thread was faster
                    return
                plan.extend_index(place, self._relations)

        self._together(work, left.clear, self._threads if len(left) > 1 else 1)

    def _extend_indexes(self) -> None:
        """Adds the latest rows to the indexes of the stratum's relations."""
        plan, indexes = self._plan, self._index_records[self._growing]
        waiting = self._relation_records["used"][indexes["relation"]] - indexes["added"]
        rows = int(waiting[waiting > 0].sum())  # what is missing has all rows, and more
        if not rows:
            return
        self._next[_INDEXES] = 0
        failed: list[bool] = []

        def work(thread: int) -> None:
            workspace = self._runs[thread].workspace
            workspace.machine.stage = layout.OPENING
            while growth.grow(workspace.address) == layout.NO_INDEX:
                if failed:
                    raise Stopped
                place = workspace.machine.full_index
                self._know_index(place)
                plan.extend_index(place, self._relations)

        try:
            self._together(work, lambda: failed.append(True), self._threads if rows >= LEAST_ROWS else 1)
        except BaseException:
            # Nobody knows which rows they hold now.
            for name in self._own:
                self._relations[name].drop_outdated_indexes()
            raise
        for place in self._growing.tolist():
            self._know_index(place)

    def _know_index(self, place: int) -> None:
        """Tells an index how far the machines have extended it."""
        row = self._plan.indexes[place]
        if not row.is_missing:
            name, columns = self._plan.keys[place]
            self._relations[name].indexes[columns].done = row.added

    def _run_shares(self, works: Vector, threads: int) -> None:
        """Runs bodies of which some work is expected in the first threads."""
        self._share_out(works, threads)
        heads = self._open_heads()
        numbers = {id(head): self._plan.number[name] for name, head in heads.items()}

        def tell(head: SharedHead) -> None:
            self._plan.refresh_relation(numbers[id(head)], head.relation)

        for head in heads.values():
            tell(head)
        meeting = Meeting(heads.values(), threads, tell)

        def abort() -> None:
            meeting.abort()
            self._call_back()

        self._together(partial(self._work, meeting), abort, threads)
        meeting.close()

    def _share_out(self, works: Vector, threads: int) -> None:
        """Makes shares of bodies, the largest first; for one thread, a share of each body in their order."""
        sizes = self._sizes()
        of_one = max(int(works.sum()) // (SHARES * threads), LEAST_WORK_OF_SHARE)
        pieces = np.minimum(-(-works // of_one), sizes // LEAST_SHARE + 1) if threads > 1 else np.minimum(works, 1)
        order = np.argsort(-works, kind="stable") if threads > 1 else np.arange(len(works))
        bodies = np.repeat(order, pieces[order])
        firsts = np.repeat(np.cumsum(pieces[order]) - pieces[order], pieces[order])
        place = np.arange(len(bodies)) - firsts
        start = self._relation_records["delta"][self._starts[bodies]]
        size, number = sizes[bodies], pieces[bodies]
        shares = [bodies, start + size * place // number, start + size * (place + 1) // number]
        self._shares = np.ascontiguousarray(np.stack(shares, axis=1), np.int64)
        self._sharing.shares, self._sharing.shares_number = address_of(self._shares), len(self._shares)
        self._next[_SHARES] = 0

    def _open_heads(self) -> dict[str, SharedHead]:
        """The relations of the stratum, ready for rows of all threads."""
        for name, row in self._rows.items():
            # About as many facts as in the round before.
            expected = row.delta_end - row.delta
            head = self._heads.get(name)
            if head is not None:
                head.open(row.delta_end, expected)
                continue
            number = self._plan.number[name]
            given = self._given[number * APART : number * APART + 1]
            turns = [self._turns[thread, number, :TURN_STATE_SIZE] for thread in range(self._threads)]
            self._heads[name] = SharedHead(self._relations[name], row.delta_end, self._threads, expected, given, turns)
        return self._heads

    def _work(self, meeting: Meeting, thread: int) -> None:
        """What one thread does of a round."""
        machine_run = self._runs[thread]
        machine, address = machine_run.workspace.machine, machine_run.workspace.address
        machine.stage = layout.RUNNING
        machine.at = -1
        machine.served = machine.derived = machine.work = 0
        self._allow(thread)
        while True:
            reason = growth.grow(address)
            if meeting.is_stopped:
                raise Stopped
            match reason:
                case layout.DONE:
                    break
                case layout.NO_ROOM:
                    meeting.ask_for_room(self._heads[self._plan.names[machine.full]])
                    self._call_back()
                case layout.CHECK:
                    self._count(thread)
                case _:
                    machine_run.serve(reason)
            # Before it is looked whether there is a meeting: who asks for one after that takes it away again.
            self._allow(thread)
            if meeting.is_wanted:
                meeting.meet(thread)
                self._allow(thread)
        self._count(thread)
        meeting.leave()

    def _allow(self, thread: int) -> None:
        machine = self._runs[thread].workspace.machine
        machine.work_allowed = run.MOST_WORK
        machine.derived_allowed = max(self._watch.allowance(run.MOST_WORK), 1)

    def _call_back(self) -> None:
        """All machines leave off as soon as they can."""
        for machine_run in self._runs:
            machine_run.workspace.machine.work_allowed = _NOW

    def _count(self, thread: int) -> None:
        """Counts what a thread has done since it was last counted, and looks at limits."""
        machine = self._runs[thread].workspace.machine
        derived, work = machine.derived, machine.work
        machine.derived = 0
        machine.work_before += work
        machine.work = 0
        with self._lock:
            self._watch.derived(derived, work)
