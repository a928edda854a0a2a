"""A block of lines of plain fields as words, as far as that goes without the dictionary; and words as such lines.

Plain: numbers of few decimal digits, and symbols, which may hold any bytes of UTF-8 but delimiters and line ends. Other
blocks are for somebody else to read.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from elastalog.analysis.program import Base
from elastalog.late import dataclass
from elastalog.relations import line_operators as operators
from elastalog.relations.large_interner import PlacedTexts
from elastalog.relations.limits import Integers, Unsigned, Words
from elastalog.relations.line_operators import PADDING
from elastalog.relations.schema import Schema
from elastalog.relations.words import Dictionary

KINDS: Final = {Base.SYMBOL: operators.SYMBOL, Base.NUMBER: operators.NUMBER, Base.UNSIGNED: operators.UNSIGNED}

_BYTES_OF_A_SYMBOL = 128
"""Of a block, for each distinct symbol that its table is made for at first, unless the block before had more: a small
table stays near the processor."""

_BYTES_AT_ONCE = 1 << 17
_STRANGE_ROWS = 1 << 14
"""Rows that are given back where one cannot be written: others are not far."""


@dataclass(frozen=True, slots=True)
class BlockOfLines:
    """Rows of words in which symbols have the numbers of `symbols`: those of the block, in order."""

    words: Words
    kinds: Integers
    symbols: PlacedTexts

    def encoded(self, dictionary: Dictionary) -> Words:
        """The words, once; new symbols are added to the dictionary, in the order in which the lines have them."""
        if len(self.symbols.begins):
            operators.translate(self.words, self.kinds, dictionary.symbols.encode_placed(self.symbols))
        return self.words


def kinds_of(schema: Schema) -> Integers:
    """What the columns of a relation hold, all of which must be plain."""
    return np.array([KINDS[column.base] for column in schema.columns], np.int64)


def read_block(data: NDArray[np.uint8], start: int, stop: int, delimiter: int, kinds: Integers) -> BlockOfLines | None:
    """The lines between two places of some bytes, the last of which is a line end, with PADDING behind it; None if they
    are not plain. The bytes must stay as they are until the block is encoded."""
    size = stop - start
    state = np.zeros(3, np.int64)
    scratch = _SPARE.pop() if _SPARE else _Scratch()
    width = max(8, (2 * max(size // _BYTES_OF_A_SYMBOL, int(size * scratch.distinct))).bit_length())
    rows = scratch.rows_for(size // len(kinds) + 1, len(kinds))
    while True:
        room = 1 << (width - 1)
        begins, ends, hashes = np.empty(room, np.int64), np.empty(room, np.int64), np.empty(room, np.uint64)
        slots = scratch.empty_slots(1 << width)
        outcome = operators.read_lines(
            data, start, stop, delimiter, kinds, slots, 64 - width, begins, ends, hashes, rows, state
        )
        if outcome != operators.FULL:
            break
        width += 2
    words = rows[: int(state[operators.ROWS])].copy()
    used = int(state[operators.DISTINCT])
    scratch.distinct = used / size
    _SPARE.append(scratch)
    if outcome == operators.STRANGE or not (state[operators.IS_ASCII] or _is_utf8(data[start:stop])):
        return None
    return BlockOfLines(words, kinds, PlacedTexts(data, begins[:used], ends[:used], hashes[:used]))


class _Scratch:
    """Arrays that a thread needs while it reads a block: memory that was used before is had for nothing. `distinct`:
    how many symbols a byte of the last block had."""

    __slots__ = ("_rows", "_slots", "distinct")

    def __init__(self) -> None:
        self.distinct = 0.0
        self._rows: Words = np.empty(0, np.int32)
        self._slots: Unsigned = np.empty(0, np.uint64)

    def rows_for(self, count: int, width: int) -> Words:
        if len(self._rows) < count * width:
            self._rows = np.empty(count * width, np.int32)
        return self._rows[: count * width].reshape(count, width)

    def empty_slots(self, count: int) -> Unsigned:
        if len(self._slots) < count:
            self._slots = np.empty(count, np.uint64)
        slots = self._slots[:count]
        slots.fill(0)
        return slots


_SPARE: list[_Scratch] = []
"""As many as threads have read at once; who is interrupted leaves his to nobody."""


def lines_of(words: Words, kinds: Integers, delimiter: int, dictionary: Dictionary) -> Iterator[memoryview | Words]:
    """The lines of rows of words, in parts that are valid until the next is asked for; rows that cannot be written so
    are given back, as few as need be."""
    texts, ends = dictionary.symbols.placed()
    out: NDArray[np.uint8] = np.empty(_BYTES_AT_ONCE, np.uint8)
    state = np.zeros(3, np.int64)
    start = 0
    while start < len(words):
        outcome = operators.write_lines(words, start, len(words), kinds, delimiter, texts, ends, out, state)
        start, filled = int(state[operators.NEXT]), int(state[operators.FILLED])
        if filled:
            yield out.data[:filled]
        if outcome == operators.STRANGE:
            yield words[start : start + _STRANGE_ROWS]
            start += _STRANGE_ROWS
        elif outcome == operators.FULL and not filled:
            out = np.empty(2 * int(state[operators.NEEDED]), np.uint8)


def size_of_lines(words: Words, kinds: Integers, dictionary: Dictionary) -> int:
    """How many bytes the lines of rows of words take, if all can be written so."""
    _, ends = dictionary.symbols.placed()
    return int(operators.size_of_lines(words, kinds, ends))


def _is_utf8(data: NDArray[np.uint8]) -> bool:
    try:
        str(data.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True


__all__ = ["KINDS", "PADDING", "BlockOfLines", "kinds_of", "lines_of", "read_block", "size_of_lines"]
