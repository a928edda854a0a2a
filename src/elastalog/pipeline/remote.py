"""Folders at an address, such as `s3://bucket/facts`: what is read from there is first fetched into a folder of this
process. Who may read, and where an endpoint is, pyarrow finds out as it always does: from the environment, from the
files of the cloud's own tools, or from the address."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.folders.addresses import inside, without_secrets
from elastalog.folders.local import folder_of_this_process
from elastalog.folders.remote import UnreachableError, remote_files, system_at


class RemoteFolder:
    """A folder at an address, of which files are fetched into `folder`. `given`: the address with what is secret in it;
    `address` is to be shown."""

    def __init__(self, address: str) -> None:
        self.given = address
        self.address = without_secrets(address)
        try:
            self._files, self._root = system_at(address)
        except UnreachableError as fault:  # an unknown scheme, or no such option
            raise self._unreadable(fault) from None
        self.folder = folder_of_this_process()

    def fetch(self, name: str) -> Path | None:
        """Fetches a file by its path within the folder. None if there is none."""
        to = self.folder / name
        if not to.resolve().is_relative_to(self.folder.resolve()):  # names come from far away
            raise self._unreadable(ValueError(f"it has a file named `{name}`"))
        to.parent.mkdir(parents=True, exist_ok=True)
        data = self.read(name)
        if data is None:
            return None
        to.write_bytes(data)
        return to

    def read(self, name: str) -> bytes | None:
        """The content of a file by its path within the folder. None if there is none."""
        try:
            content: bytes = remote_files(self.given).content(inside(self.given, name)).to_pybytes()
            return content
        except FileNotFoundError:
            return None
        except UnreachableError as fault:
            raise self._unreadable(fault) from None

    def fetch_all(self) -> Path:
        """Fetches every file. Raises ElastalogError if the folder is not there."""
        from pyarrow import fs

        try:
            found: list[Any] = self._files.get_file_info(fs.FileSelector(self._root, recursive=True))
        except OSError as fault:
            raise self._unreadable(fault) from None
        for info in found:
            if info.type is fs.FileType.File:
                self.fetch(os.path.relpath(info.path, self._root))
        return self.folder

    def _unreadable(self, fault: Exception) -> ElastalogError:
        if self.address.startswith(("http:", "https:")):
            return error("E0875.service", location=self.address, address=self.address)
        why = " ".join(fault.diagnostics[0].notes) if isinstance(fault, UnreachableError) else str(fault)
        return error("E0875", location=self.address, address=self.address, why=without_secrets(why)[:300])
