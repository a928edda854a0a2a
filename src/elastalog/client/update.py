"""An update in the making, for a service."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from elastalog.evaluation.changes import Changes
from elastalog.evaluation.draft import DraftUpdate, once_committed

if TYPE_CHECKING:
    from elastalog.client.client import Client


class RemoteUpdate(DraftUpdate):
    """What it holds is sent as one. After the commit: `changes`."""

    def __init__(self, client: Client, source: str | None, key: str | None) -> None:
        self._client = client
        self._key = key
        self._told: dict[str, Any] = {
            "inserted": {}, "deleted": {}, "added_rules": "", "removed_rules": [], "source": source,
        }  # fmt: skip
        self._changes: Changes | None = None

    def insert(self, relation: str, rows: Any) -> None:
        self._take("inserted", relation, rows)

    def delete(self, relation: str, rows: Any) -> None:
        self._take("deleted", relation, rows)

    def _take(self, side: str, relation: str, rows: Any) -> None:
        self.require_open()
        told = self._client.rows_told(relation, rows, self._told["added_rules"])
        self._told[side].setdefault(relation, []).extend(told)

    def add_rules(self, rules: str | Iterable[str]) -> None:
        self.require_open()
        for text in [rules] if isinstance(rules, str) else rules:
            self._told["added_rules"] += f"{text}\n"

    def remove_rules(self, rules: int | str | Iterable[int | str]) -> None:
        self.require_open()
        self._told["removed_rules"] += [rules] if isinstance(rules, int | str) else list(rules)

    def commit(self) -> Changes:
        self.require_open()
        self._changes = self._client.send(self._told, self._key)
        self._end = "committed"
        return self._changes

    @property
    def changes(self) -> Changes:
        return once_committed(self._changes)
