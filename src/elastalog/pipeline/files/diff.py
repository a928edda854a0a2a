"""Diff files: the insertions and deletions of one update.

Text: one change a line, `+edge(1, 2).` or `-edge(3, 4).`, constants as in the language, comments `//`. A line
`+rule: path(x, y) :- edge(x, y).` adds a rule, `-rule: ...` removes one; declarations are added like rules. Tabular
(CSV with a header, TSV, Parquet): the relation is the name of the file (`edge.csv`, `3-edge.csv`), a column `op` holds
`+` or `-`, the others are the attributes. A folder is the union of the files in it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field, replace
from itertools import count, islice
from pathlib import Path
from typing import Any

import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, error, noted
from elastalog.diagnostics.nearest import did_you_mean, nearest
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import allowance, file_bytes
from elastalog.pipeline.files.format import BYTE_ORDER_MARK, CERTAIN, Format, Kind, bare, first_record, parser_of
from elastalog.pipeline.files.parquet import parquet_table, read_parquet_table, text_of
from elastalog.pipeline.files.paths import natural_order
from elastalog.pipeline.files.policy import LINES, BadRow, BadRows, bad_rows_error, refuse
from elastalog.pipeline.files.text import read_text
from elastalog.relations import faults
from elastalog.relations.arrays import ARROW_TYPES, typed_array
from elastalog.relations.checks import columns_in_order, is_text, value_type
from elastalog.relations.faults import Fault, shown
from elastalog.relations.rows import value_fault
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import joined, table_of_columns
from elastalog.syntax.keywords import read_integer, read_string

pc = late.module("pyarrow.compute")

TABULAR = (".csv", ".tsv", ".parquet")
TEXTUAL = (".diff", ".update", ".txt", ".dl")


@dataclass(frozen=True, slots=True)
class Diff:
    """The changes of one update, by relation, in the order written; duplicates are left in. Rules as they are
    written."""

    inserted: dict[str, pa.Table] = field(default_factory=dict)
    deleted: dict[str, pa.Table] = field(default_factory=dict)
    added_rules: tuple[str, ...] = ()
    removed_rules: tuple[str, ...] = ()
    bad: dict[str, list[BadRow]] = field(default_factory=dict)
    """What is no change, by relation, if it was kept; lines that do not tell their relation under `LINES`."""

    @property
    def changes_rules(self) -> bool:
        return bool(self.added_rules or self.removed_rules)


Redeclare = Callable[[tuple[str, ...]], Mapping[str, Schema]]
"""The relations that there are once some rules have been added."""


def read_diff(
    path: Path | str, schemas: Mapping[str, Schema], redeclare: Redeclare | None = None, *, keep_bad: bool = False
) -> Diff:
    """The update in a diff file, or in a folder of them. Bad lines are an ElastalogError that names each; with
    `keep_bad` they are kept apart instead. With `redeclare`, facts may belong to relations that the same file
    declares."""
    text = str(path).strip()
    if text[:1] in "+-" and "(" in text and not os.path.exists(path):
        raise error("E0515.changes", text=shown(text))
    path = Path(path)
    if path.is_dir():
        parts = update_files(path)
        if not parts:
            kinds = ", ".join(f"`{suffix}`" for suffix in TEXTUAL + TABULAR)
            raise error("E0523.no_updates", location=path, folder=path, kinds=kinds)
        return union([read_diff(part, schemas, redeclare, keep_bad=keep_bad) for part in parts])
    form = Format.of({}, path.name)
    data = file_bytes(path, form.is_packed_at(path))
    if _suffix(path) in TABULAR:
        return _read_tabular(path, data, form, schemas, keep_bad)
    return parse_diff(_decoded(data, str(path)), str(path), schemas, redeclare, keep_bad=keep_bad)


def update_files(folder: Path | str) -> list[Path]:
    """The updates in a folder, files and folders alike, in natural order (`2.diff` before `10.diff`)."""
    folder = Path(folder)
    if not folder.is_dir():
        raise error("E0523", location=folder, folder=folder)
    entries = [path for path in folder.iterdir() if not path.name.startswith(".")]
    return sorted((path for path in entries if path.is_dir() or _suffix(path) in TABULAR + TEXTUAL), key=natural_order)


def is_diff(path: Path) -> bool:
    """Whether a file is a diff file by its name, or one by how it begins; otherwise it is a table."""
    if _suffix(path) in (".diff", ".update", ".dl"):
        return True
    with suppress(OSError), path.open("rb") as file:
        return file.read(1 << 12).lstrip()[:1] in (b"+", b"-", b"/")
    return False


def parse_diff(
    text: str, file: str, schemas: Mapping[str, Schema], redeclare: Redeclare | None = None, *, keep_bad: bool = False
) -> Diff:
    """The update written in a text."""
    facts: list[tuple[int, str]] = []
    rules: dict[str, list[str]] = {"+": [], "-": []}
    for number, line in enumerate(text.removeprefix("\ufeff").split("\n"), 1):
        rule = rule_in(line)
        if rule is not None:
            rules[rule[0]].append(rule[1])
        elif not is_blank(line):
            facts.append((number, line))
    if rules["+"] and redeclare is not None:
        with noted(f"in {file}"):
            schemas = redeclare(tuple(rules["+"]))
    rows: dict[tuple[str, str], list[list[Any]]] = {}
    bad: dict[str, list[BadRow]] = {}
    for number, line in facts:
        if not number & 0xFFF:
            allowance().check()
        try:
            sign, relation, values = change(line, schemas)
        except BadLineError as error:
            bad.setdefault(relation_of(line, schemas), []).append(BadRow(file, number, error.fault, line.rstrip()))
        else:
            rows.setdefault((sign, relation), []).append(values)
    if bad and not keep_bad:
        every = sorted((row for some in bad.values() for row in some), key=lambda row: row.line)
        raise bad_rows_error("bad change", every, is_each=True)
    diff = Diff(added_rules=tuple(rules["+"]), removed_rules=tuple(rules["-"]), bad=bad)
    for (sign, relation), found in rows.items():
        side = diff.inserted if sign == "+" else diff.deleted
        side[relation] = _table(schemas[relation], found)
    return diff


# --- tables --------------------------------------------------------------------------------------------------------


def _read_tabular(path: Path, data: bytes, form: Format, schemas: Mapping[str, Schema], keep_bad: bool) -> Diff:
    relation = re.sub(r"^[0-9]+[-_.]", "", path.name.split(_suffix(path))[0])
    if relation not in schemas:
        near = nearest(relation, schemas)
        listed = "" if near else f" ({', '.join(schemas) or 'the program declares none'})"
        advice = f"call the file after its relation{listed}, as `{near or next(iter(schemas), 'edge')}{_suffix(path)}`"
        advice += ", with a column `op` that holds `+` or `-`"
        raise ElastalogError([Diagnostic(faults.UNKNOWN, f"no relation `{relation}`", help=advice, location=str(path))])
    schema = schemas[relation]
    if form.kind is Kind.PARQUET:
        return changes_of_table(schema, parquet_table(data, str(path)), str(path), keep_bad)
    header = data.removeprefix(BYTE_ORDER_MARK).split(b"\n", 1)[0]
    forms = [Format(Kind.TEXT, mark, has_header=True, is_rfc4180=mark != "\t") for mark in "\t,;|"]
    written = next((form for form in forms if OPERATION in bare(first_record(header, form))), None)
    if not data:
        return Diff()
    if written is None:
        mark = max(",\t;|", key=lambda mark: header.count(mark.encode()))
        mark = mark.replace("\t", "\\t")  # which would be shown as blanks
        names = mark.join((OPERATION, *schema.names))
        raise error("E0522", location=f"{path}:1", file=path.name, relation=relation, names=names, mark=mark)
    return _by_op(
        schema, *read_text(_with_op(schema), data, str(path), written, (OPERATION,)), count(2), keep_bad, str(path)
    )


def changes_of_table(
    schema: Schema, table: pa.Table, place: str, keep_bad: bool, lines: Sequence[int] | None = None
) -> Diff:
    """The changes of a relation in a table with a column `op`. Texts are read as values where the relation has numbers.
    Bad rows are as in `read_diff`, at these `lines` of the place, by default the numbers of the rows."""
    lines = range(1, table.num_rows + 1) if lines is None else lines
    whole = _with_op(schema)
    given = columns_in_order(whole, table, place, (OPERATION,))
    unread: dict[int, Fault] = {}
    columns = [_values(column, array, unread) for column, array in zip(whole.columns, given, strict=True)]
    good, bad = read_parquet_table(whole, pa.table(columns, names=list(whole.names)), place)
    bad = [
        replace(
            one, line=lines[one.line - 1], fault=unread.get(one.line - 1, one.fault), text=text_of(given, one.line - 1)
        )
        for one in bad
    ]
    return _by_op(schema, good, bad, lines, keep_bad, place)


def _values(column: Column, array: pa.ChunkedArray, unread: dict[int, Fault]) -> pa.ChunkedArray:
    """A column whose texts are read as values of the column's type, null where a text is not one; numbers become texts
    in a column of symbols."""
    kind = value_type(array.type)
    if column.base is Base.SYMBOL:
        return array.cast(pa.string()) if pa.types.is_integer(kind) else array
    if column.base not in CERTAIN or not is_text(kind):
        return array
    texts = array.cast(pa.string())
    wanted = ARROW_TYPES[column.base]
    if pc.all(pc.match_substring_regex(texts, CERTAIN[column.base])).as_py() is not False:
        return texts.cast(wanted)
    parse = parser_of(column)
    found = [None if text is None else parse(text) for text in texts.to_pylist()]
    for row, value in enumerate(found):
        if isinstance(value, Fault):
            unread.setdefault(row, value)
            found[row] = None
    return pa.chunked_array([pa.array(found, wanted)])


OPERATION = "op"


def _with_op(schema: Schema) -> Schema:
    return Schema(schema.name, (Column(OPERATION, Base.SYMBOL), *schema.columns))


def _by_op(
    schema: Schema, table: pa.Table, bad: list[BadRow], lines: Iterable[int], keep_bad: bool, place: str
) -> Diff:
    """The changes in rows whose first column is `op`; rows with another operation than `+` and `-` are bad, too.
    `lines`: those of all rows, bad ones included."""
    relation, ops = schema.name, table.column(OPERATION)
    is_insertion, is_deletion = pc.equal(ops, "+"), pc.equal(ops, "-")
    if wrong := pc.indices_nonzero(pc.invert(pc.or_(is_insertion, is_deletion))).to_pylist():
        bad = sorted([*bad, *_bad_ops(place, lines, table, wrong, bad)], key=lambda row: row.line)
    if not keep_bad:
        refuse(BadRows(), relation, bad)
    diff = Diff(bad={relation: bad} if bad else {})
    for side, mask in ((diff.inserted, is_insertion), (diff.deleted, is_deletion)):
        chosen = table.filter(mask)
        if chosen.num_rows:
            columns = list(chosen.columns)[1:]
            side[relation] = table_of_columns(schema.arrow(), chosen.num_rows, columns)
    return diff


def _bad_ops(
    place: str, lines: Iterable[int], table: pa.Table, wrong: list[int], bad: list[BadRow]
) -> Iterator[BadRow]:
    """Rows whose `op` is neither `+` nor `-`, with their lines in the file; rows between them may be bad for other
    reasons."""
    taken = {row.line for row in bad}
    numbers = list(islice((line for line in lines if line not in taken), table.num_rows))
    for row in wrong:
        values = [column[row].as_py() for column in table.columns]
        reason = f"`op` is {shown(values[0])}, neither `+` nor `-`"
        yield BadRow(place, numbers[row], Fault(faults.OPERATION, reason), ", ".join(map(repr, values)))


def _table(schema: Schema, rows: list[list[Any]]) -> pa.Table:
    arrow_schema = schema.arrow()
    arrays = [typed_array([row[i] for row in rows], kind) for i, kind in enumerate(arrow_schema.types)]
    return table_of_columns(arrow_schema, len(rows), arrays)


def union(diffs: Sequence[Diff]) -> Diff:
    """Several updates as one."""

    def united(side: Callable[[Diff], dict[str, pa.Table]]) -> dict[str, pa.Table]:
        names = dict.fromkeys(name for diff in diffs for name in side(diff))
        return {name: joined([side(diff)[name] for diff in diffs if name in side(diff)]) for name in names}

    bad: dict[str, list[BadRow]] = {}
    for diff in diffs:
        for name, rows in diff.bad.items():
            bad.setdefault(name, []).extend(rows)
    return Diff(
        united(lambda diff: diff.inserted),
        united(lambda diff: diff.deleted),
        tuple(rule for diff in diffs for rule in diff.added_rules),
        tuple(rule for diff in diffs for rule in diff.removed_rules),
        bad,
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
        raise ElastalogError.of("E0505", location=f"{file}:{line}", data=data[error.start]) from None


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


class BadLineError(Exception):
    """A line is not a change: why, and what to do about it."""

    def __init__(self, reason: str, code: str = faults.CHANGE, advice: str | None = None) -> None:
        self.fault = Fault(code, reason, advice or faults.HELP[faults.CHANGE])


def is_blank(line: str) -> bool:
    """Whether a line is empty, apart from a comment."""
    return _BLANK.fullmatch(line) is not None


def rule_in(line: str) -> tuple[str, str] | None:
    """The sign and the text of a rule that is added or removed; None for any other line."""
    found = _RULE.fullmatch(line)
    return None if found is None or is_blank(found[2]) else (found[1], found[2].strip())


def change(line: str, schemas: Mapping[str, Schema]) -> tuple[str, str, list[Any]]:
    """The sign, the relation and the values of a change. Raises BadLineError."""
    start = _CHANGE.match(line)
    if _RULE.match(line):
        raise BadLineError("no rule stands behind `rule:`")
    if start is None:
        advice = "write `//` before a comment" if line.lstrip().startswith(("#", "%", ";", "--")) else None
        raise BadLineError("a change begins with `+` or `-`, a relation and `(`", advice=advice)
    sign, relation = start[1], start[2]
    if relation not in schemas:
        raise unknown_relation(relation, schemas)
    schema = schemas[relation]
    row: list[re.Match[str]] = []
    position = start.end()
    while not (end := _END.fullmatch(line, position)) or row:
        found = _CONSTANT.match(line, position)
        if found is None:
            raise _no_value(line, position, sign, schema, len(row))
        row.append(found)
        position = found.end()
        comma = _COMMA.match(line, position)
        if comma is None:
            end = _END.fullmatch(line, position)
            break
        position = comma.end()
    if end is None:
        raise BadLineError(f"expected `,` or `)` and the end of the line at column {_column(line, position)}")
    if len(row) != schema.arity:
        raise BadLineError(f"`{schema.name}` has {schema.arity} columns, the change has {len(row)}", "E0501")
    return sign, relation, [_value(column, found) for column, found in zip(schema.columns, row, strict=True)]


def relation_of(line: str, schemas: Mapping[str, Schema]) -> str:
    """The relation that a bad line is about, or `LINES` if it does not say."""
    start = _CHANGE.match(line)
    return start[2] if start is not None and start[2] in schemas else LINES


def _no_value(line: str, position: int, sign: str, schema: Schema, index: int) -> BadLineError:
    """The error that there is no value where a column needs one."""
    wanted = "`)`"
    if index < schema.arity:
        column = schema.columns[index]
        wanted = f"{'an' if column.base is Base.UNSIGNED else 'a'} {column.base.value} for `{column.name}`"
    met = re.match(r"\s*([\w?]+|\S?)", line[position:])
    there = f"found {shown(met[1])}" if met and met[1] else "the line ends"
    example = f"{sign}{schema.name}({', '.join(_EXAMPLES.get(each.base, '1') for each in schema.columns)})."
    advice = f"write it as `{example}`; strings stand in double quotes"
    if sign == "-" and met and met[1] == "_":
        advice = f"name each fact, as `{example}`; in `elastalog shell`, `delete` deletes all that fit a pattern"
    return BadLineError(f"expected {wanted} at column {_column(line, position)}, {there}", advice=advice)


_EXAMPLES = {Base.SYMBOL: '"a"', Base.FLOAT: "1.5"}


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
            raise BadLineError(f"unknown escape in {shown(found['string'])}")
    elif found["float"] is not None:
        value = float(found["sign"] + found["float"])
    else:
        integer = read_integer(found["integer"])
        if integer is None:
            raise BadLineError(f"{shown(found[0].strip())} does not fit {column.base.value} `{column.name}`", "E0503")
        value = -integer[0] if found["sign"] else integer[0]
    fault = value_fault(column, value)
    if fault is not None:
        raise BadLineError(fault.reason, fault.code, "use a constant of the declared type")
    return float(value) if column.base is Base.FLOAT else value


def unknown_relation(relation: str, schemas: Mapping[str, Schema]) -> BadLineError:
    """The error that a change names an unknown relation."""
    advice = did_you_mean(relation, schemas) or f"the relations are {', '.join(schemas) or 'none'}"
    return BadLineError(f"no relation `{relation}`", faults.UNKNOWN, advice)
