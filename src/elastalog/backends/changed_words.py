"""The facts that an update has inserted and deleted, by relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from elastalog.relations.limits import Words
from elastalog.relations.pairs import Rows

ChangedWords: TypeAlias = Mapping[str, tuple[Rows, Rows]]
"""By relation: the facts inserted, and the facts deleted."""

Listed: TypeAlias = tuple[list[str], list[int], list[int], list[int], list[int]]
"""Relations, their widths, how many facts of each changed in some way, were inserted, and deleted."""


class ListedChanges(Mapping[str, tuple[Rows, Rows]]):
    """Those of several relations, one after the other in one vector: inserted ones first, deleted ones last. They are
    told apart when somebody looks at them, and few do. `impact`: how many they are."""

    __slots__ = ("_found", "_listed", "_words", "impact")

    def __init__(self, words: Words, listed: Listed) -> None:
        self._words = words
        self._listed = listed
        self._found: dict[str, tuple[Rows, Rows]] | None = None
        self.impact = sum(listed[3]) + sum(listed[4])

    def _by_relation(self) -> dict[str, tuple[Rows, Rows]]:
        found = self._found
        if found is None:
            found, first = {}, 0
            for name, width, size, came, went in zip(*self._listed, strict=True):
                facts = self._words[first : first + size * width].reshape(size, width)
                first += size * width
                if came or went:
                    found[name] = facts[:came], facts[size - went :]
            self._found = found
        return found

    def __getitem__(self, relation: str) -> tuple[Rows, Rows]:
        return self._by_relation()[relation]

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_relation())

    def __len__(self) -> int:
        return len(self._by_relation())


def impact_of(changes: ChangedWords) -> int:
    """How many facts came or went."""
    if type(changes) is ListedChanges:  # quicker to ask than an abstract class
        return changes.impact
    return sum([len(inserted) + len(deleted) for inserted, deleted in changes.values()])
