"""The journal: one record for every epoch since a snapshot, appended and flushed at commit.

Its first frame names the store and the epoch that it continues, so that a journal cannot be mistaken for another.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from elastalog.storage import faults
from elastalog.storage.checked_files import FileEntry, read_bytes
from elastalog.storage.descriptors import OwnDescriptor
from elastalog.storage.entries import BatchNote, JournalRecord
from elastalog.storage.filesystem import FileSystem
from elastalog.storage.framing import START, FrameDamaged, frame, read_frames


class JournalReader:
    """The records of a journal in order. After they have been gone through, `end` is where the last complete one ends
    and `digest` its checksum; `size` is that of the file, larger after an unfinished write. `notes`: those found
    between the records so far."""

    def __init__(self, root: Path, name: str, store: str, epoch: int) -> None:
        self.path = root / name
        self.epoch = epoch
        self.digest = START
        self.end = 0
        self.notes: list[BatchNote] = []
        data = _flushed_bytes(self.path)
        self.size = len(data)
        self._frames = read_frames(data)
        try:
            first = next(self._frames, None)
        except FrameDamaged as damage:
            raise faults.damaged(self.path, damage.reason) from None
        if first is None:
            raise faults.damaged(self.path, "it does not begin as a journal does")
        if first.payload != _beginning(store, epoch):
            raise faults.damaged(self.path, f"it is not the journal of this store after epoch {epoch}")
        self.end, self.digest = first.end, first.digest

    def __iter__(self) -> Iterator[JournalRecord]:
        return self

    def __next__(self) -> JournalRecord:
        try:
            found = next(self._frames)
            while (note := BatchNote.decode(found.payload)) is not None:
                self.notes.append(note)
                self.end, self.digest = found.end, found.digest
                found = next(self._frames)
            record = JournalRecord.decode(found.payload)
            if record.entry.epoch != self.epoch + 1:
                raise faults.damaged(self.path, f"epoch {record.entry.epoch} follows epoch {self.epoch}")
        except FrameDamaged as damage:
            readable = f"epochs up to {self.epoch} can still be read: `elastalog export --at {self.epoch}`"
            reason = f"{damage.reason}, after epoch {self.epoch}"
            raise faults.damaged(self.path, reason, f"restore it from a copy; {readable}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise faults.damaged(self.path, f"the record after epoch {self.epoch} makes no sense: {error}") from None
        self.epoch += 1
        self.end, self.digest = found.end, found.digest
        return record


class JournalWriter:
    """Appends records to a journal that has been read to its end. A forked child cannot: it would write over what the
    process that opened the journal commits."""

    def __init__(self, files: FileSystem, path: Path, end: int, digest: bytes) -> None:
        self.path = path
        self.size = end
        self.is_broken = False
        self._files = files
        self._digest = digest
        self._descriptor = OwnDescriptor(lambda: files.open_to_append(path))

    def append(self, record: JournalRecord | BatchNote) -> None:
        """Writes a record for good. When that fails, the journal is as before; if not even that can be had, it is
        broken and refuses everything else."""
        if self.is_broken:
            raise faults.needs_reopening(self.path)
        descriptor = self._descriptor.number
        if descriptor is None:
            raise faults.other_process(self.path)
        data, digest = frame(record.encode(), self._digest)
        try:
            self._files.append(descriptor, data, "journal")
        except BaseException as error:
            self.cut_off()
            if isinstance(error, OSError):
                raise faults.not_written(self.path, error) from None
            raise
        self.size += len(data)
        self._digest = digest

    def cut_off(self) -> None:
        """Removes what follows the last record."""
        descriptor = self._descriptor.number
        if descriptor is None:
            return
        try:
            self._files.truncate(descriptor, self.size, "journal")
        except BaseException:
            self.is_broken = True

    def sealed(self, digest: Any, size: int) -> FileEntry:
        """The journal as a file that does not change any more. `digest`: the SHA-256 of its first `size` bytes, which
        is continued."""
        with self.path.open("rb") as file:
            file.seek(size)
            digest.update(file.read(self.size - size))
        return FileEntry(self.path.name, self.size, digest.hexdigest())

    def close(self) -> None:
        """Gives up the file."""
        self._descriptor.close()

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            self.close()  # of a store that was not closed; its lock says so


def write_empty(files: FileSystem, root: Path, name: str, store: str, epoch: int) -> tuple[int, bytes]:
    """Writes a journal without records; returns its size and the checksum to continue."""
    data, digest = frame(_beginning(store, epoch), START)
    files.create(root / name, data, "journal")
    return len(data), digest


def is_used(path: Path) -> bool:
    """Whether a file is a journal that has had records, going by its name and its size."""
    number = re.fullmatch(r"journal-(\d+)\.log", path.name)
    if number is None or not path.is_file():
        return False
    empty, _ = frame(_beginning("0" * 16, int(number[1])), START)
    return path.stat().st_size > len(empty)


def _beginning(store: str, epoch: int) -> bytes:
    return json.dumps({"store": store, "epoch": epoch}).encode()


def _flushed_bytes(path: Path) -> bytes:
    """The content of a file, all of it on the disk: no one must see an epoch that a power failure can still undo."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
        try:
            size = os.fstat(descriptor).st_size
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError:
        return read_bytes(path)
    return read_bytes(path)[:size]
