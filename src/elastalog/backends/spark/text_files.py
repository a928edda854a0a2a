"""The texts of the driver's dictionary in files, for tasks that look into them: in order, so many in each. The driver
writes what has come since, and holds none of them for it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa

from elastalog.folders.addresses import inside
from elastalog.folders.files import files_at, remove
from elastalog.relations.words import Dictionary

MOST_IN_A_FILE = 1 << 20


@dataclass(frozen=True, slots=True)
class TextFile:
    """A file with the texts of ids from `first` on, `count` of them."""

    path: str
    first: int
    count: int

    @property
    def last(self) -> int:
        """The id after those of the file."""
        return self.first + self.count


class TextFiles:
    """The files of a dictionary, in a folder."""

    def __init__(self, folder: str, dictionary: Dictionary) -> None:
        self._folder = folder
        self._symbols = dictionary.symbols
        self._files: tuple[TextFile, ...] = ()

    def all(self) -> tuple[TextFile, ...]:
        """The files with all texts that there are now."""
        number = len(self._symbols)
        known = self._files[-1].last if self._files else 0
        if known < number:
            # One that is not full is written anew, so that they do not become many.
            kept = tuple(file for file in self._files if file.count == MOST_IN_A_FILE)
            first = kept[-1].last if kept else 0
            old = [file.path for file in self._files[len(kept) :]]
            starts = range(first, number, MOST_IN_A_FILE)
            self._files = (*kept, *(self._written(at, min(at + MOST_IN_A_FILE, number)) for at in starts))
            remove(old)
        return self._files

    def _written(self, first: int, last: int) -> TextFile:
        from pyarrow import parquet

        path = inside(self._folder, f"texts-{first}-{uuid.uuid4().hex[:12]}.parquet")
        with files_at(path).writing(path) as sink:
            parquet.write_table(pa.table({"text": self._symbols.array(first, last)}), sink, use_dictionary=False)
        return TextFile(path, first, last - first)


def texts_in(files: Iterable[TextFile]) -> Iterator[pa.ChunkedArray]:
    """The texts of files, file by file."""
    for file in files:
        with files_at(file.path).parquet(file.path) as opened:
            yield opened.read().column(0)
