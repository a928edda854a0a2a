"""The forms that facts and answers come in: JSON both ways, and CSV, Arrow and Parquet, a block of rows at a time.

In JSON, numbers and texts are what they are; records are lists, nil is null, and a branch is a text as the language
writes it, as are the numbers that JSON has not: NaN and the infinities. What is given back may be written the same way.
"""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import asdict
from functools import lru_cache, partial
from typing import Any, Final

import pyarrow as pa
from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from elastalog.analysis.listing import json_value, show_value
from elastalog.analysis.program import Base, Value
from elastalog.debugging.answers import Suggestion
from elastalog.diagnostics.diagnostic import ElastalogError, error, finding
from elastalog.evaluation.changes import Changes, RelationChanges
from elastalog.evaluation.differences import Difference
from elastalog.provenance.fact import Fact
from elastalog.relations.facts import Relation
from elastalog.relations.rows import row_from_json
from elastalog.relations.schema import Schema
from elastalog.relations.tables import to_words
from elastalog.web.feed import AT_ONCE, Event
from elastalog.web.paging import Page
from elastalog.web.problems import Refused
from elastalog.web.reading import Committed
from elastalog.web.service import Service

JSON: Final = "application/json"
CSV: Final = "text/csv"
ARROW: Final = "application/vnd.apache.arrow.stream"
PARQUET: Final = "application/vnd.apache.parquet"
FORMS: Final = (JSON, CSV, ARROW, PARQUET)
OTHER_FORMS: Final[dict[str, Any]] = {form: {} for form in (CSV, ARROW, PARQUET)}
_ENDINGS: Final = {CSV: "csv", ARROW: "arrows", PARQUET: "parquet"}
BLOCK: Final = 1 << 16
"""Rows that are written at once."""


def form_of(request: Request) -> str:
    """The form that is asked for by `Accept`, the best that we have."""
    wanted: list[tuple[float, int, str]] = []
    for place, part in enumerate(request.headers.get("accept", "*/*").split(",")):
        name, *options = (piece.strip() for piece in part.split(";"))
        quality = next((_quality(option[2:]) for option in options if option.startswith("q=")), 1.0)
        wanted.append((-quality, place, name.lower()))
    for quality, _, name in sorted(wanted):
        if quality == 0:
            continue
        for form in FORMS:
            if name in (form, "*/*", f"{form.partition('/')[0]}/*", ""):
                return form
    raise Refused(finding("E0931", get=request.headers.get("accept", "")[:100], forms=", ".join(FORMS)))


def _quality(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return 1.0


async def page_in(form: str, page: Page, service: Service) -> Response:
    """A page in a form."""
    headers = {
        "X-Elastalog-Epoch": str(page.epoch),
        "X-Elastalog-Total": str(page.total),
        "X-Elastalog-Offset": str(page.offset),
        "Vary": "Accept",
    }
    if form == JSON:
        return Response(await service.call(_json_text, page), 200, headers, JSON)
    headers["Content-Disposition"] = f'attachment; filename="facts.{_ENDINGS[form]}"'
    kind = f"{CSV}; charset=utf-8; header=present" if form == CSV else form
    return StreamingResponse(_blocks(form, page, service), 200, headers, kind)


def _json_text(page: Page) -> str:
    told = {
        "relation": page.schema.name, "columns": columns_as_json(page.schema), "epoch": page.epoch,
        "offset": page.offset, "total": page.total, "rows": rows_as_json(page.facts),
    }  # fmt: skip
    if page.levels is not None and page.counts is not None:
        told.update(levels=list(page.levels), counts=list(page.counts))
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


async def _blocks(form: str, page: Page, service: Service) -> AsyncIterator[bytes]:
    """The bytes of a page: what is written is handed on before the next block is decoded."""
    blocks = _written(form, page)
    while (block := await service.call(next, blocks, None)) is not None:
        yield block


def _written(form: str, page: Page) -> Iterator[bytes]:
    sink = _Sink()
    writer: Any = None
    for first in range(0, max(1, len(page.facts.fact_words().words)), BLOCK):
        table = _table(page, slice(first, first + BLOCK))
        if form == CSV:
            table = _flat(table, page, slice(first, first + BLOCK))
        if writer is None:
            schema, writer = table.schema, _writer(form, sink, table.schema)
        writer.write_table(table.cast(schema))
        yield sink.taken()
    writer.close()
    yield sink.taken()


def _table(page: Page, rows: slice) -> pa.Table:
    words = page.facts.fact_words().words[rows]
    part = Relation.of(page.schema, page.facts.dictionary, words)
    levels = None if page.levels is None else page.levels[rows]
    counts = None if page.counts is None else page.counts[rows]
    return Page(part, page.epoch, 0, len(words), levels, counts).to_arrow()


def _flat(table: pa.Table, page: Page, rows: slice) -> pa.Table:
    """Records as texts: CSV has nothing else."""
    for place, column in enumerate(page.schema.columns):
        if column.record is not None:
            words = page.facts.fact_words().words[rows]
            facts = Relation.of(page.schema, page.facts.dictionary, words)
            texts = pa.array([show_value(fact[place]) for fact in facts], pa.string())
            table = table.set_column(place, column.name, texts)
    return table


def _writer(form: str, sink: _Sink, schema: pa.Schema) -> Any:
    out = pa.PythonFile(sink, "w")
    if form == CSV:
        from pyarrow import csv

        return csv.CSVWriter(out, schema)
    if form == PARQUET:
        from pyarrow import parquet

        return parquet.ParquetWriter(out, schema)
    return pa.ipc.new_stream(out, schema)


class _Sink(io.RawIOBase):
    """Holds what was written until it is taken."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []
        self._place = 0

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._place += len(part)
        return len(part)

    def tell(self) -> int:
        return self._place

    def taken(self) -> bytes:
        """What was written since this was last asked."""
        parts, self._parts = self._parts, []
        return b"".join(parts)


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
    """What changed, by relation; facts beyond `most` are only counted, and `is_cut` says so."""
    relations: dict[str, Any] = {}
    left = most
    for name in changes:
        if only is None or name in only:
            changed = changes[name]
            relations[name] = sides_as_json(changed, left, left - len(changed.inserted))
            left -= len(changed.inserted) + len(changed.deleted)
    return {"impact": changes.impact, "relations": relations, "is_cut": left < 0}


def sides_as_json(changed: RelationChanges | Difference, inserted: int, deleted: int) -> dict[str, Any]:
    """The first facts of a relation that came and went, as many as are wanted of each, and how many they are."""
    return {
        "inserted": rows_as_json(changed.inserted.head(inserted) if inserted > 0 else ()),
        "inserted_count": len(changed.inserted),
        "deleted": rows_as_json(changed.deleted.head(deleted) if deleted > 0 else ()),
        "deleted_count": len(changed.deleted),
    }


def difference_as_json(found: Difference, most: int) -> dict[str, Any]:
    """How a relation differs between two epochs, the first facts of each kind."""
    came, moved = found.inserted, found.moved.slice(0, most)
    words = to_words(came.schema, moved.select(came.schema.names), came.dictionary)
    return {
        **sides_as_json(found, most, most),
        "moved": rows_as_json(Relation.of(came.schema, came.dictionary, words)),
        "moved_count": found.moved.num_rows,
        **{name: moved.column(f"@{name}").to_pylist() if moved.num_rows else [] for name in ("was", "level")},
    }


def event_as_json(event: Event, most: int, only: Collection[str] | None = None) -> dict[str, Any]:
    """An event of the change feed."""
    told = {name: getattr(event, name) for name in ("since", "epoch", "time", "source", "batch")}
    return {**told, "rules": asdict(event.rules), **changes_as_json(event.changes, most, only)}


@lru_cache(4 * AT_ONCE)
def event_text(event: Event, most: int, only: frozenset[str] | None) -> str:
    """An event as a text of one line, kept: many listeners hear the same one."""
    return json.dumps(event_as_json(event, most, only), ensure_ascii=False, separators=(",", ":"))


def malformed(reason: str) -> ElastalogError:
    """A request whose parts do not fit together."""
    return error("E0926", reason=reason)


def fact_as_json(fact: Fact) -> dict[str, Any]:
    """A fact as JSON has it."""
    return {"relation": fact.relation, "values": [json_value(value) for value in fact.values], "text": str(fact)}


def as_object(text: str) -> dict[str, Any]:
    """An answer that is a JSON text, to be a part of another one."""
    found: dict[str, Any] = json.loads(text)
    return found


def undoing(found: Suggestion) -> dict[str, Any]:
    """The update that does what a suggestion says."""
    sides: dict[str, dict[str, list[Any]]] = {"inserted": {}, "deleted": {}}
    for side, facts in (("inserted", found.insert), ("deleted", found.delete)):
        for fact in facts:
            sides[side].setdefault(fact.relation, []).append([json_value(value) for value in fact.values])
    added = "".join(f"{rule}\n" for rule in found.rules_to_add)
    return {**sides, "added_rules": added, "removed_rules": list(found.rules_to_remove), "after": found.epochs[1]}


def most_rows(service: Service, rows: int | None) -> int:
    """How many changed facts an answer names."""
    return service.limits.event_rows if rows is None else min(rows, service.limits.export)


_OF_RECORD = ("epoch", "is_repeated", "is_unchanged", "inserted", "deleted", "ignored", "seconds")
_OF_STRATA = ("stratum", "relations", "how", "why", "derivations", "seconds")


def commit_as_json(done: Committed, service: Service, rows: int | None = None) -> dict[str, Any]:
    """What came of an update."""
    record = done.record
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
            for one in done.changes.reports
        ],
        **changes_as_json(done.changes, most_rows(service, rows)),
    }  # fmt: skip
