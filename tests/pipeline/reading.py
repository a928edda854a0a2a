"""One file of facts, by its parameters."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from elastalog.pipeline.files.policy import FAIL, BadRows, settle
from elastalog.pipeline.files.read import FactsRead, _read_file
from elastalog.relations.schema import Schema


def read_facts(
    schema: Schema, path: Path | str, parameters: Mapping[str, str] | None = None, policy: BadRows = FAIL
) -> FactsRead:
    """The facts in the file. Its format follows from its name and the parameters (see `Format.of`)."""
    table, bad, converted = _read_file(schema, Path(path), parameters or {})
    return FactsRead(table, settle(policy, schema.name, [str(path)], table.num_rows, bad, converted))
