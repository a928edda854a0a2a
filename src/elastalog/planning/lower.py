"""From the checked program to its logical form (see `logical`).

A rule with `autoinc()` reads a number from a hidden relation, which is keyed by the values of the rule's variables in
the derivation.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from elastalog.analysis import program as checked
from elastalog.analysis.program import Base, CheckedProgram, Constant, Rule, Variable, numbered_variable, variables_of
from elastalog.analysis.subsumptions import MARK
from elastalog.planning import logical
from elastalog.planning.equivalences import kept_as_classes, told_apart
from elastalog.planning.goals import bases_of, grounded, names_in
from elastalog.planning.lower_aggregates import Alternative, lower_body
from elastalog.planning.lower_literals import ZERO, Lowering, Needed
from elastalog.planning.ranked import NotRanked, ranked_of
from elastalog.syntax.keywords import AUTOINC


def lower(
    program: CheckedProgram, guarded: frozenset[int] = frozenset(), equivalences: Collection[str] | None = None
) -> logical.LogicalProgram:
    """The logical form of a checked program, with its strata in evaluation order. `guarded`: the numbers of the rules
    that hold only as long as their hidden relation has its one fact (see `guard_of`). `equivalences`: the relations to
    keep as classes; by default, all that can be."""
    if equivalences is None:
        equivalences = kept_as_classes(program)
    return _ProgramLowering(program, guarded, equivalences).run()


class _ProgramLowering(Lowering):
    """The rules and strata of a program."""

    def run(self) -> logical.LogicalProgram:
        for number in sorted(self.guarded):
            self.add_stratum((self.hidden(logical.guard_of(number), (), number, is_flat=True),))
        for stratum in self.program.strata:
            self.lower_stratum(stratum)
        return logical.LogicalProgram(self.program, self.relations, tuple(self.strata))

    def lower_stratum(self, stratum: checked.Stratum) -> None:
        """Appends a stratum: before it the strata that only it needs, after it those that are made from it."""
        own = self.stratum_of[stratum.relations[0]]
        by_classes = {name for name in stratum.relations if self.relations[name].classes is not None}
        rules = [rule for rule in stratum.rules if not (rule.is_closure and rule.head.relation in by_classes)]
        clauses = [clause for rule in rules for clause in self.lower_rule(rule, own)]
        dominance = [
            clause
            for rule in self.program.subsumptions
            if rule.head.relation.removesuffix(MARK) in own
            for clause in self.lower_rule(rule, own)
        ]
        inside, above = (self.needed, []) if dominance else ([], self.needed)
        clauses += [self.handing_on(head.removesuffix(MARK)) for head in dict.fromkeys(c.head for c in dominance[::-1])]
        relations = (*own, *(needed.relation for needed in inside))
        clauses += [self.needing(needed, own) for needed in inside]
        merges = tuple(logical.EquivalenceRule(logical.classes_of(name), name) for name in own if name in self.merged)
        is_recursive = stratum.is_recursive and (not by_classes or bool(merges))
        ranked, why = self.rank(relations, clauses, dominance)
        kept: dict[str, Any] = {"dominance": tuple(dominance), "ranked": ranked, "why_in_rounds": why}
        self.add_stratum(relations, clauses, is_recursive=is_recursive, merges=merges, **kept)
        for name in by_classes - self.merged:
            self.add_classes(name)
            classes = logical.classes_of(name)
            self.add_stratum((classes,), equivalence=logical.EquivalenceRule(classes, name))
        for needed in above:
            self.add_stratum((needed.relation,), [self.needing(needed, ())])
        self.needed.clear()

    def rank(
        self, relations: tuple[str, ...], clauses: list[logical.Clause], dominance: list[logical.Clause]
    ) -> tuple[logical.Ranked | None, str]:
        """How a stratum is evaluated in the order of values, or why it is not."""
        if not dominance:
            return None, ""
        try:
            return ranked_of(relations, clauses, dominance, self.relations, self.links), ""
        except NotRanked as error:
            return None, str(error)

    def lower_rule(self, rule: Rule, own: tuple[str, ...]) -> list[logical.Clause]:
        self.aggregates = 0  # names depend on the rule alone, so that other rules can come and go
        self.handled.clear()
        clauses = []
        for alternative in _with_numbers(self, rule, lower_body(self, rule.body, rule, None)):
            head_terms, extra = self.lower_arguments(rule.head)
            body = (*alternative.goals, *extra, *self.handled, *self.guard(rule))
            origin = logical.Origin(rule.body, alternative.scans)
            clauses.append(self.clause(rule.head.relation, head_terms, body, _recursive(body, own), rule, origin))
        return clauses

    def handing_on(self, relation: str) -> logical.Clause:
        """The clause that passes the explicit facts of a relation on to it."""
        stored = self.relations[relation]
        given = self.hidden(logical.GIVEN + relation, stored.bases)
        self.relations[relation] = replace(stored, given=given)
        self.add_stratum((given,))
        terms = tuple(f"x{column}" for column in range(stored.width))
        return self.clause(relation, terms, (logical.Scan(given, terms),))

    def needing(self, needed: Needed, own: tuple[str, ...]) -> logical.Clause:
        """The clause that says which groups a rule needs, in a stratum of which some relations are `own`."""
        return self.clause(needed.relation, needed.names, needed.goals, _recursive(needed.goals, own))

    def links(self, clause: logical.Clause, names: Sequence[str], goals: tuple[logical.Goal, ...]) -> str:
        """The hidden relation of the values of some variables of a clause for which the goals hold."""
        assert clause.rule is not None
        number = clause.rule.number
        relation = next(n for i in count(1) if (n := f"{logical.LINKS}{number}.{i}") not in self.relations)
        bases = bases_of(goals, self.relations)
        self.hidden(relation, (bases[name] for name in names), number)
        self.add_stratum((relation,), [self.clause(relation, tuple(names) or (ZERO,), goals)])
        return relation


def _recursive(goals: tuple[logical.Goal, ...], own: tuple[str, ...]) -> tuple[int, ...]:
    """The scans of relations of a clause's own stratum."""
    return tuple(i for i, goal in enumerate(goals) if isinstance(goal, logical.Scan) and goal.relation in own)


# --- numbers of derivations ------------------------------------------------------------------------------------------


def _with_numbers(lowering: Lowering, rule: Rule, alternatives: list[Alternative]) -> list[Alternative]:
    """The alternatives of a rule, each with scans that read its numbers."""
    variables = [variable for literal in rule.body if (variable := numbered_variable(literal)) is not None]
    if not variables:
        return alternatives
    names = {variable.name for variable in variables}
    conjunctions = [_without(alternative.goals, names) for alternative in alternatives]
    columns = _columns(lowering, conjunctions)
    scans = [_numbers(lowering, rule, conjunctions, columns, variable) for variable in variables]
    return [Alternative((*alternative.goals, *scans), alternative.scans) for alternative in alternatives]


def _without(goals: tuple[logical.Goal, ...], names: set[str]) -> tuple[logical.Goal, ...]:
    """The goals that do not depend on numbers: they say which derivations there are."""
    kept = tuple(goal for goal in goals if names.isdisjoint(names_in(goal)))
    bound = grounded(kept)
    return tuple(goal for goal in kept if bound.issuperset(names_in(goal)))


def _columns(lowering: Lowering, conjunctions: list[tuple[logical.Goal, ...]]) -> dict[str, Base]:
    """The variables that tell derivations apart, in the order written, with their types. Whatever an argument computes
    follows from them. In an atom of an equivalence, a wildcard only says that there is a class, however the equivalence
    is kept."""
    found: dict[str, Base] = {}
    for goal in conjunctions[0]:
        if isinstance(goal, logical.Test):
            found.update({v.name: v.base for v in variables_of(goal.left, goal.right) if v.name not in found})
        elif isinstance(goal, logical.Scan):
            bases = lowering.relations[goal.relation].bases
            written = goal.relation in lowering.program.relations
            is_equivalence = written and lowering.program.relations[goal.relation].is_equivalence
            for term, base in zip(told_apart(goal.terms) if is_equivalence else goal.terms, bases, strict=False):
                if isinstance(term, str):
                    found.setdefault(term, base)
    return {name: base for name, base in found.items() if not name[:2].strip("@").isdigit()}


def _numbers(
    lowering: Lowering,
    rule: Rule,
    conjunctions: list[tuple[logical.Goal, ...]],
    columns: dict[str, Base],
    variable: Variable,
) -> logical.Scan:
    """Collects the derivations of a rule, gives them numbers, and reads the number of one."""
    label = lowering.label(rule)
    bases = tuple(columns.values()) or (Base.NUMBER,)
    terms: tuple[str | Constant, ...] = tuple(columns) or (ZERO,)
    derivations = lowering.hidden(f"{logical.HIDDEN}derivations.{label}", bases, rule.number, is_flat=True)
    guard = lowering.guard(rule)
    clauses = [lowering.clause(derivations, terms, (*goals, *guard)) for goals in conjunctions]
    lowering.add_stratum((derivations,), clauses)
    name = f"{logical.HIDDEN}{AUTOINC}.{label}"
    lowering.hidden(name, (*bases, Base.NUMBER), rule.number, is_flat=True)
    numbering = logical.AggregateRule(
        name, derivations, len(bases), AUTOINC, None, Base.NUMBER, Base.NUMBER, rule, rule.span
    )
    lowering.add_stratum((name,), aggregate=numbering)
    return logical.Scan(name, (*terms, variable.name))
