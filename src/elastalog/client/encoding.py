"""Encodes answers of a service as JSON; `decoding` is its inverse.

Numbers and texts are themselves; records are lists and nil is null. Branches, NaN and the infinities, which JSON lacks,
are texts as the language writes them. Input may be written the same way.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from elastalog.analysis.listing import json_value
from elastalog.analysis.program import Base, Value
from elastalog.debugging.answers import Suggestion
from elastalog.evaluation.changes import Changes, RelationChanges
from elastalog.evaluation.differences import Difference
from elastalog.relations.facts import Relation
from elastalog.relations.rows import object_from_json, row_from_json
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_words

if TYPE_CHECKING:
    from elastalog.evaluation.epochs import EpochRecord


def rows_as_json(facts: Iterable[tuple[Value, ...]]) -> list[list[Any]]:
    """Facts as lists."""
    return [[json_value(value) for value in fact] for fact in facts]


def rows_from_json(schema: Schema | None, rows: Iterable[list[Any] | dict[str, Any]]) -> list[Any]:
    """The facts of a relation, from lists, or from objects by attribute name; unchanged if the relation is not known.
    Only floats and records need decoding."""
    if schema is None or all(column.base not in (Base.FLOAT, Base.RECORD) for column in schema.columns):
        return [row if isinstance(row, dict) else tuple(row) for row in rows]
    return [object_from_json(schema, row) if isinstance(row, dict) else row_from_json(schema, row) for row in rows]


def columns_as_json(schema: Schema) -> list[dict[str, str]]:
    """The columns of a relation."""
    return [{"name": column.name, "type": column.type_name} for column in schema.columns]


def changes_as_json(changes: Changes, most: int, only: Collection[str] | None = None) -> dict[str, Any]:
    """Changes by relation. Facts beyond `most` are only counted, which `is_cut` reports."""
    relations: dict[str, Any] = {}
    left = most
    for name in changes:
        if only is None or name in only:
            changed = changes[name]
            relations[name] = sides_as_json(changed, left, left - len(changed.inserted))
            left -= len(changed.inserted) + len(changed.deleted)
    return {"impact": changes.impact, "ignored": changes.ignored, "relations": relations, "is_cut": left < 0}


def sides_as_json(changed: RelationChanges, inserted: int, deleted: int) -> dict[str, Any]:
    """The first facts inserted into and deleted from a relation, at most as many as given, and how many there are."""
    return {
        "inserted": rows_as_json(changed.inserted.head(inserted) if inserted > 0 else ()),
        "inserted_count": len(changed.inserted),
        "deleted": rows_as_json(changed.deleted.head(deleted) if deleted > 0 else ()),
        "deleted_count": len(changed.deleted),
    }


def difference_as_json(found: Difference, most: int) -> dict[str, Any]:
    """How a relation differs between two epochs: the first facts of each kind, and how many there are."""
    came, moved = found.inserted, found.moved.slice(0, most)
    words = to_words(came.schema, moved.select(came.schema.names), came.dictionary)
    return {
        **sides_as_json(found, most, most),
        "moved": rows_as_json(Relation.of(came.schema, came.dictionary, words)),
        "moved_count": found.moved.num_rows,
        **{name: moved.column(f"@{name}").to_pylist() if moved.num_rows else [] for name in ("was", "level")},
    }


def undo_as_json(found: Suggestion) -> dict[str, Any]:
    """The update that applies a suggested repair."""
    sides: dict[str, dict[str, list[Any]]] = {"inserted": {}, "deleted": {}}
    for side, facts in (("inserted", found.insert), ("deleted", found.delete)):
        for fact in facts:
            sides[side].setdefault(fact.relation, []).append([json_value(value) for value in fact.values])
    added = "".join(f"{rule}\n" for rule in found.rules_to_add)
    return {**sides, "added_rules": added, "removed_rules": list(found.rules_to_remove), "after": found.epochs[1]}


_OF_RECORD = ("epoch", "is_repeated", "is_unchanged", "inserted", "deleted", "seconds")
_OF_STRATA = ("stratum", "relations", "how", "why", "derivations", "seconds")


def commit_as_json(record: EpochRecord, changes: Changes, most: int) -> dict[str, Any]:
    """The result of an update."""
    return {
        **{name: getattr(record, name) for name in _OF_RECORD},
        "strata": [{name: getattr(one, name) for name in _OF_STRATA} for one in record.work.strata],
        "rules": asdict(record.rules),
        "reports": [
            {
                "relation": one.relation, "loaded": one.loaded, "bad": one.bad,
                "first_bad": [row.as_json() for row in one.first_bad],
                "quarantine": None if one.quarantine is None else str(one.quarantine),
            }
            for one in changes.reports
        ],
        **changes_as_json(changes, most),
    }  # fmt: skip
