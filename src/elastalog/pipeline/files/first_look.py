"""A look at the first line of a text file without header: what would pass in silence, though it is hardly meant."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.fields import BYTE_ORDER_MARK, are_names, records_of
from elastalog.pipeline.files.format import Format
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema

log = logging.getLogger("elastalog.facts")


def is_like_a_header(schema: Schema, first: Sequence[str]) -> bool:
    """Whether the fields of the first line are names of columns, and would be taken for a fact."""
    # Where a name is no value, the line is a bad row; `x` and `y` are names of columns, and may well be values.
    is_like_a_fact = all(column.base is Base.SYMBOL and len(column.name) > 1 for column in schema.columns)
    return is_like_a_fact and are_names(schema, first)


def look_at(data: bytes, schema: Schema, file: str, form: Format) -> None:
    """Warns if names of columns stand in the place of the first fact."""
    if form.columns or form.has_header or not schema.arity:
        return
    data = data.removeprefix(BYTE_ORDER_MARK)
    start = data if form.is_rfc4180 else data[: data.find(b"\n") + 1] or data
    first = next((fields for _, _, fields in records_of(start, form)), [])
    if isinstance(first, Fault) or not is_like_a_header(schema, first):
        return
    told = f"the first line of the file has the names of the columns of `{schema.name}`, and is taken for a fact"
    advice = f"if it is a header: `.input {schema.name}(headers=true)`"
    found = Diagnostic("E0527", told, help=advice, severity="warning", location=file)
    log.warning("%s", ElastalogError([found]))
