"""The facts that an update has inserted and deleted, by relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from elastalog.relations.limits import Integers, Words
from elastalog.relations.pairs import Rows

ChangedWords: TypeAlias = Mapping[str, tuple[Rows, Rows]]
"""By relation: the facts inserted, and the facts deleted."""


class ListedChanges(Mapping[str, tuple[Rows, Rows]]):
    """Those of several relations, one after the other in one vector: inserted ones first, deleted ones last. They are
    told apart when somebody looks at them, and few do. `impact`: how many they are."""

    __slots__ = ("_found", "_listed", "_names", "_words", "impact")

    def __init__(self, words: Words, names: Sequence[str], listed: Integers, impact: int) -> None:
        """`listed`: of each relation, its place among `names`, its width, and how many of its facts changed in some
        way, were inserted, and deleted."""
        self._words = words
        self._names = names
        self._listed = listed
        self._found: dict[str, tuple[Rows, Rows]] | None = None
        self.impact = impact

    def _by_relation(self) -> dict[str, tuple[Rows, Rows]]:
        found = self._found
        if found is None:
            found, first = {}, 0
            for number, width, size, came, went in self._listed.tolist():
                facts = self._words[first : first + size * width].reshape(size, width)
                first += size * width
                if came or went:
                    found[self._names[number]] = facts[:came], facts[size - went :]
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
