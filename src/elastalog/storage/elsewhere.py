"""Files of a store written elsewhere than in the process that makes it: a relation piece by piece, its checksum taken
on the way."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from hashlib import sha256
from pathlib import Path
from secrets import token_hex
from typing import BinaryIO

import pyarrow as pa

from elastalog.folders.files import files_at
from elastalog.late import dataclass
from elastalog.storage.checked_files import FileEntry
from elastalog.storage.columns import COUNT, LEVEL, WRITING_FACTS
from elastalog.storage.snapshots import relation_file


@dataclass(frozen=True, slots=True)
class Pieces:
    """The facts of a relation in Parquet files. `columns`: their columns with the words, then levels, then counts; the
    same in all."""

    paths: tuple[str, ...]
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PiecedFile:
    """A file to write from pieces: `name` is its path in the store at `root`."""

    root: str
    name: str
    pieces: Pieces


def pieced_files(
    root: Path, layout: Mapping[str, tuple[str, ...]], epoch: int, pieces: Mapping[str, Pieces]
) -> dict[str, PiecedFile]:
    """The files to write for the relations that are there in pieces."""
    return {
        name: PiecedFile(str(root.absolute()), relation_file(number, name, epoch), pieces[name])
        for number, name in enumerate(layout)
        if name in pieces
    }


def write_pieced(file: PiecedFile) -> FileEntry:
    """Writes a file from its pieces, one after the other, and flushes it to the disk. Doing it again, even at the same
    time, writes the same; what a process leaves behind that was killed is collected with the other garbage."""
    import pyarrow.parquet as pq  # only who has a store needs it

    path = Path(file.root) / file.name
    width = len(file.pieces.columns) - 2
    schema = pa.schema([(name, pa.int32()) for name in (*map(str, range(width)), LEVEL, COUNT)])
    stem, epoch = path.stem.rsplit("-", 1)
    fresh = path.with_name(f"{stem}.{token_hex(4)}-{epoch}.parquet")
    with fresh.open("wb") as out:
        sink = _HashingSink(out)
        with pq.ParquetWriter(pa.PythonFile(sink, "w"), schema, **WRITING_FACTS) as writer:
            for table in _tables(file.pieces, schema):
                writer.write_table(table)
        out.flush()
        os.fsync(out.fileno())
    os.replace(fresh, path)
    return FileEntry(file.name, sink.size, sink.digest.hexdigest())


def _tables(pieces: Pieces, schema: pa.Schema) -> Iterable[pa.Table]:
    for path in pieces.paths:
        with files_at(path).parquet(path) as file:
            for group in range(file.num_row_groups):
                table = file.read_row_group(group, columns=list(pieces.columns))
                yield pa.table([table.column(name) for name in pieces.columns], schema=schema)


class _HashingSink:
    """A file that is only written to, and knows the checksum of what was."""

    closed = False

    def __init__(self, out: BinaryIO) -> None:
        self._out = out
        self.digest = sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._out.write(data)

    def flush(self) -> None:
        self._out.flush()

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self.size
