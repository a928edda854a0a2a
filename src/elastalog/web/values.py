"""Values, facts and changes as JSON, and back.

Numbers and texts are what they are; records are lists, nil is null, and a branch is a text as the language writes it,
as are the numbers that JSON has not: NaN and the infinities. What is given back may be written the same way.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any

from elastalog.analysis.listing import json_value
from elastalog.analysis.program import Base, Value
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.evaluation.changes import Changes
from elastalog.relations.facts import Relation
from elastalog.relations.rows import row_from_json
from elastalog.relations.schema import Schema
from elastalog.web.feed import AT_ONCE, Event


def rows_as_json(facts: Iterable[tuple[Value, ...]]) -> list[list[Any]]:
    """Facts as lists."""
    return [[json_value(value) for value in fact] for fact in facts]


def rows_from_json(given: Mapping[str, list[list[Any]]], schemas: Mapping[str, Schema]) -> dict[str, list[Any]]:
    """Facts by relation, from lists; of relations, too, that the same update declares."""
    return {name: list(map(_row_of(schemas.get(name)), rows)) for name, rows in given.items()}


def _row_of(schema: Schema | None) -> Callable[[list[Any]], tuple[Any, ...]]:
    """What makes a row of a list: most have nothing that JSON tells otherwise."""
    if schema is None or all(column.base not in (Base.FLOAT, Base.RECORD) for column in schema.columns):
        return tuple
    return partial(row_from_json, schema)


def columns_as_json(schema: Schema) -> list[dict[str, str]]:
    """The columns of a relation."""
    return [{"name": column.name, "type": column.type_name} for column in schema.columns]


def changes_as_json(changes: Changes, most: int, only: Collection[str] | None = None) -> dict[str, Any]:
    """What changed, by relation; facts beyond so many are only counted, and `is_cut` says so."""
    relations: dict[str, Any] = {}
    left = most
    is_cut = False
    for name in changes:
        if only is not None and name not in only:
            continue
        changed = changes[name]
        sides: dict[str, Any] = {}
        for side, facts in (("inserted", changed.inserted), ("deleted", changed.deleted)):
            number = len(facts)
            sides[side] = rows_as_json(_first(facts, left))
            sides[f"{side}_count"] = number
            is_cut = is_cut or number > left
            left = max(0, left - number)
        relations[name] = sides
    return {"impact": changes.impact, "relations": relations, "is_cut": is_cut}


def _first(facts: Relation, most: int) -> Iterable[tuple[Value, ...]]:
    return facts.head(most) if most else []


def event_as_json(event: Event, most: int, only: Collection[str] | None = None) -> dict[str, Any]:
    """An event of the change feed."""
    return {
        "since": event.since,
        "epoch": event.epoch,
        "time": event.time,
        "source": event.source,
        "batch": event.batch,
        "rules": {"added": list(event.rules.added), "removed": list(event.rules.removed)},
        **changes_as_json(event.changes, most, only),
    }


@lru_cache(4 * AT_ONCE)
def event_text(event: Event, most: int, only: frozenset[str] | None) -> str:
    """The same as a text of one line: many listeners hear the same."""
    return json.dumps(event_as_json(event, most, only), ensure_ascii=False, separators=(",", ":"))


def malformed(reason: str) -> ElastalogError:
    """A request whose parts do not fit together."""
    return ElastalogError([Diagnostic("E0926", reason, help="see /api/docs")])
