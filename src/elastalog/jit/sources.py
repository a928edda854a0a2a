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
FOLDERS = ("jit", "backends/kernel")
"""Where pieces lie, in sub-folders too. Operators elsewhere have theirs from here."""


def digest_of(package: Path) -> str:
    """Of the sources as they are now. In an archive, which has no such files, it is that of nothing."""
    digest = blake2b(digest_size=5)
    for folder in FOLDERS:
        for path in sorted(_sources(package / folder)):
            stat = path.stat()
            digest.update(f"{path.relative_to(package)} {stat.st_mtime_ns} {stat.st_size}\n".encode())
    return digest.hexdigest()


def _sources(folder: Path) -> Iterator[Path]:
    with suppress(OSError):
        for entry in os.scandir(folder):
            if entry.name.startswith((".", "__pycache__")):
                continue
            if entry.is_dir():
                yield from _sources(Path(entry.path))
            elif entry.name.endswith(".py"):
                yield Path(entry.path)


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
