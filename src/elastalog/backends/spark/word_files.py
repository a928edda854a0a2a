"""Facts as files of words: what driver and tasks hand to each other. Parquet, as those of a store: a column of
int32 for every column, level, count; files of changes have the level before as well.

A file is written under a name of its own and never changed, so that a repeated task leaves at worst a file that is
never read. A relation in files is a state, and what updates have changed since: an update adds files of changes, which
belong to the relation once the driver has committed the epoch, and are removed if it has not.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import GONE, Matrix, StateChanges
from elastalog.backends.spark.routing import EVERYWHERE, Routing
from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, remove
from elastalog.relations.facts import COUNT, LEVEL, FactWords
from elastalog.settings import SETTINGS

WAS = "@was"
_ANNOTATIONS = (WAS, LEVEL, COUNT)

LEVELS = Annotation()
"""The annotation of facts that have a level and a count, or nothing: those without are explicit."""


@dataclass(frozen=True, slots=True)
class WordFile:
    """A file with facts of one relation. `path`: its location. `routing`, `share`: whose facts it holds; routing None:
    any. `grown`: how many facts more there are with it. `explicit`: how many of its facts may be explicit."""

    path: str
    rows: int
    routing: Routing | None = None
    share: int = 0
    grown: int = 0
    explicit: int = 0


def write_words(folder: str, name: str, facts: FactWords, annotation: Annotation = LEVELS) -> WordFile:
    """Writes facts into a new file. It appears whole or not at all."""
    columns = _columns(facts.words)
    explicit = rows = len(facts.words)
    if facts.level is not None and facts.count is not None:
        columns |= {LEVEL: facts.level, COUNT: facts.count}
        explicit = int(annotation.are_explicit(facts.level).sum())
    return WordFile(_write(folder, name, columns), rows, grown=rows, explicit=explicit)


def write_shares(
    folder: str, name: str, facts: FactWords, routing: Routing | None, annotation: Annotation
) -> FiledRelation:
    """Writes facts, a file for every share; one for all without a routing."""
    if routing is None:
        return FiledRelation((write_words(folder, name, facts, annotation),))
    shares = routing.shares_of(facts.words)
    files = [write_words(folder, name, facts.taken(shares == share), annotation) for share in range(routing.shares)]
    return FiledRelation(tuple(replace(file, routing=routing, share=share) for share, file in enumerate(files)))


def write_changes(folder: str, name: str, changes: StateChanges, annotation: Annotation = LEVELS) -> WordFile:
    """Writes what an update has changed into a new file. It appears whole or not at all."""
    columns = _columns(changes.words) | {WAS: changes.was, LEVEL: changes.level, COUNT: changes.count}
    grown = int((changes.was == GONE).sum()) - int((changes.level == GONE).sum())
    path = _write(folder, name, columns)
    return WordFile(path, len(changes), grown=grown, explicit=int(annotation.are_explicit(changes.level).sum()))


def read_words(files: Sequence[WordFile], width: int, routing: Routing | None = None, share: int = 0) -> FactWords:
    """The facts of files; with a routing, only those in a share."""
    parts = [FactWords(p["words"], p.get(LEVEL), p.get(COUNT)) for p in _parts(files, width, routing, share)]
    return parts[0] if len(parts) == 1 else FactWords.joined([FactWords.nothing(width), *parts])


def read_changes(
    files: Sequence[WordFile], width: int, routing: Routing | None = None, share: int = 0
) -> list[StateChanges]:
    """The changes in files, in their order; with a routing, only those in a share."""
    return [StateChanges(p["words"], p[WAS], p[LEVEL], p[COUNT]) for p in _parts(files, width, routing, share)]


def write_anew(path: str, folder: str, name: str, change: Callable[[Matrix], Matrix]) -> str:
    """Writes a copy of a file under another name, with its words changed by a function."""
    table = _table(path)
    annotations = [column for column in table.column_names if column in _ANNOTATIONS]
    width = table.num_columns - len(annotations)
    words = change(_words(table, width))
    return _write(folder, name, _columns(words) | {column: table.column(column).to_numpy() for column in annotations})


def _columns(words: np.ndarray) -> dict[str, np.ndarray]:
    return {str(i): np.ascontiguousarray(words[:, i]) for i in range(words.shape[1])}


def _write(folder: str, name: str, columns: dict[str, np.ndarray]) -> str:
    from pyarrow import parquet

    plain = "".join(c if c.isalnum() else "_" for c in name)
    path = inside(folder, f"{plain}-{uuid.uuid4().hex}.parquet")
    with files_at(path).writing(path) as sink:
        parquet.write_table(pa.table(columns), sink, compression="lz4", use_dictionary=False, write_statistics=False)
    return path


def _table(path: str) -> pa.Table:
    with files_at(path).parquet(path) as opened:
        # A task has one core, and waking threads takes longer than reading plain columns.
        return opened.read(use_threads=False)


def _words(table: pa.Table, width: int) -> Matrix:
    words = np.empty((table.num_rows, width), np.int32)
    for i in range(width):
        words[:, i] = table.column(str(i)).to_numpy()
    return words


def _parts(
    files: Sequence[WordFile], width: int, routing: Routing | None, share: int
) -> Iterator[dict[str, np.ndarray]]:
    """The words and annotations that each file has for a share."""
    for file in files:
        is_routed_so = routing is not None and file.routing == routing
        if not file.rows or (is_routed_so and file.share != share):
            continue
        table = _table(file.path)
        words = _words(table, width)
        found = {name: table.column(name).to_numpy() for name in _ANNOTATIONS if name in table.column_names}
        found["words"] = words
        if routing is not None and not is_routed_so:
            shares = routing.shares_of(words)
            kept = (shares == share) | (shares == EVERYWHERE)
            found = {name: array[kept] for name, array in found.items()}
        yield found


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
        """Whether there are so many changes, or files of changes, that writing the state anew pays."""
        changed, known = (sum(file.rows for file in files) for files in (self.changes, self.base))
        return changed > known // 4 + SETTINGS.spark_few_filed or len(self.changes) > _MOST_FILES

    @property
    def routing(self) -> Routing | None:
        """How all files are shared; None if they are not, or not all in the same way."""
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
        """Whether writing one share anew pays. It never does while a file holds facts of several shares."""
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
    """What the update under way makes of a relation: all its files `after` the update, and those of the `changes`
    alone. `number`: how many changed facts the strata above must hear of."""

    after: FiledRelation
    changes: tuple[WordFile, ...]
    number: int

    def read(self, width: int) -> StateChanges:
        return StateChanges.joined(read_changes(self.changes, width), width)


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
        """The pending files become current. Files of `stale` relations, which were changed elsewhere, are removed."""
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
