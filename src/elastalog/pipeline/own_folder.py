"""Folders that no other user can have put anything in: for what is executed, loaded, or believed when it is read again.

A name in a folder that everyone may write to can be taken by someone else first. So what is kept between runs lies in
the user's own cache, and whose it is gets checked; what is kept for one run lies in a folder with a name that nobody
can guess.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
from pathlib import Path

_WRITABLE_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


class NotOurs(OSError):
    """A folder belongs to another user, or others may write to it."""


def own_folder(path: Path) -> Path:
    """Makes a folder, with those above it, unless it is there. Raises NotOurs when it is, or is in, a folder where
    another user can put files, and OSError when it cannot be made."""
    path = Path(os.path.abspath(path))
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.mkdir(mode=0o700, exist_ok=True)
    found = os.lstat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise NotOurs(f"`{path}` is no folder")
    if found.st_uid != os.geteuid() or found.st_mode & _WRITABLE_BY_OTHERS:
        raise NotOurs(f"`{path}` belongs to another user, or others may write to it")
    for above in path.resolve().parents:
        _refuse_foreign(above)
    return path


def user_cache() -> Path | None:
    """Our folder in the user's cache; None where there is none that can be trusted."""
    try:
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        return own_folder(cache / "elastalog")
    except (OSError, RuntimeError):
        return None


def folder_of_this_process() -> Path:
    """A new folder with a name of its own, removed when this process ends."""
    folder = Path(tempfile.mkdtemp(prefix="elastalog-"))
    maker = os.getpid()
    atexit.register(lambda: shutil.rmtree(folder, ignore_errors=True) if os.getpid() == maker else None)
    return folder


def _refuse_foreign(above: Path) -> None:
    """Whoever may rename what is in a folder can put another in its place. In a sticky one, such as that for temporary
    files, only owners may."""
    found = os.stat(above)
    if found.st_uid not in (0, os.geteuid()):
        raise NotOurs(f"`{above}` belongs to another user")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise NotOurs(f"everyone may write to `{above}`")
