"""Compiled operators that are out of date. Numba compiles an operator again when its own file has changed, but not when
a piece compiled into it has, which lies in another file; and an operator that disagrees with the rest about a layout
computes nonsense. So the names of cached operators hold a digest of all files with pieces."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from hashlib import blake2b
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent
FOLDERS = ("native", "backends/kernel", "backends/kernel/machine")
"""Where pieces lie. Operators elsewhere have theirs from here."""


def digest_of(package: Path) -> str:
    """Of the sources as they are now. In an archive, which has no such files, it is that of nothing."""
    digest = blake2b(digest_size=5)
    for folder in FOLDERS:
        with suppress(OSError):
            for entry in sorted(os.scandir(package / folder), key=lambda entry: entry.name):
                if entry.name.endswith(".py") and not entry.name.startswith("."):
                    stat = entry.stat()
                    digest.update(f"{folder}/{entry.name} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return digest.hexdigest()


# Of the files that this process has imported, or is about to; not of what they may become while it runs.
DIGEST = digest_of(_PACKAGE)


@cache
def remove_outdated(package: Path = _PACKAGE, digest: str = DIGEST) -> int:
    """Removes cached operators of other sources, once a process; returns how many files it were."""
    removed = 0
    for path in _cached(package):
        if digest not in path.name:
            with suppress(OSError):  # another process has done so, or nobody may
                path.unlink()
                removed += 1
    return removed


def _cached(package: Path) -> Iterator[Path]:
    for folder in package.rglob("__pycache__"):
        yield from folder.glob("*.nb[ic]")
