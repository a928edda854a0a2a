"""Candidates for repairs: changes of explicit facts that may bring about missing facts; and the patterns by which users
name facts."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product, zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from elastalog.analysis.pattern import Free, Pattern, parse_pattern, parse_selection, require_fact
from elastalog.analysis.program import Aggregation, Apply, Atom, Base, Constant, Variable
from elastalog.analysis.stratify import needed_for
from elastalog.debugging.answers import Element
from elastalog.debugging.debugger import TIME_LIMIT
from elastalog.debugging.problem import LEAST_SECONDS
from elastalog.debugging.questions import facts_in, signed
from elastalog.debugging.sandbox import NoState, Sandbox, words_by_relation
from elastalog.diagnostics import quota
from elastalog.diagnostics.arguments import listed
from elastalog.diagnostics.diagnostic import error
from elastalog.evaluation.changes import Update
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading, WordFact
from elastalog.relations.facts import Relation
from elastalog.session.questions import warn_of_terms
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from elastalog.analysis.program import CheckedProgram, Rule, Value
    from elastalog.debugging.history import Past
    from elastalog.provenance.absence import Absence, Instantiation
    from elastalog.provenance.explain import Explanations
    from elastalog.session.materialisation import Materialisation
    from elastalog.session.questions import Answerers

FACT_SIZE = 500
"""Approximate memory of a fault in a search, in bytes."""
MISSING = "missing facts are given in a list"
_ADVICE = "give facts in a list, those to delete as `-edge(1, 2)`; or rows by relation"


def words_of(fact: Fact, now: Materialisation) -> WordFact:
    """A fact as the backend holds it. New texts get words."""
    return fact.relation, tuple(now.encode(fact.relation, [fact.values])[0].tolist())


def given_candidates(
    given: Any, now: Materialisation, known: Callable[[list[Element]], Iterable[Element]]
) -> list[Element]:
    """Candidates that the user gives: rows by relation, or facts, with a minus those to delete. A pattern with a minus
    stands for all explicit facts that match; without one, for matching facts to be inserted: those that are `known` to
    be of use, possibly with the other candidates, and those with values that are there."""
    if isinstance(given, Mapping):
        offered = (
            (name, Relation.of(now.schema(name), now.dictionary, now.encode(name, given[name]))) for name in given
        )
        return [Element("+", Fact(name, values)) for name, facts in offered for values in facts]
    found, patterns = list[Element](), list[Pattern]()
    for one in listed("candidates are facts", given, _ADVICE):
        sign, written = signed(one)
        pattern = parse_selection(written, now.program.checked) if isinstance(written, str) else None
        if pattern is None or pattern.is_fact:
            found.append(Element("-" if sign == "-" else "+", now.fact(written)))
        elif sign == "-":
            explicit = Relation.of(now.schema(pattern.relation), now.dictionary, now.explicit_words(pattern.relation))
            found += [Element("-", Fact(pattern.relation, values)) for values in explicit if pattern.fits(values)]
        else:
            patterns.append(pattern)
    fitting = (
        Element("+", fact)
        for sign, fact in (known(found) if patterns else ())
        if sign == "+" and isinstance(fact, Fact)
        if any(fact.relation == pattern.relation and pattern.fits(fact.values) for pattern in patterns)
    )
    filled = (Element("+", fact) for pattern in patterns for fact in filled_in(pattern, now))
    return [*dict.fromkeys([*found, *fitting, *filled])]


def filled_in(pattern: Pattern, now: Materialisation) -> Iterator[Fact]:
    """Facts that match a pattern, with values of explicit facts, column by column, where it leaves them open."""
    words = now.explicit_words(pattern.relation)[: SETTINGS.rows_compared]
    columns = zip(*Relation.of(now.schema(pattern.relation), now.dictionary, words), strict=True)
    open_to = [*map(dict.fromkeys, columns)] or [{}] * len(pattern.terms)
    each = (known if isinstance(term, Free) else [term] for term, known in zip(pattern.terms, open_to, strict=True))
    some = islice(product(*each), SETTINGS.facts_examined)  # before they are looked at: few may match
    return (Fact(pattern.relation, values) for values in some if pattern.fits(values))


def deleted_lately(missing: Sequence[Fact], now: Materialisation, past: Past) -> list[Element]:
    """Explicit facts that recent epochs deleted and that missing facts may depend on, the latest first."""
    program, since = now.program.checked, max(past.oldest, now.epoch - SETTINGS.epochs_of_candidates)
    needed = needed_for(program, [fact.relation for fact in missing]) & program.relations.keys()
    found: dict[Element, None] = {}
    for update in reversed(past.updates(since, now.epoch)):
        for name in needed & update.deleted.keys():
            words = np.asarray(update.deleted[name])[: SETTINGS.facts_examined]
            gone = Relation.of(now.schema(name), now.dictionary, words[~now.backend.is_explicit(name, words)])
            found.update({Element("+", Fact(name, values)): None for values in gone})
    return list(islice(found, SETTINGS.facts_examined))


@dataclass
class Candidates:
    """The candidates for missing facts that the user leaves open. `given`: those that are given, if any: then nothing
    else is deleted. `must_stay`: whether a fact must not be changed."""

    missing: Sequence[Fact]
    now: Materialisation
    answerers: Answerers
    likely: Likely
    past: Past
    must_stay: Callable[[Fact | str], bool]
    given: Sequence[Element] | None = None
    worked: tuple[tuple[str, ...], list[str]] | None = None
    """See `RepairSearch.filled`."""

    @cached_property
    def lately(self) -> list[Element]:
        """What recent epochs deleted."""
        return deleted_lately(self.missing, self.now, self.past)

    @cached_property
    def _nearest(self) -> tuple[list[Element], list[Opening]]:
        return candidates_by_why_not(self.missing, self.now, self.answerers.explanations)

    @cached_property
    def plain(self) -> list[Element]:
        """Those of the present state that resemble its facts."""
        return [one for one in self._nearest[0] if self._is_plain(one)][: SETTINGS.likeliest_candidates]

    def _is_plain(self, one: Element) -> bool:
        return one.sign == "-" or (isinstance(one.fact, Fact) and self.likely.is_one(one.fact))

    @property
    def related(self) -> list[Element]:
        """To the missing facts, by why-not, the likeliest first."""
        return self._related[0]

    @property
    def openings(self) -> list[Opening]:
        """What derivations lack with values to be chosen: first what needs the fewest facts in all, and the fewest
        values that the question does not name."""
        named = {value for fact in self.missing for value in fact.values}

        def rank(one: Opening) -> tuple[int, int]:
            return one.needed, sum(value not in named for fact in one.examples for value in fact.values)

        return sorted(dict.fromkeys(self._related[1]), key=rank)

    @property
    def seconds(self) -> float:
        """The time that a search may take unless the user says otherwise."""
        return self._related[2]

    @cached_property
    def _related(self) -> tuple[list[Element], list[Opening], float]:
        """Asks why not, in the present state; then in states where all that was found is inserted, where it is deleted,
        where both is done, and at last also all that was deleted lately is inserted: only there rules lack further
        facts, or negate them."""
        now, offered, (first, openings) = self.now, _facts_of(self.lately), self._nearest
        found = dict.fromkeys([*(self.given or ()), *first])
        sandbox = Sandbox(now.epochs, (), seconds_a_trial=SETTINGS.search_seconds)
        none = dict[Fact, None]()
        rounds = [*[("+", none)] * SETTINGS.rounds_of_why_not, ("-", none), ("+-", none), ("+", offered)]
        asked = [(none, none)]
        # Of merged relations, only what is evaluated anew can be explained.
        for signs, others in [] if now.backend.program.merged else rounds:
            free = [one for one in found if one.sign in signs and not self.must_stay(one.fact)]
            deleted = _facts_of(e for e in free if e.sign == "-" and (self.given is None or e in self.given))
            new = _facts_of(one for one in free if one.sign == "+")
            inserted = others | {fact: None for fact in new if not self.likely.is_below(fact)}
            if (deleted, inserted) in asked:
                continue
            asked.append((deleted, inserted))
            gone, come = (words_by_relation(words_of(one, now) for one in side) for side in (deleted, inserted))
            explainer = self.answerers.in_a_trial()
            try:
                with sandbox.tried(Update(gone, come)):
                    there, open_there = candidates_by_why_not(self.missing, now, explainer.now(), others)
            except NoState:
                continue
            found.update({one: None for one in there if one.fact not in (deleted if one.sign == "+" else inserted)})
            if not deleted:  # else what is there would be said not to be
                openings = [*openings, *open_there]
        again = [element for element in self.lately if element in found][: SETTINGS.likeliest_candidates // 2]
        rest = sorted(found, key=lambda one: not self._is_plain(one))
        seconds = max(SETTINGS.search_seconds, SETTINGS.search_trials * (sandbox.seconds.trials or LEAST_SECONDS))
        return list(dict.fromkeys([*again, *rest])), openings, min(seconds, TIME_LIMIT)


def _facts_of(elements: Iterable[Element]) -> dict[Fact, None]:
    return {element.fact: None for element in elements if isinstance(element.fact, Fact)}


def candidates_by_why_not(
    missing: Sequence[Fact], now: Materialisation, known: Explanations, offered: Collection[Fact] = ()
) -> tuple[list[Element], list[Opening]]:
    """The explicit facts that the nearest failing derivations lack, at any depth, those that block them, and those of
    the `offered` that derivations use; and what derivations lack with columns left open."""
    found: dict[Element, None] = {}
    openings: list[Opening] = []
    asked: set[Fact | Pattern] = set()
    facts, patterns, program = deque(missing), deque[Pattern](), now.program.checked
    derived, reading = {rule.head.relation for rule in program.rules}, Reading(now.backend, now.dictionary)
    while (facts or patterns) and len(asked) < SETTINGS.facts_examined:
        one = facts.popleft() if facts else patterns.popleft()
        if one in asked:
            continue
        asked.add(one)
        if isinstance(one, Pattern):
            absence: Absence = known.pattern(one, "", SETTINGS.derivations_examined, None, None)
        elif reading.is_present(one.relation, one.values):
            leaves = known.leaves(one, SETTINGS.leaves_examined)
            found.update({Element("+", leaf): None for leaf in leaves if leaf in offered})
            continue
        else:
            if program.is_given(one.relation):  # a fact that only rules derive is not mended by asserting it
                found[Element("+", one)] = None
            if one.relation not in derived:
                continue
            for better in _better(one, reading):
                found.update({Element("-", leaf): None for leaf in known.leaves(better, SETTINGS.leaves_examined)})
            absence = known.absence(one, SETTINGS.derivations_examined)
        if len(openings) < SETTINGS.derivations_examined:
            each = enumerate(absence.instantiations)
            openings += filter(None, (_opening(one, program, not number) for number, one in each))
        for kind, other in _in_the_way(absence, now):
            if isinstance(other, Pattern):
                if other.relation in derived:
                    patterns.append(other)
                elif kind == "aggregate":
                    some = islice(filled_in(other, now), SETTINGS.likeliest_candidates)
                    found.update({Element("+", fact): None for fact in some})
            elif kind == "atom":
                facts.append(other)
            elif other not in asked:
                asked.add(other)
                found.update({Element("-", leaf): None for leaf in known.leaves(other, SETTINGS.leaves_examined)})
        if offered:
            literals = (literal for each in absence.instantiations for literal in each.literals)
            facts += [one.fact for one in literals if one.fact and (one.kind, one.status) == ("atom", "holds")]
    return list(found), openings


def _better(missing: Fact, reading: Reading) -> Iterator[Fact]:
    """The fact with a better value for the key of a missing one, of a relation that keeps the best."""
    if (ranked := reading.ranked.get(missing.relation)) is not None:
        column = ranked.columns[missing.relation]
        value: Any = missing.values[column]
        for values in reading.select(missing.relation, (*missing.values[:column], None, *missing.values[column + 1 :])):
            if (values[column] < value) == ranked.is_least:
                yield Fact(missing.relation, values)


class Likely:
    """Whether a fact to be inserted resembles the present ones: no number is negative, or more than twice those of its
    column, where these are not, and no text is new to its column and to all columns that share texts with it."""

    def __init__(self, relation: Callable[[str], Relation], names: Iterable[str]) -> None:
        self._relation = relation
        self._names = names
        self._columns: dict[str, list[tuple[Value, ...]]] = {}

    def is_one(self, fact: Fact) -> bool:
        return all(map(self._fits, self._columns_of(fact.relation), fact.values))

    def is_below(self, fact: Fact) -> bool:
        """Whether a number is negative in a column where none is: with steps below zero, rules may have no end."""

        def is_negative(value: Value) -> bool:
            return isinstance(value, int | float) and value < 0

        columns = zip(fact.values, self._columns_of(fact.relation), strict=False)
        return any(is_negative(value) and not any(map(is_negative, column)) for value, column in columns)

    def new_values(self, fact: Fact) -> int:
        """How many values no fact has in their columns, as far as is known."""
        columns = self._columns_of(fact.relation) or [()] * len(fact.values)
        known = zip(fact.values, columns, strict=True)
        return sum(value not in column and len(column) < SETTINGS.rows_compared for value, column in known)

    def _columns_of(self, name: str) -> list[tuple[Value, ...]]:
        known = self._columns.get(name)
        if known is None:
            rows = islice(self._relation(name), SETTINGS.rows_compared)
            known = self._columns[name] = list(zip(*rows, strict=True))
        return known

    def _fits(self, column: tuple[Value, ...], value: Value) -> bool:
        """Whether a value resembles those of a column."""
        numbers = [known for known in column if isinstance(known, int | float)]
        if len(numbers) == len(column):
            return isinstance(value, int | float) and 2 * min(*numbers, 0) <= value <= 2 * max(*numbers, 0)
        texts = {known for known in column if isinstance(known, str)}
        if len(column) == SETTINGS.rows_compared or not texts or value in texts:
            return True
        others = (other for name in self._names for other in self._columns_of(name))
        return any(value in other and not texts.isdisjoint(other) for other in others)


def _in_the_way(absence: Absence, now: Materialisation) -> Iterator[tuple[str, Fact | Pattern]]:
    """The facts that a derivation lacks, as patterns where values are open, and those that match what it negates; where
    a comparison fails, what its aggregates range over, facts that are there and the pattern of others."""
    for instantiation in absence.instantiations:
        ranged = False
        for literal, written in zip_longest(instantiation.literals, instantiation.rule.body):
            if literal.status != "fails":
                continue
            if literal.fact is not None and literal.kind in ("atom", "negation"):
                yield literal.kind, literal.fact
            elif isinstance(written, Atom):
                yield literal.kind, instantiation.pattern(written)
            elif literal.kind == "negation":
                pattern = parse_pattern(literal.text.removeprefix("!"), now.program.checked)
                for fact in islice(fitting(pattern, now), SETTINGS.facts_examined):
                    yield literal.kind, fact
            else:
                ranged |= literal.kind in ("constraint", "aggregate", "head")
        for atom in _ranged_over(instantiation.rule) if ranged else ():
            pattern = instantiation.pattern(atom)
            for fact in islice(fitting(pattern, now), SETTINGS.derivations_examined):
                yield "aggregate", fact
            yield "aggregate", pattern


@dataclass(frozen=True)
class Opening:
    """The given atoms of a derivation that fail for every value of their open columns, as texts, and a fact that fits
    each. `needed`: how many facts the derivation is from. `is_nearest`: it is the nearest one of its fact."""

    texts: tuple[str, ...]
    examples: tuple[Fact, ...]
    needed: int
    is_nearest: bool


def _opening(instantiation: Instantiation, program: CheckedProgram, is_nearest: bool) -> Opening | None:
    known, found = dict(instantiation.bindings), list[tuple[str, Fact]]()
    for atom, state in zip(instantiation.rule.body, instantiation.literals, strict=False):
        if not (isinstance(atom, Atom) and state.status == "fails" and state.fact is None):
            continue
        values = []
        for term, attribute in zip(atom.arguments, program.relations[atom.relation].attributes, strict=True):
            if isinstance(term, Constant):
                values.append(term.value)
            elif not isinstance(term, Apply) and attribute.base in _EXAMPLES:
                value = _EXAMPLES[attribute.base]
                values.append(known.setdefault(term.name, value) if isinstance(term, Variable) else value)
        if len(values) == len(atom.arguments) and program.is_given(atom.relation):
            found.append((state.text, Fact(atom.relation, tuple(values))))
    needed = sum(isinstance(literal, Atom) for literal in instantiation.rule.body)
    texts, examples = tuple(text for text, _ in found), tuple(fact for _, fact in found)
    return Opening(texts, examples, needed, is_nearest) if found else None


_EXAMPLES: Mapping[Base, Value] = {Base.SYMBOL: "x", Base.NUMBER: 1, Base.UNSIGNED: 1, Base.FLOAT: 1.0}


def _ranged_over(rule: Rule) -> Iterator[Atom]:
    """The atoms within the aggregates of a rule."""
    bodies = (body for literal in rule.body if isinstance(literal, Aggregation) for body in literal.bodies)
    return (inner for body in bodies for inner in body if isinstance(inner, Atom))


def made_columns(program: CheckedProgram, relation: str) -> list[bool]:
    """Whether the values of each column of a relation may be computed: they need not occur in facts."""
    made = [False] * program.relations[relation].arity
    for rule in program.rules:
        if rule.head.relation == relation:
            atoms = (one for one in rule.body if isinstance(one, Atom))
            read = {term.name for atom in atoms for term in atom.arguments if isinstance(term, Variable)}
            taken = (isinstance(term, Variable) and term.name in read for term in rule.head.arguments)
            made = [before or not is_taken for before, is_taken in zip(made, taken, strict=True)]
    return made


# --- patterns --------------------------------------------------------------------------------------------------------


def faults_named(unwanted: Any, missing: Any, now: Materialisation) -> tuple[Any, list[Pattern]]:
    """The unwanted facts, each pattern such as `path(1, _)` replaced by the facts that match it, and these patterns.
    Raises ElastalogError if nothing does, or if a missing fact is a pattern, which leaves open which fact is meant."""
    program, found, patterns = now.program.checked, list[Any](), list[Pattern]()
    for one in named(missing) or ():
        if isinstance(one, str):
            require_fact(one, program)
    warn_of_named(facts_in("unwanted facts are given in a list", unwanted), now)
    warn_of_named(facts_in(MISSING, missing), now)
    each = named(unwanted)
    for one in each or ():
        pattern = parse_selection(one, program) if isinstance(one, str) else None
        if pattern is None or pattern.is_fact:
            found.append(one)
            continue
        if not (facts := list(fitting(pattern, now))):
            raise error("E1001.pattern", pattern=one, epoch=now.epoch)
        found += facts
        patterns.append(pattern)
    return unwanted if each is None else found, patterns


def warn_of_named(written: Iterable[Any], now: Materialisation) -> None:
    """Warns of texts that no fact has, and of bare names that may be meant as texts, in facts, patterns and elements
    given by the user."""
    for one in written:
        _, element = signed(one)
        if isinstance(element, str) and ":-" not in element:
            warn_of_terms(parse_selection(element, now.program.checked).terms, now.dictionary)
        elif isinstance(element, tuple):
            warn_of_terms(now.fact(element).values, now.dictionary)


def named(written: Any) -> Iterable[Any] | None:
    """The names of facts and patterns given by the user; None if they cannot contain any."""
    if isinstance(written, str):
        return [written]
    is_several = isinstance(written, tuple) and all(isinstance(one, str) for one in written)
    return written if is_several or isinstance(written, list | set) else None


def fitting(pattern: Pattern, now: Materialisation) -> Iterator[Fact]:
    """The facts that match a pattern, within the limits of memory."""
    for fact in Reading(now.backend, now.dictionary).fitting(pattern):
        quota.take(FACT_SIZE)
        yield fact
