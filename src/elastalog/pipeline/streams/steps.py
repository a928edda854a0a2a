"""A stream in one table: a row is a change, `step` says to which update it belongs, `op` is `+` or `-`.

Which relation a row is about is in a column `relation`; then columns `a1`, `a2`, … hold the values in order of the
attributes, unused ones empty. Without such a column, all rows are about the relation the file is named after, and
columns have the names of its attributes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import nearest
from elastalog.pipeline.files.diff import Diff
from elastalog.relations.schema import Schema
from elastalog.relations.tables import table_of_columns

_RELATION = ("relation", "pred")


def read_steps(path: Path, schemas: Mapping[str, Schema]) -> Iterator[tuple[int, Diff]]:
    """The updates of a table, in order of their steps."""
    table = _read(path)
    for wanted in ("step", "op"):
        if wanted not in table.column_names:
            raise _fault(path, f"`{path.name}` has no column `{wanted}`", "every row needs a `step` and an `op`")
    table = table.append_column("@row", pa.array(range(1, table.num_rows + 1), pa.int64()))
    steps = _cast(path, table, "step", pa.int64())
    yield from ((int(step), _diff(path, table.filter(pc.equal(steps, step)), schemas)) for step in _ascending(steps))


def _ascending(steps: pa.ChunkedArray) -> list[int]:
    return sorted(pc.unique(steps).to_pylist())


def _read(path: Path) -> pa.Table:
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as parquet

            return parquet.read_table(path)
        from pyarrow import csv

        with path.open("rb") as file:
            delimiter = "\t" if b"\t" in file.readline() else ","
        names = csv.open_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter)).schema.names
        text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=delimiter), convert_options=text)
    except (pa.ArrowInvalid, OSError) as error:
        raise _fault(path, f"`{path.name}` cannot be read: {error}", "it must be CSV, TSV or Parquet") from None


def _diff(path: Path, rows: pa.Table, schemas: Mapping[str, Schema]) -> Diff:
    diff = Diff()
    named = next((name for name in _RELATION if name in rows.column_names), None)
    if named is None:
        parts = {path.stem: rows}
    else:
        column = rows.column(named)
        parts = {str(name): rows.filter(pc.equal(column, name)) for name in pc.unique(column).to_pylist()}
    ops = rows.column("op")
    wrong = rows.filter(pc.invert(pc.is_in(ops, pa.array(["+", "-"]))))
    if wrong.num_rows:
        raise _fault(path, f"row {wrong.column('@row')[0]}: `op` is neither `+` nor `-`", "write `+` or `-`")
    for name, part in parts.items():
        if name not in schemas:
            near = nearest(name, schemas)
            advice = f"did you mean `{near}`?" if near else f"the relations are {', '.join(schemas)}"
            raise _fault(path, f"row {part.column('@row')[0]}: no relation `{name}`", advice)
        schema = schemas[name]
        for op, side in (("+", diff.inserted), ("-", diff.deleted)):
            chosen = part.filter(pc.equal(part.column("op"), op))
            if chosen.num_rows:
                side[name] = _facts(path, chosen, schema, named is not None)
    return diff


def _facts(path: Path, rows: pa.Table, schema: Schema, is_positional: bool) -> pa.Table:
    kinds = schema.arrow()
    columns = []
    for place, column in enumerate(schema.columns, 1):
        name = f"a{place}" if is_positional else column.name
        if name not in rows.column_names:
            raise _fault(path, f"`{path.name}` has no column `{name}`", f"`{schema.name}` needs {schema.arity} values")
        columns.append(_cast(path, rows, name, kinds.types[place - 1]))
    return table_of_columns(kinds, rows.num_rows, columns)


def _cast(path: Path, rows: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    column = rows.column(name)
    if column.null_count:
        row = rows.filter(pc.is_null(column)).column("@row")[0] if "@row" in rows.column_names else "?"
        raise _fault(path, f"row {row}: column `{name}` is empty", "give every row a value there")
    try:
        return column.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _fault(path, f"column `{name}`: {error}", f"values must be {kind}") from None


def _fault(path: Path, message: str, advice: str) -> ElastalogError:
    return ElastalogError([Diagnostic("E0904", message, help=advice, location=str(path))])
