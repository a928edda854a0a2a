"""How the kernel evaluates a program: every stratum from its explicit facts to its fixpoint, outside an update."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np

from elastalog.analysis.listing import show_rule
from elastalog.backends.kernel.bootstrap.chosen_rounds import evaluate_chosen
from elastalog.backends.kernel.bootstrap.fixpoint import StratumPipelines, evaluate
from elastalog.backends.kernel.bootstrap.global_levels import HeightEvaluation
from elastalog.backends.kernel.dense.counted_fixpoint import evaluate_dense
from elastalog.backends.kernel.execution import aggregates as aggregates
from elastalog.backends.kernel.execution.backward import BackwardEvaluation
from elastalog.backends.kernel.holding import KernelFacts
from elastalog.backends.kernel.sets.set_fixpoint import evaluate_counted
from elastalog.backends.kernel.store import snapshot, transaction
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.threads.parallel import make_workers
from elastalog.backends.protocol import ClauseDerivations, StateChanges
from elastalog.backends.sets import Support
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum, Test
from elastalog.planning.lower import constructor_of
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

T = TypeVar("T")


class KernelEvaluation(KernelFacts):
    """A program and its facts. `is_complete`: no `.limitsize` has cut an evaluation short."""

    def __init__(
        self,
        program: LogicalProgram,
        dictionary: Dictionary,
        is_annotated: bool,
        is_global: bool,
        support: Support,
        jobs: int,
        watch: Watch,
    ) -> None:
        super().__init__(program, is_annotated, support)
        self.dictionary = dictionary
        self.is_global = is_global
        self.watch = watch
        self.pipelines: dict[int, StratumPipelines] = {}
        self._workers = make_workers(self.relations, self.watch, jobs)
        self.is_complete = True
        self._follow(program)

    def _follow(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self.program = program
        self._backward = BackwardEvaluation(program, self.relations, self.dictionary)
        self._limits = {
            relation.name: int(directive.parameters["n"])
            for relation in program.checked.relations.values()
            for directive in relation.directives
            if directive.kind == "limitsize"
        }
        self._limited = frozenset(
            stratum.number
            for stratum in program.strata
            if stratum.is_recursive and not self._limits.keys().isdisjoint(stratum.relations)
        )
        self.chosen = frozenset(
            stratum.number
            for stratum in program.strata
            if stratum.dominance or any(program.relations[name].choices for name in stratum.relations)
        )
        self._own = {stratum.number: frozenset(stratum.relations) for stratum in program.strata}

    def reprogram(
        self, program: LogicalProgram, renamed: Mapping[str, str], guards: Mapping[str, bool] | None = None
    ) -> None:
        """Goes over to another program, outside an update. Facts stay; some hidden relations may have other names,
        relations that the other program does not have go, and those it has in addition are empty, but for `guards` that
        hold their fact."""
        _rename(self.relations, renamed, program.relations)
        _rename(self._explicit, renamed, program.relations)
        _rename(self.vectors, renamed, program.relations)
        for name in renamed.values():
            self.relations[name].name = name
        for name, stored in program.relations.items():
            if name not in self.relations:
                self.relations[name] = KernelRelation(name, stored.width, self.is_annotated)
                if self.support is Support.VECTORS:
                    self.vectors[name] = Vectors()
        for name, is_on in (guards or {}).items():
            self._set_guard(name, is_on)
        self.pipelines = _renumber(self.pipelines, self.program, program)
        self._follow(program)

    def _set_guard(self, name: str, is_on: bool) -> None:
        fact = np.zeros((1, 1), np.int32)
        if is_on:
            self.load(name, fact)
            if self.support is Support.VECTORS:
                self.vectors[name].change(np.zeros(1, np.int32), 0, 1)
                self.vectors[name].commit()
        elif self.is_annotated:
            # A row, though absent, tells the planner how small the relation is.
            transaction.add_rows(self.relations[name], fact)

    def derivations(
        self, relation: str, words: Matrix, is_sought: Callable[[Clause], bool] | None = None
    ) -> list[ClauseDerivations]:
        """The derivations of some facts, which need not be present, in the present epoch, by the clauses sought."""
        return self._backward.derivations(relation, words, is_sought)

    def bootstrap(self, stratum: LogicalStratum) -> int:
        """Brings a stratum, whose relations hold their explicit facts, to its fixpoint. Returns the derivations
        enumerated."""
        return self.evaluate(stratum)

    def evaluate(self, stratum: LogicalStratum, pipelines: StratumPipelines | None = None) -> int:
        """Does what `bootstrap` promises, in this process; with the pipelines of an earlier evaluation, if given."""
        try:
            return self._evaluate(stratum, pipelines)
        except LimitReached as limit:
            notes = constructing_rules(stratum)
            raise LimitReached([replace(d, notes=(*d.notes, *notes)) for d in limit.diagnostics]) from None

    def _evaluate(self, stratum: LogicalStratum, pipelines: StratumPipelines | None) -> int:
        before = self.watch.derivations
        if stratum.aggregate is not None:
            aggregates.evaluate(stratum.aggregate, self.relations, self.dictionary, self.program, self.is_global)
        elif stratum.number in self.chosen:
            if self.is_global or self.support is not Support.LEVELS:
                raise ElastalogError([_unchoosable(stratum)])
            pipelines = StratumPipelines(stratum, self.relations, self.dictionary, self.program.checked.source)
            self.pipelines[stratum.number] = pipelines
            source = self.program.checked.source
            evaluate_chosen(stratum, pipelines, self.relations, self.program.relations, source, self.watch)
        elif stratum.clauses and self.is_global:
            if stratum.number in self._limited:
                raise ElastalogError([_unlimited(stratum)])
            HeightEvaluation(stratum, self.program, self.relations, self.dictionary, self._workers, self.watch).run()
        elif stratum.clauses or self.support is Support.VECTORS:
            if pipelines is None:
                pipelines = StratumPipelines(stratum, self.relations, self.dictionary, self.program.checked.source)
                self.pipelines[stratum.number] = pipelines
            pipelines.restart()
            watch, limits = self.watch, self._limits
            if self.support is Support.LEVELS:
                is_complete = evaluate(stratum, pipelines, self.relations, self._workers, watch, limits)
            elif self.support is Support.VECTORS:
                vectors, is_complete = evaluate_dense(stratum, pipelines, self.relations, watch, limits)
                self.vectors.update(vectors)
            else:
                is_complete = evaluate_counted(stratum, pipelines, self.relations, self.support, watch, limits)
            self.is_complete = self.is_complete and is_complete
        return self.watch.derivations - before

    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to stored facts, after stored changes in their order, instead of a bootstrap."""
        width = self.program.relations[relation].width
        self.relations[relation], self._explicit[relation] = snapshot.restored(
            relation, width, self.is_annotated, facts, changes
        )
        if any(relation in self._own[number] for number in self._limited):
            # A store does not say whether its evaluation was cut short; one that was has filled its relation.
            self.is_complete &= self.size(relation) < self._limits.get(relation, self.size(relation) + 1)


def constructing_rules(stratum: LogicalStratum) -> list[str]:
    """Says which rules of a stratum build values in recursion: there may be no end to that."""
    rules = [
        clause.rule
        for clause in stratum.clauses
        if clause.is_recursive and any(isinstance(g, Test) and constructor_of(g) is not None for g in clause.goals)
    ]
    return [f"rule {rule.number} builds values in recursion: `{show_rule(rule)}`" for rule in rules if rule is not None]


def _unchoosable(stratum: LogicalStratum) -> Diagnostic:
    return Diagnostic(
        "E0905",
        f"choice domains and subsumption, here of `{stratum.relations[0]}`, need strategy `elastic` or `recompute`"
        " and local levels",
        help='use `strategy="elastic"` and `levels="local"`, which are the default',
    )


def _unlimited(stratum: LogicalStratum) -> Diagnostic:
    return Diagnostic(
        "E0902",
        f"`.limitsize` cannot be obeyed with global levels, in the stratum of `{stratum.relations[0]}`",
        help='use `levels="local"`, with which every strategy obeys it, or remove the `.limitsize`',
    )


def _rename(kept: dict[str, T], renamed: Mapping[str, str], names: Container[str]) -> None:
    """What is kept by relation: some have other names, and those that are not among `names` go."""
    moved = {new: kept[old] for old, new in renamed.items() if old in kept}
    for name in [name for name in kept if name in renamed or name not in names]:
        del kept[name]
    kept.update(moved)


def _renumber(kept: dict[int, T], before: LogicalProgram, after: LogicalProgram) -> dict[int, T]:
    """What is kept by stratum: that of strata which have the same relations under both programs."""
    numbers = {stratum.relations: stratum.number for stratum in after.strata}
    return {
        numbers[stratum.relations]: kept[stratum.number]
        for stratum in before.strata
        if stratum.number in kept and stratum.relations in numbers
    }
