"""From the checked program to its logical form (see `logical`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from elastalog.analysis import program as checked
from elastalog.analysis.program import Apply, Base, CheckedProgram, Constant, Expression, Rule, Value, Variable
from elastalog.analysis.structures import is_constructor
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.values import NIL
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label
from elastalog.diagnostics.source import Span
from elastalog.planning.logical import (
    Absent,
    AggregateRule,
    Clause,
    Goal,
    LogicalProgram,
    LogicalStratum,
    Scan,
    StoredRelation,
    Term,
    Test,
)

NOWHERE = Span(0, 0)
ZERO = Constant(0, Base.NUMBER, NOWHERE)


def lower(program: CheckedProgram, guarded: frozenset[int] = frozenset()) -> LogicalProgram:
    """The logical form of a checked program, its strata in evaluation order. `guarded`: the numbers of the rules that
    only hold while the one fact of a hidden relation of theirs does (see `guard_of`)."""
    return _Lowering(program, guarded).run()


def guard_of(rule: int) -> str:
    """The hidden relation that says whether a guarded rule is in force: it holds (0), or nothing."""
    return f"@rule.{rule}"


def variables_of(expression: Expression) -> Iterator[Variable]:
    """The variables of an expression, from left to right, with repetitions."""
    match expression:
        case Variable():
            yield expression
        case Constant():
            pass
        case Apply():
            for argument in expression.arguments:
                yield from variables_of(argument)
        case _:
            assert_never(expression)


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
        """What a rule asks for beyond what was written. Always the last goal, where those who read clauses back as
        rules do not look."""
        return (Scan(guard_of(rule.number), (ZERO,)),) if rule.number in self.guarded else ()

    def lower_rule(self, rule: Rule, own: tuple[str, ...]) -> list[Clause]:
        self.aggregates = 0  # names depend on the rule alone, so that other rules can come and go
        versions: list[list[Goal]] = [[]]
        for literal in rule.body:
            alternatives = self.lower_literal(literal, rule)
            versions = [done + goals for done in versions for goals in alternatives]
        clauses = []
        for goals in versions:
            head_terms, extra = self.lower_arguments(rule.head)
            body = (*goals, *extra, *self.guard(rule))
            recursive = tuple(i for i, goal in enumerate(body) if isinstance(goal, Scan) and goal.relation in own)
            clauses.append(self.clause(rule.head.relation, head_terms, body, recursive, rule))
        return clauses

    def clause(
        self,
        head: str,
        head_terms: tuple[str | Constant, ...],
        goals: tuple[Goal, ...],
        recursive_goals: tuple[int, ...] = (),
        rule: Rule | None = None,
    ) -> Clause:
        self.clauses += 1
        return Clause(self.clauses, head, head_terms, goals, recursive_goals, rule)

    def lower_body(self, body: tuple[checked.Literal, ...], rule: Rule) -> list[tuple[Goal, ...]]:
        versions: list[tuple[Goal, ...]] = [()]
        for literal in body:
            versions = [done + tuple(goals) for done in versions for goals in self.lower_literal(literal, rule)]
        return versions

    def lower_literal(self, literal: checked.Literal, rule: Rule) -> list[list[Goal]]:
        """The alternatives of one literal: one, or two for an aggregate with a default."""
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
        name = f"@{relation}/{','.join(map(str, columns))}"
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
        label = f"{rule.number}.{self.aggregates}"
        groups = literal.groups
        members, target = self.collect_members(literal, rule, label)
        target_base = Base.NUMBER if literal.target is None else literal.target.base
        name = f"@{literal.operator}.{label}"
        bases = (*(g.base for g in groups), literal.result.base)
        self.relations[name] = StoredRelation(name, bases, is_hidden=True, rule=rule.number)
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
        versions: list[tuple[tuple[Goal, ...], frozenset[str]]] = []
        for body in literal.bodies:
            inner = {v.name: v.base for v in _assigned_variables(body) if v.name not in groups}
            columns.update(inner)
            versions.extend((goals, frozenset(inner)) for goals in self.lower_body(body, rule))
        shapes = sorted({variables for _, variables in versions}, key=sorted)
        schema = {**groups, **columns}
        target = literal.target
        if target is not None and not isinstance(target, Variable):
            computed = self.variable(target.base)
            schema[computed.name] = computed.base
            equation = Test("=", target.base, computed, target)
            versions = [((*goals, equation), variables | {computed.name}) for goals, variables in versions]
            shapes = [variables | {computed.name} for variables in shapes]
            target = computed
        bases = list(schema.values())
        # Alternatives over different variables never give the same assignment: a tag keeps them apart.
        is_tagged = len(shapes) > 1
        if is_tagged:
            bases.append(Base.NUMBER)
        members = f"@members.{label}"
        self.relations[members] = StoredRelation(
            members, tuple(bases) or (Base.NUMBER,), is_hidden=True, rule=rule.number
        )
        clauses = []
        for goals, variables in versions:
            unbound = [name for name in groups if name not in grounded(goals)]
            if unbound:
                goals = (self.group_domain(literal, rule, unbound, label), *goals)
            head: list[str | Constant] = [
                name if name in groups or name in variables else Constant(_blank(base), base, NOWHERE)
                for name, base in schema.items()
            ]
            if is_tagged:
                head.append(Constant(shapes.index(variables), Base.NUMBER, NOWHERE))
            clauses.append(self.clause(members, tuple(head) or (ZERO,), (*goals, *self.guard(rule))))
        self.add_stratum((members,), clauses)
        return members, None if target is None else list(schema).index(target.name)

    def group_domain(self, literal: checked.Aggregation, rule: Rule, names: list[str], label: str) -> Scan:
        """The values that the rule around an aggregate gives to group variables which the aggregate's body only
        tests."""
        domain = f"@groups.{label}.{','.join(names)}"
        if domain not in self.relations:
            goals: list[Goal] = []
            for other in rule.body:
                if isinstance(other, checked.Atom | checked.Comparison):
                    (alternative,) = self.lower_literal(other, rule)
                    goals.extend(alternative)
            # More values than needed do no harm, so what is recursive is left out as long as the rest binds the names.
            own = self.stratum_of[rule.head.relation]
            goals = [g for g in goals if not (isinstance(g, Scan) and g.relation in own)]
            bound = grounded(tuple(goals))
            goals = [g for g in goals if not isinstance(g, Test) or all(v.name in bound for v in variables_in(g))]
            if not bound.issuperset(names):
                recursive = [atom for atom in rule.body if isinstance(atom, checked.Atom) and atom.relation in own]
                unbound = [name for name in names if name not in bound]
                raise ElastalogError([_unbound_group(self.program, literal, unbound, recursive)])
            bases = {g.name: g.base for g in literal.groups}
            self.relations[domain] = StoredRelation(
                domain, tuple(bases[n] for n in names), is_hidden=True, is_flat=True, rule=rule.number
            )
            self.add_stratum((domain,), [self.clause(domain, tuple(names), (*goals, *self.guard(rule)))])
        return Scan(domain, tuple(names))


def grounded(goals: tuple[Goal, ...]) -> set[str]:
    """The variables that a conjunction binds: by scans, and by equations over variables it binds."""
    bound = {term for goal in goals if isinstance(goal, Scan) for term in goal.terms if isinstance(term, str)}
    equations = [goal for goal in goals if isinstance(goal, Test) and goal.operator == "="]
    grows = True
    while grows:
        grows = False
        for test in equations:
            parts = constructor_of(test)
            if parts is not None and isinstance(test.left, Variable) and test.left.name in bound:
                inner = {v.name for v in variables_of(parts)}
                grows = grows or not inner <= bound
                bound |= inner
            for side, other in ((test.left, test.right), (test.right, test.left)):
                if (
                    isinstance(side, Variable)
                    and side.name not in bound
                    and all(v.name in bound for v in variables_of(other))
                ):
                    bound.add(side.name)
                    grows = True
    return bound


def constructor_of(test: Test) -> Apply | None:
    """What builds and takes apart the variable on the left, if the test is such an equation."""
    right = test.right
    return right if test.operator == "=" and isinstance(right, Apply) and is_constructor(right.functor) else None


def variables_in(test: Test) -> list[Variable]:
    """The variables of both sides."""
    return [*variables_of(test.left), *variables_of(test.right)]


def _assigned_variables(body: tuple[checked.Literal, ...]) -> Iterator[Variable]:
    """The variables that an assignment of an aggregate's body gives a value to."""
    for literal in body:
        match literal:
            case checked.Atom():
                for argument in literal.arguments:
                    if not isinstance(argument, checked.Wildcard):
                        yield from variables_of(argument)
            case checked.Comparison():
                yield from variables_of(literal.left)
                yield from variables_of(literal.right)
            case checked.Aggregation():
                yield literal.result
            case checked.Negation():
                pass
            case _:
                assert_never(literal)


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
    listed = ", ".join(f"`{name}`" for name in names)
    them = "it" if len(names) == 1 else "them"
    labels = [Label(literal.span, f"tests {listed} without an atom that gives {them} values")]
    for atom in recursive:
        binds = [f"`{a.name}`" for a in atom.arguments if isinstance(a, Variable) and a.name in names]
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
