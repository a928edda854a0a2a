"""A store at an address, such as `s3://bucket/reach.store`: a copy that was put there whole. It is read, never written:
what would make sure that one process at a time writes is a lock of the file system."""

from __future__ import annotations

from pathlib import Path

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.folders.addresses import without_secrets
from elastalog.pipeline.remote import RemoteFolder
from elastalog.storage.manifest import FORMAT_FILE, LOCK, POINTER, read_manifest


def fetch_store(address: str) -> Path:
    """Fetches a store into a folder of this process, by the names that its manifest has: nothing is listed. Its files
    are checked when they are read, as always."""
    remote = RemoteFolder(address)
    for name in (FORMAT_FILE, POINTER):
        if remote.fetch(name) is None:
            message = f"`{remote.address}` is not a store: there is no `{name}`"
            advice = "copy one there, made with `elastalog backup STORE FOLDER`"
            raise ElastalogError([Diagnostic("E0801", message, help=advice, location=remote.address)])
    manifest = (remote.folder / POINTER).read_bytes().split(b" ")[0].decode("ascii", "replace")
    remote.fetch(Path(manifest).name)
    for name in sorted(read_manifest(remote.folder).names() - {FORMAT_FILE, POINTER, LOCK, manifest}):
        remote.fetch(name)  # if one is missing, reading it will say so
    return remote.folder


def refuse_to_write(address: str) -> ElastalogError:
    """What is said to who would write there."""
    message = f"a store cannot be written at `{without_secrets(address)}`"
    advice = "open it with `read_only=True`; write a store on a disk, and copy it with `elastalog backup`"
    return ElastalogError([Diagnostic("E0876", message, help=advice)])
