"""The journal: one record for every epoch since a snapshot, appended and flushed at commit.

Its first frame names the store and the epoch that it continues, so that a journal cannot be mistaken for another.

    frame: b"ELOG"  length of the payload (u32)  CRC-32 of those eight bytes (u32)  payload  SHA-256 (32 bytes)

Numbers are little-endian. The SHA-256 is taken over that of the frame before and the payload as stored, so a frame
cannot be moved, left out, or come from elsewhere unnoticed. Payloads longer than a page are compressed with zlib; that
also keeps pages of zeros out of them, which is how a page that was never written is recognised after a power failure.
"""

from __future__ import annotations

import json
import os
import re
import struct
import zlib
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, finding
from elastalog.late import dataclass
from elastalog.storage import errors
from elastalog.storage.entries import BatchNote, JournalRecord
from elastalog.storage.filesystem import FileEntry, FileSystem, OwnDescriptor, read_bytes


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
            raise errors.damaged(self.path, str(damage)) from None
        if first is None:
            raise errors.damaged(self.path, "it does not begin as a journal does")
        if first.payload != _beginning(store, epoch):
            raise errors.damaged(self.path, f"it is not the journal of this store after epoch {epoch}")
        self.end, self.digest = first.end, first.digest

    def unfinished(self, key: str = "E0816") -> list[Diagnostic]:
        """A warning of what an unfinished write has left behind the last record, if anything."""
        size = self.size - self.end
        return [finding(key, severity="warning", location=self.path, size=size, epoch=self.epoch)] if size else []

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
                raise errors.damaged(self.path, f"epoch {record.entry.epoch} follows epoch {self.epoch}")
        except FrameDamaged as damage:
            readable = f"epochs up to {self.epoch} can still be read: `elastalog export --at {self.epoch}`"
            reason = f"{damage}, after epoch {self.epoch}"
            raise errors.damaged(self.path, reason, f"restore it from a copy; {readable}") from None
        except (ValueError, KeyError, TypeError) as error:
            raise errors.damaged(self.path, f"the record after epoch {self.epoch} makes no sense: {error}") from None
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
        """Writes a record and flushes it to the disk. If that fails, the journal is as before; if even that cannot be
        restored, it is broken and refuses everything else."""
        if self.is_broken:
            raise errors.needs_reopening(self.path)
        descriptor = self._descriptor.number
        if descriptor is None:
            raise ElastalogError.of("E0819", location=self.path)
        data, digest = frame(record.encode(), self._digest)
        try:
            self._files.append(descriptor, data)
        except BaseException as error:
            self.cut_off()
            if isinstance(error, OSError):
                raise errors.not_written(self.path, error) from None
            raise
        self.size += len(data)
        self._digest = digest

    def cut_off(self) -> None:
        """Removes what follows the last record."""
        descriptor = self._descriptor.number
        if descriptor is None:
            return
        try:
            self._files.truncate(descriptor, self.size)
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
    files.create(root / name, data)
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


# --- frames ----------------------------------------------------------------------------------------------------------


MAGIC = b"ELOG"
START = b"\0" * 32
"""The checksum that the first frame of a file continues."""

_PAGE = 4096
_HEAD = struct.Struct("<4sII")
_DIGEST = 32
_PLAIN, _PACKED = b"\0", b"\1"


class FrameDamaged(Exception):
    """A frame that is not what was written, and no unfinished write either; the message says why."""


@dataclass(frozen=True, slots=True)
class Frame:
    """A payload, the checksum to continue with, and where the next frame starts."""

    payload: bytes
    digest: bytes
    end: int


def frame(payload: bytes, digest: bytes) -> tuple[bytes, bytes]:
    """The bytes of a frame after one with a checksum, and its own checksum."""
    stored = _PACKED + zlib.compress(payload, 1) if len(payload) > _PAGE // 2 else _PLAIN + payload
    head = MAGIC + struct.pack("<I", len(stored))
    own = sha256(digest + stored).digest()
    return head + struct.pack("<I", zlib.crc32(head)) + stored + own, own


def read_frames(data: bytes) -> Iterator[Frame]:
    """The frames of a file, up to its end or to an unfinished write. Raises FrameDamaged for anything else."""
    digest, offset = START, 0
    while offset + _HEAD.size <= len(data):
        magic, length, check = _HEAD.unpack_from(data, offset)
        if magic != MAGIC or check != zlib.crc32(data[offset : offset + 8]):
            if _has_unwritten_page(data, offset, offset + _HEAD.size) and not _has_record(data, offset):
                return
            raise FrameDamaged(f"no record starts at byte {offset}")
        end = offset + _HEAD.size + length + _DIGEST
        if end > len(data):
            return
        stored = data[offset + _HEAD.size : end - _DIGEST]
        digest = sha256(digest + stored).digest()
        if digest != data[end - _DIGEST : end]:
            if end == len(data) and _has_unwritten_page(data, offset, end):
                return
            raise FrameDamaged(f"the checksum of the record at byte {offset} does not match")
        payload = zlib.decompress(stored[1:]) if stored[:1] == _PACKED else stored[1:]
        yield Frame(payload, digest, end)
        offset = end


def _has_record(data: bytes, start: int) -> bool:
    """Whether a record seems to start behind some byte. Then what is there was on the disk before it, and is damaged:
    an unfinished write is the last."""
    while (start := data.find(MAGIC, start + 1)) >= 0:
        if start + _HEAD.size <= len(data):
            _, _, check = _HEAD.unpack_from(data, start)
            if check == zlib.crc32(data[start : start + 8]):
                return True
    return False


def _has_unwritten_page(data: bytes, start: int, end: int) -> bool:
    """Whether the part of some page within a range is all zeros."""
    while start < end:
        stop = min(end, (start // _PAGE + 1) * _PAGE)
        if not any(data[start:stop]):
            return True
        start = stop
    return False
