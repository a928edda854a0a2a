"""A drive through the strata that an update reaches: one call of the machine for as many of them as can be (see
`machine.drive`). Most updates are small, and then what counts is how often Python is asked.

Strata are laid out for the machine when a drive first comes to them, and again when an array has moved since, or a
relation was replaced (`memory.STAMPS`); from then on they cost Python nothing.
"""

from __future__ import annotations

import time
from array import array
from collections.abc import Iterable, Mapping, Sequence
from ctypes import addressof
from itertools import chain
from typing import Final, Protocol

import numpy as np

from elastalog.backends.kernel.compile.signatures import Table, address_of
from elastalog.backends.kernel.levels.plan import MaintenancePlan
from elastalog.backends.kernel.levels.shared_variants import FANOUT, UNTIL_GATHERED, SharedVariants
from elastalog.backends.kernel.machine import drive as machine_drive
from elastalog.backends.kernel.machine import inputs as machine_inputs
from elastalog.backends.kernel.machine import layout, stratum_update
from elastalog.backends.kernel.machine.layout import BLOCK
from elastalog.backends.kernel.machine.run import MachineRun, Workspace
from elastalog.backends.kernel.store.bookkeeping import are_below
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.memory import STAMPS, IndexDescriptor, Matrix, RelationDescriptor, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.transaction import Homes, StratumDelta, add_rows, touch
from elastalog.backends.protocol import DRIVEN, Driven
from elastalog.backends.watch import Watch
from elastalog.planning.logical import LogicalStratum
from elastalog.settings import SETTINGS

_DONE = layout.DONE
_advance = stratum_update.advance
_NUMBER = 8
_NEVER: Final = 1 << 40
"""More facts than a delta can have."""

_NOTHING = array("q", [0] * 5)
"""What was done before anything was: strata, derivations, rows, effort and touched facts, as in `Drive`."""

_COUNTED: Final = len(_NOTHING) + 3
"""Numbers of `Drive` from these on up to the rows that relations have got."""


class Scheduled(Protocol):
    """A stratum that a drive may enter, if it `is_driven`; `plan` says how it is maintained."""

    @property
    def stratum(self) -> LogicalStratum: ...
    @property
    def is_driven(self) -> bool: ...
    @property
    def plan(self) -> MaintenancePlan: ...


class UpdateScheduler:
    """The drives through the strata of a program. `vectors`: those of the dense strategy. `changed` of a drive under
    way: the entries of relations that changed, which it adds to."""

    def __init__(
        self,
        strata: Sequence[Scheduled],
        homes: Homes,
        watch: Watch,
        is_global: bool,
        vectors: Mapping[str, Vectors],
        crew: Crew = ALONE,
    ) -> None:
        self._strata = strata
        self._relations = homes.relations
        self._homes = homes
        self._watch = watch
        self._vectors = vectors
        self._shared = SharedVariants(crew, watch, len(homes.names) + 1) if crew.number > 1 else None
        self._most_started = BLOCK if self._shared is None else SETTINGS.shared_starts
        self._workspace = Workspace(start_rows=max(self._most_started, BLOCK))
        self._is_global = is_global
        self._runs: dict[int, MachineRun] = {}
        # The descriptors of relations and indexes that are known of strata, which must live as long as their addresses.
        self._laid_out: dict[int, list[RelationDescriptor | IndexDescriptor | None]] = {}
        self._readers: dict[str, list[int]] = {name: [] for name in homes.names}
        for place, stratum in enumerate(strata):
            for name in stratum.stratum.reads:
                self._readers[name].append(place)
        self.changed: dict[str, Vector] = {}
        self._given: dict[str, Vector] = {}
        self._grown: list[KernelRelation] = []
        self.is_under_way = False
        self._stamp = -1
        self._is_single = False
        self._never: Vector = np.array([not stratum.is_driven for stratum in strata], np.int64)
        self._make_tables()

    def _make_tables(self) -> None:
        size, names = len(self._strata), self._homes.names
        self._table = Table(machine_drive.Stratum, size)
        self._reached: Vector = np.zeros(size, np.int64)
        self._barred: Vector = np.zeros(size, np.int64)
        begins = np.cumsum([len(names) + 1, *map(len, self._readers.values())])
        self._reader_table: Vector = np.array([*begins, *chain.from_iterable(self._readers.values())], np.int64)
        # Explicit facts of a relation may go and come, here and below.
        self._driven = array("q", bytes(_NUMBER * DRIVEN * (2 * size + 1)))
        self._moved: Vector = np.zeros((2 * len(names), machine_drive.MOVED), np.int64)
        self._record = record = machine_drive.Drive(
            stamp=-1, strata=self._table.address, strata_number=size, reached=address_of(self._reached),
            barred=address_of(self._barred), never=address_of(self._never), readers=address_of(self._reader_table),
            readers_size=len(self._reader_table),
            homes=address_of(self._homes.addresses), homes_number=len(names), driven=address_of(self._driven),
            moved=address_of(self._moved), work_allowed=SETTINGS.work_between_checks,
            large=_NEVER if self._shared is None else SETTINGS.share_update_from // FANOUT,
            most_started=self._most_started,
        )  # fmt: skip
        self._address = addressof(record)
        first = machine_drive.Drive.driven_number.offset // _NUMBER  # type: ignore[attr-defined]
        self._counted = memoryview(record).cast("B").cast("q")[first : first + _COUNTED]
        machine = self._workspace.machine
        self._machine_at = self._workspace.address
        machine.drive, machine.is_global, machine.part = self._address, self._is_global, layout.TO_ENTER
        self._take_list(SETTINGS.first_changes)

    def _take_list(self, size: int) -> None:
        """Takes a new list for changes. Earlier lists live as long as `changed` knows them."""
        record, entries = self._record, np.empty(size, np.int32)
        place = address_of(entries)
        self._list: Vector = entries
        record.lists, record.lists_used, record.lists_room = place, 0, size

    # --- a drive ---------------------------------------------------------------------------------------------------

    def begin_update(self) -> None:
        """What earlier updates changed and did need not be known any more: before anything else than a new drive."""
        self._record.lists_used = self._record.moved_number = self._record.driven_number = 0

    def set_out(self, changed: dict[str, Vector], allowed: int, first: int = 0, is_new: bool = False) -> None:
        """Begins a drive to the strata that read what has `changed`, from the place `first` on. It adds to that, and
        stops within a stratum that makes more derivations than `allowed`. `is_new`: it is the first of its update."""
        self.changed = changed
        if STAMPS.last != self._stamp:
            self._look_again()
        if machine_drive.set_out(self._machine_at, first, allowed, is_new):
            self._workspace.clear()
        if self._given:
            self._given.clear()
        if changed:
            self.tell(changed)
        self.is_under_way = True

    def tell(self, names: Iterable[str]) -> None:
        """Relations have changed, and not by the drive: it goes to the strata that read them."""
        if STAMPS.last != self._stamp:
            self._look_again()  # one that was evaluated anew is elsewhere
        for name in names:
            entries = self.changed[name]
            machine_drive.tell(self._address, self._homes.numbers[name], address_of(entries), len(entries))

    def bar(self, place: int, *, is_reached: bool) -> None:
        """A stratum is not to be entered; if it `is_reached`, the drive stops there."""
        self._barred[place] = 1
        if is_reached:
            self._reached[place] = 1

    def give(self, place: int, deleted: Mapping[str, Matrix], inserted: Mapping[str, Matrix]) -> None:
        """Explicit facts of the stratum at a place, which has rules, go and come: it is to be entered, unless it is
        known already."""
        for name in self._strata[place].stratum.relations:
            if name not in self._given and (name in deleted or name in inserted):
                relation, nothing = self._relations[name], np.empty(0, np.int32)
                if name in deleted:
                    self._look_for_explicit(place)
                gone = touch(relation, relation.find(deleted[name])) if name in deleted else nothing
                come = touch(relation, add_rows(relation, inserted[name])) if name in inserted else nothing
                entries = np.concatenate((gone, come))
                home, at = relation.descriptor, address_of(entries)
                self._given[name], home.given, home.going, home.coming = entries, at, len(gone), len(come)
                self._reached[place] = 1

    def _look_for_explicit(self, place: int) -> None:
        plan, record = self._strata[place].plan, self._table[place]
        before, laid_out = plan.machine, record.laid_out
        record.laid_out = -1  # first: should Ctrl-C come, what is laid out is not the plan any more
        plan.look_for_explicit()
        if plan.machine is before:
            record.laid_out = laid_out

    def change(self, place: int, number: int, facts: Matrix, is_present: bool) -> Matrix:
        """Explicit facts of a relation without rules, of which the number is given, come, or go, in the stratum at a
        place, which need not be entered for that. All its entries have changed; the strata that read it hear of it.
        Returns those facts that did not come, or go, before."""
        if STAMPS.last != self._stamp:
            self._look_again()
        while reason := machine_drive.change(self._address, place, number, facts, is_present):
            relation = self._relations[self._homes.names[number]]
            if reason > 0:
                self._make_room(relation, facts)
            else:
                facts = facts[are_below(relation, facts, 1) != is_present]
                if not len(facts):
                    break
        return facts

    def _make_room(self, relation: KernelRelation, facts: Matrix) -> None:
        """Facts get rows, and room for entries."""
        add_rows(relation, facts)
        relation.reserve_touched(len(facts))
        entries = relation.touched_used + len(facts)
        if self._record.lists_used + entries > len(self._list):
            self.collect(self.changed)
            self._take_list(2 * entries)
        self._look_again()

    def go_on(self) -> int | None:
        """Drives on until one stratum that is reached has been left (None), or to the place of one that is barred, or
        has cost what is allowed."""
        self._record.is_single = self._is_single = True
        if STAMPS.last != self._stamp:
            self._look_again()
        at = self._serve_until_done(_advance(self._machine_at))
        if at is None:
            self.collect(self.changed)
        return at

    def _serve_until_done(self, reason: int) -> int | None:
        """Does what the machine stopped for, and drives on."""
        record = self._record
        while reason != _DONE:
            match reason:
                case layout.OTHERWISE if not self._barred[record.at]:
                    self._lay_out(record.at)
                case layout.OTHERWISE | layout.CHECK:
                    self.collect(self.changed)
                    return int(record.at)
                case layout.NO_LISTS:
                    self.collect(self.changed)
                    self._take_list(max(2 * len(self._list), self._workspace.machine.highest))
                    self._look_again()
                case layout.LARGE:
                    if self._is_single:
                        self._workspace.machine.work_allowed = UNTIL_GATHERED
                case _:
                    self._serve(reason)
            reason = _advance(self._machine_at)
        return None

    def is_at(self, place: int) -> bool:
        """Whether a drive under way has come to a stratum."""
        return self.is_under_way and self._record.at == place

    @property
    def is_within(self) -> bool:
        """Whether a stratum has been entered and not left."""
        return bool(self._workspace.machine.part != layout.TO_ENTER)

    def admit(self, place: int) -> None:
        """A stratum is not barred."""
        self._barred[place] = 0

    def pass_by(self) -> None:
        """The stratum that the drive has come to has been handled."""
        self._record.at += 1
        self._workspace.machine.part = layout.TO_ENTER

    def drive(self, strata: Sequence[LogicalStratum], done: list[Driven], began: float) -> int | None:
        """Drives on until all strata that are reached have been left (None), or to where `go_on` would stop. Tells what
        was `done` in those driven through since the drive set out, or this was called, if anything; it `began` at a
        time."""
        if self._is_single:
            self._record.is_single = self._is_single = False
        if STAMPS.last != self._stamp:
            self._look_again()
        at = None if (reason := _advance(self._machine_at)) == _DONE else self._serve_until_done(reason)
        number, derivations, rows, effort, touched, _, _, grown = self._counted.tolist()
        if grown and at is None:
            self.collect(self.changed)
        if number:
            watch = self._watch
            watch.derivations += derivations
            watch.rows += rows
            watch.effort += effort
            watch.touched += touched
            done.append((strata, self._driven[: number * DRIVEN], effort, time.perf_counter() - began))
            if at is not None:
                self._counted[: len(_NOTHING)] = _NOTHING
        return at

    def count(self) -> None:
        """The watch counts what was done, but for what was touched."""
        watch = self._watch
        _, derivations, rows, effort, *_ = self._counted.tolist()
        watch.derivations += derivations
        watch.rows += rows
        watch.effort += effort
        self._counted[: len(_NOTHING)] = _NOTHING

    def check(self) -> None:
        """The stratum under way has cost what was allowed: looks at limits, and allows more."""
        served, looked = self._runs[self._record.at], self._workspace.machine.work
        served.serve(layout.CHECK)
        if self._shared is not None:
            self._shared.help(served, looked)

    def abandon(self) -> None:
        """Forgets the stratum under way; its marks are taken off the relations below it."""
        if self.is_within:
            self._runs[self._record.at].plan.refresh_relations(self._relations)
            machine_inputs.unmark(self._workspace.address)
            self._workspace.machine.part = layout.TO_ENTER
            self._workspace.clear()
        if self._grown:
            self._extend_indexes()

    def end(self) -> None:
        """There is no drive under way."""
        self.abandon()
        self.is_under_way = False

    # --- within ----------------------------------------------------------------------------------------------------

    def _look_again(self) -> None:
        """If anything has moved, all strata are laid out again when they are next entered."""
        stamp = STAMPS.last
        self._record.stamp = self._homes.look_again()
        self._stamp = stamp  # what moves meanwhile is looked at again

    def _lay_out(self, place: int) -> None:
        """Writes down where the relations and indexes of a stratum are, and its code."""
        own, relations, record = self._strata[place].stratum.relations, self._relations, self._table[place]
        plan = self._strata[place].plan.machine
        for name in own:
            if name in self._vectors:
                plan.relations[plan.number[name]].vectors = self._vectors[name].address
        found: list[RelationDescriptor | IndexDescriptor | None] = [relations[name].lay_out() for name in plan.names]
        for name, columns in plan.keys:
            index = relations[name].index_to_extend(columns)
            found.append(None if index is None else index.lay_out())
        if self._laid_out.get(place) == found and self._runs[place].plan is plan:
            record.laid_out = self._record.stamp  # arrays have moved, but what says where they are has not
            return
        # Ctrl-C may come anywhere: until all is written, nothing is known of the stratum.
        self._laid_out.pop(place, None)
        self._runs[place] = MachineRun(plan, self._workspace, relations, self._watch, vectors=self._vectors)
        for name in plan.names:
            relations[name].descriptor.number = self._homes.numbers[name]
        for row, home in zip((*plan.relations, *plan.indexes), found, strict=True):
            row.home = 0 if home is None else addressof(home)
        self._workspace.make_ready(plan)
        machine_drive.lay_out(record, plan)
        self._laid_out[place] = found
        record.laid_out = self._record.stamp

    def _serve(self, reason: int) -> None:
        """Does what the machine wishes."""
        place, machine = self._record.at, self._workspace.machine
        served = self._runs[place]
        if reason == layout.NO_INDEX:
            name, columns = served.plan.keys[machine.full_index]
            # Before its address is known: Ctrl-C must not leave that of one that is gone.
            self._laid_out[place][len(served.plan.names) + machine.full_index] = (
                self._relations[name].index(columns).descriptor
            )
        served.serve(reason)

    def collect(self, changed: dict[str, Vector]) -> None:
        """Adds the entries that have changed, by relation, to those known."""
        record = self._record
        if not record.moved_number:
            return
        for moved, first, listed, grown in self._moved[: record.moved_number].tolist():
            name = self._homes.names[moved]
            if grown:
                self._grown.append(self._relations[name])
            if listed:
                changed[name] = self._list[first : first + listed]
        record.moved_number = record.grown = 0
        if self._grown and not self.is_within:
            self._extend_indexes()

    def _extend_indexes(self) -> None:
        """Adds the rows that relations have got to all their indexes: never while a stratum is under way, since the
        machine knows where these were when it was entered."""
        while self._grown:
            relation = self._grown.pop()
            try:
                relation.extend_indexes()
            except MemoryError:  # it may be what ends the update
                relation.drop_outdated_indexes()


class StratumUpdate:
    """Losses, recovery and gains of the stratum at a place (see `machine.stratum_update`). If a drive has come to it,
    or is within it, it goes on from there."""

    def __init__(self, stratum_delta: StratumDelta, place: int, drive: UpdateScheduler) -> None:
        self.own = stratum_delta.stratum.relations
        self._drive = drive
        self._watch = stratum_delta.watch
        self._is_alone = not drive.is_at(place)
        if self._is_alone:
            drive.set_out(stratum_delta.below, max(self._watch.allowance(SETTINGS.work_between_checks), 1), place)
        drive.give(place, stratum_delta.deleted, stratum_delta.inserted)
        drive.admit(place)

    def update(self) -> None:
        """Brings the stratum to its new fixpoint."""
        drive = self._drive
        if drive.is_within:
            drive.check()
        while drive.go_on() is not None:
            drive.check()
        drive.count()

    def end(self) -> dict[str, Vector]:
        """The entries of the stratum's relations that changed."""
        changed = self._drive.changed
        self._drive.collect(changed)
        if self._is_alone:
            self._drive.end()
        return {name: changed[name] for name in self.own if name in changed}

    def abandon(self) -> None:
        """Forgets what is under way; the marks of this stratum are taken off the relations below it."""
        self._drive.abandon()
        if self._is_alone:
            self._drive.end()
