"""Facts from files, one file or the inputs of a program's relation, and from rows given in Python, which have numbers
where files have lines."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, assert_never

import pyarrow as pa

from elastalog.analysis.program import CheckedProgram, Directive, Relation
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.late import dataclass
from elastalog.pipeline.files.allowance import file_bytes, is_packed, read_stream
from elastalog.pipeline.files.format import OF_TEXT, Format, Kind, look_at, medium, warn_of_empty, with_name
from elastalog.pipeline.files.paths import find_facts, natural_order, require_file
from elastalog.pipeline.files.policy import FAIL, BadRow, BadRows, Report, settle
from elastalog.pipeline.files.text import read_text
from elastalog.relations.checks import converted_values
from elastalog.relations.rows import columns_of_good_rows
from elastalog.relations.schema import Schema
from elastalog.relations.tables import as_table, joined, require_rows, table_of_columns

if TYPE_CHECKING:
    from elastalog.backends.protocol import FactFiles

_Read: TypeAlias = tuple[pa.Table, list[BadRow], int]
"""The good rows, the bad ones, and how many values were given in another type."""

log = logging.getLogger("elastalog.facts")


@dataclass(frozen=True, slots=True)
class FactsRead:
    """The facts of a relation as a table of its Arrow schema, but that symbols may be dictionary-encoded (duplicates
    included), and how the reading went. `files`: the facts, if tasks have written them as words; then the table is
    empty."""

    table: pa.Table
    report: Report
    files: FactFiles | None = None


def read_input(relation: Relation, root: Path | str, policy: BadRows | None = None) -> FactsRead:
    """The explicit facts of all `.input` directives of a relation, from files under `root` or standard input.

    Without `filename` the file is looked for as `find_facts` says. A relation without `.input` has no such facts."""
    schema = Schema.of(relation)
    files: list[str] = []

    def read(directive: Directive) -> _Read:
        found, place = _read_directive(schema, relation, directive, root)
        files.append(place)
        return found

    table, bad, converted = _together(schema, map(read, relation.inputs))
    return FactsRead(table, settle(policy or FAIL, relation.name, files, table.num_rows, bad, converted))


def file_of(relation: Relation, directive: Directive, root: Path | str, usual: str | None = None) -> Path:
    """The file that a directive names, or the usual one. Raises ElastalogError if it is not there."""
    named = directive.parameters.get("filename", usual)
    if named is None:
        return find_facts(root, relation.name)
    return require_file(root, relation.name, named, is_confined=directive.is_confined)


def _read_directive(schema: Schema, relation: Relation, directive: Directive, root: Path | str) -> tuple[_Read, str]:
    """The facts that one `.input` directive names, and where they are."""
    name, parameters = relation.name, directive.parameters
    match medium(parameters, ("file", "stdin", "json", "jsonfile", "sqlite", "rdf")):
        case "sqlite":
            from elastalog.pipeline.files.sqlite import database_of, read_sqlite

            path = require_file(root, name, database_of(parameters, name), is_confined=directive.is_confined)
            return (*read_sqlite(schema, path, parameters.get("name", name)), 0), str(path)
        case "json" | "jsonfile":
            path = file_of(relation, directive, root, f"{name}.json")
            return _read_json_list(schema, path), str(path)
        case "rdf":
            from elastalog.pipeline.files.rdf import read_rdf

            path = file_of(relation, directive, root, f"{name}.nt")
            return (*read_rdf(schema, path, parameters), 0), str(path)
        case "stdin":
            data = read_stream(sys.stdin.buffer)
            return _read_bytes(schema, data, "<stdin>", Format.of(parameters, "")), "<stdin>"
        case _:
            path = file_of(relation, directive, root)
            return _read_file(schema, path, parameters), str(path)


def _read_json_list(schema: Schema, path: Path) -> _Read:
    from elastalog.pipeline.files.json_files import read_json_list

    return *read_json_list(schema, file_bytes(path, is_packed(path)), str(path)), 0


def without_dictionaries(table: pa.Table) -> pa.Table:
    """A table with its texts in full."""
    fields = [f.with_type(f.type.value_type) if pa.types.is_dictionary(f.type) else f for f in table.schema]
    return table.cast(pa.schema(fields)) if fields != list(table.schema) else table


def _read_file(schema: Schema, path: Path, parameters: Mapping[str, str]) -> _Read:
    form = Format.of(parameters, path.name)
    if form.kind is Kind.PARQUET and path.is_dir():
        return _read_parquet_folder(schema, path)
    return _read_bytes(schema, file_bytes(path, form.is_packed_at(path)), str(path), form)


def _read_parquet_folder(schema: Schema, folder: Path) -> _Read:
    from elastalog.pipeline.files.parquet import parquet_table, parts_of, with_columns_of_folders

    def read(part: Path) -> _Read:
        given = with_columns_of_folders(schema, parquet_table(file_bytes(part, False), str(part)), folder, part)
        return _read_parquet(schema, given, str(part))

    return _together(schema, map(read, parts_of(folder)))


def _together(schema: Schema, parts: Iterable[_Read]) -> _Read:
    """Joins what was read of a relation in parts."""
    tables: list[pa.Table] = []
    bad: list[BadRow] = []
    converted = 0
    for table, bad_here, number in parts:
        tables.append(table)
        bad += bad_here
        converted += number
    # An empty table is made only where there is no other: making one imports pandas where it is installed.
    if not tables:
        return schema.arrow().empty_table(), bad, converted
    whole = tables[0] if len(tables) == 1 else joined([without_dictionaries(one) for one in tables])
    return whole, bad, converted


def _read_parquet(schema: Schema, given: pa.Table, file: str) -> _Read:
    from elastalog.pipeline.files.parquet import read_parquet_table

    table, bad = read_parquet_table(schema, given, file, keeps_dictionaries=True)
    return table, bad, converted_values(schema, given)


def _read_bytes(schema: Schema, data: bytes, file: str, form: Format) -> _Read:
    match form.kind:
        case Kind.TEXT:
            form = with_name(form, schema, file)
            look_at(data, schema, file, form)
            table, bad = read_text(schema, data, file, form)
            return table, _with_hints(schema, data, file, form, bad) if bad else bad, 0
        case Kind.PARQUET:
            from elastalog.pipeline.files.parquet import parquet_table

            return _read_parquet(schema, parquet_table(data, file), file)
        case Kind.JSON_LINES:
            from elastalog.pipeline.files.json_files import read_json_lines

            return *read_json_lines(schema, data, file), 0
        case _:
            assert_never(form.kind)


def _with_hints(schema: Schema, data: bytes, file: str, form: Format, bad: list[BadRow]) -> list[BadRow]:
    """The bad rows, with advice on the setting that makes the file readable, if there is one."""
    from elastalog.pipeline.files.sniffing import setting_for

    advice = setting_for(schema, data, file, form)
    return [replace(row, fault=replace(row.fault, advice=advice or row.fault.advice)) for row in bad]


def read_given(schema: Schema, given: Any, policy: BadRows, said: Mapping[str, str] | None = None) -> FactsRead:
    """The facts that are given for a relation: rows, or the path of a file or a folder (see `facts_given`)."""
    (table, bad, converted), places, understood = facts_given(schema, given, said)
    report = settle(policy, schema.name, places, table.num_rows, bad, converted)
    return FactsRead(table, replace(report, understood=understood))


def said_of_text(program: CheckedProgram, name: str) -> Mapping[str, str] | None:
    """How the program says that the file of a relation is written, by its only `.input` and by a pragma for all files;
    None if it says nothing."""
    relation = program.relations[name]
    files = [one.parameters for one in relation.inputs if one.parameters.get("IO", "file") == "file"]
    said = dict(files[0]) if len(relation.inputs) == len(files) == 1 else {}
    if program.ignores_extra_fields:
        said.setdefault("columns", ":".join(map(str, range(relation.arity))))
    return None if OF_TEXT.isdisjoint(said) else said


def tell_of_form(relation: str, files: Sequence[str], understood: str) -> None:
    """Logs how files are written, where that was found out by looking at them."""
    log.info("facts of `%s` from %s: %s", relation, ", ".join(files[:3]), understood)


def facts_given(schema: Schema, given: Any, said: Mapping[str, str] | None = None) -> tuple[_Read, Sequence[str], str]:
    """What is read of rows, or of a path, before bad rows are dealt with, from where, and how files are written: of a
    text file it is found out by looking at it and at what the program says (see `sniffed`), and told on the log. A
    folder has the file of the relation, or one of its parts in each file."""
    if not isinstance(given, str | os.PathLike):
        return good_facts(schema, given), [place_of(schema)], ""
    files = _files_at(schema.name, Path(given))
    found = [_looked_at(schema, file, said) for file in files]
    names, told = [str(file) for file in files], "; ".join(dict.fromkeys(how for _, how in found))
    tell_of_form(schema.name, names, told)
    return _together(schema, (read for read, _ in found)), names, told


def _looked_at(schema: Schema, file: Path, said: Mapping[str, str] | None) -> tuple[_Read, str]:
    if os.path.isdir(file):
        return _read_parquet_folder(schema, file), "a folder of Parquet files"
    if file.name.lower().removesuffix(".gz").endswith(".json"):
        return _read_json_list(schema, file), "a list in JSON"
    from elastalog.pipeline.files.sniffing import described, sniffed

    is_gzip = Format.of({}, file.name).is_packed_at(file)
    data = file_bytes(file, is_gzip)
    form = sniffed(schema, data, str(file), said)
    if not data:
        warn_of_empty(schema, file)
    return _read_bytes(schema, data, str(file), form), described(form) + (", gzip" if is_gzip else "")


def _files_at(relation: str, path: Path) -> list[Path]:
    if not os.path.isdir(path) or path.suffix == ".parquet":  # of no text whatever it raises an error
        return [path]
    with suppress(ElastalogError):
        return [find_facts(path, relation)]
    found = [file for file in sorted(path.iterdir(), key=natural_order) if file.name[0] not in "._"]
    if not found:
        raise error("E0510", location=path, relation=relation, path=path)
    return found


def place_of(schema: Schema) -> str:
    """The text that stands for a file where rows were given."""
    return f"<{schema.name}>"


def good_facts(schema: Schema, rows: Any) -> tuple[pa.Table, list[BadRow], int]:
    """The facts among rows, anything that `to_words` takes, the bad rows, and how many values were given in another
    type. A column of a type that does not suit is an error of the table, whatever the policy."""
    place = place_of(schema)
    converted = 0
    table = as_table(rows)
    if table is not None:
        from elastalog.pipeline.files.parquet import read_parquet_table

        facts, bad = read_parquet_table(schema, table, place)
        converted = converted_values(schema, table)
    else:
        count, columns, found = columns_of_good_rows(schema, require_rows(schema, rows))
        facts = table_of_columns(schema.arrow(), count, columns)
        bad = [BadRow(place, number, fault, repr(row)) for number, fault, row in found]
    return facts, bad, converted
