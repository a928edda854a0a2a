"""The epochs that a store holds, as its files tell: snapshots, relations and parts of the dictionary as Parquet files,
and the records of journals after them; and its state at one of them, ready to be put into a session."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

import numpy as np
import pyarrow as pa

from elastalog.backends.protocol import GONE, StateChanges
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.diagnostics.quota import look
from elastalog.late import dataclass
from elastalog.pipeline.files.ahead import Ahead, Part
from elastalog.relations.arrays import array_of_numbers, array_of_texts, numbers_of_array
from elastalog.relations.facts import COUNT, LEVEL, FactWords
from elastalog.relations.meanings import Entries
from elastalog.relations.words import Dictionary
from elastalog.storage import errors
from elastalog.storage.entries import Batches, JournalRecord, LogEntry, ProgramChange
from elastalog.storage.filesystem import FileEntry, read_checked
from elastalog.storage.journal import JournalReader
from elastalog.storage.lock import reading
from elastalog.storage.manifest import BY_SETS, FORMAT_FILE, JournalFile, Manifest, Snapshot, read_manifest


@dataclass(frozen=True, slots=True)
class StoredState:
    """A snapshot, the records after it, and what the strategy had learnt by then.

    `made_for`: the text of the program that was given last, when the store was made, upgraded or opened. None if rules
    were changed by an earlier version of Elastalog, which did not note it."""

    root: Path
    manifest: Manifest
    snapshot: Snapshot
    records: Sequence[JournalRecord]
    learnt: dict[str, Any]

    @property
    def epoch(self) -> int:
        return self.records[-1].entry.epoch if self.records else self.snapshot.epoch

    @property
    def _program(self) -> ProgramChange | None:
        """The last change of the program since the snapshot."""
        return next((record.program for record in reversed(self.records) if record.program is not None), None)

    @property
    def layout(self) -> Mapping[str, tuple[str, ...]]:
        """The base types of every relation."""
        changed = self._program
        return self.manifest.layout_of(self.snapshot) if changed is None else changed.layout

    def program_text(self) -> str:
        """The program, checked."""
        changed = self._program
        if changed is not None:
            return changed.text
        return read_checked(self.root, self.manifest.program_of(self.snapshot)).decode()

    @property
    def made_for(self) -> str | None:
        if self._program is not None:
            return self._program.made_for
        file = self.manifest.program if self.snapshot.program is None else self.snapshot.made_for
        return None if file is None else read_checked(self.root, file).decode()

    @property
    def changed_in(self) -> str:
        """When rules were changed, as far back as is known without reading what is before the snapshot."""
        epochs = [str(record.entry.epoch) for record in self.records if record.program is not None]
        before = [f"by epoch {self.snapshot.epoch}"] * (self.snapshot.program is not None)
        return " and ".join((*before, *([f"in epoch{'s' * (len(epochs) > 1)} {', '.join(epochs)}"] if epochs else [])))

    @property
    def program_name(self) -> str:
        """Where the program can be found: its file; or in words, if it has changed since the last snapshot."""
        for record in reversed(self.records):
            if record.program is not None:
                return f"{self.root} (program since epoch {record.entry.epoch})"
        return str(self.root / self.manifest.program_of(self.snapshot).name)

    def relation(self, name: str) -> tuple[FactWords, list[StateChanges]]:
        """The facts of a relation in the snapshot, checked, and its changes since, in order. The relation may have had
        other names."""
        width = len(self.layout[name])
        file, changes = self.file_and_changes(name)
        return FactWords.nothing(width) if file is None else read_facts(self.root, file, width), changes

    def file_and_changes(self, name: str) -> tuple[FileEntry | None, list[StateChanges]]:
        """The file of a relation in the snapshot, None if there was none, and its changes since."""
        known: str | None = name
        changes: list[StateChanges] = []
        for record in reversed(self.records):
            if known is not None:
                if known in record.changes:
                    changes.append(record.changes[known])
                if record.program is not None:
                    known = record.program.origin(known)
        return None if known is None else self.snapshot.relations[known], changes[::-1]

    def relations(self) -> Iterator[tuple[str, FactWords, list[StateChanges]]]:
        """All relations; of a large store the next is read while the caller works on one."""
        names = list(self.layout)
        if self.snapshot.bytes < LARGE:
            yield from ((name, *self.relation(name)) for name in names)
            return
        with closing(Ahead((Part(partial(self.relation, name)) for name in names), 1, "reading a store")) as coming:
            coming.start()
            yield from ((name, *found) for name, found in zip(names, coming, strict=True))

    @contextmanager
    def filling(self, dictionary: Dictionary | None) -> Iterator[None]:
        """Fills a dictionary, if one is given, by the end of the block; that of a large store in a thread."""
        if dictionary is None or self.snapshot.bytes < LARGE:
            if dictionary is not None:
                self.fill(dictionary)
            yield
            return
        with ThreadPoolExecutor(1) as reader:
            filled = reader.submit(self.fill, dictionary)
            yield
            filled.result()

    def fill(self, dictionary: Dictionary) -> None:
        """Gives an empty dictionary the stored one's entries, under the same ids."""
        assert len(dictionary.symbols) == 0
        assert len(dictionary.wide) == 0
        for part in self.texts():
            dictionary.symbols.extend(part.read())
        for part in self.patterns():
            dictionary.wide.extend(part.read())

    def texts(self) -> Iterator[Entries]:
        """The texts of the dictionary, in order: those of files, checked, and those of the records."""
        for segment in self.manifest.symbols:
            yield Entries(segment.first, segment.last, partial(read_entries, self.root, segment.file, TEXT))
        since: list[str] = []
        first = self.manifest.known_symbols
        for record in self.records:
            since += record.symbols[self._known(record, first + len(since) - record.first_symbol) :]
        yield Entries(first, first + len(since), lambda: array_of_texts(since))

    def patterns(self) -> Iterator[Entries]:
        """The patterns of the dictionary, as `texts` has the texts."""
        for segment in self.manifest.patterns:
            yield Entries(segment.first, segment.last, partial(read_patterns, self.root, segment.file))
        since = [np.empty(0, np.int64)]
        first = last = self.manifest.known_patterns
        for record in self.records:
            since.append(record.patterns[self._known(record, last - record.first_pattern) :])
            last += len(since[-1])
        yield Entries(first, last, lambda: np.concatenate(since))

    def _known(self, record: JournalRecord, number: int) -> int:
        """How many of the entries that a record adds are known already."""
        if number < 0:
            raise errors.damaged(self.root, f"epoch {record.entry.epoch} uses symbols that are not stored")
        return number


class RecordedEpochs:
    """The part of a store that reads. `epoch`: the last one that it knows of."""

    def __init__(self, root: Path, manifest: Manifest) -> None:
        latest = manifest.snapshots[-1]
        self.root = root
        self.manifest = manifest
        self.epoch = latest.epoch
        self.batches = Batches(latest.batches)
        self._entry = latest.entry
        self._until: int | None = None
        # Where the next record, or the next snapshot, goes on from.
        self._learnt: dict[str, Any] = dict(latest.learnt)
        self._symbols = manifest.known_symbols
        self._patterns = manifest.known_patterns
        self._changed: set[str] = set()
        self._program: tuple[int, ProgramChange] | None = None
        self.made_for: str | None = None

    @property
    def looks_no_further(self) -> bool:
        """Whether later epochs than the last it knows of are not for this reader."""
        return self._until is not None

    @property
    def first_epoch(self) -> int:
        """The oldest epoch that can be read."""
        return self.manifest.snapshots[0].epoch

    def state(self, epoch: int | None = None) -> StoredState:
        """Everything stored at an epoch, the last one by default."""
        epoch = self.require(self.epoch if epoch is None else epoch)
        snapshot = max((s for s in self.manifest.snapshots if s.epoch <= epoch), key=lambda s: s.epoch)
        records = list(self.records(snapshot.epoch, epoch))
        learnt = dict(snapshot.learnt)
        for record in records:
            learnt.update(record.learnt)
        return StoredState(self.root, self.manifest, snapshot, records, learnt)

    def records(self, after: int, until: int) -> Iterator[JournalRecord]:
        """The records of the epochs after one, until another."""
        for journal, last in _with_ends(self.manifest.journals):
            end = until if last is None else min(until, last)
            if journal.epoch >= until or end <= after:
                continue
            reader = self._reader(journal)
            for record in reader:
                look()
                if record.entry.epoch > after:
                    yield record
                if record.entry.epoch == end:
                    break
            if reader.epoch < end:
                raise _ends_early(reader, end)

    def turned(self, after: int, until: int) -> Iterator[JournalRecord]:
        """The records as they are shown to people: level 0 is an explicit fact, whatever else the strategy counts in
        it."""
        for record in self.records(after, until):
            yield _with_plain_levels(record) if self.manifest.options.strategy in BY_SETS else record

    def log(self) -> tuple[LogEntry, ...]:
        """The entries of all epochs kept, oldest first."""
        first = self.manifest.snapshots[0]
        return (first.entry, *(record.entry for record in self.records(first.epoch, self.epoch)))

    def require(self, epoch: int) -> int:
        """The epoch, if it is kept. Raises ElastalogError otherwise."""
        if not self.first_epoch <= epoch <= self.epoch:
            is_part = False
            if epoch > self.epoch == self._until:
                with reading(self.root / FORMAT_FILE):
                    whole = RecordedEpochs(self.root, read_manifest(self.root))
                    whole._follow_journals()
                is_part = epoch <= whole.epoch
            raise errors.epoch_unknown(self.root, epoch, self.first_epoch, self.epoch, is_part=is_part)
        return epoch

    # --- following the journals ------------------------------------------------------------------------------------

    def _follow_journals(self, until: int | None = None) -> JournalReader:
        """Goes through the epochs after the last snapshot. Returns the reader of the last journal."""
        reader: JournalReader | None = None
        for journal, end in _with_ends(self.manifest.journals):
            if end is not None and end <= self.epoch:
                continue
            reader = self._reader(journal)
            while until is None or self.epoch < until:
                record = next(reader, None) if reader.epoch != end else None
                if record is None:
                    break
                if record.entry.epoch > self.epoch:
                    self._note(record)
            for note in reader.notes:
                self.batches.add(note.source, note.batch, note.digest)
            if end is not None and reader.epoch < end and (until is None or self.epoch < until):
                raise _ends_early(reader, end)
        assert reader is not None
        return reader

    def _reader(self, journal: JournalFile) -> JournalReader:
        return JournalReader(self.root, journal.name, self.manifest.store, journal.epoch)

    def _note(self, record: JournalRecord) -> None:
        self.epoch = record.entry.epoch
        self._entry = record.entry
        self.batches.add(record.entry.source, record.entry.batch, record.entry.digest)
        self._learnt.update(record.learnt)
        self._changed.update(record.changes)
        if record.program is not None:
            # Strata have other numbers, and names of hidden relations mean others, or ones that were not there.
            self._program = record.entry.epoch, record.program
            self._learnt = dict(record.learnt)
            self._changed.update((*record.program.renamed, *record.program.renamed.values(), *record.program.fresh))
        self._symbols = max(self._symbols, record.first_symbol + len(record.symbols))
        self._patterns = max(self._patterns, record.first_pattern + len(record.patterns))


def _with_ends(journals: Sequence[JournalFile]) -> Iterator[tuple[JournalFile, int | None]]:
    """Journals with the last epoch that belongs to each; None for the last, which goes on."""
    return zip(journals, (*(journal.epoch for journal in journals[1:]), None), strict=True)


def _ends_early(reader: JournalReader, end: int) -> ElastalogError:
    return errors.damaged(reader.path, f"it ends at epoch {reader.epoch} instead of {end}")


def _with_plain_levels(record: JournalRecord) -> JournalRecord:
    """A record with level 0 for explicit facts, 1 for others, where levels also tell numbers of derivations."""
    changes = {
        name: replace(
            changed,
            was=np.where(changed.was == GONE, GONE, changed.was & 1),
            level=np.where(changed.level == GONE, GONE, changed.level & 1),
        )
        for name, changed in record.changes.items()
    }
    return replace(record, changes=changes)


# --- Parquet files ---------------------------------------------------------------------------------------------------


LARGE = 1 << 20
"""Bytes from which on a file is worth several threads."""


WRITING: Final[Mapping[str, Any]] = {
    "compression": "zstd", "use_dictionary": False, "write_statistics": False, "store_schema": False
}  # fmt: skip
"""How all files are written."""

# Words are small integers: their high bytes compress to nearly nothing once they lie together.
WRITING_FACTS: Final[Mapping[str, Any]] = {**WRITING, "use_byte_stream_split": True}


def columns_of(width: int) -> tuple[str, ...]:
    """What the columns of facts of some width are called, words and annotations."""
    return (*map(str, range(width)), LEVEL, COUNT)


def facts_bytes(facts: FactWords) -> bytes:
    """Facts with their annotations: the words of the columns `0`, `1`, …, then `@level` and `@count`, all 32-bit."""
    assert facts.level is not None
    assert facts.count is not None
    arrays = [array_of_numbers(numbers) for numbers in (*facts.words.T, facts.level, facts.count)]
    return _parquet(pa.Table.from_arrays(arrays, list(columns_of(facts.words.shape[1]))), WRITING_FACTS)


def read_facts(root: Path, entry: FileEntry, width: int) -> FactWords:
    """The facts of a file, checked."""
    table = _table(root, entry, [*columns_of(width)])
    words = np.empty((table.num_rows, width), np.int32)
    for i in range(width):
        words[:, i] = _numbers(table.column(i), np.int32)
    level, count = (_numbers(table.column(place), np.int32) for place in (width, width + 1))
    return FactWords(words, level, count)


TEXT, PATTERN = "text", "pattern"
"""What the columns with parts of the dictionary are called."""


def entries_bytes(kind: str, entries: pa.Array) -> bytes:
    """A part of the dictionary, in the order of its ids."""
    return _parquet(pa.table({kind: entries}))


def read_entries(root: Path, entry: FileEntry, kind: str) -> pa.ChunkedArray:
    """The entries of a file, checked."""
    return _table(root, entry, [kind]).column(0)


def read_patterns(root: Path, entry: FileEntry) -> np.ndarray:
    """The patterns of a file, checked."""
    return _numbers(read_entries(root, entry, PATTERN), np.int64)


def _numbers(column: pa.ChunkedArray, kind: type[np.generic]) -> np.ndarray:
    """The numbers of a column, a copy."""
    return np.concatenate([np.empty(0, kind), *map(numbers_of_array, column.chunks)])


def _parquet(table: pa.Table, options: Mapping[str, Any] = WRITING) -> bytes:
    import pyarrow.parquet as pq  # only stores need it

    out = io.BytesIO()
    pq.write_table(table, out, **options)
    return out.getvalue()


def _table(root: Path, entry: FileEntry, columns: list[str]) -> pa.Table:
    import pyarrow.parquet as pq

    data = read_checked(root, entry)
    try:
        # The bytes are in memory already, and small files are many: threads only pay for large ones.
        table = pq.ParquetFile(pa.BufferReader(data), pre_buffer=False).read(use_threads=len(data) > LARGE)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise errors.damaged(root / entry.name, str(error)) from None
    if table.column_names != columns:
        raise errors.damaged(root / entry.name, "it has other columns")
    return table
