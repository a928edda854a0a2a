"""Numba finds a compiled operator outdated when its own file has changed, but not when a piece compiled into it has,
which lies in another file. An operator that disagrees with the rest about a layout computes nonsense: those go."""

from __future__ import annotations

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

_PACKAGE = Path(__file__).parent.parent


@cache
def remove_outdated(package: Path = _PACKAGE) -> int:
    """Removes the compiled operators of a package that are older than the latest change of a file in a folder of
    operators. Looks once a process; returns how many there were."""
    compiled = [path for folder in package.rglob("__pycache__") for path in folder.glob("*.nbi")]
    if not compiled:  # as in an archive
        return 0
    folders = {Path(__file__).parent, *(path.parent.parent for path in compiled)}
    latest = max(entry.stat().st_mtime for folder in folders for entry in os.scandir(folder) if _is_source(entry))
    removed = 0
    for path in compiled:
        with suppress(OSError):  # another process has done so, or nobody may
            if path.stat().st_mtime < latest:
                path.unlink()
                removed += 1
    return removed


def _is_source(entry: os.DirEntry[str]) -> bool:
    return entry.name.endswith(".py")
