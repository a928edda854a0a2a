"""Files at locations, wherever these are: on this machine or at an address."""

from __future__ import annotations

from collections.abc import Sequence

from elastalog.folders.addresses import is_address
from elastalog.folders.local import Files

_local = Files()


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
