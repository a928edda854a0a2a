"""Diff files: the insertions and deletions of one update.

Text: one change a line, `+edge(1, 2).` or `-edge(3, 4).`, constants as in the language, comments `//`. A line
`+rule: path(x, y) :- edge(x, y).` adds a rule, `-rule: ...` removes one; declarations are added like rules. Tabular
(CSV with a header, TSV, Parquet): the relation is the name of the file (`edge.csv`, `3-edge.csv`), a column `op` holds
`+` or `-`, the others are the attributes. A folder is the union of the files in it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.diagnostics.nearest import nearest
from elastalog.diagnostics.noted import noted
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.format import Format, Kind
from elastalog.pipeline.files.parquet import parquet_table, read_parquet_table
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.files.policy import MOST_REPORTED, Policy, settle
from elastalog.pipeline.files.read import file_bytes
from elastalog.pipeline.files.text import read_text
from elastalog.relations.faults import shown
from elastalog.relations.rows import value_fault
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import joined, table_of_columns
from elastalog.syntax.constants import read_integer, read_string

pc = late.module("pyarrow.compute")

TABULAR = (".csv", ".tsv", ".parquet")
TEXTUAL = (".diff", ".update", ".txt", ".dl")

_CHANGE = re.compile(r"\s*([+-])\s*([A-Za-z_?][\w?.]*)\s*\(", re.ASCII)
_RULE = re.compile(r"\s*([+-])\s*rule\s*:(.*)", re.DOTALL)
_CONSTANT = re.compile(
    r"""\s*(?:(?P<string>"(?:[^"\\]|\\.)*+")
    |(?P<sign>-?)\s*(?:(?P<float>[0-9]+\.[0-9]+(?:[eE][+-]?[0-9]+)?(?![\w.])|[0-9]+[eE][+-]?[0-9]+(?![\w.])|nan\b|inf\b)
    |(?P<integer>(?:0x[0-9a-fA-F]+|0b[01]+|[0-9]+\.[0-9]+\.[0-9]+\.[0-9]+|[0-9]+)u?(?![\w.]))))""",
    re.ASCII | re.VERBOSE,
)
_END = re.compile(r"\s*\)\s*\.?\s*(?://.*)?", re.DOTALL)
_BLANK = re.compile(r"\s*(?://.*)?", re.DOTALL)
_COMMA = re.compile(r"\s*,")


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes of one update, by relation, in the order written; duplicates are left in. Rules as they are
    written."""

    inserted: dict[str, pa.Table] = field(default_factory=dict)
    deleted: dict[str, pa.Table] = field(default_factory=dict)
    added_rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()

    @property
    def changes_rules(self) -> bool:
        return bool(self.added_rules or self.removed_rules)


Redeclare = Callable[[tuple[str, ...]], Mapping[str, Schema]]
"""The relations that there are once some rules have been added."""


def read_diff(path: Path | str, schemas: Mapping[str, Schema], redeclare: Redeclare | None = None) -> Diff:
    """The update in a diff file, or in a folder of them. Bad lines are an ElastalogError that names each. With
    `redeclare`, facts may belong to relations that the same file declares."""
    path = Path(path)
    if path.is_dir():
        parts = update_files(path)
        if not parts:
            raise ElastalogError([_no_updates(path)])
        return _union([read_diff(part, schemas, redeclare) for part in parts])
    form = Format.of({}, path.name)
    data = file_bytes(path, form.is_gzip and form.kind is not Kind.PARQUET)
    if _suffix(path) in TABULAR:
        return _read_tabular(path, data, form, schemas)
    return parse_diff(_decoded(data, str(path)), str(path), schemas, redeclare)


def update_files(folder: Path | str) -> list[Path]:
    """The updates in a folder, files and folders alike, in natural order (`2.diff` before `10.diff`)."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ElastalogError([_no_folder(folder)])
    entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return sorted((path for path in entries if path.is_dir() or _suffix(path) in TABULAR + TEXTUAL), key=natural_order)


def parse_diff(text: str, file: str, schemas: Mapping[str, Schema], redeclare: Redeclare | None = None) -> Diff:
    """The update written in a text."""
    facts: list[tuple[int, str]] = []
    rules: dict[str, list[str]] = {"+": [], "-": []}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        rule = _RULE.fullmatch(line)
        if rule is not None and not _BLANK.fullmatch(rule[2]):
            rules[rule[1]].append(rule[2].strip())
        elif not _BLANK.fullmatch(line):
            facts.append((number, line))
    if rules["+"] and redeclare is not None:
        with noted(f"in {file}"):
            schemas = redeclare(tuple(rules["+"]))
    rows: dict[tuple[str, str], list[list[Any]]] = {}
    bad: list[Diagnostic] = []
    for number, line in facts:
        if not number & 0xFFF:
            allowance().check()
        try:
            sign, relation, row = _change(line, schemas)
        except _BadLineError as error:
            bad.append(_bad_line(error, line, f"{file}:{number}"))
        else:
            rows.setdefault((sign, relation), []).append(row)
    if bad:
        raise ElastalogError(_first_of(bad))
    diff = Diff(added_rules=tuple(rules["+"]), removed_rules=tuple(rules["-"]))
    for (sign, relation), found in rows.items():
        side = diff.inserted if sign == "+" else diff.deleted
        side[relation] = _table(schemas[relation], found)
    return diff


# --- one line ------------------------------------------------------------------------------------------------------


class _BadLineError(Exception):
    def __init__(self, reason: str, code: str = "E0520", advice: str | None = None) -> None:
        self.reason, self.code = reason, code
        self.advice = (
            advice or "write one change a line, as `+edge(1, 2).`, `-edge(3, 4).` or `+rule: path(x, y) :- edge(x, y).`"
        )


def _change(line: str, schemas: Mapping[str, Schema]) -> tuple[str, str, list[Any]]:
    start = _CHANGE.match(line)
    if _RULE.match(line):
        raise _BadLineError("no rule stands behind `rule:`")
    if start is None:
        raise _BadLineError("a change begins with `+` or `-`, a relation and `(`")
    sign, relation = start[1], start[2]
    if relation not in schemas:
        raise _unknown_relation(relation, schemas)
    schema = schemas[relation]
    row: list[Any] = []
    position = start.end()
    while not (end := _END.fullmatch(line, position)) or row:
        found = _CONSTANT.match(line, position)
        if found is None:
            raise _BadLineError(f"no constant at column {_column(line, position)}")
        if len(row) < schema.arity:
            row.append(_value(schema.columns[len(row)], found))
        else:
            row.append(None)  # too many: counted below
        position = found.end()
        comma = _COMMA.match(line, position)
        if comma is None:
            end = _END.fullmatch(line, position)
            break
        position = comma.end()
    if end is None:
        raise _BadLineError(f"expected `)` and the end of the line at column {_column(line, position)}")
    if len(row) != schema.arity:
        raise _BadLineError(f"`{schema.name}` has {schema.arity} columns, the change has {len(row)}", "E0501")
    return sign, relation, row


def _column(line: str, position: int) -> int:
    """The column, from 1, of the first character at or after a position that is not blank."""
    rest = line[position:].rstrip()
    return position + len(rest) - len(rest.lstrip()) + 1


def _value(column: Column, found: re.Match[str]) -> Any:
    value: int | float | str
    if found["string"] is not None:
        unknown: list[int] = []
        value = read_string(found["string"], lambda first, last: unknown.append(first))
        if unknown:
            raise _BadLineError(f"unknown escape in {shown(found['string'])}")
    elif found["float"] is not None:
        value = float(found["sign"] + found["float"])
    else:
        integer = read_integer(found["integer"])
        if integer is None:
            raise _BadLineError(f"{shown(found[0].strip())} does not fit {column.base.value} `{column.name}`", "E0503")
        value = -integer[0] if found["sign"] else integer[0]
    fault = value_fault(column, value)
    if fault is not None:
        raise _BadLineError(fault.reason, fault.code, "use a constant of the declared type")
    return float(value) if column.base is Base.FLOAT else value


def _unknown_relation(relation: str, schemas: Mapping[str, Schema]) -> _BadLineError:
    near = nearest(relation, schemas)
    advice = f"did you mean `{near}`?" if near else f"the relations are {', '.join(schemas) or 'none'}"
    return _BadLineError(f"no relation `{relation}`", "E0521", advice)


# --- tables --------------------------------------------------------------------------------------------------------


def _read_tabular(path: Path, data: bytes, form: Format, schemas: Mapping[str, Schema]) -> Diff:
    relation = re.sub(r"^[0-9]+[-_.]", "", path.name.split(_suffix(path))[0])
    if relation not in schemas:
        error = _unknown_relation(relation, schemas)
        raise ElastalogError([Diagnostic(error.code, error.reason, help=error.advice, location=str(path))])
    schema = schemas[relation]
    wanted = Schema(relation, (Column("op", Base.SYMBOL), *schema.columns))
    if form.kind is Kind.PARQUET:
        table, bad = read_parquet_table(wanted, parquet_table(data, str(path)), str(path), ("op",))
    else:
        header = data.split(b"\n", 1)[0]
        delimiter = "\t" if b"\t" in header else ","
        written = Format(Kind.TEXT, delimiter, has_header=True, is_rfc4180=delimiter == ",")
        if data and b"op" not in re.split(rb"[,\t\r]", header):
            raise ElastalogError([_no_op(path)])
        table, bad = read_text(wanted, data, str(path), written, ("op",))
    settle(Policy(), relation, [str(path)], table.num_rows, bad)
    ops = table.column("op")
    is_insertion, is_deletion = pc.equal(ops, "+"), pc.equal(ops, "-")
    if wrong := pc.invert(pc.or_(is_insertion, is_deletion)).to_pylist().count(True):
        raise ElastalogError([_wrong_op(path, ops, wrong)])
    diff = Diff()
    for side, mask in ((diff.inserted, is_insertion), (diff.deleted, is_deletion)):
        chosen = table.filter(mask)
        if chosen.num_rows:
            columns = list(chosen.columns)[1:]
            side[relation] = table_of_columns(schema.arrow(), chosen.num_rows, columns)
    return diff


def _table(schema: Schema, rows: list[list[Any]]) -> pa.Table:
    arrow_schema = schema.arrow()
    arrays = [pa.array([row[i] for row in rows], kind) for i, kind in enumerate(arrow_schema.types)]
    return table_of_columns(arrow_schema, len(rows), arrays)


def _union(diffs: list[Diff]) -> Diff:
    def united(side: Callable[[Diff], dict[str, pa.Table]]) -> dict[str, pa.Table]:
        names = dict.fromkeys(name for diff in diffs for name in side(diff))
        return {name: joined([side(diff)[name] for diff in diffs if name in side(diff)]) for name in names}

    return Diff(
        united(lambda diff: diff.inserted),
        united(lambda diff: diff.deleted),
        tuple(rule for diff in diffs for rule in diff.added_rules),
        tuple(rule for diff in diffs for rule in diff.removed_rules),
    )


def _suffix(path: Path) -> str:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if suffixes and suffixes[-1] == ".gz":
        suffixes.pop()
    return suffixes[-1] if suffixes else ""


# --- diagnostics ---------------------------------------------------------------------------------------------------


def _decoded(data: bytes, file: str) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        found = f"byte 0x{data[error.start]:02x} is not UTF-8"
        raise ElastalogError(
            [Diagnostic("E0505", found, help="convert the text to UTF-8", location=f"{file}:{line}")]
        ) from None


def _bad_line(error: _BadLineError, line: str, location: str) -> Diagnostic:
    return Diagnostic(
        code=error.code,
        message=f"bad change: {error.reason}",
        notes=(f"the line is {shown(line.rstrip())}",),
        help=error.advice,
        location=location,
    )


def _first_of(bad: list[Diagnostic]) -> list[Diagnostic]:
    if len(bad) <= MOST_REPORTED:
        return bad
    more = len(bad) - MOST_REPORTED
    note = Diagnostic("E0520", f"{more:,} more bad line{'' if more == 1 else 's'}", severity="note")
    return [*bad[:MOST_REPORTED], note]


def _no_op(path: Path) -> Diagnostic:
    return Diagnostic(
        code="E0522",
        message=f"`{path.name}` has no column `op`",
        help="begin with a header that names `op` and the attributes, as `op,x,y`",
        location=f"{path}:1",
    )


def _wrong_op(path: Path, ops: pa.ChunkedArray, wrong: int) -> Diagnostic:
    row, text = next((i, text) for i, text in enumerate(ops.to_pylist(), 1) if text not in ("+", "-"))
    more = (f"{wrong - 1:,} more row{' is' if wrong == 2 else 's are'} bad",) if wrong > 1 else ()
    return Diagnostic(
        code="E0522",
        message=f"`op` is {shown(text)}, neither `+` nor `-`",
        notes=more,
        help="write `+` for an insertion, `-` for a deletion",
        location=f"{path}, row {row}",
    )


def _no_folder(folder: Path) -> Diagnostic:
    return Diagnostic(
        code="E0523", message=f"no folder of updates `{folder}`", help="check the path", location=str(folder)
    )


def _no_updates(folder: Path) -> Diagnostic:
    kinds = ", ".join(f"`{suffix}`" for suffix in TEXTUAL + TABULAR)
    return Diagnostic(
        code="E0523",
        message=f"the folder `{folder}` holds no updates",
        help=f"updates are files that end in {kinds}",
        location=str(folder),
    )
