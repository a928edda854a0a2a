"""The symbol dictionary: texts as small integers, append-only.

Ids count from 0 in order of first appearance and keep their meaning for the life of a database, so that a relation
never has to be re-encoded. A few texts are Python objects, quick to ask one by one, with nothing to compile, but some
200 bytes each; when there are more they move, once, to arrays with compiled operators.

Reading texts by id needs no lock: nothing is ever changed or removed. Looking for ids excludes others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import count

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from elastalog.relations.arrays import (
    FEW_ROWS,
    array_of_numbers,
    array_of_texts,
    numbers_of_array,
    texts_of_array,
    with_short_offsets,
)
from elastalog.relations.large_interner import LargeInterner, PlacedTexts, parts_of
from elastalog.relations.limits import Integers, Words
from elastalog.relations.thread_lock import ThreadLock
from elastalog.settings import SETTINGS

# The offsets of `pa.string()` have 32 bits.
MOST_BYTES_OF_STRING_ARRAY = 2**31 - 1


class Symbols:
    """A bijection between texts and ids 0, 1, 2, … `find`: the id of a text, None if it has none; `few`: the texts
    by id, unless they are many."""

    __slots__ = ("_lock", "_texts", "few", "find")

    def __init__(self) -> None:
        few = SmallInterner()
        self._texts: SmallInterner | LargeInterner = few
        self.find: Callable[[str], int | None] = few.ids.get
        self.few: list[str] | None = few.listed
        self._lock = ThreadLock()

    def __len__(self) -> int:
        return len(self._texts)

    @property
    def are_many(self) -> bool:
        """Whether texts lie in arrays, for compiled operators."""
        return isinstance(self._texts, LargeInterner)

    def encode(self, array: pa.Array | pa.ChunkedArray) -> Words:
        """The ids of a column of strings without nulls (plain, large, view or dictionary-encoded), new texts added."""
        if pa.types.is_dictionary(array.type):
            return self._encode_dictionary(array)
        if array.type == pa.string_view():
            array = array.cast(pa.large_string())
        if isinstance(self._texts, LargeInterner):
            return self._encode_plain(array)
        if not isinstance(array, pa.ChunkedArray):
            array = pa.chunked_array([array])
        if len(array) <= FEW_ROWS:
            return self.encode_texts([text for chunk in array.chunks for text in texts_of_array(chunk)])
        # All chunks of one encoding share the last, longest dictionary, so that a text is looked up once.
        chunks = array.dictionary_encode().chunks
        if not chunks:
            return np.empty(0, np.int32)
        ids = self._encode_plain(chunks[-1].dictionary)
        return _joined([ids[numbers_of_array(chunk.indices)] for chunk in chunks])

    def expect(self, size: int) -> None:
        """Prepares for encoding many texts, from files of `size` bytes."""
        with self._lock:
            self._many().expect(size)

    def encode_placed(self, texts: PlacedTexts) -> Words:
        """The ids of many texts that lie among bytes, new ones added in their order."""
        with self._lock:
            return self._many().intern_placed(texts)

    def encode_one(self, text: str) -> int:
        """The id of a text, which is added if new. A lone surrogate is not a text: UnicodeEncodeError."""
        texts = self._texts
        if isinstance(texts, SmallInterner):
            found = texts.ids.get(text)
            if found is not None:
                return found
            if not text.isascii():
                text.encode()
        with self._lock:
            return self._room_for(1).intern_one(text)

    def encode_texts(self, texts: list[str]) -> Words:
        """The ids of texts, new ones added. A lone surrogate is not a text: UnicodeEncodeError."""
        if isinstance(self._texts, SmallInterner):
            return np.array(self.ids_of(texts), np.int32)
        with self._lock:
            return self._texts.intern_texts(texts)

    def ids_of(self, texts: list[str]) -> list[int]:
        """The ids of a few texts, new ones added, as numbers of Python."""
        known = self._texts
        if not isinstance(known, SmallInterner):
            listed: list[int] = self.encode_texts(texts).tolist()
            return listed
        found = list(map(known.ids.get, texts))
        if None not in found:
            return found  # type: ignore[return-value]
        "".join(texts).encode()
        with self._lock:
            known = self._room_for(len(texts))
            return known.intern_few(texts) if isinstance(known, SmallInterner) else known.intern_texts(texts).tolist()

    def text(self, word: int) -> str:
        """The text of an id."""
        return self._texts.text(word)

    def texts(self, words: Words) -> list[str]:
        """The texts of ids."""
        return self._texts.texts(words)

    def decode(self, words: Words) -> pa.Array:
        """The texts of ids as an Arrow array: `string`, or `large_string` when they take more than 2 GiB."""
        if len(words) == 0:
            return _as_string(array_of_texts([]))
        return _as_string(self._texts.take(words))

    def strings_from(self, first_id: int) -> list[str]:
        """The texts with ids from `first_id` on, in order: what a journal has not written yet."""
        listed: list[str] = self.array(first_id, len(self)).to_pylist() if first_id < len(self) else []
        return listed

    def array(self, first_id: int, last_id: int) -> pa.LargeStringArray:
        """The texts with ids from `first_id` to `last_id`, that one excluded."""
        return self._texts.array(first_id, last_id)

    def placed(self) -> tuple[NDArray[np.uint8], Integers]:
        """The bytes of all texts, and where each begins and the last ends; not to be written to."""
        return parts_of(self.array(0, len(self)))

    def extend(self, texts: Sequence[str] | pa.Array | pa.ChunkedArray) -> None:
        """Adds distinct texts that have no id yet, in order: what a store has kept."""
        if not len(texts):
            return
        with self._lock:
            known = self._room_for(len(texts))
            if isinstance(known, LargeInterner):
                known.extend(list(texts) if isinstance(texts, Sequence) else texts)
            else:
                known.extend(list(texts) if isinstance(texts, Sequence) else texts.to_pylist())

    def _encode_dictionary(self, array: pa.Array | pa.ChunkedArray) -> Words:
        """A dictionary that comes from elsewhere may be large, little used, and hold a text twice."""
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        known: dict[tuple[int, ...], Words] = {}  # chunks may share their dictionary
        parts = []
        for chunk in chunks:
            texts = chunk.dictionary
            place = (len(texts), texts.offset, *(0 if buffer is None else buffer.address for buffer in texts.buffers()))
            if place not in known:
                is_long = len(texts) > SETTINGS.few_texts and texts.type in (pa.string(), pa.large_string())
                # Most texts of a long one are new: finding out which are alike beforehand would hold them twice.
                known[place] = self._encode_plain(texts) if is_long else self.encode(texts)
            parts.append(known[place][numbers_of_array(chunk.indices)])
        return _joined(parts)

    def _encode_plain(self, array: pa.Array | pa.ChunkedArray) -> Words:
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        with self._lock:
            return _joined([self._room_for(len(chunk)).intern(chunk) for chunk in chunks])

    def _many(self) -> LargeInterner:
        """The texts, moved to arrays if they are not there yet; under the lock."""
        texts = self._texts
        if isinstance(texts, SmallInterner):
            many = LargeInterner()
            many.extend(texts.array(0, len(texts)))
            # Who still reads the old ones finds them as they were. Without `self`, which would keep itself.
            self._texts, self.find, self.few = many, partial(_found, many, self._lock), None
            return many
        return texts

    def _room_for(self, count: int) -> SmallInterner | LargeInterner:
        """The texts, moved to arrays if they, or those that may come, are too many; under the lock."""
        texts = self._texts
        is_small = isinstance(texts, SmallInterner) and max(len(texts), count) <= SETTINGS.few_texts
        return texts if is_small else self._many()


def _found(texts: LargeInterner, lock: ThreadLock, text: str) -> int | None:
    try:
        with lock:
            return texts.find(text)
    except UnicodeEncodeError:  # a lone surrogate
        return None


def _joined(pieces: list[Words]) -> Words:
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, np.int32), *pieces])


def _as_string(array: pa.LargeStringArray) -> pa.Array:
    fits = array.nbytes - 8 * (len(array) + 1) <= MOST_BYTES_OF_STRING_ARRAY
    return with_short_offsets(array) if fits else array


class SmallInterner:
    """A bijection between texts, `listed`, and `ids` 0, 1, 2, … Readers need no lock: a text stands in the list before
    its id can be found. Writers must exclude each other."""

    __slots__ = ("_arrow", "ids", "listed")

    def __init__(self) -> None:
        self.ids: dict[str, int] = {}
        self.listed: list[str] = []
        self._arrow: pa.LargeStringArray | None = None

    def __len__(self) -> int:
        return len(self.listed)

    def intern(self, texts: pa.Array) -> Words:
        """The ids of texts, new ones added."""
        return np.array(self.intern_few(texts_of_array(texts)), np.int32)

    def intern_one(self, text: str) -> int:
        """The id of a text, which is added if new."""
        return self.intern_few([text])[0]

    def intern_few(self, texts: list[str]) -> list[int]:
        """The ids of texts, new ones added."""
        self._catch_up()
        ids = self.ids
        new = [text for text in dict.fromkeys(texts) if text not in ids] if ids else dict.fromkeys(texts)
        self.listed.extend(new)
        self._catch_up()
        return list(map(ids.__getitem__, texts))

    def text(self, text_id: int) -> str:
        """The text of an id."""
        return self.listed[text_id]

    def texts(self, ids: Words) -> list[str]:
        """The texts of ids."""
        listed = self.listed
        return [listed[text_id] for text_id in ids.tolist()]

    def take(self, ids: Words) -> pa.LargeStringArray:
        """The texts of ids as an Arrow array."""
        if len(ids) < len(self.listed) or len(ids) <= FEW_ROWS:
            return array_of_texts(self.texts(ids))
        arrow = self._arrow
        if arrow is None or len(arrow) < len(self.listed):
            self._arrow = arrow = array_of_texts(self.listed[:])
        return arrow.take(array_of_numbers(ids))

    def array(self, first: int, last: int) -> pa.LargeStringArray:
        """The texts with ids from first to last, that one excluded."""
        return array_of_texts(self.listed[first:last])

    def extend(self, texts: list[str]) -> None:
        """Adds distinct texts that have no id yet, in order."""
        self._catch_up()
        self.listed.extend(texts)
        self._catch_up()

    def _catch_up(self) -> None:
        """Makes the last texts findable; some may not be since Ctrl-C came between their writing and this."""
        first = len(self.ids)
        if first < len(self.listed):
            new = self.listed[first:] if first else self.listed
            self.ids.update(zip(new, count(first), strict=False))
