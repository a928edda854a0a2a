"""JSON as one list of facts: each an object by attribute name or an array by position (`IO=json`)."""

from __future__ import annotations

import json

import pyarrow as pa

from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError
from elastalog.pipeline.files.json_lines import json_rows, row_of_json, table_of_rows
from elastalog.pipeline.files.policy import BadRow
from elastalog.relations.faults import Fault
from elastalog.relations.schema import Schema


def read_json_list(schema: Schema, data: bytes, file: str) -> tuple[pa.Table, list[BadRow]]:
    """The good facts of a list and the bad ones, which count from 1."""
    try:
        facts = json.loads(data.decode("utf-8-sig"))
    except (ValueError, RecursionError) as error:
        raise ElastalogError([_no_list(file, f"it is not JSON: {error}")]) from None
    if not isinstance(facts, list):
        raise ElastalogError([_no_list(file, "it is not a list")])
    rows, numbers, bad = [], [], []
    for number, fact in enumerate(facts, 1):
        row = row_of_json(schema, fact)
        if isinstance(row, Fault):
            bad.append(BadRow(file, number, row, json.dumps(fact, ensure_ascii=False)))
        else:
            rows.append(row)
            numbers.append(number)

    def bad_row(index: int, fault: Fault) -> BadRow:
        return BadRow(file, numbers[index], fault, json.dumps(facts[numbers[index] - 1], ensure_ascii=False))

    return table_of_rows(schema, rows, bad, bad_row)


def json_list_bytes(schema: Schema, table: pa.Table, form: str) -> bytes:
    """A table as a JSON list, a fact a line: arrays for the form `list`, objects for `object`."""
    rows = list(json_rows(schema, table))
    facts = rows if form == "object" else [[row[name] for name in schema.names] for row in rows]
    lines = ",\n".join(json.dumps(fact, ensure_ascii=False) for fact in facts)
    return f"[{lines}]\n".encode()


def _no_list(file: str, reason: str) -> Diagnostic:
    advice = "write a list of facts, each a list or an object: `[[1, 2], [2, 3]]`"
    return Diagnostic("E0515", f"cannot read `{file}`: {reason}", help=advice, location=file)
