"""An interner of texts as Python objects: quick to ask one by one and nothing to compile, but some 200 bytes a text."""

from __future__ import annotations

from itertools import compress, repeat

import numpy as np
import pyarrow as pa

from elastalog.relations.arrays import FEW_ROWS, array_of_numbers, array_of_texts, texts_of_array
from elastalog.relations.limits import Words


class SmallInterner:
    """A bijection between texts and ids 0, 1, 2, … Readers need no lock: a text stands in the list before its id can
    be found. Writers must exclude each other."""

    __slots__ = ("_arrow", "_ids", "_texts")

    def __init__(self) -> None:
        self._ids: dict[str, int] = {}
        self._texts: list[str] = []
        self._arrow: pa.LargeStringArray | None = None

    def __len__(self) -> int:
        return len(self._texts)

    def intern(self, texts: pa.Array) -> Words:
        """The ids of distinct texts, new ones added."""
        self._catch_up()
        listed = texts_of_array(texts)
        ids = self._ids
        found: Words = np.fromiter(map(ids.get, listed, repeat(-1)), np.int32, len(listed))
        is_new = found < 0
        new = list(compress(listed, is_new.tolist()))
        found[is_new] = np.arange(len(self._texts), len(self._texts) + len(new), dtype=np.int32)
        self.extend(new)
        return found

    def intern_one(self, text: str) -> int:
        """The id of a text, which is added if new."""
        self._catch_up()
        found = self._ids.get(text)
        if found is None:
            found = len(self._texts)
            self._texts.append(text)
            self._ids[text] = found
        return found

    def find(self, text: str) -> int | None:
        """The id of a text if it has one."""
        return self._ids.get(text)

    def find_all(self, texts: list[str]) -> list[int | None]:
        """The ids of texts, None of those that have none."""
        return list(map(self._ids.get, texts))

    def text(self, text_id: int) -> str:
        """The text of an id."""
        return self._texts[text_id]

    def texts(self, ids: Words) -> list[str]:
        """The texts of ids."""
        return list(map(self._texts.__getitem__, ids.tolist()))

    def take(self, ids: Words) -> pa.LargeStringArray:
        """The texts of ids as an Arrow array."""
        if len(ids) < len(self._texts) or len(ids) <= FEW_ROWS:
            return array_of_texts(self.texts(ids))
        arrow = self._arrow
        if arrow is None or len(arrow) < len(self._texts):
            self._arrow = arrow = array_of_texts(self._texts[:])
        return arrow.take(array_of_numbers(ids))

    def array(self, first: int, last: int) -> pa.LargeStringArray:
        """The texts with ids from first to last, that one excluded."""
        return array_of_texts(self._texts[first:last])

    def extend(self, texts: list[str]) -> None:
        """Adds distinct texts that have no id yet, in order."""
        self._catch_up()
        self._texts.extend(texts)
        self._catch_up()

    def _catch_up(self) -> None:
        """Makes the last texts findable; some may not be since Ctrl-C came between their writing and this."""
        first = len(self._ids)
        if first < len(self._texts):
            new = self._texts[first:]
            self._ids.update(zip(new, range(first, first + len(new)), strict=True))
