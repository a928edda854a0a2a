"""An update: explicit facts to delete and to insert, as words by relation."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from elastalog.backends.protocol import Matrix


@dataclass(frozen=True, slots=True)
class Update:
    """A fact in both ends up present. `source` and `batch` identify it, where it came from a stream."""

    deleted: Mapping[str, Matrix] = field(default_factory=dict)
    inserted: Mapping[str, Matrix] = field(default_factory=dict)
    source: str | None = None
    batch: str | None = None

    @property
    def size(self) -> int:
        """How many facts it names."""
        return sum(len(words) for side in (self.deleted, self.inserted) for words in side.values())
