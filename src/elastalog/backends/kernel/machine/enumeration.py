"""The derivations of one variant of a clause, enumerated by the machine and handed on block by block, to what does more
with them than insert and count: proofs, subsumption, the strategies that maintain sets, equivalences in their own
recursion."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import Structure
from typing import Final, Protocol

from elastalog.backends.kernel.compile.signatures import INT, operator, piece, record, record_at
from elastalog.backends.kernel.execution.bound_variant import BoundVariant
from elastalog.backends.kernel.execution.level_views import GAINING, LEVELS
from elastalog.backends.kernel.machine import layout
from elastalog.backends.kernel.machine.growth import gather_rows, probe_rows
from elastalog.backends.kernel.machine.layout import home_of, machine_at, relation_at
from elastalog.backends.kernel.machine.level_steps import gather_heads, gather_in_phase, probe_in_phase, view_in_phase
from elastalog.backends.kernel.machine.plan import UNIT, MachinePlan, MachineVariants, start_of
from elastalog.backends.kernel.machine.rounds import driver, has_delta, has_more, runner
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.store.annotations import DELTA_LIST
from elastalog.backends.kernel.store.memory import STAMPS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.settings import SETTINGS


@record
class EnumerationTask(Structure):
    """`carried`: how many words bindings carry behind their slots. `is_of_rows`: the delta of the start are rows, of
    which those count that are seen; otherwise touched entries."""

    carried: int
    is_of_rows: int


_task_at = record_at(EnumerationTask)


@piece
def _open(machine):
    return layout.DONE


@piece
def _gather(machine, variant, frame):
    """Fills the first block with what is next of the delta."""
    task = _task_at(machine.task, 0)
    if variant.is_backward and not task.is_of_rows:
        return gather_heads(machine, variant, frame)
    if not task.is_of_rows:
        return gather_in_phase(machine, variant, frame)
    relation = relation_at(machine.relations, variant.start)
    seen = view_in_phase(machine, relation, variant.is_negated, 0)
    return gather_rows(machine, variant, frame, seen, relation.delta_end, task.carried)


@piece
def _probe(machine, probe, frame, following):
    if _task_at(machine.task, 0).carried == 0:
        relation = relation_at(machine.relations, probe.relation)
        return probe_rows(machine, probe, frame, following, home_of(relation).used)
    return probe_in_phase(machine, probe, frame, following)


@piece
def _hand_on(machine, variant, frame):
    return layout.HAND_ON if frame.begun < frame.end else layout.DONE


_drive = driver(_open, has_delta, runner(has_more, _gather, _probe, _hand_on), _open)


@operator(INT, INT)
def enumerate_derivations(address):
    """Runs the variant; returns why it leaves off."""
    return _drive(machine_at(address, 0))


class Sink(Protocol):
    """Takes the results of a variant; block[:used] is only valid during the call."""

    def __call__(self, block: Matrix, used: int) -> None: ...


class TooManyRows(Exception):
    """A variant of a clause has gone through more rows than it was allowed."""


_NO_LIMIT: Final = 1 << 62


@dataclass(frozen=True, slots=True)
class Setting:
    """What variants run in: all relations, those whose facts count as level 0 (`flat`; with local levels all of lower
    strata), blocks, and who looks at limits."""

    relations: Mapping[str, KernelRelation]
    flat: frozenset[str]
    workspace: Workspace
    watch: Watch


class Enumerator(MachineRun):
    """One variant of a clause, whose derivations are handed on. `own`: the relations of its stratum, where these are
    seen otherwise. `carried`: how many words bindings carry; without any, relations need no annotations."""

    def __init__(self, variant: BoundVariant, own: frozenset[str] = frozenset(), carried: int = LEVELS) -> None:
        self.variant = variant
        self._own = own
        self._task = EnumerationTask(carried=carried)
        self._setting: Setting | None = None
        self._sink: Sink | None = None
        self._left = 0
        self._stamp = -1

    def of_entries(self, setting: Setting, entries: Vector, phase: int, sink: Sink, most: int = _NO_LIMIT) -> int:
        """Enumerates the derivations in which the start is one of the touched entries. Returns through how many rows it
        went; raises TooManyRows when these are more than `most`."""
        relation = setting.relations[start_of(self.variant)]
        relation.reserve_touched(len(entries) - relation.touched_used)  # some may be listed twice
        relation.touched[: len(entries), DELTA_LIST] = entries
        self._task.is_of_rows = False
        return self._enumerate(setting, (0, len(entries)), phase, sink, most)

    def of_rows(
        self, setting: Setting, rows: tuple[int, int], sink: Sink, phase: int = GAINING, most: int = _NO_LIMIT
    ) -> int:
        """Enumerates the derivations in which the start is one of the visible rows in [start, stop) of its relation;
        for a variant without a start that is [0, 1)."""
        self._task.is_of_rows = True
        return self._enumerate(setting, rows, phase, sink, most)

    def _enumerate(self, setting: Setting, delta: tuple[int, int], phase: int, sink: Sink, most: int) -> int:
        if self._setting is not setting:
            self._begin(setting)
        if self._stamp != STAMPS.last:  # something has moved, or a relation was replaced
            self.plan.refresh_relations(self.relations)
        self.plan.refresh_indexes(self.relations)
        self._stamp = STAMPS.last  # last: a set table may have been made
        self._start.delta, self._start.delta_end = delta
        self.workspace.attach(self.plan, self._task)
        self.workspace.machine.phase = phase
        self._sink, self._left = sink, most
        try:
            self.run(enumerate_derivations)
        finally:
            self._sink = None  # it may keep what keeps this
        return most - self._left

    def _begin(self, setting: Setting) -> None:
        """What the variant runs in, from now on; the plan is made only once."""
        if self._setting is None:
            self.plan = MachinePlan((), frozenset(), MachineVariants([self.variant]), self._task.carried)
        plan = self.plan
        super().__init__(plan, setting.workspace, setting.relations, setting.watch)
        for name, row in zip(plan.names, plan.relations, strict=True):
            row.is_own, row.is_flat, row.listed_in = name in self._own, name in setting.flat or name == UNIT, DELTA_LIST
        self._start = plan.relations[plan.number[start_of(self.variant)]]
        self._stamp = -1
        self._setting = setting

    def _take(self, number: int, block: Matrix, used: int) -> None:
        assert self._sink is not None
        self._sink(block, used)
        if self._stamp != STAMPS.last:  # a relation may have moved
            self.plan.refresh_relations(self.relations)
            self._stamp = STAMPS.last

    def _work_allowed(self) -> int:
        return min(SETTINGS.work_between_checks, self._left)

    def _count(self) -> None:
        self._left -= self.workspace.machine.work

    def _check(self) -> None:
        machine = self.workspace.machine
        self._count()
        if self._left < 0:
            raise TooManyRows
        self.watch.check()
        machine.work = 0
        machine.work_allowed = self._work_allowed()
