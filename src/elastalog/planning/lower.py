"""From the checked program to its logical form (see `logical`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from itertools import count
from typing import assert_never

from elastalog.analysis import program as checked
from elastalog.analysis.negation import may_lack_value
from elastalog.analysis.program import Apply, Base, CheckedProgram, Constant, Rule, Variable
from elastalog.analysis.subsumptions import MARK
from elastalog.planning.equivalences import depends_on_itself, kept_as_classes, told_apart
from elastalog.planning.logical import (
    GIVEN,
    GUARD,
    HIDDEN,
    LINKS,
    Absent,
    AggregateRule,
    Clause,
    EquivalenceRule,
    Goal,
    LogicalProgram,
    LogicalStratum,
    Origin,
    Scan,
    StoredRelation,
    Term,
    Test,
)
from elastalog.planning.lower_aggregates import NOWHERE, ZERO, lower_body
from elastalog.planning.lower_numbering import numbered_variable, with_numbers
from elastalog.planning.needed_groups import Needed
from elastalog.planning.ranked import NotRanked, Ranked, ranked_of
from elastalog.planning.variables import bases_of
from elastalog.syntax.keywords import NOT


def lower(
    program: CheckedProgram, guarded: frozenset[int] = frozenset(), equivalences: Collection[str] | None = None
) -> LogicalProgram:
    """The logical form of a checked program, its strata in evaluation order. `guarded`: the numbers of the rules that
    only hold while the one fact of a hidden relation of theirs does (see `guard_of`). `equivalences`: the relations
    that are kept as classes, all that can be unless given."""
    if equivalences is None:
        equivalences = kept_as_classes(program)
    return Lowering(program, guarded, equivalences).run()


def classes_of(equivalence: str) -> str:
    """The hidden relation of the members of an equivalence, each with its representative."""
    return f"{HIDDEN}classes.{equivalence}"


def guard_of(rule: int) -> str:
    """The hidden relation that says whether a guarded rule is in force: it holds (0), or nothing."""
    return f"{GUARD}{rule}"


def renumbered(relation: str, old: int, new: int) -> str:
    """What a hidden relation of a rule is called when the rule has another number."""
    kind, dot, rest = relation.partition(f".{old}.")
    return f"{kind}.{new}.{rest}" if dot else relation


class Lowering:
    """What has been lowered of a program. Hidden relations of a rule are named by its number."""

    def __init__(self, program: CheckedProgram, guarded: frozenset[int], equivalences: Collection[str]) -> None:
        self.program = program
        self.guarded = guarded
        self.relations = {
            relation.name: StoredRelation(
                relation.name,
                tuple(a.base for a in relation.attributes) or (Base.NUMBER,),
                is_hidden=False,
                choices=relation.choices,
                classes=classes_of(relation.name) if relation.name in equivalences else None,
            )
            for relation in program.relations.values()
        }
        self.strata: list[LogicalStratum] = []
        self.merged = frozenset(
            name for name in equivalences if name in program.relations and depends_on_itself(name, program)
        )
        """The equivalences whose classes are formed in their own recursion."""
        for name in self.merged:
            self.add_classes(name)
        self.stratum_of = {name: self.with_merged(s.relations) for s in program.strata for name in s.relations}
        self.clauses = 0
        self.aggregates = 0
        self.fresh = 0
        self.handled: list[Scan] = []
        """What the rule that is being lowered holds for and nothing else: see `needed_groups`."""
        self.needed: list[Needed] = []
        """What rules of the stratum that is being lowered need."""

    def run(self) -> LogicalProgram:
        for number in sorted(self.guarded):
            guard = guard_of(number)
            self.relations[guard] = StoredRelation(guard, (Base.NUMBER,), is_hidden=True, is_flat=True, rule=number)
            self.add_stratum((guard,))
        for stratum in self.program.strata:
            self.lower_stratum(stratum)
        return LogicalProgram(self.program, self.relations, tuple(self.strata))

    def lower_stratum(self, stratum: checked.Stratum) -> None:
        """Appends a stratum; before it those that it needs for itself, behind it those that are made of it."""
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
        clauses += [self.handing_on(clause.head.removesuffix(MARK)) for clause in _one_each(dominance)]
        relations = (*own, *(needed.relation for needed in inside))
        clauses += [self.needing(needed, own) for needed in inside]
        merges = tuple(EquivalenceRule(classes_of(name), name) for name in own if name in self.merged)
        is_recursive = stratum.is_recursive and (not by_classes or bool(merges))
        ranked, why = self.rank(relations, clauses, dominance)
        self.add_stratum(
            relations, clauses, is_recursive=is_recursive, dominance=dominance, merges=merges, ranked=ranked, why=why
        )
        for name in by_classes - self.merged:
            self.add_classes(name)
            self.add_stratum((classes_of(name),), equivalence=EquivalenceRule(classes_of(name), name))
        for needed in above:
            self.add_stratum((needed.relation,), [self.needing(needed, ())])
        self.needed.clear()

    def with_merged(self, relations: tuple[str, ...]) -> tuple[str, ...]:
        """The relations of a stratum, and the classes that are formed in it."""
        return (*relations, *(classes_of(name) for name in relations if name in self.merged))

    def add_stratum(
        self,
        relations: tuple[str, ...],
        clauses: Iterable[Clause] = (),
        aggregate: AggregateRule | None = None,
        is_recursive: bool = False,
        dominance: Iterable[Clause] = (),
        equivalence: EquivalenceRule | None = None,
        merges: tuple[EquivalenceRule, ...] = (),
        ranked: Ranked | None = None,
        why: str = "",
    ) -> None:
        number, own = len(self.strata), tuple(clauses)
        self.strata.append(
            LogicalStratum(
                number, relations, own, aggregate, is_recursive, tuple(dominance), equivalence, merges, ranked, why
            )
        )

    def rank(
        self, relations: tuple[str, ...], clauses: list[Clause], dominance: list[Clause]
    ) -> tuple[Ranked | None, str]:
        """How a stratum is evaluated in the order of values, or why it is not."""
        if not dominance:
            return None, ""
        try:
            return ranked_of(relations, clauses, dominance, self.relations, self.links), ""
        except NotRanked as error:
            return None, str(error)

    def links(self, clause: Clause, names: Sequence[str], goals: tuple[Goal, ...]) -> str:
        """The hidden relation of some variables of a clause, for which goals hold."""
        assert clause.rule is not None
        number = clause.rule.number
        relation = next(n for i in count(1) if (n := f"{LINKS}{number}.{i}") not in self.relations)
        bases = bases_of(goals, self.relations)
        columns = tuple(bases[name] for name in names) or (Base.NUMBER,)
        self.relations[relation] = StoredRelation(relation, columns, is_hidden=True, rule=number)
        self.add_stratum((relation,), [self.clause(relation, tuple(names) or (ZERO,), goals)])
        return relation

    def add_classes(self, relation: str) -> None:
        """The relation of the classes of an equivalence."""
        classes = classes_of(relation)
        self.relations[classes] = StoredRelation(classes, self.relations[relation].bases, is_hidden=True)

    def own_of(self, rule: Rule) -> tuple[str, ...]:
        """The relations of the stratum of a rule's head."""
        return self.stratum_of[rule.head.relation.removesuffix(MARK)]

    def rule_label(self, rule: Rule) -> str:
        """What names of hidden relations call a rule; subsumptions have no number."""
        return str(rule.number or f"{rule.head.relation}{rule.number_in_relation}")

    def label(self, rule: Rule) -> str:
        """What they call the next aggregate of the rule that is being lowered."""
        self.aggregates += 1
        return f"{self.rule_label(rule)}.{self.aggregates}"

    def guard(self, rule: Rule) -> tuple[Goal, ...]:
        """What a rule asks for beyond what was written. Always the last goal: the others keep their positions."""
        return (Scan(guard_of(rule.number), (ZERO,)),) if rule.number in self.guarded else ()

    def lower_rule(self, rule: Rule, own: tuple[str, ...]) -> list[Clause]:
        self.aggregates = 0  # names depend on the rule alone, so that other rules can come and go
        self.handled.clear()
        clauses = []
        for alternative in with_numbers(self, rule, lower_body(self, rule.body, rule, None)):
            head_terms, extra = self.lower_arguments(rule.head)
            body = (*alternative.goals, *extra, *self.handled, *self.guard(rule))
            origin = Origin(rule.body, alternative.scans)
            clauses.append(self.clause(rule.head.relation, head_terms, body, _recursive(body, own), rule, origin))
        return clauses

    def handing_on(self, relation: str) -> Clause:
        """The clause that hands explicit facts of a relation on to it."""
        given, stored = GIVEN + relation, self.relations[relation]
        self.relations[relation] = replace(stored, given=given)
        self.relations[given] = StoredRelation(given, stored.bases, is_hidden=True)
        self.add_stratum((given,))
        terms = tuple(f"x{column}" for column in range(stored.width))
        return self.clause(relation, terms, (Scan(given, terms),))

    def needing(self, needed: Needed, own: tuple[str, ...]) -> Clause:
        """The clause that says which groups a rule needs, in a stratum of which some relations are `own`."""
        return self.clause(needed.relation, needed.names, needed.goals, _recursive(needed.goals, own))

    def clause(
        self,
        head: str,
        head_terms: tuple[str | Constant, ...],
        goals: tuple[Goal, ...],
        recursive_goals: tuple[int, ...] = (),
        rule: Rule | None = None,
        origin: Origin | None = None,
    ) -> Clause:
        self.clauses += 1
        return Clause(self.clauses, head, head_terms, goals, recursive_goals, rule, origin, self.program.wraps)

    def lower_literal(
        self, literal: checked.Atom | checked.Negation | checked.Comparison, is_counted: bool
    ) -> list[list[Goal]]:
        """The alternatives of one literal: one, but for a negated equivalence, and a negated atom whose arguments may
        have no value. Where a fact is read for it, that is the first goal. `is_counted`: every value of a wildcard
        counts."""
        match literal:
            case checked.Atom():
                terms, tests = self.lower_arguments(literal)
                classes = self.relations[literal.relation].classes
                if classes is not None:
                    return [[*self.through_representative(classes, terms, is_counted), *tests]]
                return [[Scan(literal.relation, terms), *tests]]
            case checked.Negation():
                classes = self.relations[literal.atom.relation].classes
                if classes is not None:
                    return self.in_other_classes(literal.atom, classes)
                return self.lower_negation(literal.atom)
            case checked.Comparison():
                if numbered_variable(literal) is not None:
                    return [[]]  # see `with_numbers`
                return [[Test(literal.operator, literal.base, literal.left, literal.right)]]
            case _:
                assert_never(literal)

    def lower_arguments(self, atom: checked.Atom) -> tuple[tuple[str | Constant, ...], list[Goal]]:
        """Terms of an atom without wildcards; arguments that are computed become variables with an equation."""
        terms: list[str | Constant] = []
        tests: list[Goal] = []
        for argument in atom.arguments or (ZERO,):
            match argument:
                case Variable():
                    terms.append(argument.name)
                case Constant():
                    terms.append(argument)
                case Apply():
                    variable = self.variable(argument.base)
                    terms.append(variable.name)
                    tests.append(Test("=", argument.base, variable, argument))
                case checked.Wildcard():
                    raise AssertionError("wildcards of positive atoms are variables in a checked program")
                case _:
                    assert_never(argument)
        return tuple(terms), tests

    def variable(self, base: Base) -> Variable:
        self.fresh += 1
        return Variable(f"@{self.fresh}", base, NOWHERE)

    # --- equivalences ---------------------------------------------------------------------------------------------

    def through_representative(self, classes: str, terms: tuple[str | Constant, ...], is_counted: bool) -> list[Goal]:
        """That two values are in one class; of one value, that it is in some class."""
        representative = self.variable(self.relations[classes].bases[1]).name
        said = terms if is_counted else told_apart(terms)
        return [Scan(classes, (term, representative)) for term in dict.fromkeys(said)]

    def in_other_classes(self, atom: checked.Atom, classes: str) -> list[list[Goal]]:
        """That two values are not in one class: the first is in none, or the second is not in that of the first."""
        kept = [argument for argument in atom.arguments if not isinstance(argument, checked.Wildcard)]
        terms, tests = self.lower_arguments(checked.Atom(atom.relation, tuple(kept), atom.span))
        if not kept:
            return [[Absent(self.projection(classes, ()), (ZERO,))]]
        in_none: list[Goal] = [*tests, Absent(self.projection(classes, (0,)), terms[:1])]
        if len(set(terms)) == 1:
            return [*_without_value(tests), in_none]
        representative = self.variable(self.relations[classes].bases[1]).name
        return [
            *_without_value(tests),
            in_none,
            [*tests, Scan(classes, (terms[0], representative)), Absent(classes, (terms[1], representative))],
        ]

    # --- negation -------------------------------------------------------------------------------------------------

    def lower_negation(self, atom: checked.Atom) -> list[list[Goal]]:
        kept = [i for i, argument in enumerate(atom.arguments) if not isinstance(argument, checked.Wildcard)]
        relation = atom.relation
        if len(kept) < len(atom.arguments):
            relation = self.projection(relation, tuple(kept))
            atom = checked.Atom(relation, tuple(atom.arguments[i] for i in kept), atom.span)
        terms, tests = self.lower_arguments(atom)
        return [[*tests, Absent(relation, terms)], *_without_value(tests)]

    def projection(self, relation: str, columns: tuple[int, ...]) -> str:
        """The hidden relation of the values in some columns."""
        name = f"{HIDDEN}{relation}/{','.join(map(str, columns))}"
        if name not in self.relations:
            source = self.relations[relation]
            bases = tuple(source.bases[c] for c in columns)
            self.relations[name] = StoredRelation(name, bases or (Base.NUMBER,), is_hidden=True, rule=source.rule)
            terms: tuple[Term, ...] = tuple(f"x{c}" if c in columns else None for c in range(source.width))
            head = tuple(f"x{c}" for c in columns) or (ZERO,)
            self.add_stratum((name,), [self.clause(name, head, (Scan(relation, terms),))])
        return name


def _without_value(computed: list[Goal]) -> list[list[Goal]]:
    """That one of some arguments has no value, and those before it do."""
    return [
        [*computed[:i], Test(NOT + "=", test.base, test.right, test.right)]
        for i, test in enumerate(computed)
        if isinstance(test, Test) and may_lack_value(test.right)
    ]


def _one_each(clauses: list[Clause]) -> Iterable[Clause]:
    """The first clause for each head."""
    return {clause.head: clause for clause in reversed(clauses)}.values()


def _recursive(goals: tuple[Goal, ...], own: tuple[str, ...]) -> tuple[int, ...]:
    """The scans of relations of a clause's own stratum."""
    return tuple(i for i, goal in enumerate(goals) if isinstance(goal, Scan) and goal.relation in own)
