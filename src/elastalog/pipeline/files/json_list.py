"""JSON as one list of facts: each an object by attribute name or an array by position (`IO=json`)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.json_lines import json_rows, row_of_json, table_of_rows
from elastalog.pipeline.files.policy import BadRow
from elastalog.relations.faults import Fault
from elastalog.relations.rows import JsonValues
from elastalog.relations.schema import Schema

_WHITE = re.compile(r"[ \t\n\r]*")


def read_json_list(schema: Schema, data: bytes, file: str) -> tuple[pa.Table, list[BadRow]]:
    """The good facts of a list and the bad ones, which count from 1."""
    texts, rows, numbers, bad = list[str](), [], [], []
    for number, (fact, text) in enumerate(_elements(data, file), 1):
        if not number & 0xFFF:
            allowance().check()
        row = row_of_json(schema, fact)
        if isinstance(row, Fault):
            bad.append(BadRow(file, number, row, text))
        else:
            rows.append(row)
            numbers.append(number)
            texts.append(text)

    def bad_row(index: int, fault: Fault) -> BadRow:
        return BadRow(file, numbers[index], fault, texts[index])

    return table_of_rows(schema, rows, bad, bad_row)


def _elements(data: bytes, file: str) -> Iterator[tuple[Any | Fault, str]]:
    """The elements of a list with their texts, one by one, so that limits hold meanwhile."""
    try:
        text = data.decode("utf-8-sig")
        values = JsonValues(data)
        at = _skip(text, 0)
        if text[at : at + 1] != "[":
            values.one(text)
            raise ElastalogError([_no_list(file, "it is not a list")])
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
        raise ElastalogError([_no_list(file, f"it is not JSON: {error}")]) from None


def _skip(text: str, at: int) -> int:
    """Where what is not white begins."""
    found = _WHITE.match(text, at)
    assert found is not None
    return found.end()


def json_list_bytes(schema: Schema, table: pa.Table, form: str) -> bytes:
    """A table as a JSON list, a fact a line: arrays for the form `list`, objects for `object`."""
    rows = list(json_rows(schema, table))
    facts = rows if form == "object" else [[row[name] for name in schema.names] for row in rows]
    lines = ",\n".join(json.dumps(fact, ensure_ascii=False) for fact in facts)
    return f"[{lines}]\n".encode()


def _no_list(file: str, reason: str) -> Diagnostic:
    advice = "write a list of facts, each a list or an object: `[[1, 2], [2, 3]]`"
    return Diagnostic("E0515", f"cannot read `{file}`: {reason}", help=advice, location=file)
