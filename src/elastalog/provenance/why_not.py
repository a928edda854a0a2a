"""Finds the nearest failing derivations of an absent fact, or of any fact that fits a pattern and does not hold.

For every rule whose head fits, the body is joined as far as possible: each atom either takes a fact that fits, or is
given up as failing. Searches with one failing literal come first, then two, and so on, until one finds something.
Variables get their values from the facts that other atoms take; the rest stay free.

For a pattern only some arguments of the head have values: the body gives the others values, or leaves them open where
no fact fits an atom. Derivations of facts that hold are no answers. Where facts fit an atom, but none is of use, it
gets the values of a fact that rules come near to deriving.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeAlias

from elastalog.analysis.listing import show_value
from elastalog.analysis.pattern import Free, Pattern
from elastalog.analysis.program import (
    Aggregation,
    Apply,
    Atom,
    Comparison,
    Constant,
    Expression,
    Literal,
    Negation,
    Rule,
    Value,
    Variable,
    Wildcard,
    names_of,
)
from elastalog.analysis.values import NIL
from elastalog.analysis.variables import is_wildcard_name
from elastalog.diagnostics.diagnostic import error
from elastalog.planning.solving import solve_equation
from elastalog.provenance.absence import Absence, AbsenceSource, Instantiation, LiteralStatus, PatternAbsence, Status
from elastalog.provenance.fact import Bindings, Fact
from elastalog.provenance.ground import NoValue, Ordinal, Unbound, compare, holds, no_ordinal, take_apart, value_of
from elastalog.provenance.joins import (
    LookUp,
    aggregate_value,
    extended,
    ground_values,
    is_matched,
    match_atom,
    matches,
    needed_by,
    pattern_of,
    show,
)
from elastalog.provenance.joins import Pattern as LookedFor
from elastalog.settings import SETTINGS
from elastalog.syntax.tree import nodes_of

HeldLately: TypeAlias = Callable[[str, LookedFor], bool]
"""Whether a fact with the given values held not long ago; None fits any."""


class _Spent(Exception):
    """The search has used up its look-ups."""


@dataclass(slots=True)
class Search:
    """The search for one rule that may derive what fits a pattern. `literals`: the body and the equations of computed
    head arguments, numbered by position."""

    asked: WhyNot
    rule: Rule
    pattern: Pattern
    literals: list[Literal]
    found: dict[tuple[str, ...], Instantiation] = field(default_factory=dict)
    nearest: dict[Pattern, list[Pattern]] = field(default_factory=dict)
    """What rules come near to deriving that fits a pattern, values as far as they are known."""
    occurring: dict[tuple[str, int, Value], bool] = field(default_factory=dict)
    equally_near: Counter[tuple[object, ...]] = field(default_factory=Counter)
    """How many are found of each rank: of those that only differ in their values, no more than `most` are kept."""
    plausible: int = 0
    """How many of those found have no implausible values: others are only shown where there are too few of these."""
    lookups: int = 0
    is_cut: bool = False
    needed: list[set[str]] = field(init=False)
    """The variables that each literal needs."""
    wanted: Atom = field(init=False)
    """The head to derive."""
    most: int = field(init=False)
    look_up: LookUp = field(init=False)
    ordinal: Ordinal = field(init=False)

    def __post_init__(self) -> None:
        self.needed = list(map(needed_by, self.literals))
        self.wanted = _wanted(self.rule.head, self.pattern)
        self.most = self.asked.limit * SETTINGS.ranked_a_shown
        self.look_up, self.ordinal = self.asked.look_up, self.asked.ordinal

    def spend(self) -> None:
        self.lookups += 1
        if self.lookups > SETTINGS.lookups_of_a_rule:
            raise _Spent

    def run(self, bindings: Bindings, least: int) -> None:
        """Looks for instantiations with ever more failing literals, `least` at first, until there are some."""
        try:
            for failures in range(least, len(self.literals) + 1):
                self.extend(dict(bindings), {}, failures)
                if self.found:
                    return
        except _Spent:
            self.is_cut = True

    def extend(self, bindings: dict[str, Value], decided: dict[int, Status], failures: int) -> None:
        """Decides the remaining literals so that exactly `failures` of them fail in all."""
        if self.plausible >= self.most:
            self.is_cut = True
            return
        bindings, decided = self.settle(bindings, dict(decided))
        failed = sum(status == "fails" for status in decided.values())
        if failed > failures:
            return
        chosen = self.next_open(bindings, decided)
        if chosen is None:
            self.keep(bindings, decided, failures)
            return
        literal, number = self.literals[chosen], -1
        self.spend()
        for number, found in enumerate(extended(literal, bindings, self.look_up, self.ordinal)):
            if number == SETTINGS.facts_of_an_atom:
                self.is_cut = True
                break
            self.extend(dict(found), {**decided, chosen: "holds"}, failures)
        # That a variable has no value of its range fails only where there is none.
        if failed < failures and (isinstance(literal, Atom) or number < 0):
            self.extend(bindings, {**decided, chosen: "fails"}, failures)

    def next_open(self, bindings: Bindings, decided: Mapping[int, Status]) -> int | None:
        """The atom to take a fact for; then a range to take the value of a variable from that nothing else binds."""
        left = [(i, literal) for i, literal in enumerate(self.literals) if i not in decided]
        atoms = [
            (sum(n not in bindings for n in self.needed[i]), i) for i, literal in left if isinstance(literal, Atom)
        ]
        return min(atoms)[1] if atoms else next((i for i, one in left if _is_generated(one, bindings)), None)

    def settle(
        self, bindings: dict[str, Value], decided: dict[int, Status]
    ) -> tuple[dict[str, Value], dict[int, Status]]:
        """Evaluates everything that can be: equations, and literals all of whose variables have values."""
        grows = True
        while grows:
            grows = False
            unbound = [
                literal
                for literal, needed in zip(self.literals, self.needed, strict=True)
                if isinstance(literal, Comparison) and not needed <= bindings.keys()
            ]
            bindings = define(unbound, bindings, self.ordinal) if unbound else bindings
            for number, literal in enumerate(self.literals):
                if number in decided:
                    continue
                if self.needed[number] <= bindings.keys():
                    decided[number] = "holds" if self.evaluate(literal, bindings) else "fails"
                    grows = True
                elif isinstance(literal, Comparison) and self.has_no_value(literal, bindings):
                    decided[number] = "fails"
        return bindings, decided

    def has_no_value(self, equation: Comparison, bindings: dict[str, Value]) -> bool:
        """Whether what would give a variable its value has none, as a function of an invalid date."""
        defined = _definition(equation, bindings)
        try:
            return defined is not None and value_of(defined[1], bindings, self.ordinal) is None
        except Unbound:
            return False
        except NoValue:
            return True

    def evaluate(self, literal: Literal, bindings: dict[str, Value]) -> bool:
        """Whether a ground literal holds; an aggregate gives its result variable a value."""
        if isinstance(literal, Comparison):
            return holds(literal, bindings, self.ordinal)
        self.spend()
        found = next(extended(literal, bindings, self.look_up, self.ordinal), None)
        bindings.update(found or {})
        return found is not None

    def keep(self, bindings: dict[str, Value], decided: dict[int, Status], failures: int) -> None:
        if sum(status == "fails" for status in decided.values()) != failures:
            return
        if not self.pattern.is_fact and not self.is_absent(bindings):
            return
        for number, status in decided.items():
            literal = self.literals[number]
            if status == "fails" and isinstance(literal, Atom) and not self.needed[number] <= bindings.keys():
                self.spend()
                if next(matches(literal, bindings, self.look_up, self.ordinal), None) is not None:
                    # It does not fail for all values, so taking a fact that fits is nearer, or one that nearly holds.
                    kept = {n: one for n, one in decided.items() if self.needed[n] <= bindings.keys()}
                    for nearer in self.near(literal, bindings):
                        self.extend(dict(nearer), kept, failures)
                    return
        drawbacks = self.drawbacks(bindings, decided)
        atoms = sum(status == "holds" and isinstance(self.literals[n], Atom) for n, status in decided.items())
        rank = drawbacks, atoms, sum(not needed <= bindings.keys() for needed in self.needed)
        if self.equally_near[rank] == self.most:
            return
        found = self.instantiation(bindings, decided, drawbacks)
        key = tuple(literal.text for literal in found.literals)
        if key not in self.found:
            self.found[key] = found
            self.equally_near[rank] += 1
            self.plausible += not found.implausible

    def near(self, atom: Atom, bindings: Bindings) -> Iterator[Bindings]:
        """Bindings with more values, those of absent facts that fit an atom and that rules come near to deriving; rules
        of relations above are not asked again."""
        above = self.asked.above | {self.wanted.relation}
        if atom.relation in above:
            return
        values = pattern_of(atom, bindings, self.ordinal)
        pattern = Pattern(atom.relation, tuple(Free(None) if value is None else value for value in values))
        if pattern not in self.nearest:
            below = replace(self.asked, rules=self.asked.rules_of(atom.relation), given={}, above=above)
            searches, _ = below.searched(pattern, 1)
            self.is_cut |= any(one.is_cut for one in searches)
            found = sorted((one for each in searches for one in each.found.values()), key=lambda one: one.rank)
            self.nearest[pattern] = [one.pattern(one.rule.head) for one in found[: self.asked.limit]]
        for one in self.nearest[pattern]:
            part, known = _known_part(atom, one)
            nearer = dict(bindings)
            if match_atom(part, known, nearer, []) and len(nearer) > len(bindings):
                yield nearer

    def is_absent(self, bindings: Bindings) -> bool:
        """Whether what would be derived does not hold yet, as far as its values are known."""
        try:
            return not is_matched(self.wanted, bindings, self.look_up, self.ordinal)
        except Unbound:
            return True

    def instantiation(
        self, bindings: Mapping[str, Value], decided: Mapping[int, Status], drawbacks: tuple[int, int, int]
    ) -> Instantiation:
        shown: list[LiteralStatus] = []
        free: dict[str, None] = {}
        for number, literal in enumerate(self.literals):
            status: Status = decided.get(number, "open")
            if status == "open" and number >= len(self.rule.body):
                continue  # what would be derived is shown, and says the same
            missing = self.needed[number] - bindings.keys()
            free.update(dict.fromkeys(name for name in missing if not is_wildcard_name(name)))
            kind = _kind(literal) if number < len(self.rule.body) else "head"
            text = show(literal, bindings)
            if status == "fails" and isinstance(literal, Aggregation):
                result = aggregate_value(literal, bindings, self.look_up, self.ordinal)
                text += " (it has no value)" if result is None else f" (it is {show_value(result)})"
            shown.append(LiteralStatus(kind, text, status, self.fact_of(literal, bindings)))
        conclusion = show(self.wanted, bindings)
        return Instantiation(self.rule, dict(bindings), tuple(shown), tuple(sorted(free)), conclusion, drawbacks)

    def drawbacks(self, bindings: Bindings, decided: Mapping[int, Status]) -> tuple[int, int, int]:
        """See `Instantiation.drawbacks`. Values that are neither those of facts nor asked about come from equations."""
        known = {None, *(bindings.get(one.name) for one in self.rule.head.arguments if isinstance(one, Variable))}
        lacking: list[tuple[Atom, LookedFor]] = []
        for number, status in decided.items():
            if isinstance(literal := self.literals[number], Atom):
                with suppress(NoValue):
                    values = pattern_of(literal, bindings, self.ordinal)
                    known.update(values if status == "holds" else ())
                    lacking += [(literal, values)] * (status == "fails")
        made = [
            (atom, place, value)
            for atom, values in lacking
            for place, (argument, value) in enumerate(zip(atom.arguments, values, strict=True))
            if value is not None and value not in known and not isinstance(argument, Constant)
        ]
        is_revived = len(lacking) == sum(status == "fails" for status in decided.values())
        is_revived &= all(self.asked.held_lately(atom.relation, values) for atom, values in lacking)
        negative = [isinstance(value, int | float) and value < 0 for _, _, value in made]
        unheard = sum(less or not self.occurs(*one) for one, less in zip(made, negative, strict=True))
        return not is_revived, unheard, sum(negative)

    def occurs(self, atom: Atom, place: int, value: Value) -> bool:
        """Whether some fact has a value in the place of an atom."""
        asked = atom.relation, place, value
        if asked not in self.occurring:
            pattern = [value if column == place else None for column in range(len(atom.arguments))]
            self.occurring[asked] = next(iter(self.look_up(atom.relation, pattern)), None) is not None
        return self.occurring[asked]

    def fact_of(self, literal: Literal, bindings: Bindings) -> Fact | None:
        atom = literal.atom if isinstance(literal, Negation) else literal
        if not isinstance(atom, Atom):
            return None
        try:
            values = ground_values(atom, bindings, self.ordinal)
        except (NoValue, Unbound):
            return None
        known = tuple(value for value in values if value is not None)
        return Fact(atom.relation, known) if len(known) == len(values) else None


def _is_generated(literal: Literal, bindings: Bindings) -> bool:
    """Whether a literal gives a variable without a value those of a range, whose ends are known."""
    match literal:
        case Comparison(operator="=", left=Variable(name=name), right=Apply(functor="range") as generator):
            return name not in bindings and all(other in bindings for other in names_of(generator))
        case _:
            return False


def _kind(literal: Literal) -> str:
    match literal:
        case Atom():
            return "atom"
        case Negation():
            return "negation"
        case Comparison():
            return "constraint"
        case Aggregation():
            return "aggregate"


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Asks rules for the nearest failing instantiations, and shows at most `limit`. `given`: values of variables fixed
    beforehand. `rules_of`: the rules of other relations. `above`: the relations whose rules are asked already."""

    rules: tuple[Rule, ...]
    look_up: LookUp
    ordinal: Ordinal
    limit: int
    given: Bindings
    source: AbsenceSource | None
    rules_of: Callable[[str], tuple[Rule, ...]] = lambda _: ()
    held_lately: HeldLately = lambda *_: False
    above: frozenset[str] = frozenset()

    def fact(self, fact: Fact, is_fixpoint: bool = True, competes: bool = False) -> Absence:
        """Why a fact is absent. A rule may derive it after all where there is no fixpoint (E0615), or where the fact
        `competes` with others and one of these has won."""
        pattern = Pattern(fact.relation, fact.values)
        shown, impossible, is_whole, more = self._nearest(pattern, least=1 if is_fixpoint and not competes else 0)
        if not competes and any(not found.failing for found in shown):
            raise error("E0615.absent", fact=fact)
        return Absence(fact, shown, impossible, is_whole, self.source, more=more)

    def pattern(self, pattern: Pattern, written: str, present: int) -> PatternAbsence:
        """Why no further fact fits a pattern. `present`: how many hold."""
        fact = Fact(pattern.relation, tuple(NIL if isinstance(term, Free) else term for term in pattern.terms))
        shown, impossible, is_whole, more = self._nearest(pattern, least=1)
        unfit = {rule.number for rule, _ in impossible}
        fitting = (rule for rule in self.rules if rule.number not in unfit)
        others = (atom.relation for rule in fitting for atom in nodes_of(Atom, rule.body))
        read = tuple(name for name in dict.fromkeys(others) if name != pattern.relation)
        return PatternAbsence(
            fact, shown, impossible, is_whole, self.source, more=more, pattern=written, present=present, read=read
        )

    def _nearest(
        self, pattern: Pattern, least: int
    ) -> tuple[tuple[Instantiation, ...], tuple[tuple[Rule, str], ...], bool, int]:
        """The instantiations that would derive a fact that fits and does not hold: one for each such fact first, and
        the best of every rule in any case. With the reasons why other rules cannot, whether nothing nearer exists, and
        how many are not shown."""
        searches, impossible = self.searched(pattern, least)
        ordered = [*_distinct(_by_turns(one for search in searches for one in search.found.values()))]
        best = [min(s.found.values(), key=lambda one: one.rank) for s in searches if s.found]
        others = [one for one in ordered if one not in best][: max(0, self.limit - len(best))]
        shown = tuple(one for one in ordered if one in best or one in others)
        return shown, impossible, not any(search.is_cut for search in searches), len(ordered) - len(shown)

    def searched(self, pattern: Pattern, least: int) -> tuple[list[Search], tuple[tuple[Rule, str], ...]]:
        """The searches for the rules that may derive what fits a pattern, and why the others cannot."""
        searches: list[Search] = []
        impossible: list[tuple[Rule, str]] = []
        for rule in self.rules:
            bindings: dict[str, Value] = {}
            deferred: list[tuple[Expression, Value]] = []
            part, values = _known_part(rule.head, pattern)
            if not match_atom(part, values, bindings, deferred):
                impossible.append((rule, _why_impossible(rule, part, values)))
                continue
            if any(not compare("=", bindings.setdefault(name, value), value) for name, value in self.given.items()):
                what = "fact" if pattern.is_fact else "pattern"
                impossible.append((rule, f"the values given for its variables do not fit the {what}"))
                continue
            literals = [*rule.body, *equations_of(deferred), *_same(rule.head, pattern), *_computed(rule.head, pattern)]
            search = Search(self, rule, pattern, literals)
            search.run(bindings, least)
            searches.append(search)
        return searches, tuple(impossible)


def equations_of(deferred: Iterable[tuple[Expression, Value]]) -> list[Comparison]:
    """Equations that give computed arguments the values which facts give them."""
    return [
        Comparison("=", expression.base, Constant(value, expression.base, expression.span), expression, expression.span)
        for expression, value in deferred
    ]


# --- equations -------------------------------------------------------------------------------------------------------


def define(comparisons: Sequence[Comparison], bindings: Bindings, ordinal: Ordinal = no_ordinal) -> dict[str, Value]:
    """Bindings extended by what equations define, whether or not comparisons hold, and by the variables for which they
    can be solved; ranges define nothing."""
    known, size = dict(bindings), -1
    while size < len(known):
        size = len(known)
        for comparison in comparisons:
            known |= _defined(comparison, known, ordinal, solves=False)
    for comparison in comparisons:
        known |= _defined(comparison, known, ordinal, solves=True)
    return known


def _defined(comparison: Comparison, known: Bindings, ordinal: Ordinal, solves: bool) -> dict[str, Value]:
    """The values of variables that a comparison defines or takes apart, or, if it `solves`, can be solved for."""
    with suppress(NoValue, Unbound):
        if parts := take_apart(comparison, known):
            return parts
        if (defined := _definition(comparison, known)) is not None:
            return {defined[0]: value_of(defined[1], known, ordinal)}
        solution = solve_equation(comparison, known, getattr(ordinal, "wraps", False)) if solves else None
        if solution is not None:
            value = {solution.variable.name: value_of(solution.expression, known, ordinal)}
            return value if holds(comparison, {**known, **value}, ordinal) else {}
    return {}


def _definition(comparison: Comparison, known: Bindings) -> tuple[str, Expression] | None:
    """The unbound variable that an equation defines, and by what; ranges define nothing."""
    if comparison.operator == "=":
        for side, other in ((comparison.left, comparison.right), (comparison.right, comparison.left)):
            is_range = isinstance(other, Apply) and other.functor == "range"
            if isinstance(side, Variable) and side.name not in known and not is_range:
                return side.name, other
    return None


# --- patterns --------------------------------------------------------------------------------------------------------


def _known_part(atom: Atom, pattern: Pattern) -> tuple[Atom, list[Value]]:
    """The arguments of an atom for which a pattern has values, and these."""
    known = [(a, t) for a, t in zip(atom.arguments, pattern.terms, strict=True) if not isinstance(t, Free)]
    return Atom(atom.relation, tuple(argument for argument, _ in known), atom.span), [value for _, value in known]


def _why_impossible(rule: Rule, head: Atom, values: Sequence[Value]) -> str:
    """Why a head cannot have some values; if only because it repeats a variable, also what it gives for the first."""
    told, given = f"its head is `{show(rule.head, {})}`", dict[str, Value]()
    pairs = zip(head.arguments, values, strict=True)
    same = [given.setdefault(one.name, value) if isinstance(one, Variable) else value for one, value in pairs]
    if not rule.body or not match_atom(head, same, {}, []):
        return told
    needed = ", ".join(f"`{show(literal, given)}`" for literal in rule.body)
    return f"{told}, and gives `{show(rule.head, given)}` from {needed}"


def _wanted(head: Atom, pattern: Pattern) -> Atom:
    """What a rule is to derive: its head, with the values that the pattern has."""
    places = zip(head.arguments, pattern.terms, strict=True)
    arguments = [
        a if isinstance(t, Free) or isinstance(a, Wildcard) else Constant(t, a.base, a.span) for a, t in places
    ]
    return Atom(head.relation, tuple(arguments), head.span)


def _same(head: Atom, pattern: Pattern) -> Iterator[Comparison]:
    """Equations between the arguments of the head for which the pattern has the same variable."""
    places: dict[str, list[Expression]] = {}
    for argument, term in zip(head.arguments, pattern.terms, strict=True):
        if isinstance(term, Free) and term.name is not None and not isinstance(argument, Wildcard):
            places.setdefault(term.name, []).append(argument)
    for arguments in places.values():
        for one, other in pairwise(arguments):
            yield Comparison("=", one.base, one, other, one.span)


def _computed(head: Atom, pattern: Pattern) -> Iterator[Comparison]:
    """Comparisons that hold if computed arguments of the head have values where the pattern is open."""
    for place, (argument, term) in enumerate(zip(head.arguments, pattern.terms, strict=True)):
        if isinstance(term, Free) and isinstance(argument, Apply):
            value = Variable(f"_@head{place}", argument.base, argument.span)
            yield Comparison("=", argument.base, value, argument, argument.span)


def _by_turns(found: Iterable[Instantiation]) -> list[Instantiation]:
    """The nearest first; those that are as near, but lack other literals, take turns."""
    met, turns = Counter[tuple[object, ...]](), dict[int, tuple[object, ...]]()
    ranked = sorted(found, key=lambda one: one.rank)
    for one in ranked:
        *near, _ = one.rank
        shape = *near, *(literal.status for literal in one.literals)
        turns[id(one)] = *near, met[shape]
        met[shape] += 1
    return sorted(ranked, key=lambda one: turns[id(one)])


def _distinct(found: Sequence[Instantiation]) -> Iterator[Instantiation]:
    """The best for every conclusion, then the others."""
    met: set[str] = set()
    later: list[Instantiation] = []
    for one in found:
        if one.conclusion in met:
            later.append(one)
        else:
            met.add(one.conclusion)
            yield one
    yield from later
