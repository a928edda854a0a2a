"""Bodies with aggregates in their logical form (see `logical`).

A count or sum of nothing is 0. One in a body: the body has two alternatives, with a fact of the group or without any.
Several: each is folded for all groups that the rest of the body can ask for, the *domain*, so that there is always a
fact and the body stays one conjunction. Where only recursion says which groups there are, the domain is what members
there are of any of the aggregates over these variables, and one more alternative stands for groups that none has; for
variables that the aggregate only tests see `needed_groups`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field, replace
from itertools import product
from typing import Final

from elastalog.analysis import program as checked
from elastalog.analysis.program import Base, CheckedProgram, Constant, Rule, Value, Variable, names_of
from elastalog.analysis.subsumptions import MARK
from elastalog.analysis.values import NIL
from elastalog.analysis.variables import is_implied_name, written_name
from elastalog.diagnostics.diagnostic import Diagnostic, ElastalogError, Label, finding
from elastalog.diagnostics.source import NOWHERE
from elastalog.late import dataclass
from elastalog.planning.goals import assigned_variables, grounded
from elastalog.planning.logical import HIDDEN, Absent, AggregateRule, Goal, Origin, Scan, Term, Test
from elastalog.planning.lower_literals import ZERO, Lowering
from elastalog.planning.needed_groups import Scope, await_groups

MOST_GROUPINGS: Final = 4
"""Lists of variables that only recursion gives values, and that counts and sums of one body are grouped by: each
doubles the clauses. Beyond, these groups are handled as they are needed."""

MOST_JUDGED: Final = 8
"""Such lists in a subsumption, for which groups cannot be handled later: with more it is refused."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """One of the conjunctions that a body stands for. `scans`: see `Origin`."""

    goals: tuple[Goal, ...] = ()
    scans: tuple[int | None, ...] = ()

    def with_literal(self, literal: checked.Literal, goals: Sequence[Goal]) -> Alternative:
        """This alternative, followed by the goals of the next literal."""
        is_read = bool(goals) and isinstance(goals[0], Scan) and not isinstance(literal, checked.Negation)
        position = sum(isinstance(goal, Scan) for goal in self.goals) if is_read else None
        return Alternative((*self.goals, *goals), (*self.scans, position))

    def behind(self, scan: Scan) -> Alternative:
        """This alternative after a scan that stands for no literal."""
        return Alternative((scan, *self.goals), tuple(None if at is None else at + 1 for at in self.scans))


def lower_body(
    lowering: Lowering, body: tuple[checked.Literal, ...], rule: Rule, around: Scope | None
) -> list[Alternative]:
    """The alternatives that a body stands for: of a rule, or of an aggregate within the scope `around`."""
    choices = {
        i: lowering.lower_literal(literal, is_counted=around is not None)
        for i, literal in enumerate(body)
        if not isinstance(literal, checked.Aggregation)
    }
    plain = [dict(zip(choices, chosen, strict=True)) for chosen in product(*choices.values())]
    aggregations = {i: literal for i, literal in enumerate(body) if isinstance(literal, checked.Aggregation)}
    if not aggregations:
        return [_conjunction(body, goals) for goals in plain]
    own = lowering.own_of(rule)
    positive = [
        goal for i, (goals, *_) in choices.items() if not isinstance(body[i], checked.Negation) for goal in goals
    ]
    recursive = tuple(goal for goal in positive if isinstance(goal, Scan) and goal.relation in own)
    scope = Scope([goal for goal in positive if goal not in recursive], around, recursive)
    return _BodyWithAggregates(lowering, rule, body, plain, aggregations, scope).alternatives()


def _conjunction(body: tuple[checked.Literal, ...], goals: Mapping[int, Sequence[Goal]]) -> Alternative:
    """The conjunction of all literals of a body, each given by its goals."""
    alternative = Alternative()
    for i, literal in enumerate(body):
        alternative = alternative.with_literal(literal, goals[i])
    return alternative


def _has_default(literal: checked.Aggregation) -> bool:
    return literal.operator in ("count", "sum")


@dataclass(slots=True)
class _BodyWithAggregates:
    """One body while its aggregates become goals. `plain`: the goals of all other literals, for each choice among their
    alternatives. `groupings`: the counts and sums that have alternatives; those grouped by the same variables have one
    together. `present`: the hidden relation of the groups that have members, for each of these."""

    lowering: Lowering
    rule: Rule
    body: tuple[checked.Literal, ...]
    plain: list[dict[int, list[Goal]]]
    aggregations: dict[int, checked.Aggregation]
    scope: Scope
    goals: dict[int, list[Goal]] = field(default_factory=dict)
    groupings: dict[tuple[str, ...], list[int]] = field(default_factory=dict)
    present: dict[tuple[str, ...], str] = field(default_factory=dict)

    def alternatives(self) -> list[Alternative]:
        has_several = sum(map(_has_default, self.aggregations.values())) > 1
        tested = {group.name for literal in self.aggregations.values() for group in literal.groups}
        has_too_many = self._has_too_many_groupings()
        labels = {}
        for i in self._in_order():
            literal = self.aggregations[i]
            names = tuple(group.name for group in literal.groups)
            labels[i] = self.lowering.label(self.rule)
            domain = None
            if _has_default(literal):
                is_tested = literal.result.name in tested
                if (has_several or is_tested) and names:
                    is_required = is_tested or has_too_many
                    domain = self._required_domain(literal, names) if is_required else self._domain(literal, names)
                if not (has_several or is_tested) or (names and domain is None):
                    self.groupings.setdefault(names, []).append(i)
                    continue
            self._fold(i, labels[i], self._members(i, labels[i]), _has_default(literal), domain)
            self.scope.goals.extend(self.goals[i])
        for names, together in self.groupings.items():
            self._fold_together(names, together, labels)
        return [
            self._alternative(plain, chosen)
            for plain in self.plain
            for chosen in product((True, False), repeat=len(self.groupings))
        ]

    def _has_too_many_groupings(self) -> bool:
        """Whether counts and sums are grouped by too many lists of variables to handle empty groups by alternatives,
        which is the only way in a subsumption."""
        lists = {
            tuple(g.name for g in literal.groups) for literal in self.aggregations.values() if _has_default(literal)
        }
        number = sum(self.scope.binding(names) is None for names in lists)
        if number > MOST_JUDGED and self.rule.head.relation.endswith(MARK):
            source = self.lowering.program.source
            raise ElastalogError([finding("E0228", self.rule.span, source=source, number=number, most=MOST_JUDGED)])
        return number > MOST_GROUPINGS and not self.rule.head.relation.endswith(MARK)

    def _in_order(self) -> Iterable[int]:
        """The aggregates, each after those whose results it is grouped by."""
        left = dict(self.aggregations)
        while left:
            results = {literal.result.name for literal in left.values()}
            ready = [i for i, a in left.items() if not any(group.name in results for group in a.groups)]
            for i in ready or list(left):
                yield i
                del left[i]

    def _alternative(self, plain: dict[int, list[Goal]], chosen: tuple[bool, ...]) -> Alternative:
        """The conjunction in which the groups of some groupings exist, and those of the others do not."""
        absent = {names for names, is_there in zip(self.groupings, chosen, strict=True) if not is_there}
        goals = {**plain, **self.goals}
        for i, literal in self.aggregations.items():
            names = tuple(group.name for group in literal.groups)
            if names in absent and i in self.groupings[names]:
                is_first, result = i == min(self.groupings[names]), literal.result
                goals[i] = [Absent(self.present[names], names or (ZERO,))] if is_first else []
                nothing = Constant(_BLANK[result.base], result.base, literal.span)
                goals[i].append(Test("=", result.base, result, nothing, literal.span))
        return _conjunction(self.body, goals)

    # --- folding ---------------------------------------------------------------------------------------------------

    def _fold(
        self, i: int, label: str, found: tuple[str, int | None], is_total: bool, domain: str | None
    ) -> AggregateRule:
        """Folds the members of an aggregate and lets the body read the result."""
        literal, rule, lowering = self.aggregations[i], self.rule, self.lowering
        members, target = found
        target_base = Base.NUMBER if literal.target is None else literal.target.base
        name = f"{HIDDEN}{literal.operator}.{label}"
        lowering.hidden(name, (*(group.base for group in literal.groups), literal.result.base), rule.number)
        aggregate = AggregateRule(
            name, members, len(literal.groups), literal.operator, target, target_base, literal.result.base, rule,
            literal.span, is_total, domain,
        )  # fmt: skip
        lowering.add_stratum((name,), aggregate=aggregate)
        self.goals[i] = [Scan(name, (*(group.name for group in literal.groups), literal.result.name))]
        return aggregate

    def _fold_together(self, names: tuple[str, ...], together: list[int], labels: dict[int, str]) -> None:
        """Folds aggregates that are grouped by the same variables, each for every group that one of them has."""
        lowering, columns = self.lowering, range(len(names))
        if len(together) == 1:
            (i,) = together
            folded = self._fold(i, labels[i], self._members(i, labels[i]), is_total=False, domain=None)
            self.present[names] = lowering.projection(folded.relation, tuple(columns))
            return
        found = {i: self._members(i, labels[i]) for i in together}
        name = f"{HIDDEN}present.{lowering.rule_label(self.rule)}.{','.join(names)}"
        groups = self.aggregations[together[0]].groups
        lowering.hidden(name, (group.base for group in groups), self.rule.number, is_flat=True)
        clauses = []
        for members, _ in found.values():
            terms: tuple[Term, ...] = tuple(
                names[column] if column in columns else None for column in range(lowering.relations[members].width)
            )
            clauses.append(lowering.clause(name, names, (Scan(members, terms),)))
        lowering.add_stratum((name,), clauses)
        self.present[names] = name
        for i in together:
            self._fold(i, labels[i], found[i], is_total=True, domain=name)

    def _members(self, i: int, label: str) -> tuple[str, int | None]:
        """The hidden relation of the assignments an aggregate ranges over: its groups, then all other variables, then
        the target if it is computed. Returns it with the column of the target."""
        literal, rule, lowering = self.aggregations[i], self.rule, self.lowering
        groups = {g.name: g.base for g in literal.groups}
        columns: dict[str, Base] = {}
        told = () if literal.target is None else tuple(names_of(literal.target))
        # What it ranges over: alternatives of its bodies, with the variables that they assign and the body's number.
        ranges: list[tuple[Alternative, frozenset[str], int]] = []
        for number, body in enumerate(literal.bodies):
            inner = {v.name: v.base for v in assigned_variables(body) if v.name in told or not is_implied_name(v.name)}
            inner = {name: base for name, base in inner.items() if name not in groups}
            columns.update(inner)
            found = lower_body(lowering, body, rule, self.scope)
            ranges.extend((alternative, frozenset(inner), number) for alternative in found)
        shapes = sorted({variables for _, variables, _ in ranges}, key=sorted)
        schema = {**groups, **columns}
        target = literal.target
        if target is not None and not isinstance(target, Variable):
            computed = lowering.variable(target.base)
            schema[computed.name] = computed.base
            equation = Test("=", target.base, computed, target, target.span)
            ranges = [(replace(each, goals=(*each.goals, equation)), own, number) for each, own, number in ranges]
            target = computed
        bases = list(schema.values())
        # Alternatives over different variables never give the same assignment: a tag keeps them apart.
        is_tagged = len(shapes) > 1
        if is_tagged:
            bases.append(Base.NUMBER)
        members = lowering.hidden(f"{HIDDEN}members.{label}", bases, rule.number)
        clauses = []
        for alternative, variables, number in ranges:
            unbound = tuple(name for name in groups if name not in grounded(alternative.goals))
            if unbound:
                domain = self._required_domain(literal, unbound)
                alternative = alternative.behind(Scan(domain, unbound))
            head: list[str | Constant] = [
                Constant(_BLANK[base], base, NOWHERE) if name in columns and name not in variables else name
                for name, base in schema.items()
            ]
            if is_tagged:
                head.append(Constant(shapes.index(variables), Base.NUMBER, NOWHERE))
            goals = (*alternative.goals, *lowering.guard(rule))
            origin = Origin(literal.bodies[number], alternative.scans, number)
            clauses.append(lowering.clause(members, tuple(head) or (ZERO,), goals, origin=origin))
        lowering.add_stratum((members,), clauses)
        return members, None if target is None else list(schema).index(target.name)

    def _domain(self, literal: checked.Aggregation, names: tuple[str, ...]) -> str | None:
        """The hidden relation of the values that group variables can have; None if only recursion gives them values.
        More values than needed do no harm."""
        lowering, rule = self.lowering, self.rule
        name = f"{HIDDEN}groups.{lowering.rule_label(rule)}.{','.join(names)}"
        if name not in lowering.relations:
            goals = self.scope.binding(names)
            if goals is None:
                return None
            bases = {group.name: group.base for group in literal.groups}
            lowering.hidden(name, (bases[n] for n in names), rule.number, is_flat=True)
            lowering.add_stratum((name,), [lowering.clause(name, names, (*goals, *lowering.guard(rule)))])
        return name

    def _required_domain(self, literal: checked.Aggregation, names: tuple[str, ...]) -> str:
        """The domain of an aggregate; if necessary, of the values that recursion will have found."""
        is_known = self.scope.binding(names) is not None
        if not is_known and not await_groups(self.lowering, self.rule, self.scope, names):
            own = self.lowering.own_of(self.rule)
            recursive = [atom for atom in self.rule.body if isinstance(atom, checked.Atom) and atom.relation in own]
            unbound = [name for name in names if self.scope.binding((name,)) is None]
            raise ElastalogError([_unbound_group(self.lowering.program, literal, unbound, recursive)])
        domain = self._domain(literal, names)
        assert domain is not None
        return domain


_BLANK: Final[dict[Base, Value]] = {
    Base.NUMBER: 0,
    Base.UNSIGNED: 0,
    Base.FLOAT: 0.0,
    Base.SYMBOL: "",
    Base.RECORD: NIL,
}
"""What stands in a column of members that have no value there, and what nothing adds up to."""


def _unbound_group(
    program: CheckedProgram, literal: checked.Aggregation, names: list[str], recursive: list[checked.Atom]
) -> Diagnostic:
    listed = ", ".join(f"`{written_name(name)}`" for name in names)
    them = "it" if len(names) == 1 else "them"
    labels = []
    for atom in recursive:
        binds = [f"`{written_name(a.name)}`" for a in atom.arguments if isinstance(a, Variable) and a.name in names]
        if binds:
            labels.append(Label(atom.span, f"{', '.join(binds)} gets its values here", primary=False))
    return finding("E0602", literal.span, *labels, source=program.source, listed=listed, them=them)
