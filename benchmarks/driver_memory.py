"""The memory of this process: what it may have, and the most that it had."""

from __future__ import annotations

import resource
import threading
from pathlib import Path
from types import TracebackType

_STATUS = Path("/proc/self/status")
_SECONDS = 0.05


def limit(mebibytes: int) -> None:
    """From now on this process may have so much memory of its own; files that are mapped do not count. What it starts
    later has the same limit: Java must run already."""
    resource.setrlimit(resource.RLIMIT_DATA, (mebibytes << 20, mebibytes << 20))


class Peak:
    """The most memory of its own, and of files mapped into it, that this process had within the block, in MiB."""

    def __init__(self) -> None:
        self.own = self.mapped = 0
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Peak:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end.set()
        self._thread.join()

    def _look(self) -> None:
        while not self._end.wait(_SECONDS):
            lines = dict(line.split(":", 1) for line in _STATUS.read_text().splitlines() if line.startswith("Rss"))
            own, files, shared = (int(lines[f"Rss{kind}"].split()[0]) >> 10 for kind in ("Anon", "File", "Shmem"))
            self.own = max(self.own, own)
            self.mapped = max(self.mapped, files + shared)
