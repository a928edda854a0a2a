"""An update in the making."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

import numpy as np

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.changes import Changes
from elastalog.evaluation.epochs import EpochRecord
from elastalog.evaluation.update import Update
from elastalog.pipeline.files.diff import read_diff
from elastalog.relations.schema import Schema


class UpdateTarget(Protocol):
    """What a pending update needs of the session that it is for."""

    schemas: dict[str, Schema]

    def encode(self, name: str, rows: Any) -> np.ndarray:
        """Facts of a relation as words."""

    def commit(self, update: Update) -> EpochRecord:
        """Applies an update: the next epoch."""

    def changes_of(self, record: EpochRecord) -> Changes:
        """What an epoch changed."""


class PendingUpdate:
    """Insertions and deletions that become one epoch. After the commit: `changes`, `stats`."""

    def __init__(self, target: UpdateTarget, source: str | None, batch: str | None) -> None:
        self._target = target
        self._source = source
        self._batch = batch
        self._inserted: dict[str, list[np.ndarray]] = {}
        self._deleted: dict[str, list[np.ndarray]] = {}
        self._record: EpochRecord | None = None

    def insert(self, relation: str, rows: Any) -> None:
        """Explicit facts to add."""
        self._inserted.setdefault(relation, []).append(self._target.encode(relation, rows))

    def delete(self, relation: str, rows: Any) -> None:
        """Explicit facts to remove; removing one that is not there changes nothing."""
        self._deleted.setdefault(relation, []).append(self._target.encode(relation, rows))

    def read(self, path: str | os.PathLike[str]) -> None:
        """The changes of a diff file, or of a folder of them."""
        diff = read_diff(Path(path), self._target.schemas)
        for name, rows in diff.deleted.items():
            self.delete(name, rows)
        for name, rows in diff.inserted.items():
            self.insert(name, rows)

    def as_update(self) -> Update:
        """The update as it stands."""
        return Update(_joined(self._deleted), _joined(self._inserted), self._source, self._batch)

    def commit(self) -> Changes:
        """Applies it: the next epoch."""
        self._record = self._target.commit(self.as_update())
        self._inserted, self._deleted = {}, {}
        return self.changes

    def __enter__(self) -> PendingUpdate:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if kind is None:
            self.commit()

    @property
    def changes(self) -> Changes:
        """What the update changed, once committed."""
        return self._target.changes_of(self.stats)

    @property
    def stats(self) -> EpochRecord:
        """What the update did and cost, once committed."""
        if self._record is None:
            raise ElastalogError(
                [Diagnostic("E0611", "the update has not been committed", help="leave its `with` block")]
            )
        return self._record


def _joined(parts: Mapping[str, list[np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: blocks[0] if len(blocks) == 1 else np.concatenate(blocks) for name, blocks in parts.items()}
