"""How the kernel goes from one epoch to the next: strata maintained, refolded or evaluated anew, in a transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.bootstrap import rebuild
from elastalog.backends.kernel.evaluation import KernelEvaluation
from elastalog.backends.kernel.execution.classes import changed_classes
from elastalog.backends.kernel.maintenance import KernelMaintenance, KernelReach
from elastalog.backends.kernel.store import snapshot, transaction
from elastalog.backends.kernel.store.annotations import ABSENT, IS, MARKS, WAS
from elastalog.backends.kernel.store.memory import STAMPS, Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import GONE, ChangedWords, Reach, StateChanges
from elastalog.diagnostics.interrupts import uninterrupted
from elastalog.diagnostics.quota import lifted
from elastalog.planning.logical import GIVEN, LogicalProgram, LogicalStratum
from elastalog.relations.facts import FactWords
from elastalog.relations.pairs import Pairs, Rows

T = TypeVar("T")

_SAMPLE = 4_096
"""About how many facts of a relation are looked at for the levels of all."""


class KernelUpdates:
    """The update under way, in `transaction`; an empty one between updates. While there are `departures` rows keep
    their numbers."""

    def __init__(self, evaluation: KernelEvaluation) -> None:
        self.evaluation = evaluation
        self.held = evaluation.held
        self.reach = KernelReach(evaluation)
        self.maintenance = KernelMaintenance(evaluation, self.reach)
        self.transaction = self.reach.done
        self.departures = 0
        self._was_complete = True

    def follow(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self.reach.follow(program)
        self.maintenance.follow(program)

    def begin(
        self,
        deleted: Mapping[str, Matrix],
        inserted: Mapping[str, Matrix],
        anew: frozenset[str] = frozenset(),
        is_explicit: Callable[[str, Matrix], Vector] | None = None,
    ) -> None:
        """Starts an update: see `Backend.begin`. `is_explicit`: says which facts are explicit, if not all are here."""
        done, program = self.transaction, self.evaluation.program
        if program.given:
            deleted, inserted = _renamed(deleted, program.given), _renamed(inserted, program.given)
        self._was_complete = self.evaluation.is_complete
        done.is_under_way = done.is_asked = True
        done.deleted, done.inserted, done.is_explicit = deleted, inserted, is_explicit
        if anew:
            done.anew = anew
        if is_explicit is not None:
            self.maintenance.normalise()  # it may look for more than was asked for

    def size_now(self, relation: str) -> int:
        """How many facts a relation has now, pairs of an equivalence that are not written out left aside."""
        stored = self.held.relations[relation]
        if relation in self.transaction.replaced:
            return stored.present
        marks = stored.touched[: stored.touched_used, MARKS]
        return stored.present + int(np.count_nonzero(marks & IS)) - int(np.count_nonzero(marks & WAS))

    def levels_of_some(self, relation: str) -> tuple[int, int]:
        """See `UpdateChanges.levels`. Rows lie in the order of rounds, so a sample at even steps has all levels."""
        stored, annotation = self.held.relations[relation], self.held.annotation
        if not annotation.has_levels or annotation.is_global:
            return 0, 0
        share = 1 + stored.used // _SAMPLE
        levels = stored.level[: stored.used : share]
        levels = levels[levels < ABSENT]
        return share * int(np.count_nonzero(levels == 0)), share * int(levels.sum())

    def receive(self, relation: KernelRelation, changes: StateChanges) -> None:
        """Makes changes of a relation that were found elsewhere a part of the update under way."""
        self.transaction.is_told = False
        changed = transaction.receive(relation, changes, self.held.annotation.is_global)
        if len(changed):
            self.transaction.changed[relation.name] = changed

    def refold(self, stratum: LogicalStratum) -> None:
        """Maintains an aggregate, or the classes of an equivalence: see `Backend.refold`."""
        name, changed = self.evaluation.kinds[stratum.number].refold(self.transaction.changed)
        if len(changed):
            self.transaction.changed[name] = changed

    def rebuild(self, stratum: LogicalStratum) -> int:
        """Evaluates a stratum anew from its new explicit facts. Returns the derivations enumerated. Where what was
        found is written to the old relations, facts that are not as they were count as touched, as in an update."""
        done, held = self.transaction, self.held
        variants = self.evaluation.variants.get(stratum.number)
        if variants is None or not variants.suit(stratum):
            variants = None
            self.evaluation.kinds[stratum.number].forget()
        for name in stratum.relations:
            old = done.replaced[name] = held.relations[name]
            if name in held.vectors:
                done.vectors[name] = held.vectors[name]
            indexed = variants.indexes_of(name) if variants is not None else ()
            # Facts of an aggregate are never explicit, though that of an empty group may have level 0.
            explicit = self.explicit_facts(name) if stratum.aggregate is None else old.rows[:0]
            if stratum.numbering is not None:
                explicit = old.rows[old.present_rows()]  # derivations that stay keep their numbers
            held.relations[name] = rebuild.successor(old, explicit, indexed)
        derivations = self.evaluation.evaluate(stratum, variants)
        for name in stratum.relations:
            new, old = held.relations[name], done.replaced[name]
            # Not where an update has begun to change the old one.
            if held.annotation.has_levels_only and not old.touched_used and new.used <= old.present:
                STAMPS.take()  # before: Ctrl-C may come when it is called
                held.relations[name] = old
                del done.replaced[name]
                changed = rebuild.shrink(old, new, held.annotation.is_global)
            elif held.annotation.is_kept:
                changed = rebuild.adopt(new, old, held.annotation.is_global)
                rebuild.index_alike(new, old)
                new.extend_indexes()
            else:
                changed = rebuild.differences(new, old)
            if len(changed):
                done.changed[name] = changed
        if done.replaced.keys().isdisjoint(stratum.relations):
            self.evaluation.watch.touched += sum(held.relations[name].touched_used for name in stratum.relations)
        return derivations

    def explicit_facts(self, relation: str) -> Matrix:
        """The explicit facts of a relation after the update under way, which has not reached it yet."""
        old = self.held.relations[relation]
        if relation in self.evaluation.program.given:
            return old.rows[:0]  # they are elsewhere
        deleted, inserted = self.transaction.deleted.get(relation), self.transaction.inserted.get(relation)
        return rebuild.explicit_facts(old, self.held.explicit_rows(old), deleted, inserted)

    def forget(self, stratum: LogicalStratum) -> None:
        """A stratum was evaluated elsewhere: what was made for its last evaluation here is of no use."""
        self.evaluation.variants.pop(stratum.number, None)
        self.evaluation.kinds[stratum.number].forget()

    # --- the end ---------------------------------------------------------------------------------------------------

    def commit(self) -> None:
        """Ends the update: its state becomes that of the new epoch. Where all of that is the work of one operator, it
        has happened if no entry is touched any more, whatever interrupts this; otherwise Ctrl-C is held back."""
        held, done, ranks = self.held, self.transaction, self.evaluation.known_ranks
        sparse: Sequence[KernelRelation] = ()
        if done.replaced or ranks or held.vectors or not held.annotation.is_kept:
            with uninterrupted():
                for ranked in ranks.values():
                    ranked.commit()
                for vectors in held.vectors.values():
                    vectors.commit()
                if held.annotation.is_kept:
                    sparse = held.homes.commit(done.replaced, done.shift)
                else:
                    held.explicit.update(zip(done.replaced, map(self.explicit_after, done.replaced), strict=True))
                done.end()
        else:
            homes = held.homes
            try:
                sparse = homes.commit((), done.shift)
                done.end()
            except BaseException:
                with uninterrupted():
                    if done.is_under_way and not homes.touched():
                        done.end()
                raise
        if sparse:
            with uninterrupted():
                for relation in sparse:
                    self._compact(relation)

    def explicit_after(self, name: str) -> int:
        """The number of explicit facts of a relation after the update under way."""
        if name in self.evaluation.program.given:
            return 0
        done = self.transaction
        before = self.held.explicit.get(name, 0)
        return before - len(done.deleted.get(name, ())) + len(done.inserted.get(name, ()))

    def rollback(self) -> None:
        """Ends the update: everything is as it was."""
        held, done = self.held, self.transaction
        if done.is_under_way:
            self.evaluation.is_complete = self._was_complete
        self.maintenance.abandon()
        for ranked in self.evaluation.known_ranks.values():
            ranked.rollback()
        held.vectors.update(done.vectors)
        for vectors in held.vectors.values():
            vectors.rollback()
        for name, old in done.replaced.items():
            STAMPS.take()  # before it is another one again, as above
            held.relations[name] = old
        for relation in held.relations.values():
            if relation.touched_used or not relation.is_settled:
                transaction.rollback(relation)
                if relation.is_sparse:
                    self._compact(relation)
        done.end()

    def _compact(self, relation: KernelRelation) -> None:
        # Other supports keep row numbers from epoch to epoch.
        if self.held.annotation.has_levels_only and not self.departures:
            with lifted(), contextlib.suppress(MemoryError):  # it is worth doing, not worth losing an epoch for
                relation.compact()


def _renamed(side: Mapping[str, Matrix], names: Mapping[str, str]) -> dict[str, Matrix]:
    return {names.get(name, name): side[name] for name in side}


class KernelChanges:
    """See `backends.protocol.UpdateChanges`."""

    def __init__(self, updates: KernelUpdates) -> None:
        self._updates = updates
        self._done = updates.transaction
        self.size, self.affected = updates.size_now, updates.maintenance.affected
        self.levels, self.must_rebuild = updates.levels_of_some, updates.reach.must_rebuild

    def explicit(self) -> tuple[Mapping[str, Matrix], Mapping[str, Matrix]]:
        """The explicit facts that the update deletes and inserts, normalised."""
        done = self._done
        if done.is_asked:
            self._updates.maintenance.normalise()
        if not self._updates.evaluation.program.given:
            return done.deleted, done.inserted
        deleted, inserted = (
            {name.removeprefix(GIVEN): side[name] for name in side} for side in (done.deleted, done.inserted)
        )
        return deleted, inserted

    def reached(self, stratum: LogicalStratum) -> Reach | None:
        """How the update reaches a stratum."""
        self._updates.maintenance.normalise()
        return self._updates.reach.reached(stratum)

    def facts(self, with_hidden: bool = False) -> ChangedWords:
        """The facts that the update has inserted and deleted so far; those of hidden relations only `with_hidden`."""
        done, held = self._done, self._updates.held
        equivalences = held.equivalences
        if done.is_told and not equivalences and (listed := held.homes.changes(with_hidden)) is not None:
            return listed
        stored = self._updates.evaluation.program.relations
        found: dict[str, tuple[Rows, Rows]] = {}
        for name in done.changed:
            if (with_hidden or not stored[name].is_hidden) and name not in equivalences:
                came, went = self._stored(name)
                if len(came) or len(went):
                    found[name] = came, went
        for name in equivalences:
            classes = stored[name].classes
            if classes is not None and classes in done.changed:
                came, went = self._stored(classes)
                now = changed_classes(held.relations[classes], came, went)
                gained, lost = Pairs.changed(now, came, went)
                if len(gained) or len(lost):  # otherwise classes have other representatives, and nothing else
                    found[name] = gained, lost
        return found

    def came(self, relation: str) -> Matrix:
        """The facts that the update has inserted into a relation that is stored as it is."""
        if relation not in self._updates.transaction.changed:
            return self._updates.held.relations[relation].rows[:0]
        return self._stored(relation)[0]

    def _stored(self, name: str) -> tuple[Matrix, Matrix]:
        """What came and went of what is stored of a relation that has changed."""
        done, held = self._updates.transaction, self._updates.held
        if held.annotation.is_kept:
            return transaction.changed_words(held.relations[name], done.changed[name])
        return rebuild.changed_facts(held.relations[name], done.replaced[name])


class KernelStates:
    """See `backends.protocol.States`."""

    def __init__(self, updates: KernelUpdates) -> None:
        self._updates = updates
        self._held = updates.held

    def of(self, relation: str) -> FactWords:
        """All facts of a relation with level and count, outside an update."""
        return self._counted(snapshot.state(self._held.relations[relation], self._held.explicit.get(relation, 0)))

    def before(self, relation: str) -> FactWords:
        """All facts of a relation with level and count, before the update under way."""
        replaced = self._updates.transaction.replaced.get(relation)
        held = self._held.relations[relation] if replaced is None else replaced
        return self._counted(snapshot.state_before(held, self._held.explicit.get(relation, 0)))

    def _counted(self, facts: FactWords) -> FactWords:
        """The facts, with 1 for counts that are not kept."""
        if self._held.annotation.support is not Support.EXPLICIT:
            return facts
        return FactWords(facts.words, facts.level, np.ones(len(facts.words), np.int32))

    def changed(self) -> dict[str, StateChanges]:
        """What the update under way has changed, hidden relations and annotations included."""
        replaced = self._updates.transaction.replaced
        found = {
            name: self.changed_in(name)
            for name in dict.fromkeys((*(relation.name for relation in self._held.homes.touched()), *replaced))
        }
        return {name: changes for name, changes in found.items() if len(changes)}

    def changed_in(self, relation: str) -> StateChanges:
        """What the update under way has changed in one relation."""
        changes = self._changed_in(relation)
        if self._held.annotation.support is not Support.EXPLICIT:
            return changes
        # As in `_counted`.
        is_other = changes.was != changes.level
        level = changes.level[is_other]
        return StateChanges(changes.words[is_other], changes.was[is_other], level, (level != GONE).astype(np.int32))

    def _changed_in(self, relation: str) -> StateChanges:
        held = self._held
        new, old = held.relations[relation], self._updates.transaction.replaced.get(relation)
        if relation in held.set_aside:
            # What a store has of it are the pairs that generate it.
            old, _ = held.set_aside[relation]
        if old is None:
            return snapshot.maintained_changes(new)
        if held.annotation.is_kept:
            return snapshot.replaced_changes(new, old)
        before = snapshot.state(old, held.explicit.get(relation, 0))
        return snapshot.all_changes(snapshot.state(new, self._updates.explicit_after(relation)), old, before)

    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to given facts, after changes in their order, instead of a bootstrap."""
        self._updates.evaluation.restore(relation, facts, changes)
