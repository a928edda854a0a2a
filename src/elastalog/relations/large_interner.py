"""An interner of texts in three arrays: all texts one after the other, where each ends, and a slot table that finds
them. A text costs its bytes and some 30 more; one call of a compiled operator encodes a whole Arrow column.

The slot table is made, and kept up, when a text is looked for: texts that come from a store cost nothing until then.
Arrays beyond a limit lie in files of this process, which the system maps into memory and out again piece by piece: a
dictionary may be larger than memory.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastalog.diagnostics.diagnostic import LimitReached, finding
from elastalog.relations.arrays import array_of_numbers, array_of_texts, places_of
from elastalog.relations.limits import Integers, Unsigned, Words

MOST_TEXTS = (1 << 31) - 1
_LOAD = (11, 16)
_LEAST_SLOTS = 1 << 10
_MANY_SLOTS = 1 << 21
_GROWTH = 3
"""Memory beyond what is used is never touched, and the system gives it out only then: copying less often is cheaper."""

_REMEMBERED = 1 << 14
"""Texts whose ids are kept in a Python dict too, because they were asked for one by one, or a few at once."""

_FEW = 128
"""Texts up to which they are looked for one by one first."""

_MANY = 1 << 14
"""Texts beyond which Arrow takes them: importing what does that takes a tenth of a second."""


_BYTES_A_TEXT = 64
"""Bytes of files per text that room is made for beforehand."""

_BYTES_A_SLOT = 256
"""Bytes of files per text that slots are made for beforehand: these are memory, however few are used."""

_MOST_EXPECTED = 1 << 30
"""Bytes of files beyond which it is left to growth how much room texts need."""

_NO_HASHES: Unsigned = np.empty(0, np.uint64)


class PlacedTexts(NamedTuple):
    """Texts among bytes: where each begins and ends, and their hashes (see `text_operators`), or none."""

    data: NDArray[np.uint8]
    begins: Integers
    ends: Integers
    hashes: Unsigned


class LargeInterner:
    """A bijection between texts and ids 0, 1, 2, … Everything but reading texts by id needs a lock: readers see no id
    before its text is written, and arrays that grow are replaced. `_index`: the slot table and the number of texts in
    it. `_process`: the one that the arrays belong to."""

    __slots__ = ("_bytes", "_ends", "_index", "_length", "_process", "_recent", "_state")

    def __init__(self) -> None:
        self._bytes: NDArray[np.uint8] = np.empty(0, np.uint8)
        self._ends: Integers = np.zeros(1, np.int64)
        self._length = 0
        self._index: tuple[Unsigned, int] = (np.zeros(0, np.uint64), 0)
        self._recent: dict[str, int] = {}
        self._state: Integers = np.zeros(3, np.int64)
        self._process = os.getpid()

    def __len__(self) -> int:
        return self._length

    def expect(self, size: int) -> None:
        """Makes room for texts that come from files of `size` bytes: growing step by step takes a third of the time of
        entering them. What stays unused costs addresses, and no memory."""
        size = min(size, _MOST_EXPECTED, most_in_memory())
        self._take_hold()
        count = self._length + size // _BYTES_A_TEXT
        if count >= len(self._ends):
            self._ends = _grown(self._ends, self._length + 1, count + 1)
        used = int(self._ends[self._length])
        if used + size > len(self._bytes):
            self._bytes = _grown(self._bytes, used, used + size)
        self._enter_all(size // _BYTES_A_SLOT)

    # --- by text ---------------------------------------------------------------------------------------------------

    def intern(self, texts: pa.Array) -> Words:
        """The ids of texts (`string` or `large_string`, without nulls), new ones added."""
        return self._look_up(*parts_of(texts), is_adding=True)

    def intern_texts(self, texts: list[str]) -> Words:
        """The ids of texts, new ones added. Those of a few, as small updates have them, are remembered."""
        recent = self._recent
        known = [recent.get(text, -1) for text in texts] if len(texts) <= _FEW else [-1]
        if -1 not in known:
            return np.array(known, np.int32)
        ids = self._look_up(*_encoded(texts), is_adding=True)
        if len(texts) <= _FEW:
            self._remember(zip(texts, ids.tolist(), strict=True))
        return ids

    def _remember(self, found: Iterable[tuple[str, int]]) -> None:
        if len(self._recent) >= _REMEMBERED:
            self._recent = {}
        self._recent.update(found)

    def intern_one(self, text: str) -> int:
        """The id of a text, which is added if new."""
        return self._one(text, is_adding=True)

    def find(self, text: str) -> int | None:
        """The id of a text if it has one."""
        found = self._one(text, is_adding=False)
        return None if found < 0 else found

    def _one(self, text: str, is_adding: bool) -> int:
        found = self._recent.get(text)
        if found is not None:
            return found
        found = int(self._look_up(*_encoded([text]), is_adding)[0])
        if found >= 0:
            self._remember([(text, found)])
        return found

    def _look_up(self, data: NDArray[np.uint8], places: Integers, is_adding: bool) -> Words:
        return self.intern_placed(PlacedTexts(data, places[:-1], places[1:], _NO_HASHES), is_adding)

    def intern_placed(self, given: PlacedTexts, is_adding: bool = True) -> Words:
        """The ids of texts among bytes, new ones added, or -1."""
        from elastalog.relations import text_operators

        self._take_hold()
        state = self._state
        # Ctrl-C may have come between an operator and the line after it: what it has added is there.
        self._length = max(self._length, int(state[text_operators.USED]))
        self._enter_all()
        count = len(given.begins)
        ids: Words = np.empty(count, np.int32)
        state[text_operators.USED] = self._length
        done = 0
        while done < count:
            slots, _ = self._index
            text_operators.intern(
                *given, done, count, self._bytes, self._ends, slots, _shift(slots), is_adding, ids, state
            )
            self._length = int(state[text_operators.USED])
            self._index = slots, self._length
            done = int(state[text_operators.NEXT])
            if done < count:
                self._make_room(self._length + text_operators.AT_ONCE, int(state[text_operators.NEEDED]))
                self._enter_all(text_operators.AT_ONCE)
        return ids

    def _take_hold(self) -> None:
        """Copies, in a forked process, arrays that lie in files: they are its parent's, and must not be written to."""
        process = os.getpid()
        if process != self._process:
            slots, entered = self._index
            self._bytes, self._ends = _own(self._bytes), _own(self._ends)
            self._index = _own(slots), entered
            self._process = process

    def _enter_all(self, more: int = 0) -> None:
        """Makes a new slot table unless the one there is holds all texts and has room for more."""
        slots, entered = self._index
        wanted = (self._length + more) * _LOAD[1]
        if len(slots) and entered == self._length and wanted <= len(slots) * _LOAD[0]:
            return
        from elastalog.relations import text_operators

        size = 1 << (wanted // _LOAD[0]).bit_length()
        if len(slots) and size < _MANY_SLOTS:
            size *= 2  # entering all texts again takes longer than looking at more slots
        slots = zeros(max(_LEAST_SLOTS, size), np.uint64)
        text_operators.enter(self._bytes, self._ends, 0, self._length, slots, _shift(slots))
        self._index = slots, self._length

    def _make_room(self, count: int, more_bytes: int) -> None:
        """Makes room for `count` texts in all, and for `more_bytes` bytes more."""
        if count > MOST_TEXTS:
            raise LimitReached([finding("E0509", most=MOST_TEXTS)])
        if count >= len(self._ends):
            self._ends = _grown(self._ends, self._length + 1, max(count + 1, _GROWTH * len(self._ends)))
        if more_bytes > 0:
            size = len(self._bytes)
            self._bytes = _grown(self._bytes, int(self._ends[self._length]), max(size + more_bytes, _GROWTH * size))

    # --- by id -----------------------------------------------------------------------------------------------------

    def text(self, text_id: int) -> str:
        """The text of an id."""
        ends = self._ends
        return self._bytes[ends.item(text_id) : ends.item(text_id + 1)].tobytes().decode()

    def texts(self, ids: Words) -> list[str]:
        """The texts of ids."""
        if len(ids) < 4:
            return list(map(self.text, ids.tolist()))
        if len(ids) > _MANY:
            listed: list[str] = self.take(ids).to_pylist()
            return listed
        ends, data = self._ends, self._bytes.data
        places = zip(ends[ids].tolist(), ends[ids + 1].tolist(), strict=True)
        return [str(data[begin:end], "utf-8") for begin, end in places]

    def take(self, ids: Words) -> pa.LargeStringArray:
        """The texts of ids as an Arrow array."""
        return self.array(0, self._length).take(array_of_numbers(ids))

    def array(self, first: int, last: int) -> pa.LargeStringArray:
        """The texts with ids from first to last, that one excluded, without a copy."""
        # Places before texts: a text can be read once its end is known.
        ends = self._ends[: last + 1]
        buffers = [None, pa.py_buffer(ends), pa.py_buffer(self._bytes)]
        return pa.Array.from_buffers(pa.large_string(), last - first, buffers, offset=first)

    def extend(self, texts: list[str] | pa.Array | pa.ChunkedArray) -> None:
        """Adds distinct texts that have no id yet, in order."""
        if isinstance(texts, list):
            texts = array_of_texts(texts)
        for chunk in texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]:
            data, places = parts_of(chunk)
            self._append(data, places)

    def _append(self, data: NDArray[np.uint8], places: Integers) -> None:
        count = len(places) - 1
        if count > MOST_TEXTS:
            raise LimitReached([finding("E0509", most=MOST_TEXTS)])
        self._take_hold()
        if not self._length and data.flags.writeable and places[0] == 0:
            # What a store has read into memory of its own serves as it is: appending copies it first.
            self._bytes, self._ends = data[: places[-1]], places
        else:
            first, begin, end = int(self._ends[self._length]), int(places[0]), int(places[-1])
            self._make_room(self._length + count, first + end - begin - len(self._bytes))
            self._bytes[first : first + end - begin] = data[begin:end]
            self._ends[self._length : self._length + count + 1] = places + (first - begin)
        self._length += count


def _encoded(texts: list[str]) -> tuple[NDArray[np.uint8], Integers]:
    """The bytes of texts, and where each begins and ends."""
    encoded = [text.encode() for text in texts]
    places: Integers = np.array([0, *accumulate(map(len, encoded))], np.int64)
    return np.frombuffer(b"".join(encoded) or b"\0", np.uint8), places


def parts_of(texts: pa.Array) -> tuple[NDArray[np.uint8], Integers]:
    """The bytes of a column of texts, and where each begins and ends."""
    data = texts.buffers()[2]
    known = np.empty(0, np.uint8) if data is None or not data.size else np.frombuffer(data, np.uint8)
    return known, np.require(places_of(texts), np.int64, ["C", "W"])


def _shift(slots: Unsigned) -> int:
    return 65 - len(slots).bit_length()


def _grown(array: np.ndarray, used: int, size: int) -> np.ndarray:
    larger = new_array(size, array.dtype)
    larger[:used] = array[:used]
    return larger


def _own(array: np.ndarray) -> np.ndarray:
    """An array that no other process writes to."""
    return _grown(array, len(array), len(array)) if is_mapped(array) else array


VARIABLE: Final = "ELASTALOG_TEXT_MEMORY"
"""The variable with the limit in bytes: larger arrays of the texts of a dictionary lie in files, below `TMPDIR`."""

_PART_OF_MACHINE = 8


def new_array(size: int, dtype: Any) -> np.ndarray:
    """An array of `size` items of any value; in a file, which forked processes share, if it is large."""
    kind = np.dtype(dtype)
    bytes_needed = size * kind.itemsize
    if bytes_needed <= most_in_memory():
        return np.empty(size, kind)
    from tempfile import TemporaryFile  # which imports much else

    with TemporaryFile(prefix="elastalog-texts-") as file:  # only its mapping refers to it
        file.truncate(bytes_needed)
        return np.frombuffer(mmap.mmap(file.fileno(), bytes_needed), kind)


def zeros(size: int, dtype: Any) -> np.ndarray:
    """An array of zeros, mapped from a file if it is too large for memory."""
    if size * np.dtype(dtype).itemsize <= most_in_memory():
        return np.zeros(size, dtype)
    return new_array(size, dtype)  # a new file has nothing else


def is_mapped(array: np.ndarray) -> bool:
    """Whether an array lies in a file."""
    return isinstance(getattr(array.base, "obj", None), mmap.mmap)  # NumPy holds a memoryview of what it is given


def most_in_memory() -> int:
    """The bytes up to which an array is in memory: as the user has said, or an eighth of the machine's."""
    given = os.environ.get(VARIABLE, "")
    if given.isdecimal():
        return int(given)
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // _PART_OF_MACHINE
    except (ValueError, OSError):
        return 1 << 30
