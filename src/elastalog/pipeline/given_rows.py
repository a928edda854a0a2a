"""Facts given as rows in Python, under the policy for bad rows: what files have lines for, rows have numbers."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from elastalog.pipeline.files.parquet import read_parquet_table
from elastalog.pipeline.files.policy import BadRow, BadRows, settle
from elastalog.pipeline.files.read import FactsRead
from elastalog.relations.checks import converted_values
from elastalog.relations.rows import columns_of_rows, good_rows
from elastalog.relations.schema import Schema
from elastalog.relations.tables import as_table, require_rows, table_of_columns


def read_rows(schema: Schema, rows: Any, policy: BadRows) -> FactsRead:
    """The facts among rows, and how the reading went."""
    facts, bad, converted = good_facts(schema, rows)
    report = settle(policy, schema.name, [place_of(schema)], facts.num_rows, bad, converted)
    return FactsRead(facts, report)


def place_of(schema: Schema) -> str:
    """What stands for a file where rows were given."""
    return f"<{schema.name}>"


def good_facts(schema: Schema, rows: Any) -> tuple[pa.Table, list[BadRow], int]:
    """The facts among rows, anything that `to_words` takes, the bad rows, and how many values were given in another
    type. A column of a type that does not suit is an error of the table, whatever the policy."""
    place = place_of(schema)
    converted = 0
    table = as_table(rows)
    if table is not None:
        facts, bad = read_parquet_table(schema, table, place)
        converted = converted_values(schema, table)
    else:
        good, found = good_rows(schema, require_rows(schema, rows))
        count, columns = columns_of_rows(schema, good)
        facts = table_of_columns(schema.arrow(), count, columns)
        bad = [BadRow(place, number, fault, repr(row)) for number, fault, row in found]
    return facts, bad, converted
