"""`columns="2:0"`: which columns of a text file are those of the relation, in its order, counted from 0."""

from __future__ import annotations

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.fields import records_of
from elastalog.pipeline.files.format import Format
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema


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
