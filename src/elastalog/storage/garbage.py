"""Files of a store that nothing refers to: left by a crash, or by a snapshot that took their place."""

from __future__ import annotations

import re
from pathlib import Path

from elastalog.storage.filesystem import FileSystem
from elastalog.storage.lock import unread
from elastalog.storage.manifest import FORMAT_FILE, Manifest

# Only what a store writes itself is ever removed.
_OURS = re.compile(
    r"manifest-\d+\.json|program-\d+\.dl|journal-\d+\.log|CURRENT\.new|facts/\d+-[\w.-]*-\d+\.parquet"
    r"|dictionary/(symbols|patterns)-\d+-\d+\.parquet"
)


def unreferenced(root: Path, manifest: Manifest) -> list[Path]:
    """The files of a store that its manifest does not need, in order of name."""
    needed = manifest.names()
    found = [path for folder in (root, root / "facts", root / "dictionary") for path in folder.glob("*")]
    names = {path.relative_to(root).as_posix(): path for path in found}
    return [path for name, path in sorted(names.items()) if name not in needed and is_ours(name)]


def is_ours(name: str) -> bool:
    """Whether a file has the name of one that a store writes, and removes."""
    return _OURS.fullmatch(name) is not None


def collect(files: FileSystem, root: Path, manifest: Manifest) -> None:
    """Removes the files that a manifest in force does not need, unless someone is reading: they may be of a manifest
    before it. Then they go the next time."""
    found = unreferenced(root, manifest)
    if found:
        with unread(root / FORMAT_FILE) as is_unread:
            for path in found if is_unread else ():
                files.remove(path)
