"""What an epoch changed: the facts inserted and deleted, by relation."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from elastalog.analysis.findings import counted
from elastalog.relations.facts import Relation


@dataclass(frozen=True, slots=True)
class RelationChanges:
    """The facts of one relation that came and went."""

    inserted: Relation
    deleted: Relation

    def __len__(self) -> int:
        return len(self.inserted) + len(self.deleted)


class Changes(Mapping[str, RelationChanges]):
    """By relation; every declared relation has an entry, iteration shows those that changed."""

    def __init__(self, changed: Mapping[str, RelationChanges], unchanged: Callable[[str], RelationChanges]) -> None:
        self._changed = changed
        self._unchanged = unchanged

    def __getitem__(self, relation: str) -> RelationChanges:
        found = self._changed.get(relation)
        return self._unchanged(relation) if found is None else found

    def __iter__(self) -> Iterator[str]:
        return iter(self._changed)

    def __len__(self) -> int:
        return len(self._changed)

    @property
    def impact(self) -> int:
        """How many facts came or went, explicit ones included."""
        return sum(len(changes) for changes in self._changed.values())

    def __repr__(self) -> str:
        lines = [counted(self.impact, "change")]
        for name, changes in self._changed.items():
            lines.append(f"  {name}: +{len(changes.inserted):,} -{len(changes.deleted):,}")
        return "\n".join(lines)
