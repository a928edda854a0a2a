"""The media types of facts and answers: JSON, CSV, Arrow and Parquet, the last three written block by block."""

from __future__ import annotations

import io
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict
from functools import lru_cache
from typing import Any, Final

import pyarrow as pa
from fastapi import Request, Response
from fastapi.responses import StreamingResponse

from elastalog.analysis.listing import show_value
from elastalog.client.encoding import changes_as_json, columns_as_json, rows_as_json
from elastalog.diagnostics.diagnostic import finding
from elastalog.relations.facts import Relation
from elastalog.web.feed import AT_ONCE, Event
from elastalog.web.paging import Page
from elastalog.web.problems import Refused
from elastalog.web.service import Service

JSON: Final = "application/json"
CSV: Final = "text/csv"
ARROW: Final = "application/vnd.apache.arrow.stream"
PARQUET: Final = "application/vnd.apache.parquet"
FORMS: Final = (JSON, CSV, ARROW, PARQUET)
OTHER_FORMS: Final[dict[str, Any]] = {form: {} for form in (CSV, ARROW, PARQUET)}
_ENDINGS: Final = {CSV: "csv", ARROW: "arrows", PARQUET: "parquet"}
BLOCK: Final = 1 << 16
"""Rows of a block."""


def form_of(request: Request) -> str:
    """The media type to answer in, negotiated by the header `Accept`."""
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
    """A page in a media type."""
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
        "offset": page.offset, "total": page.total, "rows": rows_as_json(page.facts), **page.annotations,
    }  # fmt: skip
    return json.dumps(told, ensure_ascii=False, allow_nan=False)


async def _blocks(form: str, page: Page, service: Service) -> AsyncIterator[bytes]:
    """The bytes of a page; each block is sent before the next is decoded."""
    blocks = _written(form, page)
    while (block := await service.call(next, blocks, None)) is not None:
        yield block


def _written(form: str, page: Page) -> Iterator[bytes]:
    sink = _Sink()
    writer: Any = None
    for first in range(0, max(1, len(page.facts)), BLOCK):
        part = page.part(slice(first, first + BLOCK))
        table = part.to_arrow(annotations=True)
        if form == CSV:
            table = _flat(table, part)
        if writer is None:
            schema, writer = table.schema, _writer(form, sink, table.schema)
        writer.write_table(table.cast(schema))
        yield sink.taken()
    writer.close()
    yield sink.taken()


def _flat(table: pa.Table, facts: Relation) -> pa.Table:
    """Replaces records by texts, which is all that CSV has."""
    for place, column in enumerate(facts.schema.columns):
        if column.record is not None:
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


class _Sink(io.BytesIO):
    """A buffer that is emptied when read."""

    _before = 0

    def tell(self) -> int:
        return self._before + super().tell()

    def taken(self) -> bytes:
        """What was written since the last call."""
        found = self.getvalue()
        self._before += len(found)
        self.seek(0)
        self.truncate()
        return found


@lru_cache(4 * AT_ONCE)
def event_text(event: Event, most: int, only: frozenset[str] | None) -> str:
    """An event as one line of JSON, cached because many listeners receive the same one."""
    told = {name: getattr(event, name) for name in ("since", "epoch", "time", "source", "batch")}
    told |= {"rules": asdict(event.rules), **changes_as_json(event.changes, most, only)}
    return json.dumps(told, ensure_ascii=False, separators=(",", ":"))
