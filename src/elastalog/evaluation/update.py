"""An update: explicit facts to delete and to insert, as words by relation, and rules to remove and to add."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Final

from elastalog.backends.protocol import Matrix
from elastalog.late import dataclass
from elastalog.program import RuleChange


@dataclass(frozen=True, slots=True)
class Update:
    """A fact in both ends up present. `source` and `batch` identify it, where it came from a stream. `rules` says how
    the program changes, if it does."""

    deleted: Mapping[str, Matrix] = field(default_factory=dict)
    inserted: Mapping[str, Matrix] = field(default_factory=dict)
    source: str | None = None
    batch: str | int | None = None
    rules: RuleChange | None = None

    @property
    def size(self) -> int:
        """How many facts it names."""
        deleted, inserted = self.deleted, self.inserted
        # Most often one of them is empty.
        number = sum(map(len, deleted.values())) if deleted else 0
        return number + sum(map(len, inserted.values())) if inserted else number


@dataclass(frozen=True, slots=True)
class RuleTexts:
    """The rules that an epoch removed and added, printed."""

    removed: tuple[str, ...] = ()
    added: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.removed or self.added)


NO_RULES: Final = RuleTexts()
