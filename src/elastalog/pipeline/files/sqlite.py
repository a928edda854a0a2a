"""Facts in tables of SQLite (`IO=sqlite`): a table or view is read, a table is written.

Integers of SQLite have 64 bits with a sign: an `unsigned` from 2^63 on is kept as the negative number with the same
bits. A float that is not a number is kept as NULL, a record or branch as its text. A relation without attributes is a
table with a column without meaning."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached, error, finding
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.json_files import table_of_rows
from elastalog.pipeline.files.policy import BadRow
from elastalog.relations.faults import Fault
from elastalog.relations.records import record_texts
from elastalog.relations.schema import Column, Schema, column_order

sqlite3 = late.module("sqlite3")

_STEPS = 100_000
"""Steps of SQLite's virtual machine between two checks on a running query."""

_TYPES: Final = {
    Base.NUMBER: "INTEGER", Base.UNSIGNED: "INTEGER", Base.FLOAT: "REAL", Base.SYMBOL: "TEXT", Base.RECORD: "TEXT",
}  # fmt: skip


def database_of(parameters: Mapping[str, str], relation: str) -> str:
    """The file of the database that a directive names."""
    return (parameters.get("dbname") or parameters.get("filename") or f"{relation}.sqlite").removeprefix("file:")


def read_sqlite(schema: Schema, path: Path, name: str) -> tuple[pa.Table, list[BadRow]]:
    """The good rows of a table or view and the bad ones, columns as `column_order` matches them."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    with _faults_of(path), closing(sqlite3.connect(uri, uri=True)) as database, _within_limits(database):
        known = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')")]
        if name not in known:
            raise error("E0510.no_table", location=path, path=path, name=name, near=did_you_mean(name, known))
        cursor = database.execute(f"SELECT * FROM {_quoted(name)}")
        columns = [column[0] for column in cursor.description]
        if not schema.arity:
            is_there = cursor.fetchone() is not None
            return table_of_rows(schema, [[]] if is_there else [], [], lambda i, fault: _bad(path, i, fault, ()))
        order = column_order(schema, columns, what=f"table `{name}`", location=str(path))
        rows = [[row[i] for i in order] for row in cursor]
    for i, column in enumerate(schema.columns):
        if (read := {Base.UNSIGNED: _unsigned, Base.FLOAT: _float}.get(column.base)) is not None:
            for row in rows:
                row[i] = read(row[i])
    return table_of_rows(schema, rows, [], lambda i, fault: _bad(path, i, fault, rows[i]))


@contextmanager
def _within_limits(database: Any) -> Iterator[None]:
    """Ends a query when time or memory have run out: a view may go on for ever."""
    allowed = allowance()
    reached: list[LimitReached] = []

    def is_reached() -> bool:
        try:
            allowed.check()
        except LimitReached as limit:
            reached.append(limit)
        return bool(reached)

    database.set_progress_handler(is_reached, _STEPS)
    try:
        yield
    except sqlite3.OperationalError:
        if reached:
            raise reached[0] from None
        raise


def write_sqlite(schema: Schema, table: pa.Table, path: Path, name: str) -> None:
    """Writes a table, in the place of one with its name; the database is made if there is none."""
    columns = ", ".join(f"{_quoted(c.name)} {_TYPES[c.base]}" for c in schema.columns) or '"()" INTEGER'
    places = ", ".join("?" * max(schema.arity, 1))
    path.parent.mkdir(parents=True, exist_ok=True)
    with _faults_of(path), closing(sqlite3.connect(path)) as database, database:
        database.execute("BEGIN IMMEDIATE")
        (kind,) = database.execute("SELECT max(type) FROM sqlite_master WHERE name = ?", (name,)).fetchone()
        database.execute(f"DROP {'VIEW' if kind == 'view' else 'TABLE'} IF EXISTS {_quoted(name)}")
        database.execute(f"CREATE TABLE {_quoted(name)} ({columns})")
        database.executemany(f"INSERT INTO {_quoted(name)} VALUES ({places})", _rows(schema, table))


def _rows(schema: Schema, table: pa.Table) -> Iterator[tuple[Any, ...]]:
    if not schema.arity:
        yield from [(1,)] * table.num_rows
        return
    for batch in table.to_batches():
        yield from zip(*map(_written, schema.columns, batch.columns), strict=True)


def _written(column: Column, array: pa.Array) -> Iterable[Any]:
    """The values of a column for SQLite: records as they are printed, large unsigned numbers as signed ones with the
    same bits."""
    if column.record is not None:
        array = record_texts(column.record, pa.chunked_array([array]))
    values = array.to_pylist()
    return (v - 2**64 if v >= 2**63 else v for v in values) if column.base is Base.UNSIGNED else values


def _unsigned(value: Any) -> Any:
    return value + 2**64 if isinstance(value, int) and value < 0 else value


def _float(value: Any) -> Any:
    return float("nan") if value is None else float(value) if isinstance(value, int) else value


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _bad(path: Path, index: int, fault: Fault, row: Any) -> BadRow:
    return BadRow(str(path), index + 1, fault, repr(tuple(row)))


@contextmanager
def _faults_of(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        fault = finding("E0515.faults_of", location=path, path=path, error=error)
        raise ElastalogError([fault]) from None
