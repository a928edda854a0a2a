"""The bounds between which all states lie.

*Upper* facts hold in some state, as far as is known, *lower* facts in every state. The engine finds both as states of
its own: with every switch on, and with every switch off. A rule that negates a varying fact must see it absent to
derive upper facts, and present to derive lower ones; so in a further trial the engine is told that those facts are
absent, or present. That may vary the facts of further negated relations, and so on, once for each level of negation. By
induction over the strata, every state lies between the two.

Nothing is known about a relation that rests on an aggregate over varying members, on facts that one rule negates and
another uses, about which both would have to be pretended, or on negated facts with arguments that no atom binds.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import InitVar, dataclass

import numpy as np

from elastalog.analysis.program import Base, Constant
from elastalog.backends.protocol import ChangedWords, Matrix, Vector
from elastalog.backends.watch import BudgetExceeded
from elastalog.debugging.sandbox import WordSet
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached
from elastalog.evaluation.changes import Update
from elastalog.evaluation.epochs import Epochs, Trial, TrialLimits, can_limit
from elastalog.planning.logical import Absent, Clause, LogicalProgram, Scan, Term
from elastalog.relations.words import Dictionary
from elastalog.settings import SETTINGS


@dataclass(eq=False)
class Bracket:
    """The bounds within some strata, given by number, which read no others. `exact`: the relations about which all is
    known. `varying`: their facts that are upper and not lower; every other upper fact holds in all states.

    `raising` and `lowering` lead from the state of the backend to the states with every switch on, and with every
    switch off.
    """

    _epochs: Epochs
    _dictionary: Dictionary
    strata: Collection[int]
    raising: InitVar[Update]
    lowering: InitVar[Update]

    def __post_init__(self, raising: Update, lowering: Update) -> None:
        self._program = self._epochs.backend.program
        self._negated = _atoms(self._program, Absent)
        self._used = _atoms(self._program, Scan)
        self.varying = WordSet(self._program)
        self.exact: frozenset[str] = frozenset()
        self._negations: dict[int, Sequence[Absent]] = {}
        self.trials = 0
        self._can_limit = can_limit(self._epochs.backend, self._epochs.strategy)
        self._upper: list[Trial] = [self._trial(raising)]
        """To be entered one after the other: the way to all upper facts."""
        self._lower = self._trial(lowering)
        try:
            self._find()
        except LimitReached:
            raise
        except (ElastalogError, BudgetExceeded):
            self.exact = frozenset()  # a state without a result, or too far away: its facts are not known

    def _trial(self, update: Update, **told: Mapping[str, Matrix]) -> Trial:
        limits = TrialLimits(self.strata, SETTINGS.bracket_derivations, **told) if self._can_limit else None
        return self._epochs.trial(update, limits)

    def _find(self) -> None:
        for trial in (self._upper[0], self._lower):
            with trial as changes:
                self._learn(changes)
        self.trials += 2
        told: dict[str, int] = {}
        while True:
            self.exact, pretended = self._known()
            sizes = {name: len(words) for name, words in pretended.items()}
            if sizes == told:
                return
            told = sizes
            absence = self._trial(Update({}, {}), absent=pretended)
            with self._upper[0], absence as changes:
                self._learn(changes)
            with self._lower, self._trial(Update({}, {}), present=pretended) as changes:
                self._learn(changes)
            self._upper[1:] = [absence]
            self.trials += 2

    def _learn(self, changes: ChangedWords) -> None:
        """Whatever two states differ in varies."""
        for name, sides in changes.items():
            for words in sides:
                self.varying.add(name, words)

    @contextmanager
    def in_upper(self) -> Iterator[None]:
        """All upper facts hold within the block."""
        with ExitStack() as stack:
            for trial in self._upper:
                stack.enter_context(trial)
            yield

    # --- what is known ---------------------------------------------------------------------------------------------

    def _known(self) -> tuple[frozenset[str], dict[str, Matrix]]:
        """From below: the relations about which all is known, and the varying facts of those that are negated."""
        exact: set[str] = set()
        pretended: dict[str, Matrix] = {}
        for stratum in self._program.strata:
            if stratum.number not in self.strata:
                continue
            own = set(stratum.relations)
            rule = stratum.aggregate
            is_exact = rule is None or (exact.issuperset(rule.reads) and not self.varying.size(rule.members))
            for clause in stratum.clauses:
                for goal in clause.goals:
                    if isinstance(goal, Scan):
                        is_exact &= goal.relation in exact or goal.relation in own
                    elif isinstance(goal, Absent):
                        is_exact &= goal.relation in exact and self._is_harmless(goal, clause)
            if is_exact:
                exact |= own
                for name in own & self._negated.keys():
                    words = self._pretended(name)
                    if len(words):
                        pretended[name] = words
        return frozenset(exact), pretended

    def _pretended(self, relation: str) -> Matrix:
        """The varying facts of a relation that rules negate; none if a rule also uses some."""
        nothing = np.empty((0, self._program.relations[relation].width), np.int32)
        if not self.varying.size(relation) or not self._can_limit:
            return nothing
        words = self.varying.words(relation)
        words = words[self._fits_any(relation, self._negated[relation], words)]
        return nothing if self._fits_any(relation, self._used.get(relation, ()), words).any() else words

    def _is_harmless(self, goal: Absent, clause: Clause) -> bool:
        """Whether a negation is of facts that do not vary, or of such as we can pretend about."""
        if not self._may_vary(goal):
            return True
        return bool(len(self._pretended(goal.relation))) and set(goal.terms) <= places(clause).keys() | _constants(goal)

    def _fits_any(self, relation: str, atoms: Sequence[tuple[Term, ...]], words: Matrix) -> Vector:
        mask = np.zeros(len(words), np.bool_)
        for terms in atoms:
            mask |= self._fits(relation, terms, words)
        return mask

    def _fits(self, relation: str, terms: tuple[Term, ...], words: Matrix) -> Vector:
        """Which facts an atom may mean."""
        return fitting(terms, self._program.relations[relation].bases, words, self._dictionary)

    def negations(self, clause: Clause) -> Sequence[Absent]:
        """The negated atoms of a clause that may mean facts that vary."""
        found = self._negations.get(clause.number)
        if found is None:
            negated = [goal for goal in clause.goals if isinstance(goal, Absent)]
            found = self._negations[clause.number] = [goal for goal in negated if self._may_vary(goal)]
        return found

    def _may_vary(self, goal: Absent) -> bool:
        name = goal.relation
        return bool(self.varying.size(name) and self._fits(name, goal.terms, self.varying.words(name)).any())


def fitting(terms: Sequence[Term], bases: Sequence[Base], words: Matrix, dictionary: Dictionary) -> Vector:
    """Which facts fit an atom: its constants, and variables that it has several times."""
    mask = np.ones(len(words), np.bool_)
    first: dict[str, int] = {}
    for column, (term, base) in enumerate(zip(terms, bases, strict=True)):
        if isinstance(term, Constant):
            word = dictionary.find_value(base, term.value)
            mask &= False if word is None else words[:, column] == word
        elif term is not None and first.setdefault(term, column) != column:
            mask &= words[:, first[term]] == words[:, column]
    return mask


def instances(
    terms: Sequence[Term],
    bases: Sequence[Base],
    words_of: Callable[[str], Vector | int | None],
    number: int,
    dictionary: Dictionary,
) -> Matrix | None:
    """The facts that terms stand for, a row for each of a number of derivations, given the words of variables. None if
    a constant occurs in no fact, or a variable has no words."""
    found = np.empty((number, len(terms)), np.int32)
    for column, (term, base) in enumerate(zip(terms, bases, strict=True)):
        words = dictionary.find_value(base, term.value) if isinstance(term, Constant) else words_of(term or "")
        if words is None:
            return None
        found[:, column] = words
    return found


def places(clause: Clause) -> Mapping[str, tuple[int, int]]:
    """Where a derivation has the word of each variable: the number of the scan, -1 for the head, and the column."""
    found: dict[str, tuple[int, int]] = {}
    for number, terms in ((-1, clause.head_terms), *((i, scan.terms) for i, scan in enumerate(clause.scans))):
        for column, term in enumerate(terms):
            if isinstance(term, str):
                found[term] = number, column
    return found


def _constants(goal: Absent) -> set[object]:
    return {term for term in goal.terms if isinstance(term, Constant)}


def _atoms(program: LogicalProgram, kind: type[Absent] | type[Scan]) -> dict[str, list[tuple[Term, ...]]]:
    """By relation: the terms of the atoms of a kind."""
    found: dict[str, list[tuple[Term, ...]]] = {}
    for stratum in program.strata:
        for clause in stratum.clauses:
            for goal in clause.goals:
                if isinstance(goal, kind):
                    found.setdefault(goal.relation, []).append(goal.terms)
    return found
