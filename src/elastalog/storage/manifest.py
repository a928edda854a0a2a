"""The manifest: which files make up a store, with their checksums.

A manifest is written once, under a new name; the file `CURRENT` names the one that holds, with its checksum. Moving
that pointer is the instant at which a new set of files replaces the old.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import field
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any

from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.diagnostics.nearest import path_near
from elastalog.late import dataclass
from elastalog.relations.faults import shown
from elastalog.storage import errors
from elastalog.storage.entries import LogEntry
from elastalog.storage.filesystem import FileEntry, FileSystem, read_bytes
from elastalog.storage.journal import is_used

FORMAT = 1
FORMAT_FILE = "FORMAT"
FORMAT_TEXT = "elastalog store "
POINTER = "CURRENT"
LOCK = "LOCK"
RETENTION = 1000
"""How many epochs can be gone back unless the user says otherwise."""


def is_store(path: Path) -> bool:
    """Whether a store is in a folder, whatever its state."""
    return (path / POINTER).exists()


BY_SETS = ("dred", "dredc", "bf", "bfc", "counting")
"""Strategies under which the number that stands for a level is even for explicit facts and odd for others, and twice
the number of derivations that they count in it beside."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a store is evaluated and kept. `retention`: how many epochs can be gone back. A snapshot is due when the
    journal has more than `journal_share` of the snapshot's bytes (and more than `journal_bytes`), or `journal_epochs`
    epochs."""

    strategy: str = "elastic"
    levels: str = "local"
    retention: int = RETENTION
    journal_share: float = 0.5
    journal_bytes: int = 1 << 18
    journal_epochs: int = 1000
    functors: Mapping[str, str] = field(default_factory=dict)
    """The signature of every functor that the user implements, with a digest of its source."""
    history_share: float = 4.0
    """History is given up when it takes more than this share of the present state's bytes (and 64 MiB)."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of the dictionary: the entries with ids from `first` to `last`, that one excluded."""

    first: int
    last: int
    file: FileEntry


@dataclass(frozen=True, slots=True)
class Snapshot:
    """All relations at an epoch, with what else belongs to it: applied batches, what the strategy learnt, the log
    entry. `program` and `layout`: those of the manifest unless rules have been changed; `made_for`: see `StoredState`,
    None unless they have, and if an earlier version of Elastalog has changed them."""

    epoch: int
    relations: Mapping[str, FileEntry]
    batches: Mapping[str, Any]
    learnt: Mapping[str, Any]
    entry: LogEntry
    program: FileEntry | None = None
    layout: Mapping[str, tuple[str, ...]] | None = None
    made_for: FileEntry | None = None

    @property
    def bytes(self) -> int:
        return sum(file.bytes for file in self.relations.values())


@dataclass(frozen=True, slots=True)
class JournalFile:
    """The journal of the epochs after `epoch`. `sealed` once another has taken its place."""

    epoch: int
    name: str
    sealed: FileEntry | None


@dataclass(frozen=True, slots=True)
class Manifest:
    """`snapshots` and `journals` are in order of epochs. A journal may begin after the snapshot that was written while
    the one before it went on. `program`: that of the first epoch of the store; `layout`: the base
    types of every relation that it stores."""

    generation: int
    store: str
    program: FileEntry
    options: Options
    layout: Mapping[str, tuple[str, ...]]
    symbols: tuple[Segment, ...]
    patterns: tuple[Segment, ...]
    snapshots: tuple[Snapshot, ...]
    journals: tuple[JournalFile, ...]

    @property
    def name(self) -> str:
        return f"manifest-{self.generation}.json"

    def program_of(self, snapshot: Snapshot) -> FileEntry:
        """The program at the time of a snapshot."""
        return snapshot.program or self.program

    def layout_of(self, snapshot: Snapshot) -> Mapping[str, tuple[str, ...]]:
        """The base types of every relation stored in a snapshot."""
        return self.layout if snapshot.layout is None else snapshot.layout

    @property
    def known_symbols(self) -> int:
        return self.symbols[-1].last if self.symbols else 0

    @property
    def known_patterns(self) -> int:
        return self.patterns[-1].last if self.patterns else 0

    def files(self) -> Iterable[FileEntry]:
        """Every file with a checksum."""
        yield self.program
        for segment in (*self.symbols, *self.patterns):
            yield segment.file
        seen = {self.program.name}
        for snapshot in self.snapshots:
            for file in (snapshot.program, snapshot.made_for, *snapshot.relations.values()):
                if file is not None and file.name not in seen:
                    seen.add(file.name)
                    yield file
        for journal in self.journals:
            if journal.sealed is not None:
                yield journal.sealed

    def names(self) -> set[str]:
        """Every file that the store needs, by path within it."""
        return {
            self.name, FORMAT_FILE, POINTER, LOCK, *(file.name for file in self.files()),
            *(journal.name for journal in self.journals),
        }  # fmt: skip

    def encode(self) -> bytes:
        """The manifest as JSON."""
        written = {"format": FORMAT, **_as_mapping(self)}
        # A commit waits for this: without indentation, and without copying everything first, it is ten times faster.
        return json.dumps(written, ensure_ascii=False, separators=(",", ":"), default=_as_mapping).encode()

    @staticmethod
    def decode(data: bytes) -> Manifest:
        """The manifest in a JSON text. Raises ValueError, KeyError or TypeError if it holds none."""
        written = json.loads(data)
        if written.pop("format") != FORMAT:
            raise ValueError("another format")
        manifest = Manifest(
            generation=written["generation"],
            store=written["store"],
            program=FileEntry(**written["program"]),
            options=Options(**written["options"]),
            layout={name: tuple(bases) for name, bases in written["layout"].items()},
            symbols=tuple(map(_segment, written["symbols"])),
            patterns=tuple(map(_segment, written["patterns"])),
            snapshots=tuple(map(_snapshot, written["snapshots"])),
            journals=tuple(
                JournalFile(j["epoch"], j["name"], FileEntry(**j["sealed"]) if j["sealed"] else None)
                for j in written["journals"]
            ),
        )
        for name in manifest.names():
            _require_inside(name)
        return manifest


def _as_mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, LogEntry):
        return value.written()
    return {name: getattr(value, name) for name in value.__slots__}


def _require_inside(name: str) -> None:
    """A store consists of files in its own folder: a manifest that names others was not written by one."""
    path = PurePosixPath(name)
    if not name or "\0" in name or path.is_absolute() or ".." in path.parts:
        raise ValueError(f"it names a file outside of the store: {shown(name)}")


def _segment(written: Mapping[str, Any]) -> Segment:
    return Segment(written["first"], written["last"], FileEntry(**written["file"]))


def _snapshot(written: Mapping[str, Any]) -> Snapshot:
    relations = {name: FileEntry(**file) for name, file in written["relations"].items()}
    program, layout, made_for = written.get("program"), written.get("layout"), written.get("made_for")
    return Snapshot(
        written["epoch"],
        relations,
        written["batches"],
        written["learnt"],
        LogEntry.read(written["entry"]),
        None if program is None else FileEntry(**program),
        None if layout is None else {name: tuple(bases) for name, bases in layout.items()},
        None if made_for is None else FileEntry(**made_for),
    )


def write_manifest(files: FileSystem, root: Path, manifest: Manifest) -> bytes:
    """Writes a manifest, to which nothing refers yet. Returns the content of the pointer that will."""
    data = manifest.encode()
    files.create(root / manifest.name, data)
    return pointer_to(manifest, data)


def pointer_to(manifest: Manifest, data: bytes) -> bytes:
    """The content of the pointer to a manifest, whose file has some bytes."""
    return f"{manifest.name} {sha256(data).hexdigest()}\n".encode()


def generation_of(name: str) -> int | None:
    """The number of the manifest in a file of this name; None if it is not the name of one."""
    number = name.removeprefix("manifest-").removesuffix(".json")
    return int(number) if number.isdigit() and name == f"manifest-{number}.json" else None


def has_epochs(root: Path) -> bool:
    """Whether a folder has more of a store than an attempt to make one that was not finished: that has one manifest,
    and no epochs in its journal."""
    return any((generation_of(path.name) or 1) > 1 or is_used(path) for path in root.iterdir())


def read_manifest(root: Path) -> Manifest:
    """The manifest that holds. Raises ElastalogError when there is none, or when it is damaged."""
    check_format(root)
    pointer = root / POINTER
    if not pointer.exists():
        raise _unfinished(root)
    words = read_bytes(pointer).split(b" ")
    try:
        name, checksum = words[0].decode("ascii"), words[1].decode("ascii")
    except (IndexError, UnicodeDecodeError):
        raise errors.damaged(pointer, "it names no manifest") from None
    if len(words) != 2 or generation_of(name) is None:
        raise errors.damaged(pointer, "it names no manifest")
    data = read_bytes(root / name)
    if checksum != sha256(data).hexdigest() + "\n":
        raise errors.damaged(root / name, f"its checksum is not the one in `{POINTER}`")
    try:
        return Manifest.decode(data)
    except (ValueError, KeyError, TypeError) as error:
        raise errors.damaged(root / name, str(error)) from None


def check_format(root: Path) -> None:
    """Raises ElastalogError if a folder is not a store, or one of a later format."""
    path = root / FORMAT_FILE
    if not path.is_file():
        raise error(
            "E0801",
            location=root,
            path=root,
            reason="there is no such folder" if not root.exists() else f"it has no file `{FORMAT_FILE}`",
            near=path_near(root),
        )
    text = read_bytes(path).decode("ascii", "replace")
    version = text.removeprefix(FORMAT_TEXT).removesuffix("\n")
    if text != f"{FORMAT_TEXT}{version}\n" or not (version.isascii() and version.isdigit() and len(version) < 9):
        if not (root / POINTER).exists():
            raise _unfinished(root)
        raise errors.damaged(path, "it does not name a format")
    if int(version) > FORMAT:
        raise error("E0803", location=path, version=int(version), known=FORMAT)
    if int(version) != FORMAT:
        raise errors.damaged(path, f"there is no format {version}")


def _unfinished(root: Path) -> ElastalogError:
    if has_epochs(root):
        return errors.without_pointer(root / POINTER)
    return error("E0801", location=root, path=root, reason="its initialisation was not finished", near=None)
