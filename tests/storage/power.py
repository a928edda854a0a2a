"""What a power failure may leave: a disk that writes down what is asked of it, and the images it could be found with.

What was written and not flushed may be there, or not, or in part: a file may end at any byte of it, and each of its
pages may be as it was (zeros, where nothing was). What was done to the names of a folder and not flushed may have been
done or not, one thing independently of the others. Flushing a file does not flush its name.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import TypeAlias

import pytest

from elastalog.storage import administration, store
from elastalog.storage.filesystem import FileSystem

PAGE = 4096


@dataclass(frozen=True, slots=True)
class Wrote:
    """`at`: from which byte on. Cutting off a file writes nothing, at its new end."""

    file: int
    at: int
    data: bytes
    cuts: bool = False


@dataclass(frozen=True, slots=True)
class Named:
    """A name stands for a file from now on, or for none; `gone`: another name that stops to, at the same instant."""

    name: str
    file: int | None
    gone: str | None = None


@dataclass(frozen=True, slots=True)
class Flushed:
    """A file, or the names in a folder."""

    what: int | str


@dataclass(frozen=True, slots=True)
class Told:
    """Someone was told that an epoch is committed, or that another thing is done."""

    epoch: int


Event: TypeAlias = Wrote | Named | Flushed | Told
Image: TypeAlias = dict[str, bytes | None]
"""Files with their content, and folders with None, by their paths below a root."""

FOLDER = -1
"""Stands for a folder in place of a file."""


class RecordingDisk(FileSystem):
    """Does everything below a folder, and writes it down."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.events: list[Event] = []
        self._files: dict[str, int] = {}
        self._open_files: dict[int, tuple[str, int, int]] = {}
        self._lock = threading.RLock()  # a snapshot is written in a thread of its own
        self._next = 0
        self._read(root)

    def _read(self, root: Path) -> None:
        """Takes over what is there already, as flushed."""
        for path in sorted(root.rglob("*")):
            name = self._name(path)
            if path.is_file():
                self._files[name] = self._next
                self.events += [Wrote(self._next, 0, path.read_bytes()), Flushed(self._next), Named(name, self._next)]
                self._next += 1
            else:
                self.events.append(Named(name, FOLDER))
            self.events.append(Flushed(_parent(name)))

    def _name(self, path: Path) -> str:
        return "" if path.absolute() == self.root else path.absolute().relative_to(self.root).as_posix()

    def tell(self, epoch: int) -> None:
        with self._lock:
            self.events.append(Told(epoch))

    def _open(self, path: Path, flags: int) -> int:
        with self._lock:
            is_new = not path.exists()
            descriptor = super()._open(path, flags)
            name = self._name(path)
            if flags & os.O_DIRECTORY:
                self._open_files[descriptor] = name, FOLDER, flags
                return descriptor
            if is_new:
                self._files[name] = self._next
                self.events.append(Named(name, self._next))
                self._next += 1
            elif flags & os.O_TRUNC:
                self.events.append(Wrote(self._files[name], 0, b"", cuts=True))
            self._open_files[descriptor] = name, self._files[name], flags
            return descriptor

    def _write(self, descriptor: int, data: memoryview) -> int:
        with self._lock:
            _, file, flags = self._open_files[descriptor]
            is_end = bool(flags & os.O_APPEND)
            at = os.fstat(descriptor).st_size if is_end else os.lseek(descriptor, 0, os.SEEK_CUR)
            written = super()._write(descriptor, data)
            self.events.append(Wrote(file, at, bytes(data[:written])))
            return written

    def _truncate(self, descriptor: int, size: int) -> None:
        with self._lock:
            super()._truncate(descriptor, size)
            self.events.append(Wrote(self._open_files[descriptor][1], size, b"", cuts=True))

    def _fsync(self, descriptor: int) -> None:
        with self._lock:
            name, file, _ = self._open_files[descriptor]
            self.events.append(Flushed(name if file == FOLDER else file))

    def _rename(self, path: Path, to: Path) -> None:
        with self._lock:
            super()._rename(path, to)
            gone, name = self._name(path), self._name(to)
            self._files[name] = self._files.pop(gone)
            self.events.append(Named(name, self._files[name], gone))

    def remove(self, path: Path) -> None:
        with self._lock:
            super().remove(path)
            name = self._name(path)
            self._files.pop(name, None)
            self.events.append(Named(name, None))

    def _make(self, path: Path) -> None:
        with self._lock:
            super()._make(path)
            self.events.append(Named(self._name(path), FOLDER))


@contextmanager
def recorded(root: Path, kind: type[RecordingDisk] = RecordingDisk) -> Iterator[RecordingDisk]:
    """Stores that are made or opened in the block use one disk, which writes everything down. Not for those opened
    before it."""
    disk = kind(root.absolute())
    with pytest.MonkeyPatch.context() as patch:
        for module in (store, administration):
            patch.setattr(module, "FileSystem", lambda: disk)
        yield disk


@dataclass(slots=True)
class _File:
    flushed: bytes = b""
    pending: list[Wrote] = field(default_factory=list)


class Disk:
    """A disk after some events, and what a power failure at this instant could make of it."""

    def __init__(self) -> None:
        self.told = 0
        self._files: dict[int, _File] = {}
        self._names: dict[str, int] = {}
        self._pending: list[Named] = []

    def take(self, event: Event) -> None:
        match event:
            case Told(epoch):
                self.told = epoch
            case Wrote(file):
                self._files.setdefault(file, _File()).pending.append(event)
            case Named():
                self._pending.append(event)
                if event.file is not None and event.file != FOLDER:
                    self._files.setdefault(event.file, _File())
            case Flushed(str() as folder):
                for named in self._pending:
                    if folder in _folders(named):
                        _rename(self._names, named)
                self._pending = [named for named in self._pending if folder not in _folders(named)]
            case Flushed(int() as file):
                found = self._files.setdefault(file, _File())
                found.flushed = _content(found.flushed, found.pending)
                found.pending = []

    @property
    def has_pending(self) -> bool:
        return bool(self._pending) or any(file.pending for file in self._files.values())

    def without_pending(self) -> Image:
        """Nothing is there that was not flushed."""
        return self._image(self._names, {number: file.flushed for number, file in self._files.items()})

    def with_pending(self) -> Image:
        """Everything is there."""
        names = dict(self._names)
        for named in self._pending:
            _rename(names, named)
        return self._image(names, {n: _content(file.flushed, file.pending) for n, file in self._files.items()})

    def torn(self, random: Random) -> Image:
        """Some of what was not flushed is there, in any order."""
        names = dict(self._names)
        likely = random.choice((0.2, 0.5, 0.8))
        for named in self._pending:
            if random.random() < likely:
                _rename(names, named)
        contents = {}
        for number, file in self._files.items():
            kept = [wrote for wrote in file.pending if random.random() < likely]
            content = _content(file.flushed, kept)
            contents[number] = _tear(content, file.flushed, random) if kept else content
        return self._image(names, contents)

    def _image(self, names: dict[str, int], contents: dict[int, bytes]) -> Image:
        """What can be reached from the root."""
        image: Image = {}
        for name in sorted(names):
            if not (parent := _parent(name)) or parent in image:
                image[name] = None if names[name] == FOLDER else contents[names[name]]
        return image


def _parent(name: str) -> str:
    return name.rpartition("/")[0]


def _folders(named: Named) -> set[str]:
    return {_parent(named.name)} | ({_parent(named.gone)} if named.gone is not None else set())


def _rename(names: dict[str, int], named: Named) -> None:
    if named.gone is not None:
        names.pop(named.gone, None)
    if named.file is None:
        names.pop(named.name, None)
    else:
        names[named.name] = named.file


def _content(flushed: bytes, pending: list[Wrote]) -> bytes:
    content = bytearray(flushed)
    for wrote in pending:
        if wrote.cuts:
            del content[wrote.at :]
            continue
        content.extend(bytes(max(0, wrote.at - len(content))))
        content[wrote.at : wrote.at + len(wrote.data)] = wrote.data
    return bytes(content)


def _tear(content: bytes, flushed: bytes, random: Random) -> bytes:
    """Ends at any byte behind what was flushed, or has pages that are as they were."""
    if len(content) <= len(flushed) or random.random() < 0.3:
        return content
    if random.random() < 0.5:
        return content[: random.randrange(len(flushed), len(content) + 1)]
    before = flushed + bytes(len(content) - len(flushed))
    pages = [random.random() < 0.5 for _ in range(0, len(content), PAGE)]
    parts = [(content if is_new else before)[n * PAGE : (n + 1) * PAGE] for n, is_new in enumerate(pages)]
    return b"".join(parts)


def digest_of(image: Image) -> bytes:
    """Tells images apart."""
    found = sha256()
    for name in sorted(image):
        content = image[name]
        found.update(f"{name}\0{None if content is None else len(content)}\0".encode())
        found.update(content or b"")
    return found.digest()


def put(image: Image, folder: Path) -> None:
    """Makes a folder that holds an image."""
    folder.mkdir()
    for name in sorted(image):
        content, path = image[name], f"{folder}/{name}"
        if content is None:
            os.mkdir(path)
        else:
            with open(path, "wb") as file:
                file.write(content)
