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
from typing import TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from elastalog.diagnostics.diagnostic import ElastalogError, error, noted
from elastalog.pipeline.files.allowance import read_bounded
from elastalog.pipeline.files.diff import (
    OPERATION,
    Diff,
    changes_of_table,
    is_diff,
    read_diff,
    union,
    unknown_relation,
    update_files,
)
from elastalog.pipeline.files.parquet import read_in_batches, text_of
from elastalog.pipeline.files.policy import BadRow, BadRows, refuse
from elastalog.program import Program, RuleEdits, change_rules
from elastalog.relations.checks import value_type
from elastalog.relations.schema import Schema, columns_given, places_by_name, schemas_of

RELATION = "relation"
_NAMES_OF_RELATION = (RELATION, "pred")
_STEP = "step"


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
    (table, lines), place = _read(path), str(path)
    for wanted in (_STEP, OPERATION):
        if wanted not in table.column_names:
            raise fault(place, f"`{path.name}` has no column `{wanted}`", "every row needs a `step` and an `op`")
    given = table.column(_STEP)
    try:
        steps = given.cast(value_type(given.type)).cast(pa.int64())
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise fault(place, f"column `{_STEP}`: {error}", "values must be whole numbers") from None
    if steps.null_count:
        line = lines[pc.indices_nonzero(pc.is_null(steps))[0].as_py()]
        raise fault(f"{place}:{line}", f"column `{_STEP}` is empty", "give every row a value there")
    rows = table.drop_columns([_STEP])
    for step in sorted(pc.unique(steps).to_pylist()):
        chosen = np.flatnonzero(pc.equal(steps, step))
        yield step, read_changes(rows.take(chosen), schemas, path.stem, place, lines=lines[chosen].tolist())


def _read(path: Path) -> tuple[pa.Table, np.ndarray]:
    """The rows of a table, and their lines: of a Parquet file, their numbers."""
    try:
        data = read_bounded(path, is_gzip=False)
        if path.suffix.lower() == ".parquet":
            table = read_in_batches(data, str(path))
            return table, np.arange(1, table.num_rows + 1)
        from pyarrow import csv

        header = data.split(b"\n", 1)[0].decode()
        form = csv.ParseOptions(delimiter=next((mark for mark in "\t,;|" if mark in header), ","))
        names = csv.open_csv(pa.BufferReader(data), parse_options=form).schema.names
        text = csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=False)
        table = csv.read_csv(pa.BufferReader(data), parse_options=form, convert_options=text)
        # Blank lines are no rows.
        lines = np.array([i for i, line in enumerate(data.split(b"\n"), 1) if line.strip(b"\r")][1:], np.int64)
        return table, lines if len(lines) == table.num_rows else np.arange(2, table.num_rows + 2)
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


def read_changes(
    rows: pa.Table,
    schemas: Mapping[str, Schema],
    relation: str | None,
    place: str,
    *,
    keep_bad: bool = False,
    lines: Sequence[int] | None = None,
) -> Diff:
    """The update that rows describe. `relation`: the one that they are about, None if a column says it; `place` and
    `lines`: where they come from, as in `changes_of_table`. With `keep_bad`, rows that are not changes are kept apart.
    """
    lines = range(1, rows.num_rows + 1) if lines is None else lines
    named = named_relation(rows.column_names, None if relation is None else schemas.get(relation))
    if named is None:
        if not rows.num_rows:
            return Diff()
        if relation is None or relation not in schemas:
            advice = "name the table after its relation, or give every row one in a column `relation`"
            raise fault(f"{place}:{lines[0]}", f"no relation `{relation or ''}`", advice)
        return changes_of_table(schemas[relation], rows, place, keep_bad, lines)
    names = np.array([str(name) for name in rows.column(named).to_pylist()], np.object_)
    rest = rows.drop_columns([named])
    found = []
    for name in dict.fromkeys(names.tolist()):
        chosen = np.flatnonzero(names == name)
        part, own = rest.take(chosen), [lines[i] for i in chosen.tolist()]
        if name in schemas:
            table = _by_place(place, part, schemas[name])
            found.append(changes_of_table(schemas[name], table, place, keep_bad, own))
        else:
            why = unknown_relation(name, schemas).fault
            bad = [BadRow(place, n, why, text_of(rows.columns, i)) for i, n in zip(chosen.tolist(), own, strict=True)]
            if not keep_bad:
                refuse(BadRows(), name, bad)
            found.append(Diff(bad={name: bad}))
    return union(found)


def _by_place(place: str, rows: pa.Table, schema: Schema) -> pa.Table:
    """The rows of columns `a1`, `a2`, …, which get the names of the relation's attributes."""
    names = [OPERATION, *(f"a{i + 1}" for i in range(schema.arity))]
    places = places_by_name(names, rows.column_names)
    for name, found in zip(names, places, strict=True):
        if found is None:
            message = f"`{PurePath(place).name}` has no column `{name}`"
            advice = f"`{schema.name}` needs {schema.arity} values; {columns_given(rows.column_names)}"
            raise fault(place, message, advice)
    columns = [rows.column(found) for found in places if found is not None]
    return pa.table(columns, names=[OPERATION, *schema.names])


def fault(place: str, message: str, advice: str) -> ElastalogError:
    """The error that rows of changes are malformed."""
    return error("E0904", location=place, message=message, advice=advice)


T = TypeVar("T")
