"""Update streams without Spark, and rows that are changes.

The updates of a stream: a folder holds one update an entry (a diff file, a table with a column `op`, or a folder of
them), applied in natural order of their names: `2.diff` before `10.diff`. A single diff file is one update; a single
CSV, TSV or Parquet file holds all of them: a column `step` says which update a row belongs to, steps are applied in
ascending order.

Of a row that is a change, `op` is `+` or `-`. Which relation it is about is in a column `relation`; then columns `a1`,
`a2`, … hold the values in order of the attributes, unused ones empty. Without such a column, all rows are about the
relation the table is named after, and columns have the names of its attributes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any, TypeAlias, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import ElastalogError, error, noted
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.pipeline.files.allowance import read_bounded
from elastalog.pipeline.files.diff import Diff, is_diff, read_diff, update_files
from elastalog.pipeline.files.parquet import read_in_batches
from elastalog.pipeline.files.policy import BadRow
from elastalog.program import Program, RuleEdits, change_rules
from elastalog.relations import faults
from elastalog.relations.faults import Fault, shown
from elastalog.relations.schema import Schema, columns_given, places_by_name, schemas_of
from elastalog.relations.tables import joined, table_of_columns

OPERATION = "op"
RELATION = "relation"
_NAMES_OF_RELATION = (RELATION, "pred")
_ROW = "@row"

Bad: TypeAlias = dict[str, list[BadRow]]
"""Rows that are no changes, by relation."""


@dataclass(frozen=True, slots=True)
class StreamedUpdate:
    """`batch` identifies the update within its stream: the name of its file, or its step."""

    batch: str
    diff: Diff


def read_stream(path: Path | str, program: Program, *, keep_bad: bool = False) -> Iterator[StreamedUpdate]:
    """The updates of a stream of a program in order. Those of a folder are read when they are asked for; facts may
    belong to relations that an update before declares. `keep_bad` as in `read_diff`; a single file of all updates is
    right or wrong as a whole."""
    path = Path(path)
    if path.is_file() and not is_diff(path):
        for step, diff in read_steps(path, schemas_of(program.checked)):
            yield StreamedUpdate(str(step), diff)
        return
    for part in [path] if path.is_file() else update_files(path):
        update = StreamedUpdate(part.name, _read_part(part, program, keep_bad))
        yield update
        if update.diff.changes_rules:
            edits = RuleEdits(update.diff.added_rules, update.diff.removed_rules)
            with noted(f"in {part.name}"):
                program = change_rules(program, edits).after


def _read_part(part: Path, program: Program, keep_bad: bool) -> Diff:
    def with_added(rules: tuple[str, ...]) -> Mapping[str, Schema]:
        return schemas_of(change_rules(program, RuleEdits(rules)).after.checked)

    return read_diff(part, schemas_of(program.checked), with_added, keep_bad=keep_bad)


def with_next(items: Iterable[T]) -> Iterator[tuple[T, T | None]]:
    """Each item with the one after it, None after the last. At most one item is read ahead."""
    iterator = iter(items)
    try:
        present = next(iterator)
    except StopIteration:
        return
    for following in iterator:
        yield present, following
        present = following
    yield present, None


def read_steps(path: Path, schemas: Mapping[str, Schema]) -> Iterator[tuple[int, Diff]]:
    """The updates of a table, in order of their steps."""
    table, place = _read(path), str(path)
    for wanted in ("step", "op"):
        if wanted not in table.column_names:
            raise fault(place, f"`{path.name}` has no column `{wanted}`", "every row needs a `step` and an `op`")
    table = numbered(table)
    steps = column_as(place, table, "step", pa.int64())
    for step in sorted(pc.unique(steps).to_pylist()):
        yield int(step), read_changes(table.filter(pc.equal(steps, step)), schemas, path.stem, place)


def _read(path: Path) -> pa.Table:
    try:
        data = read_bounded(path, is_gzip=False)
        if path.suffix.lower() == ".parquet":
            table = read_in_batches(data, str(path))
            plain = [c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in table.columns]
            return pa.table(plain, names=table.column_names)
        from pyarrow import csv

        header = data.split(b"\n", 1)[0].decode()
        form = csv.ParseOptions(delimiter=next((mark for mark in "\t,;|" if mark in header), ","))
        names = csv.open_csv(pa.BufferReader(data), parse_options=form).schema.names
        text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        return csv.read_csv(pa.BufferReader(data), parse_options=form, convert_options=text)
    except (pa.ArrowInvalid, OSError, UnicodeDecodeError) as error:
        raise fault(str(path), f"`{path.name}` cannot be read: {error}", "it must be CSV, TSV or Parquet") from None


def relation_column(columns: Sequence[str]) -> str | None:
    """The column that names the relation of a row, None if there is none."""
    return next((name for name in _NAMES_OF_RELATION if name in columns), None)


def named_relation(columns: Sequence[str], schema: Schema | None) -> str | None:
    """The column that names the relation of a row in a table named after a relation: none of that relation's own
    attributes, if the table has them all."""
    own = () if schema is None or not set(schema.names) <= set(columns) else schema.names
    return relation_column([name for name in columns if name not in own])


def numbered(rows: pa.Table) -> pa.Table:
    """The rows with their numbers, from 1, by which diagnostics name them."""
    return rows.append_column(_ROW, pa.array(range(1, rows.num_rows + 1), pa.int64()))


def read_changes(
    rows: pa.Table, schemas: Mapping[str, Schema], relation: str | None, place: str, *, keep_bad: bool = False
) -> Diff:
    """The update that numbered rows describe. `relation`: what they are about unless they say it, None if they do;
    `place`: where they come from, for diagnostics. With `keep_bad` rows that are no changes are kept apart."""
    diff = Diff()
    bad = diff.bad if keep_bad else None
    named = named_relation(rows.column_names, None if relation is None else schemas.get(relation))
    rows = _known(place, rows, OPERATION, ("+", "-"), named, bad)
    if named is not None:
        rows = _known(place, rows, named, tuple(schemas), named, bad)
        column = _cast(place, rows, named, pa.string())
        parts = {name: rows.filter(pc.equal(column, name)) for name in pc.unique(column).to_pylist()}
    else:
        parts = {relation or "": rows}
        if relation not in schemas and rows.num_rows:
            advice = "name the table after its relation, or give every row one in a column `relation`"
            raise fault(place, f"row {rows.column(_ROW)[0]}: no relation `{relation or ''}`", advice)
    for name, part in parts.items():
        for op, side in (("+", diff.inserted), ("-", diff.deleted)):
            chosen = part.filter(pc.equal(part.column(OPERATION).cast(pa.string()), op))
            if chosen.num_rows:
                found = _facts(place, chosen, schemas[name], named is not None, bad)
                if found.num_rows:
                    side[name] = found
    for kept in diff.bad.values():
        kept.sort(key=lambda row: row.line)
    return diff


def _known(place: str, rows: pa.Table, name: str, known: Sequence[str], named: str | None, bad: Bad | None) -> pa.Table:
    """The rows with a known operation or relation in a column; the others are added to `bad`, or an error without."""
    is_known = pc.is_in(_cast(place, rows, name, pa.string()), pa.array(known, pa.string()))
    strange = rows.filter(pc.invert(is_known))
    for row in (strange.slice(0, 1) if bad is None else strange).to_pylist():
        value = str(row[name])
        if name == OPERATION:
            why = Fault(faults.OPERATION, f"`op` is {shown(value)}, neither `+` nor `-`")
        else:
            advice = did_you_mean(value, known) or f"the relations are {', '.join(known)}"
            why = Fault(faults.UNKNOWN, f"no relation {shown(value)}", advice)
        if bad is None:
            raise fault(place, f"row {row[_ROW]}: {why.reason}", why.help)
        _set_aside(bad, str(row[named]) if named else "", place, row, why)
    return rows.filter(is_known)


def _set_aside(bad: Bad, relation: str, place: str, row: dict[str, Any], why: Fault) -> None:
    text = ", ".join(repr(value) for name, value in row.items() if name != _ROW)
    bad.setdefault(relation, []).append(BadRow(place, row[_ROW], why, text))


def _facts(place: str, rows: pa.Table, schema: Schema, is_positional: bool, bad: Bad | None) -> pa.Table:
    """Facts of rows; if `bad` is given, invalid rows are added to it."""
    columns = _columns(place, rows, schema, is_positional)
    kinds = schema.arrow()
    try:
        values = [column_as(place, rows, name, kind) for name, kind in zip(columns, kinds.types, strict=True)]
    except ElastalogError as error:
        if bad is None:
            raise
        if rows.num_rows == 1:
            (row,) = rows.to_pylist()
            code = faults.NULL if any(row[name] is None for name in columns) else faults.TYPE
            _set_aside(bad, schema.name, place, row, Fault(code, error.diagnostics[0].message))
            return kinds.empty_table()
        # Bad rows are rare: halves without any are read at once.
        middle = rows.num_rows // 2
        halves = (rows.slice(0, middle), rows.slice(middle))
        return joined([_facts(place, half, schema, is_positional, bad) for half in halves])
    return table_of_columns(kinds, rows.num_rows, values)


def _columns(place: str, rows: pa.Table, schema: Schema, is_positional: bool) -> list[str]:
    """The columns that hold the values of facts, in order."""
    names = [f"a{i + 1}" for i in range(schema.arity)] if is_positional else list(schema.names)
    columns = []
    for name, found in zip(names, places_by_name(names, rows.column_names), strict=True):
        if found is None:
            message = f"`{PurePath(place).name}` has no column `{name}`"
            advice = f"`{schema.name}` needs {schema.arity} values; {columns_given(_of_facts(rows.column_names))}"
            raise fault(place, message, advice)
        columns.append(rows.column_names[found])
    return columns


def _of_facts(names: Sequence[str]) -> list[str]:
    return [name for name in names if name not in (OPERATION, _ROW)]


def column_as(place: str, rows: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    """A column of numbered rows as values of a kind; a diagnostic where it has none."""
    column = rows.column(name)
    if column.null_count:
        row = rows.filter(pc.is_null(column)).column(_ROW)[0]
        raise fault(place, f"row {row}: column `{name}` is empty", "give every row a value there")
    return _cast(place, rows, name, kind)


def _cast(place: str, rows: pa.Table, name: str, kind: pa.DataType) -> pa.ChunkedArray:
    try:
        return rows.column(name).cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise fault(place, f"column `{name}`: {error}", f"values must be {kind}") from None


def fault(place: str, message: str, advice: str) -> ElastalogError:
    """What is wrong with rows of changes."""
    return error("E0904", location=place, message=message, advice=advice)


T = TypeVar("T")
