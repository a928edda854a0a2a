"""What the update under way brings to one stratum: where its maintenance begins, whatever its facts carry."""

from __future__ import annotations

from collections.abc import Mapping

from elastalog.backends.kernel.store import transaction
from elastalog.backends.kernel.store.memory import Matrix, Vector
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.watch import Watch
from elastalog.late import dataclass
from elastalog.planning.logical import LogicalStratum


@dataclass(frozen=True, slots=True)
class Impulse:
    """`relations` are all that there are; `below`: the changed entries of those that the stratum reads, `deleted` and
    `inserted` the explicit facts of its own that go and come. `watch` is asked while it is maintained."""

    stratum: LogicalStratum
    relations: Mapping[str, KernelRelation]
    below: dict[str, Vector]
    deleted: Mapping[str, Matrix]
    inserted: Mapping[str, Matrix]
    watch: Watch

    def rows(self) -> tuple[dict[str, Vector], dict[str, Vector]]:
        """The rows of the explicit facts that go and come; those that no relation ever held get some."""
        return (
            {name: self.relations[name].find(words) for name, words in self.deleted.items()},
            {name: transaction.add_rows(self.relations[name], words) for name, words in self.inserted.items()},
        )
