"""Rows that are changes: `op` is `+` or `-`.

Which relation a row is about is in a column `relation`; then columns `a1`, `a2`, … hold the values in order of the
attributes, unused ones empty. Without such a column, all rows are about the relation the table is named after, and
columns have the names of its attributes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePath

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import nearest
from elastalog.pipeline.files.diff import Diff
from elastalog.relations.column_order import columns_given, places_by_name
from elastalog.relations.schema import Schema
from elastalog.relations.tables import table_of_columns

OPERATION = "op"
RELATION = "relation"
_NAMES_OF_RELATION = (RELATION, "pred")
_ROW = "@row"


def relation_column(columns: Sequence[str]) -> str | None:
    """The column that names the relation of a row, None if there is none."""
    return next((name for name in _NAMES_OF_RELATION if name in columns), None)


def named_relation(columns: Sequence[str], schema: Schema | None) -> str | None:
    """The same for a table that is named after a relation: if it has all attributes of that, none of them is meant."""
    own = () if schema is None or not set(schema.names) <= set(columns) else schema.names
    return relation_column([name for name in columns if name not in own])


def numbered(rows: pa.Table) -> pa.Table:
    """The rows with their numbers, from 1, by which diagnostics name them."""
    return rows.append_column(_ROW, pa.array(range(1, rows.num_rows + 1), pa.int64()))


def read_changes(rows: pa.Table, schemas: Mapping[str, Schema], relation: str | None, place: str) -> Diff:
    """The update that numbered rows describe. `relation`: what they are about unless they say it, None if they do;
    `place`: where they come from, for diagnostics."""
    diff = Diff()
    named = named_relation(rows.column_names, None if relation is None else schemas.get(relation))
    if named is None:
        parts = {relation or "": rows}
    else:
        column = column_as(place, rows, named, pa.string())
        parts = {name: rows.filter(pc.equal(column, name)) for name in pc.unique(column).to_pylist()}
    operation = column_as(place, rows, OPERATION, pa.string())
    wrong = rows.filter(pc.invert(pc.is_in(operation, pa.array(["+", "-"]))))
    if wrong.num_rows:
        raise fault(place, f"row {wrong.column(_ROW)[0]}: `op` is neither `+` nor `-`", "write `+` or `-`")
    for name, part in parts.items():
        if name not in schemas:
            near = nearest(name, schemas)
            advice = f"did you mean `{near}`?" if near else f"the relations are {', '.join(schemas)}"
            raise fault(place, f"row {part.column(_ROW)[0]}: no relation `{name}`", advice)
        schema = schemas[name]
        for op, side in (("+", diff.inserted), ("-", diff.deleted)):
            chosen = part.filter(pc.equal(part.column(OPERATION).cast(pa.string()), op))
            if chosen.num_rows:
                side[name] = _facts(place, chosen, schema, named is not None)
    return diff


def _facts(place: str, rows: pa.Table, schema: Schema, is_positional: bool) -> pa.Table:
    kinds = schema.arrow()
    names = [f"a{i + 1}" for i in range(schema.arity)] if is_positional else list(schema.names)
    places = places_by_name(names, rows.column_names)
    columns = []
    for name, found, kind in zip(names, places, kinds.types, strict=True):
        if found is None:
            message = f"`{PurePath(place).name}` has no column `{name}`"
            advice = f"`{schema.name}` needs {schema.arity} values; {columns_given(_of_facts(rows.column_names))}"
            raise fault(place, message, advice)
        columns.append(column_as(place, rows, rows.column_names[found], kind))
    return table_of_columns(kinds, rows.num_rows, columns)


def _of_facts(names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in (OPERATION, _ROW)]


def column_as(place: str, rows: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of numbered rows as values of a kind; a diagnostic where it has none."""
    column = rows.column(name)
    if column.null_count:
        row = rows.filter(pc.is_null(column)).column(_ROW)[0]
        raise fault(place, f"row {row}: column `{name}` is empty", "give every row a value there")
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise fault(place, f"column `{name}`: {error}", f"values must be {kind}") from None


def fault(place: str, message: str, advice: str) -> ElastalogError:
    """What is wrong with rows of changes."""
    return ElastalogError([Diagnostic("E0904", message, help=advice, location=place)])
