"""What a fact is used for: the facts that follow from it in one step, and a world in which it does not follow."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from elastalog.analysis.program import Value
from elastalog.analysis.query import Query, check_clause, free_name
from elastalog.analysis.rephrase import among_what_holds, bound_to, is_numbered, other_than, with_members
from elastalog.late import dataclass
from elastalog.program import Program, judged_in, removable_rules, rule_clauses
from elastalog.provenance.fact import Fact
from elastalog.provenance.proof import Proof
from elastalog.relations.facts import Relation
from elastalog.syntax import tree as syntax
from elastalog.syntax.printer import print_clause


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
        """The facts that a rule derives from a fact, which holds, and others: it stands in the body, or among what an
        aggregate of the body ranges over. Each once; those that only negate it are none. Whether a fact with the number
        of a derivation rests on it `derivations` tells, which do not show what aggregates range over."""
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
    """An update to a world in which a fact does not follow: rules that go, program text that comes, and the facts that
    come with it."""

    removed: list[str]
    added: list[str]
    inserted: dict[str, Relation | list[tuple[Value, ...]]]


def world_without(fact: Fact, program: Program, derived: Callable[[Collection[int]], Relation]) -> World:
    """In the place of the rules that may derive a fact stand others that derive the same but for it. That an `eqrel` is
    closed stays so. Rules that number their derivations would give others other numbers: what they have derived, which
    does not depend on the fact, is given instead. `derived` finds it, by the numbers of rules."""
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
