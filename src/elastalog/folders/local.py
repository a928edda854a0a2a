"""Files on this machine, or on storage that it mounts."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pyarrow as pa

_FRESH = ".tmp"


class LocalFiles:
    """See `files.Files`."""

    @contextmanager
    def writing(self, location: str) -> Iterator[pa.NativeFile]:
        import pyarrow as pa

        fresh = f"{location}.{uuid.uuid4().hex[:12]}{_FRESH}"  # several may write a file at the same time: one stays
        try:
            with pa.OSFile(fresh, "wb") as sink:
                yield sink
            os.replace(fresh, location)
        except BaseException:
            Path(fresh).unlink(missing_ok=True)
            raise

    @contextmanager
    def opened(self, location: str) -> Iterator[LocalFile]:
        descriptor = os.open(location, os.O_RDONLY)
        try:
            yield LocalFile(descriptor)
        finally:
            os.close(descriptor)

    @contextmanager
    def parquet(self, location: str) -> Iterator[Any]:
        from pyarrow import parquet

        # Much of a small file's time would go into `read_table`, which looks for whole data sets.
        with parquet.ParquetFile(location, memory_map=True) as file:
            yield file

    def exists(self, location: str) -> bool:
        return os.path.exists(location)

    def remove(self, locations: Iterable[str]) -> None:
        for location in locations:
            Path(location).unlink(missing_ok=True)

    def copy(self, location: str, to: str) -> None:
        try:
            os.link(location, to)
        except FileNotFoundError:
            raise
        except OSError:  # another file system, or one without links
            shutil.copyfile(location, to)

    def make_folder(self, location: str) -> None:
        os.makedirs(location, exist_ok=True)

    def is_folder(self, location: str) -> bool:
        return os.path.isdir(location)

    def remove_folder(self, location: str) -> None:
        shutil.rmtree(location, ignore_errors=True)

    def keep_only(self, location: str, kept: set[str]) -> None:
        for entry in os.scandir(location):
            if entry.is_dir(follow_symlinks=False):
                shutil.rmtree(entry.path, ignore_errors=True)
            elif entry.path not in kept:
                Path(entry.path).unlink(missing_ok=True)

    def listed(self, location: str) -> list[str]:
        return [os.path.join(folder, name) for folder, _, names in os.walk(location) for name in names]


class LocalFile:
    """See `files.OpenedFile`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read_into(self, room: memoryview, offset: int) -> None:
        while room:
            done = os.preadv(self._descriptor, [room], offset)
            if not done:
                raise EOFError("a file is too short")
            room, offset = room[done:], offset + done
