"""Files at locations, wherever these are: on this machine or at an address."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from elastalog.folders.addresses import is_address
from elastalog.folders.local import LocalFiles

if TYPE_CHECKING:
    import pyarrow as pa


class OpenedFile(Protocol):
    """A file that is read in stretches."""

    def read_into(self, room: memoryview, offset: int) -> None:
        """Fills room with what stands from an offset on. Raises EOFError if the file is too short."""


class Files(Protocol):
    """What can be done with files. Whatever is away for a while is waited for; FileNotFoundError is raised for what
    does not exist, and OSError, or for an address UnreachableError, for what cannot be reached."""

    def writing(self, location: str) -> AbstractContextManager[pa.NativeFile]:
        """A sink for the content of a file, which appears, whole, at the end of the block. If that raises, it does
        not."""

    def opened(self, location: str) -> AbstractContextManager[OpenedFile]: ...

    def parquet(self, location: str) -> AbstractContextManager[Any]:
        """A `pyarrow.parquet.ParquetFile`."""

    def exists(self, location: str) -> bool: ...

    def remove(self, locations: Iterable[str]) -> None:
        """Removes those of some files that exist."""

    def copy(self, location: str, to: str) -> None:
        """A file at another location of the same kind, as a link if that can be."""

    def make_folder(self, location: str) -> None:
        """Makes a folder, with those above it, unless it exists."""

    def is_folder(self, location: str) -> bool:
        """Whether a folder that was made has not been removed."""

    def remove_folder(self, location: str) -> None:
        """Removes a folder with all that it is seen to hold; whatever cannot be removed stays."""

    def keep_only(self, location: str, kept: set[str]) -> None:
        """Removes what a folder is seen to hold beside some files."""

    def listed(self, location: str) -> list[str]:
        """The files in a folder and those below it, as far as they are seen: for news, not for work."""


_local = LocalFiles()


def files_at(location: str) -> Files:
    """The files of the kind that a location is of."""
    if not is_address(location):
        return _local
    from elastalog.folders.remote import remote_files

    return remote_files(location)


def put(location: str, *parts: bytes | memoryview) -> None:
    """Writes a file; it appears whole."""
    with files_at(location).writing(location) as sink:
        for part in parts:
            sink.write(part)


def remove(locations: Sequence[str]) -> None:
    """Removes those of some files of one kind that exist."""
    if locations:
        files_at(locations[0]).remove(locations)
