"""Facts into files, as Soufflé writes them: `NAME.csv`, tab-separated, no header, unless the directive says
otherwise."""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing, nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, TypeAlias, assert_never

import numpy as np
import pyarrow as pa

from elastalog import late
from elastalog.analysis.program import Base, Directive, Relation
from elastalog.analysis.values import number_text
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, finding
from elastalog.pipeline.files.format import BYTE_ORDER_MARK, Format, Kind, medium
from elastalog.pipeline.files.paths import replacing, resolve_under
from elastalog.relations.arrays import FEW_ROWS, array_of_texts, bytes_of
from elastalog.relations.faults import shown
from elastalog.relations.records import record_texts
from elastalog.relations.schema import Column, Schema
from elastalog.relations.tables import to_table
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from elastalog.relations.facts import Relation as Facts
    from elastalog.relations.limits import Integers, Words
    from elastalog.relations.words import Dictionary

pc = late.module("pyarrow.compute")

Doubt: TypeAlias = Callable[[Diagnostic], None] | None
"""Told of the first text of a column that will not be read back as what it is, which is written so all the same. None:
what is in doubt is refused, and texts inside of records stand in quotes where that is needed."""

MARK = BYTE_ORDER_MARK.decode()
CHARACTERS_OF_NUMBERS = frozenset("0123456789+-.einfa")

_PLAIN = (Base.SYMBOL, Base.NUMBER, Base.UNSIGNED)

ROWS_OF_A_PART = 1 << 14
"""Rows of a file that one thread makes at once."""

_BYTES_OF_A_PART = 1 << 20
"""What their lines may take: long texts take more."""

LEAST_ROWS = FEW_ROWS + 1
"""Facts below which it does not pay to load compiled operators, unless their texts lie where Python has none."""


def write_facts(
    schema: Schema, table: pa.Table, path: Path | str, parameters: Mapping[str, str] | None = None, doubt: Doubt = None
) -> None:
    """Writes the facts to one file, which appears whole or not at all. A symbol that plain text cannot hold (one with
    the delimiter or a line end in it) would be read back as something else: it is written only if there is a `doubt` to
    be told."""
    path = Path(path)
    form = Format.of(parameters or {}, path.name)
    with replacing(path) as out:
        if form.kind is Kind.PARQUET or not form.is_gzip:
            _write(schema, table, form, out, doubt)
        else:
            from gzip import GzipFile

            # No name and time inside: the same facts give the same file.
            with GzipFile("", "wb", 6, out, mtime=0) as packed:
                _write(schema, table, form, packed, doubt)  # type: ignore[arg-type]


def write_output(relation: Relation, table: pa.Table, root: Path | str, doubt: Doubt = None) -> list[Path]:
    """Carries out the `.output` and `.printsize` directives of a relation, under `root`; returns the files written."""
    schema = Schema.of(relation)
    written: list[Path] = []
    for directive in relation.directives:
        if directive.kind == "printsize":
            print_size(relation.name, table.num_rows, sys.stdout.buffer)
        if directive.kind != "output":
            continue
        parameters, path = directive.parameters, output_file(relation, directive, root)
        match medium(parameters, _MEDIA), path:
            case "stdout", _:
                print_facts(schema, table, sys.stdout.buffer, parameters)
            case "stdoutprintsize", _:
                print_size(relation.name, table.num_rows, sys.stdout.buffer)
            case "sqlite", Path():
                from elastalog.pipeline.files.sqlite import write_sqlite

                write_sqlite(schema, table, path, parameters.get("name", relation.name))
            case "rdf", Path():
                from elastalog.pipeline.files.rdf import write_rdf

                write_rdf(schema, table, path, parameters)
            case "json" | "jsonfile", _:
                from elastalog.pipeline.files.json_files import json_list_bytes

                data = json_list_bytes(schema, table, parameters.get("format", "list"))
                with nullcontext(sys.stdout.buffer) if path is None else replacing(path) as out:
                    out.write(data)
            case _, Path():
                write_facts(schema, table, path, parameters, doubt)
        written += [] if path is None else [path]
    return written


_MEDIA = ("file", "stdout", "stdoutprintsize", "json", "jsonfile", "sqlite", "rdf")


def output_file(relation: Relation, directive: Directive, root: Path | str) -> Path | None:
    """The file that an `.output` directive asks for, under `root`; None if it is standard output."""
    told = directive.parameters
    match medium(told, _MEDIA):
        case "stdout" | "stdoutprintsize":
            return None
        case "json" if "filename" not in told:
            return None
        case "sqlite":
            from elastalog.pipeline.files.sqlite import database_of

            name = database_of(told, relation.name)
        case kind:
            packed = ".gz" * (told.get("compress", "").lower() == "true")
            ending = {"rdf": "nt", "json": "json", "jsonfile": "json"}.get(kind, f"csv{packed}")
            name = told.get("filename", f"{relation.name}.{ending}")
    return resolve_under(root, name, is_confined=directive.is_confined)


def write_lines(
    relation: Relation, facts: Facts, root: Path | str, doubt: Doubt = None, threads: int = 1
) -> Path | None:
    """Obeys the only `.output` directive of a relation, if it has no other and asks for plain text, under `root`;
    returns the file, None if nothing was done. The file is the one that `write_output` would write; if it is large,
    `threads` threads write it together."""
    plain = _plain_output(relation, facts.schema)
    if plain is None:
        return None
    name, form, is_confined = plain
    path = resolve_under(root, name, is_confined=is_confined)
    if len(facts) < LEAST_ROWS and not facts.dictionary.symbols.are_many:
        return None
    if _begins_with_mark(facts.schema, to_table(facts.schema, facts.fact_words().words[:1], facts.dictionary)):
        return None
    from elastalog.relations.blocks_of_lines import kinds_of

    words, kinds = facts.fact_words().words, kinds_of(facts.schema)
    lines = _lines(words, kinds, ord(form.delimiter), facts.dictionary, threads)
    with replacing(path) as out, closing(lines):
        for part in lines:
            if isinstance(part, np.ndarray):
                for block in _text_blocks(facts.schema, to_table(facts.schema, part, facts.dictionary), form, doubt):
                    out.write(block)
            else:
                out.write(part)
    return path


def _lines(
    words: Words, kinds: Integers, delimiter: int, dictionary: Dictionary, threads: int
) -> Generator[memoryview | bytes | Words]:
    """The lines of rows in parts, and rows that have to be looked at, as `lines_of` has them; of many rows several
    threads make them."""
    from elastalog.relations.blocks_of_lines import lines_of

    if threads == 1 or len(words) < SETTINGS.write_in_threads_from:
        yield from lines_of(words, kinds, delimiter, dictionary)
        return
    from elastalog.pipeline.files.ahead import Ahead, Part

    def made(start: int) -> list[bytes | Words]:
        found = lines_of(words[start : start + ROWS_OF_A_PART], kinds, delimiter, dictionary)
        return [bytes(one) if isinstance(one, memoryview) else one for one in found]

    coming = (Part(partial(made, start), _BYTES_OF_A_PART) for start in range(0, len(words), ROWS_OF_A_PART))
    with closing(Ahead(coming, threads, "writing")) as parts:
        parts.start()
        for part in parts:
            yield from part


def is_for_threads(relation: Relation, facts: Facts) -> bool:
    """Whether `write_lines` has several threads write the facts of a relation together."""
    try:
        return len(facts) >= SETTINGS.write_in_threads_from and _plain_output(relation, facts.schema) is not None
    except ElastalogError:
        return False  # raised again in its turn


def _plain_output(relation: Relation, schema: Schema) -> tuple[str, Format, bool] | None:
    """The file of the only `.output` directive of a relation, if it has no other and asks for lines of plain text; and
    whether it is confined."""
    told = [directive for directive in relation.directives if directive.kind in ("output", "printsize")]
    if len(told) != 1 or told[0].kind != "output" or told[0].parameters.get("IO", "file") != "file":
        return None
    parameters = told[0].parameters
    name = parameters.get("filename", f"{relation.name}.csv")
    form = Format.of(parameters, name)
    is_plain = form.kind is Kind.TEXT and not (form.has_header or form.is_rfc4180 or form.is_gzip)
    is_short = len(form.delimiter) == 1 and form.delimiter.isascii() and form.delimiter not in CHARACTERS_OF_NUMBERS
    is_flat = bool(schema.columns) and all(column.base in _PLAIN for column in schema.columns)
    return (name, form, told[0].is_confined) if is_plain and is_short and is_flat else None


def print_size(name: str, count: int, stdout: BinaryIO) -> None:
    """The number of facts of a relation, as `.printsize` has it."""
    stdout.write(f"{name}\t{count}\n".encode())


def print_facts(schema: Schema, table: pa.Table, stdout: BinaryIO, parameters: Mapping[str, str] | None = None) -> None:
    """The facts between rulers, as Soufflé prints them for `IO=stdout`. This is to be seen, not to be read back: no
    symbol is refused."""
    form = Format.of(parameters or {}, "")
    body = b"".join(_text_blocks(schema, table, form, lambda doubt: None))
    header = form.delimiter.join(schema.names) + "\n" if form.has_header else ""
    stdout.write(f"---------------\n{schema.name}\n{header}===============\n".encode() + body + b"===============\n")
    stdout.flush()


def _write(schema: Schema, table: pa.Table, form: Format, out: BinaryIO, doubt: Doubt) -> None:
    match form.kind:
        case Kind.TEXT:
            if form.has_header:
                out.write(form.delimiter.join(schema.names).encode() + b"\n")
            elif not form.is_rfc4180 and _begins_with_mark(schema, table):
                _tell(doubt, _not_plain(schema, schema.columns[0], table.column(0)[0].as_py(), "a byte order mark"))
            for block in _text_blocks(schema, table, form, doubt):
                out.write(block)
        case Kind.PARQUET:
            from elastalog.pipeline.files.parquet import parquet_bytes

            out.write(parquet_bytes(table))
        case Kind.JSON_LINES:
            from elastalog.pipeline.files.json_files import json_lines_bytes

            out.write(json_lines_bytes(schema, table))
        case _:
            assert_never(form.kind)


def _text_blocks(schema: Schema, table: pa.Table, form: Format, doubt: Doubt) -> Iterator[bytes | pa.Buffer]:
    """The lines of facts, in parts."""
    if schema.arity == 0:
        yield b"()\n" * table.num_rows
        return
    for start in range(0, table.num_rows, SETTINGS.rows_written_at_once):
        block = table.slice(start, SETTINGS.rows_written_at_once)
        if block.num_rows <= FEW_ROWS and (lines := _few_lines(schema, block, form)) is not None:
            yield lines
            continue
        parts: list[pa.ChunkedArray | str] = []
        for column, array in zip(schema.columns, block.columns, strict=True):
            parts += [_field(schema, column, array, form, doubt), form.delimiter]
        parts[-1] = "\n"
        # The bytes of the joined column, one text after the other, are the bytes of the file.
        for chunk in _join(*parts).chunks:
            yield bytes_of(chunk)


def _few_lines(schema: Schema, block: pa.Table, form: Format) -> bytes | None:
    """The lines of a few rows of plain values. None if a text needs quotes, or cannot be written."""
    fields: list[list[str]] = []
    for column, array in zip(schema.columns, block.columns, strict=True):
        match column.base:
            case Base.NUMBER | Base.UNSIGNED:
                texts = [str(value) for value in array.to_pylist()]
            case Base.SYMBOL if not form.is_rfc4180:
                texts = array.to_pylist()
            case _:
                return None
        special = (form.delimiter[:1], "\r", "\n", '"', MARK)
        if any(character in text for text in texts for character in special):
            return None
        fields.append(texts)
    return "".join([form.delimiter.join(row) + "\n" for row in zip(*fields, strict=True)]).encode()


def _join(*parts: pa.ChunkedArray | str) -> pa.ChunkedArray:
    """The texts of columns and constants, row by row."""
    # Not by `pa.scalar`, which imports pandas to see whether the text is one of its values.
    large = [array_of_texts([part])[0] if isinstance(part, str) else part for part in (*parts, "")]
    return pc.binary_join_element_wise(*large)


def _field(schema: Schema, column: Column, array: pa.ChunkedArray, form: Format, doubt: Doubt) -> pa.ChunkedArray:
    if column.base is Base.FLOAT:
        texts = _float_texts(array)
    elif column.record is not None:
        texts = record_texts(column.record, array)
        if doubt is not None and not form.is_rfc4180:
            texts = _without_quotes(schema, column, texts, record_texts(column.record, array, is_bare=True), doubt)
    else:
        texts = array.cast(pa.large_string())
    if column.base not in (Base.SYMBOL, Base.RECORD) and not CHARACTERS_OF_NUMBERS & set(form.delimiter):
        return texts
    if form.is_rfc4180:
        return _join('"', pc.replace_substring(texts, '"', '""'), '"')
    special = b"\r\n" + form.delimiter.encode()[:1]
    if not any(_holds(bytes_of(chunk), special) for chunk in texts.chunks):
        return texts
    breaks_line = pc.match_substring_regex(texts, f"[\\r\\n]|{_pattern(form.delimiter)}")
    if pc.any(breaks_line).as_py():
        _tell(doubt, _not_plain(schema, column, texts.filter(breaks_line)[0].as_py(), "the delimiter or a line end"))
    return texts


def _begins_with_mark(schema: Schema, table: pa.Table) -> bool:
    """Whether the first character of the lines would be taken for the byte order mark of the file."""
    is_text = bool(table.num_rows and schema.columns) and schema.columns[0].base is Base.SYMBOL
    return is_text and table.column(0)[0].as_py().startswith(MARK)


def _tell(doubt: Doubt, found: Diagnostic) -> None:
    if doubt is None:
        raise ElastalogError([found])
    doubt(found)


def _without_quotes(
    schema: Schema, column: Column, texts: pa.ChunkedArray, bare: pa.ChunkedArray, doubt: Callable[[Diagnostic], None]
) -> pa.ChunkedArray:
    """Records as Soufflé writes them, without quotes around the texts inside. The doubt is told where they would be
    read as something else."""
    differs = pc.not_equal(texts, bare)
    if pc.any(differs).as_py():
        doubt(_not_plain(schema, column, bare.filter(differs)[0].as_py(), "texts without quotes"))
    return bare


def _float_texts(array: pa.ChunkedArray) -> pa.ChunkedArray:
    """Floats as `number_text` writes them. Arrow lays out very large and very small numbers in another way."""
    texts = array.cast(pa.large_string())
    differs = pc.match_substring_regex(texts, r"e|^-?0\.0000")
    if not pc.any(differs).as_py():
        return texts
    laid_out = pa.array([number_text(value) for value in array.filter(differs).to_pylist()], pa.large_string())
    return pc.replace_with_mask(texts, differs.combine_chunks(), laid_out)


def _holds(data: pa.Buffer, characters: bytes) -> bool:
    """Whether any of some characters is among the bytes. Looking for patterns text by text takes longer than all the
    rest of writing."""
    if not data.size:
        return False
    known = np.frombuffer(data, np.uint8)
    return int(known.min()) <= max(characters) and any(bool((known == character).any()) for character in characters)


def _pattern(delimiter: str) -> str:
    return "\\Q" + delimiter.replace("\\E", "\\E\\\\E\\Q") + "\\E"


def _not_plain(schema: Schema, column: Column, text: str, what: str) -> Diagnostic:
    kind = "symbol" if column.record is None else "value"
    return finding("E0516", kind=kind, text=shown(text), schema=schema.name, column=column.name, what=what)
