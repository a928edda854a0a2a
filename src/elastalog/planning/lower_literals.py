"""Literals in their logical form (see `logical`), and the hidden relations that they need."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import Any, assert_never

from elastalog.analysis import program as checked
from elastalog.analysis.negation import may_lack_value
from elastalog.analysis.program import Apply, Base, CheckedProgram, Constant, Rule, Variable, numbered_variable
from elastalog.analysis.subsumptions import MARK
from elastalog.diagnostics.source import NOWHERE
from elastalog.late import dataclass
from elastalog.planning import logical
from elastalog.planning.equivalences import depends_on_itself, told_apart
from elastalog.syntax.keywords import NOT

ZERO = Constant(0, Base.NUMBER, NOWHERE)


@dataclass(frozen=True, slots=True)
class Needed:
    """A relation of what a rule needs (see `needed_groups`), with its clause, which has no number yet."""

    relation: str
    names: tuple[str, ...]
    goals: tuple[logical.Goal, ...]


class Lowering:
    """The part of a program that has been lowered so far. Hidden relations of a rule are named by its number."""

    def __init__(self, program: CheckedProgram, guarded: frozenset[int], equivalences: Collection[str]) -> None:
        self.program = program
        self.guarded = guarded
        self.relations = {
            relation.name: logical.StoredRelation(
                relation.name,
                tuple(a.base for a in relation.attributes) or (Base.NUMBER,),
                is_hidden=False,
                choices=relation.choices,
                classes=logical.classes_of(relation.name) if relation.name in equivalences else None,
            )
            for relation in program.relations.values()
        }
        self.strata: list[logical.LogicalStratum] = []
        self.merged = frozenset(
            name for name in equivalences if name in program.relations and depends_on_itself(name, program)
        )
        """The equivalences whose classes are formed in their own recursion."""
        for name in self.merged:
            self.add_classes(name)
        # The relations of the stratum of each, and the classes that are formed in it.
        self.stratum_of = {
            name: (*s.relations, *(logical.classes_of(other) for other in s.relations if other in self.merged))
            for s in program.strata
            for name in s.relations
        }
        self.clauses = 0
        self.aggregates = 0
        self.fresh = 0
        self.handled: list[logical.Scan] = []
        """What the rule that is being lowered holds for and nothing else: see `needed_groups`."""
        self.needed: list[Needed] = []
        """What rules of the stratum that is being lowered need."""

    def add_stratum(
        self,
        relations: tuple[str, ...],
        clauses: Iterable[logical.Clause] = (),
        aggregate: logical.AggregateRule | None = None,
        is_recursive: bool = False,
        **more: Any,
    ) -> None:
        """Appends a stratum; for `more` see `LogicalStratum`."""
        stratum = logical.LogicalStratum(len(self.strata), relations, tuple(clauses), aggregate, is_recursive, **more)
        self.strata.append(stratum)

    def hidden(self, name: str, bases: Iterable[Base], rule: int | None = None, **more: Any) -> str:
        """Makes a hidden relation, for a rule if one is given; `more`: see `StoredRelation`."""
        columns = tuple(bases) or (Base.NUMBER,)
        self.relations[name] = logical.StoredRelation(name, columns, is_hidden=True, rule=rule or None, **more)
        return name

    def add_classes(self, relation: str) -> None:
        """The relation of the classes of an equivalence."""
        self.hidden(logical.classes_of(relation), self.relations[relation].bases)

    def own_of(self, rule: Rule) -> tuple[str, ...]:
        """The relations of the stratum of a rule's head."""
        return self.stratum_of[rule.head.relation.removesuffix(MARK)]

    def rule_label(self, rule: Rule) -> str:
        """The name of a rule inside names of hidden relations; subsumptions have no number."""
        return str(rule.number or f"{rule.head.relation}{rule.number_in_relation}")

    def label(self, rule: Rule) -> str:
        """The name for the next aggregate of the rule that is being lowered."""
        self.aggregates += 1
        return f"{self.rule_label(rule)}.{self.aggregates}"

    def guard(self, rule: Rule) -> tuple[logical.Goal, ...]:
        """The goals of a rule besides what was written. They come last, so that the others keep their positions."""
        return (logical.Scan(logical.guard_of(rule.number), (ZERO,)),) if rule.number in self.guarded else ()

    def clause(
        self,
        head: str,
        head_terms: tuple[str | Constant, ...],
        goals: tuple[logical.Goal, ...],
        recursive_goals: tuple[int, ...] = (),
        rule: Rule | None = None,
        origin: logical.Origin | None = None,
    ) -> logical.Clause:
        self.clauses += 1
        return logical.Clause(self.clauses, head, head_terms, goals, recursive_goals, rule, origin, self.program.wraps)

    def lower_literal(
        self, literal: checked.Atom | checked.Negation | checked.Comparison, is_counted: bool
    ) -> list[list[logical.Goal]]:
        """The alternatives of one literal: only one, except for a negated equivalence and for a negated atom whose
        arguments may have no value. If a fact is read for it, that is the first goal. `is_counted`: every value of a
        wildcard counts."""
        match literal:
            case checked.Atom():
                terms, tests = self.lower_arguments(literal)
                classes = self.relations[literal.relation].classes
                if classes is not None:
                    return [[*self.through_representative(classes, terms, is_counted), *tests]]
                return [[logical.Scan(literal.relation, terms), *tests]]
            case checked.Negation():
                classes = self.relations[literal.atom.relation].classes
                if classes is not None:
                    return self.in_other_classes(literal.atom, classes)
                return self.lower_negation(literal.atom)
            case checked.Comparison():
                return [[literal] if numbered_variable(literal) is None else []]  # see `_with_numbers`
            case _:
                assert_never(literal)

    def lower_arguments(self, atom: checked.Atom) -> tuple[tuple[str | Constant, ...], list[logical.Goal]]:
        """Terms of an atom without wildcards; arguments that are computed become variables with an equation."""
        terms: list[str | Constant] = []
        tests: list[logical.Goal] = []
        for argument in atom.arguments or (ZERO,):
            match argument:
                case Variable():
                    terms.append(argument.name)
                case Constant():
                    terms.append(argument)
                case Apply():
                    variable = self.variable(argument.base)
                    terms.append(variable.name)
                    tests.append(logical.Test("=", argument.base, variable, argument, argument.span))
                case checked.Wildcard():
                    raise AssertionError("wildcards of positive atoms are variables in a checked program")
                case _:
                    assert_never(argument)
        return tuple(terms), tests

    def variable(self, base: Base) -> Variable:
        self.fresh += 1
        return Variable(f"@{self.fresh}", base, NOWHERE)

    # --- equivalences ---------------------------------------------------------------------------------------------

    def through_representative(
        self, classes: str, terms: tuple[str | Constant, ...], is_counted: bool
    ) -> list[logical.Goal]:
        """Goals that say that two values are in one class or, given one value, that it is in some class."""
        representative = self.variable(self.relations[classes].bases[1]).name
        said = terms if is_counted else told_apart(terms)
        return [logical.Scan(classes, (term, representative)) for term in dict.fromkeys(said)]

    def in_other_classes(self, atom: checked.Atom, classes: str) -> list[list[logical.Goal]]:
        """Goals that say that two values are not in one class: the first is in none, or the second is not in its
        class."""
        kept = [argument for argument in atom.arguments if not isinstance(argument, checked.Wildcard)]
        terms, tests = self.lower_arguments(checked.Atom(atom.relation, tuple(kept), atom.span))
        if not kept:
            return [[logical.Absent(self.projection(classes, ()), (ZERO,))]]
        in_none: list[logical.Goal] = [*tests, logical.Absent(self.projection(classes, (0,)), terms[:1])]
        if len(set(terms)) == 1:
            return [*_without_value(tests), in_none]
        representative = self.variable(self.relations[classes].bases[1]).name
        return [
            *_without_value(tests),
            in_none,
            [
                *tests,
                logical.Scan(classes, (terms[0], representative)),
                logical.Absent(classes, (terms[1], representative)),
            ],
        ]

    # --- negation -------------------------------------------------------------------------------------------------

    def lower_negation(self, atom: checked.Atom) -> list[list[logical.Goal]]:
        kept = [i for i, argument in enumerate(atom.arguments) if not isinstance(argument, checked.Wildcard)]
        relation = atom.relation
        if len(kept) < len(atom.arguments):
            relation = self.projection(relation, tuple(kept))
            atom = checked.Atom(relation, tuple(atom.arguments[i] for i in kept), atom.span)
        terms, tests = self.lower_arguments(atom)
        return [[*tests, logical.Absent(relation, terms)], *_without_value(tests)]

    def projection(self, relation: str, columns: tuple[int, ...]) -> str:
        """The hidden relation of the values in some columns."""
        name = f"{logical.HIDDEN}{relation}/{','.join(map(str, columns))}"
        if name not in self.relations:
            source = self.relations[relation]
            self.hidden(name, (source.bases[c] for c in columns), source.rule)
            terms: tuple[logical.Term, ...] = tuple(f"x{c}" if c in columns else None for c in range(source.width))
            head = tuple(f"x{c}" for c in columns) or (ZERO,)
            self.add_stratum((name,), [self.clause(name, head, (logical.Scan(relation, terms),))])
        return name


def _without_value(computed: list[logical.Goal]) -> list[list[logical.Goal]]:
    """Goals that say that one of some arguments has no value, while those before it do."""
    return [
        [*computed[:i], replace(test, operator=NOT + "=", left=test.right)]
        for i, test in enumerate(computed)
        if isinstance(test, logical.Test) and may_lack_value(test.right)
    ]
