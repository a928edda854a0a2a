"""Files of a store that nothing refers to: left by a crash, or by a snapshot that took their place."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

from elastalog.storage.filesystem import FileSystem
from elastalog.storage.manifest import Manifest

# Only what a store writes itself is ever removed.
_OURS = re.compile(
    r"manifest-\d+\.json|journal-\d+\.log|CURRENT\.new|facts/\d+-[\w.-]*-\d+\.parquet"
    r"|dictionary/(symbols|patterns)-\d+-\d+\.parquet"
)


def unreferenced(root: Path, manifest: Manifest) -> list[Path]:
    """The files of a store that its manifest does not need, in order of name."""
    needed = manifest.names()
    found = [path for folder in (root, root / "facts", root / "dictionary") for path in folder.glob("*")]
    names = {path.relative_to(root).as_posix(): path for path in found}
    return [path for name, path in sorted(names.items()) if name not in needed and _OURS.fullmatch(name)]


def collect(files: FileSystem, paths: Iterable[Path]) -> None:
    """Removes files."""
    for path in paths:
        files.remove(path)
