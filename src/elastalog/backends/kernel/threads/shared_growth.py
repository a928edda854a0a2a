"""Rounds in compiled code that several threads share (see `machine.shares`).

A thread makes one call and stays in compiled code to the fixpoint: large rounds are shared, small ones are run by one
thread while the others sleep. It leaves off when a relation needs room (see `meeting`), when plans are to be made anew,
where something is to be done in Python, and now and then to look at limits.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from ctypes import addressof, memmove, sizeof
from functools import partial
from typing import Final

from elastalog.backends.kernel.bootstrap.bodies import StratumBodies
from elastalog.backends.kernel.bootstrap.machine_rounds import MachineRounds
from elastalog.backends.kernel.bootstrap.workers import Run, expected_work
from elastalog.backends.kernel.compile.records import Table
from elastalog.backends.kernel.machine import growth, layout
from elastalog.backends.kernel.machine.layout import VariantCode
from elastalog.backends.kernel.machine.run import MachineRun
from elastalog.backends.kernel.machine.shares import Shared, wake
from elastalog.backends.kernel.machine.workspace import Workspace
from elastalog.backends.kernel.threads.crew import Crew, Stopped
from elastalog.backends.kernel.threads.meeting import Meeting
from elastalog.backends.kernel.threads.shareable import is_shareable
from elastalog.backends.kernel.threads.shared_head import SharedHead
from elastalog.backends.watch import Watch
from elastalog.settings import SETTINGS

MOST_WORK = 1 << 19
"""Rows that a machine looks at or makes before it looks at limits: some ten milliseconds."""

_NOW: Final = -1
"""Work that is allowed to a machine which is to leave off."""


class SharedGrowth(MachineRounds):
    """The bodies of a stratum, laid out for a machine in each of so many threads, which have the relations and indexes
    of one plan in common. Each has a copy of the code of variants, where it notes what it has done. `expected`: facts
    that the first round is expected to find, by relation, where it is not about as many as the one before."""

    def __init__(self, crew: Crew, threads: int, stratum: StratumBodies, watch: Watch) -> None:
        super().__init__(stratum, watch)
        bodies = stratum.bodies
        self._crew = crew
        self._threads = threads
        self._lock = threading.Lock()
        plan = self._plan
        self._runs = [self._run]
        self._tables: list[Table[VariantCode]] = [plan.code.variants]
        self._tasks = [self._task]
        for thread in range(1, threads):
            self._add_machine(thread)
        growing = [place for place, (name, _) in enumerate(plan.keys) if name in self._rows]
        self._shared = Shared(self._tables, len(plan.names), growing, addressof(self._task))
        for task in self._tasks[1:]:
            task.sharing = self._shared.address
        for body, work in zip(bodies, self._shared.bodies, strict=True):
            work.is_shared, work.heads = is_shareable(body.variant), len(body.members)
        self._heads: dict[str, SharedHead] = {}
        self.expected: Mapping[str, int] = {}

    def _add_machine(self, thread: int) -> None:
        plan, workspace = self._plan, Workspace()
        task = growth.GrowthTask(thread=thread)
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
        for body, work in zip(self.bodies, self._shared.bodies, strict=True):
            member = body.members[0]
            work.started, work.made, work.looked = member.start_rows, member.derivations, member.rows
        reason = layout.OTHERWISE if self._is_small() else layout.GO_ON
        while True:
            if reason != layout.OTHERWISE:
                reason = self._share()
            if reason == layout.NO_INDEX:
                self._make_indexes()
                continue
            if reason == layout.OTHERWISE:
                task.most_work = self._shared.record.least_work
                reason = self._alone()
                if reason == layout.LARGE and task.most_found >= 0:
                    continue
            return reason

    def _is_small(self) -> bool:
        """Whether the next round needs no threads."""
        rows = [self._plan.relations[code.start] for code in self._plan.code.variants]
        runs = [Run(body, row.delta, row.delta_end) for body, row in zip(self.bodies, rows, strict=True)]
        return sum(map(expected_work, runs)) < self._shared.record.least_work

    def _make_indexes(self) -> None:
        """Indexes that the next round needs for the first time: two threads that miss one would both make it."""
        plan = self._plan
        probes = (
            plan.code.probes[probe]
            for code, work in zip(plan.code.variants, self._shared.bodies, strict=True)
            if work.work
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

        if len(left) > 1:
            self._crew.do(work, left.clear)
        else:
            work(0)

    # --- shared rounds ---------------------------------------------------------------------------------------------

    def _share(self) -> int:
        """Runs rounds in all threads; returns why no further one: see `machine.shares`."""
        plan, sharing = self._plan, self._shared.record
        heads = self._open_heads()
        sharing.stage, sharing.reason = layout.ENTERING, layout.GO_ON
        meeting = Meeting(heads.values(), self._threads, self._tell_room)

        def abort() -> None:
            meeting.abort()
            self._call_back()

        self._task.sharing = self._shared.address
        plan.is_ahead = True
        try:
            self._crew.do(partial(self._work, meeting), abort)
            plan.keep(self._relations, self._own)
        except BaseException:
            plan.keep(self._relations, self._own)
            # Nobody knows which rows they hold now.
            for name in self._own:
                self._relations[name].drop_outdated_indexes()
            raise
        finally:
            self._task.sharing = 0
        self._watch.step()
        self._tell()
        return sharing.reason

    def _open_heads(self) -> dict[str, SharedHead]:
        """The relations of the stratum, ready for rows of all threads."""
        for name, row in self._rows.items():
            # About as many facts as in the round before.
            expected = self.expected.get(name, row.delta_end - row.delta)
            head, relation = self._heads.get(name), self._relations[name]
            if relation.used < SETTINGS.least_shared_growth:
                # A meeting costs more.
                relation.reserve(relation.used + SETTINGS.least_shared_room)
            if head is None:
                turns = self._shared.turns[self._plan.number[name]]
                head = self._heads[name] = SharedHead(relation, self._threads, expected, turns)
            else:
                head.open(expected)
            self._tell_room(head)
        return self._heads

    def _tell_room(self, head: SharedHead) -> None:
        """Tells machines that a relation may have moved."""
        self._plan.refresh_relation(self._plan.number[head.relation.name], head.relation)

    def _work(self, meeting: Meeting, thread: int) -> None:
        """What one thread does of shared rounds."""
        machine_run, sharing = self._runs[thread], self._shared.record
        machine, address = machine_run.workspace.machine, machine_run.workspace.address
        machine.stage = layout.ENTERING
        machine.served = machine.derived = machine.work = 0
        self._allow(thread)
        while True:
            reason = growth.grow(address)
            if meeting.is_stopped:
                raise Stopped
            if sharing.reason != layout.GO_ON:
                break
            match reason:
                case layout.NO_ROOM if self._tasks[thread].is_solo:
                    self._know_rows(self._plan.names[machine.full])
                    machine_run.serve(reason)
                case layout.NO_ROOM:
                    name = self._plan.names[machine.full]
                    self._know_rows(name)
                    meeting.ask_for_room(self._heads[name])
                    self._call_back()
                case layout.CHECK:
                    self._count(thread)
                case layout.NO_INDEX:
                    self._know_index(machine.full_index)
                    machine_run.serve(reason)
                case _:
                    machine_run.serve(reason)
            # Before it is looked whether there is a meeting: who asks for one after that takes it away again.
            self._allow(thread)
            if meeting.is_wanted:
                meeting.meet(thread)
                self._allow(thread)
        self._count(thread)

    def _know_rows(self, name: str) -> None:
        """Tells a relation how far the machines have come with it."""
        self._relations[name].used = self._rows[name].used

    def _know_index(self, place: int) -> None:
        """The same for an index."""
        self._know_rows(self._plan.keys[place][0])
        self._plan.know_index(place, self._relations)

    def _allow(self, thread: int) -> None:
        machine = self._runs[thread].workspace.machine
        machine.work_allowed = MOST_WORK
        machine.derived_allowed = max(self._watch.allowance(MOST_WORK), 1)

    def _call_back(self) -> None:
        """All machines leave off as soon as they can."""
        for machine_run in self._runs:
            machine_run.workspace.machine.work_allowed = _NOW
        wake(self._shared.address)

    def _count(self, thread: int) -> None:
        """Counts what a thread has done since it was last counted, and looks at limits."""
        machine = self._runs[thread].workspace.machine
        derived, work = machine.derived, machine.work
        machine.derived = 0
        machine.work_before += work
        machine.work = 0
        with self._lock:
            self._watch.derived(derived, work)
