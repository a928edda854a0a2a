"""Relations that come into the driver's memory when somebody looks at them.

What tasks have derived stays in files until then: strata above read the files, and a result that is only written out
never becomes a relation of the kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.spark.word_files import WordFile


class ResidentRelations(dict[str, KernelRelation]):
    """The relations of a backend. Those in `away` are fetched when asked for by name; until then an empty relation,
    which no update has touched, stands for them."""

    def __init__(
        self, relations: dict[str, KernelRelation], fetch: Callable[[str, tuple[WordFile, ...]], KernelRelation]
    ) -> None:
        super().__init__(relations)
        self.away: dict[str, tuple[WordFile, ...]] = {}
        self._fetch = fetch

    def send_away(self, name: str, files: tuple[WordFile, ...]) -> None:
        """From now on the relation is what the files hold."""
        before = super().__getitem__(name)
        super().__setitem__(name, KernelRelation(name, before.width, before.is_annotated))
        self.away[name] = files

    def __getitem__(self, name: str) -> KernelRelation:
        files = self.away.get(name)
        if files is not None:
            super().__setitem__(name, self._fetch(name, files))
            # Only now: if fetching fails, the files still are the relation.
            del self.away[name]
        return super().__getitem__(name)

    def __setitem__(self, name: str, relation: KernelRelation) -> None:
        self.away.pop(name, None)
        super().__setitem__(name, relation)

    def get(self, name: str, default: Any = None) -> Any:
        if name in self:
            return self[name]
        return default

    def fetch_all(self) -> None:
        for name in list(self.away):
            _ = self[name]
