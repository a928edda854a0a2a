"""Why and why not, for one session: chooses how steps are found, and keeps what was found for its epoch.

Also the variables of a rule, to which a user gives values, and what a fact is used for: the facts that follow from it
in one step, and a world in which it does not follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import islice, zip_longest
from typing import Any, TypeAlias, TypeVar, cast
from weakref import ref

import numpy as np

from elastalog.analysis.listing import show_rule
from elastalog.analysis.pattern import Free, parse_pattern
from elastalog.analysis.pattern import Pattern as FactPattern
from elastalog.analysis.program import Atom, Base, CheckedProgram, Literal, Negation, Rule, Value, variables_in
from elastalog.analysis.program import Relation as Declared
from elastalog.analysis.query import Query, check_clause, free_name
from elastalog.analysis.rephrase import among_what_holds, bound_to, is_numbered, other_than, with_members
from elastalog.analysis.values import Structured
from elastalog.analysis.variables import is_written
from elastalog.backends.protocol import Backend, Matrix
from elastalog.diagnostics.arguments import is_whole, require_mapping, require_number
from elastalog.diagnostics.diagnostic import ElastalogError, LimitReached, error
from elastalog.diagnostics.nearest import did_you_mean
from elastalog.program import Program, judged_in, removable_rules, rule_clauses
from elastalog.provenance.absence import Absence, Instantiation, LiteralStatus, PatternAbsence
from elastalog.provenance.fact import Fact
from elastalog.provenance.invalid_texts import invalid_dates_in
from elastalog.provenance.joins import Pattern, candidates, dominating, holders
from elastalog.provenance.metrics import HEIGHT, Metric
from elastalog.provenance.proof import BY_RANKS, LEAST_BY_STRATUM, Proof
from elastalog.provenance.ranks import ComputedSteps, Neighbourhood, Scope
from elastalog.provenance.reading import Reading, WordFact
from elastalog.provenance.search import Alternatives, Assembly
from elastalog.provenance.steps import AnnotatedSteps, Steps, Superseded
from elastalog.provenance.why_not import WhyNot
from elastalog.relations.facts import Relation
from elastalog.relations.rows import plain_value, value_fault
from elastalog.relations.schema import Column
from elastalog.relations.words import Dictionary
from elastalog.syntax import tree as syntax
from elastalog.syntax.printer import print_clause

Asking: TypeAlias = Callable[[], AbstractContextManager[object]]
Touched: TypeAlias = Sequence[Mapping[str, Matrix]]
"""Facts by relation, update after update."""

Why = TypeVar("Why", bound=Absence)

LEAST = "the lowest of all its proofs"


@dataclass(frozen=True, slots=True)
class Setting:
    """What proofs are made from. `is_annotated`: the backend keeps levels; `is_global`: they run through all strata."""

    program: CheckedProgram
    backend: Backend
    dictionary: Dictionary
    is_annotated: bool
    is_global: bool
    metric: Metric = HEIGHT


@dataclass(eq=False)
class Explainer:
    """Answers why and why not about the present epoch, whose number is `epoch`. `asking` makes the block in which a
    proof or an absence is expanded later, within a time limit and with no update in between; other callers see to that
    themselves. `touched_since`: what updates since an epoch have touched, None if that is not known. `gone`: the facts
    that disappeared not long ago."""

    _setting: Setting
    _epoch: Callable[[], int]
    _asking: Asking = nullcontext
    _touched_since: Callable[[int], Touched | None] = lambda epoch: None
    _gone: Callable[[], Touched] = tuple

    def __post_init__(self) -> None:
        self._reading: Reading | None = None
        self._known: Explanations | None = None
        self._proofs: _Proofs | None = None

    def now(self) -> Explanations:
        """What answers questions about the present epoch; it has what was found for it before."""
        before, number = self._known, self._epoch()
        if before is not None and before.number == number:
            return before
        setting, reading = self._setting, self._reading
        if reading is None or reading.program is not setting.backend.program:
            reading, before = Reading(setting.backend, setting.dictionary), None
            self._reading = reading
        touched = self._touched_since(number if before is None else before.number)
        proofs = _Proofs()
        now = Explanations(setting, reading, number, self._epoch, self._asking, ref(proofs), self._gone)
        if before is not None and touched is not None:
            proofs.assembly = now.taken_over(before, touched)
        self._known, self._proofs = now, proofs
        return now


class _Proofs:
    """The proofs that are known. Only the explainer has them: each refers to its source, which must not lead back."""

    assembly: Assembly | None = None


@dataclass(eq=False)
class Explanations:
    """What is known about one epoch; the source of further levels of its proofs. Raises LimitReached when the time of
    the backend's watch is over."""

    _setting: Setting
    _reading: Reading
    number: int
    _epoch: Callable[[], int]
    _asking: Asking
    _proofs: ref[_Proofs]
    _find_gone: Callable[[], Touched]

    def __post_init__(self) -> None:
        self._superseded = Superseded(self._reading)
        self._is_annotated = self._setting.is_annotated

    def taken_over(self, before: Explanations, touched: Touched) -> Assembly | None:
        """What was known before, which is not asked any more; updates have touched some facts since."""
        facts = {(name, tuple(row)) for each in touched for name in each for row in each[name].tolist()}
        return before._assembly.after(facts, self, self._chosen_among)

    @property
    def _assembly(self) -> Assembly:
        proofs = self._proofs() or _Proofs()  # a proof may outlive its session
        if proofs.assembly is None:
            steps, claim = self._steps()
            proofs.assembly = Assembly(self._reading, steps, claim, self, self._chosen_among)
        return proofs.assembly

    def _steps(self) -> tuple[Steps, str]:
        setting, reading = self._setting, self._reading
        if setting.metric is not HEIGHT:
            claim = f"the least {setting.metric.name} of all proofs"
            if reading.equivalences:
                claim += " with the chains of equivalences that attain their levels"
            return ComputedSteps(reading, setting.metric, "all", self._superseded), claim
        claim = LEAST if setting.is_global else LEAST_BY_STRATUM
        if self._is_annotated:
            claim = BY_RANKS if reading.ranked and not setting.is_global else claim
            return AnnotatedSteps(reading, setting.is_global, self._superseded), claim
        scope: Scope = "all" if setting.is_global else "stratum"
        return ComputedSteps(reading, HEIGHT, scope, self._superseded), claim

    # --- presence --------------------------------------------------------------------------------------------------

    def prove(self, fact: Fact, depth: int | None) -> Proof:
        with self._asking():
            return self.proof(fact, depth)

    def proof(self, fact: Fact, depth: int | None = None) -> Proof:
        """The best proof of a fact, to a depth. Raises E0701 if the fact does not hold."""
        if depth is not None and not (is_whole(depth) and depth >= 0):
            raise error("E0708", depth=depth)
        root = self._present(fact)
        try:
            return self._assembly.prove(root, depth)
        except ElastalogError as found:
            if not self._is_annotated or found.diagnostics[0].code != "E0740":
                raise
        # The levels of facts that subsumption leaves say when they came, and what they came from may be gone in a way
        # that evaluating anew does not show: their heights are found from all derivations then.
        self._is_annotated = False
        if (proofs := self._proofs()) is not None:
            proofs.assembly = None
        return self._assembly.prove(root, depth)

    def explain(self, fact: Fact) -> Proof:
        return self.prove(fact, None)

    def derivations(self, fact: Fact) -> tuple[Proof, ...]:
        """Every derivation of a fact that holds, as proofs of one level: by rule, then by the facts used."""
        around = Neighbourhood(self._reading, "all", self._superseded)
        around.collect_derivations(self._present(fact))
        found = sorted(range(len(around.heads)), key=around.sort_key)
        return tuple(self._assembly.by_step(around.facts[0], around.step(derivation)) for derivation in found)

    def proofs(self, fact: Fact, limit: int) -> Iterator[Proof]:
        """Distinct proofs of a fact, lowest first, no fact below itself; at most `limit`."""
        require_number("limit", limit, 0, whole=True)
        root = self._present(fact)
        around = Neighbourhood(self._reading, "all", self._superseded)
        around.collect([root])
        return islice(Alternatives(around, self._reading, self._assembly.aggregate).of(root), limit)

    def leaves(self, fact: Fact, most: int) -> Iterator[Fact]:
        """The explicit facts that proofs of a fact rest on, those of its best proof first; of many derivations, the
        nearest `most` are looked at."""
        yield from self.proof(fact).explicit_facts
        around = Neighbourhood(self._reading, "all", self._superseded, most)
        try:
            around.collect([self._present(fact)])
        except LimitReached:
            self._setting.backend.watch.check()  # raises if it is a limit of the user
        backend, program = self._setting.backend, self._setting.program
        for relation, row in around.facts:
            if relation in program.relations and backend.is_explicit(relation, np.array([row], np.int32))[0]:
                yield self._reading.fact((relation, row))

    def _present(self, fact: Fact) -> WordFact:
        self._require_epoch()
        words = self._reading.words(fact)
        is_there = words is not None and self._setting.backend.contains(words[0], np.array([words[1]], np.int32))[0]
        # A premise that was superseded can be gone down into.
        if words is None or not (is_there or self._superseded.by(words)):
            raise error("E0701", fact=fact)
        return words

    def _require_epoch(self) -> None:
        if self._epoch() != self.number:
            raise error("E0709", epoch=self.number, now=self._epoch())

    # --- absence ---------------------------------------------------------------------------------------------------

    def absence(
        self,
        fact: Fact,
        limit: int = 5,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
        depth: int = 1,
    ) -> Absence:
        """The nearest failing derivations of a fact. Raises E0702 if it holds. `rule`, by its number in the relation,
        and `bindings` restrict the search. With a `depth`, also why literals fail, by the nearest derivation each."""
        self._require_epoch()
        if self._reading.is_present(fact.relation, fact.values):
            raise error("E0702", fact=fact)
        declared = self._setting.program.relations[fact.relation]
        competes = bool(declared.choices) or fact.relation in self._reading.subsumed
        asked = self._why_not(fact.relation, limit, rule, bindings)
        found = asked.fact(fact, self._setting.backend.is_complete, competes)
        words = self._reading.words(fact)
        is_given = words is not None and bool(
            self._setting.backend.is_explicit(words[0], np.array([words[1]], np.int32))[0]
        )
        is_derived = any(not i.failing for i in found.instantiations)
        literals = (literal for each in found.instantiations for literal in each.failing)
        failing = (literal.text for literal in literals if literal.kind not in ("atom", "negation"))
        notes = (*self._notes(fact, is_given or is_derived), *invalid_dates_in(failing))
        return self._to_depth(replace(found, notes=notes, is_given=is_given), depth)

    def pattern(
        self,
        pattern: FactPattern,
        written: str,
        limit: int = 5,
        rule: int | None = None,
        bindings: Mapping[str, Value] | None = None,
        depth: int = 1,
    ) -> PatternAbsence:
        """Why no further fact fits a pattern."""
        self._require_epoch()
        asked = self._why_not(pattern.relation, limit, rule, bindings)
        found = asked.pattern(pattern, written, self._reading.count(pattern))
        return self._to_depth(replace(found, notes=tuple(self._there(pattern))), depth)

    def _to_depth(self, found: Why, depth: int, above: frozenset[Fact] = frozenset()) -> Why:
        """Adds why literals fail, level by level, unless that leads back to a fact `above`."""
        require_number("depth", depth, 1, whole=True, or_none=False)
        above |= {found.fact}
        further: list[str] = []

        def goes_on(each: Instantiation) -> bool:
            """Whether it lacks facts that rules derive, or with open values, rather than given ones."""
            atoms = (literal.fact for literal in each.failing if literal.kind == "atom")
            return any(fact is None or fact.relation in self._reading.derived for fact in atoms)

        def is_circular(each: Instantiation, fact: Fact | None) -> bool:
            """Whether it lacks the fact that it is to derive, or one above, so that it can never be the reason."""
            return any(literal.fact is not None and literal.fact in {fact, *above} for literal in each.failing)

        def explained(literal: LiteralStatus, written: Literal | None, each: Instantiation) -> LiteralStatus:
            atom = written.atom if isinstance(written, Negation) else written
            is_derived = isinstance(atom, Atom) and atom.relation in self._reading.derived
            if isinstance(written, Negation) and literal.status == "fails" and literal.fact is None:
                # One fact with any values where `_` stands, explicit or not: nothing else names it.
                in_the_way = next(self._reading.fitting(each.pattern(written.atom)), None)
                if depth > 1 and in_the_way is not None:
                    return replace(literal, because=self.proof(in_the_way, depth - 1))
                further.extend([f"{literal.text[1:]} holds"] * (each is found.instantiations[0]))
                return literal
            if not literal.can_expand or not is_derived or literal.fact in above:
                return literal
            if depth == 1:
                is_negated, is_nearest = literal.kind == "negation", each is found.instantiations[0]
                told = f"{literal.fact} holds" if is_negated else f"{literal.text} does not hold"
                further.extend([told] * is_nearest)
                return literal
            if not isinstance(written, Atom) and literal.fact is not None:
                return replace(literal, because=self.proof(literal.fact, depth - 1))
            if literal.fact is not None:
                below: Absence = self.absence(literal.fact)
            else:
                assert isinstance(written, Atom)
                below = self.pattern(each.pattern(written), literal.text)
            best: dict[int, Instantiation] = {}
            for one in sorted(below.instantiations, key=lambda one: (is_circular(one, literal.fact), one.rank)):
                best.setdefault(one.rule.number, one)
            chosen = sorted(
                best.values(), key=lambda one: (is_circular(one, literal.fact), one.drawbacks[:2], goes_on(one))
            )[:1]
            below = replace(below, instantiations=tuple(chosen), more_rules=len(best) - len(chosen))
            below = self._to_depth(below, depth - 1, above)
            further.extend([below.further] * bool(below.further))
            return replace(literal, because=below) if below.instantiations else literal

        shown = tuple(
            replace(each, literals=tuple(explained(*pair, each) for pair in zip_longest(each.literals, each.rule.body)))
            for each in found.instantiations
        )
        return replace(found, instantiations=shown, further=next(iter(further), ""))

    def _there(self, pattern: FactPattern) -> Iterator[str]:
        """The facts that fit a pattern, if they are few, and what keeps others of theirs away."""
        facts = list(islice(self._reading.fitting(pattern), _FEW + 1))
        if not 0 < len(facts) <= _FEW:
            return
        columns = zip(self._setting.program.relations[pattern.relation].attributes, pattern.terms, strict=True)
        kept = [one for one, term in columns if one.improves in _BEST and isinstance(term, Free)]
        limits = (
            f", and `{one.name}: {syntax.written_type(one)}` keeps only the {_BEST[one.improves]}" for one in kept
        )
        yield f"there is {', '.join(map(str, facts))}{''.join(limits)}"

    def _why_not(self, relation: str, limit: int, rule: int | None, bindings: Mapping[str, Value] | None) -> WhyNot:
        """Asks the rules of a relation, or one of them, with values of variables as facts have them."""
        require_number("limit", limit, 1, whole=True, or_none=False)
        require_number("rule", rule, 1, whole=True)
        require_mapping("`bindings` are values by variable", bindings, 'give a mapping, such as `{"y": 3}`')
        rules = self._rules_of(relation, rule)
        given = {name: value_of_variable(rules, name, value) for name, value in (bindings or {}).items()}
        ordinal = self._reading.ordinal
        return WhyNot(rules, self._look_up, ordinal, limit, given, self, self._rules_of, self._held_lately)

    def _rules_of(self, relation: str, chosen: int | None = None) -> tuple[Rule, ...]:
        """The rules of a relation that are asked, or the one chosen by its number."""
        rules = tuple(r for r in self._setting.program.rules if r.head.relation == relation)
        return tuple(r for r in rules if not r.is_closure) if chosen is None else (_chosen(relation, rules, chosen),)

    @cached_property
    def _gone(self) -> dict[str, Matrix]:
        """The facts that disappeared not long ago."""
        found: dict[str, list[Matrix]] = {}
        for each in self._find_gone():
            for name, words in each.items():
                found.setdefault(name, []).append(words)
        return {name: np.concatenate(words) for name, words in found.items()}

    def _held_lately(self, relation: str, values: Pattern) -> bool:
        """Whether a fact with the given values disappeared not long ago."""
        words, known = self._gone.get(relation), self._reading.known(relation, values)
        if words is None or known is None:
            return False
        return bool((words[:, list(known)] == list(known.values())).all(axis=1).any())

    def _notes(self, fact: Fact, is_given: bool) -> Iterator[str]:
        """What keeps a fact away that rules may give."""
        program, declared = self._setting.program, self._setting.program.relations[fact.relation]
        if is_given:
            for other, key in holders(fact, declared, self._look_up):
                yield f"not chosen: {other} has the key {key}"
        better: list[str] = []
        if is_given or fact.relation in self._reading.ranked:
            what = "superseded by" if is_given else "there is a better one,"
            found = islice(dominating(fact, program, self._look_up, self._reading.ordinal), 1)
            better = [f"{what} {other}, as `{rule.text}` says" for other, rule in found]
        yield from better or self._kept(fact, declared)
        if declared.is_equivalence:
            left, right = (sum(1 for _ in self._look_up(fact.relation, (value, None))) for value in fact.values)
            yield f"{_in_class(fact.values[0], left)}, {_in_class(fact.values[1], right)}, and nothing connects them"

    def _kept(self, fact: Fact, declared: Declared) -> Iterator[str]:
        """The fact with the only value that a column `min` or `max` keeps."""
        best = [_BEST.get(attribute.improves) for attribute in declared.attributes if attribute.improves]
        places = zip(declared.attributes, fact.values, strict=True)
        pattern = tuple(None if attribute.improves else value for attribute, value in places)
        if len(best) == 1 and best[0] is not None:
            for values in islice(self._look_up(fact.relation, pattern), 1):
                yield f"the {best[0]} is {Fact(fact.relation, values)}"

    def _chosen_among(self, fact: Fact) -> int | None:
        if not self._setting.program.relations[fact.relation].choices:
            return None
        return candidates(fact, self._setting.program, self._look_up, self._reading.ordinal)

    def explain_absence(self, fact: Fact | str) -> Absence:
        with self._asking():
            if isinstance(fact, Fact):
                return self.absence(fact)
            return self.pattern(parse_pattern(fact, self._setting.program), fact)

    def _look_up(self, relation: str, pattern: Pattern) -> Iterator[tuple[Value, ...]]:
        return self._reading.select(relation, pattern)


def _chosen(relation: str, rules: tuple[Rule, ...], number: int) -> Rule:
    for rule in rules:
        if rule.number_in_relation == number:
            return rule
    listed = "; ".join(f"{rule.number_in_relation}: {show_rule(rule)}" for rule in rules) or "none"
    raise error("E0710", relation=relation, number=number, rules=listed)


_FEW = 3
"""Facts that fit a pattern are named if they are not more."""
_BEST = {"min": "least", "max": "greatest"}


def _in_class(value: Value, size: int) -> str:
    shown = repr(value) if isinstance(value, str) else str(value)
    return f"{shown} is in a class of {size:,}" if size else f"{shown} is in no class"


# --- variables of a rule ---------------------------------------------------------------------------------------------


def variables_of_rule(rule: Rule) -> dict[str, Base]:
    """The variables of a rule that a user can give values to, those in its aggregates aside, with their types."""
    variables = variables_in((rule.head, *rule.body), is_deep=False)
    return {variable.name: variable.base for variable in variables if is_written(variable.name)}


def value_of_variable(rules: tuple[Rule, ...], name: str, value: object) -> Value:
    """The value that a user gives to a variable of a rule, as facts have it. Raises E0711."""
    known = {variable: base for rule in rules for variable, base in variables_of_rule(rule).items()}
    base = known.get(name)
    if base is None:
        raise error("E0711.variable", name=name, advice=did_you_mean(str(name), known), variables=", ".join(known))
    found: Any = value
    if base is not Base.RECORD:
        found = None if value_fault(Column(name, base), value) else plain_value(base, value)
    if found is None or isinstance(found, Structured) != (base is Base.RECORD):
        raise error("E0711.type", name=name, type=base.value, value=value)
    return cast(Value, found)


# --- what a fact is used for -----------------------------------------------------------------------------------------


class Uses:
    """Knows the rules of a program by the relations that they read."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._judged = judged_in(program.tree.items)
        self._reading: dict[str, list[tuple[syntax.Clause, int]]] = {}
        for rule in rule_clauses(program):
            self._note(rule, 0)
            for wide in with_members(rule):
                self._note(wide, len(rule.body))

    def _note(self, rule: syntax.Clause, first: int) -> None:
        for place, literal in enumerate(rule.body[first:], first):
            if isinstance(literal, syntax.Atom):
                self._reading.setdefault(literal.relation, []).append((rule, place))

    def direct(
        self,
        fact: Fact,
        ask: Callable[[Query], Relation],
        derivations: Callable[[Fact], Iterable[Proof]],
    ) -> list[Fact]:
        """The facts that a rule derives from a fact that holds, together with others, each once: the fact stands in the
        body, or among the members of an aggregate in it; facts that only negate it do not count. `derivations`, which
        do not show the members of aggregates, tell whether a fact with the number of a derivation rests on it."""
        program = self._program
        found: dict[str, Fact] = {}  # by text: NaN is not equal to itself
        for rule, place in self._reading.get(fact.relation, ()):
            bound = bound_to(rule, place, fact.values)
            if bound is None:
                continue
            has_numbers = is_numbered(rule)
            if has_numbers or rule.heads[0].relation in self._judged:
                bound = among_what_holds(bound)
            for values in ask(check_clause(bound, program.tree, program.checked)):
                other = Fact(rule.heads[0].relation, values)
                if not has_numbers or _rests_on(fact, derivations(other)):
                    found.setdefault(str(other), other)
        found.pop(str(fact), None)
        return list(found.values())


def _rests_on(fact: Fact, derivations: Iterable[Proof]) -> bool:
    premises = (child for proof in derivations for child in proof.children)
    return any(isinstance(child, Proof) and child.fact == fact for child in premises)


@dataclass(frozen=True, slots=True)
class World:
    """An update that leads to a world in which a fact does not follow: the rules to remove, the program text to add,
    and the facts to insert with it."""

    removed: list[str]
    added: list[str]
    inserted: dict[str, Relation | list[tuple[Value, ...]]]


def world_without(fact: Fact, program: Program, derived: Callable[[Collection[int]], Relation]) -> World:
    """Replaces the rules that may derive a fact by others that derive everything but this fact. An `eqrel` stays
    closed. Rules that number their derivations would now give other numbers: what they have derived, which does not
    depend on the fact, is given instead. `derived` finds it, by the numbers of rules."""
    excluded, given = (free_name(stem, program.checked) for stem in ("excluded", "given"))
    declared = program.checked.relations[fact.relation].attributes
    attributes = ", ".join(f"{attribute.name}: {attribute.type_name}" for attribute in declared)
    world = World([], [f".decl {excluded}({attributes})"], {excluded: [fact.values]})
    numbered: list[int] = []
    for number, rule in removable_rules(program).items():
        if rule.heads[0].relation != fact.relation:
            continue
        world.removed.append(print_clause(rule))
        if is_numbered(rule):
            numbered.append(number)
        else:
            world.added.append(print_clause(other_than(rule, excluded)))
    if numbered:
        values = ", ".join(f"x{place}" for place in range(len(declared)))
        world.added.append(f".decl {given}({attributes})")
        world.added.append(f"{fact.relation}({values}) :- {given}({values}), !{excluded}({values}).")
        world.inserted[given] = derived(numbered)
    return world
