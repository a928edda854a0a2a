"""JSON: one fact a line, or one list of facts (`IO=json`), each an object by attribute name or an array by position.
Blank lines do not count.

A float that JSON cannot write is one of the texts `NaN`, `Infinity`, `-Infinity`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Any

import pyarrow as pa

from elastalog.analysis.program import Base
from elastalog.analysis.values import NIL, Branch, plain_text
from elastalog.diagnostics.diagnostic import ElastalogError, error
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.format import BYTE_ORDER_MARK
from elastalog.pipeline.files.policy import BadRow
from elastalog.relations import faults
from elastalog.relations.faults import Fault
from elastalog.relations.records import NotOfType, RecordType
from elastalog.relations.rows import JsonValues, columns_of_good_rows, row_from_json
from elastalog.relations.schema import Schema, values_by_name, warn_of_left_out
from elastalog.relations.tables import table_of_columns


def read_json_lines(schema: Schema, data: bytes, file: str) -> tuple[pa.Table, list[BadRow]]:
    """The good rows of a file of JSON lines and the bad ones."""
    values = JsonValues(data)
    lines = enumerate(data.removeprefix(BYTE_ORDER_MARK).split(b"\n"), 1)
    return _read(schema, ((number, _value_in(raw, values), raw) for number, raw in lines if raw.strip()), file)


def read_json_list(schema: Schema, data: bytes, file: str) -> tuple[pa.Table, list[BadRow]]:
    """The good facts of a list and the bad ones, which count from 1."""
    found = ((number, *element) for number, element in enumerate(_elements(data, file), 1))
    return _read(schema, found, file, "element")


def _read(
    schema: Schema, found: Iterable[tuple[int, Any | Fault, bytes | str]], file: str, unit: str = ""
) -> tuple[pa.Table, list[BadRow]]:
    """The good and the bad rows among values, which come with their numbers and texts."""
    rows, numbers, texts, bad = list[list[Any]](), list[int](), list[bytes | str](), list[BadRow]()
    left_out: dict[str, object] = {}
    for number, value, text in found:
        if not number & 0xFFF:
            allowance().check()
        row = row_of_json(schema, value, left_out)
        if isinstance(row, Fault):
            bad.append(_bad_row(file, number, row, text, unit))
        else:
            rows.append(row)
            numbers.append(number)
            texts.append(text)
    warn_of_left_out(schema, left_out, file, [left_out.get("op")])
    return table_of_rows(schema, rows, bad, lambda i, fault: _bad_row(file, numbers[i], fault, texts[i], unit))


def table_of_rows(
    schema: Schema, rows: list[list[Any]], bad: list[BadRow], bad_row: Callable[[int, Fault], BadRow]
) -> tuple[pa.Table, list[BadRow]]:
    """Rows of the right length as a table. Those with values that do not fit are left out and join the bad rows, which
    `bad_row` makes of an index and a fault."""
    count, columns, found = columns_of_good_rows(schema, rows)
    if found:
        bad = sorted([*bad, *(bad_row(i - 1, fault) for i, fault, _ in found)], key=lambda row: row.line)
    return table_of_columns(schema.arrow(), count, columns), bad


def _bad_row(file: str, number: int, fault: Fault, text: bytes | str, unit: str) -> BadRow:
    if isinstance(text, bytes):
        text = text.removesuffix(b"\r").decode("utf-8", "backslashreplace")
    return BadRow(file, number, fault, text, unit)


def json_lines_bytes(schema: Schema, table: pa.Table) -> bytes:
    """A table as the contents of a file of JSON lines, objects by attribute name."""
    lines = [json.dumps(row, ensure_ascii=False) + "\n" for row in json_rows(schema, table)]
    return "".join(lines).encode()


def json_rows(schema: Schema, table: pa.Table) -> Iterator[dict[str, Any]]:
    """The facts as objects by attribute name that JSON can hold."""
    for row in table.rename_columns(list(schema.names)).to_pylist() if schema.arity else [{}] * table.num_rows:
        for column in schema.columns:
            if column.base is Base.FLOAT and not math.isfinite(value := row[column.name]):
                row[column.name] = "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
        yield row


def _value_in(raw: bytes, values: JsonValues) -> Any | Fault:
    try:
        return values.one(raw.decode())
    except UnicodeDecodeError as error:
        return Fault(faults.ENCODING, f"byte 0x{raw[error.start]:02x} is not UTF-8")
    except (ValueError, RecursionError) as error:
        reason = error.msg.lower() if isinstance(error, json.JSONDecodeError) else "too deep"
        return Fault(faults.JSON, f"not JSON: {reason}")


def row_of_json(schema: Schema, value: Any, left_out: dict[str, object]) -> list[Any] | Fault:
    """The row that a JSON object or array is; a fault stays one. `left_out` as in `values_by_name`."""
    if isinstance(value, Fault):
        return value
    if isinstance(value, dict):
        value = values_by_name(schema, value, left_out)
        if isinstance(value, Fault):
            return value
    if not isinstance(value, list):
        return Fault(faults.JSON, "neither an object nor an array")
    if len(value) != schema.arity:
        return faults.wrong_number(len(value), "value", schema.arity)
    return list(row_from_json(schema, value))


_WHITE = re.compile(r"[ \t\n\r]*")


def _elements(data: bytes, file: str) -> Iterator[tuple[Any | Fault, str]]:
    """The elements of a list with their texts, read one by one, so that limits are checked meanwhile."""
    try:
        text = data.decode("utf-8-sig")
        values = JsonValues(data)
        at = _skip(text, 0)
        if not text[at:]:
            raise _no_list(file, "it is empty")
        if text[at : at + 1] != "[":
            values.one(text)
            raise _no_list(file, "it is not a list")
        at = _skip(text, at + 1)
        is_first = True
        while text[at : at + 1] != "]" or not is_first:
            element, end = values.next(text, at)
            yield element, text[at:end]
            at, is_first = _skip(text, end), False
            if text[at : at + 1] == "]":
                break
            if text[at : at + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", text, at)
            at = _skip(text, at + 1)
        if _skip(text, at + 1) != len(text):
            raise json.JSONDecodeError("Extra data", text, at + 1)
    except (ValueError, RecursionError) as error:
        raise _no_list(file, f"it is not JSON: {error}") from None


def _skip(text: str, at: int) -> int:
    """The place of the first character that is not white space."""
    found = _WHITE.match(text, at)
    assert found is not None
    return found.end()


def json_list_bytes(schema: Schema, table: pa.Table, form: str) -> bytes:
    """A table as a JSON list, a fact a line: arrays for the form `list`, objects for `object`."""
    rows, is_object = list(json_rows(schema, table)), form == "object"
    for column in schema.columns:
        if column.record is None:
            continue
        for row in rows:
            with suppress(NotOfType):  # deeper than what is read: it stays a text
                value = column.record.typed(row[column.name])
                row[column.name] = _structured(column.record, column.record.name, value, is_object)
    facts = rows if is_object else [[row[name] for name in schema.names] for row in rows]
    lines = ",\n".join(json.dumps(fact, ensure_ascii=False) for fact in facts)
    return f"[{lines}]\n".encode()


def _structured(record: RecordType, name: str, value: Any, is_object: bool) -> Any:
    """A record as JSON that is read as the same record; a branch, and what is inside of it, as its text."""
    if value is NIL or isinstance(value, Branch):
        return None if value is NIL else plain_text(value)
    fields = record.types[name].branches["[]"]
    parts = [
        part if field.structure is None else _structured(record, field.structure, part, is_object)
        for field, part in zip(fields, value, strict=True)
    ]
    return {field.name: part for field, part in zip(fields, parts, strict=True)} if is_object else parts


def _no_list(file: str, reason: str) -> ElastalogError:
    return error("E0515.no_list", location=file, file=file, reason=reason)
