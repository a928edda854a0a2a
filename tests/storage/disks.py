"""Disks that fail, dawdle, or wait."""

from __future__ import annotations

import os
import threading
from pathlib import Path

from elastalog.session import Session
from elastalog.storage.filesystem import FileSystem


class FailingDisk(FileSystem):
    """Fails at the n-th write, having written half of it, or at the n-th fsync; works again afterwards."""

    def __init__(self, code: int, writes: int = 0, fsyncs: int = 0) -> None:
        self.code = code
        self.writes = writes
        self.fsyncs = fsyncs

    def _write(self, descriptor: int, data: memoryview) -> int:
        self.writes -= 1
        if self.writes == 0:
            os.write(descriptor, data[: len(data) // 2])
            raise OSError(self.code, os.strerror(self.code))
        return super()._write(descriptor, data)

    def _fsync(self, descriptor: int) -> None:
        self.fsyncs -= 1
        if self.fsyncs == 0:
            raise OSError(self.code, os.strerror(self.code))
        super()._fsync(descriptor)


class SlowDisk(FileSystem):
    """Writes a few bytes at a time, as a disk may."""

    def _write(self, descriptor: int, data: memoryview) -> int:
        return super()._write(descriptor, data[:7])


def use(session: Session, disk: FileSystem) -> None:
    session._history.store._files = disk
    assert session._history.store._journal is not None
    session._history.store._journal._files = disk


class GatedDisk(FileSystem):
    """Holds threads other than the main one at a gate before they write the facts of a relation, until it is opened.
    `is_reached`: one stands there."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.is_reached = threading.Event()

    def create(self, path: Path, data: bytes) -> None:
        if path.parent.name == "facts" and threading.current_thread() is not threading.main_thread():
            self.is_reached.set()
            assert self.gate.wait(60)
        super().create(path, data)
