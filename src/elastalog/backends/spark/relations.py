"""Where the relations of a backend on Spark are: in the memory of the driver, in files, or in both.

What tasks derive stays in files, shared by hash, from epoch to epoch; the kernel of the driver has evicted it then, and
fetches it when it is looked at. The files of an update are pending until the driver commits; until then, and after a
rollback, the relations are what they were in the epoch before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from elastalog.backends.annotation import Annotation
from elastalog.backends.kernel.store.snapshot import Fetched
from elastalog.backends.protocol import GONE, FactFiles, Matrix, StateChanges, Vector
from elastalog.backends.rows import are_in, distinct, merged
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.word_files import (
    FiledRelation,
    Pending,
    RelationFiles,
    WordFile,
    write_changes,
    write_shares,
)
from elastalog.folders.addresses import is_address
from elastalog.relations.facts import FactWords

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from elastalog.backends.kernel.backend import KernelBackend

T = TypeVar("T")
S = TypeVar("S")


class SparkRelations:
    """The relations of a backend: some are in the kernel, others evicted from it and in files."""

    def __init__(self, kernel: KernelBackend, annotation: Annotation, folder: str) -> None:
        self.files = RelationFiles()
        self.annotation = annotation
        self._kernel = kernel
        self.folder = folder

    def filed(self, name: str) -> FiledRelation | None:
        """The files of a relation that is in files only, None if it is here."""
        return self.files.latest(name) if name in self._kernel.evicted else None

    def home_of(self, name: str) -> str:
        """The relation that has the explicit facts of another, or itself."""
        return self._kernel.program.given.get(name, name)

    def _width(self, name: str) -> int:
        return self._kernel.program.relations[name].width

    # --- outside an update -----------------------------------------------------------------------------------------

    def size(self, name: str) -> int:
        """The number of facts; of relations in files without fetching them."""
        filed = self.filed(name)
        return self._kernel.size(name) if filed is None else filed.size

    # See `backends.protocol.States`.

    def of(self, name: str) -> FactWords:
        """All facts with level and count; those in files without fetching them."""
        if name not in self._kernel.evicted:
            return self._kernel.states.of(name)
        return merged(*self.files.current[name].read(self._width(name)))

    def changed(self) -> dict[str, StateChanges]:
        """What the update under way has changed, by relation."""
        in_files = self.changed_in_files()
        return self._kernel.states.changed() | {name: found for name, found in in_files.items() if len(found)}

    def restore(self, name: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to given facts, after changes in their order."""
        self.files.forget(name)
        self._kernel.states.restore(name, facts, changes)

    def is_explicit(self, name: str, words: Matrix) -> Vector:
        """Which of some facts are explicit, without fetching relations that are in files."""
        if name not in self._kernel.evicted:
            return self._kernel.is_explicit(name, words)
        filed = self.files.current[name]
        found: Vector = np.zeros(len(words), np.bool_)
        if not filed.has_explicit:
            return found
        # One share after the other, and of it what is asked for: the driver need not have room for all.
        routing = filed.base[0].routing
        shares = [0] if routing is None else np.unique(routing.shares_of(words)).tolist()
        for share in shares:
            facts, changes = filed.read(self._width(name), routing, share)
            held = merged(facts.taken(are_in(facts.words, distinct(words))), changes)
            assert held.level is not None
            found |= are_in(words, held.words[self.annotation.are_explicit(held.level)])
        return found

    def only_in(self, name: str, files: tuple[WordFile, ...]) -> None:
        """The relation is what files hold, and nowhere else."""
        self.files.set(name, FiledRelation(files))
        self._kernel.evict(name)

    # --- during an update ------------------------------------------------------------------------------------------

    def fetch(self, name: str) -> Fetched:
        """A relation for the kernel, with what the update under way has changed in it so far."""
        pending, width = self.files.pending.get(name), self._width(name)
        if pending is not None and not self.annotation.is_kept:
            return Fetched(*pending.after.read(width))
        return Fetched(*self.files.current[name].read(width), None if pending is None else pending.read(width))

    def before(self, name: str, routing: Routing | None = None) -> FiledRelation:
        """The files of a relation as it was before the update under way. If there are none they are written, shared by
        the routing."""
        filed = self.files.current.get(name)
        if filed is None:
            filed = write_shares(self.folder, name, self._kernel.states.before(name), routing, self.annotation)
            self.files.set(name, filed)
        return filed

    def pending(self, name: str) -> Pending | None:
        """The files of what the update under way has changed in a relation; None if it has changed nothing."""
        pending, done = self.files.pending.get(name), self._kernel.updates.transaction
        if pending is None and (name in done.changed or name in done.replaced):
            changes = self._kernel.states.changed_in(name)
            before = self.before(name)
            file = write_changes(self.folder, name, changes, self.annotation)
            heard = int(changes.are_heard(self.annotation.is_global).sum())
            pending = self.files.pending[name] = Pending(before.followed_by((file,)), (file,), heard)
        return pending

    def now(self, name: str) -> FiledRelation:
        """A relation in files in the state under way."""
        pending = self.pending(name)
        return self.before(name) if pending is None else pending.after

    def take(self, name: str, pending: Pending, *, is_read_here: bool) -> None:
        """Makes what tasks have done to a relation a part of the update under way. The relation stays in the driver's
        memory only if strata that read it are evaluated there."""
        self.files.pending[name] = pending
        if name not in self._kernel.evicted:
            if self.annotation.is_kept and is_read_here:
                self._kernel.receive(name, pending.read(self._width(name)))
            else:
                self._kernel.evict(name)

    def take_given(self, name: str, deleted: Matrix, inserted: Matrix) -> None:
        """Explicit facts of a relation that is in files only are deleted and inserted. Nothing else changes in it
        during the update, and its facts have levels."""
        is_in = np.arange(len(inserted) + len(deleted)) < len(inserted)
        here, gone = np.int32(0), np.int32(GONE)
        was, level = np.where(is_in, gone, here), np.where(is_in, here, gone)
        changes = StateChanges(np.concatenate((inserted, deleted)), was, level, is_in.astype(np.int32))
        file = write_changes(self.folder, name, changes, self.annotation)
        self.files.pending[name] = Pending(self.files.current[name].followed_by((file,)), (file,), len(changes))

    def changed_in_files(self) -> dict[str, StateChanges]:
        """What tasks have changed in relations that the driver does not hold in the state under way."""
        kernel = self._kernel
        return {
            name: pending.read(self._width(name))
            for name, pending in self.files.pending.items()
            if name in kernel.evicted
            or (not self.annotation.is_kept and name not in kernel.updates.transaction.replaced)
        }

    def commit(self) -> None:
        """Ends the update in memory and in files."""
        files, kernel = self.files, self._kernel
        touched = {relation.name for relation in kernel.held.homes.touched()}
        moved = touched.union(kernel.updates.transaction.replaced)
        worn = {n for n, p in files.pending.items() if n in moved and p.after.routing is None and p.after.is_worn}
        kernel.commit()
        # Of what the driver holds, files can be written again when they are needed.
        files.commit({*moved.difference(files.pending), *worn}.difference(kernel.evicted))

    def rollback(self) -> None:
        """Ends the update in memory and in files: everything is as it was."""
        files, kernel = self.files, self._kernel
        replaced = kernel.updates.transaction.replaced
        fetched = [] if self.annotation.is_kept else [n for n in files.pending if n not in replaced]
        kernel.rollback()
        files.rollback()
        for name in fetched:
            # In memory it may be as the update would have left it.
            if name in files.current:
                kernel.evict(name)


class FilesOfTasks:
    """See `backends.protocol.Elsewhere`."""

    def __init__(self, spark: SparkSession, relations: SparkRelations) -> None:
        self._spark = spark
        self._relations = relations

    @property
    def folder(self) -> str:
        return self._relations.folder

    def load(self, relation: str, files: FactFiles) -> None:
        """The explicit facts of a relation are in files, and nowhere else."""
        assert isinstance(files, FiledRelation)
        self._relations.only_in(self._relations.home_of(relation), files.base)

    def files(self, relation: str, with_levels: bool = False) -> FiledRelation | None:
        """The files of a relation that is in files only."""
        if with_levels and not self._relations.annotation.has_levels_only:
            return None
        return self._relations.filed(relation)

    def each(self, function: Callable[[S], T], items: Iterable[S]) -> list[T]:
        """What a function returns for every item. A task calls it for each; the driver does if executors may see
        nothing but an address."""
        given = list(items)
        if is_address(self._relations.folder):
            return [function(item) for item in given]
        tasks: Any = self._spark.sparkContext.parallelize(given, len(given))
        found: list[T] = tasks.map(function).collect()
        return found
