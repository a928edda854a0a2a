"""The log of a store, without its relations."""

from __future__ import annotations

import os
from pathlib import Path

from elastalog.storage.entries import LogEntry
from elastalog.storage.store import Store


def read_log(path: str | os.PathLike[str]) -> tuple[LogEntry, ...]:
    """The entries of all epochs kept, oldest first."""
    return Store.open(Path(path), read_only=True).log()
