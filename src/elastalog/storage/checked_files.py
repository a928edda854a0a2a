"""Files that are written once and never changed, with their checksums."""

from __future__ import annotations

from hashlib import file_digest, sha256
from pathlib import Path

from elastalog.late import dataclass
from elastalog.storage import faults
from elastalog.storage.filesystem import FileSystem


@dataclass(frozen=True, slots=True)
class FileEntry:
    """A file, by its path within the store, its size and SHA-256."""

    name: str
    bytes: int
    sha256: str


def write_checked(files: FileSystem, root: Path, name: str, data: bytes, purpose: str) -> FileEntry:
    """Writes a file, flushed to the disk."""
    files.create(root / name, data, purpose)
    return FileEntry(name, len(data), sha256(data).hexdigest())


def read_checked(root: Path, entry: FileEntry) -> bytes:
    """The content of a file, after its checksum. Raises StoreDamaged when it is not what was written."""
    path = root / entry.name
    data = read_bytes(path)
    if len(data) != entry.bytes:
        raise faults.damaged(path, f"it has {len(data):,} bytes instead of {entry.bytes:,}")
    if sha256(data).hexdigest() != entry.sha256:
        raise faults.damaged(path, "its checksum does not match")
    return data


def require_digest(path: Path, entry: FileEntry, source: Path) -> None:
    """Raises StoreDamaged unless a file has its checksum, without holding it in memory. `source`: where it is from."""
    try:
        with path.open("rb") as file:
            if file_digest(file, "sha256").hexdigest() != entry.sha256:
                raise faults.damaged(source, "its checksum does not match")
    except FileNotFoundError:
        raise faults.missing(source) from None
    except OSError as error:
        raise faults.not_readable(source, error) from None


def read_bytes(path: Path) -> bytes:
    """The content of a file of a store."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise faults.missing(path) from None
    except OSError as error:
        raise faults.not_readable(path, error) from None
