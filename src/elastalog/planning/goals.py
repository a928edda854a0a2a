"""Properties of the goals of a clause: which variables occur and which get values, which tests can end in an error (an
overflow, a range that is too long, a user's functor that raises), and which goals look up a fact all of whose values
are known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from elastalog.analysis import program as checked
from elastalog.analysis.check_grounded import ground
from elastalog.analysis.draft import is_constructor
from elastalog.analysis.program import Apply, Base, Constant, Variable, names_of, variables_of
from elastalog.planning.logical import Absent, Clause, Goal, LogicalProgram, Scan, StoredRelation, Test
from elastalog.syntax.tree import nodes_of


def grounded(goals: tuple[Goal, ...]) -> set[str]:
    """The variables that a conjunction binds: by scans, and by equations over variables it binds."""
    bound = {term for goal in goals if isinstance(goal, Scan) for term in goal.terms if isinstance(term, str)}
    return ground([goal for goal in goals if isinstance(goal, Test)], bound)


def constructor_of(test: Test) -> Apply | None:
    """The constructor that builds or takes apart the variable on the left, if the test is such an equation."""
    right = test.right
    return right if test.operator == "=" and isinstance(right, Apply) and is_constructor(right.functor) else None


def names_in(goal: Goal) -> list[str]:
    """The names of the variables of a goal, as often as they occur."""
    if isinstance(goal, Test):
        return list(names_of(goal.left, goal.right))
    return [term for term in goal.terms if isinstance(term, str)]


def bases_of(goals: tuple[Goal, ...], stored: Mapping[str, StoredRelation]) -> dict[str, Base]:
    """The base types of the variables of goals."""
    found: dict[str, Base] = {}
    for goal in goals:
        if isinstance(goal, Test):
            found.update({variable.name: variable.base for variable in variables_of(goal.left, goal.right)})
        else:
            bases = stored[goal.relation].bases
            found.update({t: base for t, base in zip(goal.terms, bases, strict=True) if isinstance(t, str)})
    return found


def assigned_variables(body: tuple[checked.Literal, ...]) -> Iterator[Variable]:
    """The variables that get a value in an assignment of an aggregate's body."""
    for literal in body:
        if isinstance(literal, checked.Aggregation):
            yield literal.result
        elif not isinstance(literal, checked.Negation):
            yield from checked.variables_in((literal,), is_deep=False)


_OVERFLOWING = frozenset(
    ("+", "-", "*", "/", "^", "neg", "abs", "to_number", "to_unsigned", "itou", "ftoi", "ftou", "utoi")
)  # fmt: skip


def can_fail(test: Test) -> bool:
    """Whether some values make the test an error."""
    return any(
        apply.functor == "range"
        or apply.functor[0] == "@"
        or (apply.base in (Base.NUMBER, Base.UNSIGNED) and apply.functor in _OVERFLOWING)
        for apply in nodes_of(Apply, (test.left, test.right))
    )


def last_lookups(program: LogicalProgram) -> dict[int, list[str]]:
    """For each stratum, by number, the relations whose facts no later stratum looks up by all their values. The stratum
    of a relation always does, since every fact is kept once."""
    last = {name: stratum.number for stratum in program.strata for name in stratum.relations}
    for stratum in program.strata:
        for clause in (*stratum.clauses, *stratum.dominance):
            last.update(dict.fromkeys(_looked_up(clause), stratum.number))
    found: dict[int, list[str]] = {}
    for name, number in last.items():
        found.setdefault(number, []).append(name)
    return found


def _looked_up(clause: Clause) -> list[str]:
    """The relations of the goals whose terms may all be known when the goal is visited."""
    names = Counter(name for goal in clause.goals for name in set(names_in(goal)))
    return [
        goal.relation
        for goal in clause.goals
        if not isinstance(goal, Test)
        if isinstance(goal, Absent)
        or all(isinstance(term, Constant) or (term is not None and names[term] > 1) for term in goal.terms)
    ]
