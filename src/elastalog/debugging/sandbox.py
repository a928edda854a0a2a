"""A sandbox for trials: states that differ from a base in some explicit facts, each looked at and undone.

A `Switch` is such a fact. Flipping it adds the fact to the base, or removes it. The question decides which state is the
base, and what flipping means: a suggestion starts from the later epoch and undoes elements, a localisation starts from
the earlier one and applies them. A `WordSet` is a set of facts as the backend holds them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

from elastalog.analysis.pattern import Pattern
from elastalog.backends.kernel.store.relation import KernelRelation
from elastalog.backends.protocol import Backend, ChangedWords, Matrix, Vector
from elastalog.backends.watch import BudgetExceeded
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.evaluation.changes import Update
from elastalog.evaluation.epochs import Epochs, TrialLimits
from elastalog.planning.logical import LogicalProgram
from elastalog.provenance.reading import WordFact
from elastalog.relations.pairs import Rows, written_out

T = TypeVar("T")


class NoState(Exception):
    """The rules have no result in this state: a number overflows, say. It is not part of any answer."""


@dataclass(frozen=True, slots=True)
class Switch:
    """An explicit fact that the states differ in. `adds`: the base does not have it."""

    fact: WordFact
    adds: bool

    def is_on(self, is_flipped: bool) -> bool:
        """Whether the fact is explicit in a state."""
        return self.adds == is_flipped


@dataclass(slots=True)
class Seconds:
    """Where the time went: finding derivations and proofs, solving 0/1 programs, trying states. Trials of a part of the
    program, to find what varies, count as provenance."""

    provenance: float = 0.0
    solving: float = 0.0
    trials: float = 0.0
    number_of_trials: int = 0
    number_of_limited_trials: int = 0

    @contextmanager
    def spent_on(self, what: Literal["provenance", "solving", "trials"]) -> Iterator[None]:
        """Counts the time of the block."""
        began = time.perf_counter()
        try:
            yield
        finally:
            setattr(self, what, getattr(self, what) + time.perf_counter() - began)

    @property
    def total(self) -> float:
        return self.provenance + self.solving + self.trials


@dataclass(slots=True)
class Sandbox:
    """Tries states around a base, which is the present state of the backend whenever no trial is under way."""

    epochs: Epochs
    switches: Sequence[Switch]
    seconds: Seconds = field(default_factory=Seconds)
    seconds_a_trial: float | None = None
    """How long a state may take: rules need not come to an end in every state. Half as long after each state that was
    given up, but for `least_seconds`, so that those without an end leave time for the others."""
    least_seconds: float = 0.25
    has_met_no_state: bool = False
    """Whether some state that was tried had no result."""
    has_given_up: bool = False
    """Whether some state took too long, so that its result is not known."""

    @property
    def backend(self) -> Backend:
        return self.epochs.backend

    @contextmanager
    def moved(
        self, before: Collection[int], after: Collection[int], limits: TrialLimits | None = None
    ) -> Iterator[ChangedWords]:
        """Moves from the base, or from a state that is being tried, to another state within the block, both given by
        the switches that are flipped. Yields the facts that this inserted and deleted. Raises NoState, and
        BudgetExceeded beyond limits."""
        differing = set(before).symmetric_difference(after)
        added = [self.switches[i].fact for i in sorted(differing) if self.switches[i].is_on(i in after)]
        removed = [self.switches[i].fact for i in sorted(differing) if not self.switches[i].is_on(i in after)]
        if not differing:
            yield {}
            return
        self.backend.watch.check()
        self.seconds.number_of_trials += 1
        with self.tried(update_of(removed, added), limits) as changes:
            yield changes

    @contextmanager
    def tried(self, update: Update, limits: TrialLimits | None = None) -> Iterator[ChangedWords]:
        """Within the block an update is in force. Raises NoState, and BudgetExceeded beyond limits."""
        trial, watch = self.epochs.trial(update, limits), self.backend.watch
        try:
            with self.seconds.spent_on("trials"), watch.within(self.seconds_a_trial):
                changes = trial.__enter__()
        except LimitReached:
            watch.check()  # raises if it is a limit of the user
            self.has_met_no_state = self.has_given_up = True
            if self.seconds_a_trial is not None:
                self.seconds_a_trial = max(self.seconds_a_trial / 2, min(self.seconds_a_trial, self.least_seconds))
            raise NoState from None
        except ElastalogError as error:
            self.has_met_no_state = True
            raise NoState from error
        try:
            yield changes
        finally:
            with self.seconds.spent_on("trials"):
                trial.__exit__(None, None, None)

    def look(self, chosen: frozenset[int], limits: TrialLimits | None, look: Callable[[ChangedWords], T]) -> T:
        """What is seen where some switches are flipped: within limits if these are enough, otherwise without."""
        if limits is not None:
            with suppress(BudgetExceeded), self.moved((), chosen, limits) as changes:
                return look(changes)
        with self.moved((), chosen) as changes:
            return look(changes)


@dataclass(frozen=True, slots=True)
class Goals:
    """Facts that must not hold, nor any fact that fits one of the `patterns`, and facts that must. Whatever fits in the
    base is among those that are `absent`."""

    absent: tuple[WordFact, ...]
    present: tuple[WordFact, ...]
    patterns: tuple[Pattern, ...] = ()

    @property
    def all(self) -> tuple[WordFact, ...]:
        return (*self.absent, *self.present)

    def unmet(self, are_present: Sequence[bool]) -> tuple[list[WordFact], list[WordFact]]:
        """The facts that hold and must not, and those that must and do not, given which of `all` hold."""
        number = len(self.absent)
        wrong = [fact for fact, holds in zip(self.absent, are_present[:number], strict=True) if holds]
        return wrong, [fact for fact, holds in zip(self.present, are_present[number:], strict=True) if not holds]


def are_present(backend: Backend, facts: Sequence[WordFact]) -> list[bool]:
    """Which facts hold in the present state of a backend."""
    places: dict[str, list[int]] = {}
    for place, (relation, _) in enumerate(facts):
        places.setdefault(relation, []).append(place)
    found = np.empty(len(facts), np.bool_)
    for relation, of_relation in places.items():
        found[of_relation] = backend.contains(relation, np.array([facts[i][1] for i in of_relation], np.int32))
    return list(map(bool, found))


def words_by_relation(facts: Iterable[WordFact]) -> dict[str, Matrix]:
    """Facts as matrices."""
    rows: dict[str, list[tuple[int, ...]]] = {}
    for relation, row in facts:
        rows.setdefault(relation, []).append(row)
    return {relation: np.array(found, np.int32) for relation, found in rows.items()}


def update_of(deleted: Iterable[WordFact], inserted: Iterable[WordFact]) -> Update:
    """An update of some facts."""
    return Update(words_by_relation(deleted), words_by_relation(inserted))


class WordSet:
    """Facts by relation, numbered."""

    def __init__(self, program: LogicalProgram) -> None:
        self._program = program
        self._relations: dict[str, KernelRelation] = {}

    def add(self, relation: str, words: Rows) -> None:
        if len(words):
            held = self._relations.get(relation)
            if held is None:
                width = self._program.relations[relation].width
                held = self._relations[relation] = KernelRelation(relation, width, is_annotated=False)
            held.load(written_out(words))

    @staticmethod
    def came_and_went(program: LogicalProgram, changes: ChangedWords) -> tuple[WordSet, WordSet]:
        """The two sides of changes."""
        came, went = WordSet(program), WordSet(program)
        for name, (new, old) in changes.items():
            came.add(name, new)
            went.add(name, old)
        return came, went

    def find(self, relation: str, words: Matrix) -> Vector:
        """The number of each fact within its relation, -1 for those that are not in the set."""
        held = self._relations.get(relation)
        return np.full(len(words), -1, np.int32) if held is None else held.find(words)

    def has(self, fact: WordFact) -> bool:
        relation, row = fact
        return relation in self._relations and bool(self.find(relation, np.array([row], np.int32))[0] >= 0)

    def words(self, relation: str) -> Matrix:
        held = self._relations[relation]
        return held.rows[: held.used]

    def size(self, relation: str) -> int:
        held = self._relations.get(relation)
        return 0 if held is None else held.used
