"""Candidates for repairs: changes of explicit facts that may bring about missing facts.

They are given by the user, undo recent deletions, or are found by asking why not: in the present state, and in states
where candidates found so far are made, because only there rules lack further facts, or negate them.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import islice, product, zip_longest
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from elastalog.analysis.pattern import Free, Pattern, parse_selection
from elastalog.analysis.program import Aggregation, Atom, Base, Negation
from elastalog.analysis.stratify import needed_for
from elastalog.analysis.values import sort_key
from elastalog.debugging.answers import Element
from elastalog.debugging.questions import signed
from elastalog.debugging.sandbox import NoState, Sandbox, update_of
from elastalog.diagnostics.arguments import listed
from elastalog.provenance.fact import Fact
from elastalog.provenance.reading import Reading, WordFact
from elastalog.relations.facts import Relation
from elastalog.session.openings import Opening, opening_of
from elastalog.settings import SETTINGS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from elastalog.analysis.program import Rule, Value
    from elastalog.debugging.history import Past
    from elastalog.provenance.absence import Absence, Instantiation
    from elastalog.provenance.explain import Explanations
    from elastalog.session.materialisation import Materialisation
    from elastalog.session.questions import Answerers

_ADVICE = "give facts in a list, those to delete as `-edge(1, 2)`; or rows by relation"


def words_of(fact: Fact, now: Materialisation) -> WordFact:
    """A fact as the backend holds it. New texts get words."""
    return fact.relation, tuple(now.encode(fact.relation, [fact.values])[0].tolist())


# --- given by the user -----------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """Candidates that the user gives: facts, and `patterns` of facts to be inserted, as they are written."""

    candidates: list[Element]
    patterns: dict[str, Pattern]

    @staticmethod
    def read(given: Any, now: Materialisation) -> Given:
        """Rows by relation, or facts, with a minus those to delete. A pattern with a minus stands for all explicit
        facts that match."""
        found = Given([], {})
        if isinstance(given, Mapping):
            for name in given:
                rows = Relation.of(now.schema(name), now.dictionary, now.encode(name, given[name]))
                found.candidates.extend(Element("+", Fact(name, values)) for values in rows)
            return found
        for one in listed("candidates are facts", given, _ADVICE):
            sign, written = signed(one)
            pattern = parse_selection(written, now.program.checked) if isinstance(written, str) else None
            if pattern is None or pattern.is_fact:
                found.candidates.append(Element("-" if sign == "-" else "+", now.fact(written)))
            elif sign == "-":
                words = now.explicit_words(pattern.relation)
                explicit = Relation.of(now.schema(pattern.relation), now.dictionary, words)
                fits = (values for values in explicit if pattern.fits(values))
                found.candidates.extend(Element("-", Fact(pattern.relation, values)) for values in fits)
            else:
                found.patterns[written.strip()] = pattern
        return found


_TYPES: Final = {Base.SYMBOL: str, Base.NUMBER: int, Base.FLOAT: float}
"""What values of some columns are in Python, so that those of one column may be tried in another."""


class Combinations(NamedTuple):
    """Facts that match a pattern. `are_all`: there are no others with the values that are tried."""

    facts: list[Fact]
    are_all: bool


def combinations(pattern: Pattern, now: Materialisation, most: int, first: Collection[Value] = ()) -> Combinations:
    """At most `most` facts that match a pattern, with values in its open columns that explicit facts have there, or
    that are among the `first`: these, and then the nearest of each column, before others."""
    words, schema = now.explicit_words(pattern.relation), now.schema(pattern.relation)
    rows = Relation.of(schema, now.dictionary, words[: SETTINGS.rows_compared])
    columns = list(zip(*rows, strict=True)) or [()] * schema.arity
    variables = [
        term if isinstance(term, Free) and term.name is not None else place for place, term in enumerate(pattern.terms)
    ]
    choices: dict[object, dict[Any, Value]] = {}
    for variable, term, column, declared in zip(variables, pattern.terms, columns, schema.columns, strict=True):
        if isinstance(term, Free):
            fitting = (value for value in first if type(value) is _TYPES.get(declared.base))
            values = {sort_key(value): value for value in (*column, *fitting)}
            known = choices.setdefault(variable, values)
            choices[variable] = {key: value for key, value in known.items() if key in values}
    values_of = [sorted(known.values(), key=lambda value: value not in first) for known in choices.values()]
    longest, nearest = max(map(len, values_of), default=0), 1
    while nearest < longest and prod(min(nearest, len(values)) for values in values_of) < most:
        nearest += 1
    found = []
    for chosen in islice(product(*(values[:nearest] for values in values_of)), most):
        value_of: dict[object, Any] = dict(zip(choices, chosen, strict=True))
        terms = zip(variables, pattern.terms, strict=True)
        found.append(Fact(pattern.relation, tuple([value_of.get(name, term) for name, term in terms])))
    are_all = len(found) == prod(map(len, values_of)) and len(words) <= SETTINGS.rows_compared
    return Combinations(found, are_all)


# --- deleted lately --------------------------------------------------------------------------------------------------


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


# --- found by asking why not -----------------------------------------------------------------------------------------


class WhyNotSearch:
    """Asks why not in one state, from missing facts down through what their nearest failing derivations lack.
    `changes`: the explicit facts that these lack, those that block them, and those of the `offered` that derivations
    use; `openings`: what they lack with columns left open."""

    def __init__(
        self, missing: Sequence[Fact], now: Materialisation, known: Explanations, offered: Collection[Fact] = ()
    ) -> None:
        self._now = now
        self._known = known
        self._offered = offered
        self._program, self._reading = now.program.checked, Reading(now.backend, now.dictionary)
        self._facts, self._patterns = deque(missing), deque[Pattern]()
        self._asked: set[Fact | Pattern] = set()
        self.changes: dict[Element, None] = {}
        self.openings: list[Opening] = []
        while (self._facts or self._patterns) and len(self._asked) < SETTINGS.facts_examined:
            one = self._facts.popleft() if self._facts else self._patterns.popleft()
            if one not in self._asked:
                self._asked.add(one)
                self._ask(one)

    def _ask(self, one: Fact | Pattern) -> None:
        absence = self._why_not(one)
        if absence is None:
            return
        if len(self.openings) < SETTINGS.derivations_examined:
            found = (opening_of(each, self._program, not place) for place, each in enumerate(absence.instantiations))
            self.openings += filter(None, found)
        for each in absence.instantiations:
            self._follow(each)
        if self._offered:
            literals = (literal for each in absence.instantiations for literal in each.literals)
            self._facts += [one.fact for one in literals if one.fact and (one.kind, one.status) == ("atom", "holds")]

    def _why_not(self, one: Fact | Pattern) -> Absence | None:
        """Why a fact is absent, or no further one fits a pattern; None of a fact that holds, or that no rule derives.
        Its insertion is a change, too, and so is the deletion of what keeps a better value there."""
        if isinstance(one, Pattern):
            return self._known.pattern(one, "", SETTINGS.derivations_examined)
        if self._reading.is_present(one.relation, one.values):
            self._insert(leaf for leaf in self._leaves(one) if leaf in self._offered)
            return None
        if self._program.is_given(one.relation):  # a fact that only rules derive is not mended by asserting it
            self._insert([one])
        if one.relation not in self._reading.derived:
            return None
        for better in _better(one, self._reading):
            self._remove(better)
        return self._known.absence(one, SETTINGS.derivations_examined)

    def _follow(self, instantiation: Instantiation) -> None:
        """Goes on to what a derivation lacks, and takes away what it negates; where a comparison fails, its aggregates
        may need more facts, or fewer."""
        compares = False
        for literal, written in zip_longest(instantiation.literals, instantiation.rule.body):
            if literal.status != "fails":
                continue
            match written:
                case Atom() if literal.fact is not None:
                    self._facts.append(literal.fact)
                case Atom():
                    self._go_on(instantiation.pattern(written))
                case Negation() if literal.fact is not None:
                    self._remove(literal.fact)
                case Negation(atom=atom):
                    for fact in islice(self._reading.fitting(instantiation.pattern(atom)), SETTINGS.facts_examined):
                        self._remove(fact)
                case _:
                    compares = True
        for atom in _ranged_over(instantiation.rule) if compares else ():
            pattern = instantiation.pattern(atom)
            for fact in islice(self._reading.fitting(pattern), SETTINGS.derivations_examined):
                self._remove(fact)
            if not self._go_on(pattern):
                self._insert(combinations(pattern, self._now, SETTINGS.likeliest_candidates).facts)

    def _go_on(self, pattern: Pattern) -> bool:
        """Asks about a pattern later, if it is of a relation with rules."""
        is_derived = pattern.relation in self._reading.derived
        self._patterns.extend([pattern] * is_derived)
        return is_derived

    def _insert(self, facts: Iterable[Fact]) -> None:
        self.changes.update({Element("+", fact): None for fact in facts})

    def _remove(self, fact: Fact) -> None:
        """Takes the deletion of what a fact rests on as a change."""
        if fact not in self._asked:
            self._asked.add(fact)
            self.changes.update({Element("-", leaf): None for leaf in self._leaves(fact)})

    def _leaves(self, fact: Fact) -> Iterator[Fact]:
        return self._known.leaves(fact, SETTINGS.leaves_examined)


def _better(missing: Fact, reading: Reading) -> Iterator[Fact]:
    """The fact with a better value for the key of a missing one, of a relation that keeps the best."""
    if (ranked := reading.ranked.get(missing.relation)) is not None:
        column = ranked.columns[missing.relation]
        value: Any = missing.values[column]
        for values in reading.select(missing.relation, (*missing.values[:column], None, *missing.values[column + 1 :])):
            if (values[column] < value) == ranked.is_least:
                yield Fact(missing.relation, values)


def _ranged_over(rule: Rule) -> Iterator[Atom]:
    """The atoms within the aggregates of a rule."""
    bodies = (body for literal in rule.body if isinstance(literal, Aggregation) for body in literal.bodies)
    return (inner for body in bodies for inner in body if isinstance(inner, Atom))


# --- all of them -----------------------------------------------------------------------------------------------------


class Related(NamedTuple):
    """What why-not finds in all states. `seconds`: the time that these took."""

    candidates: list[Element]
    openings: list[Opening]
    seconds: float


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

    @cached_property
    def lately(self) -> list[Element]:
        """What recent epochs deleted."""
        return deleted_lately(self.missing, self.now, self.past)

    @cached_property
    def _nearest(self) -> WhyNotSearch:
        return WhyNotSearch(self.missing, self.now, self.answerers.explanations)

    @cached_property
    def plain(self) -> list[Element]:
        """Those of the present state that resemble its facts."""
        return self.likeliest_first(filter(self._is_plain, self._nearest.changes))[: SETTINGS.likeliest_candidates]

    def likeliest_first(self, found: Iterable[Element]) -> list[Element]:
        """What resembles present facts before the rest; of it what says most of what is missing, with values that are
        known in their columns."""
        return sorted(found, key=lambda one: (not self._is_plain(one), self._distance(one), self._new_values(one)))

    def _new_values(self, one: Element) -> int:
        return self.likely.new_values(one.fact) if one.sign == "+" and isinstance(one.fact, Fact) else 0

    def _is_plain(self, one: Element) -> bool:
        return one.sign == "-" or (isinstance(one.fact, Fact) and self.likely.is_one(one.fact))

    @cached_property
    def _named(self) -> Counter[Value]:
        """The values that missing facts have; what they are about, their first one, counts twice."""
        return Counter(value for fact in self.missing for value in (*fact.values[:1], *{*fact.values}))

    def _distance(self, one: Element) -> int:
        """The less, the more a fact says of what is missing: `member("dan", "dev")` of `may("dan", "push")`, and not
        `grants("qa", "push")`, which is about all of a group."""
        return -sum(self._named[value] for value in {*one.fact.values}) if isinstance(one.fact, Fact) else 0

    @cached_property
    def related(self) -> Related:
        """What why-not finds, in the present state and in others. The likeliest candidates come first; openings in the
        order of how many facts they need in all, and of how many values that the question does not name."""
        found = dict.fromkeys([*(self.given or ()), *self._nearest.changes])
        openings = dict.fromkeys(self._nearest.openings)
        sandbox = Sandbox(self.now.epochs, (), seconds_a_trial=SETTINGS.search_seconds)
        none = dict[Fact, None]()
        asked = [(none, none)]
        # Of merged relations, only what is evaluated anew can be explained.
        for signs, offered in () if self.now.backend.program.merged else self._states():
            deleted, inserted = self._changed(signs, offered, found)
            if (deleted, inserted) in asked:
                continue
            asked.append((deleted, inserted))
            there = self._why_not_in(deleted, inserted, sandbox, offered)
            if there is not None:
                known = {"+": deleted, "-": inserted}
                found.update({one: None for one in there.changes if one.fact not in known[one.sign]})
                if not deleted:  # else what is there would be said not to be
                    openings.update(dict.fromkeys(there.openings))
        again = [one for one in self.lately if one in found][: SETTINGS.likeliest_candidates // 2]
        rest = self.likeliest_first(found)
        named = {value for fact in self.missing for value in fact.values}

        def rank(one: Opening) -> tuple[int, int]:
            return one.needed, sum(value not in named for fact in one.examples for value in fact.values)

        return Related([*dict.fromkeys([*again, *rest])], sorted(openings, key=rank), sandbox.seconds.trials)

    def _states(self) -> Iterator[tuple[str, dict[Fact, None]]]:
        """Where it is asked, one after the other: all that was found is inserted, several times since each goes a step
        further; deleted; both; and at last all that was deleted lately is inserted, too."""
        none = dict[Fact, None]()
        for signs in ("+",) * SETTINGS.rounds_of_why_not + ("-", "+-"):
            yield signs, none
        yield "+", _facts_of(self.lately)

    def _changed(
        self, signs: str, offered: dict[Fact, None], found: Iterable[Element]
    ) -> tuple[dict[Fact, None], dict[Fact, None]]:
        """What is deleted and inserted in a state."""
        free = [one for one in found if one.sign in signs and not self.must_stay(one.fact)]
        deleted = _facts_of(one for one in free if one.sign == "-" and (self.given is None or one in self.given))
        new = _facts_of(one for one in free if one.sign == "+")
        return deleted, offered | {fact: None for fact in new if not self.likely.is_below(fact)}

    def _why_not_in(
        self, deleted: Iterable[Fact], inserted: Iterable[Fact], sandbox: Sandbox, offered: Collection[Fact]
    ) -> WhyNotSearch | None:
        """What is found in a state; None if it has no result."""
        explainer = self.answerers.in_a_trial()
        update = update_of(*((words_of(fact, self.now) for fact in side) for side in (deleted, inserted)))
        try:
            with sandbox.tried(update):
                return WhyNotSearch(self.missing, self.now, explainer.now(), offered)
        except NoState:
            return None


def _facts_of(elements: Iterable[Element]) -> dict[Fact, None]:
    return {element.fact: None for element in elements if isinstance(element.fact, Fact)}


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
