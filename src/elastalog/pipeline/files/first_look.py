"""A look at a text file without header before it is read: what would pass in silence, though it is hardly meant."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from dataclasses import replace

from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.fields import BYTE_ORDER_MARK, are_names, records_of
from elastalog.pipeline.files.format import Format
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema

log = logging.getLogger("elastalog.facts")


def is_unusual(schema: Schema, first: Sequence[str]) -> bool:
    """Whether the fields of the first line call for a look at the file."""
    return len(first) > schema.arity or _is_header(schema, first)


def looked_at(data: bytes, schema: Schema, file: str, form: Format) -> Format:
    """The format of a text file, after a look at it. One that has more columns than the relation, in every line, is
    read as far as the relation goes, as in Soufflé, with a warning; where only some lines have more, these are bad
    rows. Names of columns in the place of the first fact are told of, and taken for one."""
    if form.columns or form.has_header or not schema.arity:
        return form
    data = data.removeprefix(BYTE_ORDER_MARK)
    start = data if form.is_rfc4180 else data[: data.find(b"\n") + 1] or data
    first = next((fields for _, _, fields in records_of(start, form)), [])
    if isinstance(first, Fault) or not is_unusual(schema, first):
        return form
    if _is_header(schema, first):
        told = f"the first line of the file has the names of the columns of `{schema.name}`, and is taken for a fact"
        _warn("E0527", told, f"if it is none: `.input {schema.name}(headers=true)`", file)
        return form
    width = len(first)
    if any(other != width for other in _widths(data, form)):
        return form
    columns = tuple(range(schema.arity))
    few = "first one is" if schema.arity == 1 else f"first {schema.arity} are"
    told = f"the file has {width} columns: only the {few} read for `{schema.name}`"
    _warn("E0526", told, f'say so: `.input {schema.name}(columns="{":".join(map(str, columns))}")`', file)
    return replace(form, columns=columns)


def _is_header(schema: Schema, first: Sequence[str]) -> bool:
    # Where a name is no value, the line is a bad row; `x` and `y` are names of columns, and may well be values.
    is_like_a_fact = all(column.base is Base.SYMBOL and len(column.name) > 1 for column in schema.columns)
    return is_like_a_fact and are_names(schema, first)


def _widths(data: bytes, form: Format) -> Iterator[int]:
    """How many fields the lines have, one after the other; 0 for one that is quoted wrongly."""
    if form.is_rfc4180:
        yield from (0 if isinstance(fields, Fault) else len(fields) for _, _, fields in records_of(data, form))
    else:
        delimiter = form.delimiter.encode()
        yield from (line.count(delimiter) + 1 for line in io.BytesIO(data))


def _warn(code: str, message: str, advice: str, file: str) -> None:
    found = Diagnostic(code, message, help=advice, severity="warning", location=file)
    log.warning("%s", ElastalogError([found]))
