"""A copy of a store, put at an address."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from elastalog.storage.filesystem import FileSystem
from elastalog.storage.objects.writing import already_there, writable_copy


def copied_to(address: str, back_up: Callable[[Path, FileSystem], int]) -> int:
    """Has a store backed up into an address where there is none. Returns the epoch of the copy."""
    copy = writable_copy(address)
    try:
        if not copy.is_new:
            raise already_there(address)
        return back_up(copy.folder, copy.files)
    finally:
        copy.files.release()
