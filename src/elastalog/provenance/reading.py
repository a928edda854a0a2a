"""How clauses of the logical program are read back as the rules that were written.

The logical program has hidden relations for negated wildcards and for aggregates. A derivation by a clause is shown
with the literals of its rule: facts for atoms, instantiated text for negations and constraints, and aggregates with
their members.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, assert_never

import numpy as np

from elastalog.analysis.pattern import Free, Pattern
from elastalog.analysis.program import Aggregation, Apply, Atom, Base, Comparison, Negation, Rule, Value, Variable
from elastalog.analysis.values import sort_key
from elastalog.backends.protocol import Backend, Matrix
from elastalog.diagnostics.diagnostic import InternalError
from elastalog.late import dataclass
from elastalog.planning.logical import HIDDEN, Absent, AggregateRule, Clause, Origin, Test
from elastalog.provenance.fact import Bindings, Fact
from elastalog.provenance.ground import Run, Unbound
from elastalog.provenance.joins import is_matched, show, solve
from elastalog.provenance.proof import Condition
from elastalog.relations.words import Dictionary

WordFact: TypeAlias = tuple[str, tuple[int, ...]]
"""A fact as the backend holds it, possibly of a hidden relation."""


@dataclass(frozen=True, slots=True)
class AggregateUse:
    """An aggregate in an instantiated body: its text, its result, and the hidden fact that folds its members, None if
    it has none."""

    text: str
    result: Value
    hidden: WordFact | None


Item: TypeAlias = WordFact | Condition | AggregateUse
"""A premise before it is proved."""


class Reading:
    """Reads words and clauses of one backend."""

    def __init__(self, backend: Backend, dictionary: Dictionary) -> None:
        self.backend = backend
        self.dictionary = dictionary
        self.look = backend.watch.step
        """To be called at every step of a search: raises LimitReached when its time is over."""
        self.ordinal = Run(dictionary.ordinal, dictionary.functions, dictionary.wraps, self.look)
        self.program = program = backend.program
        self._bases = {name: stored.bases for name, stored in program.relations.items()}
        self._arity = {relation.name: relation.arity for relation in program.checked.relations.values()}
        self.stratum_of = {name: stratum.number for stratum in program.strata for name in stratum.relations}
        self.flat = program.flat
        self.given = program.given
        self.derived = {rule.head.relation for rule in program.checked.rules}
        self.aggregates: dict[str, AggregateRule] = {
            stratum.aggregate.relation: stratum.aggregate for stratum in program.strata if stratum.aggregate is not None
        }
        self.subsumed = {name: s for s in program.strata if s.dominance for name in s.relations}
        self.ranked = {name: s.ranked for s in program.strata if s.ranked is not None for name in s.relations}
        self.rivalled = self.subsumed.keys() | {name for name, stored in program.relations.items() if stored.choices}
        """The relations of which a fact that is derived may yet not hold, because of others."""
        self.equivalences = program.equivalences
        self.equivalence_of = {program.relations[name].classes: name for name in self.equivalences}
        """By the relation that holds the classes of one."""
        self._closures = {
            name: [rule for rule in program.checked.rules if rule.is_closure and rule.head.relation == name]
            for name in self.equivalences
        }
        self._origins: dict[int, Origin] = {}
        self._variables: dict[int, tuple[tuple[int, int, str], ...]] = {}
        """Where the variables of a clause are among its scans: scan, column, name."""
        for stratum in program.strata:
            for clause in stratum.clauses:
                if clause.origin is not None:
                    self._origins[clause.number] = clause.origin
                    self._variables[clause.number] = tuple(
                        (number, column, term)
                        for number, scan in enumerate(clause.scans)
                        for column, term in enumerate(scan.terms)
                        if isinstance(term, str)
                    )

    # --- facts -----------------------------------------------------------------------------------------------------

    def fact(self, words: WordFact) -> Fact:
        """The fact that words stand for."""
        self.look()
        name, row = words
        return Fact(name, self._values(name, row)[: self._arity[name]])

    def _values(self, name: str, row: Sequence[int]) -> tuple[Value, ...]:
        decode = self.dictionary.decode_value
        return tuple([decode(base, word) for base, word in zip(self._bases[name], row, strict=True)])

    def sort_key(self, words: WordFact) -> tuple[Any, ...]:
        """Orders the facts of one relation by their values."""
        self.look()
        return tuple(map(sort_key, self._values(*words)))

    def words(self, fact: Fact) -> WordFact | None:
        """The words of a fact; None if a value occurs in no fact at all."""
        self.look()
        found = [self._find(b, v) for b, v in zip(self._bases[fact.relation], fact.values, strict=False)]
        known = [word for word in found if word is not None]
        return (fact.relation, tuple(known) or (0,)) if len(known) == len(found) else None

    def is_present(self, relation: str, values: Sequence[Value | None]) -> bool:
        """Whether there is a fact with the given values; None fits any."""
        return next(self.select(relation, values), None) is not None

    def select(self, relation: str, values: Sequence[Value | None]) -> Iterator[tuple[Value, ...]]:
        """The facts with the given values, in the order in which they are stored; None fits any."""
        self.look()
        if (known := self.known(relation, values)) is None:
            return
        words = np.array(list(known.values()), np.int32)
        if len(known) == len(values):
            if self.backend.contains(relation, words[None] if known else np.zeros((1, 1), np.int32))[0]:
                yield tuple(value for value in values if value is not None)
            return
        arity = self._arity[relation]
        for row in self.backend.select(relation, tuple(known), words).words:
            self.look()
            yield self._values(relation, row.tolist())[:arity]

    def fitting(self, pattern: Pattern) -> Iterator[Fact]:
        """The facts that fit a pattern."""
        values = self.select(pattern.relation, _known_terms(pattern))
        return (Fact(pattern.relation, each) for each in values if pattern.fits(each))

    def count(self, pattern: Pattern) -> int:
        """How many facts fit a pattern."""
        is_any = all(map(pattern.is_open_at, range(len(pattern.terms))))
        return self.backend.size(pattern.relation) if is_any else len(self.words_fitting(pattern))

    def words_fitting(self, pattern: Pattern) -> Matrix:
        """The facts that fit a pattern, as the backend holds them."""
        relation, known = pattern.relation, self.known(pattern.relation, _known_terms(pattern))
        if known is None:
            return np.empty((0, len(self._bases[relation])), np.int32)
        words = self.backend.select(relation, tuple(known), np.array(list(known.values()), np.int32)).words
        fits, first = np.ones(len(words), np.bool_), dict[str, int]()
        for column, term in enumerate(pattern.terms):
            if isinstance(term, Free) and term.name is not None and first.setdefault(term.name, column) != column:
                fits &= words[:, first[term.name]] == words[:, column]
        return words[fits]

    def known(self, relation: str, values: Sequence[Value | None]) -> dict[int, int] | None:
        """The words of the values that are given, by column; None if no fact has one of them."""
        found = {}
        for column, (base, value) in enumerate(zip(self._bases[relation], values, strict=False)):
            if value is not None:
                word = self._find(base, value)
                if word is None:
                    return None
                found[column] = word
        return found

    def _find(self, base: Base, value: Value) -> int | None:
        try:
            return self.dictionary.find_value(base, value)
        except ValueError:
            return None  # outside the type: no fact has it

    def is_of_nothing(self, words: WordFact) -> bool:
        """Whether a fact of an aggregate is that of a group without members."""
        aggregate = self.aggregates.get(words[0])
        if aggregate is None or not aggregate.is_total or self._values(*words)[-1] != 0:
            return False
        group = np.array(words[1][: aggregate.groups], np.int32)
        return not len(self.backend.select(aggregate.members, tuple(range(aggregate.groups)), group).words)

    # --- clauses ---------------------------------------------------------------------------------------------------

    def body_of(self, clause: Clause) -> int:
        """Which alternative of an aggregate's body a clause of its members comes from."""
        return self._origins[clause.number].body

    def items(self, clause: Clause, head: WordFact, bodies: Sequence[WordFact]) -> list[Item]:
        """The premises of a derivation, in the order of the rule's body."""
        self.look()
        origin = self._origins[clause.number]
        if all(isinstance(literal, Atom) for literal in origin.literals):
            return [self._read_at(clause, position, bodies) for position in origin.scans if position is not None]
        bindings = self._bindings(clause, origin, head, bodies)
        result: list[Item] = []
        for literal, position in zip(origin.literals, origin.scans, strict=True):
            match literal:
                case Atom():
                    assert position is not None
                    result.append(self._read_at(clause, position, bodies))
                case Negation():
                    result.append(Condition("negation", show(literal, bindings)))
                case Comparison():
                    result.append(Condition("constraint", show(literal, bindings)))
                case Aggregation():
                    value = bindings[literal.result.name]
                    hidden = None if position is None else bodies[position]
                    if hidden is not None and self.is_of_nothing(hidden):
                        hidden = None
                    result.append(AggregateUse(show(literal, bindings), value, hidden))
                case _:
                    assert_never(literal)
        return result

    def _read_at(self, clause: Clause, position: int, bodies: Sequence[WordFact]) -> WordFact:
        """The fact that a scan reads, together with the next one if they are of one class of an equivalence."""
        relation, row = bodies[position]
        if relation not in self.equivalence_of:
            return bodies[position]
        equivalence, other = self.pair_at(clause, position)
        return equivalence, (row[0], bodies[other][1][0])

    def pair_at(self, clause: Clause, position: int) -> tuple[str, int]:
        """The equivalence whose classes a scan reads, and where the other half of the pair is read: at the next scan,
        or at the same one if a value is paired with any."""
        this, *following = clause.scans[position:]
        is_pair = any(other.relation == this.relation and other.terms[1] == this.terms[1] for other in following[:1])
        return self.equivalence_of[this.relation], position + is_pair

    def rested_on(self, clause: Clause, bodies: Sequence[WordFact]) -> tuple[WordFact, ...]:
        """The facts that a derivation rests on: those of its scans, but pairs of equivalences instead of classes."""
        if not self.equivalence_of:
            return tuple(bodies)
        origin = self._origins.get(clause.number)
        # Classes are read by the second halves of pairs and for negations, too.
        read = range(len(bodies)) if origin is None else origin.scans
        return tuple(
            self._read_at(clause, position, bodies)
            for position, (relation, _) in enumerate(bodies)
            if relation not in self.equivalence_of or position in read
        )

    def closure(self, pair: WordFact, links: Sequence[WordFact]) -> Rule:
        """The rule of an equivalence that a chain of stored pairs is told by."""
        reflexive, symmetric, transitive = self._closures[pair[0]]
        if pair[1][0] == pair[1][1]:
            return reflexive
        return symmetric if len(links) == 1 else transitive

    def _bindings(self, clause: Clause, origin: Origin, head: WordFact, bodies: Sequence[WordFact]) -> Bindings:
        decode = self.dictionary.decode_value
        found: dict[str, Value] = {}
        for number, column, name in self._variables[clause.number]:
            if name not in found:
                relation, row = bodies[number]
                found[name] = decode(self._bases[relation][column], row[column])
        for column, term in enumerate(clause.head_terms):
            if isinstance(term, str) and term not in found:
                found[term] = decode(self._bases[clause.head][column], head[1][column])
        for literal, position in zip(origin.literals, origin.scans, strict=True):
            if isinstance(literal, Aggregation) and position is None:
                found[literal.result.name] = 0.0 if literal.result.base.value == "float" else 0
        comparisons = [literal for literal in origin.literals if isinstance(literal, Comparison)]
        if _has_range(comparisons):
            comparisons += _computed_arguments(clause)
        extended = self._extensions(comparisons, clause, origin, found)
        first = next(extended, None)
        if first is None:
            raise InternalError("provenance", f"the derivation of {head} by clause {clause.number} does not hold")
        return first

    def _extensions(
        self, comparisons: list[Comparison], clause: Clause, origin: Origin, found: Bindings
    ) -> Iterator[Bindings]:
        """The ways to give the remaining variables values. Only ranges leave a choice; then negations, and groups of
        aggregates of nothing, decide too."""
        has_choice = _has_range(comparisons)
        for bindings in solve(comparisons, found, self.ordinal):
            if not has_choice or (
                all(self._is_absent(one.atom, bindings) for one in origin.literals if isinstance(one, Negation))
                and all(self._is_empty(goal, bindings) for goal in clause.goals if isinstance(goal, Absent))
            ):
                yield bindings

    def _is_empty(self, group: Absent, bindings: Bindings) -> bool:
        """Whether a hidden relation lacks a group. What stands for a negation is looked at as that."""
        if not group.relation.startswith(HIDDEN):
            return True
        values = [bindings.get(term) if isinstance(term, str) else term.value for term in group.terms]
        return None in values or not self.is_present(group.relation, values)

    def _is_absent(self, atom: Atom, bindings: Bindings) -> bool:
        try:
            return not is_matched(atom, bindings, self.select, self.ordinal)
        except Unbound:
            return False


def _known_terms(pattern: Pattern) -> list[Value | None]:
    return [None if isinstance(term, Free) else term for term in pattern.terms]


def _has_range(comparisons: list[Comparison]) -> bool:
    return any(isinstance(c.right, Apply) and c.right.functor == "range" for c in comparisons)


def _computed_arguments(clause: Clause) -> list[Comparison]:
    """The equations of computed arguments, those of the head too: the facts of a derivation decide by them between the
    values of a range."""
    return [
        goal
        for goal in clause.goals
        if isinstance(goal, Test) and isinstance(goal.left, Variable) and goal.left.name.startswith("@")
    ]
