"""How the kernel evaluates a program: every stratum from its explicit facts to its fixpoint."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TypeVar

from elastalog.analysis.listing import show_rule
from elastalog.backends.kernel.backward import BackwardEvaluation
from elastalog.backends.kernel.bootstrap.bodies import is_shareable
from elastalog.backends.kernel.bootstrap.first_epoch import ClauseCosts, FirstEpoch
from elastalog.backends.kernel.bootstrap.fixpoint import StratumVariants, evaluate_together, strata_beside
from elastalog.backends.kernel.bootstrap.handover import Begun, OtherPlace
from elastalog.backends.kernel.bootstrap.rounds import Workers
from elastalog.backends.kernel.relations import KernelFacts
from elastalog.backends.kernel.store import snapshot
from elastalog.backends.kernel.store.crew import ALONE, Crew, Task
from elastalog.backends.kernel.store.memory import Matrix
from elastalog.backends.kernel.strata import Explicit, Plain, StrataContext
from elastalog.backends.protocol import BEGUN_HERE, NO_OTHER_PLACE, ClauseCost, Placed, StateChanges
from elastalog.backends.watch import Watch
from elastalog.diagnostics.diagnostic import LimitReached
from elastalog.planning.goals import constructor_of, last_lookups
from elastalog.planning.logical import Clause, LogicalProgram, LogicalStratum, Test
from elastalog.relations.facts import FactWords
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS

T = TypeVar("T")
_MOST_PLANS = 2_048
"""Plans of one program, for relations of different sizes, beyond which no more is left to other sessions."""

_LOOK_AHEAD = 256
"""Strata among which those are looked for that threads can share; an ontology has thousands."""


class KernelEvaluation(StrataContext):
    """A program over the facts that the kernel holds. `backward` finds derivations of given heads."""

    def __init__(
        self,
        held: KernelFacts,
        program: LogicalProgram,
        dictionary: Dictionary,
        crew: Crew,
        watch: Watch,
        place: OtherPlace | None = None,
    ) -> None:
        super().__init__(held, dictionary, watch, Workers(held.relations, watch, crew), place)
        # What clauses cost of strata that were evaluated at once.
        self._costs_ahead: dict[int, ClauseCosts] = {}
        self.know(program)

    def know(self, program: LogicalProgram) -> None:
        """Everything that depends on the program and on nothing else."""
        super().know(program)
        self._backward: BackwardEvaluation | None = None
        # Derivations of strata that were evaluated before their turn.
        self._ahead: dict[int, int] = {}
        self._first_key: tuple[int, ...] | None = None
        self._last_lookups: dict[int, list[str]] | None = None
        self._last_readers: dict[str, int] | None = None

    @property
    def backward(self) -> BackwardEvaluation:
        if self._backward is None:
            self._backward = BackwardEvaluation(self.program, self.held.relations, self.dictionary, self.watch)
        return self._backward

    def follow(self, program: LogicalProgram) -> None:
        """Goes over to another program, of which the facts are held already."""
        self.variants = _renumber(self.variants, self.program, program)
        self._costs_ahead = _renumber(self._costs_ahead, self.program, program)
        self.know(program)

    def load(self, facts: dict[str, Matrix]) -> None:
        """Adds explicit facts before the first bootstrap, of several relations at a time."""
        crew, load = self.workers.crew, self.held.load
        if crew.number > 1 and sum(map(len, facts.values())) >= SETTINGS.share_loading_from:
            tasks: list[Task] = []
            while facts:
                name, words = facts.popitem()
                tasks.append((len(words), partial(load, name, words)))
            crew.do_all(tasks)
        while facts:
            load(*facts.popitem())

    def bootstrap(self, stratum: LogicalStratum) -> int:
        """Evaluates a stratum in the first epoch. Returns the derivations enumerated."""
        strata, number = self.program.strata, stratum.number
        if stratum is strata[0]:
            self._evaluate_at_once()
        if self.held.annotation.is_kept and number in self._ahead:
            return self._ahead.pop(number)  # what was evaluated at once is done
        self._keep_elsewhere(lambda name: name not in stratum.relations)
        if number not in self._ahead:
            self._go_ahead(stratum)
        ahead = self._ahead.pop(number, None)
        derivations = self._evaluated(stratum) if ahead is None else ahead
        self._keep_elsewhere(lambda name: self._last_reader(name) > number)
        if ahead is None and number in self._costs_ahead:  # it was begun
            derivations += _derivations(self._costs_ahead[number])
        if stratum is strata[-1]:
            self._leave_code()
        for ranked in self.known_ranks.values():
            ranked.commit()
        if not self.held.annotation.is_kept:
            if self._last_lookups is None:
                self._last_lookups = last_lookups(self.program)
            for name in self._last_lookups.get(stratum.number, ()):
                if name not in self.held.evicted:
                    self.held.relations[name].forget_table()
        return derivations

    def _evaluate_at_once(self) -> None:
        """Evaluates all strata, if they are simple and another session of the program, with relations of like sizes,
        has left the code for that."""
        held, key = self.held, None
        is_simple = {Plain, Explicit}.issuperset(self.kinds_of) and not self.program.limits
        is_elsewhere = self.place is not None and self.place.is_asked
        # A backend that holds the kernel may evaluate some strata itself.
        is_here = not is_elsewhere and type(held.relations) is dict and self.watch.on_progress is None
        if is_simple and is_here and held.annotation.has_levels_only:
            key = self.binder.statistics.small_sizes(self.program.relations)
        self._first_key = key
        try:
            first: FirstEpoch = self.program.plans["first", key].pop()
        except (KeyError, IndexError):
            return
        self._ahead = {stratum.number: 0 for stratum in self.program.strata if not stratum.clauses}
        for done, costs in first.run(held.relations, self.dictionary, self.watch):
            self._ahead[done.number] = _derivations(costs)
            self._costs_ahead[done.number] = costs
        if (begun := first.begun) is not None:
            left, iteration = begun
            del self._ahead[left.number]
            facts = {name: held.facts(name) for name in left.relations}
            self.begun[left.number] = Begun(facts, iteration - 1, 0, is_done=False, is_complete=True)
        self.program.plans["first", key].append(first)

    def _leave_code(self) -> None:
        """Leaves the code of all strata to other sessions of the program, if it has none of like sizes yet."""
        plans, strata = self.program.plans, []
        if self._first_key is None or plans.get(("first", self._first_key)) or len(plans) > _MOST_PLANS:
            return
        for stratum in self.program.strata:
            if stratum.clauses:
                variants = self.variants.get(stratum.number)
                code = None if variants is None else variants.left_code()
                if code is None:
                    return
                strata.append((stratum, *code))
        plans.setdefault(("first", self._first_key), []).append(FirstEpoch(strata, self.held.relations))

    def _go_ahead(self, stratum: LogicalStratum) -> None:
        """Evaluates a stratum together with later ones that threads can share with it, if there are any: plain ones,
        which do not exist where annotations are kept."""
        held = self.held
        is_alone = held.crew is ALONE or held.annotation.is_kept
        if is_alone or held.evicted or (self.place is not None and self.place.is_asked):
            return
        strata = self.program.strata[stratum.number : stratum.number + _LOOK_AHEAD]
        kinds = self.kinds
        left = [other for other in strata if not (other.number in self._ahead or kinds[other.number].has_explicit_only)]
        beside = strata_beside(left, lambda other: kinds[other.number].is_one_round)
        if len(beside) < 2 or beside[0] is not stratum:
            return
        together = {}
        for each in beside:
            variants = StratumVariants(each, self.binder)
            # New texts get their ids in the order of strata.
            if each is stratum or all(map(is_shareable, variants.once)):
                together[each.number] = each
                self.variants[each.number] = variants
        self._ahead |= evaluate_together(together, self.variants, self.workers)

    def evaluate(self, stratum: LogicalStratum, variants: StratumVariants | None = None) -> int:
        """Brings a stratum, whose relations hold their explicit facts, to its fixpoint; with the variants of an
        earlier evaluation, if given. Returns the derivations enumerated."""
        self._keep_elsewhere(lambda name: False)  # it may have changed since
        derivations = self._evaluated(stratum, variants)
        self._keep_elsewhere(lambda name: False)
        return derivations

    def _keep_elsewhere(self, is_kept: Callable[[str], bool]) -> None:
        """Keeps at another place only some of the relations that it has evaluated."""
        if self.place is not None:
            self.place.keep(is_kept)

    def _last_reader(self, relation: str) -> int:
        """The number of the last stratum that reads a relation, -1 if none does."""
        if self._last_readers is None:
            self._last_readers = {name: stratum.number for stratum in self.program.strata for name in stratum.reads}
        return self._last_readers.get(relation, -1)

    def _evaluated(self, stratum: LogicalStratum, variants: StratumVariants | None = None) -> int:
        before = self.watch.derivations
        if stratum.number not in self.begun:
            self._costs_ahead.pop(stratum.number, None)
        try:
            self.kinds[stratum.number].evaluate(variants)
        except LimitReached as limit:
            notes = constructing_rules(stratum)
            raise type(limit)([replace(d, notes=(*d.notes, *notes)) for d in limit.diagnostics]) from None
        return self.watch.derivations - before

    def restore(self, relation: str, facts: FactWords, changes: Sequence[StateChanges]) -> None:
        """Sets a relation to given facts, after changes in their order, instead of a bootstrap."""
        held = self.held
        self.known_ranks.clear()
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
        limit = self.program.limits.get(relation)
        if limit is not None and any(
            relation in s.relations and self.program.is_limited(s) for s in self.program.strata
        ):
            # A store does not say whether its evaluation was cut short; one that was has filled its relation.
            self.is_complete &= held.size(relation) < limit

    def places(self) -> Iterator[Placed]:
        """Where strata with rules were last evaluated from the start, if they were."""
        known = {} if self.place is None else self.place.placed
        for stratum in self.program.strata:
            if stratum.clauses:
                reason = NO_OTHER_PLACE if self.place is None else BEGUN_HERE
                here = Placed(stratum.number, stratum.relations, "kernel", reason)
                placed = known.get(stratum.number, here)
                yield placed if placed.relations == stratum.relations else here  # rules may have changed since

    def costs(self) -> Iterator[ClauseCost]:
        """What clauses cost in the last evaluation of their strata."""
        found = {
            stratum: sorted(costs, key=lambda cost: (cost[0].is_recursive, cost[0].number))
            for stratum, costs in self._costs_ahead.items()
        }
        for stratum, variants in self.variants.items():
            later = [(variant.clause, variant.derivations, variant.seconds) for variant in variants]
            found[stratum] = found.get(stratum, []) + later
        for stratum in sorted(found):
            costs: dict[int, tuple[Clause, int, float]] = {}
            for clause, more, longer in found[stratum]:
                # A recursive clause has one version for every atom that may be the new fact.
                _, derivations, seconds = costs.get(clause.number, (clause, 0, 0.0))
                costs[clause.number] = clause, derivations + more, seconds + longer
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


def _derivations(costs: ClauseCosts) -> int:
    return sum([derivations for _, derivations, _ in costs])


def _renumber(kept: dict[int, T], before: LogicalProgram, after: LogicalProgram) -> dict[int, T]:
    """What is kept by stratum: that of strata which have the same relations under both programs."""
    numbers = {stratum.relations: stratum.number for stratum in after.strata}
    return {
        numbers[stratum.relations]: kept[stratum.number]
        for stratum in before.strata
        if stratum.number in kept and stratum.relations in numbers
    }
