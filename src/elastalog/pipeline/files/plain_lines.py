"""Text files in the plainest of formats, straight from bytes to words: most fact files are such, and large.

A file is cut into blocks of whole lines, which are read independently of each other. A line belongs to the block that
its first byte is in. Blocks that hold anything unusual are read as `text` reads them.
"""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from io import FileIO
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError
from elastalog.late import dataclass
from elastalog.pipeline.files.fields import BYTE_ORDER_MARK
from elastalog.pipeline.files.first_look import is_like_a_header
from elastalog.pipeline.files.format import Format, Kind
from elastalog.pipeline.files.policy import BadRow
from elastalog.pipeline.files.read import unreadable
from elastalog.pipeline.files.text import read_lines
from elastalog.relations.schema import Schema
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.relations.blocks_of_lines import BlockOfLines

PLAIN = frozenset((Base.SYMBOL, Base.NUMBER, Base.UNSIGNED))
"""Of what columns must be."""

_MORE = 1 << 12
_LINE_END = b"\n"
_LONGEST_FIRST = 1 << 16
"""Bytes of the first line that are looked at."""

_PACKED = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class PlainFile:
    """A file of lines of numbers and symbols between delimiters, without header and quotes."""

    schema: Schema
    path: Path
    form: Format
    size: int

    @property
    def has_texts(self) -> bool:
        return any(column.base is Base.SYMBOL for column in self.schema.columns)

    def begins_with_names(self) -> bool:
        """Whether its first line has the names of columns, though it should be a fact."""
        with self._opened() as file:
            first = file.read(_LONGEST_FIRST).partition(_LINE_END)[0].removeprefix(BYTE_ORDER_MARK)
        fields = first.removesuffix(b"\r").decode("utf-8", "replace").split(self.form.delimiter)
        return is_like_a_header(self.schema, fields)

    def blocks(self) -> Iterator[Callable[[], Lines]]:
        """Functions that read the blocks, in order."""
        return (partial(self._read, start) for start in range(0, self.size, SETTINGS.bytes_of_a_block))

    def _read(self, start: int) -> Lines:
        from elastalog.relations.blocks_of_lines import kinds_of, read_block

        data, first, last = self._bytes(start)
        if first == last:
            return Lines(0, None, None, ())
        block = read_block(data, first, last, ord(self.form.delimiter), kinds_of(self.schema))
        if block is not None:
            return Lines(len(block.words), block, None, ())
        given = data[first:last].tobytes()
        table, bad = read_lines(self.schema, given, str(self.path), self.form, 1)
        return Lines(given.count(_LINE_END), None, table, tuple(bad))

    def _opened(self) -> FileIO:
        try:
            return self.path.open("rb", buffering=0)
        except OSError as error:
            raise ElastalogError([unreadable(self.path, error)]) from None

    def _bytes(self, start: int) -> tuple[NDArray[np.uint8], int, int]:
        """Bytes of the file, and between which two places of them the lines of the block are."""
        from elastalog.relations.blocks_of_lines import PADDING

        before = min(start, 1)  # the byte that says whether a line begins here
        end = min(start + SETTINGS.bytes_of_a_block, self.size)
        data: NDArray[np.uint8] = np.empty(end - start + before + _MORE + PADDING, np.uint8)
        with self._opened() as file:
            used = _fill(file, data, 0, start - before)
            first = _after_line_end(data, 0, used) if before else 0
            if first < 0 or first >= min(before + end - start, used):
                return data, 0, 0
            if not before and data[:3].tobytes() == BYTE_ORDER_MARK:
                first = 3
            # The line that the last byte of the block is in ends the block, wherever it ends itself.
            searched = before + end - start - 1
            while (last := _after_line_end(data, searched, used)) < 0:
                if used < len(data) - PADDING:  # the last line of the file need not end
                    data[used] = _LINE_END[0]
                    return data, first, used + 1
                searched = used
                data = np.concatenate([data, np.empty(len(data), np.uint8)])
                used = _fill(file, data, used, start - before)
        return data, first, last


@dataclass(frozen=True, slots=True)
class Lines:
    """What so many lines of a file hold: a block of words, or a table and the rows that are bad, whose lines count from
    the first of these."""

    number: int
    block: BlockOfLines | None
    table: pa.Table | None
    bad: tuple[BadRow, ...]


def plain_file(schema: Schema, path: Path, parameters: Mapping[str, str]) -> PlainFile | None:
    """The file if it can be read as one of plain lines."""
    form = Format.of(parameters, path.name)
    is_plain = form.kind is Kind.TEXT and not (form.has_header or form.is_rfc4180 or form.is_gzip or form.columns)
    if not is_plain or len(form.delimiter) != 1 or not form.delimiter.isascii():
        return None
    if not schema.columns or any(column.base not in PLAIN for column in schema.columns):
        return None
    try:
        found = path.stat()
        if not stat.S_ISREG(found.st_mode):
            return None
        with path.open("rb") as file:
            if file.read(len(_PACKED)) == _PACKED:
                return None
    except OSError:
        return None  # who reads it will tell why
    return PlainFile(schema, path, form, found.st_size)


def _fill(file: FileIO, data: NDArray[np.uint8], used: int, offset: int) -> int:
    """Reads on into bytes of which some are there, whose first is at an offset of the file; returns how many there are
    then. Room for padding is left."""
    from elastalog.relations.blocks_of_lines import PADDING

    view = data.data[: len(data) - PADDING]
    file.seek(offset + used)
    while used < len(view) and (more := file.readinto(view[used:])):
        used += more
    return used


def _after_line_end(data: NDArray[np.uint8], start: int, stop: int) -> int:
    """The place behind the first line end from a place on, -1 if there is none."""
    step = _MORE
    while start < stop:
        found = data[start : min(start + step, stop)].tobytes().find(_LINE_END)
        if found >= 0:
            return start + found + 1
        start += step
        step *= 2
    return -1
