"""From the checked program to its logical form (see `logical`)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import assert_never

from elastalog.analysis import program as checked
from elastalog.analysis.program import Apply, Base, CheckedProgram, Constant, Rule, Value, Variable
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.values import NIL
from elastalog.analysis.variable_names import written_name
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.source import Span
from elastalog.planning.logical import (
    HIDDEN,
    Absent,
    AggregateRule,
    Clause,
    Goal,
    LogicalProgram,
    LogicalStratum,
    Origin,
    Scan,
    StoredRelation,
    Term,
    Test,
)
from elastalog.planning.variables import assigned_variables, grounded, variables_in

NOWHERE = Span(0, 0)
ZERO = Constant(0, Base.NUMBER, NOWHERE)


def lower(program: CheckedProgram, guarded: frozenset[int] = frozenset()) -> LogicalProgram:
    """The logical form of a checked program, its strata in evaluation order. `guarded`: the numbers of the rules that
    only hold while the one fact of a hidden relation of theirs does (see `guard_of`)."""
    return _Lowering(program, guarded).run()


def guard_of(rule: int) -> str:
    """The hidden relation that says whether a guarded rule is in force: it holds (0), or nothing."""
    return f"{HIDDEN}rule.{rule}"


@dataclass(frozen=True, slots=True)
class _Alternative:
    """One of the conjunctions that a body stands for. `scans`: see `Origin`."""

    goals: tuple[Goal, ...] = ()
    scans: tuple[int | None, ...] = ()

    def with_literal(self, goals: list[Goal]) -> _Alternative:
        """This and what stands for the next literal."""
        is_read = bool(goals) and isinstance(goals[0], Scan)
        position = sum(isinstance(goal, Scan) for goal in self.goals) if is_read else None
        return _Alternative((*self.goals, *goals), (*self.scans, position))

    def behind(self, scan: Scan) -> _Alternative:
        """A scan that stands for no literal, and this."""
        return _Alternative((scan, *self.goals), tuple(None if at is None else at + 1 for at in self.scans))

    def with_test(self, test: Test) -> _Alternative:
        """This and a test that stands for no literal."""
        return _Alternative((*self.goals, test), self.scans)


@dataclass(frozen=True, slots=True)
class _Range:
    """One conjunction that an aggregate ranges over: an alternative of one of its bodies, and the variables that it
    assigns."""

    alternative: _Alternative
    variables: frozenset[str]
    body: int


class _Lowering:
    def __init__(self, program: CheckedProgram, guarded: frozenset[int]) -> None:
        self.program = program
        self.guarded = guarded
        self.relations = {
            relation.name: StoredRelation(
                relation.name,
                tuple(a.base for a in relation.attributes) or (Base.NUMBER,),
                is_hidden=False,
                choices=relation.choices,
            )
            for relation in program.relations.values()
        }
        self.strata: list[LogicalStratum] = []
        self.stratum_of = {name: stratum.relations for stratum in program.strata for name in stratum.relations}
        self.clauses = 0
        self.aggregates = 0
        self.fresh = 0

    def run(self) -> LogicalProgram:
        for number in sorted(self.guarded):
            guard = guard_of(number)
            self.relations[guard] = StoredRelation(guard, (Base.NUMBER,), is_hidden=True, is_flat=True, rule=number)
            self.add_stratum((guard,))
        for stratum in self.program.strata:
            clauses = [clause for rule in stratum.rules for clause in self.lower_rule(rule, stratum.relations)]
            dominance = [
                clause
                for rule in self.program.subsumptions
                if rule.head.relation.removesuffix(MARK) in stratum.relations
                for clause in self.lower_rule(rule, stratum.relations)
            ]
            # The hidden strata these rules need were appended while they were lowered, hence stand before them.
            self.add_stratum(stratum.relations, clauses, is_recursive=stratum.is_recursive, dominance=dominance)
        return LogicalProgram(self.program, self.relations, tuple(self.strata))

    def add_stratum(
        self,
        relations: tuple[str, ...],
        clauses: Iterable[Clause] = (),
        aggregate: AggregateRule | None = None,
        is_recursive: bool = False,
        dominance: Iterable[Clause] = (),
    ) -> None:
        self.strata.append(
            LogicalStratum(len(self.strata), relations, tuple(clauses), aggregate, is_recursive, tuple(dominance))
        )

    def guard(self, rule: Rule) -> tuple[Goal, ...]:
        """What a rule asks for beyond what was written. Always the last goal: the others keep their positions."""
        return (Scan(guard_of(rule.number), (ZERO,)),) if rule.number in self.guarded else ()

    def lower_rule(self, rule: Rule, own: tuple[str, ...]) -> list[Clause]:
        self.aggregates = 0  # names depend on the rule alone, so that other rules can come and go
        alternatives = [_Alternative()]
        for literal in rule.body:
            choices = self.lower_literal(literal, rule)
            alternatives = [done.with_literal(goals) for done in alternatives for goals in choices]
        clauses = []
        for alternative in alternatives:
            head_terms, extra = self.lower_arguments(rule.head)
            body = (*alternative.goals, *extra, *self.guard(rule))
            recursive = tuple(i for i, goal in enumerate(body) if isinstance(goal, Scan) and goal.relation in own)
            origin = Origin(rule.body, alternative.scans)
            clauses.append(self.clause(rule.head.relation, head_terms, body, recursive, rule, origin))
        return clauses

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

    def lower_inner_body(self, body: tuple[checked.Literal, ...], rule: Rule) -> list[_Alternative]:
        """What a body that an aggregate ranges over stands for. An aggregate within it is lowered once for each
        alternative of what stands before it, whose number is in the names of its relations: stores know these."""
        alternatives = [_Alternative()]
        for literal in body:
            alternatives = [
                done.with_literal(goals) for done in alternatives for goals in self.lower_literal(literal, rule)
            ]
        return alternatives

    def lower_literal(self, literal: checked.Literal, rule: Rule) -> list[list[Goal]]:
        """The alternatives of one literal: one, or two for an aggregate with a default. Where a fact is read for it,
        that is the first goal."""
        match literal:
            case checked.Atom():
                terms, tests = self.lower_arguments(literal)
                return [[Scan(literal.relation, terms), *tests]]
            case checked.Negation():
                return [self.lower_negation(literal.atom)]
            case checked.Comparison():
                return [[Test(literal.operator, literal.base, literal.left, literal.right)]]
            case checked.Aggregation():
                return self.lower_aggregation(literal, rule)
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

    # --- negation -------------------------------------------------------------------------------------------------

    def lower_negation(self, atom: checked.Atom) -> list[Goal]:
        kept = [i for i, argument in enumerate(atom.arguments) if not isinstance(argument, checked.Wildcard)]
        relation = atom.relation
        if len(kept) < len(atom.arguments):
            relation = self.projection(relation, tuple(kept))
            atom = checked.Atom(relation, tuple(atom.arguments[i] for i in kept), atom.span)
        terms, tests = self.lower_arguments(atom)
        return [*tests, Absent(relation, terms)]

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

    # --- aggregates -----------------------------------------------------------------------------------------------

    def lower_aggregation(self, literal: checked.Aggregation, rule: Rule) -> list[list[Goal]]:
        self.aggregates += 1
        label = f"{rule.number or f'{rule.head.relation}{rule.number_in_relation}'}.{self.aggregates}"
        groups = literal.groups
        members, target = self.collect_members(literal, rule, label)
        target_base = Base.NUMBER if literal.target is None else literal.target.base
        name = f"{HIDDEN}{literal.operator}.{label}"
        bases = (*(g.base for g in groups), literal.result.base)
        self.relations[name] = StoredRelation(name, bases, is_hidden=True, rule=rule.number or None)
        aggregate = AggregateRule(
            name, members, len(groups), literal.operator, target, target_base, literal.result.base, rule
        )
        self.add_stratum((name,), aggregate=aggregate)
        group_names = tuple(g.name for g in groups)
        found: list[Goal] = [Scan(name, (*group_names, literal.result.name))]
        if literal.operator not in ("count", "sum"):
            return [found]
        # An empty range has no members, so no aggregate fact: its 0 comes from the absence of the group.
        present = self.projection(name, tuple(range(len(groups))))
        zero = Constant(0.0 if literal.result.base is Base.FLOAT else 0, literal.result.base, literal.span)
        default: list[Goal] = [
            Absent(present, group_names or (ZERO,)),
            Test("=", literal.result.base, literal.result, zero),
        ]
        return [found, default]

    def collect_members(self, literal: checked.Aggregation, rule: Rule, label: str) -> tuple[str, int | None]:
        """The hidden relation of the assignments an aggregate ranges over: its groups, then all other variables, then
        the target if it is computed. Returns it with the column of the target."""
        groups = {g.name: g.base for g in literal.groups}
        columns: dict[str, Base] = {}
        ranges: list[_Range] = []
        for number, body in enumerate(literal.bodies):
            inner = {v.name: v.base for v in assigned_variables(body) if v.name not in groups}
            columns.update(inner)
            ranges.extend(_Range(found, frozenset(inner), number) for found in self.lower_inner_body(body, rule))
        shapes = sorted({each.variables for each in ranges}, key=sorted)
        schema = {**groups, **columns}
        target = literal.target
        if target is not None and not isinstance(target, Variable):
            computed = self.variable(target.base)
            schema[computed.name] = computed.base
            equation = Test("=", target.base, computed, target)
            ranges = [replace(each, alternative=each.alternative.with_test(equation)) for each in ranges]
            target = computed
        bases = list(schema.values())
        # Alternatives over different variables never give the same assignment: a tag keeps them apart.
        is_tagged = len(shapes) > 1
        if is_tagged:
            bases.append(Base.NUMBER)
        members = f"{HIDDEN}members.{label}"
        self.relations[members] = StoredRelation(
            members, tuple(bases) or (Base.NUMBER,), is_hidden=True, rule=rule.number or None
        )
        clauses = []
        for each in ranges:
            alternative = each.alternative
            unbound = [name for name in groups if name not in grounded(alternative.goals)]
            if unbound:
                alternative = alternative.behind(self.group_domain(literal, rule, unbound, label))
            head: list[str | Constant] = [
                Constant(_blank(base), base, NOWHERE) if name in columns and name not in each.variables else name
                for name, base in schema.items()
            ]
            if is_tagged:
                head.append(Constant(shapes.index(each.variables), Base.NUMBER, NOWHERE))
            goals = (*alternative.goals, *self.guard(rule))
            origin = Origin(literal.bodies[each.body], alternative.scans, each.body)
            clauses.append(self.clause(members, tuple(head) or (ZERO,), goals, origin=origin))
        self.add_stratum((members,), clauses)
        return members, None if target is None else list(schema).index(target.name)

    def group_domain(self, literal: checked.Aggregation, rule: Rule, names: list[str], label: str) -> Scan:
        """The values that the rule around an aggregate gives to group variables which the aggregate's body only
        tests."""
        domain = f"{HIDDEN}groups.{label}.{','.join(names)}"
        if domain not in self.relations:
            goals: list[Goal] = []
            for other in rule.body:
                if isinstance(other, checked.Atom | checked.Comparison):
                    (alternative,) = self.lower_literal(other, rule)
                    goals.extend(alternative)
            # More values than needed do no harm, so what is recursive is left out as long as the rest binds the names.
            own = self.stratum_of[rule.head.relation.removesuffix(MARK)]
            goals = [g for g in goals if not (isinstance(g, Scan) and g.relation in own)]
            bound = grounded(tuple(goals))
            goals = [g for g in goals if not isinstance(g, Test) or all(v.name in bound for v in variables_in(g))]
            if not bound.issuperset(names):
                recursive = [atom for atom in rule.body if isinstance(atom, checked.Atom) and atom.relation in own]
                unbound = [name for name in names if name not in bound]
                raise ElastalogError([_unbound_group(self.program, literal, unbound, recursive)])
            bases = {g.name: g.base for g in literal.groups}
            self.relations[domain] = StoredRelation(
                domain, tuple(bases[n] for n in names), is_hidden=True, is_flat=True, rule=rule.number or None
            )
            self.add_stratum((domain,), [self.clause(domain, tuple(names), (*goals, *self.guard(rule)))])
        return Scan(domain, tuple(names))


def _blank(base: Base) -> Value:
    match base:
        case Base.NUMBER | Base.UNSIGNED:
            return 0
        case Base.FLOAT:
            return 0.0
        case Base.SYMBOL:
            return ""
        case Base.RECORD:
            return NIL
        case _:
            assert_never(base)


def _unbound_group(
    program: CheckedProgram, literal: checked.Aggregation, names: list[str], recursive: list[checked.Atom]
) -> Diagnostic:
    listed = ", ".join(f"`{written_name(name)}`" for name in names)
    them = "it" if len(names) == 1 else "them"
    labels = [Label(literal.span, f"tests {listed} without an atom that gives {them} values")]
    for atom in recursive:
        binds = [f"`{written_name(a.name)}`" for a in atom.arguments if isinstance(a, Variable) and a.name in names]
        if binds:
            labels.append(Label(atom.span, f"{', '.join(binds)} gets its values here, by recursion", primary=False))
    return Diagnostic(
        "E0602",
        f"the aggregate only tests {listed}, and the rule binds {them} only by recursion",
        tuple(labels),
        ("an aggregate is evaluated before the recursion starts, once for every value of what it tests",),
        help=f"bind {listed} inside the aggregate's braces with an atom, or by an atom outside the recursion",
        source=program.source,
    )
