"""What the update under way has changed in the kernel's relations, and their states for a store."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from elastalog.backends.annotation import Support
from elastalog.backends.kernel.bootstrap import rebuild
from elastalog.backends.kernel.execution.classes import changed_classes
from elastalog.backends.kernel.store import snapshot, transaction
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.updates import KernelUpdates
from elastalog.backends.protocol import GONE, ChangedWords, StateChanges
from elastalog.planning.logical import GIVEN
from elastalog.relations.facts import FactWords
from elastalog.relations.pairs import Pairs, Rows


class KernelChanges:
    """See `backends.protocol.UpdateChanges`."""

    def __init__(self, updates: KernelUpdates) -> None:
        self._updates = updates
        self.size, self.reached, self.affected = updates.size_now, updates.reach.reached, updates.maintenance.affected

    def explicit(self) -> tuple[dict[str, Matrix], dict[str, Matrix]]:
        """The explicit facts that the update deletes and inserts, normalised."""
        done = self._updates.transaction
        if not self._updates.evaluation.program.given:
            return done.deleted, done.inserted
        deleted, inserted = (
            {name.removeprefix(GIVEN): side[name] for name in side} for side in (done.deleted, done.inserted)
        )
        return deleted, inserted

    def facts(self, with_hidden: bool = False) -> ChangedWords:
        """The facts that the update has inserted and deleted so far; those of hidden relations only `with_hidden`."""
        done, held = self._updates.transaction, self._updates.held
        equivalences = held.equivalences
        if done.is_told and not equivalences:
            return held.homes.changes(with_hidden)
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
                found[name] = Pairs.changed(now, came, went)
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
        """The same before the update under way."""
        replaced = self._updates.transaction.replaced.get(relation)
        held = self._held.relations[relation] if replaced is None else replaced
        return self._counted(snapshot.state_before(held, self._held.explicit.get(relation, 0)))

    def _counted(self, facts: FactWords) -> FactWords:
        """The facts, with 1 for counts that nobody keeps."""
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
        """The same of one relation."""
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
        explicit = held.explicit.get(relation, 0)
        return snapshot.recomputed_changes(new, self._updates.explicit_after(relation), old, explicit)

    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to given facts, after changes in their order, instead of a bootstrap."""
        self._updates.evaluation.restore(relation, facts, changes)
