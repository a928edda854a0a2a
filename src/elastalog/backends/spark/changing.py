"""What the update under way has changed in relations of the driver and in files, and their states for a store."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.protocol import GONE, ChangedWords, Matrix, Reach, Small, StateChanges
from elastalog.backends.spark.relations import SparkRelations
from elastalog.planning.logical import LogicalStratum
from elastalog.relations.facts import FactWords


class SparkChanges:
    """See `backends.protocol.UpdateChanges`."""

    def __init__(self, kernel: KernelBackend, relations: SparkRelations) -> None:
        self._kernel = kernel
        self._relations = relations

    def explicit(self) -> tuple[dict[str, Matrix], dict[str, Matrix]]:
        """The explicit facts that the update deletes and inserts, normalised."""
        return self._kernel.changes.explicit()

    def facts(self, with_hidden: bool = False) -> ChangedWords:
        """The facts that the update has inserted and deleted so far; those of hidden relations only `with_hidden`."""
        found = dict(self._kernel.changes.facts(with_hidden))
        for name, changes in self._relations.changed_in_files().items():
            came, went = changes.was == GONE, changes.level == GONE
            is_visible = with_hidden or not self._kernel.program.relations[name].is_hidden
            if is_visible and (came.any() or went.any()):
                found[name] = changes.words[came], changes.words[went]
        return found

    def came(self, relation: str) -> Matrix:
        """The facts that the update has inserted into a relation."""
        changes = self._relations.changed_in_files().get(relation)
        return self._kernel.changes.came(relation) if changes is None else changes.words[changes.was == GONE]

    def size(self, relation: str) -> int:
        """About how many facts a relation has now."""
        return self._relations.size(relation)

    def reached(self, stratum: LogicalStratum) -> Reach | None:
        """How the update reaches a stratum, in the driver or through files."""
        kernel = self._kernel
        reach = kernel.changes.reached(stratum)
        heard = sum(self._relations.heard_from_tasks(name) for name in stratum.reads if not kernel.is_changed(name))
        if not heard:
            return reach
        if reach is None:
            return Reach(heard, kernel.must_rebuild(stratum))
        return replace(reach, changes=reach.changes + heard)

    def affected(self, small: Small | None = None) -> Iterator[tuple[LogicalStratum, Reach]]:
        """The strata that the update reaches, in their order, and how: the caller has them all maintained."""
        for stratum in self._kernel.program.strata:
            reach = self.reached(stratum)
            if reach is not None:
                yield stratum, reach


class SparkStates:
    """See `backends.protocol.States`."""

    def __init__(self, kernel: KernelBackend, relations: SparkRelations) -> None:
        self._kernel = kernel
        self._relations = relations

    def of(self, relation: str) -> FactWords:
        """All facts of a relation with level and count, outside an update."""
        return self._relations.state(relation)

    def changed(self) -> dict[str, StateChanges]:
        """What the update under way has changed, hidden relations and annotations included."""
        in_files = self._relations.changed_in_files()
        return self._kernel.states.changed() | {name: found for name, found in in_files.items() if len(found)}

    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to given facts, after changes in their order, instead of a bootstrap."""
        self._relations.files.forget(relation)
        self._kernel.states.restore(relation, facts, changes)
