"""One writer at a time: an advisory lock on a file that names its holder.

The system gives the lock up when its holder ends, however that happens, so a lock file left behind is no lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
from pathlib import Path

from elastalog.storage import faults


class WriterLock:
    """Held from construction to `release`. Raises ElastalogError when another process, or session, holds it."""

    def __init__(self, path: Path) -> None:
        try:
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise faults.not_written(path, error) from None
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            holder = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, holder, 0)
        except BlockingIOError:
            os.close(self._descriptor)
            raise faults.locked(path, _holder(path)) from None
        except OSError as error:
            os.close(self._descriptor)
            raise faults.not_written(path, error) from None

    def release(self) -> None:
        """Gives the lock up."""
        with contextlib.suppress(OSError):
            os.close(self._descriptor)


def _holder(path: Path) -> str:
    try:
        holder = json.loads(path.read_bytes())
        pid, host = int(holder["pid"]), str(holder["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
    if host != socket.gethostname():
        return f"process {pid} on {host}"
    return "this process, in another session" if pid == os.getpid() else f"process {pid}"
