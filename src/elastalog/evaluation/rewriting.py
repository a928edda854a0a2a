"""An update that changes rules: the backend goes from the program of an epoch to that of the next through their union.

Within the update the rules that come and go are guarded, and their guards are explicit facts that come and go with all
others (see `planning.transition`). Nothing of that is left when the update has ended, either way: the backend then has
the new program, or the old one, as if it had been opened with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

import numpy as np

from elastalog.backends.protocol import Backend, Matrix
from elastalog.diagnostics.interrupts import uninterrupted
from elastalog.evaluation import needed_groups
from elastalog.evaluation.costs import CostModel, Forecast
from elastalog.evaluation.strategies.by_stratum import Strategy
from elastalog.evaluation.strategies.protocol import StratumWork, Work
from elastalog.evaluation.transactions import transaction
from elastalog.planning.equivalences import depends_on_itself, kept_as_classes
from elastalog.planning.logical import LogicalProgram, guard_of
from elastalog.planning.lower import lower
from elastalog.planning.transition import Transition, transition
from elastalog.program import RuleChange

OfStratum = TypeVar("OfStratum", StratumWork, Forecast)

FACT: Matrix = np.zeros((1, 1), np.int32)
"""What a guard holds while its rule is in force."""


class Swap:
    """Another program that takes the place of a backend's own for a while. `guards`: of rules, and whether each is in
    force at first. `begin` and `rollback` are not to be interrupted."""

    def __init__(self, backend: Backend, strategy: Strategy, meanwhile: Transition, guards: Mapping[str, bool]) -> None:
        self.backend = backend
        self.strategy = strategy
        self.before = backend.program
        self.meanwhile = meanwhile
        self.guards = guards
        self._costs: CostModel | None = None

    def begin(self) -> None:
        """The other program takes its place."""
        self._forget_marks()
        self._costs = self.strategy.costs.copy()
        self.strategy.costs.renumber(_numbers(self.before, self.meanwhile.program))
        self.backend.reprogram(self.meanwhile.program, self.meanwhile.renamed, self.guards)

    def rollback(self) -> None:
        """The old program takes its place again, after the backend's own rollback."""
        if self.backend.program is self.meanwhile.program:
            self.backend.reprogram(self.before, {new: old for old, new in self.meanwhile.renamed.items()})
        if self._costs is not None:
            self.strategy.costs.become(self._costs)

    def _forget_marks(self) -> None:
        # Marks name rows, which may get other numbers, of relations, which may get other names. They are only advice.
        self.strategy.marking.forget()


class Rewriting(Swap):
    """The change of rules of one update, for one backend under one strategy, by way of the union of both programs, in
    which at first all rules of the old one are in force, and no others. Raises ElastalogError if the strategy does not
    take the new program."""

    def __init__(self, change: RuleChange, backend: Backend, strategy: Strategy) -> None:
        self.change = change
        self.after = lower(change.after.checked, equivalences=_still_as_classes(backend.program, change))
        strategy.check(self.after)
        guarded = frozenset((*change.added_numbers, *change.removed_numbers))
        guards = {guard_of(number): number in change.removed_numbers for number in guarded}
        meanwhile = transition(backend.program, change.union.checked, change.number_of, guarded, self.after)
        super().__init__(backend, strategy, meanwhile, guards)

    @property
    def deleted(self) -> dict[str, Matrix]:
        """The guards that go."""
        return {guard: FACT for guard, is_there in self.guards.items() if is_there}

    @property
    def inserted(self) -> dict[str, Matrix]:
        """The guards that come."""
        return {guard: FACT for guard, is_there in self.guards.items() if not is_there}

    @property
    def anew(self) -> frozenset[str]:
        return self.meanwhile.anew

    def end(self, work: Work) -> Work:
        """The update has been evaluated. What was done, as of strata of the new program."""
        self._forget_marks()
        if self._costs is not None:
            self.strategy.costs.forget_rates(self._costs, _numbers(self.before, self.meanwhile.program))
            self.strategy.costs.renumber(_numbers(self.meanwhile.program, self.after))
        return Work(self.in_new_program(work.strata), work.counters)

    def in_new_program(self, strata: Iterable[OfStratum]) -> list[OfStratum]:
        """What is said of strata of the union, of those of the new program; of no others."""
        numbers = _numbers(self.meanwhile.program, self.after)
        return [replace(of, stratum=numbers[of.stratum]) for of in strata if of.stratum in numbers]

    def commit(self) -> None:
        """The new program takes the place of the union, after the backend's own commit."""
        self.backend.reprogram(self.after, {})


@contextmanager
def borrowed_program(
    backend: Backend, strategy: Strategy, meanwhile: Transition, guards: Mapping[str, bool]
) -> Iterator[None]:
    """Within the block the backend has another program, under which all that it keeps means the same; relations to be
    evaluated anew are ones that it did not have. The facts must be the same again at the end."""
    swap = Swap(backend, strategy, meanwhile, guards)
    try:
        with uninterrupted():
            swap.begin()
        if meanwhile.anew:
            evaluate_anew(backend, strategy, meanwhile.anew)
        yield
    finally:
        with uninterrupted():
            swap.rollback()


def evaluate_anew(backend: Backend, strategy: Strategy, anew: frozenset[str]) -> None:
    """Evaluates relations, outside an update."""
    with transaction(backend, {}, {}, anew):
        needed_groups.update(backend, strategy, anew)


def _still_as_classes(before: LogicalProgram, change: RuleChange) -> frozenset[str]:
    """The equivalences that are kept as classes before, meanwhile and afterwards, their recursion among them each time
    or never."""
    programs = [change.union.checked, change.after.checked]
    kept = before.equivalences.intersection(*(kept_as_classes(program, can_merge=True) for program in programs))
    return frozenset(
        name for name in kept if {depends_on_itself(name, program) for program in programs} == {name in before.merged}
    )


def _numbers(before: LogicalProgram, after: LogicalProgram) -> dict[int, int]:
    """The strata with the same relations."""
    numbers = {stratum.relations: stratum.number for stratum in after.strata}
    return {s.number: numbers[s.relations] for s in before.strata if s.relations in numbers}
