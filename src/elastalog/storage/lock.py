"""One writer at a time: an advisory lock on a file that names its holder. And readers in peace: no file is removed
while they read.

The system releases a lock when its holder ends, however that happens, so a lock file that is left behind locks nothing.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import gc
import json
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.storage import errors
from elastalog.storage.filesystem import OwnDescriptor

_NO_LOCKS = (errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
"""What a file system without locks answers, such as NFS mounted without them."""

_OURSELVES = "this process, in another session"


class WriterLock:
    """Held from construction to `release`. Raises ElastalogError when another process, or session, holds it. One that
    is forgotten is released when Python collects it, with a ResourceWarning. A forked child does not hold it."""

    _descriptor: OwnDescriptor | None = None

    def __init__(self, path: Path) -> None:
        self._path = path
        with errors.writing(path):
            descriptor = OwnDescriptor(lambda: os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644))
        assert descriptor.number is not None
        try:
            _take(descriptor.number, path)
            os.ftruncate(descriptor.number, 0)
            os.pwrite(descriptor.number, _written(), 0)
        except BlockingIOError:
            descriptor.close()
            who, address = _holder(path)
            raise ElastalogError.of("E0804", location=path, holder=who, address=address) from None
        except OSError as error:
            descriptor.close()
            if error.errno in _NO_LOCKS:
                raise ElastalogError.of("E0829", location=path, reason_of=errors.reason_of(error)) from None
            raise errors.not_written(path, error) from None
        self._descriptor = descriptor

    @property
    def is_removed(self) -> bool:
        """Whether its file is gone, with the store or alone: then another process can write as well."""
        number = None if self._descriptor is None else self._descriptor.number
        return number is not None and os.fstat(number).st_nlink == 0

    def release(self) -> None:
        """Gives the lock up."""
        descriptor, self._descriptor = self._descriptor, None
        if descriptor is not None:
            descriptor.close()

    def __del__(self) -> None:
        if self._descriptor is not None and self._descriptor.number is not None:
            self.release()
            told = f"the session of the store `{self._path.parent}` was not closed: use `with`, or `close`"
            warnings.warn(told, ResourceWarning, source=self, stacklevel=1)


def _take(descriptor: int, path: Path) -> None:
    """Locks a file. Raises BlockingIOError when it is locked by another."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        if _holder(path)[0] != _OURSELVES:
            raise
        gc.collect()  # a session that was forgotten, not closed, is in reference cycles, and holds it until then
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def is_held(path: Path) -> bool:
    """Whether a writer holds the lock of a store, as far as can be told."""
    with _locked(path, fcntl.LOCK_SH | fcntl.LOCK_NB) as is_free:
        return not is_free


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Keeps the files of a store where they are for the length of the block. `path` is a file of the store that never
    changes. Where there are no locks, readers do without."""
    with _locked(path, fcntl.LOCK_SH):
        yield


def unread(path: Path) -> AbstractContextManager[bool]:
    """Whether there is no reader; if so, none can begin until the end of the block."""
    return _locked(path, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def _locked(path: Path, operation: int) -> Iterator[bool]:
    """Locks a file until the end of the block. Yields False if another process has locked it; and True, too, if there
    is no such file, or if there are no locks."""
    try:
        descriptor = OwnDescriptor(lambda: os.open(path, os.O_RDONLY | os.O_CLOEXEC))
    except OSError:
        yield True
        return
    is_free = True
    try:
        try:
            if descriptor.number is not None:
                fcntl.flock(descriptor.number, operation)
        except OSError as error:
            is_free = not isinstance(error, BlockingIOError)
        yield is_free
    finally:
        descriptor.close()


def tell_address(path: Path, address: str) -> None:
    """Says in the file of a lock, which this process holds, where the store can be asked over HTTP."""
    with contextlib.suppress(OSError):
        path.write_bytes(_written(address=address))


def _written(**more: str) -> bytes:
    return json.dumps({"pid": os.getpid(), "host": socket.gethostname(), **more}).encode()


def _holder(path: Path) -> tuple[str, str | None]:
    """Who holds a lock, and its address if that is a service."""
    try:
        holder = json.loads(path.read_bytes())
        pid, host, address = int(holder["pid"]), str(holder["host"]), holder.get("address")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "another process", None
    if host != socket.gethostname():
        return f"process {pid} on {host}", address
    return (_OURSELVES if pid == os.getpid() else f"process {pid}"), address
