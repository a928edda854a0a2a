"""The explicit facts of the first epoch: those in the program's text, and those given or read from files."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from elastalog.backends.protocol import FactFiles
from elastalog.pipeline.files.loading import InputFiles, inputs_of
from elastalog.pipeline.files.policy import BadRows, Report, report_of
from elastalog.pipeline.files.read import read_path
from elastalog.pipeline.spark.engine import destination, is_spark_rows, read_facts_folder, read_spark_rows
from elastalog.relations.checks import converted_values
from elastalog.relations.tables import as_table
from elastalog.session.materialisation import Materialisation

Rows: TypeAlias = Any
"""Facts of one relation: a list of tuples, anything tabular (see `relations.tables.to_words`), or a file's path."""


def initial_facts(
    target: Materialisation,
    facts: InputFiles | str | os.PathLike[str] | Mapping[str, Rows] | None,
    policy: BadRows,
) -> tuple[dict[str, np.ndarray | FactFiles], list[Report]]:
    """The facts by relation, and how the reading went. `facts`: files, a folder that Spark reads, or rows."""
    explicit: dict[str, list[np.ndarray]] = {}
    filed: dict[str, FactFiles] = {}
    spark = target.spark
    into = None if spark is None else destination(target.backend, target.dictionary)
    reports: list[Report] = []
    written: dict[str, list[tuple[Any, ...]]] = {}
    for fact in target.program.checked.facts:
        written.setdefault(fact.relation, []).append(fact.values)
    for name, rows in written.items():
        explicit[name] = [target.encode(name, rows)]
    if isinstance(facts, Mapping):
        from elastalog.pipeline.files.read import place_of, read_rows

        for name, rows in facts.items():
            if isinstance(rows, str | os.PathLike):
                read = read_path(target.schema(name), rows, policy)
                rows = read.table
                reports.append(read.report)
            elif is_spark_rows(rows):
                read = read_spark_rows(target.schema(name), rows, policy, spark, None if name in explicit else into)
                reports.append(read.report)
                if read.files is not None:
                    filed[name] = read.files
                    continue
                rows = read.table
            elif policy.lets_pass:
                read = read_rows(target.schema(name), rows, policy)
                rows = read.table
                reports.append(read.report)
            elif (table := as_table(rows)) is not None:
                rows, schema = table, target.schema(name)
                converted = converted_values(schema, table)
                reports.append(report_of(policy, name, [place_of(schema)], table.num_rows, [], converted))
            explicit.setdefault(name, []).append(target.encode(name, rows))
    elif isinstance(facts, InputFiles):
        for name, loaded in facts.facts(target.dictionary, target.encode):
            reports.append(loaded.report)
            explicit.setdefault(name, []).extend(loaded.parts)
    elif facts is not None:
        for relation in inputs_of(target.program.checked):
            name = relation.name
            read = read_facts_folder(relation, Path(facts), policy, spark, None if name in explicit else into)
            reports.append(read.report)
            if read.files is not None:
                filed[name] = read.files
                continue
            explicit.setdefault(relation.name, []).append(target.encode(relation.name, read.table))
    joined = {name: parts[0] if len(parts) == 1 else np.concatenate(parts) for name, parts in explicit.items()}
    return {**joined, **filed}, reports
