"""How the kernel evaluates a program: every stratum from its explicit facts to its fixpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from elastalog.analysis.listing import show_rule
from elastalog.backends.annotation import Support
from elastalog.backends.kernel.bootstrap.begun import Begun, Given, Handover, OtherPlace
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants, evaluate
from elastalog.backends.kernel.bootstrap.side_by_side import evaluate_together, strata_beside
from elastalog.backends.kernel.bootstrap.workers import Task, Workers
from elastalog.backends.kernel.execution import aggregates, classes
from elastalog.backends.kernel.execution.backward import BackwardEvaluation
from elastalog.backends.kernel.holding import KernelFacts
from elastalog.backends.kernel.store import snapshot
from elastalog.backends.kernel.store.annotations import DERIVED
from elastalog.backends.kernel.store.count_vectors import Vectors
from elastalog.backends.kernel.store.crew import ALONE, Crew
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.kernel.store.row_levels import note_levels
from elastalog.backends.kernel.store.selectivity import KernelStatistics
from elastalog.backends.protocol import NO_OTHER_PLACE, ClauseCost, Placed, StateChanges, StratumElsewhere
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, LimitReached
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum, Test
from elastalog.planning.lookups import last_lookups
from elastalog.planning.variables import constructor_of
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary

if TYPE_CHECKING:
    from elastalog.backends.kernel.ranks.maintaining import RankedStrata

T = TypeVar("T")


class KernelEvaluation:
    """A program over the facts that the kernel holds. `is_complete`: no `.limitsize` has cut an evaluation short.
    `variants`: those of the last evaluation, by stratum. `backward` finds derivations of given heads. `statistics` are
    for all plans: many strata read the same relations."""

    def __init__(
        self,
        held: KernelFacts,
        program: LogicalProgram,
        dictionary: Dictionary,
        crew: Crew,
        watch: Watch,
        place: OtherPlace | None = None,
    ) -> None:
        self.held = held
        self._place = place
        self.dictionary = dictionary
        self.watch = watch
        self.variants: dict[int, StratumVariants] = {}
        self.is_complete = True
        self.known_ranks: RankedStrata | None = None
        self._workers = Workers(held.relations, watch, crew, dictionary)
        self._know(program)

    def _know(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        self.program = program
        self.backward = BackwardEvaluation(program, self.held.relations, self.dictionary, self.watch)
        self.statistics = KernelStatistics(self.held.relations)
        # Derivations of strata that were evaluated before their turn.
        self._ahead: dict[int, int] = {}
        self._last_lookups: dict[int, list[str]] | None = None
        self._limits = program.limits
        self.limited = frozenset(stratum.number for stratum in program.strata if program.is_limited(stratum))
        """The strata that a `.limitsize` may have to cut short."""
        self.chosen = frozenset(
            stratum.number
            for stratum in program.strata
            if stratum.dominance or any(program.relations[name].choices for name in stratum.relations)
        )
        """The strata with choice domains or subsumption."""
        has_levels = self.held.annotation.support is Support.LEVELS
        self.ranked = frozenset(
            stratum.number
            for stratum in program.strata
            if has_levels and stratum.ranked is not None and stratum.number not in self.limited
        )
        """Those of them that updates maintain, along their links."""
        self.forget_ranks()
        self.not_maintained = frozenset(
            stratum.number
            for stratum in program.strata
            if (stratum.merges and not has_levels)
            or stratum.number in self.limited
            or stratum.number in self.chosen - self.ranked
        )
        """The strata that every update evaluates anew that reaches them."""
        self._in_limited = frozenset(
            name for stratum in program.strata if stratum.number in self.limited for name in stratum.relations
        )

    @property
    def ranks(self) -> RankedStrata:
        """Of the strata that are evaluated in the order of values; few programs have one."""
        if self.known_ranks is None:
            from elastalog.backends.kernel.ranks.maintaining import RankedStrata

            self.known_ranks = RankedStrata()
        return self.known_ranks

    def forget_ranks(self) -> None:
        """What is known of ranks holds no longer."""
        if self.known_ranks is not None:
            self.known_ranks.forget()

    def follow(self, program: LogicalProgram) -> None:
        """Goes over to another program, of which the facts are held already."""
        self.variants = _renumber(self.variants, self.program, program)
        self._know(program)

    def load(self, facts: dict[str, Matrix]) -> None:
        """Adds explicit facts before the first bootstrap, of several relations at a time."""
        tasks: list[Task] = []
        while facts:
            name, words = facts.popitem()
            tasks.append((len(words), partial(self.held.load, name, words)))
        self._workers.do_all(tasks)

    def extend_indexes(self, relation: KernelRelation) -> None:
        """Adds the latest rows to the indexes of a relation."""
        self._workers.extend_indexes([relation])

    def bootstrap(self, stratum: LogicalStratum) -> int:
        """Evaluates a stratum in the first epoch. Returns the derivations enumerated."""
        if stratum.number not in self._ahead:
            self._go_ahead(stratum)
        ahead = self._ahead.pop(stratum.number, None)
        derivations = self.evaluate(stratum) if ahead is None else ahead
        if self.known_ranks is not None:
            self.known_ranks.commit()
        if not self.held.annotation.is_kept:
            if self._last_lookups is None:
                self._last_lookups = last_lookups(self.program)
            for name in self._last_lookups.get(stratum.number, ()):
                if name not in self.held.evicted:
                    self.held.relations[name].forget_table()
        return derivations

    def _go_ahead(self, stratum: LogicalStratum) -> None:
        """Evaluates a stratum together with later ones, if there are some that threads can share with it."""
        if self.held.crew is ALONE or self.held.evicted or (self._place is not None and self._place.is_asked):
            return
        strata = self.program.strata[self.program.strata.index(stratum) :]
        left = [other for other in strata if other.number not in self._ahead and not self._is_explicit(other)]
        beside = strata_beside(left, self._is_plain)
        if len(beside) < 2 or beside[0] is not stratum:
            return
        from elastalog.backends.kernel.bootstrap.shareable import is_shareable

        relations, source = self.held.relations, self.program.checked.source
        together = {}
        for each in beside:
            variants = StratumVariants(each, relations, self.dictionary, source, self.statistics)
            # New texts get their ids in the order of strata.
            if each is stratum or all(map(is_shareable, variants.once)):
                together[each.number] = each
                self.variants[each.number] = variants
        self._ahead |= evaluate_together(together, self.variants, relations, self._workers, self.watch)

    def _is_explicit(self, stratum: LogicalStratum) -> bool:
        """Whether the explicit facts of a stratum are all that it has."""
        return not (stratum.clauses or stratum.is_folded or stratum.merges or stratum.number in self.chosen)

    def _is_plain(self, stratum: LogicalStratum) -> bool:
        """Whether one round of its clauses is all that a stratum needs."""
        return bool(
            stratum.clauses
            and not stratum.is_recursive
            and not stratum.is_folded
            and not stratum.merges
            and stratum.number not in self.not_maintained
            and stratum.number not in self.chosen
            and not self.held.annotation.is_kept
            and not self.held.annotation.is_global
        )

    def evaluate(self, stratum: LogicalStratum, variants: StratumVariants | None = None) -> int:
        """Brings a stratum, whose relations hold their explicit facts, to its fixpoint; with the variants of an
        earlier evaluation, if given. Returns the derivations enumerated."""
        before = self.watch.derivations
        try:
            if stratum.aggregate is not None:
                relations, is_global = self.held.relations, self.held.annotation.is_global
                elsewhere = None if self._place is None else partial(self._place.fold, stratum)
                aggregates.evaluate(stratum.aggregate, relations, self.dictionary, self.program, is_global, elsewhere)
            elif stratum.equivalence is not None:
                classes.evaluate(stratum.equivalence, self.held.relations)
            elif stratum.number in self.chosen:
                self._choose(stratum)
            else:
                self._derive(stratum, variants)
        except LimitReached as limit:
            notes = constructing_rules(stratum)
            raise type(limit)([replace(d, notes=(*d.notes, *notes)) for d in limit.diagnostics]) from None
        return self.watch.derivations - before

    def _choose(self, stratum: LogicalStratum) -> None:
        relations, annotation = self.held.relations, self.held.annotation
        if annotation.is_global:
            raise ElastalogError([_unchoosable(stratum)])
        explicit = {name: relations[name].used for name in stratum.relations}
        is_ranked = stratum.ranked is not None and stratum.number not in self.limited
        is_kept = annotation.has_levels_only
        if not is_ranked or not self.ranks.evaluate(stratum, relations, self.dictionary, self.watch, is_kept=is_kept):
            from elastalog.backends.kernel.bootstrap.chosen_rounds import evaluate_chosen

            source = self.program.checked.source
            variants = self.variants[stratum.number] = StratumVariants(stratum, relations, self.dictionary, source)
            evaluate_chosen(stratum, variants, relations, self.program.relations, source, self.watch)
        if annotation.is_kept and annotation.support is not Support.LEVELS:
            # Every update evaluates it anew: that facts are derived is all that is kept of them.
            for name, first_derived in explicit.items():
                relation = relations[name]
                relation.count[: relation.used] = 1
                relation.level[:first_derived] = 0
                relation.level[first_derived : relation.used] = DERIVED
                if annotation.support is Support.VECTORS:
                    vectors = self.held.vectors[name] = Vectors()
                    rows = np.arange(relation.used, dtype=np.int32)
                    vectors.change(rows[:first_derived], 0, 1)
                    vectors.change(rows[first_derived:], DERIVED, 1)
                    vectors.commit()

    def _derive(self, stratum: LogicalStratum, variants: StratumVariants | None) -> None:
        relations, annotation = self.held.relations, self.held.annotation
        if stratum.clauses and annotation.is_global:
            if stratum.number in self.limited:
                raise ElastalogError([_unlimited(stratum)])
            self._derive_globally(stratum)
        elif stratum.clauses or annotation.support is Support.VECTORS:
            if variants is None:
                source, plans = self.program.checked.source, self.program.plans
                variants = StratumVariants(stratum, relations, self.dictionary, source, self.statistics, plans)
                self.variants[stratum.number] = variants
            variants.restart()
            watch, limits = self.watch, self._limits
            if stratum.merges:
                is_complete = self._merge(stratum, variants)
            elif annotation.support is Support.LEVELS:
                begun = self._evaluated_elsewhere(stratum)
                if begun is not None and begun.is_done:
                    is_complete = begun.is_complete
                else:
                    handover = self._handover(stratum) if begun is None else None
                    is_complete = evaluate(stratum, variants, relations, self._workers, watch, limits, begun, handover)
            elif annotation.support is Support.VECTORS:
                from elastalog.backends.kernel.dense.counted_fixpoint import evaluate_dense

                vectors, is_complete = evaluate_dense(stratum, variants, relations, watch, limits)
                self.held.vectors.update(vectors)
            else:
                from elastalog.backends.kernel.sets.set_fixpoint import evaluate_counted

                is_complete = evaluate_counted(stratum, variants, relations, annotation.support, watch, limits)
            self.is_complete = self.is_complete and is_complete

    def _merge(self, stratum: LogicalStratum, variants: StratumVariants) -> bool:
        """Evaluates a stratum in which equivalences depend on themselves, as classes. Levels are rounds; derivations
        are not counted, since some are found under several representatives, and nobody maintains the stratum by
        counts."""
        from elastalog.backends.kernel.bootstrap.merging import MergingWorkers

        relations, annotation = self.held.relations, self.held.annotation
        explicit = {name: relations[name].used for name in stratum.relations}
        workers = MergingWorkers(stratum.merges, relations, self.watch)
        is_complete = evaluate(stratum, variants, relations, workers, self.watch, self._limits)
        for name, rows in workers.finished().items():
            relations[name] = KernelRelation(name, rows.shape[1], annotation.is_kept, self.held.crew)
            relations[name].load(rows)
            if annotation.is_kept:
                relations[name].level[: len(rows)] = 1
        if annotation.is_kept:
            for name, first_derived in explicit.items():
                relation = relations[name]
                relation.count[: relation.used] = 1
                if not annotation.has_levels:
                    relation.level[first_derived : relation.used] = DERIVED
                note_levels(relation)
        return is_complete

    def _derive_globally(self, stratum: LogicalStratum) -> None:
        from elastalog.backends.kernel.bootstrap.global_levels import GlobalLevelEvaluation

        if self._evaluated_elsewhere(stratum) is not None:
            return
        relations = self.held.relations
        GlobalLevelEvaluation(stratum, self.program, relations, self.dictionary, self._workers, self.watch).run()

    def _evaluated_elsewhere(self, stratum: LogicalStratum) -> Begun | None:
        """What another place has made of a stratum, which is in its relations now. None: nothing."""
        if self._place is None:
            return None
        held = self.held
        facts = {name: held.facts_now(name) for name in (*stratum.reads, *stratum.relations)}
        levels = None
        if held.annotation.is_global:
            flat = self.program.flat
            below = [name for name in stratum.reads if name not in stratum.relations]
            if held.annotation.is_kept:
                levels = {name: held.levels_now(name) * (name not in flat) for name in below}
            else:  # nobody looks at levels: all facts are there from the start
                levels = {name: np.zeros(len(facts[name]), np.int32) for name in below}
        begun = self._place.evaluate(stratum, facts, self._limits, levels)
        if begun is not None:
            for name, found in begun.relations.items():
                width = self.program.relations[name].width
                held.relations[name] = KernelRelation(name, width, held.annotation.is_kept, held.crew)
                held.relations[name].adopt(found)
        return begun

    def _handover(self, stratum: LogicalStratum) -> Handover | None:
        """By which another place may go on with a stratum that is begun here."""
        place, held = self._place, self.held
        if place is None or not stratum.is_recursive or stratum.number in self.limited:
            return None
        below = [name for name in stratum.reads if name not in stratum.relations]

        def take(start: Mapping[str, int], iteration: int) -> Begun | None:
            facts = {name: held.facts_now(name) for name in below}
            given = {}
            for name, before in start.items():
                relation = held.relations[name]
                rows = slice(0, relation.used)
                kept = (relation.level[rows], relation.count[rows]) if relation.is_annotated else (None, None)
                given[name] = Given(FactWords(relation.rows[rows], *kept), before, iteration)
            begun = place.take_over(stratum, facts, given)
            if begun is not None:
                for name, found in begun.relations.items():
                    held.relations[name].adopt(found)
            return begun

        return Handover(partial(place.wants, stratum), take, sum(map(held.size, below)))

    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to given facts, after changes in their order, instead of a bootstrap."""
        held = self.held
        self.forget_ranks()
        width = self.program.relations[relation].width
        given = self.program.given.get(relation)
        if given is not None and facts.level is not None and facts.count is not None and not facts.level.all():
            is_given = facts.level == 0
            # Stores of earlier versions have explicit facts among the others.
            held.load(given, facts.words[is_given])
            facts = FactWords(facts.words[~is_given], facts.level[~is_given], facts.count[~is_given])
        held.relations[relation], held.explicit[relation] = snapshot.restored(
            relation, width, held.annotation.is_kept, facts, changes, held.crew
        )
        if relation in self._in_limited:
            # A store does not say whether its evaluation was cut short; one that was has filled its relation.
            self.is_complete &= held.size(relation) < self._limits.get(relation, held.size(relation) + 1)

    def elsewhere(self) -> tuple[StratumElsewhere, ...]:
        """What strata cost in the other place, if there is one."""
        return () if self._place is None else tuple(self._place.costs.values())

    def places(self) -> Iterator[Placed]:
        """Where strata with rules were last evaluated from the start, if they were."""
        known = {} if self._place is None else self._place.placed
        for stratum in self.program.strata:
            if stratum.clauses:
                here = Placed(stratum.number, stratum.relations, "kernel", NO_OTHER_PLACE)
                placed = known.get(stratum.number, here)
                yield placed if placed.relations == stratum.relations else here  # rules may have changed since

    def costs(self) -> Iterator[ClauseCost]:
        """What clauses cost in the last evaluation of their strata."""
        for stratum in sorted(self.variants):
            costs: dict[int, tuple[Clause, int, float]] = {}
            for variant in self.variants[stratum]:
                # A recursive clause has one version for every atom that may be the new fact.
                clause = variant.clause
                _, derivations, seconds = costs.get(clause.number, (clause, 0, 0.0))
                costs[clause.number] = clause, derivations + variant.derivations, seconds + variant.seconds
            for clause, derivations, seconds in costs.values():
                yield ClauseCost(stratum, clause, derivations, seconds)


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
        f"choice domains, subsumption and columns that improve, here of `{stratum.relations[0]}`, need local levels",
        help='use `levels="local"`, which is the default',
    )


def _unlimited(stratum: LogicalStratum) -> Diagnostic:
    return Diagnostic(
        "E0902",
        f"`.limitsize` cannot be obeyed with global levels, in the stratum of `{stratum.relations[0]}`",
        help='use `levels="local"`, with which every strategy obeys it, or remove the `.limitsize`',
    )


def _renumber(kept: dict[int, T], before: LogicalProgram, after: LogicalProgram) -> dict[int, T]:
    """What is kept by stratum: that of strata which have the same relations under both programs."""
    numbers = {stratum.relations: stratum.number for stratum in after.strata}
    return {
        numbers[stratum.relations]: kept[stratum.number]
        for stratum in before.strata
        if stratum.number in kept and stratum.relations in numbers
    }
