"""The explicit facts of the first epoch: those in the program's text, and those given or read from files."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from elastalog.analysis.program import Relation
from elastalog.pipeline.files.allowance import allowance
from elastalog.pipeline.files.policy import Policy, Report, report_of
from elastalog.pipeline.files.read import FactsRead, read_input
from elastalog.pipeline.given_rows import place_of, read_rows
from elastalog.pipeline.spark.engine import is_spark_rows, read_facts_folder, read_spark_rows
from elastalog.relations.checks import converted_values
from elastalog.relations.tables import as_table
from elastalog.session.materialisation import Materialisation

if TYPE_CHECKING:
    import pyarrow as pa

Rows: TypeAlias = Any
"""Facts of one relation: a list of tuples, or anything tabular (see `relations.tables.to_words`)."""

_PIECE = 1 << 19
"""Rows that are made words of before limits are looked after."""


def initial_facts(
    target: Materialisation,
    facts: str | os.PathLike[str] | Mapping[str, Rows] | None,
    policy: Policy,
    spark: Any,
    engine: str,
) -> tuple[dict[str, np.ndarray], list[Report]]:
    """The facts by relation, and how the reading went."""
    explicit: dict[str, list[np.ndarray]] = {}
    reports: list[Report] = []
    written: dict[str, list[tuple[Any, ...]]] = {}
    for fact in target.program.checked.facts:
        written.setdefault(fact.relation, []).append(fact.values)
    for name, rows in written.items():
        explicit[name] = [target.encode(name, rows)]
    if isinstance(facts, Mapping):
        for name, rows in facts.items():
            if is_spark_rows(rows):
                rows, report = read_spark_rows(target.schema(name), rows, policy, spark)
                reports.append(report)
            elif policy.lets_pass:
                read = read_rows(target.schema(name), rows, policy)
                rows = read.table
                reports.append(read.report)
            elif (table := as_table(rows)) is not None:
                rows, schema = table, target.schema(name)
                converted = converted_values(schema, table)
                reports.append(report_of(policy, name, [place_of(schema)], table.num_rows, [], converted))
            explicit.setdefault(name, []).append(target.encode(name, rows))
    elif facts is not None:
        inputs = [
            relation
            for relation in target.program.checked.relations.values()
            if any(directive.kind == "input" for directive in relation.directives)
        ]
        for relation, read in zip(inputs, _read_all(inputs, Path(facts), policy, spark, engine), strict=True):
            reports.append(read.report)
            explicit.setdefault(relation.name, []).extend(_encoded(target, relation.name, read.table))
    return {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in explicit.items()}, reports


def _encoded(target: Materialisation, name: str, table: pa.Table) -> Iterator[np.ndarray]:
    """The words of a table whose rows are known to be good, piece by piece, so that limits hold: what takes room is the
    texts that are new."""
    for start in range(0, max(table.num_rows, 1), _PIECE):
        yield target.encode(name, table.slice(start, _PIECE) if table.num_rows > _PIECE else table)
        allowance().check()


def _read_all(inputs: list[Relation], root: Path, policy: Policy, spark: Any, engine: str) -> Iterator[FactsRead]:
    """The facts of relations, in order; with several threads one relation ahead of whoever uses them."""
    reads: list[Callable[[], FactsRead]] = [
        partial(read_facts_folder, relation, root, policy, spark)
        if engine == "spark"
        else partial(read_input, relation, root, policy)
        for relation in inputs
    ]
    # Rows that are set aside leave traces, which must not be there of files behind one that cannot be read.
    if allowance().jobs > 1 and len(reads) > 1 and policy.mode == "fail" and engine != "spark":
        from elastalog.pipeline.files.ahead import read_ahead

        return read_ahead(reads)
    return (read() for read in reads)
