"""Relations that come into the driver's memory when somebody looks at them.

What tasks have derived stays in files until then: strata above read the files, and a result that is only written out
never becomes a relation of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from elastalog.backends.kernel.store.relation import KernelRelation


class ResidentRelations(dict[str, KernelRelation]):
    """The relations of a backend. Those in `away` are fetched when asked for by name; until then an empty relation,
    which no update has touched, stands for them."""

    def __init__(self, relations: dict[str, KernelRelation], fetch: Callable[[str], KernelRelation]) -> None:
        super().__init__(relations)
        self.away: set[str] = set()
        self._fetch = fetch

    def send_away(self, name: str) -> None:
        """The relation is in files only, from now on."""
        before = super().__getitem__(name)
        super().__setitem__(name, KernelRelation(name, before.width, before.is_annotated))
        self.away.add(name)

    def __getitem__(self, name: str) -> KernelRelation:
        if name in self.away:
            super().__setitem__(name, self._fetch(name))
            # Only now: if fetching fails, the files still are the relation.
            self.away.discard(name)
        return super().__getitem__(name)

    def __setitem__(self, name: str, relation: KernelRelation) -> None:
        self.away.discard(name)
        super().__setitem__(name, relation)

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            return self[name]
        return default
