"""Files on this machine, or on storage that it mounts; and folders that no other user can have put anything in, for
what is executed, loaded, or believed when it is read again.

A name in a folder that everyone may write to can be taken by someone else first. So what is kept between runs lies in
the user's own cache, and whose it is gets checked; what is kept for one run lies in a folder with a name that cannot be
guessed.
"""

from __future__ import annotations

import atexit
import os
import shutil
import stat
import tempfile
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_FRESH = ".tmp"


class Files:
    """What can be done with files: here with those of this machine, see `remote.RemoteFiles` for others. A file that is
    out of reach for a while is waited for; FileNotFoundError is raised for one that does not exist, and OSError, or at
    an address UnreachableError, for one that cannot be reached."""

    @contextmanager
    def writing(self, location: str) -> Iterator[pa.NativeFile]:
        """A sink for the content of a file, which appears, whole, at the end of the block. If that raises, it does
        not."""
        import pyarrow as pa

        fresh = f"{location}.{uuid.uuid4().hex[:12]}{_FRESH}"  # several may write a file at the same time: one stays
        try:
            with pa.OSFile(fresh, "wb") as sink:
                yield sink
            os.replace(fresh, location)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise

    def content(self, location: str) -> bytes:
        """The whole of a file."""
        return Path(location).read_bytes()

    @contextmanager
    def parquet(self, location: str) -> Iterator[Any]:
        """A `pyarrow.parquet.ParquetFile`."""
        from pyarrow import parquet

        # Much of a small file's time would go into `read_table`, which looks for whole data sets.
        with parquet.ParquetFile(location, memory_map=True) as file:
            yield file

    def exists(self, location: str) -> bool:
        return os.path.exists(location)

    def remove(self, locations: Iterable[str]) -> None:
        """Removes those of some files that exist."""
        for location in locations:
            Path(location).unlink(missing_ok=True)

    def copy(self, location: str, to: str) -> None:
        """A file at another location of the same kind, as a link if that can be."""
        try:
            os.link(location, to)
        except FileNotFoundError:
            raise
        except OSError:  # another file system, or one without links
            shutil.copyfile(location, to)

    def make_folder(self, location: str) -> None:
        """Makes a folder, with those above it, unless it exists."""
        os.makedirs(location, exist_ok=True)

    def is_folder(self, location: str) -> bool:
        """Whether a folder that was made has not been removed."""
        return os.path.isdir(location)

    def remove_folder(self, location: str) -> None:
        """Removes a folder with everything that is seen in it; whatever cannot be removed stays."""
        shutil.rmtree(location, ignore_errors=True)

    def keep_only(self, location: str, kept: set[str]) -> None:
        """Removes everything that is seen in a folder, except some files."""
        for entry in os.scandir(location):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.path not in kept:
                Path(entry.path).unlink(missing_ok=True)


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
    """Refuses a folder whose entries another user may rename, and so replace. In a sticky one, such as that for
    temporary files, only owners may."""
    found = os.stat(above)
    if found.st_uid not in (0, os.geteuid()):
        raise NotOurs(f"`{above}` belongs to another user")
    if found.st_mode & stat.S_IWOTH and not found.st_mode & stat.S_ISVTX:
        raise NotOurs(f"everyone may write to `{above}`")
