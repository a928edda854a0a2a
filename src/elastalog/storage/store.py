"""The store: a folder that holds a materialisation through all its epochs.

    FORMAT  CURRENT  LOCK  program.dl  manifest-7.json  journal-812.log  facts/*.parquet  dictionary/*.parquet

`CURRENT` names the manifest, the manifest names everything else: snapshots of all relations, and journals of the
epochs after each. An epoch is committed when its record has been flushed to the last journal. Now and then a new
snapshot is written beside what is there, while the journal goes on; moving `CURRENT` puts it in force.
"""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error
from elastalog.diagnostics.interrupts import uninterrupted
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.storage import errors, snapshots
from elastalog.storage.entries import Batches, BatchNote, JournalRecord, LogEntry
from elastalog.storage.filesystem import FileEntry, FileSystem, read_checked, write_checked
from elastalog.storage.journal import JournalWriter, write_empty
from elastalog.storage.lock import WriterLock, is_held
from elastalog.storage.manifest import (
    FORMAT,
    FORMAT_FILE,
    FORMAT_TEXT,
    LOCK,
    POINTER,
    JournalFile,
    Manifest,
    Options,
    Snapshot,
    check_format,
    has_epochs,
    read_manifest,
    write_manifest,
)
from elastalog.storage.snapshots import Abandoned, BackgroundSnapshot, Moment, Written, collect, retained, write_files
from elastalog.storage.state import RecordedEpochs

log = logging.getLogger("elastalog.storage")

Fetch = Callable[[str], FactWords]
"""The facts of a relation with their annotations, now."""

WriteElsewhere = Callable[[Path, Mapping[str, tuple[str, ...]], int], Mapping[str, FileEntry]]
"""Writes files of relations for a store in a folder, given its layout and the epoch; see
`evaluation.stored.written_elsewhere`."""

PROGRAM = "program.dl"


class Store(RecordedEpochs):
    """A store that is open. Made by `create` and `open`. `discarded`: what recovery had to throw away."""

    def __init__(self, root: Path, files: FileSystem, lock: WriterLock | None, manifest: Manifest) -> None:
        super().__init__(root, manifest)
        self.discarded: list[Diagnostic] = []
        self._files = files
        self._lock = lock
        self._journal: JournalWriter | None = None
        self._coming: BackgroundSnapshot | None = None
        self._process = os.getpid()

    # --- life ------------------------------------------------------------------------------------------------------

    @staticmethod
    def create(
        root: Path,
        program: str,
        options: Options,
        layout: Mapping[str, tuple[str, ...]],
        dictionary: Dictionary,
        fetch: Fetch,
        entry: LogEntry,
        learnt: Mapping[str, Any],
        files: FileSystem | None = None,
        write_elsewhere: WriteElsewhere | None = None,
    ) -> Store:
        """Makes a store of a first epoch. There is no store until this returns; an attempt that did not finish can be
        repeated. `write_elsewhere`: writes the files of some relations in its own way; the others are fetched."""
        files = files or FileSystem()
        refuse_existing(root)
        with errors.writing(root):
            files.make_folder(root)
        lock = WriterLock(root / LOCK)
        with _giving_up(lock, root):
            files.create(root / FORMAT_FILE, f"{FORMAT_TEXT}{FORMAT}\n".encode())
            files.flush_folder(root)  # whatever else is found after a power failure: an attempt that can be done again
            for folder in (root / snapshots.FACTS, root / snapshots.DICTIONARY):
                files.make_folder(folder)
            store = token_hex(8)
            file = write_checked(files, root, PROGRAM, program.encode())
            symbols, patterns = snapshots.write_dictionary(
                files, root, dictionary, (), (), len(dictionary.symbols), len(dictionary.wide)
            )
            written = write_elsewhere(root, layout, entry.epoch) if write_elsewhere is not None else {}
            for file_written in written.values():
                files.adopt(root / file_written.name)
            relations = snapshots.write_relations(files, root, layout, fetch, entry.epoch, written)
            snapshot = Snapshot(entry.epoch, relations, Batches().written(), learnt, entry)
            journal = JournalFile(entry.epoch, f"journal-{entry.epoch}.log", None)
            size, digest = write_empty(files, root, journal.name, store, entry.epoch)
            manifest = Manifest(1, store, file, options, layout, symbols, patterns, (snapshot,), (journal,))
            pointer = write_manifest(files, root, manifest)
            for folder in (root / snapshots.FACTS, root / snapshots.DICTIONARY, root, root.absolute().parent):
                files.flush_folder(folder)
            files.replace(root / POINTER, pointer)
            made = Store(root, files, lock, manifest)
            made.made_for = program
            made._journal = JournalWriter(files, root / journal.name, size, digest)
        return made

    @staticmethod
    def open(
        root: Path, *, read_only: bool = False, until: int | None = None, files: FileSystem | None = None
    ) -> Store:
        """Opens a store at its last committed epoch. A writer holds the lock until `close`, removes an unfinished
        write and files that nothing refers to; a reader changes nothing, and looks at no epoch beyond `until`."""
        files = files or FileSystem()
        check_format(root)
        if read_only:  # the caller holds `lock.reading` for as long as it reads
            store = Store(root, files, None, read_manifest(root))
            store._until = until
            store._check_programs()
            reader = store._follow_journals(until)
            if until is None and reader.size > reader.end and not is_held(root / LOCK):
                store.discarded += reader.unfinished("E0816.left_out")
            if until is not None and store.first_epoch <= until < store.epoch:
                store.epoch = until  # the last snapshot is later: what follows is not for this reader
            return store
        lock = WriterLock(root / LOCK)
        with _giving_up(lock, root):
            store = Store(root, files, lock, read_manifest(root))
            store._check_programs()
            reader = store._follow_journals()
            store._journal = JournalWriter(files, reader.path, reader.end, reader.digest)
            store.discarded += reader.unfinished()
            if store.discarded:
                store._journal.cut_off()
                if store._journal.is_broken:
                    raise errors.needs_reopening(reader.path)
            collect(files, root, store.manifest)
        return store

    def close(self) -> None:
        """Gives up the lock. Everything committed is on the disk already. Waits for a snapshot that was begun; Ctrl-C
        ends the wait, and the snapshot. In a forked child nothing happens: the store is that of its parent."""
        if self._is_elsewhere:
            return
        try:
            self.finish_snapshot(wait=True)
            if self._lock is not None and not self._lock.is_removed:  # else it may have another writer
                self._collect()
        except (ElastalogError, MemoryError) as error:
            log.warning("no snapshot could be written before the store was closed: %s", error)
        finally:
            self.abandon_snapshot()
            if self._journal is not None:
                self._journal.close()
                self._journal = None
            if self._lock is not None:
                self._lock.release()
                self._lock = None
                self._files.release()

    @property
    def is_read_only(self) -> bool:
        return self._lock is None or self._is_elsewhere

    @property
    def _is_elsewhere(self) -> bool:
        """Whether another process opened the store, and this one was forked from it."""
        return self._process != os.getpid()

    def refuse_elsewhere(self) -> None:
        """Raises ElastalogError in a forked child: the process that opened the store goes on writing it."""
        if self._is_elsewhere:
            raise error("E0819", location=self.root)

    # --- writing ---------------------------------------------------------------------------------------------------

    def news_of(self, dictionary: Dictionary) -> dict[str, Any]:
        """The fields of a record that say what the dictionary has gained since the last one."""
        return {
            "first_symbol": self._symbols,
            "symbols": dictionary.symbols.strings_from(self._symbols),
            "first_pattern": self._patterns,
            "patterns": dictionary.wide.patterns_from(self._patterns),
        }

    def append(self, record: JournalRecord) -> None:
        """Commits an epoch: when this returns, it survives anything. When it raises, the previous epoch stands."""
        self._writer().append(record)
        self._note(record)

    def note_batch(self, note: BatchNote) -> None:
        """Remembers a batch that changed nothing, and so has no epoch: when this returns, the note survives
        anything."""
        self._writer().append(note)

    def keep_epochs(self, retention: int) -> None:
        """Sets how many epochs can be gone back, from now on; what is older goes at once, as far as whole snapshots
        do."""
        self._writer()
        options = self.manifest.options
        if options.retention == retention:
            return
        self.abandon_snapshot()
        with errors.writing(self.root):
            manifest, pointer = self._next_manifest(options=replace(options, retention=retention))
            self._files.replace(self.root / POINTER, pointer)
        self.manifest = manifest
        self._collect()

    @property
    def is_snapshot_due(self) -> bool:
        """Whether the journal has grown so long that a snapshot pays, and none is under way."""
        if self._journal is None or self._coming is not None or self._is_elsewhere:
            return False
        options = self.manifest.options
        latest = self.manifest.snapshots[-1]
        allowed = max(options.journal_bytes, int(options.journal_share * latest.bytes))
        return self._journal.size > allowed or self.epoch - latest.epoch >= options.journal_epochs

    def begin_snapshot(self, dictionary: Dictionary) -> BackgroundSnapshot | None:
        """A snapshot of the present epoch, to be written from files alone. None if one is under way, or there is one
        already."""
        self._writer()
        if self._coming is not None or self.manifest.snapshots[-1].epoch == self.epoch:
            return None
        moment = self._moment(dictionary)
        self._changed = set()
        write = partial(write_files, self._files, self.root, self.manifest, moment, dictionary)
        self._coming = BackgroundSnapshot(moment, write, self.state)
        return self._coming

    def finish_snapshot(self, wait: bool = False) -> None:
        """Puts the snapshot that was begun in force, if it has been written by now; or waits for it. Raises what went
        wrong with it; then the store is as before. What it replaces goes with the next one, or at the end."""
        coming = self._coming
        if coming is None or self._is_elsewhere or not (wait or coming.is_done):
            return
        coming.wait()
        self._coming = None
        with errors.writing(self.root), contextlib.suppress(Abandoned):
            try:
                self._put_in_force(coming.result())
            except BaseException:
                self._changed |= coming.moment.changed
                raise

    def abandon_snapshot(self) -> None:
        """Gives up the snapshot that was begun, if there is one."""
        if self._coming is not None and not self._is_elsewhere:
            self._coming.abandon()
            self._changed |= self._coming.moment.changed
            self._coming = None

    def _check_programs(self) -> None:
        """Earlier epochs need the programs of their time, even where the present one is in the journal."""
        programs = {self.manifest.program_of(snapshot) for snapshot in self.manifest.snapshots}
        for file in sorted({self.manifest.program, *programs}, key=lambda file: file.name):
            read_checked(self.root, file)

    def _moment(self, dictionary: Dictionary) -> Moment:
        since, changed = self._program or (0, None)
        return Moment(
            self._entry, self.batches.written(), dict(self._learnt), frozenset(self._changed),
            len(dictionary.symbols), len(dictionary.wide), self._writer().size,
            changed if since > self.manifest.snapshots[-1].epoch else None,
        )  # fmt: skip

    def _put_in_force(self, written: Written) -> None:
        """Makes a snapshot part of the store, starts a new journal, and gives up history beyond the retention."""
        writer = self._writer()
        before = self.manifest
        journals = before.journals
        fresh: tuple[int, bytes] | None = None
        if journals[-1].epoch < self.epoch:
            sealed = replace(journals[-1], sealed=writer.sealed(written.journal, written.moment.journal_bytes))
            journals = (*journals[:-1], sealed, JournalFile(self.epoch, f"journal-{self.epoch}.log", None))
            fresh = write_empty(self._files, self.root, journals[-1].name, before.store, self.epoch)
        # Batches noted meanwhile stand in a journal that is not read again.
        kept = (*before.snapshots, replace(written.snapshot, batches=self.batches.written()))
        manifest, pointer = self._next_manifest(
            symbols=written.symbols, patterns=written.patterns, snapshots=kept, journals=journals
        )
        with uninterrupted():
            try:
                self._files.replace(self.root / POINTER, pointer)
                if fresh is not None:
                    self._journal = JournalWriter(self._files, self.root / journals[-1].name, *fresh)
            except BaseException:
                # The pointer may have moved: an epoch appended to either journal might not be found again.
                writer.is_broken = True
                raise
            if fresh is not None:
                writer.close()
            self.manifest = manifest
            if written.moment.epoch == self.epoch:
                self._changed = set()
            self._symbols = max(self._symbols, manifest.known_symbols)
            self._patterns = max(self._patterns, manifest.known_patterns)

    def _next_manifest(self, **changed: Any) -> tuple[Manifest, bytes]:
        """A manifest that takes the place of the present one, and the pointer that puts it in force."""
        manifest = retained(replace(self.manifest, generation=self.manifest.generation + 1, **changed))
        pointer = write_manifest(self._files, self.root, manifest)
        self._files.flush_folder(self.root)
        return manifest, pointer

    def _collect(self) -> None:
        with contextlib.suppress(OSError):
            collect(self._files, self.root, self.manifest)

    def _writer(self) -> JournalWriter:
        if self._journal is None:
            raise errors.read_only("it cannot be updated")
        self.refuse_elsewhere()
        if self._journal.is_broken:
            raise errors.needs_reopening(self.root)
        if self._lock is not None and self._lock.is_removed:
            raise error("E0809.lock_removed", location=self.root / LOCK)
        return self._journal


@contextlib.contextmanager
def _giving_up(lock: WriterLock, root: Path) -> Iterator[None]:
    """Releases the lock if anything goes wrong in the block; errors of the system become errors of the store."""
    with errors.writing(root):
        try:
            yield
        except BaseException:
            lock.release()
            raise


def refuse_existing(root: Path) -> None:
    """Raises ElastalogError unless a store can be made in a folder: none there, an empty one, or an attempt not
    finished, which has one manifest, and no epochs in its journal."""
    try:
        found = set(os.listdir(root)) if root.exists() else set()
    except OSError:
        raise error("E0802", location=root, path=root) from None
    if POINTER in found or (found and not found & {FORMAT_FILE, LOCK}):
        raise error("E0802", location=root, path=root)
    if found and has_epochs(root):
        raise errors.without_pointer(root / POINTER)
