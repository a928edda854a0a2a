"""Demand: a program that derives only what some relations, its goals, need (the transformation known as magic sets).

For each relation there is a *pattern*: the columns that get a value wherever the relation is read on the way to a goal,
from constants or from what stands before in the rule. A relation `@demand.R` has the values that are asked for in these
columns, rules for it say where they come from, and the rules of R hold only for what is asked for. So R has all facts
that are asked for on the way to a goal, and perhaps no others: it must not be read for anything else.

What a rule computes is not asked for in its own recursion: `p(n) :- p(n + 1), n > 0.` would ask for ever greater
numbers.

Relations that are negated or aggregated are computed whole, with all below them, and so are those where one fact
decides about others (choice domains, equivalences, subsumption, limits of size, numbers of derivations).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType

from elastalog.analysis.draft import is_constructor
from elastalog.analysis.graphs import components, in_order
from elastalog.analysis.listing import show_literal
from elastalog.analysis.program import (
    Apply,
    Atom,
    CheckedProgram,
    Comparison,
    Constant,
    Directive,
    Expression,
    Literal,
    Negation,
    Relation,
    Rule,
    Stratum,
    Variable,
    Wildcard,
    inner_atoms,
    names_of,
    numbered_variable,
    variables_in,
)
from elastalog.analysis.stratify import collect_dependencies, needed_for
from elastalog.analysis.subsumptions import MARK
from elastalog.planning.logical import HIDDEN

Pattern = tuple[int, ...]
"""Columns, ascending. None of them: a relation is computed whole."""


def demand_of(relation: str) -> str:
    """The relation of the values that are asked for."""
    return f"{HIDDEN}demand.{relation}"


def with_demand(program: CheckedProgram, goals: Iterable[str], wanted: Iterable[str] | None = None) -> CheckedProgram:
    """The program that derives what its goals need. If `wanted` is given, only these relations are restricted to what
    is asked for. Relations that no goal needs lose their rules and are not read."""
    return _Demand(program, tuple(goals), None if wanted is None else frozenset(wanted)).program()


def asked_by_program(program: CheckedProgram) -> frozenset[str] | None:
    """The relations that a program itself restricts to what is asked for, by `magic` or the pragma; None if there are
    none."""
    pragma = program.pragmas.get("magic-transform", "")
    excluded = {name.strip() for name in program.pragmas.get("magic-transform-exclude", "").split(",")}
    named = {name.strip() for name in pragma.split(",")} if pragma != "*" else set(program.relations)
    named |= {name for name, relation in program.relations.items() if "magic" in relation.qualifiers}
    if "*" in excluded:
        return None
    return frozenset(named.intersection(program.relations) - excluded) or None


def with_existence_apart(program: CheckedProgram) -> CheckedProgram:
    """The program with the same facts, in which any part of a rule that shares no variable with the rest, and so only
    has to exist, is a relation of its own. Otherwise every fact of that part would give another derivation of the same
    head."""
    if any(numbered_variable(literal) is not None for rule in program.rules for literal in rule.body):
        return program
    relations, rules = dict(program.relations), list[Rule]()
    for rule in program.rules:
        parts = [] if rule.plan or _is_special(program.relations[rule.head.relation]) else _parts(rule)
        body = list(rule.body)
        for part in parts:
            name = f"{HIDDEN}exists.{len(relations)}"
            relations[name] = Relation(name, (), (), (), rule.head.span)
            exists = Atom(name, (), part[0].span)
            rules.append(replace(rule, head=exists, body=tuple(part)))
            body = [exists, *(literal for literal in body if not any(literal is other for other in part))]
        rules.append(replace(rule, body=tuple(body)) if parts else rule)
    if len(relations) == len(program.relations):
        return program
    return _assembled(replace(program, relations=relations), rules)


def _parts(rule: Rule) -> list[list[Literal]]:
    """The parts of a body that share no variables with the head or each other and may hold more than once."""
    if not all(isinstance(literal, Atom | Comparison | Negation) for literal in rule.body):
        return []
    kept, parts = list(_connected(rule.head, rule.body)), list[list[Literal]]()
    for literal in rule.body:
        if not isinstance(literal, Atom) or all(isinstance(term, Constant) for term in literal.arguments):
            continue
        if not any(literal is other for other in [*kept, *(each for part in parts for each in part)]):
            parts.append(list(_connected(literal, rule.body)) or [literal])
    return parts if kept else parts[1:]


def outputs_of(program: CheckedProgram) -> tuple[str, ...]:
    """The relations that are written to files or whose facts are counted."""
    kinds = ("output", "printsize")
    return tuple(n for n, r in program.relations.items() if any(d.kind in kinds for d in r.directives))


class _Demand:
    def __init__(self, program: CheckedProgram, goals: tuple[str, ...], wanted: frozenset[str] | None) -> None:
        self.checked = program
        self.goals = goals
        self.rules_of: dict[str, list[Rule]] = {}
        for rule in program.rules:
            self.rules_of.setdefault(rule.head.relation, []).append(rule)
        whole = _whole(program, self.rules_of, goals).union(goals)
        kept = {name for name, relation in program.relations.items() if "no_magic" in relation.qualifiers}
        self.free = whole | kept | (set() if wanted is None else set(program.relations) - wanted)
        self.patterns: dict[str, Pattern] = {}
        self.component_of = {name: stratum.number for stratum in program.strata for name in stratum.relations}
        self._find_patterns()

    # --- who is asked for what -------------------------------------------------------------------------------------

    def _find_patterns(self) -> None:
        """Finds the patterns of all relations that a goal needs: the columns for which every place that asks has a
        value."""
        pending = [goal for goal in self.goals if goal in self.checked.relations]
        self.patterns.update(dict.fromkeys(pending, ()))
        while pending:
            name = pending.pop()
            for rule in self.rules_of.get(name, ()):
                for read, pattern in self._calls(rule):
                    before = self.patterns.get(read)
                    now = pattern if before is None else tuple(c for c in before if c in pattern)
                    if now != before:
                        self.patterns[read] = now
                        pending.append(read)

    def _calls(self, rule: Rule) -> Iterator[tuple[str, Pattern]]:
        """The relations that a rule reads, with the columns that have a value there."""
        for atom, given, _ in self._in_order(rule):
            yield atom.relation, () if atom.relation in self.free else given
        for literal in rule.body:
            for inner in inner_atoms(literal):
                yield inner.relation, ()
        for subsumption in self.checked.subsumptions:
            if subsumption.head.relation.removesuffix(MARK) == rule.head.relation:
                for literal in subsumption.body:
                    if isinstance(literal, Atom):
                        yield literal.relation, ()

    def _asked_columns(self, atom: Atom, rule: Rule, bound: set[str], computed: set[str]) -> Pattern:
        """The columns for which a rule asks an atom for a value that is known at that point."""
        given = [c for c, term in enumerate(atom.arguments) if _has_value(term, bound)]
        if self.component_of[atom.relation] != self.component_of[rule.head.relation]:
            return tuple(given)
        plain = (c for c in given if not isinstance(atom.arguments[c], Apply))
        return tuple(c for c in plain if computed.isdisjoint(names_of(atom.arguments[c])))

    def _in_order(self, rule: Rule) -> Iterator[tuple[Atom, Pattern, tuple[Literal, ...]]]:
        """The atoms of a rule in the order in which values are passed on, each with the columns that have a value
        before it and the literals that those values come from."""
        pattern = self.patterns[rule.head.relation]
        bound = {v.name for c in pattern if isinstance(v := rule.head.arguments[c], Variable)}
        computed: set[str] = set()
        before: list[Literal] = []
        atoms = [literal for literal in rule.body if isinstance(literal, Atom)]
        tests = [t for t in rule.body if isinstance(t, Comparison) and numbered_variable(t) is None]
        while True:
            before += _settled(tests, bound, computed)
            if not atoms:
                return
            atom = max(atoms, key=lambda a: self._promise(a, bound))
            atoms.remove(atom)
            yield atom, self._asked_columns(atom, rule, bound, computed), tuple(before)
            before.append(atom)
            read = {v.name for v in atom.arguments if isinstance(v, Variable)}
            bound |= read
            computed -= read

    def _promise(self, atom: Atom, bound: set[str]) -> tuple[bool, bool, int]:
        """What to read next: atoms with known values first, then relations without rules, then the most known
        values."""
        given = sum(_has_value(term, bound) for term in atom.arguments)
        return given > 0, atom.relation not in self.rules_of, given

    # --- the program -----------------------------------------------------------------------------------------------

    def program(self) -> CheckedProgram:
        rules: list[Rule] = []
        for rule in self.checked.rules:
            if rule.head.relation in self.patterns:
                rules += self._asking(rule)
                asked = self._asked(rule)
                if asked is not None:
                    rule = replace(rule, body=(asked, *rule.body), plan=MappingProxyType({}))
                rules.append(rule)
        relations = dict(self.checked.relations)
        for name, relation in relations.items():
            if name not in self.patterns:  # nothing is read for it, even if there are files
                unread = Directive("input", {"IO": "updates"}, relation.span)
                relations[name] = replace(relation, directives=(unread,))
        for name, pattern in self.patterns.items():
            if pattern and name in self.rules_of:
                relation = self.checked.relations[name]
                attributes = tuple(relation.attributes[c] for c in pattern)
                relations[demand_of(name)] = Relation(demand_of(name), attributes, (), (), relation.span)
        subsumptions = tuple(
            rule for rule in self.checked.subsumptions if rule.head.relation.removesuffix(MARK) in self.patterns
        )
        return _assembled(replace(self.checked, relations=relations, subsumptions=subsumptions), rules)

    def _asked(self, rule: Rule) -> Atom | None:
        """The atom that says that the head of a rule is asked for. Whatever the head computes must have a variable by
        then."""
        pattern = self.patterns[rule.head.relation]
        if not pattern:
            return None
        return Atom(demand_of(rule.head.relation), tuple(rule.head.arguments[c] for c in pattern), rule.head.span)

    def _asking(self, rule: Rule) -> Iterator[Rule]:
        """Rules for what a rule asks of the relations that it reads."""
        asked = self._asked(rule)
        if asked is not None:
            # What the head computes may have no value yet: then any will do.
            terms = enumerate(asked.arguments)
            free = [Variable(f"_@demand{i}", t.base, t.span) if isinstance(t, Apply) else t for i, t in terms]
            asked = replace(asked, arguments=tuple(free))
        for atom, _, before in self._in_order(rule):
            pattern = self.patterns[atom.relation]
            if not pattern or atom.relation not in self.rules_of:
                continue
            head = Atom(demand_of(atom.relation), tuple(atom.arguments[c] for c in pattern), atom.span)
            given = before if asked is None else (asked, *before)
            body = tuple(_connected(head, given))
            if show_literal(head) not in map(show_literal, body):  # alike, wherever it stands
                yield replace(rule, head=head, body=body, plan=MappingProxyType({}))


def _whole(program: CheckedProgram, rules_of: Mapping[str, Sequence[Rule]], goals: Iterable[str]) -> set[str]:
    """The relations that must be complete, among those that goals need, and all that these read."""
    needed = needed_for(program, goals)
    rules = [rule for name in needed for rule in rules_of.get(name, ())]
    first = {inner.relation for rule in rules for literal in rule.body for inner in inner_atoms(literal)}
    first |= {name for name in needed.intersection(program.relations) if _is_special(program.relations[name])}
    for rule in program.subsumptions:
        first.add(rule.head.relation.removesuffix(MARK))
        first |= {atom.relation for atom in rule.body if isinstance(atom, Atom)}
    first |= {rule.head.relation for rule in rules if any(numbered_variable(x) is not None for x in rule.body)}
    return needed_for(program, first)


def _is_special(relation: Relation) -> bool:
    """Whether facts of a relation decide about other facts of it."""
    is_limited = any(directive.kind == "limitsize" for directive in relation.directives)
    return bool(relation.choices) or relation.is_equivalence or is_limited


def _has_value(term: Expression | Wildcard, bound: Iterable[str]) -> bool:
    """Whether a term has a value once some variables have theirs."""
    return not isinstance(term, Wildcard) and all(name in bound for name in names_of(term))


def _settled(tests: list[Comparison], bound: set[str], computed: set[str]) -> list[Literal]:
    """Takes the comparisons out of `tests` that say something once the bound variables have values. Equations bind more
    variables; these are `computed` unless they are parts of a value or equal to another variable."""
    found: list[Literal] = []
    grows = True
    while grows:
        grows = False
        for test in list(tests):
            sides = [(test.left, test.right), (test.right, test.left)] if test.operator == "=" else []
            gives = {s.name for s, other in sides if isinstance(s, Variable) and _has_value(other, bound)} - bound
            if any(isinstance(side, Apply) or not computed.isdisjoint(names_of(side)) for side, _ in sides):
                computed |= gives
            for side, other in sides:
                if isinstance(other, Apply) and is_constructor(other.functor) and _has_value(side, bound):
                    gives.update(names_of(other))
            if gives or (_has_value(test.left, bound) and _has_value(test.right, bound)):
                bound |= gives
                found.append(test)
                tests.remove(test)
                grows = True
    return found


def _connected(head: Atom, literals: Sequence[Literal]) -> Iterator[Literal]:
    """The literals that are connected to the variables of a head, in order. Others would only multiply the work."""
    names, *of = ({v.name for v in variables_in((literal,), is_deep=False)} for literal in (head, *literals))
    while True:
        more = set().union(*(own for own in of if not own.isdisjoint(names))) - names
        if not more:
            break
        names |= more
    return (literal for literal, own in zip(literals, of, strict=True) if not own.isdisjoint(names))


def _assembled(program: CheckedProgram, rules: Sequence[Rule]) -> CheckedProgram:
    """A program with other rules, numbered and assigned to strata."""
    pairs = {rule.head.relation: None for rule in program.subsumptions}
    uses, _ = collect_dependencies({**program.relations, **pairs}, (*rules, *program.subsumptions))
    ordered = in_order(components(uses), uses)
    component_of = {name: number for number, component in enumerate(ordered) for name in component}
    rules_of: list[list[Rule]] = [[] for _ in ordered]
    numbered: list[Rule] = []
    for rule in rules:
        own = component_of[rule.head.relation]
        is_recursive = any(isinstance(a, Atom) and component_of[a.relation] == own for a in rule.body)
        within = 1 + sum(other.head.relation == rule.head.relation for other in rules_of[own])
        rule = replace(rule, number=len(numbered) + 1, number_in_relation=within, is_recursive=is_recursive)
        numbered.append(rule)
        rules_of[own].append(rule)
    strata = tuple(
        Stratum(number, tuple(n for n in component if n not in pairs), tuple(own), any(r.is_recursive for r in own))
        for number, (component, own) in enumerate(zip(ordered, rules_of, strict=True))
    )
    return replace(program, rules=tuple(numbered), strata=strata)
