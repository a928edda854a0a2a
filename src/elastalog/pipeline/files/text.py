"""Text files of facts: one row a line, fields between delimiters.

A line ends with `\\n` or `\\r\\n` (the `\\r` is not part of the last field, as in Soufflé); the last line needs no end;
a byte order mark at the beginning of a file is ignored, and is text anywhere else. Every line is a row: for a relation
of one symbol the empty line is the empty text. A nullary relation has lines `()`, or empty ones. Under rfc4180 a field
may be quoted and then hold delimiters and line ends; elsewhere delimiters with a comma part nothing inside a record.

Arrow's reader is tried first. It says only that something is wrong, not where, and is more generous than the language
in a few places; then, and only then, the rows are read one by one, in the blocks concerned.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Base, Value
from elastalog.diagnostics.diagnostic import error
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.format import (
    BYTE_ORDER_MARK,
    LOOKED_AT,
    Format,
    bare,
    has_blanks,
    parser_of,
    reads_as_header,
    records_of,
    warn_of_blanks,
    whole_lines,
)
from elastalog.pipeline.files.policy import BadRow
from elastalog.relations import faults
from elastalog.relations.arrays import numbers_of_array, places_of, typed_array
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Column, Schema, column_order, goes_by_name, places_by_name
from elastalog.relations.tables import joined, table_of_columns
from elastalog.settings import SETTINGS

PIECE = 64 << 20


def read_text(
    schema: Schema, data: bytes, file: str, form: Format, apart: Sequence[str] = ()
) -> tuple[pa.Table, list[BadRow]]:
    """The good rows of a text file and the bad ones. A header that has the name of an attribute says which column is
    which, as `column_order` does (`apart` is its, too); any other is skipped. `file`: empty of a sample, of which no
    warning is given."""
    data = data.removeprefix(BYTE_ORDER_MARK)
    if form.columns:
        if len(form.columns) != schema.arity:
            few = ":".join(map(str, range(schema.arity)))
            raise error("E0671", location=file, columns=len(form.columns), schema=schema, arity=schema.arity, few=few)
        form = _named_in_header(data, schema, form)
    as_written, whole = schema, data
    if form.has_header:
        header, _, data = data.partition(b"\n")
        as_written = _in_order_of(header, schema, form, file, apart, data[:LOOKED_AT])
    if not data:
        return schema.arrow().empty_table(), []
    table, bad = read_lines(as_written, data, file, form, 2 if form.has_header else 1)
    table = table if as_written is schema else table.select(schema.names)
    if file and has_blanks(whole, form):
        warn_of_blanks(schema, whole, table, file, form)
    return table, bad


def _named_in_header(data: bytes, schema: Schema, form: Format) -> Format:
    """The format with the columns that a header names. The first columns are chosen where all others are to be ignored;
    but if the header has the names of all attributes, these say which columns are meant."""
    if not form.has_header or form.columns != tuple(range(schema.arity)):
        return form
    places = places_by_name(schema.names, _names_in(data.partition(b"\n")[0], form))
    named = tuple(place for place in places if place is not None)
    return replace(form, columns=named) if len(named) == schema.arity else form


def _names_in(header: bytes, form: Format) -> list[str]:
    _, raw, fields = next(records_of(header.decode("utf-8", "replace").encode(), form), (0, b"", [""]))
    return bare(raw.decode().split(form.delimiter) if isinstance(fields, Fault) else fields)


def read_lines(schema: Schema, data: bytes, file: str, form: Format, first_line: int) -> tuple[pa.Table, list[BadRow]]:
    """The good and the bad rows among the lines of a file, counted from `first_line`, without header and byte order
    mark."""
    table = _read_fast(schema, data, form)
    return _read_in_blocks(schema, data, file, form, first_line) if table is None else (table, [])


def _in_order_of(header: bytes, schema: Schema, form: Format, file: str, apart: Sequence[str], sample: bytes) -> Schema:
    """The columns in the order of the file; columns that the relation does not have are texts. `sample`: the first
    rows."""

    def values(place: int) -> Iterator[str]:
        rows = (fields for _, _, fields in records_of(sample, form) if not isinstance(fields, Fault))
        at = form.columns[place] if form.columns else place
        return (fields[at] for fields in rows if at < len(fields))

    given = _names_in(header, form)
    names = [given[place] if place < len(given) else "" for place in form.columns] or given
    if names == list(schema.names) or not goes_by_name(schema.names, names):
        return schema
    order = column_order(
        schema, names, what="the header", location=f"{file}:1", apart=apart, warns=bool(file), values=values
    )
    columns = dict(zip(order, schema.columns, strict=True))
    return Schema(schema.name, tuple(columns.get(i) or Column(name, Base.SYMBOL) for i, name in enumerate(names)))


# --- the fast way --------------------------------------------------------------------------------------------------


def _read_fast(schema: Schema, data: bytes, form: Format) -> pa.Table | None:
    """The table as Arrow reads it; None unless `_read_exactly` would read the same."""
    if (
        schema.arity == 0
        or len(set(form.columns)) < len(form.columns)
        or len(form.delimiter) != 1
        or not form.delimiter.isascii()
    ):
        return None
    has_quotes = form.is_rfc4180 and b'"' in data
    if has_quotes and not _is_quoted_strictly(data, form.delimiter):
        return None
    # Arrow takes a lone carriage return for the end of a line.
    if b"\r" in data and data.count(b"\r") != data.count(b"\r\n"):
        return None
    arrow_schema = schema.arrow()
    names = [f"f{place}" for place in form.columns or range(schema.arity)]  # as Arrow calls those of the file
    types = dict(zip(names, arrow_schema.types, strict=True))
    uneven: list[str] = []  # lines of another number of fields, in all of which those chosen may be
    try:
        tables = [_parsed(piece, types, form, has_quotes, uneven) for piece in _pieces(data, has_quotes)]
    except (pa.ArrowInvalid, KeyError):  # the second if there are fewer columns
        return None
    if uneven:
        others, bad = _read_exactly(schema, "\n".join(uneven).encode(), "", form, 1)
        if bad:
            return None
        tables.append(pa.table(others.columns, names=names))
    table = tables[0] if len(tables) == 1 else joined(tables)
    if _may_hold_empty_rows(schema, table, form) and (
        data.startswith((b"\n", b"\r\n")) or b"\n\n" in data or b"\n\r\n" in data
    ):
        return None
    columns_with_bases = zip(schema.columns, table.columns, strict=True)
    if not all(_is_exact(column.base, array, data) for column, array in columns_with_bases):
        return None
    return pa.Table.from_arrays(table.columns, schema=arrow_schema)


def _pieces(data: bytes, has_quotes: bool) -> Iterator[pa.Buffer]:
    """Pieces of a file, of whole lines, between which the limits are checked. Fields in quotes may contain line breaks:
    where there are any quotes, the file is one piece."""
    whole = pa.py_buffer(data)
    for start, end in whole_lines(data, len(data) if has_quotes else PIECE):
        allowance().check()
        yield whole.slice(start, end - start)


def _parsed(
    piece: pa.Buffer, types: dict[str, pa.DataType], form: Format, has_quotes: bool, uneven: list[str]
) -> pa.Table:
    from pyarrow import csv

    def kept(row: csv.InvalidRow) -> str:
        uneven.append(row.text)
        return "skip"

    if piece[:3].to_pybytes() == BYTE_ORDER_MARK:  # that of the file is gone, and Arrow would take this for another
        piece = pa.py_buffer(BYTE_ORDER_MARK + piece.to_pybytes())
    return csv.read_csv(
        pa.BufferReader(piece),
        # One thread encodes what another has read: only beyond these there is something to share out.
        csv.ReadOptions(
            column_names=None if form.columns else list(types), autogenerate_column_names=bool(form.columns),
            block_size=4 << 20, use_threads=allowance().jobs > 2,
        ),
        csv.ParseOptions(
            delimiter=form.delimiter,
            quote_char='"' if has_quotes else False,
            newlines_in_values=has_quotes,
            ignore_empty_lines=False,
            invalid_row_handler=kept if form.columns and not has_quotes else None,
        ),
        csv.ConvertOptions(
            column_types=types, include_columns=list(types), null_values=[], strings_can_be_null=False
        ),
    )  # fmt: skip


def _may_hold_empty_rows(schema: Schema, table: pa.Table, form: Format) -> bool:
    """Whether Arrow may have taken an empty line for a row of empty fields: an empty field is not a number."""
    if (schema.arity == 1 and not form.columns) or not schema.is_of_texts:
        return False
    return any(bool((np.diff(places_of(chunk)) == 0).any()) for chunk in table.column(0).chunks)


def _is_exact(base: Base, array: pa.ChunkedArray, data: bytes) -> bool:
    match base:
        case Base.NUMBER:
            # Arrow reads 0xffffffffffffffff as -1.
            is_negative = any(len(chunk) and int(numbers_of_array(chunk).min()) < 0 for chunk in array.chunks)
            return not is_negative or not (b"0x" in data or b"0X" in data)
        case Base.FLOAT:
            # Arrow reads 1e999 as infinity.
            return not any(bool(np.isinf(numbers_of_array(chunk)).any()) for chunk in array.chunks)
        case Base.UNSIGNED | Base.SYMBOL:
            return True
        case Base.RECORD:
            return False  # its text is to be looked at


def _is_quoted_strictly(data: bytes, delimiter: str) -> bool:
    """Whether every quote opens or closes a field or is doubled inside one. Arrow accepts more."""
    text = np.frombuffer(data, np.uint8)
    quotes = np.flatnonzero(text == ord('"'))
    if len(quotes) % 2:
        return False
    before = text[quotes[0::2] - 1]
    if len(quotes) and quotes[0] == 0:
        before[0] = ord("\n")
    after = np.append(text, np.uint8(ord("\n")))[quotes[1::2] + 1]
    return bool(
        np.isin(before, np.frombuffer(b'"\n' + delimiter.encode(), np.uint8)).all()
        and np.isin(after, np.frombuffer(b'"\r\n' + delimiter.encode(), np.uint8)).all()
    )


# --- the exact way -------------------------------------------------------------------------------------------------


def _read_in_blocks(
    schema: Schema, data: bytes, file: str, form: Format, first_line: int
) -> tuple[pa.Table, list[BadRow]]:
    """Reads block by block; only blocks with something unusual are read row by row."""
    if form.is_rfc4180 or len(data) <= SETTINGS.bytes_of_a_block:
        return _read_exactly(schema, data, file, form, first_line)
    tables: list[pa.Table] = []
    bad: list[BadRow] = []
    for start, end in whole_lines(data, SETTINGS.bytes_of_a_block):
        block = data[start:end]
        table = _read_fast(schema, block, form)
        if table is None:
            table, bad_here = _read_exactly(schema, block, file, form, first_line)
            bad += bad_here
        tables.append(table)
        first_line += block.count(b"\n")
    return joined(tables), bad


def _read_exactly(
    schema: Schema, data: bytes, file: str, form: Format, first_line: int
) -> tuple[pa.Table, list[BadRow]]:
    records = records_of(data, form)
    parsers = [parser_of(column) for column in schema.columns]
    columns: list[list[Value]] = [[] for _ in parsers]
    bad: list[BadRow] = []
    given: list[list[str]] = []
    count = 0
    has_records = any(column.base is Base.RECORD for column in schema.columns)
    parts_records = has_records and "," in form.delimiter and not form.is_rfc4180
    for line, raw, fields in records:
        if parts_records and not isinstance(fields, Fault):
            fields = _with_whole_records(fields, form.delimiter)
        chosen = _chosen(fields, form.columns) if form.columns and not isinstance(fields, Fault) else fields
        row = chosen if isinstance(chosen, Fault) else _row(schema, fields := chosen, parsers)
        if not line & 0xFFF:
            allowance().check()
        if isinstance(row, Fault):
            bad.append(BadRow(file, first_line + line, row, raw.decode("utf-8", "backslashreplace")))
            given.append([] if isinstance(fields, Fault) else fields)
            continue
        count += 1
        for column, value in zip(columns, row, strict=True):
            column.append(value)
    mark = _mark_meant(schema, given)
    for place, (one, texts) in enumerate(zip(bad, given, strict=True)):
        # Where most rows are facts the file is written as is said: only the first lines may be meant otherwise.
        is_alone = count >= len(bad) and not (one.line <= 1 + form.has_header and reads_as_header(schema, texts))
        fault = one.fault
        if fault.code == faults.ARITY and schema.arity:
            fault = _wrong_number(schema, fault, texts, form, mark, is_alone)
        elif fault.code == faults.TYPE and not fault.advice and not is_alone:
            fault = replace(fault, advice=_likely_need(schema, texts, parsers, form))
        bad[place] = replace(one, fault=fault)
    arrow_schema = schema.arrow()
    arrays = [typed_array(values, kind) for values, kind in zip(columns, arrow_schema.types, strict=True)]
    return table_of_columns(arrow_schema, count, arrays), bad


def _chosen(fields: list[str], columns: tuple[int, ...]) -> list[str] | Fault:
    """The fields of a line that belong to the relation, in its order."""
    if (last := max(columns)) < len(fields):
        return [fields[column] for column in columns]
    if columns == tuple(range(len(columns))):
        return faults.wrong_number(len(fields), "field", len(columns))
    number = f"{len(fields)} field{'' if len(fields) == 1 else 's'}"
    advice = "give every row the fields that `columns` selects"
    return Fault(faults.ARITY, f"{number}, and `columns` selects field {last}, counted from 0", advice)


def _row(schema: Schema, fields: list[str], parsers: list[Callable[[str], Value | Fault]]) -> list[Value] | Fault:
    if schema.arity == 0:
        return [] if fields in (["()"], [""]) else Fault(faults.ARITY, "a nullary relation has only the row `()`")
    if len(fields) != schema.arity:
        return faults.wrong_number(len(fields), "field", schema.arity)
    row: list[Value] = []
    for parse, text in zip(parsers, fields, strict=True):
        value = parse(text)
        if isinstance(value, Fault):
            return value
        row.append(value)
    return row


def _with_whole_records(fields: list[str], delimiter: str) -> list[str]:
    """Puts fields together again that were split inside of brackets, as Soufflé reads them."""
    whole: list[str] = []
    depth = 0
    for field in fields:
        if depth > 0:
            whole[-1] += delimiter + field
        else:
            whole.append(field)
        depth += field.count("[") - field.count("]")
    return whole if depth == 0 else fields


def _likely_need(schema: Schema, fields: list[str], parsers: list[Callable[[str], Value | Fault]], form: Format) -> str:
    """Advice for a row that is not a fact: the first line may have names, or the columns another order."""
    if reads_as_header(schema, fields):
        return _header_is_meant(schema, form)
    if order := _suitable_order(fields, parsers):
        meant = replace(form, columns=tuple(form.columns[i] if form.columns else i for i in order)).parameters
        taken = ", ".join(f"`{name}` is `{fields[i][:20]}`" for name, i in zip(schema.names, order, strict=True))
        told = f"if the columns of the file are in another order: `.input {schema.name}({meant})`"
        return f"{told}, by which {taken} (a guess by types: see that each is right)"
    return ""


def _header_is_meant(schema: Schema, form: Format) -> str:
    if form.has_header:
        return "if these are the names of the columns: delete what stands above them, which is skipped as the header"
    meant = replace(form, has_header=True).parameters
    return f"if the file begins with the names of its columns: `.input {schema.name}({meant})`"


def _suitable_order(fields: list[str], parsers: list[Callable[[str], Value | Fault]]) -> list[int]:
    """Which field could be the value of each column; empty if no field suits one of them."""
    places, left = [0] * len(fields), list(range(len(fields)))
    for column in sorted(left, key=lambda column: parsers[column] is str):  # every field suits a symbol
        parse = parsers[column]
        suitable = next((place for place in left if not isinstance(parse(fields[place]), Fault)), None)
        if suitable is None:
            return []
        places[column] = suitable
        left.remove(suitable)
    return places


_LEFT_OUT = (
    "or let bad rows pass: `--bad-rows skip` leaves them out, `quarantine` sets them aside (in Python `bad_rows=`)"
)


def _quotes_are_meant(schema: Schema, form: Format) -> str:
    """Advice where a text may hold the delimiter; empty if there are no texts, or tabs between them."""
    if form.delimiter == "\t" or all(column.base is not Base.SYMBOL for column in schema.columns):
        return ""
    advice = f'if a text holds `{form.delimiter}`, write it between quotes, `"a{form.delimiter} b"`'
    return (
        advice
        if form.is_rfc4180
        else f"{advice}, and `.input {schema.name}({replace(form, is_rfc4180=True).parameters})`"
    )


def _mark_meant(schema: Schema, given: Sequence[list[str]]) -> str | None:
    """The commonest reason of bad rows: commas or blanks where a tab, or what the program says, should be. None if most
    of them have several fields."""
    whole = [fields[0] for fields in given if len(fields) == 1]
    if 2 * len(whole) <= len(given):
        return None
    fitting = {mark: sum(text.count(mark) == schema.arity - 1 for text in whole) for mark in ",\t;| "}
    marks = [mark for mark in fitting if mark in whole[0] or fitting[mark] > 0]
    return max(marks, key=fitting.__getitem__, default=None)


def _wrong_number(
    schema: Schema, fault: Fault, fields: list[str], form: Format, mark: str | None, is_alone: bool
) -> Fault:
    """The fault of a row with too many or too few fields, with advice. `mark`: what most bad rows have in the place of
    the delimiter. `is_alone`: most other rows are facts, so it is this row that has to change."""
    if fields == [""]:
        return replace(fault, reason="a blank line is no row", advice=f"delete the line; {_LEFT_OUT}")
    if fields and fields[0].lstrip().startswith(("#", "//")):
        return replace(fault, advice=f"if it is a comment, delete the line: fact files have none; {_LEFT_OUT}")
    if form.is_rfc4180 and any(field.startswith(' "') for field in fields):
        meant = replace(form, delimiter=f"{form.delimiter} ").parameters
        told = "quotes count at the beginning of a field, and a blank stands before some"
        return replace(fault, advice=f"{told}: take it out, or, if one is everywhere: `.input {schema.name}({meant})`")
    if not is_alone and reads_as_header(schema, fields):
        return replace(fault, advice=_header_is_meant(schema, form))
    if len(fields) > schema.arity and not form.columns:
        advice = _quotes_are_meant(schema, form) or fault.help
        meant = replace(form, columns=tuple(range(schema.arity))).parameters
        others = f"`.input {schema.name}({meant})` leaves the others out, and "
        others += '`.pragma "extra-fields" "ignore"` does for all files'
        return replace(fault, advice=f"{advice}; {_LEFT_OUT if is_alone else others}")
    if is_alone:
        return replace(fault, advice=f"{fault.help}; {_LEFT_OUT}")
    if mark is None or len(fields) != 1:
        return fault
    why = f" (it holds no {'tab' if form.delimiter == chr(9) else repr(form.delimiter)})"
    is_headed = form.has_header or reads_as_header(schema, fields[0].split(mark))
    meant = replace(form, delimiter=mark, is_rfc4180=form.is_rfc4180 or mark == ",", has_header=is_headed).parameters
    advice = f"say how the file is written: `.input {schema.name}({meant})`"
    return Fault(fault.code, fault.reason + why, advice)
