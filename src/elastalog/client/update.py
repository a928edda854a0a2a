"""An update in the making, for a service."""

from __future__ import annotations

from collections.abc import Iterable
from types import TracebackType
from typing import TYPE_CHECKING, Any

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.changes import Changes

if TYPE_CHECKING:
    from elastalog.client.client import Client


class RemoteUpdate:
    """Insertions and deletions of facts, and changes of rules, that become one epoch. After the commit: `changes`."""

    def __init__(self, client: Client, source: str | None, key: str | None) -> None:
        self._client = client
        self._key = key
        self._told: dict[str, Any] = {
            "inserted": {}, "deleted": {}, "added_rules": "", "removed_rules": [], "source": source,
        }  # fmt: skip
        self._changes: Changes | None = None

    def insert(self, relation: str, rows: Any) -> None:
        """Explicit facts to add."""
        self._take("inserted", relation, rows)

    def delete(self, relation: str, rows: Any) -> None:
        """Explicit facts to remove; removing one that is not there changes nothing."""
        self._take("deleted", relation, rows)

    def _take(self, side: str, relation: str, rows: Any) -> None:
        self._told[side].setdefault(relation, []).extend(self._client.rows_told(relation, rows))

    def add_rules(self, rules: str) -> None:
        """Rules to add, as program text."""
        self._told["added_rules"] += f"{rules}\n"

    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        """Rules to remove, by their number or their text."""
        self._told["removed_rules"] += [rules] if isinstance(rules, int | str) else list(rules)

    def commit(self) -> Changes:
        """Sends it: the next epoch."""
        self._changes = self._client.send(self._told, self._key)
        return self._changes

    @property
    def changes(self) -> Changes:
        """What the update changed, once committed."""
        if self._changes is None:
            raise ElastalogError(
                [Diagnostic("E0611", "the update has not been committed", help="leave its `with` block")]
            )
        return self._changes

    def __enter__(self) -> RemoteUpdate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()
