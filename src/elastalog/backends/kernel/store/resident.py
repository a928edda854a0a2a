"""Relations that come into memory when somebody looks at them.

Whoever holds a kernel may keep relations elsewhere: strata that are evaluated there need them there, and a result that
is only written out never becomes a relation of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import StateChanges
from elastalog.late import dataclass
from elastalog.relations.facts import FactWords


@dataclass(frozen=True, slots=True)
class Fetched:
    """A relation that was elsewhere: `facts`, after `changes` in their order. `pending`: what the update under way has
    changed in it, if the relation can be told."""

    facts: FactWords
    changes: Sequence[StateChanges]
    pending: StateChanges | None = None


class ResidentRelations(dict[str, KernelRelation]):
    """The relations of a kernel. Those `evicted` are fetched when asked for by name; until then an empty relation,
    which no update has touched, stands for them."""

    def __init__(self, relations: dict[str, KernelRelation], fetch: Callable[[str], KernelRelation]) -> None:
        super().__init__(relations)
        self.evicted: set[str] = set()
        self._fetch = fetch

    def evict(self, name: str) -> None:
        """The relation is elsewhere, from now on."""
        before = super().__getitem__(name)
        super().__setitem__(name, KernelRelation(name, before.width, before.is_annotated))
        self.evicted.add(name)

    def __getitem__(self, name: str) -> KernelRelation:
        if name in self.evicted:
            super().__setitem__(name, self._fetch(name))
            # Only now: if fetching fails, the relation is still elsewhere.
            self.evicted.discard(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, relation: KernelRelation) -> None:
        self.evicted.discard(name)
        super().__setitem__(name, relation)

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            return self[name]
        return default
