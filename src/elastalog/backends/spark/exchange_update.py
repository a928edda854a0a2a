"""The delta-driven Update of a stratum that does not decompose, by tasks that exchange what they find (algorithm 4.4).

Every task holds its share of the copies that the plan names, in the state before the update. Of every fact one task is
the *owner*: it keeps the count, decides when the fact is lost and when and at which level it settles, and tells all
copies, which do the same to theirs. Derivations are found where the pivot of their clause lies, and are sent to the
owners of their heads. The phases and their order are those of `backends.kernel.levels`; a step of a phase takes two
rounds of messages: derivations to owners, decisions to copies. So levels and counts are those of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from elastalog.backends.kernel.execution.bound_variant import Binder, BoundVariant
from elastalog.backends.kernel.execution.level_views import GAINS, LOSSES, Phase
from elastalog.backends.kernel.levels.plan import MaintenancePlan
from elastalog.backends.kernel.machine.enumeration import Enumerator, Setting, Sink
from elastalog.backends.kernel.machine.run import Workspace
from elastalog.backends.kernel.store import bookkeeping, snapshot, transaction
from elastalog.backends.kernel.store.annotations import (
    ABSENT,
    COUNT,
    DELTA,
    FIXED,
    IS,
    LOST,
    MARKS,
    NEW,
    OTHER,
    PENDING,
    ROW,
)
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.spark.exchange import ExchangingTask, head_name, together
from elastalog.backends.spark.messages import Message, Messages, Outgoing
from elastalog.backends.spark.results import FileWritten, Result
from elastalog.backends.spark.task import StratumSpec, maintained, note_values, written_changes
from elastalog.backends.spark.word_files import read_words

if TYPE_CHECKING:
    from elastalog.backends.protocol import Maintenance

Lists = dict[str, Vector]
"""Touched entries, by copy."""


def update_together(spec: StratumSpec, share: int) -> Result:
    """The part of one task in the update of a stratum."""

    def work(messages: Messages) -> Result:
        task = ExchangingUpdate(spec, share, messages)
        note = task.note_values if spec.agrees else partial(note_values, spec, task.dictionary)
        procedure = cast("Callable[[Maintenance], Any]", spec.procedure)  # strata that exchange have levels
        return maintained(spec, share, task.watch, note, lambda: procedure(task), task.written, messages.give_up)

    return together(spec, share, work)


class Found:
    """Derivations for the owners of their heads: rows of head, level now, level before; each once, with a number."""

    def __init__(self, width: int) -> None:
        self.width = width
        self._rows = KernelRelation("", width + 2, is_annotated=True)

    def add(self, heads: Matrix, fires: Vector, before: Vector) -> None:
        block = np.ascontiguousarray(np.column_stack((heads, fires, before)), np.int32)
        self._rows.insert(block, 0, len(block), 0)

    @property
    def rows(self) -> Matrix:
        used = self._rows.used
        return np.column_stack((self._rows.rows[:used], self._rows.count[:used]))


class ExchangingUpdate(ExchangingTask):
    """See `backends.protocol.Maintenance`: the part of one task."""

    def __init__(self, spec: StratumSpec, share: int, messages: Messages) -> None:
        super().__init__(spec, share, messages)
        for copy in spec.plan.copies:
            facts = spec.facts(copy, share)
            self.relations[copy.name], _ = snapshot.restored(copy.name, spec.width(copy), True, *facts)
        for name in self.own:
            self.make_heads(name)
        self.below = self._received()
        self.deleted, self.inserted = self._explicit_changes()
        flat = frozenset(copy.name for copy in spec.plan.copies if copy.relation not in self.own)
        binder = Binder(self.relations, self.dictionary, self.program.checked.source)
        self.plan = MaintenancePlan(self.program.strata[0], flat, binder, is_global=False)
        self.setting = Setting(self.relations, flat, Workspace(), self.watch)
        self.enumerators: dict[BoundVariant, Enumerator] = {}
        self.lost: dict[str, list[Matrix]] = {name: [] for name in self.own}
        self.waiting: dict[int, list[tuple[str, Vector]]] = {}
        self.watch.allow(spec.budget)

    def _received(self) -> Lists:
        """The changes of lower relations, in the copies of this task."""
        found = {}
        for copy in self.spec.plan.copies:
            if copy.relation in self.spec.below:
                changes = self.spec.changes_below(copy, self.share)
                entries = transaction.receive(self.relations[copy.name], changes, False)
                if len(entries):
                    found[copy.name] = entries
        return found

    def _explicit_changes(self) -> tuple[Lists, Lists]:
        """The explicit facts that go and come, in the copies of this task."""
        deleted, inserted = {}, {}
        for copy in self.own_copies:
            relation = self.relations[copy.name]
            gone, come = self.spec.explicit_changes(copy, self.share)
            if len(gone):
                deleted[copy.name] = transaction.touch(relation, relation.find(gone))
            if len(come):
                inserted[copy.name] = transaction.touch(relation, transaction.add_rows(relation, come))
                bookkeeping.mark(inserted[copy.name], relation.touched, FIXED, 0)
        return deleted, inserted

    # --- phases ----------------------------------------------------------------------------------------------------

    def update(self) -> None:
        """Brings the stratum to its new fixpoint, together with the other tasks."""
        self.lose()
        self.recover()
        self.gain()

    def lose(self) -> None:
        """Takes away the old derivations through deleted facts and through what changed below, until nothing more is
        lost."""
        delta = {**self.below, **self.deleted}
        self._mark(delta, DELTA, 0)
        is_first = True
        while True:
            emptied = self._taken(self._given_to_owners(delta, LOSSES))
            for name, entries in delta.items():
                if name in self.below:
                    self._mark({name: entries}, LOST, DELTA)
                else:
                    bookkeeping.lose(entries, self.relations[name].touched)
            if not is_first:
                self._remember_lost(delta)
            told = self._told_to_copies(emptied)
            if told is None:
                return
            delta = told
            self._mark(delta, DELTA, 0)
            is_first = False

    def recover(self) -> None:
        """Looks backwards for other derivations of the lost facts, among the facts that were there before the delta of
        gains. All tasks look for all lost facts, each among the derivations that it can find."""
        self._mark(self.below, DELTA, LOST)
        for name, entries in self.inserted.items():
            bookkeeping.make_explicit(entries, self.relations[name].touched)
        found = {name: Found(width) for name, width in self.widths.items()}
        for name, width in self.widths.items():
            if name in self.spec.deleted:
                gone = read_words((self.spec.deleted[name],), width).words
                self._look_for(name, gone, self.plan.backward, found)
        lost = {name: np.concatenate(parts) for name, parts in self.lost.items() if parts}
        for message in self.exchange({name: self.given(name, words, None) for name, words in lost.items()}):
            self._look_for(message.address, message.rows, self.plan.recovering, found)
        self._offered(self._sent(found))

    def gain(self) -> None:
        """Offers the derivations through new facts to their heads, which settle level by level."""
        delta: Lists | None = {**self.below, **self.inserted}
        while delta is not None:
            self._offered(self._given_to_owners(delta, GAINS))
            self._mark(delta, 0, DELTA)
            delta = self._settled()

    def written(self) -> Iterator[FileWritten]:
        """Writes what has changed in the facts that this task owns."""
        for name in self.own:
            relation = self.relations[self.owner_copies[name]]
            transaction.changed_entries(relation, is_level_change=False)
            changes = snapshot.maintained_changes(relation)
            changes = changes.taken(self.are_mine(name, changes.words))
            yield from written_changes(
                self.spec, self.share, name, replace(changes, words=self.outward(name, changes.words))
            )

    # --- owners ----------------------------------------------------------------------------------------------------

    def _taken(self, arrived: Mapping[str, Matrix]) -> dict[str, Matrix]:
        """Takes old derivations off the counts of their heads. Returns the facts whose count reached 0."""
        emptied = {}
        for name, block in arrived.items():
            relation, width = self.relations[self.owner_copies[name]], self.widths[name]
            rows = relation.find(block[:, :width])
            # A derivation was counted if it fired at the level of its head.
            is_counted = rows >= 0
            is_counted[is_counted] = snapshot.levels_before(relation, rows[is_counted]) == block[is_counted, width]
            rows, inverse = np.unique(rows[is_counted], return_inverse=True)
            times = np.bincount(inverse, block[is_counted, -1], len(rows)).astype(np.int32)
            entries = transaction.touch(relation, rows)
            is_open = relation.touched[entries, MARKS] & (LOST | DELTA | FIXED) == 0
            entries, times = entries[is_open], times[is_open]
            relation.touched[entries, COUNT] -= times
            gone = entries[relation.touched[entries, COUNT] == 0]
            if len(gone):
                emptied[name] = relation.rows[relation.touched[gone, ROW]]
        return emptied

    def _offered(self, arrived: Mapping[str, Matrix]) -> None:
        """Offers derivations to their heads. A head waits for the lowest level at which one fires, if it is lower than
        where the head is, and counts those that fire there."""
        for name, block in arrived.items():
            relation, width = self.relations[self.owner_copies[name]], self.widths[name]
            rows = transaction.add_rows(relation, np.ascontiguousarray(block[:, :width]))
            fires, before, times = block[:, width], block[:, width + 1], block[:, width + 2]
            distinct, inverse = np.unique(rows, return_inverse=True)
            lowest = np.full(len(distinct), ABSENT, np.int32)
            np.minimum.at(lowest, inverse, fires)
            is_new = (fires == lowest[inverse]) & (fires != before)
            number = np.bincount(inverse[is_new], times[is_new], len(distinct)).astype(np.int32)
            entries = transaction.touch(relation, distinct)
            touched = relation.touched
            marks = touched[entries, MARKS]
            present = np.where(marks & IS, touched[entries, NEW], ABSENT)
            present = np.where(marks & PENDING, touched[entries, OTHER], present)
            is_lower = lowest < present
            lowered, same = entries[is_lower], entries[lowest == present]
            touched[lowered, MARKS] |= PENDING
            touched[lowered, OTHER] = lowest[is_lower]
            touched[lowered, COUNT] = np.maximum(number[is_lower], 1)
            touched[same, COUNT] += number[lowest == present]
            for level in np.unique(lowest[is_lower]).tolist():
                self.waiting.setdefault(level, []).append((name, lowered[lowest[is_lower] == level]))

    def _settled(self) -> Lists | None:
        """Facts that wait for the lowest level of all tasks get it, in all copies. None if no fact waits."""
        candidates: dict[str, list[Vector]] = {}
        level: int | None = None
        while self.waiting and not candidates:
            level = min(self.waiting)
            for name, entries in self.waiting.pop(level):
                touched = self.relations[self.owner_copies[name]].touched
                is_waiting = (touched[entries, MARKS] & PENDING != 0) & (touched[entries, OTHER] == level)
                if is_waiting.any():
                    candidates.setdefault(name, []).append(entries[is_waiting])
        mine = {name: np.unique(np.concatenate(parts)) for name, parts in candidates.items()}
        words = {}
        for name, entries in mine.items():
            relation = self.relations[self.owner_copies[name]]
            words[name] = relation.rows[relation.touched[entries, ROW]]
        messages = self.exchange(self._for_copies(words), level if mine else None)
        levels = [note for note in self.messages.notes if note is not None]
        if not levels:
            return None
        lowest = min(levels)
        if mine and level is not None and level > lowest:
            self.waiting.setdefault(level, []).extend(mine.items())
        elif mine:
            for name, entries in mine.items():
                bookkeeping.settle(
                    entries, self.relations[self.owner_copies[name]].touched, lowest, np.empty_like(entries)
                )
        return self._in_copies([message for message in messages if message.note == lowest], lowest)

    # --- rounds ----------------------------------------------------------------------------------------------------

    def _given_to_owners(self, delta: Lists, phase: Phase) -> dict[str, Matrix]:
        """Enumerates the derivations through a delta and gives them to the owners of their heads. Returns those for
        this task."""
        found = {name: Found(width) for name, width in self.widths.items()}
        names = {head_name(name): name for name in self.own}
        for copy, entries in delta.items():
            for variant in self.plan.forward.get(copy, ()):
                self._enumerate(variant, entries, phase, self._sink(phase, found[names[variant.clause.head]]))
        if not phase.is_loss:  # all that is lost was there
            self.agree()
        return self._sent(found)

    def _enumerate(self, variant: BoundVariant, entries: Vector, phase: Phase, sink: Sink) -> None:
        if variant not in self.enumerators:
            self.enumerators[variant] = Enumerator(variant)
        self.enumerators[variant].of_entries(self.setting, entries, phase, sink)

    def _sink(self, phase: Phase, found: Found) -> Sink:
        def sink(block: Matrix, used: int) -> None:
            now, before = block[:used, -2], block[:used, -1]
            if phase.is_loss:
                found.add(block[:used, : found.width], before + 1, before)
            else:
                found.add(block[:used, : found.width], now + 1, np.minimum(before, ABSENT - 1) + 1)
            self.watch.derived(used)

        return sink

    def _look_for(
        self, name: str, words: Matrix, versions: Mapping[str, list[BoundVariant]], found: dict[str, Found]
    ) -> None:
        """Looks for derivations of facts, as they stood before the delta of gains."""
        head = self.relations[head_name(name)]
        entries = transaction.touch(head, transaction.add_rows(head, words))

        def sink(block: Matrix, used: int) -> None:
            before = block[:used, -1]
            was_there = before < ABSENT
            rows = head.touched[block[:used, 0][was_there], ROW]
            fires = before[was_there] + 1
            found[name].add(head.rows[rows], fires, np.full(len(fires), ABSENT, np.int32))
            self.watch.derived(used)

        for variant in versions.get(head.name, ()):
            self._enumerate(variant, entries, GAINS, sink)
        self.make_heads(name)

    def _sent(self, found: dict[str, Found]) -> dict[str, Matrix]:
        outgoing = {name: self.given(name, f.rows, self.spec.owners(name)) for name, f in found.items()}
        arrived: dict[str, list[Matrix]] = {}
        for message in self.exchange(outgoing):
            if len(message.rows):
                arrived.setdefault(message.address, []).append(message.rows)
        return {name: np.concatenate(parts) for name, parts in arrived.items()}

    def _for_copies(self, words: Mapping[str, Matrix]) -> dict[str, Outgoing]:
        return {
            copy.name: self.given(copy.relation, words[copy.relation], self.spec.routings[copy.name])
            for copy in self.own_copies
            if copy.relation in words
        }

    def _told_to_copies(self, words: Mapping[str, Matrix]) -> Lists | None:
        """Tells all copies of facts that were lost. Returns the entries of this task's copies; None if no task had any
        to tell of."""
        messages = self.exchange(self._for_copies(words))
        return self._in_copies(messages, None) if messages else None

    def _in_copies(self, messages: Iterable[Message], level: int | None) -> Lists:
        """The entries of the facts that owners name, in the copies of this task; they settle if a level is given."""
        arrived: dict[str, list[Matrix]] = {}
        for message in messages:
            arrived.setdefault(message.address, []).append(message.rows)
        delta = {}
        for name, parts in arrived.items():
            relation = self.relations[name]
            words = np.ascontiguousarray(np.concatenate(parts), np.int32)
            entries = transaction.touch(relation, transaction.add_rows(relation, words))
            if not len(entries):
                continue
            delta[name] = entries
            if level is not None:
                # The owner's own copy has it already.
                touched = relation.touched
                new = entries[touched[entries, MARKS] & DELTA == 0]
                touched[new, OTHER] = np.where(touched[new, MARKS] & IS, touched[new, NEW], ABSENT)
                touched[new, NEW] = level
                touched[new, MARKS] |= IS | DELTA
        return delta

    def _remember_lost(self, delta: Lists) -> None:
        for name in self.own:
            entries = delta.get(self.owner_copies[name])
            if entries is not None:
                relation = self.relations[self.owner_copies[name]]
                words = relation.rows[relation.touched[entries, ROW]]
                mine = words[self.are_mine(name, words)]
                if len(mine):
                    self.lost[name].append(mine)

    def _mark(self, lists: Lists, added: int, removed: int) -> None:
        for name, entries in lists.items():
            bookkeeping.mark(entries, self.relations[name].touched, added, removed)
