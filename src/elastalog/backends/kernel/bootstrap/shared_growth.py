"""Rounds in compiled code that several threads share (see `machine.shares`).

A thread makes one call and stays in compiled code from round to round. It leaves off when a relation is full, when
plans are to be made anew, where something is to be done in Python, now and then to look at limits, and when the next
round is small: such ones are run by one thread.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence, Set
from ctypes import addressof
from functools import cached_property

from elastalog.backends.kernel.bootstrap.bodies import StratumBodies, is_shareable
from elastalog.backends.kernel.bootstrap.rounds import NO_LIMIT, MachineRounds
from elastalog.backends.kernel.compile.signatures import Table
from elastalog.backends.kernel.machine import growth, layout
from elastalog.backends.kernel.machine.layout import VariantCode
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.machine.shares import Shared
from elastalog.backends.kernel.machine.together import work_together
from elastalog.backends.kernel.store.crew import Crew
from elastalog.backends.kernel.store.inserting import TURN, close_gaps, give_out, turn_for
from elastalog.backends.watch import Watch
from elastalog.diagnostics import quota
from elastalog.settings import SETTINGS

MOST_EXPECTED = 1 << 19
"""Facts for which there is room from the start in the first round of a stratum, at most."""

MOST_FORECAST = 1 << 28
"""Facts beyond which nothing is forecast: the size of a relation is limited."""

TABLE_BYTES = 24
"""Bytes per fact of the largest set table for twice the facts."""

_SURE = 0.75
"""The part of what a round should still find, going by what it has found, for which a set table gets room: later start
rows find more facts that are known already."""


class SharedGrowth(MachineRounds):
    """The bodies of a stratum, laid out for a machine in each thread of a crew, which have the relations and indexes
    of one plan in common. Each has a copy of the code of variants, where it notes what it has done."""

    def __init__(self, crew: Crew, stratum: StratumBodies, watch: Watch) -> None:
        super().__init__(stratum, watch)
        self._crew = crew
        self._threads = crew.number
        self._others: list[MachineRun] = []
        self._tables: list[Table[VariantCode]] = [self.plan.code.variants]
        self._tasks = [self._task]

    @property
    def _runs(self) -> list[MachineRun]:
        """The machines of all threads, made when they are asked for: in a circle all facts would stay until garbage is
        collected."""
        return [self, *self._others]

    @cached_property
    def _shared(self) -> Shared:
        """What machines share; the others are made with it."""
        plan = self.plan
        for thread in range(1, self._threads):
            self._add_machine(thread)
        growing = [place for place, (name, _) in enumerate(plan.keys) if name in self._rows]
        shared = Shared(self._threads, len(plan.names), self._tables, growing, addressof(self._task))
        for task in self._tasks[1:]:
            task.sharing = shared.address
        for body, work in zip(self.bodies, shared.bodies, strict=True):
            work.is_shared, work.heads = is_shareable(body), len(body.each)
        return shared

    def _add_machine(self, thread: int) -> None:
        plan, workspace = self.plan, Workspace()
        task = growth.GrowthTask(thread=thread, until=NO_LIMIT)
        table = plan.code.variants.copied()
        workspace.attach(plan, task)
        workspace.machine.variants = table.address
        self._others.append(MachineRun(plan, workspace, self.relations, self.watch))
        self._tasks.append(task)
        self._tables.append(table)

    def _codes(self) -> Sequence[Sequence[VariantCode]]:
        return [list(table) for table in self._tables]

    def _go_on(self) -> int:
        """Runs iterations in all threads, or in this one if they are small."""
        task = self._task
        reason = layout.OTHERWISE if self._is_small() else layout.GO_ON
        while True:
            if reason != layout.OTHERWISE:
                reason = self._share()
            if reason == layout.NO_INDEX:
                self._make_indexes()
                continue
            if reason == layout.OTHERWISE:
                task.most_work = SETTINGS.machine_share_from
                reason = super()._go_on()
                if reason == layout.LARGE and task.most_found >= 0:
                    continue
            return reason

    def _is_small(self) -> bool:
        """Whether no round has needed threads yet, nor the next one does, if every step gives a row for each: what they
        share is made when one first does."""
        work = sum(size * (1 + len(body.probes)) for size, body in zip(self._sizes(), self.bodies, strict=True))
        return "_shared" not in vars(self) and work < SETTINGS.share_round_from

    def _sizes(self) -> list[int]:
        """How many rows each body starts at."""
        rows = (self.plan.relations[code.start] for code in self.plan.code.variants)
        return [row.delta_end - row.delta for row in rows]

    def _make_indexes(self) -> None:
        """Indexes that the next round needs for the first time: two threads that miss one would both make it."""
        bodies = zip(self.plan.code.variants, self._shared.bodies, strict=True)
        missing = [self.plan.missing(code) for code, work in bodies if work.work]
        for place in sorted(set[int]().union(*missing)):
            self.plan.extend_index(place, self.relations)

    # --- shared rounds ---------------------------------------------------------------------------------------------

    def _share(self) -> int:
        """Runs rounds in all threads; returns why no further one: see `machine.shares`. When a relation is full all
        threads leave off where they are, and go on there when it has room."""
        sharing = self._shared.record
        for body, work in zip(self.bodies, self._shared.bodies, strict=True):
            first = body.each[0]
            work.started, work.made, work.looked = first.start_rows, first.derivations, first.rows
        self._open_heads()
        self._divide_indexes()
        sharing.stage, sharing.reason = layout.ENTERING, layout.GO_ON
        for machine_run in self._runs:
            machine = machine_run.workspace.machine
            machine.stage = layout.ENTERING
            machine.served = machine.derived = machine.work = 0
        self._task.sharing = self._shared.address
        try:
            work_together(self._crew, self._runs, self._shared, growth.grow, self._count_together, self._make_room)
        except BaseException:
            # Which rows they hold now is not known.
            for name in self._own:
                self.relations[name].drop_outdated_indexes()
            raise
        finally:
            self._task.sharing = 0
        self.watch.step()
        self.tell()
        return sharing.reason

    def _open_heads(self) -> None:
        """The relations of the stratum are ready for rows of all threads."""
        started: Counter[str] = Counter()
        for body, size in zip(self.bodies, self._sizes(), strict=True):
            started.update(dict.fromkeys((one.clause.head for one in body.each), size))
        for name, row in self._rows.items():
            relation = self.relations[name]
            # About as many facts as in the round before; in the first, as there are rows to start at, for all we know.
            expected = row.delta_end - row.delta if row.delta else min(started[name], MOST_EXPECTED)
            turn = turn_for(expected, self._threads)
            # In the end every thread may have a turn that it has only begun.
            size = relation.used + expected + 2 * self._threads * turn
            if relation.used < SETTINGS.least_shared_growth:
                relation.reserve(max(size, relation.used + SETTINGS.least_shared_room))
            elif size <= relation.full:
                relation.reserve_rows(size)
            self._give_out(name, turn)

    def _give_out(self, name: str, turn: int) -> None:
        """From now on threads are given rows behind those that there are, a `turn` at a time."""
        relation = self.relations[name]
        give_out(self._shared.turns[self.plan.number[name]], relation.used, turn)
        relation.lay_out()

    def _make_room(self, full: Set[str]) -> None:
        """Makes rows dense, and room for more, where there was none."""
        for name in full:
            relation, turns = self.relations[name], self._shared.turns[self.plan.number[name]]
            close_gaps(relation.home, turns)
            turn = int(turns[TURN])
            least = max(relation.used // 4, SETTINGS.least_shared_room, 2 * self._threads * turn)
            relation.reserve_rows(relation.used + least)
            if relation.used + least > relation.full:
                relation.reserve(relation.used + max(least, self._expected(name)))
            self._give_out(name, turn)

    def _expected(self, name: str) -> int:
        """The facts that a set table which is filled anew gets room for, so that it need not be again in this round: at
        most as many as there are, and none where that might reach a limit, which a forecast must not."""
        relation, limit, own = self.relations[name], self.watch.memory, self.watch.quota
        if relation.used > MOST_FORECAST or (own is not None and own.bounds_memory):
            return 0
        if limit is not None and quota.resident_bytes() + TABLE_BYTES * relation.used > limit // 2:
            return 0
        found = relation.used - self._rows[name].delta_end
        return min(int(found * self._shared.left() * _SURE), relation.used)

    def _divide_indexes(self) -> None:
        """The indexes that grow can be extended by all threads."""
        for place, (name, columns) in enumerate(self.plan.keys):
            if name in self._rows and not self.plan.indexes[place].is_missing:
                index = self.relations[name].index_to_extend(columns)
                assert index is not None
                index.divide(self._threads)
                index.lay_out()

    def _count_together(self, derived: int, work: int) -> None:
        self.watch.spared += int(work * (1 - self._threads**-SETTINGS.thread_gain))
        self.watch.derived(derived, work)
