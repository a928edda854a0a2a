"""`columns="2:0"`: which columns of a text file are those of the relation, in its order, counted from 0. Of a file that
has more columns than the relation, in every line, they are the first ones, as in Soufflé, and a warning says so."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from dataclasses import replace

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.fields import records_of
from elastalog.pipeline.files.format import Format
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema

log = logging.getLogger("elastalog.facts")


def with_columns_chosen(data: bytes, schema: Schema, file: str, form: Format) -> Format:
    """The format of a text file, with the first columns chosen where it has more than the relation. A file of which
    only some lines have more is as it was: these lines are bad rows."""
    if form.columns or form.has_header or not schema.arity:
        return form
    widths = _widths(data, form)
    width = next(widths, 0)
    if width <= schema.arity or any(other != width for other in widths):
        return form
    columns = tuple(range(schema.arity))
    first = "first one is" if schema.arity == 1 else f"first {schema.arity} are"
    told = Diagnostic(
        "E0526",
        f"the file has {width} columns: only the {first} read for `{schema.name}`",
        help=f'say so: `.input {schema.name}(columns="{":".join(map(str, columns))}")`',
        severity="warning",
        location=file,
    )
    log.warning("%s", ElastalogError([told]))
    return replace(form, columns=columns)


def _widths(data: bytes, form: Format) -> Iterator[int]:
    """How many fields the lines have, one after the other; 0 for one that is quoted wrongly."""
    if form.is_rfc4180:
        yield from (0 if isinstance(fields, Fault) else len(fields) for _, _, fields in records_of(data, form))
    else:
        delimiter = form.delimiter.encode()
        yield from (line.count(delimiter) + 1 for line in io.BytesIO(data))


def chosen_columns(data: bytes, schema: Schema, form: Format) -> bytes:
    """A text file with only the chosen columns of every line. A line that lacks one is none of the relation's, and is
    made so that nobody takes it for one."""
    columns = form.columns
    if len(columns) != schema.arity:
        message = f"`columns` names {len(columns)} columns of `{schema.name}`, which has {schema.arity}"
        advice = 'name one column of the file for each attribute, as in `columns="0:2"`'
        raise ElastalogError([Diagnostic("E0671", message, help=advice)])
    if form.is_rfc4180:
        return _of_quoted(data, columns, form)
    delimiter, highest = form.delimiter.encode(), max(columns, default=-1)
    lines = data.removesuffix(b"\n").split(b"\n")
    for number, line in enumerate(lines):
        fields = line.removesuffix(b"\r").split(delimiter)
        lines[number] = (
            delimiter.join(fields[c] for c in columns) if highest < len(fields) else line + delimiter * len(columns)
        )
    return b"\n".join(lines) + b"\n" if data else data


def _of_quoted(data: bytes, columns: tuple[int, ...], form: Format) -> bytes:
    lines, highest = [], max(columns, default=-1)
    for _, raw, fields in records_of(data, form):
        if isinstance(fields, Fault):
            lines.append(raw)  # it will be found again
            continue
        chosen = [fields[c] for c in columns] if highest < len(fields) else fields + [""] * len(columns)
        lines.append(form.delimiter.join('"' + text.replace('"', '""') + '"' for text in chosen).encode())
    return b"".join(line + b"\n" for line in lines)
