"""The facts that an update has inserted and deleted, by relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from elastalog.relations.limits import Words
from elastalog.relations.pairs import Rows

ChangedWords: TypeAlias = Mapping[str, tuple[Rows, Rows]]
"""By relation: the facts inserted, and the facts deleted."""

Part: TypeAlias = tuple[str, int, int, int, int]
"""Of the vector of a `ListedChanges`: a relation and its width, how many facts changed in some way, how many of these
were inserted, and how many deleted."""


class ListedChanges(Mapping[str, tuple[Rows, Rows]]):
    """Those of several relations, one after the other in one vector: inserted ones first, deleted ones last. They are
    told apart when somebody looks at them, and few do. `impact`: how many they are."""

    __slots__ = ("_found", "_parts", "_words", "impact")

    def __init__(self, words: Words, parts: Sequence[Part]) -> None:
        self._words = words
        self._parts = parts
        self._found: dict[str, tuple[Rows, Rows]] | None = None
        self.impact = sum([came + went for _, _, _, came, went in parts])

    def _by_relation(self) -> dict[str, tuple[Rows, Rows]]:
        found = self._found
        if found is None:
            found, first = {}, 0
            for name, width, size, came, went in self._parts:
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
