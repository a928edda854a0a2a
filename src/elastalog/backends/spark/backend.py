"""The backend on Spark: strata are evaluated by tasks where that is possible and pays, and maintained in the driver.

Bootstraps (and the strata that an update evaluates anew) run in tasks: whole fixpoints where the stratum decomposes,
with an exchange after every iteration otherwise. Their results stay in files until the driver needs them. Small updates
are followed by the kernel in the driver, which is the kernel's own maintenance, so that results are identical, levels
and counts included.
"""

from __future__ import annotations

import shutil
import uuid
import weakref
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.kernel import restore
from elastalog.backends.kernel.backend import KernelBackend
from elastalog.backends.kernel.backward import BackwardEvaluation
from elastalog.backends.kernel.levels import levels_now
from elastalog.backends.kernel.marks import ABSENT
from elastalog.backends.kernel.parallel import make_workers
from elastalog.backends.kernel.relation import KernelRelation
from elastalog.backends.sets import Support
from elastalog.backends.spark.jobs import run_tasks
from elastalog.backends.spark.placement import Placement, memory_allowed, working_set
from elastalog.backends.spark.resident import ResidentRelations
from elastalog.backends.spark.slots import shares_for
from elastalog.backends.spark.task import Result, TaskSpec
from elastalog.backends.spark.values import Values, as_word, with_words
from elastalog.backends.spark.word_files import WordFile, read_words, write_words
from elastalog.backends.watch import Watch
from elastalog.planning.decompose import SharedClause, SharePlan, share_plan
from elastalog.planning.logical import LogicalProgram, LogicalStratum
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LEAST_ROWS = 100_000
"""Input facts below which a task costs more than it saves (`spark.elastalog.leastRows`)."""


_ONE_PASS = 20
"""A stratum without recursion takes the kernel one pass over its input: so many times more facts are needed to pay."""


class SparkBackend(KernelBackend):
    """See `backends.protocol.Backend`. `is_elastic`: strata that fit the driver's memory stay there."""

    def __init__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        *,
        spark: SparkSession,
        new_folder: Callable[[str], Path],
        is_elastic: bool,
        is_annotated: bool,
        is_global: bool = False,
        support: Support = Support.LEVELS,
        jobs: int = 1,
        watch: Watch | None = None,
    ) -> None:
        super().__init__(
            program, dictionary, is_annotated=is_annotated, is_global=is_global, support=support, jobs=jobs, watch=watch
        )
        self.spark = spark
        self.is_elastic = is_elastic
        self.placements: dict[int, Placement] = {}
        """Where each stratum was last evaluated."""
        self._folder = new_folder("relations")
        # Files go with the backend, however it goes.
        weakref.finalize(self, shutil.rmtree, self._folder, ignore_errors=True)
        self._written: dict[str, tuple[KernelRelation, int, tuple[WordFile, ...]]] = {}
        self._least_rows = int(spark.conf.get("spark.elastalog.leastRows", str(LEAST_ROWS)) or LEAST_ROWS)
        self.relations = ResidentRelations(self.relations, self._fetch)
        self._workers = make_workers(self.relations, self.watch, jobs)
        self._backward = BackwardEvaluation(program, self.relations, dictionary)

    # --- relations in files ----------------------------------------------------------------------------------------

    def size(self, relation: str) -> int:
        """The number of facts; of relations in files without fetching them."""
        assert isinstance(self.relations, ResidentRelations)
        files = self.relations.away.get(relation)
        return super().size(relation) if files is None else sum(file.rows for file in files)

    def _fetch(self, name: str, files: tuple[WordFile, ...]) -> KernelRelation:
        width = self.program.relations[name].width
        relation, explicit = restore.restored(name, width, self.is_annotated, read_words(files, width), ())
        self._explicit[name] = explicit
        for file in files:
            Path(file.path).unlink(missing_ok=True)
        return relation

    def _files(self, name: str) -> tuple[WordFile, ...]:
        """The facts of a relation as they are now, in files."""
        assert isinstance(self.relations, ResidentRelations)
        away = self.relations.away.get(name)
        if away is not None:
            return away
        relation = self.relations[name]
        written = self._written.get(name)
        is_still = relation.is_settled and not relation.touched_used
        if written is not None and written[0] is relation and written[1] == relation.used and is_still:
            return written[2]
        files = (write_words(self._folder, name, _present(relation)),)
        if is_still:
            self._written[name] = relation, relation.used, files
        return files

    # --- bootstrap -------------------------------------------------------------------------------------------------

    def bootstrap(self, stratum: LogicalStratum) -> int:
        """Brings a stratum to its fixpoint, in tasks or in the driver. Returns the derivations enumerated."""
        if stratum.aggregate is None and not stratum.clauses:
            return super().bootstrap(stratum)
        placement = self.placements[stratum.number] = self.placement(stratum)
        placement.tell(stratum)
        if placement.plan is not None:
            derivations = self._run(stratum, placement.plan)
            if derivations is not None:
                return derivations
            placement = Placement("driver", "tasks made values that the dictionary has not, or met an error")
            placement.tell(stratum)
            self.placements[stratum.number] = placement
        return super().bootstrap(stratum)

    def placement(self, stratum: LogicalStratum) -> Placement:
        """Where a stratum would be evaluated now."""
        if stratum.aggregate is not None:
            return Placement("driver", "an aggregate")
        if self.support is not Support.LEVELS:
            return Placement("driver", "the strategy keeps other things than levels")
        sizes = {name: self.size(name) for name in (*stratum.reads, *stratum.relations)}
        needed, allowed = working_set(self.program, stratum, sizes), memory_allowed(self.watch.memory)
        if self.is_elastic and needed <= allowed:
            return Placement("driver", f"an estimated {needed >> 20:,} MiB of {allowed >> 20:,} MiB")
        least = self._least_rows * (1 if stratum.is_recursive else _ONE_PASS)
        if not self.is_elastic and sum(sizes.values()) < least:
            return Placement("driver", f"fewer than {least:,} input facts")
        plan = share_plan(stratum)
        if plan.decomposes:
            told = ", ".join(f"argument {column + 1} of {name}" for name, column in (plan.arguments or {}).items())
            return Placement("tasks", f"decomposes by {told}", plan)
        if self.is_global:
            return Placement("driver", f"global levels, and {plan.obstacle}")
        return Placement("exchanging tasks", plan.obstacle or "", plan)

    def _run(self, stratum: LogicalStratum, plan: SharePlan) -> int | None:
        """Evaluates a stratum in tasks. None if they could not: then nothing has changed."""
        folder = self._folder / f"stratum-{uuid.uuid4().hex[:12]}"
        folder.mkdir()
        inputs = {copy.relation: self._files(copy.relation) for copy in plan.copies}
        clauses = tuple(shared.clause for shared in plan.clauses)
        spec = TaskSpec(
            replace(self.program, strata=()),
            _with_words(plan, self.dictionary),
            inputs,
            Values.of(self.dictionary, clauses),
            shares_for(self.spark, are_together=not plan.decomposes),
            str(folder),
            self.is_annotated,
            self.is_global,
        )
        try:
            results = run_tasks(self.spark, spec, self.watch)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        if any(result.fault is not None for result in results):
            shutil.rmtree(folder, ignore_errors=True)
            return None
        self._adopt(plan, results, spec.shares)
        derivations = sum(result.derivations for result in results)
        self.watch.derivations += derivations
        self.pipelines.pop(stratum.number, None)
        return derivations

    def _adopt(self, plan: SharePlan, results: list[Result], shares: int) -> None:
        """The files of the tasks become the relations."""
        assert isinstance(self.relations, ResidentRelations)
        for name in plan.stratum.relations:
            column = plan.owner(name).column
            files = tuple(
                WordFile(found.path, found.rows, column, found.share, shares if column is not None else 1)
                for found in results
                if found.relation == name
            )
            self.relations.send_away(name, files)

    def __getstate__(self) -> Any:
        raise TypeError("a backend stays in the driver")


def _present(relation: KernelRelation) -> FactWords:
    """The facts of a relation in the state under way, with annotations if it has them."""
    used = slice(0, relation.used)
    if not relation.is_annotated:
        return FactWords(relation.rows[used])
    if relation.is_settled and not relation.touched_used:
        return FactWords(relation.rows[used], relation.level[used], relation.count[used])
    level = levels_now(relation, used)
    rows = np.flatnonzero(level < ABSENT)
    # Counts of facts under way are not asked for: tasks read levels of lower relations at most.
    return FactWords(relation.rows[rows], level[rows], relation.count[rows])


def _with_words(plan: SharePlan, dictionary: Dictionary) -> SharePlan:
    clauses = tuple(
        SharedClause(
            with_words(shared.clause, dictionary),
            as_word(shared.pivot, dictionary) if isinstance(shared.pivot, Constant) else shared.pivot,
        )
        for shared in plan.clauses
    )
    return replace(plan, clauses=clauses)
