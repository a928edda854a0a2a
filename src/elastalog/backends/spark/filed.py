"""Relations in files: a state, and what updates have changed since.

Files never change. An update adds files of changes; they belong to the relation once the driver has committed the
epoch, and are removed if it has not.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field

from elastalog.backends.protocol import StateChanges
from elastalog.backends.spark.routing import Routing
from elastalog.backends.spark.word_files import WordFile, read_changes, read_words, together
from elastalog.folders.files import remove
from elastalog.relations.facts import FactWords
from elastalog.settings import SETTINGS


@dataclass(frozen=True, slots=True)
class FiledRelation:
    """The facts of `base` files, after the changes in `changes` files, in their order."""

    base: tuple[WordFile, ...]
    changes: tuple[WordFile, ...] = ()

    @property
    def files(self) -> tuple[WordFile, ...]:
        return (*self.base, *self.changes)

    @property
    def size(self) -> int:
        """The number of facts."""
        return sum(file.grown for file in self.files)

    @property
    def has_explicit(self) -> bool:
        """Whether some fact may be explicit."""
        return any(file.explicit for file in self.files)

    @property
    def is_worn(self) -> bool:
        """Whether the changes are so many that writing the state anew pays."""
        changed, known = (sum(file.rows for file in files) for files in (self.changes, self.base))
        return changed > known // 4 + SETTINGS.spark_few_filed or len(self.changes) > _MOST_FILES

    @property
    def routing(self) -> Routing | None:
        """How all files are shared; None if they are not, or differently."""
        routings = {file.routing for file in self.files}
        return routings.pop() if len(routings) == 1 else None

    def followed_by(self, changes: Iterable[WordFile]) -> FiledRelation:
        return FiledRelation(self.base, (*self.changes, *changes))

    def with_share_anew(self, state: WordFile) -> FiledRelation:
        """One share is written anew: what was known of it is replaced."""

        def is_other(file: WordFile) -> bool:
            return file.routing != state.routing or file.share != state.share

        return FiledRelation(
            (*filter(is_other, self.base), state), tuple(file for file in self.changes if is_other(file))
        )

    def is_worn_in(self, routing: Routing, share: int) -> bool:
        """Whether writing one share anew pays. Never if a file holds facts of several."""
        if self.routing != routing:
            return False
        base, changes = (tuple(f for f in files if f.share == share) for files in (self.base, self.changes))
        return FiledRelation(base, changes).is_worn

    def read(self, width: int, routing: Routing | None = None, share: int = 0) -> tuple[FactWords, list[StateChanges]]:
        """State and changes; with a routing, those of one share."""
        return read_words(self.base, width, routing, share), read_changes(self.changes, width, routing, share)


_MOST_FILES = 32


@dataclass(frozen=True, slots=True)
class Pending:
    """What the update under way makes of a relation: its files `after` it, and the files of what `changes`. `number`:
    how many facts strata above must hear of."""

    after: FiledRelation
    changes: tuple[WordFile, ...]
    number: int

    def read(self, width: int) -> StateChanges:
        return together(read_changes(self.changes, width), width)


@dataclass(slots=True)
class RelationFiles:
    """The files of relations as of the last epoch (`current`), and as the update under way leaves them (`pending`)."""

    current: dict[str, FiledRelation] = field(default_factory=dict)
    pending: dict[str, Pending] = field(default_factory=dict)

    def latest(self, name: str) -> FiledRelation | None:
        """The files of the state under way, None if the relation has none."""
        pending = self.pending.get(name)
        return self.current.get(name) if pending is None else pending.after

    def set(self, name: str, filed: FiledRelation) -> None:
        """Outside an update: the relation is what these files hold."""
        self._swap({name: filed})

    def commit(self, stale: Iterable[str]) -> None:
        """What was pending is current. Files of `stale` relations, which changed elsewhere, are of no use any more."""
        self._swap({name: pending.after for name, pending in self.pending.items()})
        kept = _paths(self.current)
        for pending in self.pending.values():
            _remove(file for file in pending.changes if file.path not in kept)
        self.pending = {}
        for name in stale:
            self.forget(name)

    def rollback(self) -> None:
        """The files of the update under way are removed; those of the last epoch stay."""
        kept = _paths(self.current)
        for pending in self.pending.values():
            _remove(file for file in (*pending.after.files, *pending.changes) if file.path not in kept)
        self.pending = {}

    def rename(self, renamed: Mapping[str, str], names: Container[str]) -> None:
        """Outside an update: some relations have other names, and those that are not among `names` go."""
        self.current = {renamed.get(name, name): filed for name, filed in self.current.items()}
        for name in [name for name in self.current if name not in names]:
            self.forget(name)

    def forget(self, name: str) -> None:
        """The relation has no files any more."""
        old = self.current.pop(name, None)
        if old is not None:
            _remove(old.files)

    def _swap(self, new: Mapping[str, FiledRelation]) -> None:
        for name, filed in new.items():
            old = self.current.get(name)
            self.current[name] = filed
            if old is not None:
                kept = {file.path for file in filed.files}
                _remove(file for file in old.files if file.path not in kept)


def _paths(relations: Mapping[str, FiledRelation]) -> set[str]:
    return {file.path for filed in relations.values() for file in filed.files}


def _remove(files: Iterable[WordFile]) -> None:
    remove([file.path for file in files])
