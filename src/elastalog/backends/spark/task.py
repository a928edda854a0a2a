"""What runs inside a task: the kernel, on the share of the facts that is the task's.

Nothing of the driver is captured: a task gets a `TaskSpec`, plain data, and reads and writes files. It yields one row
for every file of results. Only the files named in the rows of a job that ended well count; a repeated task writes
others.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from elastalog.analysis.program import Constant
from elastalog.backends.spark.values import Values
from elastalog.backends.spark.word_files import WordFile, read_words, shares_of, write_words
from elastalog.planning.decompose import SharePlan, with_copies
from elastalog.planning.logical import Clause, LogicalProgram
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

RESULT_COLUMNS = "share int, relation string, path string, rows bigint, derivations bigint, fault string"


@dataclass(frozen=True, slots=True)
class TaskSpec:
    """The work of all tasks of a stratum. `inputs`: the files of every lower relation, and of the explicit facts of its
    own."""

    program: LogicalProgram
    plan: SharePlan
    inputs: Mapping[str, tuple[WordFile, ...]]
    values: Values
    shares: int
    folder: str
    is_annotated: bool
    is_global: bool

    def clauses_of(self, share: int, dictionary: Dictionary) -> tuple[Clause, ...]:
        """The clauses that the task of a share evaluates."""
        kept: list[Clause] = []
        for shared in self.plan.clauses:
            match shared.pivot:
                case Constant(value=value, base=base):
                    word = np.array([dictionary.encode_value(base, value)], np.int32)
                    is_mine = int(shares_of(word, self.shares)[0]) == share
                case None:
                    is_mine = share == 0
                case _:
                    is_mine = True
            if is_mine:
                kept.append(shared.clause)
        return tuple(kept)


@dataclass(frozen=True, slots=True)
class Result:
    """A row that a task yields. `fault`: why it could not finish, as a JSON object, None if it could."""

    share: int
    relation: str
    path: str
    rows: int
    derivations: int
    fault: str | None = None

    def batch(self) -> pa.RecordBatch:
        return pa.record_batch(
            {
                "share": pa.array([self.share], pa.int32()),
                "relation": [self.relation],
                "path": [self.path],
                "rows": pa.array([self.rows], pa.int64()),
                "derivations": pa.array([self.derivations], pa.int64()),
                "fault": pa.array([self.fault], pa.string()),
            }
        )


def run_task(spec: TaskSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Evaluates the shares whose numbers a task is given. An error of the program (an overflow, say) is a row too,
    since an exception would only be repeated."""
    from elastalog.diagnostics.diagnostic import ElastalogError

    for batch in batches:
        for share in batch.column(0).to_pylist():
            try:
                if spec.plan.decomposes:
                    found = evaluate_alone(spec, share)
                else:
                    from elastalog.backends.spark.exchange import evaluate_together

                    found = evaluate_together(spec, share)
                for result in found:
                    yield result.batch()
            except ElastalogError as error:
                yield fault_of(share, error).batch()


def fault_of(share: int, error: Exception) -> Result:
    """The row that tells the driver to evaluate the stratum itself, and so to meet the error where it can be shown
    well."""
    return Result(share, "", "", 0, 0, json.dumps({"error": str(error)}))


GROWN = json.dumps({"grown": True})
"""The fault of a task that made values which the driver does not know."""


def evaluate_alone(spec: TaskSpec, share: int) -> Iterator[Result]:
    """The whole fixpoint of a share of a stratum that decomposes."""
    from elastalog.backends.kernel.backend import KernelBackend

    dictionary = spec.values.dictionary()
    program = with_copies(spec.program, spec.plan, spec.clauses_of(share, dictionary))
    backend = KernelBackend(program, dictionary, is_annotated=spec.is_annotated, is_global=spec.is_global)
    own = frozenset(spec.plan.stratum.relations)
    for copy in spec.plan.copies:
        width = program.relations[copy.name].width
        facts = read_words(spec.inputs[copy.relation], width, copy.column, share, spec.shares)
        if copy.relation not in own and spec.is_global and facts.level is not None:
            backend.restore(copy.name, facts, ())
        else:
            backend.load(copy.name, facts.words)
    derivations = backend.bootstrap(program.strata[0])
    if spec.values.is_outgrown_by(dictionary):
        yield Result(share, "", "", 0, derivations, GROWN)
        return
    for name in spec.plan.stratum.relations:
        file = write_words(Path(spec.folder), name, backend.state(name))
        yield Result(share, name, file.path, file.rows, derivations)
        derivations = 0


def facts_with(words: np.ndarray, level: np.ndarray, count: np.ndarray) -> FactWords:
    """Facts in the types of their files."""
    return FactWords(words, level.astype(np.int32, copy=False), count.astype(np.int32, copy=False))
