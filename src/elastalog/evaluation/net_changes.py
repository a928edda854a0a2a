"""What several epochs changed together."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from elastalog.backends.protocol import ChangedWords, Matrix
from elastalog.evaluation.epochs import EpochRecord
from elastalog.relations.pairs import Rows, written_out


def net_of(records: Iterable[EpochRecord]) -> ChangedWords:
    """The facts that came and those that went, by relation, after all of some epochs in a row. A fact that came and
    went again is in neither."""
    sides: dict[str, dict[bytes, tuple[bool, Matrix, bool]]] = {}
    for record in records:
        for name, (inserted, deleted) in record.changes.items():
            known = sides.setdefault(name, {})
            for rows, has_come in ((deleted, False), (inserted, True)):
                for row in written_out(rows):
                    key = row.tobytes()
                    first = known[key][0] if key in known else has_come
                    known[key] = first, row, has_come
    found: dict[str, tuple[Rows, Rows]] = {}
    for name, known in sides.items():
        came, went = ([row for first, row, last in known.values() if first is last is side] for side in (True, False))
        if came or went:
            width = len((came or went)[0])
            found[name] = _rows(came, width), _rows(went, width)
    return found


def _rows(rows: list[Matrix], width: int) -> Matrix:
    return np.array(rows, np.int32).reshape(len(rows), width)
