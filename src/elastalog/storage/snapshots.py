"""Snapshots: relations that have changed, and what the dictionary has gained; how far back they go, and what they
leave.

The dictionary only grows, so its files are parts of it, merged when the last have become as large as the one before
them: their number stays logarithmic, and every entry is rewritten a logarithmic number of times.

The facts of a relation at an epoch are those of an earlier snapshot and the changes since. Only the changed facts are
looked for, so this needs little more memory than the facts themselves; and it needs nothing of the session that goes on
meanwhile. A manifest keeps the snapshots and journals that its retention asks for; files that nothing refers to, left
by a crash or by a snapshot that took their place, are removed.

A file may also be written by another process than the one that makes the store: a relation piece by piece
(`PiecedFile`).

A snapshot is made in the background, beside a session that goes on (`BackgroundSnapshot`): it is written from what
cannot change any more, the files of the snapshot before it, the journal up to its epoch, and a dictionary that only
grows. Nothing refers to it until the writer of the store puts it in force.
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, wait
from dataclasses import field, replace
from hashlib import file_digest, sha256
from pathlib import Path
from secrets import token_hex
from typing import Any

import pyarrow as pa

from elastalog.backends.rows import merged
from elastalog.diagnostics.interrupts import switching_sooner
from elastalog.folders.addresses import inside, is_address
from elastalog.folders.files import files_at, put
from elastalog.late import dataclass
from elastalog.relations.arrays import array_of_numbers
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.storage import errors
from elastalog.storage.entries import LogEntry, ProgramChange
from elastalog.storage.filesystem import FileEntry, FileSystem, read_bytes, read_checked, require_digest, write_checked
from elastalog.storage.lock import unread
from elastalog.storage.manifest import FORMAT_FILE, POINTER, JournalFile, Manifest, Segment, Snapshot, pointer_to
from elastalog.storage.state import PATTERN, TEXT, WRITING_FACTS, StoredState, columns_of, entries_bytes, facts_bytes

FACTS = "facts"
DICTIONARY = "dictionary"


def write_relations(
    files: FileSystem,
    root: Path,
    names: Iterable[str],
    fetch: Callable[[str], FactWords],
    epoch: int,
    unchanged: Mapping[str, FileEntry],
) -> dict[str, FileEntry]:
    """Writes the relations that are not in `unchanged`, whose files are used again."""
    written = {}
    for number, name in enumerate(names):
        if name in unchanged:
            written[name] = unchanged[name]
            continue
        path = relation_file(number, name, epoch)
        written[name] = write_checked(files, root, path, facts_bytes(fetch(name)))
    return written


def relation_file(number: int, name: str, epoch: int) -> str:
    """Where in a store the facts of a relation at an epoch are written; `number`: its place in the layout."""
    readable = re.sub(r"[^A-Za-z0-9_]", "", name)[:60]
    return f"{FACTS}/{number}-{readable}-{epoch}.parquet"


def write_dictionary(
    files: FileSystem,
    root: Path,
    dictionary: Dictionary,
    symbols: tuple[Segment, ...],
    patterns: tuple[Segment, ...],
    symbol_count: int,
    pattern_count: int,
) -> tuple[tuple[Segment, ...], tuple[Segment, ...]]:
    """Writes what the dictionary holds beyond the parts already stored, up to some numbers; returns all its parts."""
    texts, wide = dictionary.symbols, dictionary.wide

    def patterns_between(first: int, last: int) -> bytes:
        return entries_bytes(PATTERN, array_of_numbers(wide.patterns_from(first)[: last - first]))

    return (
        _grown(files, root, "symbols", symbols, symbol_count, lambda a, b: entries_bytes(TEXT, texts.array(a, b))),
        _grown(files, root, "patterns", patterns, pattern_count, patterns_between),
    )


def _grown(
    files: FileSystem,
    root: Path,
    kind: str,
    segments: tuple[Segment, ...],
    total: int,
    content: Callable[[int, int], bytes],
) -> tuple[Segment, ...]:
    kept = list(segments)
    first = kept[-1].last if kept else 0
    if first == total:
        return segments
    while kept and kept[-1].last - kept[-1].first <= total - first:
        first = kept.pop().first
    name = f"{DICTIONARY}/{kind}-{first}-{total}.parquet"
    return (*kept, Segment(first, total, write_checked(files, root, name, content(first, total))))


# --- what is kept ----------------------------------------------------------------------------------------------------


MOST_SNAPSHOTS = 8
"""Beyond this, some in the middle go; the epochs around them are then read from an older snapshot and more of the
journal."""

_LEAST_HISTORY = 64 << 20


def retained(manifest: Manifest) -> Manifest:
    """The manifest without what is older than its options ask for, or takes more room than they allow."""
    options = manifest.options
    latest = manifest.snapshots[-1]
    snapshots = list(manifest.snapshots)
    while len(snapshots) > 1 and snapshots[1].epoch <= latest.epoch - options.retention:
        del snapshots[0]
    while len(snapshots) > MOST_SNAPSHOTS:
        gaps = [snapshots[i + 1].epoch - snapshots[i - 1].epoch for i in range(1, len(snapshots) - 1)]
        del snapshots[gaps.index(min(gaps)) + 1]
    allowed = max(_LEAST_HISTORY, int(options.history_share * latest.bytes))
    while len(snapshots) > 1 and _history_bytes(manifest, snapshots) > allowed:
        del snapshots[0]
    return replace(manifest, snapshots=tuple(snapshots), journals=journals_after(manifest, snapshots[0].epoch))


def _history_bytes(manifest: Manifest, snapshots: list[Snapshot]) -> int:
    """The bytes that are kept only for earlier epochs."""
    present = {file.name for file in snapshots[-1].relations.values()}
    past = {file.name: file.bytes for s in snapshots[:-1] for file in s.relations.values() if file.name not in present}
    journals = journals_after(manifest, snapshots[0].epoch)
    return sum(past.values()) + sum(journal.sealed.bytes for journal in journals if journal.sealed is not None)


def journals_after(manifest: Manifest, epoch: int) -> tuple[JournalFile, ...]:
    """The journals that hold epochs after one, and the last journal."""
    journals = manifest.journals
    ends = [following.epoch for following in journals[1:]]
    return (*(journal for journal, end in zip(journals, ends, strict=False) if end > epoch), journals[-1])


# --- what is removed -------------------------------------------------------------------------------------------------


# Only what a store writes itself is ever removed.
_OURS = re.compile(
    r"manifest-\d+\.json|program-\d+(-made-for)?\.dl|journal-\d+\.log|CURRENT\.new|facts/\d+-[\w.-]*-\d+\.parquet"
    r"|dictionary/(symbols|patterns)-\d+-\d+\.parquet"
)


def unreferenced(root: Path, manifest: Manifest) -> list[Path]:
    """The files of a store that its manifest does not need, in order of name."""
    needed = manifest.names()
    found = [path for folder in (root, root / "facts", root / "dictionary") for path in folder.glob("*")]
    names = {path.relative_to(root).as_posix(): path for path in found}
    return [path for name, path in sorted(names.items()) if name not in needed and is_ours(name)]


def is_ours(name: str) -> bool:
    """Whether a file has the name of one that a store writes, and removes."""
    return _OURS.fullmatch(name) is not None


def collect(files: FileSystem, root: Path, manifest: Manifest) -> None:
    """Removes the files that a manifest in force does not need, unless someone is reading: they may be of a manifest
    before it. Then they go the next time."""
    found = unreferenced(root, manifest)
    if found:
        with unread(root / FORMAT_FILE) as is_unread:
            for path in found if is_unread else ():
                files.remove(path)


# --- what is set aside -----------------------------------------------------------------------------------------------


def set_aside(state: StoredState, relation: str, folder: str) -> None:
    """For readers that come back to an epoch later, such as Spark jobs: makes a store of its own in a folder, of a
    relation alone; of links where that is possible, so that a writer of the store may go on and remove its own. Files
    are checked, but for that of the relation; nothing is read into memory unless the folder is at an address. Of the
    dictionary only what can be needed is there."""
    file, _ = state.file_and_changes(relation)
    bases = set(state.layout[relation])
    manifest, snapshot = state.manifest, state.snapshot
    kept = replace(snapshot, relations={name: entry for name, entry in snapshot.relations.items() if entry == file})
    manifest = replace(manifest, snapshots=(kept,), journals=journals_after(manifest, snapshot.epoch))
    segments = (*(manifest.symbols if "symbol" in bases else ()), *(manifest.patterns if bases - {"symbol"} else ()))
    programs = {entry for entry in (manifest.program, snapshot.program, snapshot.made_for) if entry is not None}
    for name in (FACTS, DICTIONARY):
        files_at(folder).make_folder(inside(folder, name))
    for entry in (*programs, *(segment.file for segment in segments)):
        _keep(state.root, entry.name, folder, entry)
    for name in (FORMAT_FILE, *(journal.name for journal in manifest.journals), *([file.name] if file else [])):
        _keep(state.root, name, folder)
    data = manifest.encode()
    put(inside(folder, manifest.name), data)
    put(inside(folder, POINTER), pointer_to(manifest, data))


def _keep(root: Path, name: str, folder: str, entry: FileEntry | None = None) -> None:
    source, kept = root / name, inside(folder, name)
    if is_address(folder):
        put(kept, read_bytes(source) if entry is None else read_checked(root, entry))
        return
    with errors.reading(source):
        files_at(kept).copy(str(source), kept)
    if entry is not None:
        require_digest(Path(kept), entry, source)


# --- files written piece by piece ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PiecedFile:
    """A file to write from others, its `pieces`: `name` is its path in the store at `root`."""

    root: str
    name: str
    columns: tuple[str, ...]
    pieces: tuple[str, ...]


def pieced_files(
    root: Path, layout: Mapping[str, tuple[str, ...]], epoch: int, pieces: Mapping[str, tuple[str, ...]]
) -> dict[str, PiecedFile]:
    """The files to write for the relations that are stored in pieces."""
    place = str(root.absolute())
    return {
        name: PiecedFile(place, relation_file(number, name, epoch), columns_of(len(bases)), pieces[name])
        for number, (name, bases) in enumerate(layout.items())
        if name in pieces
    }


def write_pieced(file: PiecedFile) -> FileEntry:
    """Writes a file from its pieces, one after the other, and flushes it to the disk. Doing it again, even at the same
    time, writes the same; what a process leaves behind that was killed is collected with the other garbage."""
    import pyarrow.parquet as pq  # only stores need it

    path = Path(file.root) / file.name
    schema = pa.schema([(name, pa.int32()) for name in file.columns])
    stem, epoch = path.stem.rsplit("-", 1)
    fresh = path.with_name(f"{stem}.{token_hex(4)}-{epoch}.parquet")
    with pq.ParquetWriter(fresh, schema, **WRITING_FACTS) as writer:
        for piece in file.pieces:
            with files_at(piece).parquet(piece) as read:
                for group in range(read.num_row_groups):
                    writer.write_table(read.read_row_group(group).select(schema.names).cast(schema))
    with fresh.open("rb") as written:
        os.fsync(written.fileno())
        digest = file_digest(written, "sha256").hexdigest()
    os.replace(fresh, path)
    return FileEntry(file.name, path.stat().st_size, digest)


# --- in the background -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Moment:
    """What a snapshot is of: the epoch and what belongs to it, the relations that have changed since the snapshot
    before, and the sizes of the dictionary and of the journal then."""

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
    """A snapshot on the disk, to be put in force. `journal`: the checksum of the journal up to its size then."""

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
    """Writes everything but the manifest, flushed to the disk. Raises OSError; then some files are of no use. What the
    snapshot before has left goes first: commits do not wait for files to be removed."""
    with contextlib.suppress(OSError):
        collect(files, root, before)
    symbols, patterns = write_dictionary(
        files, root, dictionary, before.symbols, before.patterns, moment.symbols, moment.patterns
    )
    latest = before.snapshots[-1].relations
    unchanged = {name: file for name, file in latest.items() if name not in moment.changed}
    program, layout, made_for = (getattr(before.snapshots[-1], name) for name in ("program", "layout", "made_for"))
    if (changed := moment.program) is not None:
        program = write_checked(files, root, f"program-{moment.epoch}.dl", changed.text.encode())
        layout, made_for = changed.layout, None
        if changed.made_for is not None:
            name = f"program-{moment.epoch}-made-for.dl"
            made_for = write_checked(files, root, name, changed.made_for.encode())
    names = before.layout if layout is None else layout
    relations = write_relations(files, root, names, fetch, moment.epoch, unchanged)
    for folder in (FACTS, DICTIONARY):
        files.flush_folder(root / folder)
    with (root / before.journals[-1].name).open("rb") as journal:
        digest = sha256(journal.read(moment.journal_bytes))
    snapshot = Snapshot(moment.epoch, relations, moment.batches, moment.learnt, moment.entry, program, layout, made_for)
    return Written(moment, symbols, patterns, snapshot, digest)


class Abandoned(Exception):
    """The snapshot is no longer wanted."""


@dataclass(slots=True, eq=False)
class BackgroundSnapshot:
    """Writes a snapshot, by `write_files` given all but the facts: in a thread of its own after `start`, or at once
    with `run`."""

    moment: Moment
    _write: Callable[[Callable[[str], FactWords]], Written]
    _state: Callable[[int], StoredState]
    _is_abandoned: threading.Event = field(default_factory=threading.Event)
    # Not the end of a thread: Ctrl-C during `Thread.join` makes Python 3.11 take it for ended.
    _written: Future[Written] = field(default_factory=Future)
    _is_begun: bool = False

    def start(self) -> None:
        """Begins to write, in the background."""
        thread = threading.Thread(target=self._run_beside, name=f"elastalog-snapshot-{self.moment.epoch}")
        try:
            thread.start()
        except RuntimeError:  # there are too many threads
            self.run()
            return
        self._is_begun = True

    def run(self) -> None:
        """Writes the snapshot. Whatever goes wrong is raised by `result`."""
        self._is_begun = True
        try:
            stored = self._state(self.moment.epoch)

            def fetch(name: str) -> FactWords:
                if self._is_abandoned.is_set():
                    raise Abandoned
                return merged(*stored.relation(name))

            self._written.set_result(self._write(fetch))
        except BaseException as error:
            self._written.set_exception(error)

    def _run_beside(self) -> None:
        with switching_sooner():
            self.run()

    @property
    def is_done(self) -> bool:
        return self._written.done() or not self._is_begun

    def wait(self) -> None:
        """Waits until the snapshot has been written, or has failed. Ctrl-C may have come before it was begun at all."""
        if self._is_begun:
            wait([self._written])

    def result(self) -> Written:
        """What was written, once it is done. Raises what went wrong."""
        if not self._is_begun:
            raise Abandoned
        return self._written.result()

    def abandon(self) -> None:
        """Ends it without a result, at the latest when the file that is being written is done."""
        self._is_abandoned.set()
        self.wait()
