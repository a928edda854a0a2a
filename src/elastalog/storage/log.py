"""The log of a store, without its relations."""

from __future__ import annotations

import os
from pathlib import Path

from elastalog.storage.entries import LogEntry
from elastalog.storage.lock import reading
from elastalog.storage.manifest import FORMAT_FILE
from elastalog.storage.store import Store


def read_log(path: str | os.PathLike[str]) -> tuple[LogEntry, ...]:
    """The entries of all epochs kept, oldest first."""
    root = Path(path)
    with reading(root / FORMAT_FILE):
        return Store.open(root, read_only=True).log()
