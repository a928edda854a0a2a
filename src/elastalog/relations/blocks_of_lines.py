"""A block of lines of plain fields as words, as far as possible without the dictionary; and words as such lines.

Plain are numbers of few decimal digits, and symbols, which may hold any bytes of UTF-8 except delimiters and line ends.
Other blocks are left to other readers. Compiled operators turn bytes into words directly. A block has a small table of
its own, so that several blocks can be read at once: symbols are numbered in the order in which the block first has
them, and translated when the dictionary has given them ids.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
from numpy import uint64
from numpy.typing import NDArray

from elastalog.analysis.program import Base
from elastalog.jit import types
from elastalog.jit.intrinsics import eight_bytes, prefetch
from elastalog.jit.operators import HALF, LOW, NONE, ONE, inlined, mix, operator
from elastalog.late import dataclass
from elastalog.relations.large_interner import PlacedTexts
from elastalog.relations.limits import WIDE, Integers, Unsigned, Words
from elastalog.relations.schema import Schema
from elastalog.relations.text_operators import (
    BYTES,
    GIVEN_BYTES,
    IDS,
    INT,
    PLACES,
    SLOTS,
    copy_text,
    finished_hash,
    hash_text,
    is_same_text,
)
from elastalog.relations.words import Dictionary

# As operators convert numbers.
int64: Any = np.int64

MATRIX = types.Array(types.int32, 2)
GIVEN_MATRIX = types.Array(types.int32, 2, readonly=True)
GIVEN_PLACES = types.Array(types.int64, 1, readonly=True)

# Kinds of columns.
SYMBOL = 0
NUMBER = 1
UNSIGNED = 2

# Outcomes of reading and writing.
DONE = 0
FULL = 1  # the block's table has no room for its symbols, or the bytes have none for the next line
STRANGE = 2  # some line needs a closer look

# Fields of the state vector.
ROWS = 0
DISTINCT = 1
IS_ASCII = 2
NEXT = 0
FILLED = 1
NEEDED = 2

PADDING = 8
"""Bytes behind the last line that may be looked at."""

MOST_DIGITS = 10
_AHEAD = 16
_CLOSER = 8
_LINE_END = 10
_RETURN = 13
_MINUS = 45
_ZERO = 48
_BYTE = np.uint64(8)
_EVERY = np.uint64(0x0101010101010101)
_HIGHEST = np.uint64(0x8080808080808080)
_COUNT = np.uint64(56)
_NOT_A_NUMBER = -(1 << 62)


@inlined
def zero_bytes(word):
    """The highest bit of the first byte that is 0, perhaps with others behind it; 0 if there is none."""
    return (word - _EVERY) & ~word & _HIGHEST


@inlined
def first_marked(marks):
    """The place of the first byte whose highest bit is set."""
    below = (marks & (~marks + ONE)) - ONE
    return int64(((below & _EVERY) * _EVERY) >> _COUNT) - 1


@inlined
def number_of(data, start, end, may_be_negative):
    """The number that is written there if it is narrow and written plainly, otherwise none."""
    position = start
    is_negative = may_be_negative and end > start and data[start] == _MINUS
    if is_negative:
        position += 1
    value = int64(0)
    if position == end or end - position > MOST_DIGITS:
        value = _NOT_A_NUMBER
    while position < end and value >= 0:
        digit = int64(data[position]) - _ZERO
        if digit < 0 or digit > 9:
            value = _NOT_A_NUMBER
        else:
            value = 10 * value + digit
        position += 1
    if value >= WIDE:
        value = _NOT_A_NUMBER
    return -value if is_negative and value >= 0 else value


@operator(types.int64, GIVEN_BYTES, INT, INT, INT, PLACES, SLOTS, INT, PLACES, PLACES, SLOTS, MATRIX, PLACES)
def read_lines(data, start, stop, delimiter, kinds, slots, shift, begins, ends, hashes, words, state):
    """Reads the lines between two places of a block, which end with a line end, into words; the distinct symbols, their
    places and hashes go into a table that must be empty. Returns an outcome; with DONE also the numbers of rows and
    symbols, and whether every byte is ASCII."""
    mask = uint64(slots.shape[0] - 1)
    high = uint64(shift)
    columns = kinds.shape[0]
    delimiters = uint64(delimiter) * _EVERY
    line_ends = uint64(_LINE_END) * _EVERY
    room = min(begins.shape[0], slots.shape[0] // 2)
    seen = NONE
    distinct = 0
    row = 0
    outcome = DONE
    position = start
    while position < stop and outcome == DONE:
        if distinct + columns > room:
            outcome = FULL
            break
        column = 0
        while column < columns:
            begin = position
            value = NONE
            word = eight_bytes(data, position)
            marks = zero_bytes(word ^ delimiters) | zero_bytes(word ^ line_ends)
            while marks == NONE:
                seen |= word
                value = mix(value + word)
                position += 8
                word = eight_bytes(data, position)
                marks = zero_bytes(word ^ delimiters) | zero_bytes(word ^ line_ends)
            size = first_marked(marks)
            end = position + size
            position = end + 1
            if (data[end] == _LINE_END) != (column == columns - 1):
                outcome = STRANGE
                break
            if size > 0:
                word &= (ONE << (_BYTE * uint64(size))) - ONE
                seen |= word
                value = mix(value + word)
            value = finished_hash(value, end - begin)
            if column == columns - 1 and end > begin and data[end - 1] == _RETURN:
                end -= 1
                value = hash_text(data, begin, end)
            if kinds[column] == SYMBOL:
                slot = value >> high
                while True:
                    entry = slots[slot]
                    if entry == NONE:
                        slots[slot] = ((value & LOW) << HALF) | uint64(distinct + 1)
                        begins[distinct] = begin
                        ends[distinct] = end
                        hashes[distinct] = value
                        words[row, column] = distinct
                        distinct += 1
                        break
                    if (entry >> HALF) == (value & LOW):
                        text = int64(entry & LOW) - 1
                        other = begins[text]
                        if ends[text] - other == end - begin and is_same_text(data, other, data, begin, end - begin):
                            words[row, column] = text
                            break
                    slot = (slot + ONE) & mask
            else:
                number = number_of(data, begin, end, kinds[column] == NUMBER)
                if number == _NOT_A_NUMBER:
                    outcome = STRANGE
                    break
                words[row, column] = number
            column += 1
        row += 1
    state[ROWS] = row
    state[DISTINCT] = distinct
    state[IS_ASCII] = (seen & _HIGHEST) == NONE
    return outcome


@operator(types.void, MATRIX, PLACES, IDS)
def translate(words, kinds, ids):
    """Puts the ids of symbols where their numbers in the block are."""
    for column in range(kinds.shape[0]):
        if kinds[column] == SYMBOL:
            for row in range(words.shape[0]):
                words[row, column] = ids[words[row, column]]


@inlined
def is_plain(texts, start, end, delimiter):
    """Whether neither delimiters nor line ends are between two places."""
    delimiters = uint64(delimiter) * _EVERY
    line_ends = uint64(_LINE_END) * _EVERY
    returns = uint64(_RETURN) * _EVERY
    marks = NONE
    position = start
    while position + 8 <= end:
        word = eight_bytes(texts, position)
        marks |= zero_bytes(word ^ delimiters) | zero_bytes(word ^ line_ends) | zero_bytes(word ^ returns)
        position += 8
    is_so = marks == NONE
    while position < end:
        byte = int64(texts[position])
        if byte in (delimiter, _LINE_END, _RETURN):
            is_so = False
        position += 1
    return is_so


@inlined
def digits_of(value):
    """How many decimal digits a number has that is not negative."""
    digits = 1
    bound = int64(10)
    while value >= bound:
        digits += 1
        bound *= 10
    return digits


@inlined
def put_number(value, out, start):
    """Writes a number in decimal digits; returns where it ends."""
    rest = value
    if rest < 0:
        out[start] = _MINUS
        start += 1
        rest = -rest
    digits = digits_of(rest)
    for place in range(digits):
        out[start + digits - 1 - place] = _ZERO + rest % 10
        rest //= 10
    return start + digits


@operator(types.int64, GIVEN_MATRIX, INT, INT, PLACES, INT, GIVEN_BYTES, GIVEN_PLACES, BYTES, PLACES)
def write_lines(words, start, stop, kinds, delimiter, texts, ends, out, state):
    """Writes rows of words as lines: symbols are texts of a table, numbers are narrow. Returns an outcome; NEXT is the
    first row not written, FILLED the number of bytes written, NEEDED the bytes of a line that finds no room."""
    columns = kinds.shape[0]
    filled = 0
    outcome = DONE
    row = start
    while row < stop and outcome == DONE:
        for column in range(columns):
            if kinds[column] == SYMBOL:
                if row + _AHEAD < stop:
                    prefetch(ends, int64(words[row + _AHEAD, column]))
                if row + _CLOSER < stop:
                    prefetch(texts, ends[words[row + _CLOSER, column]])
        needed = 0
        for column in range(columns):
            word = words[row, column]
            if kinds[column] == SYMBOL:
                needed += ends[word + 1] - ends[word] + 1
            else:
                needed += MOST_DIGITS + 2
                if word >= WIDE:
                    outcome = STRANGE
        if filled + needed > out.shape[0]:
            outcome = FULL
            state[NEEDED] = needed
        if outcome == DONE:
            position = filled
            for column in range(columns):
                word = words[row, column]
                if kinds[column] == SYMBOL:
                    begin = ends[word]
                    size = ends[word + 1] - begin
                    if not is_plain(texts, begin, begin + size, delimiter):
                        outcome = STRANGE
                    copy_text(texts, begin, out, position, size)
                    position += size
                else:
                    position = put_number(int64(word), out, position)
                out[position] = delimiter if column < columns - 1 else _LINE_END
                position += 1
            if outcome == DONE:
                filled = position
                row += 1
    state[NEXT] = row
    state[FILLED] = filled
    return outcome


KINDS: Final = {Base.SYMBOL: SYMBOL, Base.NUMBER: NUMBER, Base.UNSIGNED: UNSIGNED}

_BYTES_OF_A_SYMBOL = 128
"""Bytes of a block per distinct symbol that its table is first made for, unless the block before had more: a small
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
            translate(self.words, self.kinds, dictionary.symbols.encode_placed(self.symbols))
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
        outcome = read_lines(data, start, stop, delimiter, kinds, slots, 64 - width, begins, ends, hashes, rows, state)
        if outcome != FULL:
            break
        width += 2
    words = rows[: int(state[ROWS])].copy()
    used = int(state[DISTINCT])
    scratch.distinct = used / size
    _SPARE.append(scratch)
    if outcome == STRANGE or not (state[IS_ASCII] or _is_utf8(data[start:stop])):
        return None
    return BlockOfLines(words, kinds, PlacedTexts(data, begins[:used], ends[:used], hashes[:used]))


class _Scratch:
    """Arrays that a thread needs to read a block: memory that was used before costs nothing. `distinct`: the symbols
    per byte of the last block."""

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
"""One for each thread that has read at the same time as others; that of an interrupted one is not used again."""


def lines_of(words: Words, kinds: Integers, delimiter: int, dictionary: Dictionary) -> Iterator[memoryview | Words]:
    """The lines of rows of words, in parts that are valid until the next is asked for. As few rows as possible are
    given back where some cannot be written so."""
    texts, ends = dictionary.symbols.placed()
    out: NDArray[np.uint8] = np.empty(_BYTES_AT_ONCE, np.uint8)
    state = np.zeros(3, np.int64)
    start = 0
    while start < len(words):
        outcome = write_lines(words, start, len(words), kinds, delimiter, texts, ends, out, state)
        start, filled = int(state[NEXT]), int(state[FILLED])
        if filled:
            yield out.data[:filled]
        if outcome == STRANGE:
            yield words[start : start + _STRANGE_ROWS]
            start += _STRANGE_ROWS
        elif outcome == FULL and not filled:
            out = np.empty(2 * int(state[NEEDED]), np.uint8)


def _is_utf8(data: NDArray[np.uint8]) -> bool:
    try:
        str(data.data, "utf-8")
    except UnicodeDecodeError:
        return False
    return True
