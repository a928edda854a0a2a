"""The facts that an update has inserted and deleted, by relation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from elastalog.relations.limits import Words
from elastalog.relations.pairs import Rows

ChangedWords: TypeAlias = Mapping[str, tuple[Rows, Rows]]
"""By relation: the facts inserted, and the facts deleted."""


LISTING: Final = 3
LISTED: Final = 5
"""Words that a listing begins with, and those that are listed of each relation."""


class ListedChanges(Mapping[str, tuple[Rows, Rows]]):
    """Those of several relations in one vector, told apart when somebody looks at them, and few do. First the number of
    relations and the impact, its lowest 31 bits and the others; then of each relation its place among `names`, its
    width, and how many of its facts changed in some way, were inserted, and deleted; then facts, inserted ones of a
    relation first, deleted ones last."""

    __slots__ = ("_found", "_names", "_words", "impact")

    def __init__(self, words: Words, names: Sequence[str]) -> None:
        self._words = words
        self._names = names
        self._found: dict[str, tuple[Rows, Rows]] | None = None
        self.impact: int = words.item(1) + (words.item(2) << 31)
        """How many facts were inserted or deleted."""

    def _by_relation(self) -> dict[str, tuple[Rows, Rows]]:
        found = self._found
        if found is None:
            found, first = {}, LISTING + LISTED * int(self._words[0])
            for number, width, size, came, went in self._words[LISTING:first].reshape(-1, LISTED).tolist():
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
