"""A snapshot in the making, beside a session that goes on.

It is written from what cannot change any more: the files of the snapshot before it, the journal up to its epoch, and a
dictionary that only grows. Nothing refers to it until the writer of the store puts it in force.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

from elastalog.late import dataclass
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.storage import snapshots
from elastalog.storage.entries import LogEntry, ProgramChange
from elastalog.storage.filesystem import FileSystem, write_checked
from elastalog.storage.manifest import Manifest, Segment, Snapshot
from elastalog.storage.snapshots import merged
from elastalog.storage.state import StoredState


@dataclass(frozen=True, slots=True)
class Moment:
    """What is to be written: the epoch and what belongs to it, the relations that have changed since the snapshot
    before, how many symbols and patterns there were, and how long the journal was."""

    entry: LogEntry
    batches: Mapping[str, Any]
    learnt: Mapping[str, Any]
    changed: frozenset[str]
    symbols: int
    patterns: int
    journal_bytes: int
    program: ProgramChange | None
    """The last change of the program since the snapshot before."""

    @property
    def epoch(self) -> int:
        return self.entry.epoch


@dataclass(frozen=True, slots=True)
class Written:
    """What lies on the disk, waiting to be put in force. `journal`: the checksum of the journal as long as it was."""

    moment: Moment
    symbols: tuple[Segment, ...]
    patterns: tuple[Segment, ...]
    snapshot: Snapshot
    journal: Any


def write_files(
    files: FileSystem,
    root: Path,
    before: Manifest,
    moment: Moment,
    dictionary: Dictionary,
    fetch: Callable[[str], FactWords],
) -> Written:
    """Writes everything but the manifest, flushed to the disk. Raises OSError; then some files are of no use."""
    symbols, patterns = snapshots.write_dictionary(
        files, root, dictionary, before.symbols, before.patterns, moment.symbols, moment.patterns
    )
    latest = before.snapshots[-1].relations
    unchanged = {name: file for name, file in latest.items() if name not in moment.changed}
    program, layout = before.snapshots[-1].program, before.snapshots[-1].layout
    if moment.program is not None:
        text = moment.program.text.encode()
        program = write_checked(files, root, f"program-{moment.epoch}.dl", text, "program")
        layout = moment.program.layout
    names = before.layout if layout is None else layout
    relations = snapshots.write_relations(files, root, names, fetch, moment.epoch, unchanged)
    for folder in (snapshots.FACTS, snapshots.DICTIONARY):
        files.flush_folder(root / folder)
    with (root / before.journals[-1].name).open("rb") as journal:
        digest = sha256(journal.read(moment.journal_bytes))
    snapshot = Snapshot(moment.epoch, relations, moment.batches, moment.learnt, moment.entry, program, layout)
    return Written(moment, symbols, patterns, snapshot, digest)


class Abandoned(Exception):
    """The snapshot is no longer wanted."""


class BackgroundSnapshot:
    """Writes a snapshot: in a thread of its own after `start`, or at once with `run`."""

    def __init__(
        self,
        files: FileSystem,
        root: Path,
        before: Manifest,
        moment: Moment,
        dictionary: Dictionary,
        state: Callable[[int], StoredState],
    ) -> None:
        self.moment = moment
        self._write: Callable[[Callable[[str], FactWords]], Written] = lambda fetch: write_files(
            files, root, before, moment, dictionary, fetch
        )
        self._state = state
        self._written: Written | None = None
        self._error: BaseException | None = None
        self._is_abandoned = threading.Event()
        # An event, because Ctrl-C during `Thread.join` makes Python 3.11 take the thread for ended.
        self._done = threading.Event()
        self._is_begun = False

    def start(self) -> None:
        """Begins to write, in the background."""
        thread = threading.Thread(target=self.run, name=f"elastalog-snapshot-{self.moment.epoch}")
        try:
            thread.start()
        except RuntimeError:  # there are too many threads
            self.run()
            return
        self._is_begun = True

    def run(self) -> None:
        """Writes. What goes wrong is raised by `result`."""
        self._is_begun = True
        try:
            stored = self._state(self.moment.epoch)

            def fetch(name: str) -> FactWords:
                if self._is_abandoned.is_set():
                    raise Abandoned
                return merged(*stored.relation(name))

            self._written = self._write(fetch)
        except BaseException as error:
            self._error = error
        finally:
            self._done.set()

    @property
    def is_done(self) -> bool:
        return self._done.is_set() or not self._is_begun

    def wait(self) -> None:
        """Until it has been written, or failed. Ctrl-C may have come before it was begun at all."""
        if self._is_begun:
            self._done.wait()

    def result(self) -> Written:
        """What was written, once it is done. Raises what went wrong."""
        if self._error is not None:
            raise self._error
        if self._written is None:
            raise Abandoned
        return self._written

    def abandon(self) -> None:
        """Ends it without a result; at the latest when the file being written is."""
        self._is_abandoned.set()
        self.wait()
