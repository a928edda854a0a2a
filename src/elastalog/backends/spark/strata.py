"""The jobs of the driver: a stratum evaluated or maintained by tasks, and what came of it."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from secrets import token_hex
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from elastalog.analysis.program import Constant
from elastalog.backends.annotation import Annotation
from elastalog.backends.protocol import Matrix, Procedure, StratumElsewhere
from elastalog.backends.spark.consensus import with_numbers_of_driver
from elastalog.backends.spark.exchange import evaluate_together
from elastalog.backends.spark.jobs import CannotExchange, StratumNews, run_tasks
from elastalog.backends.spark.placement import Heavy, heavy_words, routings, shares_for, why_apart
from elastalog.backends.spark.results import Fault, Outcome, Result, outcome_of
from elastalog.backends.spark.routing import EVERYWHERE, Routing
from elastalog.backends.spark.task import OVER_BUDGET, StratumSpec, evaluate_alone, update_share, write_share
from elastalog.backends.spark.values import TextFiles, Values, as_word, orders_texts, with_words
from elastalog.backends.spark.word_files import FiledRelation, Pending, write_words
from elastalog.backends.watch import BudgetExceeded, Watch
from elastalog.folders.addresses import inside, is_address
from elastalog.folders.files import files_at
from elastalog.planning.decompose import SharedClause, SharePlan
from elastalog.planning.logical import LogicalProgram
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


Explicit: TypeAlias = tuple[Mapping[str, Matrix], Mapping[str, Matrix]]
"""The explicit facts of a stratum that go, and those that come."""

Work: TypeAlias = Callable[[StratumSpec, int], Result]
"""What the task of a share does, given what all work on."""

UPDATE = "update"
_NOTHING: Explicit = ({}, {})
_WORD = 4
_SECONDS_BETWEEN_LOOKS = 1.0


class StratumJobs:
    """Runs the jobs of a backend. `why_apart`: why tasks cannot exchange, if they cannot. `value_makers`: strata of
    which several tasks have made new values, and could not go on. `is_hindered`: whether the last job failed for one of
    these reasons alone."""

    def __init__(
        self,
        spark: SparkSession,
        program: LogicalProgram,
        dictionary: Dictionary,
        folder: str,
        watch: Watch,
        annotation: Annotation,
    ) -> None:
        self.spark = spark
        self.why_apart = why_apart(spark)
        self.least_rows = int(
            spark.conf.get("spark.elastalog.leastRows", str(SETTINGS.spark_least_rows)) or SETTINGS.spark_least_rows
        )
        self.follow(program)
        self._dictionary = dictionary
        self._folder = folder
        self._watch = watch
        self._annotation = annotation
        self._texts = TextFiles(folder, dictionary)

    def follow(self, program: LogicalProgram) -> None:
        """The program of the jobs to come."""
        self._program = replace(program, strata=())
        self._routings: dict[int, Mapping[str, Routing]] = {}
        self._counted: tuple[Mapping[str, FiledRelation], Heavy] | None = None
        self.costs: dict[int, StratumElsewhere] = {}
        self.value_makers: set[int] = set()
        self.is_hindered = False

    def routings(self, plan: SharePlan) -> Mapping[str, Routing]:
        """How tasks share every copy: as in the last evaluation of the stratum, if there was one."""
        known = self._routings.get(plan.stratum.number)
        if known is None or known.keys() != {copy.name for copy in plan.copies}:
            return routings(plan, self.shares(plan), ())
        return known

    def share_as(self, plan: SharePlan, name: str, filed: FiledRelation | None) -> None:
        """Makes tasks share the copies in the way in which the files of an own relation are shared, if they are."""
        routing = None if filed is None else filed.routing
        if routing is not None and routing != self.owners(plan, name):
            found = routings(plan, routing.shares, routing.heavy)
            if found[plan.owner(name).name].of_owners == routing:
                self._routings[plan.stratum.number] = found

    def owners(self, plan: SharePlan, relation: str) -> Routing:
        """Which task owns which facts of a relation of the stratum; its files are shared so."""
        return self.routings(plan)[plan.owner(relation).name].of_owners

    def shares(self, plan: SharePlan) -> int:
        return 1 if plan.is_for_one else shares_for(self.spark, are_together=not plan.decomposes)

    def heavy(self, plan: SharePlan, files: Mapping[str, FiledRelation]) -> Heavy:
        """The heavy words of what a stratum reads."""
        read = {name: files[name] for name in sorted(plan.stratum.reads)}
        # Asked when the plan is chosen, and again when it is carried out.
        if self._counted is None or self._counted[0] != read:
            self._counted = read, heavy_words(read, self.shares(plan))
        return self._counted[1]

    def write_anew(self, name: str, filed: FiledRelation, routing: Routing) -> FiledRelation:
        """Has tasks write the shares of a relation anew, without changes."""
        work = partial(write_share, name, filed, self._program.relations[name].width, routing, self._folder)
        title = f"{name}: files of {routing.shares} shares anew"
        shares = range(routing.shares)
        found = run_tasks(self.spark, work, shares, self._watch, are_together=False, title=title)
        return FiledRelation(tuple(told.file for result in found for told in result.files))

    def evaluate(
        self,
        plan: SharePlan,
        files: Mapping[str, FiledRelation],
        explicit: Explicit = _NOTHING,
        *,
        is_rebuilt: bool = False,
    ) -> Outcome | None:
        """Evaluates a stratum in tasks. None if they could not."""
        heavy = self.heavy(plan, files)
        heavy.tell(plan)
        self._routings[plan.stratum.number] = routings(plan, self.shares(plan), heavy.words)
        spec = self._spec(plan, files, explicit, is_rebuilt)
        function = evaluate_alone if plan.decomposes else evaluate_together
        what = "evaluation anew" if is_rebuilt else "evaluation"
        return self._run(spec, function, tuple(range(spec.shares)), what)

    def maintain(
        self,
        plan: SharePlan,
        before: Mapping[str, FiledRelation],
        below: Mapping[str, Pending],
        explicit: Explicit,
        procedure: Procedure[Any],
    ) -> Outcome | None:
        """Maintains a stratum that decomposes, in the tasks whose shares are concerned. None if they could not."""
        files = {name: pending.changes for name, pending in below.items()}
        spec = replace(
            self._spec(plan, before, explicit, is_rebuilt=False),
            below=files, procedure=procedure, budget=self._watch.derivations_left,
        )  # fmt: skip
        shares = self._concerned(spec, below, explicit)
        return self._run(spec, update_share, shares, UPDATE, _Budget(spec.folder).check)

    def _concerned(self, spec: StratumSpec, below: Mapping[str, Pending], explicit: Explicit) -> tuple[int, ...]:
        """The shares that changed facts fall into."""
        found: set[int] = set()
        for copy in spec.plan.copies:
            changed = [side[copy.relation] for side in explicit if copy.relation in side]
            if copy.relation in below:
                changes = below[copy.relation].read(spec.width(copy))
                changed.append(changes.words[changes.are_heard(self._annotation.is_global)])
            for words in changed:
                found.update(np.unique(spec.routings[copy.name].shares_of(words)).tolist())
        return tuple(range(spec.shares)) if EVERYWHERE in found else tuple(sorted(found))

    def _spec(
        self, plan: SharePlan, files: Mapping[str, FiledRelation], explicit: Explicit, is_rebuilt: bool
    ) -> StratumSpec:
        folder = inside(self._folder, f"stratum-{uuid.uuid4().hex[:12]}")
        files_at(folder).make_folder(folder)
        clauses = (*(shared.clause for shared in plan.clauses), *plan.stratum.dominance)
        deleted, inserted = (
            {name: write_words(folder, name, FactWords(words)) for name, words in side.items()} for side in explicit
        )
        are_ordered = orders_texts(plan.stratum, self._program)
        values = Values.of(self._dictionary, clauses, self._texts, are_needed=are_ordered)
        return StratumSpec(
            self._program, _with_words(plan, self._dictionary), files, values, self.routings(plan), folder,
            self._annotation, deleted, inserted, is_rebuilt,
            token=token_hex(16), agrees=not plan.decomposes and plan.stratum.number in self.value_makers,
        )  # fmt: skip

    def _run(
        self,
        spec: StratumSpec,
        work: Work,
        shares: tuple[int, ...],
        what: str,
        check: Callable[[], None] = lambda: None,
    ) -> Outcome | None:
        folder, plan = spec.folder, spec.plan
        news = StratumNews(self._watch, plan, folder, what, len(shares))

        def look() -> None:
            check()
            news.look()

        try:
            found = run_tasks(
                self.spark, partial(work, spec), shares, self._watch,
                are_together=not plan.decomposes, check=look, title=news.title,
            )  # fmt: skip
            if not any(result.fault for result in found):
                found = with_numbers_of_driver(spec, found, self._dictionary)
            outcome = outcome_of(found, {name: spec.owners(name) for name in plan.stratum.relations})
            if Fault.OVER_BUDGET in outcome.faults:
                raise BudgetExceeded
            if Fault.UNLINKED in outcome.faults:
                raise CannotExchange("some cannot reach each other over the network")
        except CannotExchange as error:
            files_at(folder).remove_folder(folder)
            self.why_apart, self.is_hindered = str(error), True
            return None
        except BaseException:
            files_at(folder).remove_folder(folder)
            raise
        if outcome.faults:
            self.is_hindered = outcome.faults == {Fault.NEW_VALUES} and not spec.agrees
            if self.is_hindered:
                self.value_makers.add(plan.stratum.number)
            files_at(folder).remove_folder(folder)
            return None
        # What repeated tasks and the exchange have left behind.
        files_at(folder).keep_only(folder, set().union(*(written.paths for written in outcome.written.values())))
        self._watch.derivations += outcome.derivations
        news.done(outcome)
        if what != UPDATE:
            self.costs[plan.stratum.number] = self._cost(spec, len(shares), outcome, news.seconds)
        return outcome

    def _cost(self, spec: StratumSpec, tasks: int, outcome: Outcome, seconds: float) -> StratumElsewhere:
        costs = outcome.costs
        place = f"{tasks} {'tasks' if spec.plan.decomposes else 'exchanging tasks'}"
        sizes = {
            name: sum(file.rows for file in written.states) * _WORD * (spec.program.relations[name].width + 2)
            for name, written in outcome.written.items()
        }
        return StratumElsewhere(
            spec.plan.stratum.number, place, seconds, costs.waited, costs.rounds, outcome.derivations, sizes, costs.peak
        )


class _Budget:
    """Looks whether a task has said that the budget is spent; at an address only now and then."""

    def __init__(self, folder: str) -> None:
        self._location = inside(folder, OVER_BUDGET)
        self._interval = _SECONDS_BETWEEN_LOOKS if is_address(folder) else 0.0
        self._looked = time.monotonic()

    def check(self) -> None:
        now = time.monotonic()
        if now - self._looked >= self._interval:
            self._looked = now
            if files_at(self._location).exists(self._location):
                raise BudgetExceeded


def _with_words(plan: SharePlan, dictionary: Dictionary) -> SharePlan:
    clauses = tuple(
        SharedClause(
            with_words(shared.clause, dictionary),
            as_word(shared.pivot, dictionary) if isinstance(shared.pivot, Constant) else shared.pivot,
        )
        for shared in plan.clauses
    )
    dominance = tuple(with_words(clause, dictionary) for clause in plan.stratum.dominance)
    # Tasks go by rounds: links between nodes are the driver's.
    return replace(plan, clauses=clauses, stratum=replace(plan.stratum, dominance=dominance, ranked=None))
