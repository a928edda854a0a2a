"""The symbol dictionary: texts as small integers, append-only.

Ids count from 0 in order of first appearance and keep their meaning for the life of a database, so a relation never
has to be re-encoded. A text is kept once as a Python string, referred to by a dict (text to id) and a list (id to
text): some 150 bytes plus its characters. An Arrow copy is made only when large columns are decoded.

Readers need no lock: a text stands in the list before its id can be found, and nothing is ever changed or removed.
Writers exclude each other.
"""

from __future__ import annotations

from itertools import compress, repeat
from threading import Lock

import numpy as np
import pyarrow as pa

from elastalog.relations.arrays import array_of_numbers, array_of_texts
from elastalog.relations.limits import Words

# The offsets of `pa.string()` have 32 bits.
MOST_BYTES_OF_STRING_ARRAY = 2**31 - 1


class Symbols:
    """A bijection between texts and ids 0, 1, 2, …"""

    __slots__ = ("_arrow", "_ids", "_lock", "_texts")

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []
        self._arrow: pa.LargeStringArray = array_of_texts([])
        self._lock = Lock()

    def __len__(self) -> int:
        return len(self._texts)

    def encode(self, array: pa.Array | pa.ChunkedArray) -> Words:
        """The ids of a column of strings without nulls (plain, large, view or dictionary-encoded), new texts added."""
        if pa.types.is_dictionary(array.type):
            return self._encode_dictionary(array)
        if array.type == pa.string_view():
            array = array.cast(pa.large_string())
        if not isinstance(array, pa.ChunkedArray):
            array = pa.chunked_array([array])
        # All chunks of one encoding share the last, longest dictionary, so that a text is looked up once.
        chunks = array.dictionary_encode().chunks
        if not chunks:
            return np.empty(0, np.int32)
        ids = self._add_distinct(chunks[-1].dictionary.to_numpy(zero_copy_only=False).tolist())
        pieces = [ids[chunk.indices.to_numpy()] for chunk in chunks]
        return pieces[0] if len(pieces) == 1 else np.concatenate(pieces)

    def encode_one(self, text: str) -> int:
        """The id of a text, which is added if new. A lone surrogate is no text: UnicodeEncodeError."""
        found = self._ids.get(text)
        if found is not None:
            return found
        if not text.isascii():
            text.encode()
        with self._lock:
            found = self._ids.get(text)
            if found is None:
                found = len(self._texts)
                self._texts.append(text)
                self._ids[text] = found
        return found

    def find(self, text: str) -> int | None:
        """The id of a text if it has one; never adds."""
        return self._ids.get(text)

    def text(self, word: int) -> str:
        """The text of an id."""
        return self._texts[word]

    def decode(self, words: Words) -> pa.Array:
        """The texts of ids as an Arrow array: `string`, or `large_string` when they take more than 2 GiB."""
        if len(words) == 0:
            return _as_string(array_of_texts([]))
        arrow = self._arrow
        if int(words.max()) >= len(arrow):
            # Growing the Arrow copy costs its whole length, so it has to be paid for by a column of some size.
            if len(words) * 8 < len(arrow) or len(words) < 256:
                texts = self._texts
                return _as_string(array_of_texts([texts[word] for word in words.tolist()]))
            arrow = self._grow()
        return _as_string(arrow.take(array_of_numbers(words)))

    def strings_from(self, first_id: int) -> list[str]:
        """The texts with ids from `first_id` on, in order: what a journal has not written yet."""
        return self._texts[first_id:]

    def extend(self, texts: list[str]) -> None:
        """Adds distinct texts that have no id yet, in order: what a store has kept."""
        with self._lock:
            first = len(self._texts)
            self._texts.extend(texts)
            self._ids.update(zip(texts, range(first, first + len(texts)), strict=True))

    def _encode_dictionary(self, array: pa.Array | pa.ChunkedArray) -> Words:
        """A dictionary that comes from elsewhere may be large, little used, and hold a text twice."""
        chunks = array.chunks if isinstance(array, pa.ChunkedArray) else [array]
        pieces = [self.encode(chunk.dictionary)[chunk.indices.to_numpy()] for chunk in chunks]
        return np.concatenate([np.empty(0, np.int32), *pieces])

    def _add_distinct(self, texts: list[str]) -> Words:
        ids = self._ids
        with self._lock:
            found: Words = np.fromiter(map(ids.get, texts, repeat(-1)), np.int32, len(texts))
            is_new = found < 0
            new = list(compress(texts, is_new.tolist()))
            first = len(self._texts)
            found[is_new] = np.arange(first, first + len(new), dtype=np.int32)
            self._texts.extend(new)
            ids.update(zip(new, range(first, first + len(new)), strict=True))
        return found

    def _grow(self) -> pa.LargeStringArray:
        with self._lock:
            if len(self._arrow) < len(self._texts):
                new = array_of_texts(self._texts[len(self._arrow) :])
                self._arrow = pa.concat_arrays([self._arrow, new])
            return self._arrow


def _as_string(array: pa.LargeStringArray) -> pa.Array:
    fits = array.nbytes - 8 * (len(array) + 1) <= MOST_BYTES_OF_STRING_ARRAY
    return array.cast(pa.string()) if fits else array
